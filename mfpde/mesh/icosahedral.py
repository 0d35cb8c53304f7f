r"""The mesh of the sphere: Voronoi cells of a bisected icosahedron.

The icosahedron is bisected k times (N = 10 * 4^k + 2 points) and every edge of its triangulation becomes a face of the dual mesh:

* the corner of three cells is the circumcentre of their triangle (a, b, c), `(b - a) x (c - a)` normalised;
* the face between the cells i and j lies in the plane that bisects x_i, x_j, so `n = (x_j - x_i)/|x_j - x_i|` is its normal all along;
* `int_C x dA = -(1/2) sum_f |f| n_f` for every cell (n outward): the flux of a constant vector through a face is exactly `|f| <a, n_f>`.

The face speed is `(v_i + v_j)/2 + o (v_l - v_r)` along n, where l and r are the third corners of the two triangles and o moves the value
from the middle of the segment x_i x_j to the middle of the face. Tangent vectors at a cell are written in log-map vectors `l_q`, which point
to the neighbour q and are as long as the geodesic. Derived in docs/mesh_sphere; the method is the transfer of mass to the two neighbours
whose cone holds the velocity (a Markov chain approximation after Kushner).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mfpde.errors import InputError
from mfpde.mesh import Mesh, Stencils

if TYPE_CHECKING:
    from mfpde.geometry import Geometry

BISECTIONS = 7  # 163842 cells
SIZES = 10 * 4 ** np.arange(BISECTIONS + 1) + 2


class Edges(NamedTuple):
    """The edges of a triangulation; seen along the edge from `cells[:, 0]` to `cells[:, 1]` the triangles lie to the left and to the right."""

    cells: np.ndarray  # (F, 2)
    triangles: np.ndarray  # (F, 2) left, right


class Spokes(NamedTuple):
    """The directed edges, by cell and counter-clockwise within a cell; cell i owns `start[i] : start[i + 1]`."""

    start: np.ndarray  # (N + 1,)
    cell: np.ndarray  # (2F,) where the spoke begins
    neighbour: np.ndarray  # (2F,) where it ends
    face: np.ndarray  # (2F,)
    side: np.ndarray  # (2F,) 0 if it runs along the face normal, 1 if against it
    log: np.ndarray  # (2F, 3) log-map vector of the neighbour


def unit(x: np.ndarray) -> np.ndarray:
    """`x/|x|` along the last axis."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Scalar products along the last axis."""
    return np.einsum("...k,...k->...", x, y)


