"""The one currency of the package: a finite measure as points and weights, and for cells their mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mfpde.errors import InputError
from mfpde.geometry import Circle
from mfpde.mesh import Mesh


@dataclass(frozen=True, eq=False)
class Measure:
    """A probability measure `sum_i w_i delta_{x_i}`, or cell masses on a mesh.

    Parameters
    ----------
    points : array_like, shape (n, d)
        Unit vectors; for a measure on a mesh the cell centres.
    weights : array_like, shape (n,)
        Non-negative, of total 1 (to 1e-9; the sum is not touched).
    mesh : Mesh, optional
        When given, `weights` are cell masses, spread evenly over their cells.

    Raises
    ------
    InputError
        For NaN, negative or zero-sum weights, wrong shapes, or a mesh of another size.

    Examples
    --------
    >>> import mfpde as mf
    >>> pair = mf.Measure([[1, 0], [0, 1]], [0.25, 0.75])
    >>> pair.mean
    array([0.25, 0.75])
    >>> pair.angles().round(4)
    array([0.    , 1.5708])
    """

    points: np.ndarray
    weights: np.ndarray
    mesh: Mesh | None = None

    def __post_init__(self) -> None:
        points = np.ascontiguousarray(self.points, dtype=np.float64)
        if points.ndim != 2:
            raise InputError(f"points must be an array of shape (n, d).\n  points has shape {points.shape}.")
        if not np.isfinite(points).all():
            raise InputError(f"points holds NaN or infinities.\n  First at row {int(np.argmax(~np.isfinite(points).all(axis=1)))}.")
        weights = check_weights(self.weights, len(points))
        if abs(weights.sum() - 1) > 1e-9:
            raise InputError(f"The weights of a measure sum to 1.\n  sum = {weights.sum()!r}\n  Divide by the sum: weights / weights.sum().")
        if self.mesh is not None and len(self.mesh) != len(points):
            raise InputError(f"One weight a cell.\n  The mesh has {len(self.mesh)} cells, weights has {len(points)} entries.")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", weights)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def mass(self) -> float:
        """Total mass."""
        return float(self.weights.sum())

    @property
    def mean(self) -> np.ndarray:
        """Barycentre `int x dmu` in the ambient space, shape (d,)."""
        return self.weights @ self.points

    def density(self) -> np.ndarray:
        """Mass per arc length or area in each cell, shape (N,); an `InputError` for a measure without a mesh."""
        if self.mesh is None:
            raise InputError(
                "Atoms have no density.\n"
                f"  This measure has {len(self)} points and no mesh.\n"
                "  Use a method that lives on a mesh, e.g. FiniteVolume."
            )
        return self.weights / self.mesh.volumes

    def angles(self) -> np.ndarray:
        """Angles of the points in [0, 2 pi), shape (n,); on the circle only."""
        if self.points.shape[1] != 2:
            raise InputError(f"Only points of the circle have an angle.\n  These points live in R^{self.points.shape[1]}.")
        return Circle().angles(self.points)

    def __repr__(self) -> str:
        kind = f"{len(self)} atoms" if self.mesh is None else f"cell masses on {self.mesh!r}"
        return f"Measure: {kind}, mass {self.mass:.15g}, mean {np.array2string(self.mean, precision=6)}"


def check_weights(weights: Any, size: int) -> np.ndarray:
    """`weights` as a float array of `size` non-negative numbers with a positive sum, or an `InputError`."""
    w = np.ascontiguousarray(weights, dtype=np.float64)
    if w.shape != (size,):
        raise InputError(f"One weight a point.\n  There are {size} points, weights has shape {w.shape}.")
    good = w >= 0
    if not (good.all() and w.max(initial=0.0) < np.inf):
        bad = int(np.argmax(~(good & (w < np.inf))))
        raise InputError(f"Weights are finite and non-negative.\n  weights[{bad}] = {w[bad]}\n  A density with negative parts is not a law of tokens.")
    if not w.sum() > 0:
        raise InputError(f"The measure is empty: all {size} weights are zero.\n  Give it some mass.")
    return w
