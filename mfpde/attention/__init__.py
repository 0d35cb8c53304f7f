r"""Attention sums: from a measure to `(log Z, m)` at every target.

    operator = plan(attention, geometry, sources, targets)      once
    log_z, mean = operator.evaluate(weights)                    often

An operator is a short list of *tiers*, fast ones first. Each returns its values with a computed error bound for every target;
the targets whose bound exceeds `tol` go on to the next tier. What the last tier cannot promise raises `ToleranceError`.
`tol` bounds the relative error of Z (down to its conditioning, 8 eps |log Z|: the exponential of a number known to eps)
and the absolute error of every component of m.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mfpde.errors import InputError, ToleranceError, unknown_name
from mfpde.geometry import Geometry
from mfpde.measure import check_weights
from mfpde.mesh import Mesh
from mfpde.model import Attention

TOLERANCES = (1e-14, 1e-1)


class Tier(Protocol):
    """One way to evaluate the sums.

    `evaluate(weights, rows)` returns `(log_z (r,), mean (r, d), error (r,))` at the targets `rows`, where `error` bounds both the
    relative error of Z beyond its conditioning and the absolute error of m; `inf` where the tier has nothing to say.
    """

    name: str

    def evaluate(self, weights: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


class AttentionOperator:
    """Attention of any measure on fixed sources, seen from fixed targets. Made by `plan`.

    Attributes
    ----------
    tiers : dict
        How many targets each tier served in the last evaluation, e.g. `{"fft": 900, "direct": 124}`.
    """

    def __init__(self, attention: Attention, geometry: Geometry, targets: np.ndarray, size: int, tol: float, ladder: list[Tier]) -> None:
        self.attention, self.geometry, self.tol = attention, geometry, tol
        self.targets, self.size = targets, size
        self.ladder = ladder
        self.tiers: dict[str, int] = {tier.name: 0 for tier in ladder}

    def evaluate(self, weights: Any) -> tuple[np.ndarray, np.ndarray]:
        """`(log Z (m,), mean (m, d))` for non-negative `weights` (n,) of any positive total.

        Raises `InputError` for NaN, negative or all-zero weights and `ToleranceError` if no tier reaches `tol`.
        """
        w = check_weights(weights, self.size)
        count, dim = self.targets.shape
        log_z, mean = np.empty(count), np.empty((count, dim))
        rows = np.arange(count)
        self.tiers = dict.fromkeys(self.tiers, 0)
        for tier in self.ladder:
            z, m, error = tier.evaluate(w, rows)
            good = error <= self.tol
            if good.all():  # the common case, without a copy
                log_z[rows], mean[rows] = z, m
                self.tiers[tier.name] += len(rows)
                return log_z, mean
            served = rows[good]
            log_z[served], mean[served] = z[good], m[good]
            self.tiers[tier.name] += len(served)
            rows, left = rows[~good], error[~good]
        raise ToleranceError(
            f"The attention sums miss their tolerance at {len(rows)} of {count} targets.\n"
            f"  tol = {self.tol:g}, smallest bound there {left.min():.3g}, largest {left.max():.3g}; served so far: {self.tiers}.\n"
            "  Raise tol, or use method='auto' or 'direct'."
        )

    def velocity(self, weights: Any) -> np.ndarray:
        """`v(x) = P_x V m(x)` at the targets, shape (m, d)."""
        _, mean = self.evaluate(weights)
        return self.geometry.project(self.targets, mean @ self.attention.V.T)

    def __repr__(self) -> str:
        path = " -> ".join(tier.name for tier in self.ladder)
        return f"AttentionOperator({self.size} sources, {len(self.targets)} targets, {path}, tol={self.tol:g})"
