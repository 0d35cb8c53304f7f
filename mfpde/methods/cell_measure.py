"""What a run with moving cells returns: a quadrature that remembers the cells it came from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mfpde.errors import InputError
from mfpde.geometry import Circle
from mfpde.measure import Measure
from mfpde.methods.moving_cells import Cells, cumulative, density, pieces, quadrature


def has_density(measure: Measure) -> bool:
    """Whether a law knows its density: on a mesh or by moving cells. Of tokens there is only an estimate."""
    return measure.mesh is not None or isinstance(measure, CellMeasure)


@dataclass(frozen=True, eq=False)
class CellMeasure(Measure):
    """A law on the circle given by moving cells and atoms.

    As a `Measure` it is Simpson's quadrature of the cells plus the atoms: integrals, moments, energies of fourth order. The points of a quadrature are
    not the law, though: their W_1 distance to it is about a quarter of a cell. So `density_at`, `cumulative` and `nodes` read the cells themselves.

    Attributes
    ----------
    cells : Cells
        Nodes, log-densities, masses, atoms.

    Examples
    --------
    >>> import mfpde as mf
    >>> law = mf.solve(mf.cases.poisson(t_end=1.0)[0], mf.Lagrangian(cells=64)).final
    >>> bool(abs(law.cumulative(2 * np.pi) - 1) < 1e-12), len(law.equal_masses(1000))
    (True, 1000)
    """

    cells: Cells = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, cells: Cells) -> CellMeasure:
        """The measure of `cells`, in O(n)."""
        angles, weights = quadrature(cells)
        return cls(Circle().points(angles), weights, cells=cells)

    def density_at(self, points: np.ndarray) -> np.ndarray:
        """Density per radian at `points` (m, 2), atoms left out, shape (m,); fourth order."""
        return density(self.cells, Circle().angles(np.asarray(points, dtype=float)))

    def cumulative(self, angles: np.ndarray) -> np.ndarray:
        """Mass in [0, theta] for angles in [0, 2 pi], in radians; fourth order."""
        return cumulative(self.cells, np.asarray(angles, dtype=float))

    def pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """The law in pieces of constant density, `(edges (p + 1,), masses (p,))`, 32 to a cell, atoms as pieces of no length: what `wasserstein` reads."""
        return pieces(self.cells)

    def equal_masses(self, n: int) -> Measure:
        """`n` equal masses at the levels `(j - 1/2)/n` of the distribution function counted from angle 0: tokens that stand for the law."""
        if not n >= 1:
            raise InputError(f"A whole number of tokens, at least 1.\n  n = {n!r}")
        edges, masses = pieces(self.cells, parts=64)
        levels = np.concatenate([[0.0], np.cumsum(masses)])
        wanted = (np.arange(n) + 0.5) / n * levels[-1]
        right = np.clip(np.searchsorted(levels, wanted, side="left"), 1, len(levels) - 1)
        rise = levels[right] - levels[right - 1]
        share = np.where(rise > 0, (wanted - levels[right - 1]) / np.where(rise > 0, rise, 1.0), 0.0)
        places = edges[right - 1] + share * (edges[right] - edges[right - 1])
        return Measure(Circle().points(places), np.full(n, 1 / n))
