r"""A law that a known flow has moved, as atoms: the points of two quadratures, one of which starts and one of which ends on nodes.

Where the flow gathers mass, points that start on nodes of the initial law are dense; where it stretches the law thin they are sparse, and points that end
on nodes of the uniform law take over. With g the density relative to the uniform law, the first have the share `g/(g + 1)` and the second `1/(g + 1)` of
every integrand.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mfpde.initial import InitialLaw, uniform
from mfpde.limits import spectrum
from mfpde.measure import Measure
from mfpde.model import Attention

LEAST = 1e-300  # keeps quotients of empty places finite


Field = Callable[[np.ndarray], np.ndarray]


def invariant_cut(attention: Attention) -> np.ndarray | None:
    """The left eigenvector of a simple, real dominant eigenvalue of the drift, whose hyperplane no token passes at zero temperature; else None."""
    s = spectrum(attention)
    return s.left_basis[0] if s.kind == "real" and s.k == 1 else None


def two_quadratures(law: InitialLaw, nodes: int, move: Field, density: Field, *, cut: np.ndarray | None = None) -> Measure:
    """The image of `law` under `move`, whose density is `density`, as about `nodes` atoms.

    Spectrally accurate while the density varies over more than the distance of the nodes, later of an error of a few parts in `nodes`. The weights are divided
    by their sum, which differs from 1 by that error; where the flow leaves both sides of a hyperplane `<cut, x> = 0` invariant, each side keeps its exact mass.

    >>> import mfpde as mf
    >>> law = mf.initial.fisher_mixture([[0, 0, 1]], 2.0)
    >>> same = two_quadratures(law, 2000, lambda x: x, law.density)
    >>> bool(abs(same.mean[2] - (1 / np.tanh(2) - 1 / 2)) < 1e-12)
    True
    """
    half = max(nodes // 2, 1)
    level = 1 / law.geometry.volume
    start, end = law.nodes(half), uniform(law.geometry).nodes(half)
    there = move(start.points)
    follows = start.weights / (1 + level / np.maximum(density(there), LEAST))
    fills = end.weights / (level / np.maximum(density(end.points), LEAST) + 1)
    points, weights = np.concatenate([there, end.points]), np.concatenate([follows, fills])
    if cut is None:
        return Measure(points, weights / weights.sum())
    ahead, mass = points @ cut > 0, law.mass_of_halfspace(cut)
    for side, wanted in ((ahead, mass), (~ahead, 1 - mass)):
        if weights[side].sum() > 0:
            weights[side] *= wanted / weights[side].sum()
    return Measure(points, weights)
