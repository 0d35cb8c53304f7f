r"""The exact flow of the zero-temperature equation, and its density.

With full support the velocity is `v(x) = P_x M x / |Ax|`, M = VA, whatever the law is. In the parameter `ds = dt/|A x(t)|` the flow is linear:

    x(s) = e^{sM} x_0 / |e^{sM} x_0|,     t = int_0^s |A x(s')| ds'
    rho_t(x) = rho_0(y) |e^{-s M_0} x|^{-d} |Ax| / |Ay|,     y = e^{-sM} x / |e^{-sM} x|,     M_0 = M - (tr M / d) I

(derived in docs/theory, section 2). M and M_0 give the same flow; M_0 has determinant-one exponentials, which removes a cancellation.
`A` a multiple of an orthogonal matrix: s = t/c. Otherwise each point has a clock of its own, solved in panels of s that halve and double per point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import expm

from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Circle
from mfpde.initial import Atoms, CircleLaw
from mfpde.limits import average_over_rotation
from mfpde.measure import Measure
from mfpde.methods.base import State
from mfpde.methods.two_quadratures import invariant_cut, two_quadratures
from mfpde.model import Attention, Problem
from mfpde.stages import Stages

EPS = float(np.finfo(float).eps)
PANEL_NODES = 20
PANEL_ERROR = 3e-14  # what interpolation in a panel may leave of a unit vector; round-off alone is about 2e-15
LARGEST_LEVEL = 20  # panels of at most 2^20 / |M|: longer ones would lose e^{hM} to its own squarings
MOST_PANELS = 100_000
KERNEL = 1e-14  # |Ax| <= KERNEL |A|: the direction of Ax is round-off


class Journey(NamedTuple):
    """Where the points are after the given time, and what happened on the way."""

    points: np.ndarray  # (n, d)
    log_stretch: np.ndarray  # (n,) log |e^{s M_0} x|
    left: np.ndarray  # (n,) time not used up because the point ran into the kernel of A; 0 for all others


class Panel(NamedTuple):
    """`h`, and `e^{c_j h (G - shift)}` at the Gauss nodes c_j and at c = 1; shape (PANEL_NODES + 1, d, d)."""

    h: float
    exponentials: np.ndarray
    log_factors: np.ndarray  # c_j h shift


@cache
def _gauss() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(nodes on [0,1], weights, values -> Legendre coefficients (q,q), functionals (6,q))`.

    Functionals of the values at the nodes: the last two Legendre coefficients, the interpolant at both ends, and the two middle coefficients.
    """
    x, w = legendre.leggauss(PANEL_NODES)
    coefficients = np.linalg.inv(legendre.legvander(x, PANEL_NODES - 1))  # forgives the last digits of x and w, as the weighted sums would not
    ends = legendre.legvander(np.array([-1.0, 1.0]), PANEL_NODES - 1) @ coefficients
    middle = PANEL_NODES // 2
    return (x + 1) / 2, w / 2, coefficients, np.concatenate([coefficients[-2:], ends, coefficients[middle : middle + 2]])


def flow(attention: Attention, points: Any, time: float) -> np.ndarray:
    r"""The zero-temperature flow from full support, `d/dt x = P_x VA x / |Ax|`.

    Parameters
    ----------
    attention : Attention
        `beta` plays no role. Any dimension.
    points : array_like, shape (n, d)
        Unit vectors.
    time : float
        Negative times run backwards.

    Returns
    -------
    ndarray, shape (n, d)
        Exact to about 1e-13 times the growth of the flow; where A is ill conditioned a clock is off by eps |A|/|Ay| of its time.
        Cost: one matrix exponential if A is a multiple of an orthogonal matrix; otherwise about one panel of 20 products a point
        for each e-folding of the gap until it has settled; for d > 2 and complex eigenvalues a few panels a turn.

    Raises
    ------
    InputError
        If A is singular and a point lies in its kernel (where the score is flat and the equation is another one) or reaches it in this time.
    NumericalError
        If for d > 2 complex eigenvalues turn more than about 1e4 times.

    Examples
    --------
    `V = diag(2, 1)`, `A = I`: the tangent of the angle falls like e^{-t}.

    >>> import mfpde as mf
    >>> from mfpde.methods.zero_temperature import flow
    >>> attention = mf.Attention(Q=[[1, 0], [0, 1]], K=[[1, 0], [0, 1]], V=[[2, 0], [0, 1]], beta=float("inf"))
    >>> x = flow(attention, [[0.6, 0.8]], time=1.0)
    >>> float((x[0, 1] / x[0, 0] * 0.75 * 2.718281828459045).round(12))
    1.0
    """
    x = _unit_vectors(attention, points)
    journey = _travel(attention, x, time)
    if journey.left.any():
        first = int(np.argmax(journey.left != 0))
        raise InputError(
            f"A is singular and point {first} runs into its kernel: the zero-temperature flow ends there.\n"
            f"  point = {x[first].tolist()}, reached at time {time - journey.left[first]:.6g} of {time:g}.\n  Ask for shorter times, or give an invertible A."
        )
    return journey.points


