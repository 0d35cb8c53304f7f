r"""The sums themselves, one arc of targets at a time. With x = c_t + u, y = c_s + w and q = beta A x = g + h, g = beta A c_t, h = beta A u,

    e^{<q, y>}  =  e^{<q, c_s>}  *  e^{<g, w>}  *  e^{<h, w>}        (exact)

    scores     <q, c_s - r> at every target, in double-double arithmetic, relative to the centre r of the winning arc
    compress   a_j = w_j e^{<g, w_j>}, then a few proxies at Chebyshev nodes that carry the same Chebyshev moments
    stations   sum over proxies of a e^{<h, w>} (1, w) at the targets, or at Chebyshev nodes if these are fewer
    gather     interpolate from the stations to the targets, times e^{score}, summed over the arcs of sources

Only `e^{<h, w>}` is interpolated, and `|<h, w>| <= c`, about 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mfpde.attention.block_arcs import dot
from mfpde.attention.block_bounds import GROUP, LANES
from mfpde.attention.block_selection import PIECES, select
from mfpde.attention.direct import EPS, two_product, two_sum
from mfpde.attention.exponential import exponential
from mfpde.compiled import compiled, parallel_range

KEEP = 2  # an arc with up to KEEP p points is summed point by point: compression would not pay
TASKS = 64  # ranges of arcs handed to threads; fixed, so that results do not depend on the thread count
FUSED = {"contract"}  # a*b + c in one rounding
ANY_ORDER = {"contract", "reassoc", "nsz"}  # and sums in any order, so that they run in vector registers


class Queries(NamedTuple):
    """q = beta A x of the targets and of the centres of their arcs, as unevaluated sums of two doubles.

    Attributes
    ----------
    high, low : (2, n) at the targets. centre_high, centre_low : (b, 2) at the centres. turn : (b, 2), beta A tau at the centres.
    """

    high: np.ndarray
    low: np.ndarray
    centre_high: np.ndarray
    centre_low: np.ndarray
    turn: np.ndarray


class Answer(NamedTuple):
    """Where the results go: target i of the sorted list is row `place[i]`. `covariance` has no rows if it is not wanted."""

    place: np.ndarray
    log_z: np.ndarray
    mean: np.ndarray
    error: np.ndarray
    covariance: np.ndarray


class Chebyshev(NamedTuple):
    """`nodes[p]` (p,) on [-1, 1]; `weights[p]` (p, p) turns moments (rows) into weights at the nodes, `coefficients[p]` values (rows) into coefficients."""

    nodes: np.ndarray
    weights: np.ndarray
    coefficients: np.ndarray


class Work(NamedTuple):
    """Scratch arrays of one thread."""

    kept: np.ndarray
    mark: np.ndarray
    stack: np.ndarray
    query: np.ndarray
    turn: np.ndarray
    proxy: np.ndarray
    state: np.ndarray
    slope: np.ndarray
    part: np.ndarray
    moment: np.ndarray
    basis: np.ndarray
    along: np.ndarray
    across: np.ndarray
    peak: np.ndarray
    sums: np.ndarray
    at_targets: np.ndarray


def chebyshev_rule(largest: int) -> Chebyshev:
    """The rules with p = 1 .. `largest` nodes."""
    nodes, weights = np.zeros((largest + 1, largest)), np.zeros((largest + 1, largest, largest))
    for p in range(1, largest + 1):
        angle = np.pi * (np.arange(p) + 0.5) / p
        nodes[p, :p] = np.cos(angle)
        weights[p, :p, :p] = 2 / p * np.cos(np.arange(p)[:, None] * angle)
        weights[p, 0] /= 2
    return Chebyshev(nodes, weights, np.ascontiguousarray(weights.transpose(0, 2, 1)))


@compiled(error_model="numpy", fastmath=FUSED, forceinline=True)
def loudest(along, across, log_w, first, last, tilt, bend):
    """Index of (nearly) the largest `tilt along + bend across + log w`, or of a value within 1e-6 of it."""
    top, where = -np.inf, first
    for start in range(first, last, LANES):
        stop = min(start + LANES, last)
        high = _highest_score(along, across, log_w, start, stop, tilt, bend)
        if high > top:
            top, where = high, start
    stop = min(where + LANES, last)
    top, start = -np.inf, where
    for j in range(start, stop):
        z = tilt * along[j] + bend * across[j] + log_w[j]
        if z > top:
            top, where = z, j
    return where


@compiled(error_model="numpy", fastmath={"contract", "nnan", "nsz"}, forceinline=True)
def _highest_score(along, across, log_w, start, stop, tilt, bend):
    top = -np.inf
    for j in range(start, stop):
        z = tilt * along[j] + bend * across[j] + log_w[j]
        top = z if z > top else top
    return top


@compiled(error_model="numpy", fastmath=FUSED, forceinline=True)
def tilted(arcs, log_w, start, stop, top, tilt, bend, out, slope):
    """`out_j = w_j e^{<g, w_j>}` relative to source `top`, and the exponent `slope_j` of its tilt."""
    s, low, level = arcs.along[top], arcs.along_low[top], log_w[top]
    for j in range(start, stop):
        z = tilt * ((arcs.along[j] - s) + (arcs.along_low[j] - low))
        slope[j - start] = z
        out[j - start] = exponential(z + (bend * arcs.across[j] + (log_w[j] - level)))


@compiled(error_model="numpy", fastmath=ANY_ORDER, forceinline=True)
def mean_size(a, slope, count):
    """sum_j a_j |slope_j|: what the round-off of the exponents is proportional to."""
    total = 0.0
    for j in range(count):
        total += a[j] * abs(slope[j])
    return total


@compiled(error_model="numpy", fastmath=ANY_ORDER, forceinline=True)
def moments(state, count, p, out):
    """Adds the moments `sum_j a_j T_k(x_j)` to `out[k]`, k < p. Up to three moments beyond p come along.

    `state` has three rows of LANES: the a_j, room for their next multiples, the x_j. In one array, because the compiler then knows that the
    rows do not overlap: the loop always runs in vector registers, and always rounds alike.
    """
    m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
    for j in range(count):
        a, x = state[j], state[2 * LANES + j]
        b = x * a
        c = 2 * x * b - a
        d = 2 * x * c - b
        state[j], state[LANES + j] = c, d
        m0, m1, m2, m3 = m0 + a, m1 + b, m2 + c, m3 + d
    out[0], out[1], out[2], out[3] = out[0] + m0, out[1] + m1, out[2] + m2, out[3] + m3
    for k in range(4, p, 4):
        m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
        for j in range(count):  # T_{k+1} = 2 x T_k - T_{k-1}, four steps in registers
            old, new, x = state[j], state[LANES + j], 2 * state[2 * LANES + j]
            a = x * new - old
            b = x * a - new
            c = x * b - a
            d = x * c - b
            state[j], state[LANES + j] = c, d
            m0, m1, m2, m3 = m0 + a, m1 + b, m2 + c, m3 + d
        out[k], out[k + 1], out[k + 2], out[k + 3] = out[k] + m0, out[k + 1] + m1, out[k + 2] + m2, out[k + 3] + m3


@compiled(fastmath=FUSED, forceinline=True)
def sine(x):
    """sin(x) for |x| <= 1/4, where its series of seven terms is exact to rounding: no call, so loops over it run in vector registers."""
    y = x * x
    p = 1.6059043836821613e-10 * y - 2.505210838544172e-08
    p = p * y + 2.7557319223985893e-06
    p = p * y - 0.0001984126984126984
    p = p * y + 0.008333333333333333
    p = p * y - 0.16666666666666666
    return x + x * (y * p)


@compiled(error_model="numpy", forceinline=True)
def compress(arcs, log_w, b, top, tilt, bend, rule, work):
    """Fill `work.proxy` (3, k): weights, along, across. Returns (k, mean |exponent|)."""
    first, last = arcs.start[b], arcs.start[b + 1]
    p, proxy, moment = arcs.nodes[b], work.proxy, work.moment
    if last - first <= KEEP * p:
        k, mass = last - first, 0.0
        tilted(arcs, log_w, first, last, top, tilt, bend, proxy[0], work.slope)
        exponents = mean_size(proxy[0], work.slope, k)
        for j in range(k):
            proxy[1, j] = arcs.along[first + j]
            proxy[2, j] = arcs.across[first + j]
            mass += proxy[0, j]
        return k, exponents / mass
    moment[:] = 0.0
    exponents = 0.0
    for group in range(first, last, GROUP * LANES):
        work.part[:] = 0.0
        for start in range(group, min(group + GROUP * LANES, last), LANES):
            stop = min(start + LANES, last)
            tilted(arcs, log_w, start, stop, top, tilt, bend, work.state, work.slope)
            exponents += mean_size(work.state, work.slope, stop - start)
            work.state[2 * LANES : 2 * LANES + stop - start] = arcs.position[start:stop]
            moments(work.state, stop - start, p, work.part)
        moment += work.part
    for e in range(p):
        delta = arcs.radius[b] * rule.nodes[p, e]
        half = sine(0.5 * delta)
        proxy[0, e] = 0.0
        proxy[1, e] = sine(delta)
        proxy[2, e] = -2.0 * half * half
    for k in range(p):
        for e in range(p):
            proxy[0, e] += rule.weights[p, k, e] * moment[k]
    return p, exponents / moment[0]


@compiled(error_model="numpy", fastmath=FUSED, forceinline=True)
def at_stations(proxy, k, along, across, count, turn_along, turn_across, tilt, bend, values):
    """`sum a e^{<h, w>}` and the same times the two components of w, in rows of `values`; with room for six rows also the products of w.

    `h = along beta A tau_t + across beta A c_t`; the four rates are the components of the two vectors along tau_s and c_s.
    """
    rows = values.size // LANES
    for m in range(rows):
        values[m * LANES : m * LANES + count] = 0.0
    proxy[:, k] = 0.0  # a silent partner if k is odd
    for e in range(0, k, 2):
        a, s, n = proxy[0, e], proxy[1, e], proxy[2, e]
        b, t, m = proxy[0, e + 1], proxy[1, e + 1], proxy[2, e + 1]
        along_a, across_a = turn_along * s + turn_across * n, tilt * s + bend * n
        along_b, across_b = turn_along * t + turn_across * m, tilt * t + bend * m
        for i in range(count):
            f = a * exponential(along_a * along[i] + across_a * across[i])
            g = b * exponential(along_b * along[i] + across_b * across[i])
            values[i] += f + g
            values[LANES + i] += f * s + g * t
            values[2 * LANES + i] += f * n + g * m
        if rows > 3:
            for i in range(count):
                f = a * exponential(along_a * along[i] + across_a * across[i])
                g = b * exponential(along_b * along[i] + across_b * across[i])
                values[3 * LANES + i] += f * (s * s) + g * (t * t)
                values[4 * LANES + i] += f * (s * n) + g * (t * m)
                values[5 * LANES + i] += f * (n * n) + g * (m * m)


@compiled(error_model="numpy", fastmath=FUSED, forceinline=True)
def coefficients(values, p, rule, out):
    """Chebyshev coefficients of the polynomials through the rows of `values` at the p nodes."""
    out[:] = 0.0
    for m in range(out.shape[0]):
        for e in range(p):
            value = values[m * LANES + e]
            for k in range(p):
                out[m, k] += rule.coefficients[p, e, k] * value


@compiled(error_model="numpy", fastmath=FUSED, forceinline=True)
def polynomials(position, start, stop, p, basis):
    """T_k(position), k < p, in the rows of `basis`."""
    for j in range(stop - start):
        basis[j] = 1.0
        basis[LANES + j] = position[start + j]
    for k in range(2, p):
        rows = basis[(k - 2) * LANES :]
        for j in range(stop - start):
            rows[2 * LANES + j] = 2 * position[start + j] * rows[LANES + j] - rows[j]


@compiled(error_model="numpy", fastmath=FUSED, forceinline=True)
def expand(coefficient, basis, p, count, out):
    """`out[m] = sum_k coefficient[m, k] basis[k]`, three m and four k at a time; the coefficients from p on are zero."""
    out[:] = 0.0
    for m in range(0, coefficient.shape[0], 3):
        to = out[m * LANES :]
        for k in range(0, p, 4):
            rows = basis[k * LANES :]
            a0, a1, a2, a3 = coefficient[m, k], coefficient[m, k + 1], coefficient[m, k + 2], coefficient[m, k + 3]
            b0, b1, b2, b3 = coefficient[m + 1, k], coefficient[m + 1, k + 1], coefficient[m + 1, k + 2], coefficient[m + 1, k + 3]
            c0, c1, c2, c3 = coefficient[m + 2, k], coefficient[m + 2, k + 1], coefficient[m + 2, k + 2], coefficient[m + 2, k + 3]
            for i in range(count):
                t0, t1, t2, t3 = rows[i], rows[LANES + i], rows[2 * LANES + i], rows[3 * LANES + i]
                to[i] += (a0 * t0 + a1 * t1) + (a2 * t2 + a3 * t3)
                to[LANES + i] += (b0 * t0 + b1 * t1) + (b2 * t2 + b3 * t3)
                to[2 * LANES + i] += (c0 * t0 + c1 * t1) + (c2 * t2 + c3 * t3)


@compiled(error_model="numpy", forceinline=True)
def scores(queries, start, stop, dx, ex, dy, ey, top, top_low, high, low):
    """`<q_i, d> + top` as two doubles, d = (dx + ex, dy + ey) the way from the reference to the centre: no digit is lost where far arcs tie."""
    for i in range(start, stop):
        qx, qy = queries.high[0, i], queries.high[1, i]
        s, lost = dot(qx, qy, dx, dy)
        z, e = two_sum(s, top)
        high[i - start] = z
        low[i - start] = e + (lost + (qx * ex + qy * ey) + (queries.low[0, i] * dx + queries.low[1, i] * dy) + top_low)


@compiled(error_model="numpy", forceinline=True)
def peaks(high, low, centres, kept, pairs, count, peak):
    """Rows of `peak`: largest score of every target (two doubles) and the centre of the arc that has it."""
    peak[:count] = -np.inf
    for q in range(pairs):
        cx, cy = centres[kept[q]]
        for i in range(count):
            above = high[q, i] > peak[i]
            peak[i] = high[q, i] if above else peak[i]
            peak[LANES + i] = low[q, i] if above else peak[LANES + i]
            peak[2 * LANES + i] = cx if above else peak[2 * LANES + i]
            peak[3 * LANES + i] = cy if above else peak[3 * LANES + i]


@compiled(error_model="numpy", fastmath=FUSED, forceinline=True)
def gather(high, low, peak, cx, cy, values, size, count, sums):
    """Add the share of one arc with centre c to the rows of `sums`: Z, round-off units and sum (y - best).

    `values` holds the sums of 1 and w in the frame of the arc, w = along tau + across c.
    """
    for i in range(count):
        f = exponential((high[i] - peak[i]) + (low[i] - peak[LANES + i]))
        z = f * values[i]
        s, n = f * values[LANES + i], f * values[2 * LANES + i]
        sums[i] += z
        sums[LANES + i] += z * size
        sums[2 * LANES + i] += z * (cx - peak[2 * LANES + i]) + (n * cx - s * cy)
        sums[3 * LANES + i] += z * (cy - peak[3 * LANES + i]) + (n * cy + s * cx)


@compiled(error_model="numpy", fastmath=FUSED, forceinline=True)
def gather_products(high, low, peak, cx, cy, values, count, sums):
    """Add the share of one arc to the last three rows of `sums`, sum (y - best)(y - best)^T."""
    for i in range(count):
        f = exponential((high[i] - peak[i]) + (low[i] - peak[LANES + i]))
        dx, dy = cx - peak[2 * LANES + i], cy - peak[3 * LANES + i]
        s, n = f * values[LANES + i], f * values[2 * LANES + i]
        z, wx, wy = f * values[i], n * cx - s * cy, n * cy + s * cx
        ss, sn, nn = f * values[3 * LANES + i], f * values[4 * LANES + i], f * values[5 * LANES + i]
        sums[4 * LANES + i] += z * dx * dx + 2 * dx * wx + (nn * cx * cx - 2 * sn * cx * cy + ss * cy * cy)
        sums[5 * LANES + i] += z * dx * dy + (dx * wy + dy * wx) + ((nn - ss) * cx * cy + sn * (cx * cx - cy * cy))
        sums[6 * LANES + i] += z * dy * dy + 2 * dy * wy + (nn * cy * cy + 2 * sn * cx * cy + ss * cx * cx)


@compiled(error_model="numpy", forceinline=True)
def choose(t, targets, queries, tree, limits, guess, work):
    """Arcs of sources that matter to arc `t` of the targets, see `select`; each half of the arc is bounded on its own."""
    pieces = PIECES if targets.radius[t] > 0.0 else 1
    half = targets.radius[t] / pieces
    for j in range(pieces):
        offset = (2 * j + 1 - pieces) * half
        cos, sin = math.cos(offset), math.sin(offset)
        for k in range(2):
            along, across = queries.turn[t, k], queries.centre_high[t, k]
            work.query[j, k] = across * cos + along * sin
            work.turn[j, k] = (along * cos - across * sin) * math.sin(half)
        work.turn[j, 2] = 1.0 - math.cos(half)
    return select(tree, work.query[:pieces], work.turn[:pieces], limits, guess, work.kept, work.mark, t, work.stack)


@compiled(error_model="numpy", forceinline=True)
def place_stations(t, targets, rule, along, across):
    """Where the sums of arc `t` are formed: at its targets, or at Chebyshev nodes if these are fewer. Returns how many."""
    first, p = targets.start[t], targets.nodes[t]
    count = targets.start[t + 1] - first
    if count <= KEEP * p:
        for i in range(count):
            along[i], across[i] = targets.along[first + i], targets.across[first + i]
    else:
        count = p
        for i in range(p):
            delta = targets.radius[t] * rule.nodes[p, i]
            half = sine(0.5 * delta)
            along[i], across[i] = sine(delta), -2.0 * half * half
    for i in range(count, padded(count)):
        along[i], across[i] = 0.0, 0.0
    return count


@compiled(inline="always")
def padded(count):
    """Up to full vector registers."""
    return (count + 7) // 8 * 8


@compiled(error_model="numpy", forceinline=True)
def pair(t, s, queries, sources, log_w, rule, count, stretch, work, values):
    """Sums of the sources of arc `s` at the stations of arc `t`, relative to their loudest source.

    Returns the exponent of that one (two doubles) and the round-off of all exponents in units of eps.
    """
    cx, cy = sources.centre[s]
    gx, gy = queries.centre_high[t]
    tilt, tilt_low = dot(gx, gy, -cy, cx)
    tilt_low += queries.centre_low[t, 1] * cx - queries.centre_low[t, 0] * cy
    bend = gx * cx + gy * cy
    top = loudest(sources.along, sources.across, log_w, sources.start[s], sources.start[s + 1], tilt, bend)
    k, exponents = compress(sources, log_w, s, top, tilt, bend, rule, work)
    turn_x, turn_y = queries.turn[t]
    rate_along, rate_across = turn_y * cx - turn_x * cy, turn_x * cx + turn_y * cy
    at_stations(work.proxy, k, work.along, work.across, padded(count), rate_along, rate_across, tilt, bend, values)
    p, lost = two_product(tilt, sources.along[top])
    level, rest = two_sum(p, log_w[top])
    return level, lost + rest + (tilt_low * sources.along[top] + tilt * sources.along_low[top]), stretch * exponents + 2 * abs(log_w[top])


@compiled(error_model="numpy", forceinline=True)
def attend_arc(t, targets, queries, sources, log_w, tree, limits, stretch, rule, guess, work, answer):
    """Answer the targets of arc `t`; returns the winning arc of sources."""
    pairs, best, dropped = choose(t, targets, queries, tree, limits, guess, work)
    kept, order = work.kept, work.at_targets.size // LANES
    first, last = targets.start[t], targets.start[t + 1]
    count = place_stations(t, targets, rule, work.along, work.across)
    interpolated = count < last - first
    tops = np.empty((pairs, 3))
    values = np.empty((0 if interpolated else pairs, order * LANES))
    width = (count + 3) // 4 * 4 if interpolated else 0
    polynomial = np.empty((pairs, order, width))
    for q in range(pairs):
        stations = work.at_targets if interpolated else values[q]
        tops[q, 0], tops[q, 1], tops[q, 2] = pair(t, kept[q], queries, sources, log_w, rule, count, stretch, work, stations)
        if interpolated:
            coefficients(stations, count, rule, polynomial[q])
    rx, ry = sources.centre[best]
    high, low = np.empty((pairs, LANES)), np.empty((pairs, LANES))
    for start in range(first, last, LANES):
        stop = min(start + LANES, last)
        n = stop - start
        for q in range(pairs):
            dx, ex = two_sum(sources.centre[kept[q], 0], -rx)
            dy, ey = two_sum(sources.centre[kept[q], 1], -ry)
            scores(queries, start, stop, dx, ex, dy, ey, tops[q, 0], tops[q, 1], high[q], low[q])
        peaks(high, low, sources.centre, kept, pairs, n, work.peak)
        work.sums[:] = 0.0
        if interpolated:
            polynomials(targets.position, start, stop, width, work.basis)
        for q in range(pairs):
            cx, cy = sources.centre[kept[q]]
            at_targets = work.at_targets if interpolated else values[q]
            if interpolated:
                expand(polynomial[q], work.basis, count, n, at_targets)
            gather(high[q], low[q], work.peak, cx, cy, at_targets, tops[q, 2], n, work.sums)
            if order == 6:
                gather_products(high[q], low[q], work.peak, cx, cy, at_targets, n, work.sums)
        finish(queries, start, stop, rx, ry, work.peak, work.sums, 2 * dropped + 2 * EPS * pairs, answer)
    return best


@compiled(error_model="numpy", forceinline=True)
def finish(queries, start, stop, rx, ry, peak, sums, lost, answer):
    """From the sums relative to reference and peak to log Z, m, the error that depends on the data, and the covariance."""
    for i in range(start, stop):
        j, k = i - start, answer.place[i]
        z = sums[j]
        s, low = dot(queries.high[0, i], queries.high[1, i], rx, ry)
        s, e = two_sum(s, peak[j])
        answer.log_z[k] = s + (e + low + (queries.low[0, i] * rx + queries.low[1, i] * ry) + peak[LANES + j] + math.log(z))
        mx, my = sums[2 * LANES + j] / z, sums[3 * LANES + j] / z
        answer.mean[k, 0], answer.mean[k, 1] = peak[2 * LANES + j] + mx, peak[3 * LANES + j] + my
        answer.error[k] = lost + 1.5 * EPS * sums[LANES + j] / z
        if answer.covariance.shape[0] > 0:
            answer.covariance[k, 0, 0] = sums[4 * LANES + j] / z - mx * mx
            answer.covariance[k, 0, 1] = answer.covariance[k, 1, 0] = sums[5 * LANES + j] / z - mx * my
            answer.covariance[k, 1, 1] = sums[6 * LANES + j] / z - my * my


@compiled(error_model="numpy")
def attend_range(begin, end, targets, queries, sources, log_w, tree, limits, stretch, rule, answer):
    """`attend_arc` for the arcs `begin..end-1`, with scratch of its own."""
    size, order = rule.nodes.shape[1] + 3, 6 if answer.covariance.shape[0] > 0 else 3
    arcs, most = sources.middle.size, KEEP * size + 8
    work = Work(
        kept=np.empty(arcs, np.int64),
        mark=np.full(arcs, -1),
        stack=np.empty(256, np.int64),
        query=np.empty((PIECES, 2)),
        turn=np.empty((PIECES, 3)),
        proxy=np.empty((3, most)),
        state=np.empty(3 * LANES),
        slope=np.empty(LANES),
        part=np.empty(size),
        moment=np.empty(size),
        basis=np.empty(size * LANES),
        along=np.empty(most),
        across=np.empty(most),
        peak=np.empty(4 * LANES),
        sums=np.empty((order + 1) * LANES),
        at_targets=np.empty(order * LANES),
    )
    guess = np.argmax(tree.log_mass[tree.mean.shape[0] :])
    for t in range(begin, end):
        guess = attend_arc(t, targets, queries, sources, log_w, tree, limits, stretch, rule, guess, work, answer)


def _attend(targets, queries, sources, log_w, tree, limits, stretch, rule, answer):
    """Fill `answer`: log Z, m, the part of the error that depends on the data, and the covariance if there is room for it.

    `limits` says what an arc of sources must contribute to be kept (`select`), `stretch` the round-off per unit of exponent.
    """
    arcs = targets.middle.size
    for task in parallel_range(TASKS):
        attend_range(arcs * task // TASKS, arcs * (task + 1) // TASKS, targets, queries, sources, log_w, tree, limits, stretch, rule, answer)


attend_serial = compiled(_attend)
attend_parallel = compiled(parallel=True)(_attend)
