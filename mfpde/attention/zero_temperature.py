r"""Attention at zero temperature: the maximiser of the score over the support.

    h(x) = max over y in supp mu of <Ax, y>,     m(x) = lim m_beta(x): the maximiser, or the mean of the tied ones

`<Ax, y> = |Ax| cos(angle)`, so the maximiser is the point of the support nearest in angle to u = Ax/|Ax|: on the circle a sorted look-up.
Ties are rare but real (symmetric data, singular A). Laplace's method says how they share (docs/theory, section 1):

* a cell with mass supports its whole arc: m = u where u lies in the support, else the end of the nearest supported arc;
* two ends equally near have equal slopes of the score and share in proportion to their densities;
* tied atoms share in proportion to their weights; where Ax = 0 every token ties, and m is the mean of the measure.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mfpde.errors import InputError
from mfpde.geometry import Circle, Geometry, Sphere
from mfpde.mesh import Mesh
from mfpde.model import Attention

EPS = float(np.finfo(float).eps)
TIE = 16 * EPS  # radians: an angle is known to about 2 pi eps, a distance to twice that
TWO_PI = 2 * np.pi


class Argmax:
    """The tier for `beta = inf`.

    `evaluate(weights, rows)` returns `(h (r,), m (r, d), error (r,))`. The maximal score `h = lim log Z / beta` stands in for log Z, which is infinite.
    The error is round-off, eps times the conditioning `|A|/|Ax|` of the direction u.

    Parameters
    ----------
    attention : Attention
    geometry : Geometry
    sources : Mesh or array of points, shape (n, d)
        Cells support arcs or areas, points are atoms.
    targets : array, shape (m, d)

    Notes
    -----
    On the circle angles are sorted once: O(n log n + m log n) to build, O(n + m log n) to evaluate. On the sphere search trees: O((n + m) log n).
    Distances within `TIE = 16 eps` radians count as equal.

    Examples
    --------
    >>> import numpy as np
    >>> import mfpde as mf
    >>> from mfpde.attention.zero_temperature import Argmax
    >>> attention = mf.Attention.identity(2, beta=np.inf)
    >>> sources = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> tier = Argmax(attention, mf.Circle(), sources, targets=np.array([[0.6, 0.8], [0.0, 1.0]]))
    >>> score, mean, _ = tier.evaluate(np.array([0.25, 0.75]))
    >>> mean  # the second target is equally near to both
    array([[ 1. ,  0. ],
           [-0.5,  0. ]])
    """

    name = "argmax"

    def __init__(self, attention: Attention, geometry: Geometry, sources: Mesh | np.ndarray, targets: np.ndarray) -> None:
        queries = np.asarray(targets, dtype=np.float64) @ attention.A.T  # A x
        size = np.linalg.norm(queries, axis=1)
        norm = float(np.linalg.norm(attention.A, 2))
        self.flat = size <= 4 * EPS * norm  # Ax = 0 up to round-off
        self.scores = np.where(self.flat, 0.0, size)
        self.directions = queries / np.where(self.flat, 1.0, size)[:, None]
        self.error = np.where(self.flat, 4 * EPS, 4 * EPS * norm / np.where(self.flat, 1.0, size))
        self.support = _support(geometry, sources, self.directions)

    def evaluate(self, weights: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(h (r,), m (r, d), error (r,))` at the targets `rows`, for non-negative `weights` (n,) of positive total."""
        u = self.directions[rows]
        mean, angle = self.support.nearest(weights, rows, u)
        score = self.scores[rows] * np.cos(angle)
        flat = self.flat[rows]
        if flat.any():
            mean[flat] = weights @ self.support.points / weights.sum()
        return score, mean, self.error[rows]


