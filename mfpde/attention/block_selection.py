r"""Which arcs of sources matter to an arc of targets: rigorous bounds from both sides, searched in a tree.

On an arc of sources with mass M, mean `ybar` and the score `<q, y>`, q = beta A x,

    log M + <q, ybar>  <=  log sum_j w_j e^{<q, y_j>}  <=  log M + log( (1 - f) e^{low} + f e^{high} ),   f = (<q, ybar> - low) / (high - low)

(Jensen from below; the chord of exp over the range [low, high] of the scores from above). The lower bound is linear in q, so it holds along
a whole arc of targets. An arc of sources is dropped where its upper bound lies below e^{threshold} times the best lower bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mfpde.attention.block_arcs import Arcs
from mfpde.attention.exponential import exponential
from mfpde.compiled import compiled

PIECES = 2  # parts of a target arc that are bounded on their own


class Tree(NamedTuple):
    """Binary tree over the arcs of sources: node 1 is the root, i has the children 2i and 2i + 1, the leaves are the arcs.

    Attributes
    ----------
    log_mass : (2L,) log of the mass below a node, -inf where there is none.
    ends : (2L, 2) angles of the first and the last source with mass; `low`, `high`, `middle` (2L, 2) the points there and half-way.
    cosine : (2L,) of the half-width; `chord` (2L,) largest distance from `middle`.
    mean : (L, 2) mean of a leaf.
    """

    log_mass: np.ndarray
    ends: np.ndarray
    low: np.ndarray
    high: np.ndarray
    middle: np.ndarray
    cosine: np.ndarray
    chord: np.ndarray
    mean: np.ndarray


def grow(sources: Arcs, log_w: np.ndarray) -> Tree:
    """The tree of the weights `exp(log_w)` on `sources`."""
    leaves = 1 << max(0, (len(sources.middle) - 1).bit_length())
    tree = Tree(
        *(np.empty(shape) for shape in (2 * leaves, (2 * leaves, 2), (2 * leaves, 2), (2 * leaves, 2), (2 * leaves, 2), 2 * leaves, 2 * leaves, (leaves, 2)))
    )
    _fill(tree, sources, log_w)
    return tree


@compiled(error_model="numpy", fastmath={"nnan", "nsz", "contract"})
def _highest(values, first, last):
    top = values[first]
    for j in range(first, last):
        if values[j] > top:
            top = values[j]
    return top


@compiled(error_model="numpy")
def _fill(tree, sources, log_w):
    leaves = tree.mean.shape[0]
    tree.log_mass[:] = -np.inf
    tree.mean[:] = 0.0
    w = np.empty(np.max(np.diff(sources.start)))
    for b in range(sources.middle.size):
        first, last = sources.start[b], sources.start[b + 1]
        top = _highest(log_w, first, last)
        if top == -np.inf:
            continue
        while log_w[first] == -np.inf:
            first += 1
        while log_w[last - 1] == -np.inf:
            last -= 1
        for j in range(first, last):
            w[j - first] = exponential(log_w[j] - top)
        mass, along, across = 0.0, 0.0, 0.0
        for j in range(first, last):
            mass += w[j - first]
            along += w[j - first] * sources.along[j]
            across += w[j - first] * sources.across[j]
        along, across = along / mass, across / mass
        cx, cy = sources.centre[b]
        node = leaves + b
        tree.log_mass[node] = top + math.log(mass)
        tree.mean[b] = cx - along * cy + across * cx, cy + along * cx + across * cy
        tree.ends[node] = sources.middle[b] + sources.radius[b] * sources.position[first], sources.middle[b] + sources.radius[b] * sources.position[last - 1]
    for node in range(leaves - 1, 0, -1):
        a, b = 2 * node, 2 * node + 1
        if tree.log_mass[a] < tree.log_mass[b]:
            heavy, light = b, a
        else:
            heavy, light = a, b
        if tree.log_mass[heavy] == -np.inf:
            continue
        tree.log_mass[node] = tree.log_mass[heavy] + math.log1p(math.exp(tree.log_mass[light] - tree.log_mass[heavy]))
        tree.ends[node, 0] = tree.ends[a, 0] if tree.log_mass[a] > -np.inf else tree.ends[b, 0]
        tree.ends[node, 1] = tree.ends[b, 1] if tree.log_mass[b] > -np.inf else tree.ends[a, 1]
    for node in range(1, 2 * leaves):
        if tree.log_mass[node] > -np.inf:
            first, last = tree.ends[node]
            half = 0.5 * (last - first)
            tree.low[node] = math.cos(first), math.sin(first)
            tree.high[node] = math.cos(last), math.sin(last)
            tree.middle[node] = math.cos(first + half), math.sin(first + half)
            tree.cosine[node] = math.cos(half)
            tree.chord[node] = 2 * math.sin(0.5 * half)


@compiled(inline="always")
def support(tree, node, qx, qy, norm):
    """max <q, y> over the arc of `node`; `norm` = |q|."""
    if qx * tree.middle[node, 0] + qy * tree.middle[node, 1] >= norm * tree.cosine[node]:
        return norm
    return max(qx * tree.low[node, 0] + qy * tree.low[node, 1], qx * tree.high[node, 0] + qy * tree.high[node, 1])


@compiled(error_model="numpy")
def chord_bound(tree, leaf, mean_score, qx, qy, norm):
    """log( (1-f) e^low + f e^high ) - mean_score, the excess of the upper bound over Jensen's."""
    high = support(tree, leaf, qx, qy, norm) - mean_score
    low = -support(tree, leaf, -qx, -qy, norm) - mean_score
    if high - low < 1e-9:
        return max(high, 0.0)
    # the mean is rounded: sources far lighter than that may still sit at the upper end
    f = min(max(-low / (high - low), 0.0) + 1e-15 * (1.0 + norm / (high - low)), 1.0)
    return high + math.log(f + (1.0 - f) * math.exp(low - high))


