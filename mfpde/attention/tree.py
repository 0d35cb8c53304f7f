r"""Attention sums by pruning: every source that matters, none that provably does not; any A, any weights, any beta.

Put z = beta A x. As a function of z, log Z is convex with gradient m, because Z is a sum of exponentials. Sources are unit vectors,
kept in a balanced tree of caps; targets in leaves of the same kind of tree. For a target leaf with centre z_c and reach rho = max |z - z_c|:

* *below*: a partial sum at z_c gives L_c <= log Z(z_c) with its gradient p, and by convexity `log Z(z) >= L_c + <z - z_c, p>` on the whole leaf;
* *above*: the sources of a node with log mass M in a cap (c, alpha) contribute at most
  `M + max_cap <z_c, y> + <z - z_c, p> + rho max_cap |y - p|`, for `<z - z_c, y - p> <= rho |y - p|`.

The difference of the two does not depend on z: a node is dropped for the whole leaf at once, and the dropped bounds are added up. What is kept is
copied together and summed by a vectorised loop relative to the tangent plane, so a search for the largest term is rarely needed.
Sources are measured from p: a term is `e^{<z, y - p> + log w}`, its rounding error eps |z| |y - p|. Where that is too much (two far clusters that tie at
large beta), the leaf is summed like `direct`. Derived in docs/attention_sphere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from mfpde.attention.direct import EPS, REACH, _attend_serial, scaled_queries, score_gap
from mfpde.attention.exp2 import LOG2E, exp2
from mfpde.compiled import as_float_array, compiled, parallel_range
from mfpde.errors import InputError
from mfpde.model import Attention

TARGET_LEAF, SOURCE_LEAF = 64, 64  # points in a leaf, at most; the time is flat between 32 and 128
NOTHING = -1e300  # the log of no mass
COARSE = 7.0  # the partial sum at a leaf centre lacks at most e^-7 of Z
CHUNK = 1024  # sources summed before the subtotal is put away: keeps them in the first cache and the round-off small
TOP = 550.0  # exponents (base e) up to which the vectorised loop needs no search for the largest term
FLOOR = 7e-13  # round-off of the vectorised sum: polynomial, logarithms of weights down to e^-745, subtotals
LEAVES_AT_A_TIME = 8  # per thread; clusters make the leaves of one half of the tree dearer than those of the other
SERIAL_PAIRS = 300_000  # below this a parallel region costs more than it saves
SUMS = {"contract", "reassoc", "nsz", "arcp"}  # a sum may be reordered; NaN and infinity keep their meaning
MAXIMA = SUMS | {"nnan"}  # a largest of finite numbers


class CapTree(NamedTuple):
    """A perfect binary tree over unit vectors; the children of node q are 2q + 1 and 2q + 2, its points `first[q] : last[q]` in tree order."""

    order: np.ndarray  # (n,) tree order
    points: np.ndarray  # (3, n) in tree order
    first: np.ndarray  # (nodes,)
    last: np.ndarray  # (nodes,)
    centre: np.ndarray  # (nodes, 3) unit vectors
    cosine: np.ndarray  # (nodes,) of the angle of the cap about the centre that holds the points
    sine: np.ndarray  # (nodes,)
    radius: np.ndarray  # (nodes,) largest distance |y - centre|
    thickness: float  # max | |y| - 1 |

    @property
    def leaves(self) -> slice:
        """The nodes without children."""
        return slice((len(self.first) - 1) // 2, len(self.first))


def cap_tree(points: np.ndarray, leaf: int) -> CapTree:
    """Split `points` (n, d <= 3, unit vectors) in halves across their longest axis until at most `leaf` >= 2 are left.

    Cost: O(n log n) array operations, about .3 s at 163842 points.

    Examples
    --------
    >>> tree = cap_tree(np.eye(3), leaf=2)
    >>> tree.first, tree.last
    (array([0, 0, 1]), array([3, 1, 3]))
    """
    size, dim = points.shape
    x = np.zeros((size, 3))
    x[:, :dim] = points
    norms = np.linalg.norm(x, axis=1)
    depth = max(0, math.ceil(math.log2(size / leaf)))
    order = np.arange(size)
    levels = []
    for level in range(depth + 1):
        edges = size * np.arange(2**level + 1) >> level
        start, count = edges[:-1], np.diff(edges)
        inside = np.repeat(np.arange(2**level), count)
        total = np.add.reduceat(x, start, axis=0)
        length = np.linalg.norm(total, axis=1, keepdims=True)
        centre = np.where(length > 1e-8 * count[:, None], total / np.maximum(length, 1e-300), [1.0, 0.0, 0.0])
        radius = np.maximum.reduceat(np.linalg.norm(x - centre[inside], axis=1), start)
        chord = np.maximum.reduceat(np.linalg.norm(x / norms[:, None] - centre[inside], axis=1), start)
        angle = 2 * np.arcsin(np.minimum(chord / 2 + 2 * EPS, 1.0))
        levels.append((start, edges[1:], centre, np.cos(angle), np.sin(angle), radius + 4 * EPS))
        if level < depth:
            low, high = np.minimum.reduceat(x, start, axis=0), np.maximum.reduceat(x, start, axis=0)
            axis = np.argmax(high - low, axis=1)
            every = np.arange(2**level)
            offset, extent = low[every, axis], (high - low)[every, axis]
            place = (x[np.arange(size), axis[inside]] - offset[inside]) / np.maximum(extent, 1e-300)[inside]
            resort = np.argsort(inside + 0.999 * place)  # any split is a valid one: ties and rounding do not matter
            x, order, norms = x[resort], order[resort], norms[resort]
    first, last, centre, cosine, sine, radius = (np.concatenate(parts) for parts in zip(*levels, strict=True))
    thickness = float(np.abs(norms - 1).max()) + 8 * EPS
    return CapTree(order, np.ascontiguousarray(x.T), first, last, as_float_array(centre), cosine, sine, radius, thickness)


class Masses(NamedTuple):
    """What a call adds to the source tree."""

    log_weights: np.ndarray  # (n,) in tree order
    log2_weights: np.ndarray  # (n,) the same, base 2
    log_mass: np.ndarray  # (nodes,)
    barycentre: np.ndarray  # (nodes, 3)


@compiled
def node_masses(tree, log_weights, log_mass, barycentre):
    """Log mass and barycentre of every node, leaves first."""
    nodes = len(tree.first)
    leaf = (nodes - 1) // 2
    for q in range(nodes - 1, -1, -1):
        barycentre[q, :] = 0.0
        largest = NOTHING
        if q >= leaf:
            for j in range(tree.first[q], tree.last[q]):
                largest = max(largest, log_weights[j])
        else:
            largest = max(log_mass[2 * q + 1], log_mass[2 * q + 2])
        log_mass[q] = NOTHING
        if largest <= NOTHING:
            continue
        total = 0.0
        if q >= leaf:
            for j in range(tree.first[q], tree.last[q]):
                g = math.exp(log_weights[j] - largest)
                total += g
                for k in range(3):
                    barycentre[q, k] += g * tree.points[k, j]
        else:
            for child in (2 * q + 1, 2 * q + 2):
                g = math.exp(log_mass[child] - largest)
                total += g
                for k in range(3):
                    barycentre[q, k] += g * barycentre[child, k]
        log_mass[q] = largest + math.log(total)
        for k in range(3):
            barycentre[q, k] /= total


@compiled(inline="always")
def cap_maximum(z, norm, tree, q):
    """Upper bound of `<z, y>` over the points of node q: |z| cos(theta - alpha), theta the angle between z and the centre."""
    if norm == 0.0:
        return 0.0
    t = (z[0] * tree.centre[q, 0] + z[1] * tree.centre[q, 1] + z[2] * tree.centre[q, 2]) / norm
    if t >= tree.cosine[q]:
        return norm * (1.0 + tree.thickness)
    return norm * (t * tree.cosine[q] + math.sqrt(max(0.0, 1.0 - t * t)) * tree.sine[q] + tree.thickness)


@compiled(inline="always")
def jensen(z, masses, q):
    """Lower bound `M + <z, ybar>` of the log of what node q contributes."""
    return masses.log_mass[q] + z[0] * masses.barycentre[q, 0] + z[1] * masses.barycentre[q, 1] + z[2] * masses.barycentre[q, 2]


@compiled(fastmath=MAXIMA)
def leaf_maximum(z, y, log2_weights, first, last):
    """Largest term, base 2, of the sources first : last."""
    a, b, c = z[0] * LOG2E, z[1] * LOG2E, z[2] * LOG2E
    largest = -1e308
    for j in range(first, last):
        e = log2_weights[j] + (a * y[0, j] + b * y[1, j] + c * y[2, j])
        largest = e if e > largest else largest
    return largest


@compiled(fastmath=SUMS)
def leaf_sum(z, y, log2_weights, shift, first, last):
    """`sum g (1, y)` with g = 2^(term - shift) over the sources first : last."""
    a, b, c = z[0] * LOG2E, z[1] * LOG2E, z[2] * LOG2E
    total, s0, s1, s2 = 0.0, 0.0, 0.0, 0.0
    for j in range(first, last):
        g = exp2((log2_weights[j] - shift) + (a * y[0, j] + b * y[1, j] + c * y[2, j]))
        total += g
        s0 += g * y[0, j]
        s1 += g * y[1, j]
        s2 += g * y[2, j]
    return total, s0, s1, s2


@compiled
def tangent_plane(z, tree, masses, stack, p):
    """Fill p and return L_c: value and gradient at z of the log of a partial sum that lacks at most e^-COARSE of Z."""
    leaf = (len(tree.first) - 1) // 2
    norm = math.sqrt(z[0] ** 2 + z[1] ** 2 + z[2] ** 2)
    # the best lower bound: Jensen at nodes, single terms at leaves; branch and bound, the better child first
    best = jensen(z, masses, 0)
    stack[0], waiting = 0, 1
    while waiting > 0:
        waiting -= 1
        q = stack[waiting]
        if masses.log_mass[q] <= NOTHING or masses.log_mass[q] + cap_maximum(z, norm, tree, q) <= best:
            continue
        if q >= leaf:
            best = max(best, leaf_maximum(z, tree.points, masses.log2_weights, tree.first[q], tree.last[q]) / LOG2E)
            continue
        left, right = jensen(z, masses, 2 * q + 1), jensen(z, masses, 2 * q + 2)
        best = max(best, left, right)
        stack[waiting] = 2 * q + 1 if left < right else 2 * q + 2
        stack[waiting + 1] = 2 * q + 2 if left < right else 2 * q + 1
        waiting += 2
    # every term is below e^best now, up to round-off: those of leaves that were not opened lie below a bound that was
    total, s0, s1, s2 = 0.0, 0.0, 0.0, 0.0
    size = tree.last[0]
    stack[0], waiting = 0, 1
    while waiting > 0:
        waiting -= 1
        q = stack[waiting]
        share = math.log((tree.last[q] - tree.first[q]) / size)
        if masses.log_mass[q] <= NOTHING or masses.log_mass[q] + cap_maximum(z, norm, tree, q) < best - COARSE + share:
            continue
        if q >= leaf:
            g, g0, g1, g2 = leaf_sum(z, tree.points, masses.log2_weights, best * LOG2E, tree.first[q], tree.last[q])
            total, s0, s1, s2 = total + g, s0 + g0, s1 + g1, s2 + g2
            continue
        stack[waiting], stack[waiting + 1] = 2 * q + 1, 2 * q + 2
        waiting += 2
    p[0], p[1], p[2] = s0 / total, s1 / total, s2 / total
    return best + math.log(total)


@compiled
def keep(z, reach, lower, p, tree, masses, log_tol, stack, kept):
    """Fill `kept` with ranges of points whose complement weighs at most e^log_tol of Z on the whole target leaf.

    Returns (number of ranges, number of points, bound of the dropped share of Z, max |y - p| over the kept points).
    """
    leaf = (len(tree.first) - 1) // 2
    norm = math.sqrt(z[0] ** 2 + z[1] ** 2 + z[2] ** 2)
    slack = 3.0
    while True:
        ranges, points, dropped, spread = 0, 0, 0.0, 0.0
        stack[0], waiting = 0, 1
        while waiting > 0:
            waiting -= 1
            q = stack[waiting]
            if masses.log_mass[q] <= NOTHING:
                continue
            distance = tree.radius[q] + math.sqrt((tree.centre[q, 0] - p[0]) ** 2 + (tree.centre[q, 1] - p[1]) ** 2 + (tree.centre[q, 2] - p[2]) ** 2)
            upper = masses.log_mass[q] + cap_maximum(z, norm, tree, q) + reach * distance - lower
            if upper < log_tol - slack:
                dropped += math.exp(upper)
            elif q >= leaf:
                if ranges > 0 and kept[ranges - 1, 1] == tree.first[q]:  # leaves come in their order: neighbours make one range
                    kept[ranges - 1, 1] = tree.last[q]
                else:
                    kept[ranges, 0], kept[ranges, 1] = tree.first[q], tree.last[q]
                    ranges += 1
                points += tree.last[q] - tree.first[q]
                spread = max(spread, distance)
            else:
                stack[waiting], stack[waiting + 1] = 2 * q + 2, 2 * q + 1
                waiting += 2
        if dropped <= math.exp(log_tol):
            return ranges, points, dropped, spread
        slack += 2.0


@compiled
def gather(values, kept, ranges, offset, out):
    """Copy the kept `values`, less `offset`, to the front of `out`."""
    place = 0
    for r in range(ranges):
        part = values[kept[r, 0] : kept[r, 1]]
        here = out[place : place + part.size]
        for j in range(part.size):
            here[j] = part[j] - offset
        place += part.size


@compiled(fastmath=SUMS)
def softmax_sum(a, b, c, y0, y1, y2, log2_weights, shift):
    """`sum_j 2^(<(a, b, c), y_j> + l_j - shift) (1, y_j)`. The time of everything is spent here: a plain loop over whole arrays, or it does not vectorise."""
    total, s0, s1, s2 = 0.0, 0.0, 0.0, 0.0
    for j in range(log2_weights.size):
        g = exp2((log2_weights[j] - shift) + (a * y0[j] + b * y1[j] + c * y2[j]))
        total += g
        s0 += g * y0[j]
        s1 += g * y1[j]
        s2 += g * y2[j]
    return total, s0, s1, s2


@compiled(fastmath=MAXIMA)
def largest_term(a, b, c, y0, y1, y2, log2_weights):
    """`max_j <(a, b, c), y_j> + l_j`."""
    largest = -1e308
    for j in range(log2_weights.size):
        e = log2_weights[j] + (a * y0[j] + b * y1[j] + c * y2[j])
        largest = e if e > largest else largest
    return largest


@compiled
def sum_kept(queries, first, last, y, log2_weights, shifts, sums):
    """`sums[i - first] = sum_j e^<q_i, y_j> 2^(l_j - shift_i) (1, y_j)` for the targets i = first : last; y (3, n), shifts (t,), sums (t, 4)."""
    sums[:] = 0.0
    for begin in range(0, log2_weights.size, CHUNK):
        end = min(begin + CHUNK, log2_weights.size)
        y0, y1, y2, l2 = y[0, begin:end], y[1, begin:end], y[2, begin:end], log2_weights[begin:end]
        for i in range(first, last):
            part = softmax_sum(queries[i, 0] * LOG2E, queries[i, 1] * LOG2E, queries[i, 2] * LOG2E, y0, y1, y2, l2, shifts[i - first])
            for k in range(4):
                sums[i - first, k] += part[k]


def _attend_leaves(first, last, centres, reaches, high, low, tree, masses, tol, log_z, mean, error, pairs):
    """All targets, leaf by leaf: bounds, selection, sum. `centres` (t, 3) and `reaches` (t,) describe the leaves in z, high + low (n, 3) the queries."""
    source_leaves = len(tree.first) // 2 + 1
    depth = int(math.log2(source_leaves)) + 2
    log_tol = math.log(tol / 8)
    origin = np.zeros(3)
    for t in parallel_range(first.size):
        begin, end = first[t], last[t]
        pairs[t] = 0
        if begin == end:
            continue
        z, reach = centres[t], reaches[t]
        stack, p, kept = np.empty(2 * depth + 2, dtype=np.int64), np.empty(3), np.empty((source_leaves, 2), dtype=np.int64)
        lower = tangent_plane(z, tree, masses, stack, p)
        ranges, points, dropped, spread = keep(z, reach, lower, p, tree, masses, log_tol, stack, kept)
        pairs[t] = points * (end - begin)

        y, logs = np.empty((3, points)), np.empty(points)
        norm = math.sqrt(z[0] ** 2 + z[1] ** 2 + z[2] ** 2) + reach
        rounding = 16 * EPS * norm * spread + FLOOR
        if rounding <= tol / 2:
            log_shift = lower - (z[0] * p[0] + z[1] * p[1] + z[2] * p[2])  # the tangent plane is <z, p> + log_shift
            for k in range(3):
                gather(tree.points[k], kept, ranges, p[k], y[k])
            gather(masses.log2_weights, kept, ranges, log_shift * LOG2E, logs)
            sums, shifts = np.empty((end - begin, 4)), np.zeros(end - begin)
            if reach * spread > TOP:  # a steep leaf: terms may exceed the tangent plane by e^(reach spread)
                for i in range(begin, end):
                    shifts[i - begin] = largest_term(high[i, 0] * LOG2E, high[i, 1] * LOG2E, high[i, 2] * LOG2E, y[0], y[1], y[2], logs)
            sum_kept(high, begin, end, y, logs, shifts, sums)
            for i in range(begin, end):
                total = sums[i - begin, 0]
                for k in range(3):
                    mean[i, k] = p[k] + sums[i - begin, 1 + k] / total
                log_z[i] = score_gap(high[i], low[i], p, origin) + (log_shift + (shifts[i - begin] / LOG2E + math.log(total)))
                error[i] = 2 * dropped + rounding
        else:  # far ties: the careful sum, over what was kept
            for k in range(3):
                gather(tree.points[k], kept, ranges, 0.0, y[k])
            gather(masses.log_weights, kept, ranges, 0.0, logs)
            _attend_serial(high[begin:end], low[begin:end], y.T.copy(), logs, log_z[begin:end], mean[begin:end])
            error[begin:end] = 2 * dropped + REACH


_attend_leaves_serial = compiled(_attend_leaves)
_attend_leaves_parallel = compiled(parallel=True)(_attend_leaves)


class Tree:
    """Pruned sums over caps for sources and targets on the circle or the sphere; `evaluate` serves any subset of the targets.

    Rigorous truncation: the bound of what was dropped is part of the error returned. Cost of a call: about .4 ns a kept pair and core with 512-bit
    vectors (docs/attention_sphere.md has the numbers), memory about 15 doubles a point, and 4 a kept source and thread.

    Parameters
    ----------
    attention : Attention
        Any A; `beta` finite.
    sources, targets : (n, d), (m, d)
        Unit vectors, d <= 3. Two dimensions are treated as three with a zero.
    tol : float
        The bound to reach for the relative error of Z (beyond its conditioning) and the absolute error of m; from 2e-14.

    Attributes
    ----------
    pairs : int
        How many pairs the last evaluation summed, of `len(rows) * len(sources)`.

    Examples
    --------
    >>> import mfpde as mf
    >>> mesh = mf.Sphere().mesh(642)
    >>> tree = Tree(mf.Attention.identity(3, beta=3), mesh.centres, mesh.centres, tol=1e-10)
    >>> log_z, mean, error = tree.evaluate(mesh.volumes / (4 * np.pi), np.arange(3))
    >>> bool(abs(log_z - np.log(np.sinh(3) / 3)).max() < 1e-3), bool(error.max() < 1e-10)  # exact for the uniform density
    (True, True)
    """

    name = "tree"

    def __init__(self, attention: Attention, sources: np.ndarray, targets: np.ndarray, tol: float) -> None:
        if attention.dim > 3:
            raise InputError(f"The pruned sums are written for three dimensions or fewer.\n  attention acts on R^{attention.dim}.\n  Use method='direct'.")
        self.tol = tol
        self.dim = attention.dim
        self.sources = cap_tree(sources, SOURCE_LEAF)
        leaves = cap_tree(targets, TARGET_LEAF)
        self.rank = np.argsort(leaves.order)
        self.high, self.low = np.zeros((len(targets), 3)), np.zeros((len(targets), 3))
        for z, part in zip((self.high, self.low), scaled_queries(attention.beta, as_float_array(attention.A), as_float_array(targets)), strict=True):
            z[:, : self.dim] = part[leaves.order]
        self.edges = np.append(leaves.first[leaves.leaves], len(targets))
        self.centres = as_float_array(leaves.centre[leaves.leaves, : self.dim] @ (attention.beta * attention.A.T))
        self.centres = np.pad(self.centres, ((0, 0), (0, 3 - self.dim)))
        away = np.linalg.norm(self.high - np.repeat(self.centres, np.diff(self.edges), axis=0), axis=1)
        self.reaches = np.maximum.reduceat(away, self.edges[:-1]) * (1 + 8 * EPS)
        self.pairs = 0

    def moments(self, weights: np.ndarray) -> Masses:
        """Log masses and barycentres of the source nodes for one set of weights."""
        with np.errstate(divide="ignore"):
            log_weights = np.maximum(np.log(weights[self.sources.order]), NOTHING)
        nodes = len(self.sources.first)
        masses = Masses(log_weights, log_weights * LOG2E, np.empty(nodes), np.empty((nodes, 3)))
        node_masses(self.sources, log_weights, masses.log_mass, masses.barycentre)
        return masses

    def evaluate(self, weights: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (r,), m (r, d), error (r,))` at the targets `rows`."""
        masses = self.moments(weights)
        wanted = self.rank[rows]
        sort = np.argsort(wanted)
        picked = wanted[sort]
        edges = np.searchsorted(picked, self.edges)
        log_z, mean, error = np.empty(len(rows)), np.empty((len(rows), 3)), np.empty(len(rows))
        pairs = np.empty(len(edges) - 1, dtype=np.int64)
        kernel = _attend_leaves_serial if len(rows) * len(weights) < SERIAL_PAIRS else _attend_leaves_parallel
        with numba.parallel_chunksize(LEAVES_AT_A_TIME):
            kernel(
                edges[:-1], edges[1:], self.centres, self.reaches, self.high[picked], self.low[picked],
                self.sources, masses, self.tol, log_z, mean, error, pairs,
            )  # fmt: skip
        self.pairs = int(pairs.sum())
        back = np.empty_like(sort)
        back[sort] = np.arange(len(rows))
        return log_z[back], mean[back, : self.dim], error[back]
