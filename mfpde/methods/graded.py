r"""Where to put light tokens: a placement found by replay, for runs that hang on tails.

Tokens of equal mass resolve nothing lighter than one of them. A cluster that leaves its place does so along the tail it trails, and tails of
mass e^{-30} and less rule the moment. The tokens of a tail start beside the points where the flow parts: the mass between a token and the parting decides
when it arrives. So a token at the distance m from the parting, counted in mass, stands for a share of at most `GRADE m`: tokens equally far
apart in log m, hence in time of arrival. The partings are found by replay: run the tokens, see where neighbours come apart furthest, cut the
shares there, and run again, until those beside every parting are light enough. No token is ever divided under way, nothing is interpolated, and the
weights are exact: an independent check of moving cells (docs/moving_cells).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfpde.errors import NumericalError
from mfpde.geometry import Circle
from mfpde.initial import CircleLaw
from mfpde.measure import Measure

GRADE = 0.1  # the share of a token in the mass between it and the nearest parting
PARTS = 32  # into which a share is cut at most, each time
NEAR = 40  # tokens: wide gaps this near to a wider one belong to the same parting
FAR = 0.1  # radians between neighbours that have parted
LIGHTEST = 1e-13  # shares are differences of levels in [0, 1]


def mass_to_parting(edges: np.ndarray, partings: np.ndarray) -> np.ndarray:
    """Mass between each share `[edges_i, edges_{i+1}]` and the nearest of the levels `partings` (p,), either way round; 0 beside one, shape (n,).

    >>> mass_to_parting(np.array([0, 0.25, 0.5, 0.75, 1]), np.array([0.25]))
    array([0.  , 0.  , 0.25, 0.25])
    """
    nearest = np.full(len(edges) - 1, np.inf)
    for level in partings:
        nearest = np.minimum(nearest, np.minimum((edges[:-1] - level) % 1.0, (level - edges[1:]) % 1.0))
    return nearest


def graded_nodes(law: CircleLaw, n: int, tail: float, widest_gaps: Callable[[Measure], np.ndarray]) -> Measure:
    """Tokens on the circle of n equal shares, finer where neighbours part, down to shares of `tail`.

    `widest_gaps(measure)` (m,) runs the tokens and returns the largest angle ever between each one and the next. About log(1 / (n tail)) / 3 runs.
    """
    from scipy.ndimage import maximum_filter1d

    lightest = max(tail, LIGHTEST)
    edges = np.linspace(0, 1, n + 1)
    for _ in range(30):
        shares = np.diff(edges)
        start = Measure(Circle().points(law.cumulative.inverse(edges[:-1] + 0.5 * shares)), shares)
        gaps = widest_gaps(start)
        parted = (gaps > FAR) & (gaps >= maximum_filter1d(gaps, 2 * NEAR + 1, mode="wrap"))
        wanted = np.maximum(GRADE * mass_to_parting(edges, edges[1:][parted]), lightest)
        too_heavy = shares > 2 * wanted  # partings move a little from replay to replay: within a factor two of the share wanted is good enough
        beside = parted | np.roll(parted, 1)  # the token before the gap and the one after
        too_heavy |= beside & (shares > lightest)
        if not too_heavy.any():
            return start
        parts = np.minimum(np.ceil(shares / wanted), PARTS).astype(int)
        inner = [edges[i] + shares[i] * np.arange(1, parts[i]) / parts[i] for i in np.flatnonzero(parts > 1)]
        edges = np.sort(np.concatenate([edges, *inner]))
    raise NumericalError(f"Thirty replays do not settle the placement of the tokens.\n  {len(edges) - 1} tokens, tail = {tail:g}.\n  Raise tail.")