@compiled(error_model="numpy")
def select(tree, query, turn, limits, guess, kept, mark, stamp, stack):
    r"""Arcs that matter to the targets `q + s turn + ...`: returns (number kept, best arc, dropped relative to Z) and fills `kept`.

    `query` (PIECES, 2) holds beta A x and `turn` (PIECES, 2) beta A tau at the middle of each piece; `turn` is scaled by the sine of the
    half-width and `turn[:, 2]` holds 1 - cos of it. `limits` = (threshold, slack), slack the round-off of a score and what points off the
    circle may add to it. `mark[s] == stamp` says that s is kept already.
    """
    threshold, slack_of_scores = limits
    leaves = tree.mean.shape[0]
    count, best, dropped = 0, guess, 0.0
    reference = guess
    for piece in range(query.shape[0]):
        qx, qy = query[piece, 0], query[piece, 1]
        bx, by, bend = turn[piece, 0], turn[piece, 1], turn[piece, 2]
        norm = math.hypot(qx, qy)
        turn_norm = math.hypot(bx, by)
        # the best lower bound, by depth-first search from a good guess
        best_score = tree.log_mass[leaves + best] + qx * tree.mean[best, 0] + qy * tree.mean[best, 1]
        depth = 1
        stack[0] = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if tree.log_mass[node] == -np.inf or tree.log_mass[node] + support(tree, node, qx, qy, norm) <= best_score:
                continue
            if node >= leaves:
                leaf = node - leaves
                score = tree.log_mass[node] + qx * tree.mean[leaf, 0] + qy * tree.mean[leaf, 1]
                if score > best_score:
                    best, best_score = leaf, score
            else:
                stack[depth] = 2 * node
                stack[depth + 1] = 2 * node + 1
                depth += 2
        if piece == 0:
            reference = best
        best_score -= slack_of_scores
        mx, my = tree.mean[best, 0], tree.mean[best, 1]
        # everything that may come within the threshold of it anywhere on the piece
        loss = 0.0
        depth = 1
        stack[0] = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if tree.log_mass[node] == -np.inf or (node >= leaves and mark[node - leaves] == stamp):
                continue
            dx, dy = tree.middle[node, 0] - mx, tree.middle[node, 1] - my
            slack = abs(bx * dx + by * dy) + bend * abs(qx * dx + qy * dy) + tree.chord[node] * (turn_norm + bend * norm)
            excess = tree.log_mass[node] + slack - best_score
            gap = excess + support(tree, node, qx, qy, norm)
            if gap > threshold and node >= leaves:
                leaf = node - leaves
                mean_score = qx * tree.mean[leaf, 0] + qy * tree.mean[leaf, 1]
                gap = excess + mean_score + chord_bound(tree, node, mean_score, qx, qy, norm)
                if gap > threshold:
                    kept[count] = leaf
                    mark[leaf] = stamp
                    count += 1
                    continue
            if gap > threshold:
                stack[depth] = 2 * node
                stack[depth + 1] = 2 * node + 1
                depth += 2
            else:
                loss += math.exp(gap)
        dropped = max(dropped, loss)
    return count, reference, dropped
