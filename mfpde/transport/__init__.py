r"""Wasserstein distances, the currency in which methods are compared.

On the circle both distances are the minimum of a convex function of one number, the mass `alpha` that flows through the cut at angle 0:

    W_1   = min_alpha int_0^{2 pi} |F(theta) - G(theta) - alpha| dtheta
    W_2^2 = min_alpha int_0^1 (F^{-1}(s + alpha) - G^{-1}(s))^2 ds            with lifted quantiles, F^{-1}(s + 1) = F^{-1}(s) + 2 pi

(Cabrelli and Molter, J. Comput. Appl. Math. 57 (1995); Delon, Salomon and Sobolevski, SIAM J. Appl. Math. 70 (2010);
Rabin, Delon and Gousseau, J. Math. Imaging Vision 41 (2011)). The graph of a distribution function, its jumps filled in, is a monotone
polyline in the (angle, level) plane for atoms and for piecewise constant densities alike; the quantile function is the same polyline read along
the other axis. So every pair of measures takes the same two walks, along the angle for W_1 and along the level for W_2, and both are exact up to round-off.

Two precautions make tiny distances right. An angle is a number of quarter turns plus an offset from that axis, so that differences near an axis lose nothing.
Levels are sums of two doubles: W_2 moves like the square root of a misplaced mass, and round-off of 1e-16 in a level would cost 1e-8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from mfpde.attention.direct import two_product, two_sum
from mfpde.compiled import compiled
from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Circle, Geometry, Sphere
from mfpde.measure import Measure

QUARTER = np.pi / 2
TIE = 2.0**-96  # levels closer than this are one level, whose round-off is a few 2^-104: masses below 1.3e-29 do not count in W_2
PRECISION = 2.0**-50  # relative gap between the cost found and the proven lower bound


def wasserstein(a: Measure, b: Measure, geometry: Geometry, p: int = 2) -> float:
    r"""The Wasserstein distance `W_p(a, b) = (inf_pi int d(x, y)^p dpi)^{1/p}` with the geodesic distance d, in radians.

    On the circle a measure with a mesh is a density that is constant on every cell; one without is a sum of atoms. All combinations are exact up
    to round-off. On the sphere cells are atoms at their centres, and measures too large for a linear program are coarsened: see
    `mfpde.transport.sphere`, which also states the error. Both measures are divided by their mass, which `Measure` holds within 1e-9 of 1.

    Parameters
    ----------
    a, b : Measure
        With n and m points or cells, in any order; weights may be zero.
    geometry : Geometry
        `Circle()` or `Sphere()`.
    p : 1 or 2

    Returns
    -------
    float
        The distance itself (root taken), between 0 and pi.

    Raises
    ------
    InputError
        If p is neither 1 nor 2, the geometry is not supported, or the measures do not live on it.

    Notes
    -----
    On the circle cost O((n + m) log(n + m)) and a few dozen walks over both measures, about 20 ms for 10,000 points each, 0.3 s for 100,000.
    Source: see the head of the module.

    Examples
    --------
    >>> import mfpde as mf
    >>> circle = mf.Circle()
    >>> here, there = mf.Measure(circle.points([6.2]), [1.0]), mf.Measure(circle.points([0.1]), [1.0])
    >>> round(mf.wasserstein(here, there, circle), 12)                                  # across the seam: 0.1 + 2 pi - 6.2
    0.18318530718
    >>> mesh = circle.mesh(64)
    >>> uniform = mf.Measure(mesh.centres, mesh.volumes / (2 * np.pi), mesh)
    >>> round(mf.wasserstein(uniform, here, circle, p=1), 12) == round(np.pi / 2, 12)   # the mean distance to one point
    True
    """
    if p not in (1, 2):
        raise InputError(f"Only W_1 and W_2 are computed.\n  p = {p!r}\n  Choose p=1 or p=2.")
    distance = _distance_on(geometry)
    for name, measure in (("first", a), ("second", b)):
        _check_home(name, measure, geometry)
    return distance(a, b, int(p))


def table_wasserstein(a: Measure, b: Measure, geometry: Geometry, p: int) -> float:
    """`wasserstein` where hundreds of them are wanted: the same on the circle, to about 1 % between large measures on the sphere."""
    if not isinstance(geometry, Sphere):
        return wasserstein(a, b, geometry, p)
    from mfpde.transport.sphere import table_distance

    return table_distance(a, b, p)


def _distance_on(geometry: Geometry) -> Callable[[Measure, Measure, int], float]:
    """The computation for a geometry: the one place that knows which geometries there are."""
    if isinstance(geometry, Circle):
        return _circle_distance
    if isinstance(geometry, Sphere):
        from mfpde.transport.sphere import distance

        return distance
    raise InputError(f"Wasserstein distances are computed on the circle and on the sphere.\n  geometry = {geometry!r}\n  Give Circle() or Sphere().")


def _check_home(name: str, measure: Measure, geometry: Geometry) -> None:
    if not isinstance(measure, Measure):
        raise InputError(f"Wasserstein distances compare two measures.\n  The {name} one is a {type(measure).__name__}.\n  Wrap it: Measure(points, weights).")
    if measure.mesh is not None and measure.mesh.geometry != geometry:
        raise InputError(f"The {name} measure lives on a mesh of {measure.mesh.geometry!r}, not on {geometry!r}.\n  Give the geometry of the mesh.")
    geometry.check_points(measure.points)


def _circle_distance(a: Measure, b: Measure, p: int) -> float:
    walk = flow_cost if p == 1 else shift_cost
    return minimum(partial(walk, graph(a), graph(b))) ** (1 / p)


class Graph(NamedTuple):
    """The graph of a distribution function on [0, 2 pi] with its jumps filled in: a monotone polyline of M vertices.

    Vertex v lies at the angle `quarters[v] * pi/2 + offsets[v]` and the level `high[v] + low[v]`; the first at (0, 0), the last at (2 pi, 1).
    Horizontal pieces are arcs without mass, vertical ones atoms, the others cells.
    """

    quarters: np.ndarray
    offsets: np.ndarray
    high: np.ndarray
    low: np.ndarray


def graph(measure: Measure) -> Graph:
    """The `Graph` of a measure on the circle; a mesh gives N + 1 vertices, n atoms of positive weight 2n + 2.

    A measure that knows more than its points, such as one of moving cells, has `pieces() -> (edges (p + 1,), masses (p,))`: pieces of constant
    density from angle 0 to 2 pi, an atom being a piece of no length.
    """
    if hasattr(measure, "pieces"):
        edges, masses = measure.pieces()
        quarters = np.rint(edges / QUARTER).astype(np.int64)
        return Graph(quarters, edges - quarters * QUARTER, *levels(masses))
    if measure.mesh is not None:
        cells = len(measure)
        if not np.allclose(measure.mesh.volumes, 2 * np.pi / cells, rtol=1e-12):
            raise InputError("A mesh of the circle has equal arcs that start at angle 0.\n  Build it with Circle().mesh(cells).")
        faces = 4 * np.arange(cells + 1)
        quarters = (2 * faces + cells) // (2 * cells)  # whole numbers, so that faces shared by two meshes agree to the last bit
        return Graph(quarters, (faces - quarters * cells) / cells * QUARTER, *levels(measure.weights))
    carried = measure.weights > 0
    quarters, offsets = quarter_turns(measure.points[carried])
    order = np.lexsort((offsets, quarters))
    high, low = levels(measure.weights[carried][order])
    doubled = np.repeat(order, 2)
    return Graph(
        np.concatenate([[0], quarters[doubled], [4]]),
        np.concatenate([[0.0], offsets[doubled], [0.0]]),
        np.repeat(high, 2),
        np.repeat(low, 2),
    )


def quarter_turns(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles in [0, 2 pi) as `(quarters, offsets)`, `theta = quarters * pi/2 + offsets`, |offset| <= pi/4: small offsets keep all their digits."""
    x, y = points[:, 0], points[:, 1]
    flat = np.abs(x) >= np.abs(y)
    quarters = np.where(flat, np.where(x > 0, 0, 2), np.where(y > 0, 1, 3))
    offsets = np.select([quarters == 0, quarters == 1, quarters == 2], [np.arctan2(y, x), np.arctan2(-x, y), np.arctan2(-y, -x)], np.arctan2(x, -y))
    return np.where((quarters == 0) & (offsets < 0), 4, quarters), offsets + 0.0


