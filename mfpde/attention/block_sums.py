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

from mfpde.attention.block_arcs import Arcs, dot
from mfpde.attention.block_selection import PIECES, select
from mfpde.attention.direct import EPS, two_product, two_sum
from mfpde.attention.exponential import exponential
from mfpde.compiled import compiled, parallel_range

LANES = 128  # partial sums kept side by side: vector registers, and short chains of additions
TASKS = 64  # ranges of arcs handed to threads; fixed, so that results do not depend on the thread count
FUSED = {"contract"}  # a*b + c in one rounding


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


class Chebyshev(NamedTuple):
    """`nodes[p]` (p,) on [-1, 1] and `transform[p]` (p, p): values at the nodes to coefficients (rows), moments to weights (columns)."""

    nodes: np.ndarray
    transform: np.ndarray


class Work(NamedTuple):
    """Scratch arrays of one thread."""

    kept: np.ndarray
    mark: np.ndarray
    stack: np.ndarray
    query: np.ndarray
    turn: np.ndarray
    proxy: np.ndarray
    lanes: np.ndarray
    basis: np.ndarray
    along: np.ndarray
    across: np.ndarray
    stations: np.ndarray
    peak: np.ndarray
    sums: np.ndarray
    at_targets: np.ndarray


def chebyshev_rule(largest: int) -> Chebyshev:
    """The rules with p = 1 .. `largest` nodes."""
    nodes, transform = np.zeros((largest + 1, largest)), np.zeros((largest + 1, largest, largest))
    for p in range(1, largest + 1):
        angle = np.pi * (np.arange(p) + 0.5) / p
        nodes[p, :p] = np.cos(angle)
        transform[p, :p, :p] = 2 / p * np.cos(np.arange(p)[:, None] * angle)
        transform[p, 0] /= 2
    return Chebyshev(nodes, transform)


@compiled(error_model="numpy", fastmath=FUSED)
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


@compiled(error_model="numpy", fastmath={"contract", "nnan", "nsz"})
def _highest_score(along, across, log_w, start, stop, tilt, bend):
    top = -np.inf
    for j in range(start, stop):
        z = tilt * along[j] + bend * across[j] + log_w[j]
        top = z if z > top else top
    return top


@compiled(error_model="numpy", fastmath=FUSED)
def tilted(arcs, log_w, start, stop, top, tilt, bend, out, size):
    """`out_j = w_j e^{<g, w_j>}` relative to source `top`; adds `out |exponent|` to `size`, for the round-off of the exponents."""
    s, low, level = arcs.along[top], arcs.along_low[top], log_w[top]
    for j in range(start, stop):
        slope = tilt * ((arcs.along[j] - s) + (arcs.along_low[j] - low))
        a = exponential(slope + (bend * arcs.across[j] + (log_w[j] - level)))
        out[j - start] = a
        size[j - start] += a * abs(slope)


@compiled(error_model="numpy", fastmath=FUSED)
def moments(position, start, stop, p, older, newer, total):
    """Adds the moments `a_j T_k(position_j)`, k < p, lane by lane; `newer` holds the `a_j`. p is even."""
    for j in range(stop - start):
        a = newer[j]
        b = position[start + j] * a
        total[0, j] += a
        total[1, j] += b
        older[j] = a
        newer[j] = b
    for k in range(2, p, 2):
        for j in range(stop - start):  # T_{k+1} = 2 x T_k - T_{k-1}, two steps at a time
            x = 2 * position[start + j]
            a = x * newer[j] - older[j]
            b = x * a - newer[j]
            older[j] = a
            newer[j] = b
            total[k, j] += a
            total[k + 1, j] += b


@compiled(error_model="numpy")
def add_lanes(row, width):
    """Sum of `row[:width]` by halving: a chain of log2(width) additions."""
    while width > 1:
        half = (width + 1) // 2
        for j in range(width - half):
            row[j] += row[half + j]
        width = half
    return row[0]