def density(problem: Problem, time: float, points: Any) -> np.ndarray:
    r"""The exact density at `time` of the zero-temperature equation, by tracing back each point.

    `rho_t(x) = rho_0(y) |e^{-s M_0} x|^{-d} |Ax|/|Ay|`, where y reaches x in this time.
    A vacuum that opens at a repelling kernel of a singular A has density 0.

    Parameters
    ----------
    problem : Problem
        Its initial law has a density; its `beta` plays no role.
    time : float
        At least 0.
    points : array_like, shape (n, d)
        Unit vectors.

    Returns
    -------
    ndarray, shape (n,)
        Per arc length or area, as `initial.density`. The relative error is about 1e-13 plus the conditioning `eps |dy/dx|` of `rho_0(y)` at an attractor.

    Raises
    ------
    InputError
        For atoms, negative times, and points in the kernel of A.

    Examples
    --------
    >>> import mfpde as mf
    >>> from mfpde.methods.zero_temperature import density
    >>> attention = mf.Attention(Q=[[1, 0], [0, 1]], K=[[1, 0], [0, 1]], V=[[2, 0], [0, 1]], beta=float("inf"))
    >>> problem = mf.Problem(attention, mf.Circle(), mf.initial.uniform(mf.Circle()), t_end=1.0)
    >>> density(problem, 1.0, [[1, 0], [0, 1]]).round(6)  # e^{+-1} / 2 pi
    array([0.432628, 0.05855 ])
    """
    if not time >= 0:
        raise InputError(f"A density is asked for at a time >= 0.\n  time = {time!r}")
    attention = problem.attention
    x = _unit_vectors(attention, points)
    journey = _travel(attention, x, -time)
    arrived = journey.left == 0
    y = journey.points[arrived]
    speed = _norm(x[arrived] @ attention.A.T) / _norm(y @ attention.A.T)  # |Ax| / |Ay|
    rho = np.zeros(len(x))
    rho[arrived] = problem.initial.density(y) * np.exp(-attention.dim * journey.log_stretch[arrived]) * speed
    return rho


@dataclass(frozen=True)
class ZeroTemperature:
    """The exact zero-temperature flow of a problem's initial law; for a finite `beta`, the limit `beta -> inf` of the problem.

    The full-support equation is used whatever the law is: for a law with holes or atoms it is not the limit of the problem.

    Parameters
    ----------
    nodes : int
        Number of atoms that represent the law at each output time: on the circle midpoints of arcs with exact masses, chosen anew
        for that time (an error of about 1/nodes in W1, relative to W1 itself while it is larger than 1e-4); elsewhere two quadratures,
        one that starts and one that ends on nodes. An atomic law is taken as it is.

    Examples
    --------
    >>> import mfpde as mf
    >>> attention = mf.Attention(Q=[[1, 0], [0, 1]], K=[[1, 0], [0, 1]], V=[[2, 0], [0, 1]], beta=100)
    >>> problem = mf.Problem(attention, mf.Circle(), mf.initial.uniform(mf.Circle()), t_end=3.0)
    >>> scheme = mf.ZeroTemperature(nodes=1000).prepare(problem)
    >>> start = scheme.initial()
    >>> law = scheme.measure(start, scheme.advance(start), 2.0)
    >>> float((law.weights @ (2 * law.points[:, 0] ** 2 - 1)).round(4))  # E cos 2 theta = tanh(g t / 2)
    0.7616
    """

    nodes: int = 4096

    def __post_init__(self) -> None:
        if not (isinstance(self.nodes, (int, np.integer)) and self.nodes >= 1):
            raise InputError(f"nodes must be a whole number >= 1.\n  nodes = {self.nodes!r}")

    def prepare(self, problem: Problem) -> ExactFlow:
        """The flow of one problem, as a scheme."""
        return ExactFlow(problem, int(self.nodes))


