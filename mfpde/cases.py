"""Named cases: plain functions with keyword arguments that return `(Problem, Method)`."""

from __future__ import annotations

import mfpde as mf
from mfpde.methods.base import Method
from mfpde.model import Problem


def poisson(*, r: float = 0.3, t_end: float = 2.0, cells: int = 1024, order: int = 2) -> tuple[Problem, Method]:
    """beta = 0: the Poisson kernel stays one, its radius follows r' = r (1 - r^2) / 2."""
    problem = Problem(mf.Attention.identity(2, 0.0), mf.Circle(), mf.initial.poisson(r), t_end)
    return problem, mf.FiniteVolume(cells=cells, order=order)


def two_clusters(*, beta: float = 4.0, distance: float = 2.0, width: float = 0.15, t_end: float = 60.0, cells: int = 512, order: int = 2) -> tuple[Problem, Method]:
    """Two equal clusters that attract each other: metastable for a time like e^{beta (1 - cos distance)}."""
    law = mf.initial.von_mises_mixture([-distance / 2, distance / 2], kappa=1 / width**2)
    return Problem(mf.Attention.identity(2, beta), mf.Circle(), law, t_end), mf.FiniteVolume(cells=cells, order=order)