def icosphere(bisections: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (N, 3) and counter-clockwise triangles (2N - 4, 3) of the icosahedron bisected `bisections` times.

    Examples
    --------
    >>> points, triangles = icosphere(2)
    >>> len(points), len(triangles)
    (162, 320)
    """
    golden = (1 + np.sqrt(5)) / 2
    rectangle = np.array([[0, s, t * golden] for s in (1, -1) for t in (1, -1)])
    points = unit(np.concatenate([rectangle, np.roll(rectangle, 1, axis=1), np.roll(rectangle, 2, axis=1)]))
    near = points @ points.T > 0.4  # cos of an edge is 1/sqrt(5); the next distance has cosine -1/sqrt(5)
    i, j, k = np.array([(a, b, c) for a in range(12) for b in range(a) for c in range(b) if near[a, b] and near[b, c] and near[a, c]]).T
    left = np.linalg.det(np.stack([points[i], points[j], points[k]], axis=1)) > 0
    triangles = np.stack([i, np.where(left, j, k), np.where(left, k, j)], axis=1)
    for _ in range(bisections):
        size = len(points)
        ends = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
        keys, middle = np.unique(ends[:, 0] * size + ends[:, 1], return_inverse=True)
        points = np.concatenate([points, unit(points[keys // size] + points[keys % size])])
        ab, bc, ca = middle.reshape(3, -1) + size
        a, b, c = triangles.T
        triangles = np.concatenate([np.stack(t, axis=1) for t in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))])
    return points, triangles


def edges_of(triangles: np.ndarray, size: int) -> Edges:
    """Every edge once, from its smaller to its larger point."""
    half = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    owner = np.tile(np.arange(len(triangles)), 3)
    pairs = np.argsort(half.min(axis=1) * size + half.max(axis=1), kind="stable").reshape(-1, 2)
    backward = half[pairs[:, 0], 0] > half[pairs[:, 0], 1]
    pairs[backward] = pairs[backward, ::-1]  # a counter-clockwise triangle lies to the left of its half edges
    return Edges(half[pairs[:, 0]], owner[pairs])


def spokes_of(points: np.ndarray, cells: np.ndarray) -> Spokes:
    """The neighbours of every cell in counter-clockwise order with their log-map vectors."""
    size, faces = len(points), len(cells)
    cell, neighbour = cells.T.ravel(), cells[:, ::-1].T.ravel()
    face, side = np.tile(np.arange(faces), 2), np.repeat([0, 1], faces)
    # an orthonormal tangent frame: away from the coordinate axis that is least aligned with x
    axis = np.eye(3)[np.argmin(np.abs(points), axis=1)]
    first = unit(np.cross(points, axis))
    second = np.cross(points, first)
    chord = points[neighbour] - points[cell]
    angle = np.arctan2(dot(chord, second[cell]), dot(chord, first[cell]))
    order = np.lexsort((angle, cell))
    cell, neighbour, chord = cell[order], neighbour[order], chord[order]
    tangent = chord - dot(chord, points[cell])[:, None] * points[cell]
    length = 2 * np.arcsin(np.linalg.norm(chord, axis=1) / 2)
    start = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=size))])
    return Spokes(start, cell, neighbour, face[order], side[order], unit(tangent) * length[:, None])


def next_spoke(spokes: Spokes, steps: int) -> np.ndarray:
    """Index of the spoke `steps` further on, counter-clockwise around the same cell; shape (2F,)."""
    start = spokes.start[spokes.cell]
    degree = np.diff(spokes.start)[spokes.cell]
    return start + (np.arange(len(start)) - start + steps) % degree


def cone_duals(spokes: Spokes, points: np.ndarray) -> np.ndarray:
    """Duals of the cone between each spoke and the next: `<dual_q, l_r> = 1` if q = r, else 0; shape (2F, 2, 3)."""
    l1, l2 = spokes.log, spokes.log[next_spoke(spokes, 1)]
    x = points[spokes.cell]
    d1, d2 = np.cross(l2, x), np.cross(x, l1)
    return np.stack([d1 / dot(d1, l1)[:, None], d2 / dot(d2, l2)[:, None]], axis=1)


def opposite_cones(spokes: Spokes, duals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each spoke l the cone that holds -l: its index (2F,) and the coefficients `-l = a_1 l_1 + a_2 l_2`, (2F, 2)."""
    best, cone, weights = np.full(len(spokes.cell), -np.inf), np.zeros(len(spokes.cell), dtype=np.intp), np.empty((len(spokes.cell), 2))
    for steps in range(np.diff(spokes.start).max()):
        candidate = next_spoke(spokes, steps)
        a = -dot(duals[candidate], spokes.log[:, None, :])
        inside = a.min(axis=1)
        better = inside > best
        best[better], cone[better], weights[better] = inside[better], candidate[better], a[better]
    return cone, np.maximum(weights, 0.0)  # on a mirror line the smaller one is 0 up to round-off, with either sign


def sphere_mesh(geometry: Geometry, cells: int) -> Mesh:
    """The bisected icosahedron whose number of cells 10 * 4^k + 2 (12, 42, 162, 642, 2562, 10242, 40962, 163842) is nearest to `cells`.

    Built with array operations: about 2 s and 0.5 GB at 163842 cells. Raises `InputError` outside 12 .. 163842.
    """
    if not (isinstance(cells, (int, np.integer)) and SIZES[0] <= cells <= SIZES[-1]):
        raise InputError(
            f"A mesh of the sphere has between {SIZES[0]} and {SIZES[-1]} cells.\n  cells = {cells!r}\n  Give a whole number; the nearest 10 * 4^k + 2 is used."
        )
    x, triangles = icosphere(int(np.argmin(np.abs(SIZES - cells))))
    size = len(x)
    edges = edges_of(triangles, size)
    i, j = edges.cells.T
    a, b, c = (x[triangles[:, k]] for k in range(3))
    corners = unit(np.cross(b - a, c - a))
    left, right = corners[edges.triangles[:, 0]], corners[edges.triangles[:, 1]]

    normals = unit(x[j] - x[i])
    lengths = 2 * np.arcsin(np.linalg.norm(left - right, axis=1) / 2)
    middles = unit(left + right)
    # Van Oosterom and Strackee (1983): solid angle of the triangle (x_i, right, left); its mirror image belongs to cell j
    triple = dot(x[i], np.cross(right, left))
    wedge = 2 * np.arctan2(triple, 1 + dot(x[i], right) + dot(right, left) + dot(left, x[i]))
    volumes = np.bincount(i, wedge, size) + np.bincount(j, wedge, size)

    thirds = triangles.sum(axis=1)[edges.triangles] - (i + j)[:, None]
    across = x[thirds[:, 0]] - x[thirds[:, 1]]
    offset = dot(middles - unit(x[i] + x[j]), across) / dot(across, across)
    speed_weights = np.array([0.5, 0.5, 1.0, -1.0])[:, None] * normals[:, None, :]
    speed_weights[:, 2:] *= offset[:, None, None]

    spokes = spokes_of(x, edges.cells)
    following = next_spoke(spokes, 1)
    duals = cone_duals(spokes, x)
    opposite, weights = opposite_cones(spokes, duals)
    directions, upwind_cells, upwind_weights = np.empty((len(i), 2, 3)), np.empty((len(i), 2, 2), dtype=np.int64), np.empty((len(i), 2, 2))
    slot = spokes.face, spokes.side
    directions[slot] = unit(spokes.log) * np.where(spokes.side == 0, 1.0, -1.0)[:, None]  # both along the face normal
    upwind_cells[slot] = np.stack([spokes.neighbour[opposite], spokes.neighbour[following[opposite]]], axis=1)
    upwind_weights[slot] = weights

    stencils = Stencils(
        face_cells=edges.cells,
        face_areas=lengths,
        volumes=volumes,
        directions=directions,
        speed_cells=np.concatenate([edges.cells, thirds], axis=1),
        speed_weights=speed_weights,
        upwind_cells=upwind_cells,
        upwind_weights=upwind_weights,
        cone_start=spokes.start,
        cone_faces=np.stack([spokes.face, spokes.face[following]], axis=1),
        cone_duals=duals,
    )
    return Mesh(geometry, x, volumes, edges.cells, middles, normals, lengths, stencils)
