r"""Initial laws on the sphere S^2.

Fisher mixtures know everything in closed form or as smooth integrals in one dimension (`mfpde.initial.fisher`). Other densities are integrated over
spherical triangles (`mfpde.initial.quadrature`).

Deterministic nodes are product rules, Gauss-Legendre in the height times the trapezoid rule in the longitude: for a mixture one about every
centre, with three quarters of the rows on the cap that holds its mass and the others on the rest, which softmax attention at low temperature reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Sphere
from mfpde.initial import InitialLaw
from mfpde.initial.fisher import fisher_cells, fisher_halfspace, height_scale
from mfpde.initial.quadrature import NODES, Leaves, cell_triangles, hemisphere, settle, whole_sphere
from mfpde.measure import Measure, check_weights
from mfpde.mesh import Mesh
from mfpde.mesh.icosahedral import dot, unit

FOUR_PI = 4 * np.pi
CAP = 40.0  # kappa w at the edge of the cap that holds the mass of a bump, all but e^-40 of it


def frame_of(axis: np.ndarray) -> np.ndarray:
    """A rotation whose last row is the unit vector `axis`; rows are orthonormal, shape (3, 3)."""
    first = unit(np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))]))
    return np.stack([first, np.cross(axis, first), axis])


def product_rule(n: int, edges: list[float], shares: list[float], axis: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most about `n` points: rows of Gauss-Legendre in the height `w = 1 - <axis, x>` on each panel of `edges`, trapezoid rule along each row.

    Returns `(points (m, 3), heights (m,), areas (m,))`; the areas sum to those of the panels. Every other row is turned by half a step.
    """
    if not n >= 1:
        raise InputError(f"A law has at least one node.\n  n = {n!r}")
    rows = max(round(np.sqrt(n / 2)), len(shares))
    around = max(n // rows, 1)
    counts = [max(round(share * rows), 1) for share in shares]
    heights, areas = [], []
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        node, weight = np.polynomial.legendre.leggauss(count)
        heights.append(low + (high - low) * (node + 1) / 2)
        areas.append((high - low) * weight / 2)
    w = np.concatenate(heights)[:, None]
    turn = (np.arange(around) + 0.5 * (np.arange(len(w))[:, None] % 2)) * (2 * np.pi / around)
    radius = np.sqrt(w * (2 - w))
    local = np.stack([radius * np.cos(turn), radius * np.sin(turn), np.broadcast_to(1 - w, turn.shape)], axis=-1).reshape(-1, 3)
    return unit(local @ frame_of(axis)), np.repeat(w, around), np.repeat(np.concatenate(areas), around) * (2 * np.pi / around)


class FisherMixture(InitialLaw):
    """`sum_c w_c kappa_c e^{kappa_c (<e_c, x> - 1)} / (2 pi (1 - e^{-2 kappa_c}))`; made by `initial.fisher_mixture` and `initial.uniform`."""

    def __init__(self, centres: Any, kappa: Any, weights: Any = None, *, name: str | None = None) -> None:
        self.geometry = Sphere()
        self.centres = self.geometry.check_points(centres)
        count = len(self.centres)
        try:
            given = np.asarray(kappa, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"kappa is a number, or one a bump.\n  kappa = {kappa!r}") from None
        if given.shape not in ((), (1,), (count,)):
            raise InputError(f"One kappa for all bumps, or one a bump.\n  There are {count} centres, kappa has shape {given.shape}.")
        self.kappa = np.broadcast_to(given, (count,))
        if not (np.isfinite(self.kappa).all() and (self.kappa >= 0).all()):
            raise InputError(f"kappa must be finite and >= 0.\n  kappa = {kappa!r}")
        masses = check_weights(np.ones(count) if weights is None else weights, count)
        self.weights = masses / masses.sum()
        self.name = name or f"Fisher mixture ({count} bump{'s' if count > 1 else ''})"
        self.peaks = np.array([height_scale(k) for k in self.kappa]) / (2 * np.pi)  # density of each bump at its centre

    @property
    def is_uniform(self) -> bool:
        """Whether all bumps are flat."""
        return bool((self.kappa == 0).all())

    def density(self, points: np.ndarray) -> np.ndarray:
        x = np.asarray(points, dtype=float)
        density = np.zeros(len(x))
        for e, k, peak in zip(self.centres, self.kappa, self.weights * self.peaks, strict=True):
            density += peak * np.exp(-0.5 * k * dot(x - e, x - e))  # 1 - <e,x> = |x - e|^2 / 2 keeps the digits of a narrow bump
        return density

    def cell_masses(self, mesh: Mesh) -> np.ndarray:
        """Exact to about 1e-14 for any sharpness (`mfpde.initial.fisher`)."""
        masses = self.weights @ [fisher_cells(mesh, e, k) if k > 0 else mesh.volumes / FOUR_PI for e, k in zip(self.centres, self.kappa, strict=True)]
        if abs(masses.sum() - 1) > 1e-12 or masses.min() < -1e-13:
            raise NumericalError(f"The cell masses of {self.name} sum to {masses.sum()!r}, the smallest is {masses.min():.3g}.\n  Please report the mixture.")
        return np.maximum(masses, 0.0)  # empty cells may come out as -1e-15

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        bump = rng.choice(len(self.weights), n, p=self.weights)
        level, turn = rng.random(n), 2 * np.pi * rng.random(n)
        k = self.kappa[bump]
        w = np.where(k > 0, -np.log1p(level * np.expm1(-2 * k)) / np.where(k > 0, k, 1.0), 2 * level)  # the cap of height w holds `level`
        radius = np.sqrt(w * np.maximum(2 - w, 0.0))
        local = np.stack([radius * np.cos(turn), radius * np.sin(turn), 1 - w], axis=1)
        return unit(np.einsum("nk,nkj->nj", local, np.stack([frame_of(e) for e in self.centres])[bump]))

    def nodes(self, n: int) -> Measure:
        """A product rule about each centre, with the mass of its bump. About `n` points; the weights are divided by their sum, 1 but for the quadrature.

        The points lie on circles of latitude about the centres. Where the whole problem is symmetric about such an axis, a circle crosses the border of
        two basins in one go, and their masses are wrong by that of a circle: give the law as `from_density` there, whose circles have another axis.
        """
        each = max(n // len(self.weights), min(n, 1))
        parts = []
        for e, k, mass, peak in zip(self.centres, self.kappa, self.weights, self.peaks, strict=True):
            narrow = k > CAP / 2
            points, heights, areas = product_rule(each, [0.0, CAP / k, 2.0] if narrow else [0.0, 2.0], [0.75, 0.25] if narrow else [1.0], e)
            parts.append((points, mass * peak * areas * np.exp(-k * heights)))
        points, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Measure(points, weights / weights.sum())

    def mass_of_halfspace(self, w: np.ndarray) -> float:
        direction = np.asarray(w, dtype=float) / np.linalg.norm(w)
        halves = [fisher_halfspace(float(e @ direction), float(k)) for e, k in zip(self.centres, self.kappa, strict=True)]
        return float(self.weights @ halves)


class SphereDensity(InitialLaw):
    """A law with density proportional to `f(points (n, 3)) -> (n,)`; made by `initial.from_density`."""

    BISECTIONS = 4  # 5120 triangles of side 0.07, looked at in 35 points each

    def __init__(self, f: Callable[[np.ndarray], np.ndarray], *, name: str = "given density") -> None:
        self.geometry, self.name = Sphere(), name
        self._f = f

    def _checked(self, points: np.ndarray) -> np.ndarray:
        value = np.asarray(self._f(points), dtype=float)
        if value.shape != (len(points),):
            raise InputError(f"The density function maps points (n, d) to values (n,).\n  For {len(points)} points it returned shape {value.shape}.")
        good = value >= 0
        if not (good.all() and (value < np.inf).all()):
            bad = int(np.argmax(~(good & (value < np.inf))))
            raise InputError(
                f"The density of {self.name} is not finite and non-negative.\n"
                f"  density({points[bad].tolist()}) = {value[bad]:.6g}\n  A law of tokens needs a density >= 0."
            )
        return value

    @cached_property
    def _leaves(self) -> Leaves:
        """The sphere in triangles on which the density is smooth."""
        leaves = settle(self._checked, whole_sphere(self.BISECTIONS))
        if not leaves.values.sum() > 0:
            raise InputError(
                f"The density of {self.name} has no positive mass.\n"
                f"  Its integral over the sphere is {leaves.values.sum()}.\n  Give a function that is >= 0 and integrable."
            )
        return leaves

    @cached_property
    def total(self) -> float:
        """The integral of f."""
        return float(self._leaves.values.sum())

    def density(self, points: np.ndarray) -> np.ndarray:
        return self._checked(np.asarray(points, dtype=float)) / self.total

    def cell_masses(self, mesh: Mesh) -> np.ndarray:
        """By adaptive quadrature over the triangles of each cell, divided by their sum; relative error about 1e-12, at jumps about 1e-6 of the whole in all."""
        cell, corners = cell_triangles(mesh)
        leaves = settle(self._checked, corners)
        masses = np.bincount(cell[leaves.owner], leaves.values, len(mesh))
        if not abs(masses.sum() / self.total - 1) < 1e-4:
            raise NumericalError(
                f"{self.name} has a peak that a quadrature misses.\n  Total {masses.sum()!r} on the mesh, {self.total!r} before.\n  Use a mixture."
            )
        return masses / masses.sum()

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """A triangle by its mass, then rejection inside it, where the density varies little."""
        leaves = self._leaves
        chosen = rng.choice(len(leaves.values), n, p=leaves.values / leaves.values.sum())
        used, which = np.unique(chosen, return_inverse=True)
        corners = leaves.corners[used]
        # the largest value at the nodes that gave its mass and at its corners, with some room
        probes = np.concatenate([unit(NODES @ corners), corners], axis=1)
        most = 1.5 * self._checked(probes.reshape(-1, 3)).reshape(len(used), -1).max(axis=1)
        shortest = np.linalg.norm(corners.sum(axis=1), axis=1) / 3  # |p| is least near the middle
        points, left = np.empty((n, 3)), np.arange(n)
        while len(left):
            share = np.sort(rng.random((len(left), 2)), axis=1)
            barycentric = np.stack([share[:, 0], share[:, 1] - share[:, 0], 1 - share[:, 1]], axis=1)
            p = np.einsum("nk,nkj->nj", barycentric, corners[which[left]])
            length = np.linalg.norm(p, axis=1)
            odds = self._checked(p / length[:, None]) / most[which[left]] * (0.9 * shortest[which[left]] / length) ** 3
            if (odds > 1).any():
                raise NumericalError(f"{self.name} varies too fast to draw samples from it.\n  Use a mixture, or Particles(placement='nodes').")
            taken = rng.random(len(left)) < odds
            points[left[taken]] = p[taken] / length[taken, None]
            left = left[~taken]
        return points

    def nodes(self, n: int) -> Measure:
        """One product rule over the sphere, weighted by the density. About `n` points; the weights are divided by their sum."""
        points, _, areas = product_rule(n, [0.0, 2.0], [1.0], np.array([0.0, 0.0, 1.0]))
        weights = areas * self._checked(points)
        return Measure(points, weights / weights.sum())

    def mass_of_halfspace(self, w: np.ndarray) -> float:
        direction = np.asarray(w, dtype=float) / np.linalg.norm(w)
        here, there = (settle(self._checked, hemisphere(side, self.BISECTIONS + 1)).values.sum() for side in (direction, -direction))
        return float(here / (here + there))
