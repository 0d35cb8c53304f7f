r"""Tilted blocks: attention sums on the circle with relative accuracy at a cost that grows like the number of points.

Sources and targets are cut into arcs of half-width `R = sqrt(c / (beta |A|))`. Between two arcs the kernel splits exactly into a scale, a tilt of
the sources, a tilt of the targets and a tame factor `e^{<h, w>}` with `|<h, w>| <= c` (`block_sums`). Only the tame factor is approximated, all
sums are sums of non-negative terms, and so the error is small *relative to Z*, however many decades Z spans. Arcs that cannot
matter are dropped under a bound (`block_selection`). docs/attention_blocks.md has the proof and the constants.
"""

from __future__ import annotations

import numpy as np

from mfpde.attention.block_arcs import Arcs, cut
from mfpde.attention.block_bounds import EPS, INTERPOLATION, PRUNING, design, round_off, summation_depth
from mfpde.attention.block_proxies import KEEP, chebyshev_rule
from mfpde.attention.block_selection import grow
from mfpde.attention.block_sums import Answer, Queries, attend_parallel, attend_serial
from mfpde.attention.direct import SERIAL_PAIRS, scaled_queries
from mfpde.compiled import as_float_array
from mfpde.model import Attention

PARALLEL_POINTS = 8_000  # sources or targets: from here on a sum takes milliseconds, and a parallel region pays


