r"""Tilted blocks: attention sums on the circle with relative accuracy at a cost that grows like the number of points.

Sources and targets are cut into arcs of half-width `R = sqrt(c / (beta |A|))`. Between two arcs the kernel splits exactly into a scale, a tilt of
the sources, a tilt of the targets and a tame factor `e^{<h, w>}` with `|<h, w>| <= c` (`block_sums`). Only the tame factor is approximated, all
sums are sums of non-negative terms, and so the error is small *relative to Z*, however many decades Z spans. Arcs that cannot
matter are dropped under a bound (`block_selection`). docs/attention_blocks.md has the proof and the constants.
"""

from __future__ import annotations

import numpy as np

from mfpde.attention.block_arcs import Arcs, cut
from mfpde.attention.block_bounds import EPS, ellipse_reach, interpolation_error, lebesgue, nodes_needed, round_off
from mfpde.attention.block_selection import grow
from mfpde.attention.block_sums import LANES, Queries, attend_parallel, attend_serial, chebyshev_rule
from mfpde.attention.direct import scaled_queries
from mfpde.compiled import as_float_array
from mfpde.model import Attention

WIDEST = 0.25  # half-width of an arc where the kernel is flat
PARALLEL_POINTS = 100_000  # below this a parallel region costs more than it saves
INTERPOLATION, PRUNING = 0.1, 0.1  # shares of tol


