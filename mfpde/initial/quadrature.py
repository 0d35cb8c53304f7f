r"""Integrals over spherical triangles, adaptively.

A triangle with corners a, b, c is swept by `x = p/|p|`, `p = l_1 a + l_2 b + l_3 c` (barycentric l), with the area element

    dA = det(a, b, c) / |p|^3 dl_1 dl_2

so a rule on the flat triangle is one on the curved triangle, of the same order. A product rule of 25 points, of degree 8, is compared with itself on
the four triangles of a bisection, and what does not agree is bisected again: narrow peaks and jumps get small triangles, smooth parts large ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mfpde.errors import NumericalError
from mfpde.mesh import Mesh
from mfpde.mesh.icosahedral import dot, icosphere, unit

Density = Callable[[np.ndarray], np.ndarray]

RELATIVE, ABSOLUTE = 1e-9, 1e-14  # of the integral over a triangle, of the whole: the finer value is about 500 times better than the difference
SMALLEST = 1e-3  # radians: a triangle with shorter sides holds a jump, and its error is at most its mass
MOST_TRIANGLES = 4_000_000
BLOCK = 1 << 14  # triangles at a time: 10 MB of nodes


def _collapsed(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Barycentric nodes (n^2, 3) and weights (n^2,) of total 1/2: Gauss's rule on a square, one side of which is collapsed to a corner."""
    x, weight = np.polynomial.legendre.leggauss(n)
    x, weight = (x + 1) / 2, weight / 2
    away, across = (grid.ravel() for grid in np.meshgrid(x, x, indexing="ij"))
    return np.stack([1 - away, away * (1 - across), away * across], axis=1), np.outer(weight * x, weight).ravel()


NODES, WEIGHTS = _collapsed(5)


class Leaves(NamedTuple):
    """The triangles on which an integral has settled."""

    owner: np.ndarray  # (L,) number of the triangle that was given
    corners: np.ndarray  # (L, 3, 3)
    values: np.ndarray  # (L,)


def integral(f: Density, corners: np.ndarray) -> np.ndarray:
    """`int f dA` over each of the triangles `corners` (T, 3, 3), by one rule each; shape (T,)."""
    values = np.empty(len(corners))
    for start in range(0, len(corners), BLOCK):
        block = corners[start : start + BLOCK]
        p = NODES @ block  # (t, 25, 3)
        length = np.linalg.norm(p, axis=-1)
        at = f((p / length[..., None]).reshape(-1, 3)).reshape(length.shape)
        values[start : start + BLOCK] = np.abs(dot(block[:, 0], np.cross(block[:, 1], block[:, 2]))) * ((at / length**3) @ WEIGHTS)
    return values


def quarters(corners: np.ndarray) -> np.ndarray:
    """The four parts of each triangle, shape (T, 4, 3, 3): three at the corners, one in the middle."""
    middles = unit(corners + np.roll(corners, -1, axis=1))  # of ab, bc, ca
    ab, bc, ca = (middles[:, k] for k in range(3))
    a, b, c = (corners[:, k] for k in range(3))
    return np.stack([np.stack(t, axis=1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))], axis=1)


def sides(corners: np.ndarray) -> np.ndarray:
    """Longest chord of each triangle, shape (T,)."""
    return np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2).max(axis=1)


def settle(f: Density, corners: np.ndarray) -> Leaves:
    """Integrate `f` over triangles, halving them until the values settle.

    Parameters
    ----------
    f : function (n, 3) -> (n,)
        Non-negative.
    corners : (T, 3, 3)

    Returns
    -------
    Leaves
        Values to about 1e-12 relative, or 1e-16 of the whole, where f is smooth. Triangles across a jump shrink to 1e-3: a total error of about 1e-6.

    Raises
    ------
    NumericalError
        When millions of triangles do not settle it.
    """
    owner, values = np.arange(len(corners)), integral(f, corners)
    found: list[Leaves] = []
    total = values.sum()
    while len(corners):
        parts = quarters(corners)
        fine = integral(f, parts.reshape(-1, 3, 3)).reshape(-1, 4)
        done = (np.abs(fine.sum(axis=1) - values) <= ABSOLUTE * total + RELATIVE * values) | (sides(corners) < SMALLEST)
        found.append(Leaves(owner[done], corners[done], fine[done].sum(axis=1)))
        owner, corners, values = np.repeat(owner[~done], 4), parts[~done].reshape(-1, 3, 3), fine[~done].ravel()
        if len(corners) > MOST_TRIANGLES:
            raise NumericalError(f"The density is too rough to integrate: {len(corners)} triangles do not settle it.\n  Give a piecewise smooth function.")
    return Leaves(*(np.concatenate(part) for part in zip(*found, strict=True)))


def cell_triangles(mesh: Mesh) -> tuple[np.ndarray, np.ndarray]:
    """`(cell (2F,), corners (2F, 3, 3))`: every cell of a mesh of the sphere cut into triangles from its centre to its faces."""
    middle, half = mesh.face_centres, mesh.face_areas[:, None] / 2
    along = np.cross(mesh.face_centres, mesh.face_normals)
    left, right = np.cos(half) * middle + np.sin(half) * along, np.cos(half) * middle - np.sin(half) * along
    first, second = mesh.face_cells.T
    corners = [np.stack([mesh.centres[first], right, left], axis=1), np.stack([mesh.centres[second], left, right], axis=1)]
    return np.concatenate([first, second]), np.concatenate(corners)


def whole_sphere(bisections: int) -> np.ndarray:
    """The triangles of a bisected icosahedron, shape (20 * 4^bisections, 3, 3)."""
    points, triangles = icosphere(bisections)
    return points[triangles]


def hemisphere(w: np.ndarray, bisections: int) -> np.ndarray:
    """Triangles that tile `<w, x> > 0` for a unit vector w: a quarter each, bisected; shape (4^(1 + bisections), 3, 3)."""
    first = unit(np.cross(w, np.eye(3)[np.argmin(np.abs(w))]))
    second = np.cross(w, first)
    around = np.stack([first, second, -first, -second])
    corners = np.stack([np.broadcast_to(w, (4, 3)), around, np.roll(around, -1, axis=0)], axis=1)
    for _ in range(bisections):
        corners = quarters(corners).reshape(-1, 3, 3)
    return corners
