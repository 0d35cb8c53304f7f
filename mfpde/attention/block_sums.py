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
from mfpde.attention.block_bounds import LANES
from mfpde.attention.block_proxies import (
    FUSED,
    KEEP,
    at_stations,
    coefficients,
    compress,
    expand,
    loudest,
    polynomials,
    sine,
)
from mfpde.attention.block_selection import PIECES, select
from mfpde.attention.direct import EPS, two_product, two_sum
from mfpde.attention.exponential import exponential
from mfpde.compiled import compiled, parallel_range

TASKS = 64  # ranges of arcs handed to threads; fixed, so that results do not depend on the thread count


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
