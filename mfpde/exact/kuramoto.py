"""beta = 0, the Kuramoto equation: Poisson kernels and the Moebius map of any law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from mfpde import initial
from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Circle
from mfpde.initial import Atoms, CircleLaw, InitialLaw
from mfpde.measure import Measure
from mfpde.mesh import Mesh

TWO_PI = 2 * np.pi


def poisson_radius(r0: float, t: Any) -> Any:
    r"""Radius at time t of a Poisson kernel under `beta = 0`, V = I: `r' = r (1 - r^2) / 2`, so `r = r0 / sqrt(r0^2 + (1 - r0^2) e^{-t})`.

    Parameters
    ----------
    r0 : float
        In [0, 1).
    t : float or array_like
        Any sign.

    Raises
    ------
    InputError
        If r0 is outside [0, 1).

    Notes
    -----
    Source: Ott and Antonsen, Chaos 18 (2008) 037113; docs/theory.

    Examples
    --------
    >>> round(float(poisson_radius(0.3, 3.0)), 10)
    0.8155720884
    """
    if not 0 <= r0 < 1:
        raise InputError(f"The Poisson kernel needs 0 <= r0 < 1.\n  r0 = {r0!r}")
    fade = (1 - r0) * (1 + r0) * np.exp(-np.asarray(t, dtype=float))
    radius = r0 / np.sqrt(r0**2 + fade)
    return float(radius) if np.ndim(radius) == 0 else radius


def poisson_law(r0: float, t: float, angle: float = 0.0) -> InitialLaw:
    """The law at time `t` that starts as `initial.poisson(r0, angle)` under `beta = 0`, V = I: a Poisson kernel of radius `poisson_radius(r0, t)`.

    Raises `NumericalError` when 1 - r is lost in round-off (about t = 36).

    Examples
    --------
    >>> poisson_law(0.3, 2.0)
    Poisson kernel r=0.649791
    """
    radius = poisson_radius(r0, t)
    if radius == 1:
        raise NumericalError(f"At t = {t:g} the Poisson kernel is a Dirac to double precision.\n  r0 = {r0:g}, 1 - r below 1e-16.\n  Ask for an earlier time.")
    return initial.poisson(radius, angle)


class MoebiusLaw(InitialLaw):
    r"""A law moved by a Moebius map of the circle; made by `watanabe_strogatz`.

    The map is a rotation by `eta`, then a pull towards the direction `alpha` that scales the tangent of the half angle:
    `tan((theta' - alpha)/2) = squeeze * tan((theta + eta - alpha)/2)`. It is `zeta -> (a + e^{i eta} zeta)/(1 + conj(a) e^{i eta} zeta)`.

    Attributes
    ----------
    a : complex
        In the open unit disc, `alpha = arg a`.
    eta : float
    squeeze : float
        `(1 - |a|)/(1 + |a|)`, in (0, 1], to full relative accuracy.
    start : InitialLaw
        The law that is moved.
    """

    def __init__(self, start: InitialLaw, a: complex, eta: float, log_room: float) -> None:
        self.geometry, self.start = Circle(), start
        self.a, self.eta = a, eta
        self.alpha = float(np.angle(a))
        self.room = float(np.exp(log_room))  # 1 - |a|^2
        self.squeeze = self.room / (1 + abs(a)) ** 2
        self.name = f"Moebius image of {start.name}, |a| = {abs(a):.6g}"

    def _forth(self, angles: np.ndarray) -> np.ndarray:
        return self.alpha + _scaled_half_tangent(np.asarray(angles) + self.eta - self.alpha, self.squeeze)

    def _back(self, angles: np.ndarray) -> np.ndarray:
        return self.alpha - self.eta + _scaled_half_tangent(np.asarray(angles) - self.alpha, 1 / self.squeeze)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Where the tokens that start at `points` (n, 2) are."""
        return Circle().points(self._forth(Circle().angles(np.asarray(points, dtype=float))))

    def inverse(self, points: np.ndarray) -> np.ndarray:
        """Where the tokens that are at `points` (n, 2) started."""
        return Circle().points(self._back(Circle().angles(np.asarray(points, dtype=float))))

    def density(self, points: np.ndarray) -> np.ndarray:
        """`rho_0(M^{-1} w) (1 - |a|^2) / |1 - conj(a) w|^2`, per arc length."""
        theta = Circle().angles(np.asarray(points, dtype=float))
        radius = abs(self.a)
        apart = (self.room / (1 + radius)) ** 2 + 4 * radius * np.sin((theta - self.alpha) / 2) ** 2
        return self.start.density(Circle().points(self._back(theta))) * self.room / apart

    def _cumulative(self, angles: np.ndarray) -> np.ndarray:
        """A distribution function of the moved law on the real line, up to a constant."""
        if not isinstance(self.start, CircleLaw):
            raise InputError(f"{self.name} has no density.\n  Read it as a measure: law.nodes(n).")
        before = self._back(angles)
        turns = np.floor(before / TWO_PI)
        return turns + self.start.cumulative(before - turns * TWO_PI)

    def cell_masses(self, mesh: Mesh) -> np.ndarray:
        """Mass of the arcs that the cells come from, shape (N,)."""
        if isinstance(self.start, Atoms):
            return initial.atoms(self(self.start.measure.points), self.start.measure.weights).cell_masses(mesh)
        faces = TWO_PI * np.arange(len(mesh) + 1) / len(mesh)
        return np.maximum(np.diff(self._cumulative(faces)), 0.0)  # monotone up to round-off

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return self(self.start.sample(n, rng))

    def nodes(self, n: int) -> Measure:
        start = self.start.nodes(n)
        return Measure(self(start.points), start.weights)

    def mass_of_halfspace(self, w: np.ndarray) -> float:
        if isinstance(self.start, Atoms):
            return initial.atoms(self(self.start.measure.points), self.start.measure.weights).mass_of_halfspace(w)
        middle = np.arctan2(w[1], w[0])
        enters, leaves = self._cumulative(middle + np.array([-np.pi / 2, np.pi / 2]))
        return float(leaves - enters)


