r"""The Fisher law on S^2 in closed form: masses of cells and of half spaces.

    f(x) = kappa e^{-kappa w} / (2 pi (1 - e^{-2 kappa})),     w = 1 - <e, x> = |x - e|^2 / 2,     v = 2 - w

The cap of height w about e has the mass `G = (1 - e^{-kappa w})/(1 - e^{-2 kappa})`. So f is the divergence of the field `G / (2 pi sin theta)` that points
away from e, and away from e it is also that of `-(1 - G) / (2 pi sin theta)`, which vanishes at -e. By Gauss's theorem the mass of a cell is a sum over
its faces, arcs of great circles with a constant normal n, of

    near e:     -(1/2 pi) int c <e,n> phi(kappa w) / v ds                       phi(z) = (1 - e^{-z})/z,   c = kappa/(1 - e^{-2 kappa})
    elsewhere:   (1/2 pi) int c <e,n> e^{-kappa w} phi(kappa v) / w ds

Smooth integrands, one dimension: bumps far narrower than a cell cost no more than others, and tails keep their relative accuracy. Derived in docs/sphere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ive

from mfpde.mesh import Mesh
from mfpde.mesh.icosahedral import dot

TWO_PI = 2 * np.pi
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
BLOCK = 1 << 15  # arcs at a time


def phi(z: np.ndarray) -> np.ndarray:
    """`(1 - e^{-z})/z`, 1 at 0."""
    return np.divide(-np.expm1(-z), z, out=np.ones_like(z), where=z != 0)


def height_scale(kappa: float) -> float:
    """`c = kappa / (1 - e^{-2 kappa})`, 1/2 at 0: 2 pi times the density at the centre."""
    return kappa / -np.expm1(-2 * kappa) if kappa > 0 else 0.5


def fisher_cells(mesh: Mesh, e: np.ndarray, kappa: float) -> np.ndarray:
    """Mass of every cell of a mesh of the sphere under the Fisher law about the unit vector `e`; shape (N,), absolute error about 1e-15."""
    c = height_scale(kappa)

    def inner(w: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -c * phi(kappa * w) / v

    def outer(w: np.ndarray, v: np.ndarray) -> np.ndarray:
        return c * np.exp(-kappa * w) * phi(kappa * v) / w

    near = np.linalg.norm(mesh.centres - e, axis=1) < min(2 * mesh.spacing, 0.8)
    masses = np.zeros(len(mesh))
    for side, field in ((near, inner), (~near, outer)):
        faces = np.flatnonzero(side[mesh.face_cells].any(axis=1))
        flux = _through(mesh, faces, e, field)
        first, second = mesh.face_cells[faces].T
        total = np.bincount(first, flux, len(mesh)) - np.bincount(second, flux, len(mesh))
        masses[side] = total[side]
    return masses


def _through(mesh: Mesh, faces: np.ndarray, e: np.ndarray, field: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """`(1/2 pi) <e, n> int field(w, v) ds` over each face, halving arcs until two Gauss rules agree; shape (len(faces),)."""
    middle, normal = mesh.face_centres[faces], mesh.face_normals[faces]
    along = np.cross(normal, middle)
    incline = dot(normal, e) / TWO_PI

    def rule(face: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        values = np.empty(len(face))
        for start in range(0, len(face), BLOCK):
            part = slice(start, start + BLOCK)
            rows, half = face[part], (right[part] - left[part]) / 2
            s = (left[part] + half)[:, None] + half[:, None] * NODES
            x = np.cos(s)[..., None] * middle[rows, None] + np.sin(s)[..., None] * along[rows, None]
            below, above = x - e, x + e
            values[part] = incline[rows] * half * (field(dot(below, below) / 2, dot(above, above) / 2) @ WEIGHTS)
        return values

    total = np.zeros(len(faces))
    face, right = np.arange(len(faces)), mesh.face_areas[faces] / 2
    left = -right
    coarse = rule(face, left, right)
    while len(face):
        centre = (left + right) / 2
        halves = rule(face, left, centre), rule(face, centre, right)
        fine = halves[0] + halves[1]
        done = (np.abs(fine - coarse) <= 1e-17 + 1e-13 * np.abs(fine)) | (right - left < 1e-13)
        total += np.bincount(face[done], fine[done], len(faces))
        rest = ~done
        coarse = np.concatenate([half[rest] for half in halves])
        face, left, right = np.tile(face[rest], 2), np.concatenate([left[rest], centre[rest]]), np.concatenate([centre[rest], right[rest]])
    return total


def fisher_halfspace(cosine: float, kappa: float) -> float:
    r"""Mass of `<w, x> > 0` under the Fisher law whose centre has `<w, e> = cosine`; relative error about 1e-13 of the smaller side.

    `z = <w, x>` has the density `kappa/(2 sinh kappa) e^{kappa c z} I_0(kappa s sqrt(1 - z^2))`, c = cosine, s = sqrt(1 - c^2) (Mardia and Jupp,
    Directional Statistics (2000), section 9.3); with `z = sin psi` its exponential is `e^{kappa (cos(psi - psi_0) - 1)}`, `c = sin psi_0`.

    >>> fisher_halfspace(0.0, 7.0)
    0.5
    """
    if kappa == 0 or cosine == 0:
        return 0.5
    c = -min(abs(cosine), 1.0)  # the far side, which is the smaller one
    s, centre = np.sqrt((1 - c) * (1 + c)), np.arcsin(c)
    scale = 1 / (kappa * -np.sin(centre) + np.sqrt(kappa))  # of the decay away from psi = 0
    steps = scale * np.concatenate([[0.0], 2.0 ** np.arange(-2, 64)])
    edges = np.append(steps[steps < np.pi / 2], np.pi / 2)
    node, weight = np.polynomial.legendre.leggauss(24)
    half = np.diff(edges)[:, None] / 2
    psi = edges[:-1, None] + half * (node + 1)
    integrand = np.cos(psi) * np.exp(-2 * kappa * np.sin((psi - centre) / 2) ** 2) * _scaled_bessel(kappa * s * np.cos(psi))
    far = float(np.sum(half * weight * integrand) * height_scale(kappa))
    return 1 - far if cosine > 0 else far


def _scaled_bessel(z: np.ndarray) -> np.ndarray:
    """`e^{-z} I_0(z)`; scipy gives NaN beyond 2^30, where two terms of the asymptotic series are exact."""
    large = z > 1e8
    far = np.where(large, z, 1.0)
    return np.where(large, (1 + 0.125 / far) / np.sqrt(TWO_PI * far), ive(0, np.where(large, 0.0, z)))