class Blocks:
    """Attention sums on the circle between fixed `sources` (n, 2) and `targets` (m, 2), in any order.

    `evaluate(weights, rows)` gives log Z, m and a computed error bound at the targets `rows`; `moments` gives the covariance too.

    Cost: plan O(n log n); evaluation about 0.1 us a point, memory O(n + m). A `tol` below 1e-12 is out of reach as soon as arcs are compressed,
    and the bound then says so. Source: derived in docs/attention_blocks.md.

    Examples
    --------
    >>> import mfpde as mf
    >>> circle = mf.Circle()
    >>> x = circle.points([0.0, 1.0, 4.0])
    >>> log_z, mean, error = Blocks(mf.Attention.identity(2, beta=100.0), x, x, tol=1e-12).evaluate(np.array([0.5, 0.5, 1e-300]))
    >>> log_z.round(6), bool(error.max() < 1e-12)
    (array([ 99.306853,  99.306853, -66.057509]), True)
    """

    name = "blocks"

    def __init__(self, attention: Attention, sources: np.ndarray, targets: np.ndarray, tol: float) -> None:
        self.attention, self.tol = attention, tol
        A = as_float_array(attention.A)
        self.strength = attention.sharpness
        self.design = design(self.strength, 1 << (len(sources) - 1).bit_length(), tol)
        self.order, self.sources, source_points = self._arcs(sources)
        if targets is sources or np.array_equal(targets, sources):
            self.target_order, self.targets, target_points = self.order, self.sources, source_points
        else:
            self.target_order, self.targets, target_points = self._arcs(targets)
        self.rank = np.empty(len(targets), np.int64)
        self.rank[self.target_order] = np.arange(len(targets))
        self.arc_of = np.repeat(np.arange(len(self.targets.middle)), np.diff(self.targets.start))

        high, low = scaled_queries(attention.beta, A, target_points)
        centre_high, centre_low = scaled_queries(attention.beta, A, self.targets.centre)
        tangents = np.stack([-self.targets.centre[:, 1], self.targets.centre[:, 0]], axis=1)
        self.queries = Queries(as_float_array(high.T), as_float_array(low.T), centre_high, centre_low, attention.beta * tangents @ A.T)
        self.rule = chebyshev_rule(int(max(self.sources.nodes.max(), self.targets.nodes.max())))
        off_circle = max(float(np.abs(np.linalg.norm(points, axis=1) - 1).max()) for points in (source_points, target_points))
        self.slack = 4 * self.strength * (off_circle + 4 * EPS)
        self.fixed_error = self._fixed_error()

    @staticmethod
    def pays(attention: Attention, sources: int, targets: int, tol: float) -> bool:
        """Whether blocks are expected to beat the direct sum. Nanoseconds measured by validation/attention_speed, one core with 512-bit vectors."""
        strength = attention.sharpness
        made = design(strength, 1 << (sources - 1).bit_length(), tol)
        whole = np.pi / made.half_width
        pairs = min(targets, whole) * min(sources, whole, 2.5 + 8 / np.sqrt(max(made.exponent, 1e-2)))
        blocks = 2e5 + 60 * (sources + targets) + 1000 * pairs
        direct = sources * targets * (2.4 + 15 * min(1.0, 3 / np.sqrt(max(strength, 1e-300))))  # it skips far terms
        return bool(blocks < (direct / 2 if sources * targets >= SERIAL_PAIRS else direct))

    def worth(self, carried: int, targets: int) -> bool:
        """Whether blocks beat the direct sum over the `carried` sources that have mass."""
        return self.pays(self.attention, carried, targets, self.tol)

    def _arcs(self, points: np.ndarray) -> tuple[np.ndarray, Arcs, np.ndarray]:
        """Order of the angles, arcs with their node counts, sorted points."""
        angles = np.arctan2(points[:, 1], points[:, 0])
        order = np.argsort(angles)
        sorted_points = as_float_array(points[order])
        arcs = cut(sorted_points, angles[order], 2 * self.design.half_width)
        return order, arcs._replace(nodes=self.design.nodes_for(arcs.radius)), sorted_points

    def _fixed_error(self) -> float:
        """The part of the error that does not depend on the weights, relative to Z: interpolation, round-off, points off the circle."""
        nodes, off_circle = [0, 0], 0.0
        for side, arcs in enumerate((self.sources, self.targets)):
            count = np.diff(arcs.start)
            compressed = count > KEEP * arcs.nodes
            if compressed.any():
                nodes[side] = int(arcs.nodes[compressed].max())
                off = np.abs(arcs.across + 2 * np.sin(0.5 * arcs.position * np.repeat(arcs.radius, count)) ** 2)
                off_circle = max(off_circle, float(off[np.repeat(compressed, count)].max()))
        source_radius, target_radius = float(self.sources.radius.max()), float(self.targets.radius.max())
        widest = max(source_radius, target_radius)
        tilt = self.strength * widest
        longest = int(np.diff(self.sources.start).max())
        depth = summation_depth(longest) if nodes[0] else float(longest)
        error = round_off(nodes[0], nodes[1], tilt * min(source_radius, target_radius), tilt, widest, depth)
        error += INTERPOLATION * self.tol if any(nodes) else 0.0
        error += 3 * tilt * off_circle + 150 * EPS
        return (1 + 2 * widest) * error

    def _reduced(self, rows: np.ndarray) -> tuple[Arcs, Queries, np.ndarray]:
        """Arcs and queries of the targets `rows` only, and where their results belong."""
        place = self.rank[rows]
        order = np.argsort(place, kind="stable")
        place = place[order]
        arcs, count = np.unique(self.arc_of[place], return_counts=True)
        start = np.concatenate([[0], np.cumsum(count)])
        t, q = self.targets, self.queries
        targets = Arcs(
            start, t.centre[arcs], t.middle[arcs], t.radius[arcs], t.nodes[arcs], t.along[place], t.along_low[place], t.across[place], t.position[place]
        )
        high, low = (as_float_array(a[:, place]) for a in (q.high, q.low))
        return targets, Queries(high, low, q.centre_high[arcs], q.centre_low[arcs], q.turn[arcs]), order

    def _answer(self, weights: np.ndarray, rows: np.ndarray | slice, *, covariance: bool) -> Answer:
        m = len(self.target_order)
        if isinstance(rows, slice):
            rows = np.arange(m)[rows]
        if len(rows) == m and np.array_equal(rows, np.arange(m)):
            targets, queries, place = self.targets, self.queries, self.target_order
        else:
            targets, queries, place = self._reduced(rows)
        r = len(rows)
        answer = Answer(place, np.empty(r), np.empty((r, 2)), np.empty(r), np.empty((r if covariance else 0, 2, 2)))
        with np.errstate(divide="ignore"):
            log_w = np.log(weights[self.order])
        attend = attend_parallel if r + len(weights) >= 2 * PARALLEL_POINTS else attend_serial
        tree = grow(self.sources, log_w)
        # what is dropped moves m by twice its share, and the covariance by the square of a distance of 2, which beta |A| magnifies
        threshold = float(np.log(PRUNING * self.tol / 32 / (1 + self.strength if covariance else 1.0)))
        attend(targets, queries, self.sources, log_w, tree, (threshold, self.slack), 7 * np.exp(2 * self.design.exponent), self.rule, answer)
        answer.error[:] += self.fixed_error
        return answer

    def evaluate(self, weights: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (r,), m (r, 2), error (r,))` at the targets `rows`.

        `error` bounds the relative error of Z beyond `8 eps |log Z|` and the absolute error of each component of m.
        """
        answer = self._answer(weights, rows, covariance=False)
        return answer.log_z, answer.mean, answer.error

    def moments(self, weights: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (r,), m (r, 2), covariance (r, 2, 2), error (r,))` at the targets `rows`, with the attention covariance `E[(y - m)(y - m)^T]`."""
        answer = self._answer(weights, rows, covariance=True)
        return answer.log_z, answer.mean, answer.covariance, answer.error
