r"""Fewer points with the same tame sum: an arc of sources becomes proxies, an arc of targets becomes stations, both at Chebyshev nodes.

    compress   a_j = w_j e^{<g, w_j>}, then p proxies at Chebyshev nodes that carry the same Chebyshev moments
    stations   sum over proxies of a e^{<h, w>} (1, w) at the targets, or at Chebyshev nodes if these are fewer
    expand     from the stations to the targets, through Chebyshev coefficients
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mfpde.attention.block_bounds import GROUP, LANES
from mfpde.attention.exponential import exponential
from mfpde.compiled import compiled

KEEP = 2  # an arc with up to KEEP p points is summed point by point: compression would not pay
FUSED = {"contract"}  # a*b + c in one rounding
ANY_ORDER = {"contract", "reassoc", "nsz"}  # and sums in any order, so that they run in vector registers


class Chebyshev(NamedTuple):
    """`nodes[p]` (p,) on [-1, 1]; `weights[p]` (p, p) turns moments (rows) into weights at the nodes, `coefficients[p]` values (rows) into coefficients."""

    nodes: np.ndarray
    weights: np.ndarray
    coefficients: np.ndarray


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
