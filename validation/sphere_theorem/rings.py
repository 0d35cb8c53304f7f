"""Laws on the sphere with an axis of symmetry, as rings of latitude: the mean field with the azimuth integrated in closed form.

With A = I and V = diag(l1, l2, l2) about the axis, the score between latitudes theta and phi is `beta (cos cos + sin sin cos azimuth)`, whose average over
the azimuth is a modified Bessel function, and `theta' = -l1 sin(theta) m_axis + l2 cos(theta) m_across`. Shares nothing with the solvers but the equation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import i0e, i1e

Density = Callable[[np.ndarray], np.ndarray]


def placed(density: Density, n: int, finest: float) -> tuple[np.ndarray, np.ndarray]:
    """`(polar angles, masses)` of n rings, n even; density in u = cos(theta). Their width grows from `finest` at the equator in proportion to the distance
    from it, since tokens part there; the equator lies between two rings."""
    edges = np.pi / 2 + finest * np.sinh(np.linspace(-1, 1, n + 1) * np.arcsinh(np.pi / 2 / finest))
    u = np.cos(edges)
    x, w = np.polynomial.legendre.leggauss(8)
    middle, half = (u[1:] + u[:-1]) / 2, (u[:-1] - u[1:]) / 2
    return (edges[1:] + edges[:-1]) / 2, half * (density(middle[:, None] + half[:, None] * x) @ w)


def speed(theta: np.ndarray, masses: np.ndarray, beta: float, l1: float, l2: float) -> np.ndarray:
    """d theta/dt of every ring."""
    c, s = np.cos(theta), np.sin(theta)
    kernel = np.exp(beta * (np.cos(np.subtract.outer(theta, theta)) - 1))
    argument = beta * np.outer(s, s)
    along = kernel * i0e(argument)
    return (-s * l1 * (along @ (masses * c)) + c * l2 * ((kernel * i1e(argument)) @ (masses * s))) / (along @ masses)


def followed(theta: np.ndarray, masses: np.ndarray, times: np.ndarray, *, beta: float, l1: float, l2: float) -> np.ndarray:
    """Polar angles at the times; shape (k, n). Infinite beta is the zero-temperature flow, tan theta = e^{-(l1 - l2) t} tan theta_0."""
    if beta == np.inf:
        growth = np.exp((l1 - l2) * times)[:, None]
        return np.arctan2(np.sin(theta), growth * np.cos(theta))
    run = solve_ivp(lambda _, y: speed(y, masses, beta, l1, l2), (0, times[-1]), theta, method="DOP853", t_eval=times, rtol=1e-6, atol=1e-9)
    return run.y.T


def to_poles(theta: np.ndarray, masses: np.ndarray, first: float, p: int) -> float:
    """W_p to two atoms at the poles, the one at theta = 0 of mass `first`: the rings nearest to it go there."""
    done = np.cumsum(masses)
    share = np.clip((first - (done - masses)) / np.maximum(masses, 1e-300), 0, 1)
    return float(masses @ (share * theta**p + (1 - share) * (np.pi - theta) ** p)) ** (1 / p)


def to_equator(theta: np.ndarray, masses: np.ndarray, p: int) -> float:
    """W_p to the uniform law on the equator."""
    return float(masses @ np.abs(theta - np.pi / 2) ** p) ** (1 / p)