@compiled(error_model="numpy")
def compress(arcs, log_w, b, top, tilt, bend, rule, proxy, lanes):
    """Fill `proxy` (3, k): weights, along, across. Returns (k, mean |exponent|)."""
    first, last = arcs.start[b], arcs.start[b + 1]
    p = arcs.nodes[b]
    size = lanes[0]
    if last - first <= p:
        k = last - first
        size[:k] = 0.0
        tilted(arcs, log_w, first, last, top, tilt, bend, proxy[0], size)
        mass, exponents = 0.0, 0.0
        for j in range(k):
            proxy[1, j] = arcs.along[first + j]
            proxy[2, j] = arcs.across[first + j]
            mass += proxy[0, j]
            exponents += size[j]
        return k, exponents / mass
    width = min(LANES, last - first)
    older, newer, total = lanes[1], lanes[2], lanes[3:]
    size[:width] = 0.0
    for k in range(p):
        for j in range(width):
            total[k, j] = 0.0
    for start in range(first, last, LANES):
        stop = min(start + LANES, last)
        tilted(arcs, log_w, start, stop, top, tilt, bend, newer, size)
        moments(arcs.position, start, stop, p, older, newer, total)
    for e in range(p):
        delta = arcs.radius[b] * rule.nodes[p, e]
        half = math.sin(0.5 * delta)
        proxy[0, e] = 0.0
        proxy[1, e] = math.sin(delta)
        proxy[2, e] = -2.0 * half * half
    mass = 0.0
    for k in range(p):
        moment = add_lanes(total[k], width)
        if k == 0:
            mass = moment
        for e in range(p):
            proxy[0, e] += rule.transform[p, k, e] * moment
    return p, add_lanes(size, width) / mass


@compiled(error_model="numpy", fastmath=FUSED)
def at_stations(proxy, k, along, across, count, turn_along, turn_across, tilt, bend, values):
    """`values[0] = sum a e^{<h, w>}`, `values[1:3] = sum a e^{<h, w>} w`, and the three products of w if there is room for them.

    `h = along beta A tau_t + across beta A c_t`; the four rates are the components of the two vectors along tau_s and c_s.
    """
    values[:, :count] = 0.0
    for e in range(k):
        a, s, n = proxy[0, e], proxy[1, e], proxy[2, e]
        rate_along = turn_along * s + turn_across * n
        rate_across = tilt * s + bend * n
        for i in range(count):
            f = a * exponential(rate_along * along[i] + rate_across * across[i])
            values[0, i] += f
            values[1, i] += f * s
            values[2, i] += f * n
        if values.shape[0] > 3:
            for i in range(count):
                f = a * exponential(rate_along * along[i] + rate_across * across[i])
                values[3, i] += f * (s * s)
                values[4, i] += f * (s * n)
                values[5, i] += f * (n * n)


@compiled(error_model="numpy", fastmath=FUSED)
def coefficients(values, p, transform, out):
    """Chebyshev coefficients of the polynomials through `values` (K, p) at the p nodes."""
    for m in range(values.shape[0]):
        for k in range(p):
            c = 0.0
            for e in range(p):
                c += transform[k, e] * values[m, e]
            out[m, k] = c


@compiled(error_model="numpy", fastmath=FUSED)
def polynomials(position, start, stop, p, basis):
    """`basis[k] = T_k(position)`."""
    for j in range(stop - start):
        basis[0, j] = 1.0
        basis[1, j] = position[start + j]
    for k in range(2, p):
        for j in range(stop - start):
            basis[k, j] = 2 * position[start + j] * basis[k - 1, j] - basis[k - 2, j]


@compiled(error_model="numpy", fastmath=FUSED)
def expand(coefficient, basis, p, count, out):
    """`out = sum_k coefficient[k] basis[k]`, four terms at a time; the coefficients from p on are zero."""
    for k in range(0, p, 4):
        a, b, c, d = coefficient[k], coefficient[k + 1], coefficient[k + 2], coefficient[k + 3]
        if k == 0:
            for i in range(count):
                out[i] = (a * basis[0, i] + b * basis[1, i]) + (c * basis[2, i] + d * basis[3, i])
        else:
            for i in range(count):
                out[i] += (a * basis[k, i] + b * basis[k + 1, i]) + (c * basis[k + 2, i] + d * basis[k + 3, i])


@compiled(error_model="numpy")
def scores(queries, start, stop, dx, ex, dy, ey, top, top_low, high, low):
    """`<q_i, d> + top` as two doubles, d = (dx + ex, dy + ey) the way from the reference to the centre: no digit is lost where far arcs tie."""
    for i in range(start, stop):
        qx, qy = queries.high[0, i], queries.high[1, i]
        s, lost = dot(qx, qy, dx, dy)
        z, e = two_sum(s, top)
        high[i - start] = z
        low[i - start] = e + (lost + (qx * ex + qy * ey) + (queries.low[0, i] * dx + queries.low[1, i] * dy) + top_low)


@compiled(error_model="numpy")
def peaks(high, low, centres, kept, pairs, count, peak):
    """`peak` (4, n): largest score of every target (two doubles) and the centre of the arc that has it."""
    peak[0, :count] = -np.inf
    for q in range(pairs):
        cx, cy = centres[kept[q]]
        for i in range(count):
            above = high[q, i] > peak[0, i]
            peak[0, i] = high[q, i] if above else peak[0, i]
            peak[1, i] = low[q, i] if above else peak[1, i]
            peak[2, i] = cx if above else peak[2, i]
            peak[3, i] = cy if above else peak[3, i]