def watanabe_strogatz(law: InitialLaw, t: float) -> MoebiusLaw:
    r"""The law at time `t` that starts as `law` under `beta = 0`, V = I, on the circle: map of points, density, masses.

    Every token moves by one Moebius map `M_t`, whose parameters solve

        a' = (Z - conj(Z) a^2)/2,    eta' = Im(Z conj(a)),    Z = int M_t(zeta) dmu_0,    a(0) = eta(0) = 0

    Parameters
    ----------
    law : InitialLaw
        A density of this package on the circle, or atoms.
    t : float
        At least 0.

    Returns
    -------
    MoebiusLaw
        An `InitialLaw` itself: `.density(points)`, `.cell_masses(mesh)`, `.nodes(n)`; as a function it maps points (n, 2) to where they are now.

    Raises
    ------
    InputError
        For a law that is neither, or a negative time.
    NumericalError
        If the integrator fails.

    Notes
    -----
    The ODE is solved by Dormand and Prince's method of order 8 to 1e-13. Z is a sum over Gauss-Legendre panels that follow the density and are
    graded towards the repeller, where M_t varies within 1 - |a|; `log(1 - |a|^2)` is a fourth unknown, so that the answer keeps its digits when
    the law has almost collapsed.
    Cost: some thousand density evaluations for each of some hundred slopes. Source: Watanabe and Strogatz, Physica D 74 (1994) 197;
    Marvel, Mirollo and Strogatz, Chaos 19 (2009) 043104; docs/theory.

    Examples
    --------
    >>> import mfpde as mf
    >>> moved = watanabe_strogatz(mf.initial.poisson(0.3), 3.0)
    >>> here = mf.Circle().points([0.1, 2.0])
    >>> np.allclose(moved.density(here), poisson_law(0.3, 3.0).density(here), rtol=1e-11)
    True
    """
    if not (np.isfinite(t) and t >= 0):
        raise InputError(f"A law is asked for at a finite time >= 0.\n  t = {t!r}")
    rule = _quadrature(law)

    def slopes(_: float, state: np.ndarray) -> list[float]:
        a, eta, log_room = complex(state[0], state[1]), state[2], state[3]
        alpha, squeeze = np.angle(a), np.exp(log_room) / (1 + abs(a)) ** 2
        theta, weights = rule(alpha - eta + np.pi, squeeze)
        moved = alpha + _scaled_half_tangent(theta + eta - alpha, squeeze)
        Z = complex(weights @ np.cos(moved), weights @ np.sin(moved))
        a_slope = (Z - np.conj(Z) * a**2) / 2
        pull = Z * np.conj(a)
        return [a_slope.real, a_slope.imag, pull.imag, -pull.real]  # (log(1 - |a|^2))' = -Re(Z conj(a))

    solution = solve_ivp(slopes, (0.0, t), np.zeros(4), method="DOP853", rtol=1e-13, atol=1e-14)
    if not solution.success:
        raise NumericalError(f"The Moebius parameters could not be followed to t = {t:g}.\n  {solution.message}")
    x, y, eta, log_room = solution.y[:, -1]
    return MoebiusLaw(law, complex(x, y), float(eta), float(log_room))