class Support(Protocol):
    """What carries the measure, seen from fixed directions."""

    points: np.ndarray

    def nearest(self, weights: np.ndarray, rows: np.ndarray | slice, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean of the nearest supported points (r, d) and their angular distance (r,)."""
        ...


def _support(geometry: Geometry, sources: Mesh | np.ndarray, directions: np.ndarray) -> Support:
    """The one place that knows the geometries."""
    if isinstance(geometry, Circle):
        angles = geometry.angles(directions)
        return Arcs(sources, angles) if isinstance(sources, Mesh) else Points(geometry, sources, angles)
    if not isinstance(geometry, Sphere):
        raise InputError(f"Attention at beta = inf works on Circle() and Sphere().\n  geometry = {geometry!r}\n  Use a finite beta here.")
    from mfpde.attention.argmax_sphere import SupportedCells, SupportedPoints

    return SupportedCells(sources, directions) if isinstance(sources, Mesh) else SupportedPoints(sources)


class Arcs:
    """Supported arcs: the cells of a mesh that carry mass."""

    def __init__(self, mesh: Mesh, angles: np.ndarray) -> None:
        edges = np.append(0.0, np.cumsum(mesh.volumes))  # cell i is the arc [edges[i], edges[i + 1]]
        edges *= TWO_PI / edges[-1]
        self.points, self.volumes = mesh.centres, mesh.volumes
        self.corners = np.roll(mesh.face_centres, 1, axis=0)  # corner i begins cell i, corner i + 1 ends it
        self.cell = np.clip(np.searchsorted(edges, angles, side="right") - 1, 0, len(mesh) - 1)
        self.angles, self.edges = angles, edges

    def nearest(self, weights: np.ndarray, rows: np.ndarray | slice, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean of the nearest supported points (r, 2) and their angular distance (r,)."""
        carried = weights > 0
        cell = self.cell[rows]
        mean, angle = u.copy(), np.zeros(len(u))
        out = np.flatnonzero(~carried[cell])
        if not len(out):
            return mean, angle
        n, full = len(weights), np.flatnonzero(carried)
        after = np.searchsorted(full, cell[out])  # supported cells around the hole, cyclically
        right, left = full[after % len(full)], full[after - 1]
        phi = self.angles[rows][out]
        to_left = (phi - self.edges[left + 1]) % TWO_PI
        to_right = (self.edges[right] - phi) % TWO_PI
        # a direction on the very edge of an arc may come out 2 pi away from it
        to_left, to_right = (np.where(gap > TWO_PI - TIE, 0.0, gap) for gap in (to_left, to_right))
        share_left, share_right = _share(to_left, to_right, weights[left] / self.volumes[left], weights[right] / self.volumes[right])
        mean[out] = share_left[:, None] * self.corners[(left + 1) % n] + share_right[:, None] * self.corners[right]
        angle[out] = np.minimum(to_left, to_right)
        return mean, angle


class Points:
    """Supported atoms, sorted by angle; atoms that coincide up to round-off act as one."""

    def __init__(self, circle: Circle, points: np.ndarray, angles: np.ndarray) -> None:
        self.points = np.asarray(points, dtype=np.float64)
        source_angles = circle.angles(self.points)
        self.order = np.argsort(source_angles, kind="stable")
        self.sorted_angles = source_angles[self.order]
        self.angles = angles

    def nearest(self, weights: np.ndarray, rows: np.ndarray | slice, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean of the nearest atoms (r, 2) and their angular distance (r,)."""
        w = weights[self.order]
        keep = w > 0
        theta, w, index = self.sorted_angles[keep], w[keep], self.order[keep]
        first = np.append(True, np.diff(theta) > TIE)
        start = np.flatnonzero(first)
        if len(start) > 1 and theta[0] + TWO_PI - theta[-1] <= TIE:  # one atom on both sides of angle 0
            w = w.copy()
            w[0] += w[start[-1] :].sum()
            cut = start[-1]
            theta, w, index, start = theta[:cut], w[:cut], index[:cut], start[:-1]
        mass, theta, where = np.add.reduceat(w, start), theta[start], self.points[index[start]]
        phi = self.angles[rows]
        after = np.searchsorted(theta, phi)
        right, left = after % len(theta), after - 1
        to_left, to_right = (phi - theta[left]) % TWO_PI, (theta[right] - phi) % TWO_PI
        to_left, to_right = np.minimum(to_left, TWO_PI - to_left), np.minimum(to_right, TWO_PI - to_right)
        share_left, share_right = _share(to_left, to_right, mass[left], mass[right])
        return share_left[:, None] * where[left] + share_right[:, None] * where[right], np.minimum(to_left, to_right)


def _share(to_left: np.ndarray, to_right: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All to the nearer side; at equal distance, shares in proportion to `left` and `right`."""
    largest = np.maximum(left, right)  # ratios first: tiny masses must not underflow
    share = left / largest / (left / largest + right / largest)
    share = np.where(to_left < to_right - TIE, 1.0, np.where(to_right < to_left - TIE, 0.0, share))
    return share, 1 - share
