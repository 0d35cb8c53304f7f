r"""Solutions in closed form or to spectral accuracy: what every method is measured against.

Nothing here knows a mesh or a time step. Derivations in docs/theory; each function is tested against an independent computation.

    poisson_law           beta = 0: the Poisson kernel stays one
    watanabe_strogatz     beta = 0: any law moves by a Moebius map, three numbers that depend on time
    growth_rate           how fast a Fourier mode grows on the uniform law
    merge_time            two clusters: the time until their distance has fallen
    two_atom_gap          two clusters: their distance at a time
    von_mises_attention   log Z and m of von Mises laws, at any temperature
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import exp1, expi, ive

from mfpde import initial
from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Circle
from mfpde.initial import Atoms, CircleLaw, InitialLaw
from mfpde.measure import Measure, check_weights
from mfpde.mesh import Mesh
from mfpde.model import Attention

TWO_PI = 2 * np.pi
LARGEST_BESSEL = 1e8  # scipy's scaled Bessel functions give NaN beyond 2^30; from here two terms of their asymptotic series are exact


# ---- beta = 0: the Kuramoto equation -------------------------------------------------------------------------------------------------


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


# ---- the uniform law -----------------------------------------------------------------------------------------------------------------


def growth_rate(attention: Attention, k: Any) -> Any:
    r"""Complex rate `lambda_k` of the perturbation `rho = (1 + Re eps e^{i k theta + lambda t}) / 2 pi` of the uniform law on the circle.

    For planar `V = a I + b J` and `A = c R(phi)`, c >= 0, J the quarter turn, R a rotation; with `I_n` at `c beta`, over `I_0`, and `G_n = I_n e^{i n phi}`:

        lambda_k = -i k (K_k + K_0 (1 - G_k)),     K_n = a i (G_{n-1} - G_{n+1})/2 + b (G_{n-1} + G_{n+1})/2

    For V = A = I this is `(k^2 / beta) I_k / I_0`, at most 2/e. The real part is growth; the wave travels at the angular speed `-Im(lambda_k) / k`.
    The moment `z_k = int e^{i k theta} dmu` of `diagnostics.fourier_moments` grows at the conjugate rate.

    Parameters
    ----------
    attention : Attention
        `beta` from 0 to inf.
    k : int or array_like of int
        Wave numbers.

    Returns
    -------
    complex or ndarray of complex

    Raises
    ------
    InputError
        If V or A has another form, k is not whole, or `c beta` is finite and above 1e8.

    Notes
    -----
    Absolute error about `eps k |V|`. Derived in docs/theory.

    Examples
    --------
    >>> import mfpde as mf
    >>> round(growth_rate(mf.Attention.identity(2, beta=1.0), 1).real, 10)
    0.4463899659
    """
    modes = np.asarray(k)
    if not (np.issubdtype(modes.dtype, np.number) and np.isrealobj(modes) and np.array_equal(modes, np.round(modes))):
        raise InputError(f"Wave numbers on the circle are whole.\n  k = {k!r}")
    V = _planar("V", attention.V)
    score = _planar("A = K^T Q", attention.A)
    sharpness = float(attention.beta * abs(score)) if abs(score) > 0 else 0.0
    if LARGEST_BESSEL < sharpness < np.inf:
        raise InputError(f"Growth rates are computed for beta |A| up to {LARGEST_BESSEL:g}, and inf.\n  beta |A| = {sharpness:g}")
    phi = np.angle(score)
    n = modes.astype(float)

    def bessel(n: Any) -> Any:
        """I_n / I_0."""
        return np.ones(np.shape(n)) if sharpness == np.inf else ive(np.abs(n), sharpness) / ive(0, sharpness)

    def K(n: Any) -> Any:
        """With I_{n-1} - I_{n+1} = 2 n I_n / (c beta), which has no cancellation."""
        total = (bessel(n - 1) + bessel(n + 1)) / 2
        difference = n * bessel(n) / sharpness if sharpness > 1 else (bessel(n - 1) - bessel(n + 1)) / 2
        c, s = np.cos(phi), np.sin(phi)
        return np.exp(1j * n * phi) * (V.real * (1j * difference * c + total * s) + V.imag * (total * c - 1j * difference * s))

    rate = -1j * n * (K(n) + K(0.0) * (1 - bessel(n) * np.exp(1j * n * phi)))
    return complex(rate) if modes.ndim == 0 else rate


def _planar(name: str, matrix: np.ndarray) -> complex:
    """`a + i b` of the matrix `a I + b J`, or an `InputError`."""
    a, b = matrix[0, 0], matrix[-1, 0]
    if matrix.shape != (2, 2) or np.abs(matrix - [[a, -b], [b, a]]).max() > 1e-14 * np.abs(matrix).max():
        raise InputError(f"{name} must be a multiple of a rotation of the plane: only then do Fourier modes grow one by one.\n  {name} = {matrix.tolist()}")
    return complex(a, b)


# ---- two clusters --------------------------------------------------------------------------------------------------------------------


def merge_time(beta: float, distance: float, *, masses: Sequence[float] = (0.5, 0.5), until: float = 0.1) -> float:
    r"""The time in which the distance of two atoms on a great circle falls from `distance` to `until`, under V = A = I.

    With `s = 1 - cos D` and `g = e^{beta s}` the distance obeys

        D' = -sin D ( m_2/(m_2 + m_1 g) + m_1/(m_1 + m_2 g) )

    and for equal masses `t = F(s_0) - F(s)` with `F(s) = (log(s/(2 - s)) + Ei(beta s) - e^{2 beta} Ei(-beta (2 - s))) / 4`. So it grows like `e^{beta s_0}`.

    Parameters
    ----------
    beta : float
        Finite, at least 0.
    distance, until : float
        Radians, `0 < until <= distance < pi`. The atoms never meet: finally the distance falls like `e^{-t}`.
    masses : pair of floats
        Positive, of sum 1.

    Returns
    -------
    float
        `inf` where it exceeds the largest double; `log_merge_time` does not.

    Raises
    ------
    InputError
        For values out of range.

    Notes
    -----
    Equal masses: the closed form, in the log domain. Others: Gauss-Legendre panels, relative error about 1e-13. Derived in docs/theory.

    Examples
    --------
    >>> round(merge_time(4.0, 2.0, until=1.0), 6)
    38.881882
    >>> merge_time(1e4, 2.0), round(log_merge_time(1e4, 2.0) / 1e4, 3)       # 1 - cos 2 = 1.416
    (inf, 1.415)
    """
    log_time = log_merge_time(beta, distance, masses=masses, until=until)
    return float(np.exp(log_time)) if log_time < np.log(np.finfo(float).max) else np.inf


def log_merge_time(beta: float, distance: float, *, masses: Sequence[float] = (0.5, 0.5), until: float = 0.1) -> float:
    """The logarithm of `merge_time`, which see; `-inf` when `until = distance`."""
    share = _check_pair(beta, distance, masses)
    if not 0 < until <= distance:
        raise InputError(f"The distance falls from `distance` to `until`, which it never quite reaches at 0.\n  distance = {distance!r}, until = {until!r}")
    if until == distance:
        return -np.inf
    start, end = _log_tangent(distance), _log_tangent(until)
    # close to the start the closed form is the difference of two nearly equal numbers, and the quadrature is not
    if share != 0.5 or beta == 0 or start - end < 0.1 / (1 + beta):
        return _log_duration(beta, start, start - end, share)
    s, s_end = _half_versine(start), _half_versine(end)
    difference = _ei_part(beta, start) - np.exp(-beta * (s - s_end)) * _ei_part(beta, end) + np.exp(-beta * s) * (start - end)
    return float(beta * s + np.log(difference / 4))


def two_atom_gap(beta: float, distance: float, t: float, *, masses: Sequence[float] = (0.5, 0.5)) -> float:
    r"""The distance at time `t` of two atoms that start at `distance` on a great circle, under V = A = I; the inverse of `merge_time`.

    Parameters
    ----------
    beta : float
        Finite, at least 0.
    distance : float
        Radians, in (0, pi).
    t : float
        At least 0.
    masses : pair of floats
        Positive, of sum 1.

    Returns
    -------
    float
        Radians. The time is right to about 1e-13 relative; the distance inherits the sensitivity of the merging, `e^{beta s_0}`.

    Raises
    ------
    InputError
        For values out of range.

    Examples
    --------
    >>> gap = two_atom_gap(3.0, np.arccos(1 - 1.3), 2.5)
    >>> round(1 - float(np.cos(gap)), 9)
    1.191470247
    """
    share = _check_pair(beta, distance, masses)
    if not (np.isfinite(t) and t >= 0):
        raise InputError(f"A distance is asked for at a finite time >= 0.\n  t = {t!r}")
    if t == 0:
        return float(distance)
    start = _log_tangent(distance)

    def lateness(log_fall: float) -> float:
        return _log_duration(beta, start, float(np.exp(log_fall)), share) - float(np.log(t))

    # 2 log tan(D/2) falls at a rate between its first one and 2
    fastest = float(np.log(2 * t))
    slowest = max(fastest - _log_slowness(beta, _half_versine(start), share) - 1e-9, -600.0)
    if lateness(slowest) >= 0:
        return float(distance)
    log_fall = brentq(lateness, slowest, fastest + 1e-9, xtol=1e-15, rtol=8.9e-16)
    return float(2 * np.arctan(np.exp((start - np.exp(log_fall)) / 2)))


def _check_pair(beta: float, distance: float, masses: Sequence[float]) -> float:
    """The mass of the first atom."""
    if not 0 <= beta < np.inf:
        raise InputError(f"Two atoms approach each other at a finite beta >= 0.\n  beta = {beta!r}\n  At beta = inf they stand still.")
    if not 0 < distance < np.pi:
        raise InputError(f"The distance of two atoms that approach each other lies strictly between 0 and pi.\n  distance = {distance!r}")
    pair = np.asarray(masses, dtype=float)
    if pair.shape != (2,) or not (pair > 0).all() or abs(pair.sum() - 1) > 1e-9:
        raise InputError(f"Two atoms have two positive masses of sum 1.\n  masses = {masses!r}")
    return float(pair[0])


def _log_tangent(distance: float) -> float:
    """`y = 2 log tan(D/2) = log(s / (2 - s))`; it falls from inf to -inf as the atoms merge, `dy/dt = -2 (m_2/(m_2 + m_1 g) + m_1/(m_1 + m_2 g))`."""
    return float(2 * np.log(np.tan(distance / 2)))


def _half_versine(y: float) -> float:
    """`s = 1 - cos D`, in (0, 2), of `y = log(s / (2 - s))`."""
    return float(2 / (1 + np.exp(-y)))


def _ei_part(beta: float, y: float) -> float:
    """`e^{-beta s} (Ei(beta s) + e^{2 beta} E_1(beta (2 - s)))`."""
    return _scaled_ei(beta * _half_versine(y)) + _scaled_e1(beta * _half_versine(-y))


def _scaled_ei(x: float) -> float:
    """`e^{-x} Ei(x)`."""
    return _asymptotic(x, 1.0) if x > 50 else float(np.exp(-x) * expi(x))


def _scaled_e1(x: float) -> float:
    """`e^x E_1(x)`."""
    return _asymptotic(x, -1.0) if x > 50 else float(np.exp(x) * exp1(x))


def _asymptotic(x: float, sign: float) -> float:
    """`sum_j (sign)^j j! / x^{j+1}`, cut at its smallest term, e^{-50} or less."""
    term = total = 1 / x
    for j in range(1, 50):
        term *= sign * j / x
        total += term
    return total


def _log_slowness(beta: float, s: Any, share: float) -> Any:
    """`log h` with `h = -2 / (dy/dt) = e^{beta s} (p (1 + w^2) + q w) / (q + 2 p w)`, p = m_1 m_2, q = m_1^2 + m_2^2, w = e^{-beta s}; 0 at s = 0."""
    p, q = share * (1 - share), share**2 + (1 - share) ** 2
    w = np.exp(-beta * s)
    return beta * s + np.log((p * (1 + w**2) + q * w) / (q + 2 * p * w))


def _log_duration(beta: float, start: float, fall: float, share: float) -> float:
    r"""log of the time in which `y = 2 log tan(D/2)` falls from `start` by `fall`, `t = int_0^fall h du / 2`.

    Panels in which y varies by at most 1/2 and beta s by at most 1, in all places that count: h has its poles at a distance of pi / beta,
    and from beta s = 750 below the start it is zero to double precision, relatively. Where beta s is below round-off, h = 1.
    """
    s_start = _half_versine(start)
    near = min(fall, max(start - np.log(1e-17 / (1 + beta)), 0.0))
    lattice = np.arange(0.0, near, 0.5)
    if beta > 0:
        s = s_start - np.arange(1, min(750, int(beta * s_start)) + 1) / beta
        s = s[s > 0]
        lattice = np.concatenate([lattice, start - np.log(s / (2 - s))])
    u = np.concatenate([np.unique(lattice[(lattice >= 0) & (lattice < near)]), [near]])
    x, weight = np.polynomial.legendre.leggauss(20)
    half = np.diff(u)[:, None] / 2
    s = 2 / (1 + np.exp(u[:-1, None] + half * (1 + x) - start))
    log_first = _log_slowness(beta, s_start, share)
    scaled = np.sum(half * weight * np.exp(_log_slowness(beta, s, share) - log_first)) + (fall - near) * np.exp(-log_first)
    return float(log_first + np.log(scaled / 2))


# ---- von Mises laws ------------------------------------------------------------------------------------------------------------------


def von_mises_attention(attention: Attention, kappa: Any, angle: Any, points: Any, *, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    r"""`(log Z, m)` of a von Mises law, or of a mixture of them, seen from any points of the circle.

    A von Mises law is an exponential family, so attention only tilts it: with `w = beta A x + kappa e`, e the unit vector of `angle`, and `R = |w|`

        Z(x) = I_0(R) / I_0(kappa),     m(x) = (I_1(R) / I_0(R)) w / R

    Parameters
    ----------
    attention : Attention
        In R^2, any Q, K, V; `beta` finite.
    kappa, angle : float or array_like, shape (c,)
        Concentrations >= 0 and centres in radians.
    points : array_like, shape (n, 2)
    weights : array_like, shape (c,), optional
        Masses of a mixture, equal when not given; divided by their sum.

    Returns
    -------
    log_z : ndarray, shape (n,)
    mean : ndarray, shape (n, 2)

    Raises
    ------
    InputError
        For another dimension, `beta = inf`, or bad parameters.

    Notes
    -----
    Never overflows. Source: Mardia and Jupp, Directional Statistics (2000), section 3.5.4; docs/theory.

    Examples
    --------
    >>> import mfpde as mf
    >>> log_z, mean = von_mises_attention(mf.Attention.identity(2, beta=3.0), 2.0, 0.0, mf.Circle().points([0.9]))
    >>> velocity = mf.Circle().project(mf.Circle().points([0.9]), mean)
    >>> float(np.hypot(*velocity[0]).round(12))
    0.305146104237
    """
    kappas, angles = (a.ravel() for a in np.broadcast_arrays(np.asarray(kappa, dtype=float), np.asarray(angle, dtype=float)))
    if not (np.isfinite(kappas).all() and (kappas >= 0).all() and np.isfinite(angles).all()):
        raise InputError(f"kappa is finite and >= 0, angle is finite.\n  kappa = {kappa!r}, angle = {angle!r}")
    if attention.dim != 2 or attention.beta == np.inf:
        raise InputError(f"von Mises laws live on the circle, and beta is finite here.\n  attention = {attention!r}")
    masses = check_weights(np.ones(len(kappas)) if weights is None else weights, len(kappas))
    x = Circle().check_points(points)
    pull = attention.beta * (x @ attention.A.T)  # (n, 2)
    axis = Circle().points(angles)
    tilt = pull[:, None, :] + kappas[:, None] * axis  # (n, c, 2)
    R = np.hypot(tilt[..., 0], tilt[..., 1])
    # R - kappa = (R^2 - kappa^2) / (R + kappa), without the cancellation
    both = R + kappas
    risen = (np.sum(pull**2, axis=1)[:, None] + 2 * kappas * (pull @ axis.T)) / np.where(both > 0, both, 1.0)
    scaled_zero, ratio = _bessel(R)
    log_each = risen + np.log(scaled_zero) - np.log(_bessel(kappas)[0])
    log_share = log_each + np.log(masses / masses.sum(), out=np.full(len(masses), -np.inf), where=masses > 0)
    log_z = np.logaddexp.reduce(log_share, axis=1)
    each = ratio[..., None] * tilt
    return log_z, np.sum(np.exp(log_share - log_z[:, None])[..., None] * each, axis=1)


def _bessel(R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`e^{-R} I_0(R)` and `I_1(R) / (R I_0(R))`, which is 1/2 at 0."""
    large, safe = R > LARGEST_BESSEL, np.where(R > LARGEST_BESSEL, 1.0, R)
    far = np.where(large, R, 1.0)
    zero = np.where(large, (1 + 0.125 / far) / np.sqrt(TWO_PI * far), ive(0, safe))
    small = safe < 1e-8
    ratio = np.where(small, 0.5, ive(1, safe) / (ive(0, safe) * np.where(small, 1.0, safe)))
    return zero, np.where(large, (1 - 0.5 / far) / far, ratio)
