r"""The maximiser of the score over a support on the sphere: the supported point nearest to u = Ax/|Ax|, by search trees.

A cell with mass supports all of its area. Where u lies in such a cell it is the maximiser itself; else the nearest point of the supported cells is sought on
the faces of those whose centres are nearest. Atoms and cells that tie share in proportion to their masses.
"""

from __future__ import annotations

import numpy as np

from mfpde.mesh import Mesh

NEARBY = 12  # supported cells, nearest by their centres, whose faces are searched; diameters vary by less than a factor of two
TIE = 1e-14  # chords closer than this are equal


class SupportedCells:
    """The cells of a mesh of the sphere that carry mass, seen from fixed directions."""

    def __init__(self, mesh: Mesh, directions: np.ndarray) -> None:
        from scipy.spatial import cKDTree

        self.points = mesh.centres
        self.mesh = mesh
        self.cell = cKDTree(mesh.centres).query(directions)[1]  # Voronoi cells: the nearest centre

    def nearest(self, weights: np.ndarray, rows: np.ndarray | slice, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean of the nearest supported points (r, 3) and their angular distance (r,)."""
        mean, angle = u.copy(), np.zeros(len(u))
        out = np.flatnonzero(~(weights > 0)[self.cell[rows]])
        if not len(out):
            return mean, angle
        from scipy.spatial import cKDTree

        full = np.flatnonzero(weights > 0)
        candidates = full[cKDTree(self.points[full]).query(u[out], min(NEARBY, len(full)))[1].reshape(len(out), -1)]  # (o, k)
        for row, cells in zip(out, candidates, strict=True):
            point, share, chord = [], [], []
            for cell in cells:
                foot = self._nearest_on_faces(int(cell), u[row])
                point.append(foot)
                share.append(weights[cell] / self.mesh.volumes[cell])
                chord.append(np.linalg.norm(foot - u[row]))
            tied = np.array(chord) <= min(chord) + TIE
            portion = np.array(share)[tied] / np.sum(np.array(share)[tied])
            mean[row] = portion @ np.array(point)[tied]
            angle[row] = 2 * np.arcsin(min(chord) / 2)
        return mean, angle

    def _nearest_on_faces(self, cell: int, u: np.ndarray) -> np.ndarray:
        """The point of the boundary of a cell that is nearest to u, a unit vector outside of it."""
        s, mesh = self.mesh.stencils, self.mesh
        faces = s.cone_faces[s.cone_start[cell] : s.cone_start[cell + 1], 0]
        middle, normal, half = mesh.face_centres[faces], mesh.face_normals[faces], mesh.face_areas[faces] / 2
        along = np.cross(normal, middle)
        turn = np.clip(np.arctan2(along @ u, middle @ u), -half, half)  # along the great circle of the face, no further than its ends
        foot = np.cos(turn)[:, None] * middle + np.sin(turn)[:, None] * along
        return foot[np.argmax(foot @ u)]


class SupportedPoints:
    """Atoms on the sphere."""

    def __init__(self, points: np.ndarray) -> None:
        self.points = np.asarray(points, dtype=np.float64)

    def nearest(self, weights: np.ndarray, rows: np.ndarray | slice, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean of the nearest atoms (r, 3) and their angular distance (r,)."""
        from scipy.spatial import cKDTree

        full = np.flatnonzero(weights > 0)
        tree = cKDTree(self.points[full])
        chord, first = tree.query(u)
        mean = self.points[full[first]].copy()
        count = tree.query_ball_point(u, chord + TIE, return_length=True)
        for row in np.flatnonzero(count > 1):
            tied = full[tree.query_ball_point(u[row], chord[row] + TIE)]
            mean[row] = weights[tied] @ self.points[tied] / weights[tied].sum()
        return mean, 2 * np.arcsin(np.minimum(chord / 2, 1.0))