@compiled(inline="always")
def plus(high, low, x):
    """`high + low + x` as an unevaluated sum of two doubles."""
    s, e = two_sum(high, x)
    return two_sum(s, e + low)


@compiled
def levels(weights):
    """Cumulative weights over their total, 0 first, as unevaluated sums of two doubles; shapes (n + 1,) and (n + 1,)."""
    n = weights.size
    high, low = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        high[i + 1], low[i + 1] = plus(high[i], low[i], weights[i])
    total, rest = high[n], low[n]
    for i in range(1, n):
        q = high[i] / total
        p, e = two_product(q, total)
        high[i], low[i] = two_sum(q, ((high[i] - p) - e + low[i] - q * rest) / total)
    high[n], low[n] = 1.0, 0.0
    return high, low


@compiled(inline="always")
def between(g, v, h, w):
    """Angle from vertex w of h to vertex v of g."""
    return (g.quarters[v] - h.quarters[w]) * QUARTER + (g.offsets[v] - h.offsets[w])


@compiled(inline="always")
def rise(g, v):
    """Level gained from vertex v to the next."""
    return (g.high[v + 1] - g.high[v]) + (g.low[v + 1] - g.low[v])


@compiled
def flow_cost(f, g, alpha, beta):
    """`(cost, left slope, right slope)` of `int |F - G - c| dtheta` at `c = alpha + beta`, two doubles.

    Walks along the angle. On every step F and G are affine, so |F - G - c| is integrated exactly.
    """
    i, j = 0, 0  # F is on the piece from vertex i, G on the one from vertex j, both at the larger of these two angles
    cost, spare, left, right = 0.0, 0.0, 0.0, 0.0
    while i < f.high.size - 1 and j < g.high.size - 1:  # both end at 2 pi
        ahead = between(f, i, g, j)
        order = between(f, i + 1, g, j + 1)  # negative: F meets its next vertex first
        if order <= 0.0:
            step = between(f, i + 1, f, i) if ahead >= 0.0 else between(f, i + 1, g, j)
        else:
            step = between(g, j + 1, f, i) if ahead >= 0.0 else between(g, j + 1, g, j)
        if step > 0.0:
            rise_f, rise_g = rise(f, i), rise(g, j)
            start_f = 0.0 if ahead >= 0.0 else rise_f * (-ahead / between(f, i + 1, f, i))
            start_g = 0.0 if ahead <= 0.0 else rise_g * (ahead / between(g, j + 1, g, j))
            end_f = rise_f if order <= 0.0 else rise_f * (between(g, j + 1, f, i) / between(f, i + 1, f, i))
            end_g = rise_g if order >= 0.0 else rise_g * (between(f, i + 1, g, j) / between(g, j + 1, g, j))
            s, e = two_sum(f.high[i], -g.high[j])
            s, r = two_sum(s, -alpha)
            rest = (f.low[i] - g.low[j]) + (e + r - beta)
            u, v = s + ((start_f - start_g) + rest), s + ((end_f - end_g) + rest)
            size_u, size_v = abs(u), abs(v)
            larger = max(size_u, size_v)
            if larger <= TIE:
                left -= step
                right += step
                area = step * 0.5 * (size_u + size_v)
            elif (u < 0.0) == (v < 0.0) or min(size_u, size_v) == 0.0:
                sign = step if u + v < 0.0 else -step
                left += sign
                right += sign
                area = step * 0.5 * (size_u + size_v)
            else:  # a change of sign inside
                ratio = min(size_u, size_v) / larger
                area = step * 0.5 * larger * (1.0 + ratio * ratio) / (1.0 + ratio)
                balance = step * (size_v - size_u) / (size_u + size_v)  # positive: longer on the side of v
                balance = balance if v < 0.0 else -balance
                left += balance
                right += balance
            cost, e = two_sum(cost, area)
            spare += e
        if order <= 0.0:
            i += 1
        if order >= 0.0:
            j += 1
    return cost + spare, left, right