class ExactFlow:
    """A zero-temperature problem ready to run: its "step" is the whole way, since every time is exact, and its state is the time alone."""

    def __init__(self, problem: Problem, nodes: int) -> None:
        self.problem, self.nodes = problem, nodes
        self._flows, self._stages = 0, Stages()

    def initial(self) -> State:
        return State(0.0, np.inf, {})

    def advance(self, state: State) -> State:
        horizon = self.problem.t_end  # to the final time at once, and from there as far again
        return State(horizon if state.time < horizon else state.time + max(horizon, 1.0), np.inf, {})

    def measure(self, before: State, after: State, time: float) -> Measure:
        """Atoms pushed forward; the exact masses of about `nodes` arcs of the circle, at their midpoints; two quadratures on other geometries."""
        law = self.problem.initial
        if isinstance(law, CircleLaw):
            return self._arcs(law, time)
        if isinstance(law, Atoms):
            return Measure(self._flow(law.measure.points, time), law.measure.weights)
        cut = invariant_cut(self.problem.attention)
        return two_quadratures(law, self.nodes, lambda x: self._flow(x, time), lambda x: self.density(time, x), cut=cut)

    def _arcs(self, law: CircleLaw, time: float) -> Measure:
        """Arcs of the initial law with exact masses, each carried along at its middle.

        Half of them begin at quantiles and go where the mass goes; the others are those that *end* as equal arcs, and see what is stretched thin.
        """
        circle, count = Circle(), len(self._quantiles)
        ends = self._flow(circle.points(2 * np.pi * np.arange(count) / count), -time)
        begins = np.sort(np.concatenate([self._quantiles, circle.angles(ends)]))
        widths = np.diff(begins, append=begins[0] + 2 * np.pi)
        F = law.cumulative(begins)
        masses = np.maximum(np.diff(F, append=F[0] + 1), 0.0)  # F is monotone up to round-off
        return Measure(self._flow(circle.points(begins + widths / 2), time), masses)

    @cached_property
    def _quantiles(self) -> np.ndarray:
        """The angles where half of the arcs begin, quantiles of half the law and half the uniform law."""
        law, count = self.problem.initial, max(self.nodes // 2, 2)
        assert isinstance(law, CircleLaw)
        return law.cumulative.inverse(np.arange(count) / count, uniform_share=0.5)

    def density(self, time: float, points: Any) -> np.ndarray:
        """The exact density at `time`; see `density`."""
        return density(self.problem, time, points)

    def statistics(self) -> dict[str, Any]:
        """Flow evaluations and the seconds they took."""
        return {"flows": self._flows, "seconds in flow": self._stages.seconds.get("flow", 0.0)}

    def _flow(self, points: np.ndarray, time: float) -> np.ndarray:
        self._flows += 1
        with self._stages("flow"):
            return flow(self.problem.attention, points, time)


def _norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("...k,...k->...", x, x))


def _unit_vectors(attention: Attention, points: Any) -> np.ndarray:
    x = np.atleast_2d(np.asarray(points, dtype=np.float64))
    if x.ndim != 2 or x.shape[1] != attention.dim:
        raise InputError(f"points must have shape (n, {attention.dim}).\n  points has shape {np.shape(points)}.")
    off = ~(np.abs(_norm(x) - 1) <= 1e-9)
    if off.any():
        first = int(np.argmax(off))
        raise InputError(f"Point {first} is not a unit vector.\n  point = {x[first].tolist()}\n  Normalise the points first, e.g. geometry.retract(points).")
    return x


def _travel(attention: Attention, x: np.ndarray, time: float) -> Journey:
    """Carry unit vectors x (n, d) for `time`, either sign."""
    if not np.isfinite(time):
        raise InputError(f"time must be a finite number.\n  time = {time!r}")
    A, M, d = attention.A, attention.drift, attention.dim
    G = np.sign(time) * (M - np.trace(M) / d * np.eye(d))  # generator in s for the direction of time asked for
    size = float(np.linalg.norm(G, 2))
    still = size <= 4 * EPS * float(np.linalg.norm(M, 2))
    if time == 0 or still or not len(x):
        return Journey(x.copy(), np.zeros(len(x)), np.zeros(len(x)))
    singular_values = np.linalg.svd(A, compute_uv=False)
    in_kernel = ~(_norm(x @ A.T) > KERNEL * singular_values[0])
    if in_kernel.any():
        first = int(np.argmax(in_kernel))
        raise InputError(
            f"Point {first} lies in the kernel of A: it scores all tokens alike, and the zero-temperature velocity P_x VA x/|Ax| is not defined.\n"
            f"  point = {x[first].tolist()}\n  Leave it out, move it, or give an invertible A."
        )
    if singular_values[0] - singular_values[-1] <= 8 * d * EPS * singular_values[0]:
        points, log_stretch = _straight(G, size, x, abs(time) / float(singular_values.mean()))
        return Journey(points, log_stretch, np.zeros(len(x)))
    x, rest = _without_whole_turns(A, G, x, abs(time)) if d == 2 else (x, abs(time))
    return _clocked(A, G, size, x, rest, float(singular_values[0]), np.sign(time))


