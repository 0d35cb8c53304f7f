r"""Meshes: cells, faces and the few stencils a finite-volume scheme needs. No physics here.

Between two neighbouring cells i, j runs a geodesic of length |l|; it leaves cell i in the tangent direction e_i and arrives
at cell j in the direction e_j (on a curved space these differ). Three stencils, all precomputed, serve every dimension:

* *face stencil*: the speed through a face from cell velocities, `s_f = sum_k <w_fk, v_k>`;
* *upwind stencil*: the density at the mirror image of the downwind cell, `sum_k a_k rho_k`, where the limiter looks for the upwind slope;
* *cones*: the log-map vectors of m = dim - 1 neighbours span a cone; a velocity in the cone is `v = sum_q alpha_q l_q` with
  `alpha >= 0`, and mass leaves for neighbour q at the rate `alpha_q`. That conserves the first moment exactly on any
  triangulation (derived in docs/numerics). On the circle a cone is one neighbour and this is the donor cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mfpde.errors import InputError

if TYPE_CHECKING:
    from mfpde.geometry import Geometry


class Stencils(NamedTuple):
    """The arrays of a mesh that the compiled flux reads; F faces, C cones, m = dim - 1 neighbours a cone."""

    face_cells: np.ndarray  # (F, 2) the face normal points from the first to the second
    face_areas: np.ndarray  # (F,)
    volumes: np.ndarray  # (N,)
    directions: np.ndarray  # (F, 2, d) unit tangents e_i, e_j of the geodesic from the first to the second cell
    speed_cells: np.ndarray  # (F, s) cells whose velocities give the speed through the face
    speed_weights: np.ndarray  # (F, s, d)
    upwind_cells: np.ndarray  # (F, 2, k) for flow out of the first, out of the second cell
    upwind_weights: np.ndarray  # (F, 2, k)
    cone_start: np.ndarray  # (N + 1,) the cones of cell i are cone_start[i] : cone_start[i + 1]
    cone_faces: np.ndarray  # (C, m)
    cone_duals: np.ndarray  # (C, m, d) alpha_q = <dual_q, v>


@dataclass(frozen=True, eq=False)
class Mesh:
    """Cells that tile a geometry.

    Attributes
    ----------
    centres : (N, d)
        Cell centres on the geometry.
    volumes : (N,)
        Lengths or areas of the cells; they sum to the volume of the geometry.
    face_cells : (F, 2)
        The two cells a face separates; its normal points from the first to the second.
    face_centres, face_normals : (F, d)
        Midpoints and unit tangent normals of the faces.
    face_areas : (F,)
        Measure of the faces (1 on the circle, arc length on the sphere).
    stencils : Stencils
        What the compiled flux reads; see the module's text.

    Examples
    --------
    >>> import mfpde as mf
    >>> mesh = mf.Circle().mesh(8)
    >>> mesh
    Mesh of Circle(): 8 cells of width 0.785, 8 faces
    >>> bool(abs(mesh.volumes @ mesh.divergence(mesh.face_centres[:, 0])) < 1e-15)  # what leaves one cell enters another
    True
    """

    geometry: Geometry
    centres: np.ndarray
    volumes: np.ndarray
    face_cells: np.ndarray
    face_centres: np.ndarray
    face_normals: np.ndarray
    face_areas: np.ndarray
    stencils: Stencils

    def __len__(self) -> int:
        return len(self.volumes)

    @property
    def spacing(self) -> float:
        """Mean cell width, `volume^(1/(d-1))` of a mean cell, in radians."""
        return float(self.volumes.mean() ** (1 / (self.centres.shape[1] - 1)))

    def divergence(self, flux: np.ndarray) -> np.ndarray:
        """`(div F)_i = (1/|C_i|) sum_f +- |f| F_f` for a flux density along the face normals; shape (F,) -> (N,)."""
        through = self.face_areas * flux
        cells = len(self)
        leaves = np.bincount(self.face_cells[:, 0], through, cells)
        enters = np.bincount(self.face_cells[:, 1], through, cells)
        return (leaves - enters) / self.volumes

    def __repr__(self) -> str:
        return f"Mesh of {self.geometry!r}: {len(self)} cells of width {self.spacing:.3g}, {len(self.face_cells)} faces"


def circle_mesh(geometry: Geometry, cells: int) -> Mesh:
    """`cells` equal arcs; face i lies at angle (i + 1) h between the cells i and i + 1 (modulo `cells`).

    The face speed is the fourth-order mean `(9 (v_i + v_{i+1}) - v_{i-1} - v_{i+2}) / 16`.
    """
    if not (isinstance(cells, (int, np.integer)) and 4 <= cells <= 2**31 - 1):
        raise InputError(f"A mesh of the circle needs a whole number of at least 4 cells.\n  cells = {cells!r}")
    cells = int(cells)
    h = 2 * np.pi / cells
    i = np.arange(cells)
    right, left = np.roll(i, -1), np.roll(i, 1)

    def on_circle(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        point = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return point, np.stack([-point[:, 1], point[:, 0]], axis=1)

    centres, tangents = on_circle((i + 0.5) * h)
    face_centres, face_normals = on_circle((i + 1.0) * h)
    face_cells = np.stack([i, right], axis=1)
    speed_cells = np.stack([left, i, right, np.roll(i, -2)], axis=1)
    stencils = Stencils(
        face_cells=face_cells,
        face_areas=np.ones(cells),
        volumes=np.full(cells, h),
        directions=tangents[face_cells],
        speed_cells=speed_cells,
        speed_weights=np.array([-1.0, 9.0, 9.0, -1.0])[:, None] / 16 * tangents[speed_cells],
        upwind_cells=np.stack([left, np.roll(i, -2)], axis=1)[:, :, None],
        upwind_weights=np.ones((cells, 2, 1)),
        cone_start=2 * np.arange(cells + 1),
        cone_faces=np.stack([i, left], axis=1).reshape(-1, 1),  # to the right through face i, to the left through face i - 1
        cone_duals=np.stack([tangents / h, -tangents / h], axis=1).reshape(-1, 1, 2),
    )
    return Mesh(geometry, centres, stencils.volumes, face_cells, face_centres, face_normals, stencils.face_areas, stencils)