@compiled(inline="always")
def climb(g, v, alpha, beta, high, low):
    """Level of vertex v of g, less `alpha + beta`, above the level `high + low`."""
    s, e = two_sum(g.high[v], -alpha)
    s, r = two_sum(s, -high)
    return s + ((g.low[v] - beta - low) + (e + r))


@compiled
def shift_cost(f, g, alpha, beta):
    """`(cost, left slope, right slope)` of `int_0^1 (F^{-1}(s + a) - G^{-1}(s))^2 ds` at `a = alpha + beta`, two doubles in [-1, 1].

    Walks along the level s. On every step both quantiles x, y are affine in s, or s stands still while one of them crosses an arc without mass;
    with d = x - y the cost grows by `ds (d_0^2 + d_0 d_1 + d_1^2)/3` and its slope by `int 2 d dx = (x_1 - x_0)(d_0 + d_1)`.
    Where both cross at one level the slope jumps by twice the product of the two arcs: a kink.
    """
    turn = math.floor(alpha)  # whole turns of F
    alpha, beta = plus(alpha, beta, -float(turn))
    if alpha < 0.0:  # a beta below 0
        turn -= 1
        alpha, beta = plus(alpha, beta, 1.0)
    last_f, last_g = f.high.size - 1, g.high.size - 1
    first = 0
    while first < last_f - 1 and climb(f, first + 1, alpha, beta, 0.0, 0.0) < 0.0:
        first += 1
    i, j, home = first, 0, False  # home: F has come round to the piece it started from
    level, sublevel = 0.0, 0.0
    piece_f, piece_g = rise(f, i), rise(g, j)
    into_f = 0.0 if piece_f <= 0.0 else between(f, i + 1, f, i) * (-climb(f, i, alpha, beta, 0.0, 0.0) / piece_f)
    into_g = 0.0
    cost, spare, slope, slack, above, below = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    crossed_f, crossed_g = 0.0, 0.0  # arcs without mass crossed at this level
    while j < last_g or not home:
        rest_f = climb(f, i + 1, alpha, beta, level, sublevel)
        rest_g = climb(g, j + 1, 0.0, 0.0, level, sublevel) if j < last_g else 0.0
        # compared with each other, not with the level: two rests that agree in a double may differ by a mass that counts
        moves_f = not home and (j == last_g or climb(f, i + 1, alpha, beta, g.high[j + 1], g.low[j + 1]) <= 0.0)
        step = max(rest_f if moves_f else rest_g, 0.0)
        here = (f.quarters[i] + 4 * turn - g.quarters[j]) * QUARTER + (f.offsets[i] - g.offsets[j])
        d0 = here + (into_f - into_g)
        end_f, end_g = into_f, into_g
        if moves_f:
            end_f = between(f, i + 1, f, i)
            if step > 0.0 and piece_g > 0.0:
                end_g = between(g, j + 1, g, j) * (1.0 - (rest_g - step) / piece_g)
        else:
            end_g = between(g, j + 1, g, j)
            if step > 0.0 and piece_f > 0.0:
                end_f = between(f, i + 1, f, i) * (1.0 - (rest_f - step) / piece_f)
        d1 = here + (end_f - end_g)
        slope, e = two_sum(slope, (end_f - into_f) * (d0 + d1))
        slack += e
        if step > TIE:
            cost, e = two_sum(cost, step * (d0 * d0 + d0 * d1 + d1 * d1) / 3.0)
            spare += e
            crossed_f, crossed_g = 0.0, 0.0
        else:
            above += 2.0 * (end_f - into_f) * crossed_g
            below += 2.0 * (end_g - into_g) * crossed_f
            crossed_f += end_f - into_f
            crossed_g += end_g - into_g
        into_f, into_g = end_f, end_g
        if moves_f:
            i, into_f = i + 1, 0.0
            level, sublevel = plus(f.high[i], f.low[i] - beta, -alpha)
            if i == last_f:
                i, turn = 0, turn + 1
                alpha, beta = plus(alpha, beta, -1.0)
            home = i == first
            piece_f = rise(f, i)
        else:
            j, into_g = j + 1, 0.0
            level, sublevel = g.high[j], g.low[j]
            piece_g = rise(g, j) if j < last_g else 0.0
    return cost + spare, slope + slack - below, slope + slack + above


