r"""What a fixed mesh cannot see: clusters narrower than about three of its cells.

Such a cluster is a few cells wide whatever its true width, and the W_1 distance to the solution stays near half a cell however long the run and however
high the order. The mesh says so itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mfpde.mesh import Mesh

NARROW = 1.5  # cells: the standard deviation of a cluster whose width, twice that, is three cells
REACH = 6  # cells about a peak that belong to its cluster
LIGHT = 1e-3  # of the mass: what is less is no cluster


class Unresolved(NamedTuple):
    """`clusters` of total `mass` that are narrower than three cells of width `spacing`; W_1 to the solution is about `floor`."""

    clusters: int
    mass: float
    spacing: float

    @property
    def floor(self) -> float:
        """Half a cell for the mass concerned, in radians."""
        return 0.5 * self.spacing * self.mass


def unresolved_clusters(masses: np.ndarray, mesh: Mesh) -> Unresolved:
    """The clusters of cell masses (N,) whose standard deviation about their mean, per dimension, is less than 1.5 cells.

    Cost O(N) and a search about each peak.

    >>> import mfpde as mf
    >>> mesh = mf.Circle().mesh(128)
    >>> law = mf.initial.von_mises_mixture([1.0, 3.0], kappa=[10, 1e4])
    >>> unresolved_clusters(law.cell_masses(mesh), mesh)
    Unresolved(clusters=1, mass=0.5..., spacing=0.049...)
    """
    density = masses / mesh.volumes
    highest = density.copy()  # of a cell and its neighbours
    left, right = mesh.face_cells.T
    np.maximum.at(highest, left, density[right])
    np.maximum.at(highest, right, density[left])
    peaks = np.flatnonzero((density == highest) & (density > 2 / mesh.volumes.sum()))
    peaks = peaks[np.argsort(-density[peaks], kind="stable")]
    radius = 2 * np.sin(min(REACH * mesh.spacing, np.pi) / 2)
    free = np.ones(len(masses), dtype=bool)
    count, total = 0, 0.0
    for peak in peaks:
        if not free[peak]:
            continue
        members = np.flatnonzero(free & (np.linalg.norm(mesh.centres - mesh.centres[peak], axis=1) <= radius))
        mass = float(masses[members].sum())
        if mass < LIGHT:
            continue
        free[members] = False
        points, share = mesh.centres[members], masses[members] / mass
        spread = np.sqrt(share @ np.sum((points - share @ points) ** 2, axis=1) / (mesh.centres.shape[1] - 1))
        if spread < NARROW * mesh.spacing:
            count, total = count + 1, total + mass
    return Unresolved(count, total, mesh.spacing)
