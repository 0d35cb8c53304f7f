"""The spaces tokens live in: points are unit vectors, tangent vectors are orthogonal to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mfpde.errors import InputError
from mfpde.mesh import Mesh, circle_mesh
from mfpde.mesh.icosahedral import sphere_mesh


@dataclass(frozen=True)
class Geometry:
    """The unit sphere S^{d-1} in R^d; `Circle` and others fix d and know their meshes."""

    dim: ClassVar[int]
    volume: ClassVar[float]

    def project(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Orthogonal projection `P_x v = v - <x,v> x` onto the tangent space at `x`; shapes (n, d)."""
        return v - np.sum(x * v, axis=-1, keepdims=True) * x

    def retract(self, x: np.ndarray) -> np.ndarray:
        """Nearest unit vector `x/|x|`; shape (n, d)."""
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    def distance(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Geodesic distance in radians, accurate for near and antipodal points; broadcasts over (..., d)."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        return 2 * np.arctan2(np.linalg.norm(x - y, axis=-1), np.linalg.norm(x + y, axis=-1))

    def check_points(self, points: Any) -> np.ndarray:
        """`points` as a float array (n, d) of unit vectors, or an `InputError` that names the first bad one."""
        x = np.atleast_2d(np.asarray(points, dtype=np.float64))
        if x.ndim != 2 or x.shape[1] != self.dim:
            raise InputError(
                f"Points of {self!r} are vectors in R^{self.dim}.\n"
                f"  points has shape {np.shape(points)}.\n"
                f"  Give an array of shape (n, {self.dim})."
            )
        error = np.abs(np.linalg.norm(x, axis=1) - 1)
        if not (error <= 1e-9).all():
            bad = int(np.argmax(~(error <= 1e-9)))
            raise InputError(
                f"Point {bad} does not lie on {self!r}.\n"
                f"  point = {x[bad].tolist()}, |point| = {np.linalg.norm(x[bad])}\n"
                "  Normalise the points first, e.g. geometry.retract(points)."
            )
        return x

    def mesh(self, cells: int) -> Mesh:
        """A mesh with `cells` cells (or the nearest number the geometry can do)."""
        raise NotImplementedError


def signed_angle(angle: Any) -> Any:
    """`angle` up to full turns, in [-pi, pi); a number or an array of any shape, in radians.

    >>> signed_angle(np.array([0.0, 4.0, 7.0])).round(6)
    array([ 0.      , -2.283185,  0.716815])
    """
    return (angle + np.pi) % (2 * np.pi) - np.pi


@dataclass(frozen=True)
class Circle(Geometry):
    """The unit circle S^1 in R^2; an angle theta stands for the point (cos theta, sin theta).

    Examples
    --------
    >>> import mfpde as mf
    >>> circle = mf.Circle()
    >>> circle.angles(circle.points([0.0, 1.5]))
    array([0. , 1.5])
    >>> float(circle.distance(circle.points(0.1), circle.points(6.2)).round(6))
    0.183185
    """

    dim: ClassVar[int] = 2
    volume: ClassVar[float] = 2 * np.pi

    def points(self, angles: Any) -> np.ndarray:
        """Unit vectors of `angles` in radians; shape (..., 2)."""
        theta = np.asarray(angles, dtype=np.float64)
        return np.stack([np.cos(theta), np.sin(theta)], axis=-1)

    def angles(self, points: np.ndarray) -> np.ndarray:
        """Angles in [0, 2 pi) of `points` of shape (..., 2)."""
        theta = np.arctan2(points[..., 1], points[..., 0]) % (2 * np.pi)
        return np.where(theta >= 2 * np.pi, 0.0, theta)  # -1e-17 % 2 pi is 2 pi

    def mesh(self, cells: int) -> Mesh:
        """Equal arcs: cell i is [i h, (i+1) h] with h = 2 pi / cells and its centre at (i + 1/2) h."""
        return circle_mesh(self, cells)


@dataclass(frozen=True)
class Sphere(Geometry):
    """The unit sphere S^2 in R^3.

    Examples
    --------
    >>> import mfpde as mf
    >>> sphere = mf.Sphere()
    >>> sphere.mesh(600)
    Mesh of Sphere(): 642 cells of width 0.14, 1920 faces
    >>> float(sphere.distance([0, 0, 1], [1, 0, 0]).round(6))
    1.570796
    """

    dim: ClassVar[int] = 3
    volume: ClassVar[float] = 4 * np.pi

    def mesh(self, cells: int) -> Mesh:
        """Voronoi cells of a bisected icosahedron: 12, 42, 162, 642, 2562, 10242, 40962 or 163842, whichever is nearest to `cells`."""
        return sphere_mesh(self, cells)