def minimum(cost: Callable[[float, float], tuple[float, float, float]]) -> float:
    """Minimum over [-1, 1] of a convex function that returns `(value, left slope, right slope)` at the sum of two doubles.

    Kelley's cutting planes in one dimension (exact for a kink) and the secant of the slope (exact for a parabola) take turns; bisection guards them.
    Stops when the tangents prove the value found to `PRECISION`, so the answer is right relative to itself however small it is.
    """
    lower, upper, trial = (-1.0, 0.0), (1.0, 0.0), (0.0, 0.0)
    f0, _, g0 = cost(*lower)
    f1, g1, _ = cost(*upper)
    if g0 >= 0 or g1 <= 0:
        return f0 if g0 >= 0 else f1
    best, goal = min(f0, f1), np.inf
    for step in range(400):
        f, left, right = cost(*trial)
        best = min(best, f)
        if left <= 0 <= right:
            return best
        if right < 0:
            lower, f0, g0 = trial, f, right
        else:
            upper, f1, g1 = trial, f, left
        width = (upper[0] - lower[0]) + (upper[1] - lower[1])
        meet = (f0 - f1 + g1 * width) / (g1 - g0)  # where the tangents meet, measured from `lower`
        blur = 2.0**-52 * (f0 + f1 + g1 * width) / (g1 - g0)  # its round-off, large while one end is far up
        meet = min(max(meet, 2 * blur), width - 2 * blur)  # step over the kink rather than stop short of it
        if min(-g0 * min(meet + blur, width), g1 * min(width - meet + blur, width)) <= PRECISION * best:
            return best
        t = (width * g0 / (g0 - g1), meet, 0.5 * width if width > goal else meet)[step % 3]
        if step % 3 == 2:
            goal = 0.5 * width
        trial = plus(*lower, t if 0 < t < width else 0.5 * width)
        if trial in (lower, upper):
            return best
    raise NumericalError(f"The transport cost found no minimum.\n  best value {best:.17g}, bracket of width {width:.3g}.\n  Please report the two measures.")