def _scaled_half_tangent(angle: np.ndarray, factor: float) -> np.ndarray:
    """The angle b with `tan(b/2) = factor tan(angle/2)`, on the same turn as `angle`: increasing and continuous on the real line."""
    turn = TWO_PI * np.round(angle / TWO_PI)
    half = (angle - turn) / 2
    return turn + 2 * np.arctan2(factor * np.sin(half), np.cos(half))


def _quadrature(law: InitialLaw) -> Callable[[float, float], tuple[np.ndarray, np.ndarray]]:
    """A function `(repeller, width) -> (angles, weights)` for `int g dmu_0` where g varies within `width` of the angle `repeller` and slowly elsewhere."""
    if isinstance(law, Atoms) and isinstance(law.geometry, Circle):
        atoms = law.measure.angles(), law.measure.weights
        return lambda repeller, width: atoms
    if not isinstance(law, CircleLaw):
        raise InputError(f"The Moebius flow moves densities and atoms on the circle.\n  law = {law!r} on {getattr(law, 'geometry', None)!r}")
    cumulative, edges = law.cumulative, law.cumulative.edges
    x, w = np.polynomial.legendre.leggauss(16)

    def rule(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half = (right - left)[:, None] / 2
        theta = left[:, None] + half * (1 + x)
        return theta, half * w * cumulative.f(theta) / cumulative.total

    smooth_theta, smooth_weights = rule(edges[:-1], edges[1:])

    def panels(repeller: float, width: float) -> tuple[np.ndarray, np.ndarray]:
        width = max(width, 1e-13)
        reach = width * 2.0 ** np.arange(np.ceil(np.log2(np.pi / width)) + 1)
        graded = (repeller + np.concatenate([-reach, [0.0], reach])) % TWO_PI
        # only the panels that a graded point falls into are cut anew
        cut = np.zeros(len(edges) - 1, dtype=bool)
        cut[np.minimum(np.searchsorted(edges, graded, side="right"), len(cut)) - 1] = True
        points = np.unique(np.concatenate([edges[:-1][cut], edges[1:][cut], graded]))
        inside = cut[np.minimum(np.searchsorted(edges, points[:-1], side="right"), len(cut)) - 1]
        theta, weights = rule(points[:-1][inside], points[1:][inside])
        return np.concatenate([smooth_theta[~cut].ravel(), theta.ravel()]), np.concatenate([smooth_weights[~cut].ravel(), weights.ravel()])

    return panels