class Blocks:
    """Attention sums on the circle between fixed `sources` (n, 2) and `targets` (m, 2), in any order.

    `evaluate(weights, rows)` gives log Z, m and a computed error bound at the targets `rows`; `moments` gives the covariance too.

    Cost: plan O(n log n); evaluation about 0.1 us a point, memory O(n + m). The sums of `tol` below 1e-13 are out of reach and the bound says so.
    """

    name = "blocks"

    def __init__(self, attention: Attention, sources: np.ndarray, targets: np.ndarray, tol: float) -> None:
        self.tol = tol
        A = as_float_array(attention.A)
        self.strength = attention.beta * float(np.linalg.norm(A, 2))
        self.exponent = 2.0 if tol >= 1e-10 else 1.0 if tol >= 1e-11 else 0.35
        half_width = min(WIDEST, float(np.sqrt(self.exponent / max(self.strength, 1e-300))))
        self.exponent = min(self.exponent, self.strength * half_width**2)  # the bound c of |<h, w>|

        share = INTERPOLATION * tol / (np.exp(self.exponent) * 4)
        self.order, self.sources, source_points = self._arcs(sources, half_width, share)
        if targets is sources or np.array_equal(targets, sources):
            target_order, self.targets, target_points = self.order, self.sources, source_points
        else:
            target_order, self.targets, target_points = self._arcs(targets, half_width, share)
        self.rank = np.empty(len(target_order), np.int64)
        self.rank[target_order] = np.arange(len(target_order))
        self.arc_of = np.repeat(np.arange(len(self.targets.middle)), np.diff(self.targets.start))

        high, low = scaled_queries(attention.beta, A, target_points)
        centre_high, centre_low = scaled_queries(attention.beta, A, self.targets.centre)
        tangents = np.stack([-self.targets.centre[:, 1], self.targets.centre[:, 0]], axis=1)
        self.queries = Queries(as_float_array(high.T), as_float_array(low.T), centre_high, centre_low, attention.beta * tangents @ A.T)
        self.rule = chebyshev_rule(int(max(self.sources.nodes.max(), self.targets.nodes.max())))
        self.fixed_error = self._fixed_error()

    def _arcs(self, points: np.ndarray, half_width: float, share: float) -> tuple[np.ndarray, Arcs, np.ndarray]:
        """Order of the angles, arcs with their node counts, sorted points."""
        angles = np.arctan2(points[:, 1], points[:, 0])
        order = np.argsort(angles, kind="stable")
        sorted_points = as_float_array(points[order])
        arcs = cut(sorted_points, angles[order], 2 * half_width)
        return order, arcs._replace(nodes=nodes_needed(arcs.radius, self.strength * half_width, share)), sorted_points

    def _fixed_error(self) -> float:
        """The part of the error that does not depend on the weights: interpolation and round-off, relative to Z."""
        interpolation, nodes, off_circle = [0.0, 0.0], [0, 0], 0.0
        for side, (arcs, other) in enumerate(((self.sources, self.targets), (self.targets, self.sources))):
            count = np.diff(arcs.start)
            compressed = count > arcs.nodes
            if compressed.any():
                p, r = arcs.nodes[compressed], arcs.radius[compressed]
                reach = self.strength * float(other.radius.max())
                interpolation[side] = float(interpolation_error(p, reach, r).max())
                nodes[side] = int(p.max())
                inside = np.repeat(compressed, count)
                gap = np.abs(arcs.across + 2 * np.sin(0.5 * arcs.position * np.repeat(arcs.radius, count)) ** 2)[inside]
                off_circle = max(off_circle, float(gap.max()))
        longest = int(np.diff(self.sources.start).max())
        depth = longest / LANES + np.log2(LANES) if nodes[0] else float(longest)
        half_width = max(self.sources.radius.max(), self.targets.radius.max())
        c = self.strength * float(self.sources.radius.max() * self.targets.radius.max())
        through = lebesgue(np.array(max(nodes[1], 1)))
        error = np.exp(c) * (interpolation[1] + through * interpolation[0])
        error += round_off(nodes[0], nodes[1], c, self.strength * half_width * float(ellipse_reach(2.0, half_width)), depth)
        error += 3 * self.strength * half_width * off_circle + 150 * EPS
        return float((1 + 2 * half_width) * error)

    def _reduced(self, rows: np.ndarray) -> tuple[Arcs, Queries, np.ndarray]:
        """Arcs and queries of the targets `rows` only, and where their results belong."""
        place = self.rank[rows]
        order = np.argsort(place, kind="stable")
        place = place[order]
        arcs, count = np.unique(self.arc_of[place], return_counts=True)
        start = np.concatenate([[0], np.cumsum(count)])
        t, q = self.targets, self.queries
        targets = Arcs(start, t.centre[arcs], t.middle[arcs], t.radius[arcs], t.nodes[arcs], t.along[place], t.along_low[place], t.across[place], t.position[place])
        high, low = (as_float_array(a[:, place]) for a in (q.high, q.low))
        return targets, Queries(high, low, q.centre_high[arcs], q.centre_low[arcs], q.turn[arcs]), order

    def _sums(self, weights: np.ndarray, rows: np.ndarray | slice, size: int) -> np.ndarray:
        if isinstance(rows, slice):
            rows = np.arange(len(self.rank))[rows]
        with np.errstate(divide="ignore"):
            log_w = np.log(weights[self.order])
        tree = grow(self.sources, log_w)
        if len(rows) == len(self.rank) and np.array_equal(rows, np.arange(len(rows))):
            targets, queries, back = self.targets, self.queries, self.rank
        else:
            targets, queries, order = self._reduced(rows)
            back = np.empty(len(rows), np.int64)
            back[order] = np.arange(len(rows))
        out = np.empty((size, len(rows)))
        attend = attend_parallel if len(rows) + len(weights) >= 2 * PARALLEL_POINTS else attend_serial
        attend(targets, queries, self.sources, log_w, tree, np.log(PRUNING * self.tol / 32), 7 * np.exp(2 * self.exponent), self.rule, out)
        out[3] = self.fixed_error + 2 * out[3]
        return out[:, back]

    def evaluate(self, weights: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (r,), m (r, 2), error (r,))` at the targets `rows`.

        `error` bounds the relative error of Z beyond `8 eps |log Z|` and the absolute error of each component of m.
        """
        out = self._sums(weights, rows, 4)
        return out[0], as_float_array(out[1:3].T), out[3]

    def moments(self, weights: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (r,), m (r, 2), covariance (r, 2, 2), error (r,))` at the targets `rows`, with the attention covariance `E[(y - m)(y - m)^T]`."""
        out = self._sums(weights, rows, 7)
        return out[0], as_float_array(out[1:3].T), as_float_array(out[[4, 5, 5, 6]].T).reshape(-1, 2, 2), out[3]