def wasserstein_reference(a: Measure, b: Measure, geometry: Geometry, p: int = 2, *, refine: int = 16) -> tuple[float, float]:
    r"""`(distance, bound)`: the same distance through the Python Optimal Transport library, a second opinion on `wasserstein`.

    Atoms are passed on as they are. A cell of width h becomes `refine` equal atoms in the middles of its equal parts, which moves the
    measure, hence the distance, by exactly `h / (2 refine (p + 1)^{1/p})`; `bound` is the sum of these two errors. The library's own error
    comes on top: round-off for p = 1, about 1e-8 relative for p = 2, where it stops a search at 1e-6 of the shift.

    Raises
    ------
    InputError
        As `wasserstein`, and for `refine` < 1. The library itself does not see wrong units, negative or unnormalised weights.

    Notes
    -----
    Cost O((n + m) log(n + m)), two to twenty times `wasserstein`. Source: Flamary et al., J. Mach. Learn. Res. 22 (2021), `ot.wasserstein_circle`.

    Examples
    --------
    >>> import mfpde as mf
    >>> circle = mf.Circle()
    >>> a, b = mf.Measure(circle.points([1.0, 3.0]), [0.5, 0.5]), mf.Measure(circle.points([1.1, 6.0]), [0.3, 0.7])
    >>> distance, bound = mf.transport.wasserstein_reference(a, b, circle)
    >>> abs(distance - mf.wasserstein(a, b, circle)) < bound + 1e-8
    True
    """
    if p not in (1, 2):
        raise InputError(f"Only W_1 and W_2 are computed.\n  p = {p!r}\n  Choose p=1 or p=2.")
    if not (isinstance(refine, (int, np.integer)) and refine >= 1):
        raise InputError(f"A cell is refined into a whole number of at least one atom.\n  refine = {refine!r}")
    if not isinstance(geometry, Circle):
        raise InputError(f"The second opinion is for the circle.\n  geometry = {geometry!r}\n  On the sphere `wasserstein` itself uses this library.")
    for name, measure in (("first", a), ("second", b)):
        _check_home(name, measure, geometry)
    import ot

    (u, u_weights, u_error), (v, v_weights, v_error) = (_as_atoms(measure, refine) for measure in (a, b))
    cost = float(np.squeeze(ot.wasserstein_circle(u, v, u_weights, v_weights, p=p)))  # circumference 1, no root
    return 2 * np.pi * max(cost, 0.0) ** (1 / p), (u_error + v_error) / (p + 1) ** (1 / p)


def _as_atoms(measure: Measure, refine: int) -> tuple[np.ndarray, np.ndarray, float]:
    """`(turns in [0, 1), weights, error (p + 1)^{1/p})` of atoms that stand for a measure."""
    weights = measure.weights / measure.weights.sum()
    if measure.mesh is None:
        turns, error = measure.angles() / (2 * np.pi), 0.0
    else:
        fine = len(measure) * refine
        turns, weights, error = (np.arange(fine) + 0.5) / fine, np.repeat(weights / refine, refine), np.pi / fine
    carried = weights > 0
    return turns[carried], weights[carried], error