@compiled(error_model="numpy", fastmath=FUSED)
def gather(high, low, peak, cx, cy, values, size, count, sums):
    """Add the share of one arc with centre c to `sums`: Z, round-off units and sum (y - best); with six `values` also sum (y - best)(y - best)^T.

    `values` holds the sums of 1 and w (and w w^T) in the frame of the arc, w = along tau + across c.
    """
    for i in range(count):
        f = exponential((high[i] - peak[0, i]) + (low[i] - peak[1, i]))
        z = f * values[0, i]
        s, n = f * values[1, i], f * values[2, i]
        sums[0, i] += z
        sums[1, i] += z * size
        sums[2, i] += z * (cx - peak[2, i]) + (n * cx - s * cy)
        sums[3, i] += z * (cy - peak[3, i]) + (n * cy + s * cx)
    if values.shape[0] > 3:
        for i in range(count):
            f = exponential((high[i] - peak[0, i]) + (low[i] - peak[1, i]))
            z = f * values[0, i]
            dx, dy = cx - peak[2, i], cy - peak[3, i]
            wx, wy = f * (values[2, i] * cx - values[1, i] * cy), f * (values[2, i] * cy + values[1, i] * cx)
            ss, sn, nn = f * values[3, i], f * values[4, i], f * values[5, i]
            sums[4, i] += z * dx * dx + 2 * dx * wx + (nn * cx * cx - 2 * sn * cx * cy + ss * cy * cy)
            sums[5, i] += z * dx * dy + (dx * wy + dy * wx) + ((nn - ss) * cx * cy + sn * (cx * cx - cy * cy))
            sums[6, i] += z * dy * dy + 2 * dy * wy + (nn * cy * cy + 2 * sn * cx * cy + ss * cx * cx)


@compiled(error_model="numpy")
def choose(t, targets, queries, tree, threshold, guess, work):
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
    return select(tree, work.query[:pieces], work.turn[:pieces], threshold, guess, work.kept, work.mark, t, work.stack)


@compiled(error_model="numpy")
def place_stations(t, targets, rule, along, across):
    """Where the sums of arc `t` are formed: at its targets, or at Chebyshev nodes if these are fewer. Returns how many."""
    first, p = targets.start[t], targets.nodes[t]
    count = targets.start[t + 1] - first
    if count <= p:
        for i in range(count):
            along[i], across[i] = targets.along[first + i], targets.across[first + i]
        return count
    for i in range(p):
        delta = targets.radius[t] * rule.nodes[p, i]
        along[i], across[i] = math.sin(delta), -2.0 * math.sin(0.5 * delta) ** 2
    return p


@compiled(error_model="numpy")
def pair(t, s, queries, sources, log_w, rule, count, stretch, work, values):
    """Sums of the sources of arc `s` at the stations of arc `t`, relative to their loudest source. Returns its exponent (two doubles) and the round-off units of all exponents."""
    cx, cy = sources.centre[s]
    gx, gy = queries.centre_high[t]
    tilt, tilt_low = dot(gx, gy, -cy, cx)
    tilt_low += queries.centre_low[t, 1] * cx - queries.centre_low[t, 0] * cy
    bend = gx * cx + gy * cy
    top = loudest(sources.along, sources.across, log_w, sources.start[s], sources.start[s + 1], tilt, bend)
    k, exponents = compress(sources, log_w, s, top, tilt, bend, rule, work.proxy, work.lanes)
    turn_x, turn_y = queries.turn[t]
    rate_along, rate_across = turn_y * cx - turn_x * cy, turn_x * cx + turn_y * cy
    at_stations(work.proxy, k, work.along, work.across, count, rate_along, rate_across, tilt, bend, values)
    p, lost = two_product(tilt, sources.along[top])
    level, rest = two_sum(p, log_w[top])
    return level, lost + rest + (tilt_low * sources.along[top] + tilt * sources.along_low[top]), stretch * exponents + 3 * abs(log_w[top])


