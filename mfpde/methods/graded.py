r"""Where to put light tokens: a placement found by replay, for runs that hang on tails.

Tokens of equal mass resolve nothing lighter than one of them. A cluster that leaves its place does so along the tail it trails, and tails of
mass e^{-30} and less rule the moment. The tokens of a tail start beside the points where the flow parts. So: run tokens of equal mass; where two neighbours
have come apart furthest, cut their shares of the mass into parts and run again, until the tokens beside every parting are light enough. No token is ever
divided under way, nothing is interpolated, and the weights are exact: an independent check of moving cells (docs/moving_cells).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfpde.errors import NumericalError
from mfpde.geometry import Circle
from mfpde.initial import CircleLaw
from mfpde.measure import Measure

PARTS = 32  # of a share, each time: the tail beside a parting is resolved to a thirtieth of itself at every depth
NEAR = 40  # tokens: wide gaps this near to a wider one belong to the same parting
FAR = 0.1  # radians between neighbours that have parted
LIGHTEST = 1e-13  # shares are differences of levels in [0, 1]


def graded_nodes(law: CircleLaw, n: int, tail: float, widest_gaps: Callable[[Measure], np.ndarray]) -> Measure:
    """Tokens on the circle of n equal shares, finer where neighbours part, down to shares of `tail`.

    `widest_gaps(measure)` (m,) runs the tokens and returns the largest angle ever between each one and the next. About log(1 / (n tail)) / 3 runs.
    """
    from scipy.ndimage import maximum_filter1d

    edges = np.linspace(0, 1, n + 1)
    for _ in range(20):
        shares = np.diff(edges)
        start = Measure(Circle().points(law.cumulative.inverse(edges[:-1] + 0.5 * shares)), shares)
        gaps = widest_gaps(start)
        parted = (gaps > FAR) & (gaps >= maximum_filter1d(gaps, 2 * NEAR + 1, mode="wrap"))
        heavy = np.zeros(len(shares), dtype=bool)
        for beside in (parted, np.roll(parted, 1)):  # the token before the gap and the one after
            heavy |= beside & (shares > max(tail, LIGHTEST))
        if not heavy.any():
            return start
        inner = [edges[i] + shares[i] * np.arange(1, PARTS) / PARTS for i in np.flatnonzero(heavy)]
        edges = np.sort(np.concatenate([edges, *inner]))
    raise NumericalError(f"Twenty replays do not settle the placement of the tokens.\n  {len(edges) - 1} tokens, tail = {tail:g}.\n  Raise tail.")
