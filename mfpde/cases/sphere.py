"""Named cases on the sphere: plain functions with keyword arguments that return `(Problem, Method)`; see `mfpde.cases`."""

from __future__ import annotations

import numpy as np

from mfpde import initial
from mfpde.errors import InputError
from mfpde.geometry import Sphere
from mfpde.initial import InitialLaw
from mfpde.methods.base import Method
from mfpde.methods.finite_volume import FiniteVolume
from mfpde.model import Attention, Problem

Case = tuple[Problem, Method]
I = np.eye(3)


def direction(polar: float, azimuth: float) -> np.ndarray:
    """The unit vector with these spherical coordinates in radians."""
    return np.array([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)])


def turned(seed: int) -> np.ndarray:
    """A rotation of R^3 drawn uniformly with this seed, so that no axis of a problem is one of the mesh; 0 is the identity."""
    if seed == 0:
        return I
    Q, R = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.sign(np.linalg.det(Q))


def tilted() -> InitialLaw:
    """A smooth law with full support and no symmetry: the densities of the largest and the smallest value differ by a factor of about 8."""
    return initial.fisher_mixture([direction(0.7, 0.4), direction(1.9, 2.6), direction(2.4, -1.3)], [1.0, 1.5, 0.5], [3, 2, 3])


def sphere_concentration(*, beta: float = 100.0, t_end: float = 8.0, cells: int = 2562, order: int = 2) -> Case:
    """S^2, low temperature, general Q, K, V with a spectral gap: concentration onto two atoms.

    The drift M = VA has eigenvalues 1, 0.3 and 0.1 and is not normal; none of Q, K, V, A is symmetric. V and A share the dominant
    eigenvector with M, so the law stays where it concentrates.
    """
    turn = turned(7)
    K = I + np.array([[0.0, 0.2, -0.1], [0.1, -0.2, 0.0], [0.0, 0.1, 0.1]])
    A = turn @ np.array([[1.2, 0.2, -0.1], [0.0, 0.9, 0.2], [0.0, -0.1, 0.8]]) @ turn.T
    drift = turn @ np.array([[1.0, 0.4, 0.2], [0.0, 0.3, 0.1], [0.0, 0.0, 0.1]]) @ turn.T
    attention = Attention(np.linalg.solve(K.T, A), K, drift @ np.linalg.inv(A), beta)
    return Problem(attention, Sphere(), tilted(), t_end), FiniteVolume(cells=cells, order=order)


def sphere_mobius(*, slope: float = 0.9, polar: float = 0.7, azimuth: float = -1.0, t_end: float = 1.0, cells: int = 2562, order: int = 2) -> Case:
    """S^2, beta = 0 from the density (1 + slope cos) / 4 pi about an axis: Moebius maps along the axis."""
    if not 0 <= slope <= 1:
        raise InputError(f"A density is not negative: 0 <= slope <= 1.\n  slope = {slope!r}")
    axis = direction(polar, azimuth)
    law = initial.from_density(lambda x: 1 + slope * (x @ axis), Sphere())
    return Problem(Attention.identity(3, 0.0), Sphere(), law, t_end), FiniteVolume(cells=cells, order=order)


def sphere_growth(
    *,
    beta: float = 3.0,
    degree: int = 2,
    amplitude: float = 1e-3,
    value: float = 1.0,
    polar: float = 0.7,
    azimuth: float = -1.0,
    t_end: float = 2.0,
    cells: int = 2562,
    order: int = 2,
) -> Case:
    """S^2, a small zonal harmonic on the uniform law grows at a known rate (V = value * I)."""
    from numpy.polynomial.legendre import Legendre

    if degree < 1:
        raise InputError(f"A wave on the uniform law has a degree >= 1.\n  degree = {degree!r}")
    axis, wave = direction(polar, azimuth), Legendre.basis(degree)
    law = initial.from_density(lambda x: 1 + amplitude * wave(x @ axis), Sphere())
    return Problem(Attention(I, I, value * I, beta), Sphere(), law, t_end), FiniteVolume(cells=cells, order=order)


def sphere_pair(
    *, beta: float = 4.0, distance: float = 2.0, width: float = 0.15, turn: int = 1, t_end: float = 60.0, cells: int = 2562, order: int = 2
) -> Case:
    """S^2, two equal clusters attract each other over a time like e^{beta (1 - cos distance)}, then merge (`turn` seeds a rotation of the pair)."""
    if not (0 < distance <= np.pi and width >= 0):
        raise InputError(f"Two clusters lie 0 < distance <= pi apart and have a width >= 0.\n  distance = {distance!r}, width = {width!r}")
    first, second = turned(turn)[:, 0], turned(turn)[:, 1]
    centres = Sphere().retract(np.stack([first, np.cos(distance) * first + np.sin(distance) * second]))
    law = initial.fisher_mixture(centres, 1 / width**2) if width > 0 else initial.atoms(centres, [0.5, 0.5])
    return Problem(Attention.identity(3, beta), Sphere(), law, t_end), FiniteVolume(cells=cells, order=order)


def sphere_great_circle(*, beta: float = 100.0, gap: float = 0.8, t_end: float = 6.0, cells: int = 2562, order: int = 2) -> Case:
    """S^2, dim E = 2: the law falls onto a great circle; from the uniform law its limit is an angular central Gaussian."""
    turn = turned(3)
    V = turn @ np.array([[1.0, 0.0, 0.5], [0.0, 1.0, -0.3], [0.0, 0.0, 1.0 - gap]]) @ turn.T
    return Problem(Attention(I, I, V, beta), Sphere(), initial.uniform(Sphere()), t_end), FiniteVolume(cells=cells, order=order)


def sphere_rotation(*, beta: float = 20.0, turns: float = 1.5, t_end: float = 6.0, cells: int = 2562, order: int = 2) -> Case:
    """S^2, complex spectrum: tokens fall onto a plane and rotate there for ever, in clusters."""
    turn = turned(5)
    V = turn @ np.array([[1.0, -turns, 0.0], [turns, 1.0, 0.0], [0.0, 0.0, 0.2]]) @ turn.T
    return Problem(Attention(I, I, V, beta), Sphere(), tilted(), t_end), FiniteVolume(cells=cells, order=order)