@compiled(error_model="numpy")
def attend_arc(t, targets, queries, sources, log_w, tree, threshold, stretch, rule, guess, work, out):
    """Fill `out[:, targets of arc t]`; returns the winning arc of sources. See `attend` for the rows of `out`."""
    pairs, best, dropped = choose(t, targets, queries, tree, threshold, guess, work)
    kept = work.kept
    first, last = targets.start[t], targets.start[t + 1]
    count = place_stations(t, targets, rule, work.along, work.across)
    interpolated = count < last - first
    order, pad = work.stations.shape
    values, tops = np.empty((pairs, order, pad)), np.empty((pairs, 3))
    for q in range(pairs):
        stations = work.stations if interpolated else values[q]
        level, level_low, size = pair(t, kept[q], queries, sources, log_w, rule, count, stretch, work, stations)
        tops[q, 0], tops[q, 1], tops[q, 2] = level, level_low, size
        if interpolated:
            values[q, :, count:] = 0.0
            coefficients(stations, count, rule.transform[count], values[q])
    rx, ry = sources.centre[best]
    chunk = work.peak.shape[1]
    high, low = np.empty((pairs, chunk)), np.empty((pairs, chunk))
    for start in range(first, last, chunk):
        stop = min(start + chunk, last)
        n = stop - start
        for q in range(pairs):
            dx, ex = two_sum(sources.centre[kept[q], 0], -rx)
            dy, ey = two_sum(sources.centre[kept[q], 1], -ry)
            scores(queries, start, stop, dx, ex, dy, ey, tops[q, 0], tops[q, 1], high[q], low[q])
        peaks(high, low, sources.centre, kept, pairs, n, work.peak)
        work.sums[:, :n] = 0.0
        if interpolated:
            polynomials(targets.position, start, stop, (count + 3) // 4 * 4, work.basis)
        for q in range(pairs):
            cx, cy = sources.centre[kept[q]]
            at_targets = values[q]
            if interpolated:
                at_targets = work.at_targets
                for m in range(order):
                    expand(values[q, m], work.basis, count, n, at_targets[m])
            gather(high[q], low[q], work.peak, cx, cy, at_targets, tops[q, 2], n, work.sums)
        finish(queries, start, stop, rx, ry, work.peak, work.sums, dropped + EPS * pairs, out)
    return best


@compiled(error_model="numpy")
def finish(queries, start, stop, rx, ry, peak, sums, lost, out):
    """From the sums relative to reference and peak to log Z, m, the error and the covariance."""
    for i in range(start, stop):
        j = i - start
        z = sums[0, j]
        s, low = dot(queries.high[0, i], queries.high[1, i], rx, ry)
        s, e = two_sum(s, peak[0, j])
        out[0, i] = s + (e + low + (queries.low[0, i] * rx + queries.low[1, i] * ry) + peak[1, j] + math.log(z))
        mx, my = sums[2, j] / z, sums[3, j] / z
        out[1, i], out[2, i] = peak[2, j] + mx, peak[3, j] + my
        out[3, i] = lost + EPS * sums[1, j] / z
        if out.shape[0] > 4:
            out[4, i], out[5, i], out[6, i] = sums[4, j] / z - mx * mx, sums[5, j] / z - mx * my, sums[6, j] / z - my * my


@compiled(error_model="numpy")
def attend_range(begin, end, targets, queries, sources, log_w, tree, threshold, stretch, rule, out):
    """`attend_arc` for the arcs `begin..end-1`, with scratch of its own."""
    widest = 1
    for t in range(begin, end):
        widest = max(widest, targets.start[t + 1] - targets.start[t])
    chunk, size, order = min(widest, LANES), (rule.nodes.shape[1] + 3) // 4 * 4, out.shape[0] - 1
    arcs = sources.middle.size
    work = Work(
        np.empty(arcs, np.int64),
        np.full(arcs, -1),
        np.empty(256, np.int64),
        np.empty((PIECES, 2)),
        np.empty((PIECES, 3)),
        np.empty((3, size)),
        np.empty((3 + size, LANES)),
        np.empty((size, chunk)),
        np.empty(size),
        np.empty(size),
        np.empty((order, size)),
        np.empty((4, chunk)),
        np.empty((order + 1, chunk)),
        np.empty((order, chunk)),
    )
    guess = np.argmax(tree.log_mass[tree.mean.shape[0] :])
    for t in range(begin, end):
        guess = attend_arc(t, targets, queries, sources, log_w, tree, threshold, stretch, rule, guess, work, out)


def _attend(targets, queries, sources, log_w, tree, threshold, stretch, rule, out):
    """Fill `out` (4 or 7, n): log Z, m (2 rows), the error that depends on the data, and the covariance (xx, xy, yy) if there is room for it.

    `threshold` is the log of what an arc of sources must contribute to be kept, `stretch` the round-off per unit of exponent.
    """
    arcs = targets.middle.size
    for task in parallel_range(TASKS):
        attend_range(arcs * task // TASKS, arcs * (task + 1) // TASKS, targets, queries, sources, log_w, tree, threshold, stretch, rule, out)


attend_serial = compiled(_attend)
attend_parallel = compiled(parallel=True)(_attend)