def _without_whole_turns(A: np.ndarray, G: np.ndarray, x: np.ndarray, time: float) -> tuple[np.ndarray, float]:
    """On the circle with complex eigenvalues +- i omega, `e^{sG} = -I` at s = pi/omega: half a turn takes every point the same time."""
    determinant = float(np.linalg.det(G))  # omega^2, as G has trace 0
    if determinant <= 1e-8 * float(np.linalg.norm(G, 2)) ** 2:  # real, or so nearly defective that the turns are slow
        return x, time
    omega = np.sqrt(determinant)
    if time * omega < 4 * np.pi * float(np.linalg.norm(A, 2)):  # too short to be worth it
        return x, time
    e1 = np.array([1.0, 0.0])
    half_turn = np.pi / omega * average_over_rotation(A, e1, -G @ e1 / omega)  # e^{sG} e1 = cos(omega s) e1 + sin(omega s) G e1 / omega
    halves = np.floor(time / half_turn)
    return x * (-1.0) ** halves, time - halves * half_turn


def _straight(G: np.ndarray, size: float, x: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
    """`(e^{sG} x / |.|, log |e^{sG} x|)`, in pieces that cannot overflow."""
    pieces = int(np.ceil(s * size / 200))
    E = expm(s / pieces * G)
    y, log_stretch = x, np.zeros(len(x))
    for done in range(min(pieces, MOST_PANELS)):
        before, y = y, y @ E.T
        length = _norm(y)
        y = y / length[:, None]
        if np.array_equal(y, before):  # settled for good: only the stretch goes on
            return y, log_stretch + (pieces - done) * np.log(length)
        log_stretch += np.log(length)
    if pieces > MOST_PANELS:
        raise _too_long(s, size)
    return y, log_stretch


def _clocked(A: np.ndarray, G: np.ndarray, size: float, x: np.ndarray, time: float, norm: float, direction: float) -> Journey:
    """`e^{sG} x / |.|` with `int_0^s |A y| ds' = time` for each point.

    In a panel of length h, y is known at the Gauss nodes through fixed exponentials e^{c_j h G}; y and |Ay| are analytic in s, and a panel is
    accepted when their interpolants are exact to round-off: last Legendre coefficients, and both ends against the true values. The time of a whole panel is
    then Gauss's rule, and the end point the exact product e^{hG} y; only in its last panel is a point interpolated.
    """
    nodes, weights, coefficients, functionals = _gauss()
    shift = float(np.linalg.eigvals(G).real.max())  # keeps e^{h (G - shift)} in range however long the panel
    c = np.append(nodes, 1.0)

    @cache
    def panel(level: int) -> Panel:
        h = 2.0**level / size
        if level > 0:
            half = panel(level - 1).exponentials
            exponentials = half @ half
        else:
            exponentials = _small_exponentials(c[:, None, None] * h * (G - shift * np.eye(len(G))))
        return Panel(h, exponentials, c * h * shift)

    n = len(x)
    y, left = x.copy(), np.full(n, float(time))
    log_stretch, level = np.zeros(n), np.zeros(n, dtype=int)
    active = np.arange(n)
    for _ in range(MOST_PANELS):
        for k in np.unique(level[active]):
            rows = active[level[active] == k]
            h, exponentials, log_factors = panel(int(k))
            Y = y[rows] @ exponentials.transpose(0, 2, 1)  # (q + 1, r, d)
            length = _norm(Y)
            alive = length.min(axis=0) > 1e-280  # a point on a repeller shrinks without bound: take shorter panels there
            length = np.where(alive, length, 1.0)
            Y /= length[:, :, None]
            growth = np.log(length) + log_factors[:, None]
            speed = _norm(Y @ A.T)
            start_speed = _norm(y[rows] @ A.T)
            good, easy = _resolved(functionals, Y, y[rows], speed, start_speed, norm)
            good &= alive
            level[rows[~good]] -= 1
            elapsed = h * (weights @ speed[:-1])
            ends = good & (elapsed >= left[rows])
            goes_on = good & ~ends
            if ends.any():
                last = rows[ends]
                y[last], stretch = _stop(coefficients, Y[:-1, ends], speed[:-1, ends] * h, growth[:-1, ends], left[last])
                log_stretch[last] += stretch
                left[last] = 0.0
            # settled for good: not one component has moved while perturbations grew or fell by e^64 or so; only the stretch goes on
            settled = goes_on & (k >= 6) & (np.abs(Y[-1] - y[rows]) <= 4 * EPS * np.abs(y[rows])).all(axis=1)
            rest = rows[settled]
            log_stretch[rest] += growth[-1, settled] * (left[rest] / elapsed[settled])
            left[rest] = 0.0
            goes_on &= ~settled
            on = rows[goes_on]
            y[on] = Y[-1, goes_on]
            log_stretch[on] += growth[-1, goes_on]
            left[on] -= elapsed[goes_on]
            level[on] += (easy & (level[rows] < LARGEST_LEVEL))[goes_on]
            level[on[speed[-1, goes_on] <= KERNEL * norm]] = LARGEST_LEVEL + 1  # ran into the kernel of A: the clock stands still
        active = active[(left[active] > 0) & (level[active] <= LARGEST_LEVEL)]
        if not len(active):
            return Journey(y, log_stretch, direction * left)
    raise _too_long(time / norm, size)


def _small_exponentials(X: np.ndarray) -> np.ndarray:
    """Taylor series of e^X for a stack of matrices of norm at most 2: the thirtieth term is below 1e-23."""
    term = np.broadcast_to(np.eye(X.shape[-1]), X.shape)
    total = term.copy()
    for j in range(1, 31):
        term = term @ X / j
        total += term
    return total


def _resolved(functionals: np.ndarray, Y: np.ndarray, y: np.ndarray, speed: np.ndarray, start_speed: np.ndarray, norm: float) -> tuple[np.ndarray, np.ndarray]:
    """Which points the panel resolves, and for which of them twice the panel is worth trying; shapes (r,), (r,)."""
    tests = np.tensordot(functionals, Y[:-1], axes=1)  # (6, r, d)
    tests[2] -= y
    tests[3] -= Y[-1]
    clock_tests = functionals @ speed[:-1]  # (6, r)
    clock_tests[2] -= start_speed
    clock_tests[3] -= speed[-1]
    error = np.abs(tests).max(axis=2)
    scale = speed.max(axis=0)
    clock_error = np.abs(clock_tests)
    floor = 64 * EPS * norm  # |Ay| is known to a few eps |A|, however small it is, and extrapolation to the ends multiplies that by 8
    allowed = PANEL_ERROR * scale + floor
    # twice the panel halves the exponent of decay: worth trying when degree q/2 is at 1e-10, so that degree q comes out near 1e-14
    good = (error[:4].max(axis=0) <= PANEL_ERROR) & (clock_error[:4].max(axis=0) <= allowed)
    easy = (error[4:].max(axis=0) <= 1e-10) & (clock_error[4:].max(axis=0) <= 1e-10 * scale + floor)
    return good, easy


def _stop(coefficients: np.ndarray, Y: np.ndarray, speed: np.ndarray, growth: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(y, log stretch)` inside a panel, at the place u in [0, 1] where `int_0^u speed = time`, by safeguarded Newton steps."""
    q = len(coefficients)
    rate = coefficients @ speed  # (q, r) Legendre coefficients in z = 2u - 1
    integral = legendre.legint(rate, lbnd=-1) / 2  # (q + 1, r)
    low, high = np.zeros(len(time)), np.ones(len(time))
    u = np.clip(time / (integral.sum(axis=0)), 0, 1)
    for _ in range(60):
        basis = legendre.legvander(2 * u - 1, q)  # (r, q + 1)
        excess = np.einsum("rk,kr->r", basis, integral) - time
        low, high = np.where(excess < 0, u, low), np.where(excess < 0, high, u)
        newton = u - excess / np.einsum("rk,kr->r", basis[:, :-1], rate)
        better = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        step, u = np.abs(better - u), better
        if step.max(initial=0.0) <= 2 * EPS:
            break
    basis = legendre.legvander(2 * u - 1, q - 1)
    y = np.einsum("rk,krd->rd", basis, np.tensordot(coefficients, Y, axes=1))
    stretch = np.einsum("rk,kr->r", basis, coefficients @ growth)
    return y / _norm(y)[:, None], stretch


def _too_long(s: float, size: float) -> NumericalError:
    return NumericalError(
        f"The zero-temperature flow needs more than {MOST_PANELS} panels.\n  |M| s is at least {s * size:.3g} here.\n"
        "  Ask for a shorter time (a rotation needs a few panels a turn), or move A away from a singular matrix (the clocks then have kinks)."
    )
