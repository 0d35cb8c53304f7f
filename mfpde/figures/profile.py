"""The density of a law on the circle as steps: what curves, images, films and pages draw."""

from __future__ import annotations

import numpy as np

from mfpde.figures.style import TWO_PI
from mfpde.measure import Measure
from mfpde.methods.cell_measure import CellMeasure

BINS = 360  # for moving cells: a degree, which is a pixel or two of an image


def profile(measure: Measure) -> tuple[np.ndarray, np.ndarray]:
    """`(density (N,), edges (N + 1,))` over one turn: of the cells, of moving cells by exact masses of one degree, or a histogram of tokens.

    No mass is lost: `sum(density * diff(edges))` is the mass of the law. A histogram has about twice as many bins as the root of the number of
    tokens, at least 16 and at most 128, and directions of the axes, where clusters like to be, are centres of bins.

    >>> import mfpde as mf
    >>> run = mf.solve(mf.cases.poisson(t_end=1.0)[0], mf.Lagrangian(cells=32))
    >>> density, edges = profile(run.final)
    >>> len(density), bool(abs(density @ np.diff(edges) - 1) < 1e-12)
    (360, True)
    """
    if measure.mesh is not None:
        return measure.density(), TWO_PI * np.arange(len(measure) + 1) / len(measure)
    if isinstance(measure, CellMeasure):
        edges = TWO_PI * np.arange(BINS + 1) / BINS
        return np.diff(measure.cumulative(edges)) / (TWO_PI / BINS), edges
    bins = int(np.clip(2 * np.sqrt(len(measure)), 16, 128)) // 4 * 4
    turns = measure.angles() * (bins / TWO_PI) + 0.5
    return np.bincount(turns.astype(int) % bins, measure.weights, bins) * (bins / TWO_PI), TWO_PI * (np.arange(bins + 1) - 0.5) / bins
