r"""Initial laws: each knows its density, its exact cell masses, how to sample and how to place deterministic nodes.

On the circle everything but the density comes from one object, the cumulative function `F(theta) = mu_0([0, theta])`. It is tabulated
once on panels that are halved until two Gauss-Legendre rules agree to round-off: narrow peaks and jumps get small panels, smooth parts
large ones. Cell masses are differences of F, samples are `F^{-1}` of uniform numbers.

Deterministic nodes are the quantiles `(j - 1/2)/n` of half the law and half the uniform law, with weights that undo the mixing: a
trapezoid rule in a variable that follows every cluster and still sees the tails, which softmax attention at low temperature reads.
Spectrally accurate for smooth densities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ive

from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Circle, Geometry, Sphere
from mfpde.measure import Measure, check_weights
from mfpde.mesh import Mesh

TWO_PI = 2 * np.pi


class InitialLaw:
    """A probability measure on a geometry; the base of the named laws below.

    `density(points)` is per arc length or area, shape (n,); `cell_masses(mesh)` (N,); `sample(n, rng)` points (n, d);
    `nodes(n)` a deterministic `Measure`; `mass_of_halfspace(w)` is `mu_0(<w, x> > 0)`, with half of what lies on the boundary.
    """

    geometry: Geometry
    name: str

    def density(self, points: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def cell_masses(self, mesh: Mesh) -> np.ndarray:
        raise NotImplementedError

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        raise NotImplementedError

    def nodes(self, n: int) -> Measure:
        raise NotImplementedError

    def mass_of_halfspace(self, w: np.ndarray) -> float:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class Cumulative:
    """`F(theta) = int_0^theta f` on [0, 2 pi] by adaptive Gauss-Legendre panels, and its inverse.

    Built in O(panels) density evaluations; `F` and `F^{-1}` cost one panel rule a point. Error about 1e-14 of the total.
    """

    ORDER = 12
    SMALLEST = 1e-13  # radians: below this a panel is a jump of the density and its error is its mass

    def __init__(self, f: Callable[[np.ndarray], np.ndarray], breaks: np.ndarray) -> None:
        self.f = f
        self.x, self.w = np.polynomial.legendre.leggauss(self.ORDER)
        left, right = breaks[:-1], breaks[1:]
        keep_left, keep_mass = [np.empty(0)], [np.empty(0)]
        total = self._rule(left, right).sum()
        if not 0 < total < np.inf:
            raise InputError(
                "The density has no finite positive mass.\n"
                f"  Its integral over the circle is {total}.\n"
                "  Give a function that is >= 0 and integrable."
            )
        while len(left):
            middle = (left + right) / 2
            coarse, halves = self._rule(left, right), (self._rule(left, middle), self._rule(middle, right))
            fine = halves[0] + halves[1]
            done = (np.abs(fine - coarse) <= 1e-15 * total + 1e-14 * fine) | (right - left < self.SMALLEST)
            keep_left += [left[done], middle[done]]
            keep_mass += [halves[0][done], halves[1][done]]
            left, right = np.r_[left[~done], middle[~done]], np.r_[middle[~done], right[~done]]
            if len(left) > 1_000_000:
                raise NumericalError("The density is too rough to integrate: a million panels do not settle it.\n  Give a piecewise smooth function.")
        starts, masses = np.concatenate(keep_left), np.concatenate(keep_mass)
        order = np.argsort(starts)
        self.edges = np.r_[starts[order], TWO_PI]
        self.values = np.r_[0.0, np.cumsum(masses[order])]
        self.total = self.values[-1]

    def _rule(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        half = (right - left) / 2
        return half * (self.f(left[:, None] + half[:, None] * (1 + self.x)) @ self.w)

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """F, normalised to F(2 pi) = 1, for theta in [0, 2 pi]."""
        panel = np.clip(np.searchsorted(self.edges, theta, side="right") - 1, 0, len(self.edges) - 2)
        left = self.edges[panel]
        return (self.values[panel] + self._rule(left, theta)) / self.total

    def inverse(self, u: np.ndarray, *, uniform_share: float = 0.0) -> np.ndarray:
        """The angle at which `(1 - share) F + share theta / 2 pi` is u; Newton, with bisection inside one panel as its guard. Shape of `u`."""
        law, flat = (1 - uniform_share) / self.total, uniform_share / TWO_PI
        levels = law * self.values + flat * self.edges
        panel = np.clip(np.searchsorted(levels, u, side="right") - 1, 0, len(self.edges) - 2)
        low, high, base = self.edges[panel].copy(), self.edges[panel + 1].copy(), levels[panel]
        start = low.copy()
        theta = low + (high - low) * np.clip((u - base) / np.maximum(levels[panel + 1] - base, 1e-300), 0, 1)
        for _ in range(80):
            excess = base + law * self._rule(start, theta) + flat * (theta - start) - u
            low, high = np.where(excess < 0, theta, low), np.where(excess < 0, high, theta)
            slope = law * self.f(theta[:, None])[:, 0] + flat
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = theta - excess / slope
            step = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
            if np.all(np.abs(step - theta) <= 1e-15 * np.maximum(theta, 1)):
                break
            theta = step
        return theta


class CircleLaw(InitialLaw):
    """A law on the circle with density `f(theta)` per arc length, up to a constant that is computed."""

    def __init__(self, name: str, f: Callable[[np.ndarray], np.ndarray], *, breaks: Sequence[float] | np.ndarray = (), nonnegative: bool = True) -> None:
        self.geometry = Circle()
        self.name = name
        self._f = f
        if not nonnegative:
            self._reject_negative()
        self._breaks = np.unique(np.r_[np.linspace(0, TWO_PI, 65), np.asarray(breaks, dtype=float) % TWO_PI])

    def _reject_negative(self) -> None:
        theta = np.linspace(0, TWO_PI, 20001)
        value = self._f(theta)
        worst = int(np.argmin(value))
        if not np.isfinite(value).all() or value[worst] < 0:
            bad = int(np.argmax(~np.isfinite(value))) if not np.isfinite(value).all() else worst
            raise InputError(
                f"The density of {self.name} is not finite and non-negative.\n"
                f"  density({theta[bad]:.6g} rad) = {value[bad]:.6g}\n"
                "  A law of tokens needs a density >= 0."
            )

    @cached_property
    def cumulative(self) -> Cumulative:
        """F and its inverse, built when first needed."""
        return Cumulative(self._f, self._breaks)

    def density(self, points: np.ndarray) -> np.ndarray:
        return self._f(Circle().angles(np.asarray(points, dtype=float))) / self.cumulative.total

    def cell_masses(self, mesh: Mesh) -> np.ndarray:
        edges = TWO_PI * np.arange(len(mesh) + 1) / len(mesh)
        return np.maximum(np.diff(self.cumulative(edges)), 0.0)  # F is monotone up to round-off

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return Circle().points(self.cumulative.inverse(rng.random(n)))

    def nodes(self, n: int) -> Measure:
        """See the module's text. The weights are divided by their sum, which differs from 1 by the error of the quadrature."""
        theta = self.cumulative.inverse((np.arange(n) + 0.5) / n, uniform_share=0.5)
        density = self._f(theta) / self.cumulative.total
        weights = density / (density + 1 / TWO_PI)
        return Measure(Circle().points(theta), weights / weights.sum())

    def mass_of_halfspace(self, w: np.ndarray) -> float:
        enters = (np.arctan2(w[1], w[0]) - np.pi / 2) % TWO_PI
        leaves = (enters + np.pi) % TWO_PI
        F_in, F_out = self.cumulative(np.array([enters, leaves]))
        return float(F_out - F_in if enters < leaves else F_out - F_in + 1)


class Atoms(InitialLaw):
    """Finitely many weighted atoms on any sphere."""

    def __init__(self, measure: Measure, geometry: Geometry) -> None:
        self.geometry, self.measure = geometry, measure
        self.name = f"{len(measure)} atoms"

    def density(self, points: np.ndarray) -> np.ndarray:
        raise InputError(f"{len(self.measure)} atoms have no density.\n  Use a method that moves points: Particles, Clusters.")

    def cell_masses(self, mesh: Mesh) -> np.ndarray:
        """Each atom gives its mass to the cell whose centre is nearest."""
        from scipy.spatial import cKDTree

        cell = cKDTree(mesh.centres).query(self.measure.points)[1]
        return np.bincount(cell, self.measure.weights, len(mesh))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        weights = self.measure.weights
        return self.measure.points[rng.choice(len(weights), n, p=weights / weights.sum())]

    def nodes(self, n: int) -> Measure:
        """The atoms themselves, whatever `n` says: they are exact."""
        return self.measure

    def mass_of_halfspace(self, w: np.ndarray) -> float:
        side = self.measure.points @ np.asarray(w, dtype=float)
        return float(self.measure.weights @ (0.5 * (1 + np.sign(side))))


def uniform(geometry: Geometry) -> InitialLaw:
    """The uniform law.

    >>> import mfpde as mf
    >>> mf.initial.uniform(mf.Circle()).density(mf.Circle().points([0.3])).round(6)
    array([0.159155])
    """
    if isinstance(geometry, Circle):
        return CircleLaw("uniform", lambda theta: np.full(np.shape(theta), 1 / TWO_PI))
    if isinstance(geometry, Sphere):
        from mfpde.initial.sphere import FisherMixture

        return FisherMixture([[0, 0, 1]], 0.0, name="uniform")
    raise InputError(f"No uniform law on {geometry!r}.\n  Give a geometry of this package, e.g. Circle().")


def von_mises_mixture(angles: Any, kappa: Any, weights: Any = None) -> InitialLaw:
    r"""`sum_c w_c e^{kappa_c cos(theta - a_c)} / (2 pi I_0(kappa_c))` on the circle.

    Parameters
    ----------
    angles : array_like, shape (k,)
        Centres a_c in radians.
    kappa : float or array_like, shape (k,)
        Concentrations >= 0; a bump has standard deviation about kappa^{-1/2}.
    weights : array_like, shape (k,), optional
        Masses, equal when not given; they are divided by their sum.

    Examples
    --------
    >>> import mfpde as mf
    >>> mf.initial.von_mises_mixture([0.0, 2.0], kappa=[4, 100], weights=[1, 3])
    von Mises mixture (2 bumps)
    """
    centres = np.atleast_1d(np.asarray(angles, dtype=float))
    kappas = np.broadcast_to(np.asarray(kappa, dtype=float), centres.shape)
    if centres.ndim != 1 or not len(centres) or not np.isfinite(centres).all():
        raise InputError(f"angles must be finite numbers, one a bump.\n  angles = {angles!r}")
    if not (np.isfinite(kappas).all() and (kappas >= 0).all()):
        raise InputError(f"kappa must be finite and >= 0.\n  kappa = {kappa!r}")
    masses = check_weights(np.ones(len(centres)) if weights is None else weights, len(centres))
    # scipy's ive gives NaN beyond 2^30; there the first two terms of its asymptotic series are exact to double precision
    large = kappas > 1e8
    bessel = np.where(large, (1 + 0.125 / np.maximum(kappas, 1)) / np.sqrt(TWO_PI * np.maximum(kappas, 1)), ive(0, np.where(large, 0, kappas)))
    scale = masses / masses.sum() / (TWO_PI * bessel)

    def f(theta: np.ndarray) -> np.ndarray:
        gap = np.asarray(theta)[..., None] - centres
        return np.exp(-2 * kappas * np.sin(gap / 2) ** 2) @ scale

    width = 1 / np.sqrt(np.maximum(kappas, 1))
    breaks = centres[:, None] + width[:, None] * np.r_[-8, -4, -2, -1, 0, 1, 2, 4, 8]
    return CircleLaw(f"von Mises mixture ({len(centres)} bump{'s' if len(centres) > 1 else ''})", f, breaks=breaks.ravel())


def fisher_mixture(centres: Any, kappa: Any, weights: Any = None) -> InitialLaw:
    r"""`sum_c w_c kappa_c e^{kappa_c <e_c, x>} / (4 pi sinh kappa_c)` on the sphere S^2.

    Parameters
    ----------
    centres : array_like, shape (k, 3)
        Unit vectors e_c.
    kappa : float or array_like, shape (k,)
        Concentrations >= 0, up to about 1e12; a bump has standard deviation about kappa^{-1/2} in each direction.
    weights : array_like, shape (k,), optional
        Masses, equal when not given; they are divided by their sum.

    Examples
    --------
    >>> import mfpde as mf
    >>> law = mf.initial.fisher_mixture([[0, 0, 1], [1, 0, 0]], kappa=[4, 100], weights=[1, 3])
    >>> law
    Fisher mixture (2 bumps)
    >>> round(law.mass_of_halfspace([0, 0, 1]), 6)  # half of one bump and most of the other
    0.620503
    """
    from mfpde.initial.sphere import FisherMixture

    return FisherMixture(centres, kappa, weights)


def poisson(r: float, angle: float = 0.0) -> InitialLaw:
    """The Poisson kernel (wrapped Cauchy law) `(1 - r^2) / (2 pi (1 - 2 r cos(theta - angle) + r^2))`, 0 <= r < 1; its moments are r^k.

    >>> import mfpde as mf
    >>> mf.initial.poisson(0.3)
    Poisson kernel r=0.3
    """
    if not 0 <= r < 1:
        raise InputError(f"The Poisson kernel needs 0 <= r < 1.\n  r = {r!r}")

    def f(theta: np.ndarray) -> np.ndarray:
        return (1 - r * r) / (TWO_PI * ((1 - r) ** 2 + 4 * r * np.sin((np.asarray(theta) - angle) / 2) ** 2))

    return CircleLaw(f"Poisson kernel r={r:g}", f, breaks=angle + (1 - r) * np.r_[-32, -16, -8, -4, -2, -1, 0, 1, 2, 4, 8, 16, 32])


def fourier(coefficients: Any) -> InitialLaw:
    r"""`rho(theta) = (1 + 2 Re sum_{k>=1} c_k e^{-i k theta}) / 2 pi`, so that `c_k = int e^{i k theta} rho` is the k-th moment.

    Parameters
    ----------
    coefficients : array_like of complex, shape (K,)
        `c_1, ..., c_K`.

    Raises
    ------
    InputError
        If the density is negative somewhere.

    Examples
    --------
    >>> import mfpde as mf
    >>> law = mf.initial.fourier([0.2, 0.1j])
    >>> law.nodes(400).mean.round(6) + 0.0
    array([0.2, 0. ])
    """
    c = np.atleast_1d(np.asarray(coefficients, dtype=complex))
    if c.ndim != 1 or not np.isfinite(c).all():
        raise InputError(f"coefficients must be finite complex numbers c_1, c_2, ...\n  coefficients = {coefficients!r}")
    k = np.arange(1, len(c) + 1)

    def f(theta: np.ndarray) -> np.ndarray:
        return (1 + 2 * (np.exp(-1j * np.asarray(theta)[..., None] * k) @ c).real) / TWO_PI

    return CircleLaw(f"Fourier series ({len(c)} modes)", f, breaks=np.linspace(0, TWO_PI, 4 * len(c) + 1)[:-1], nonnegative=False)


def atoms(points: Any, weights: Any) -> InitialLaw:
    """Finitely many atoms at unit vectors `points` (n, d) with `weights` (n,) that sum to 1; the dimension names the geometry.

    >>> import mfpde as mf
    >>> mf.initial.atoms([[1, 0], [-1, 0]], [0.5, 0.5])
    2 atoms
    """
    x = np.asarray(points, dtype=float)
    geometries: dict[int, Geometry] = {geometry.dim: geometry() for geometry in Geometry.__subclasses__()}
    if x.ndim != 2 or x.shape[1] not in geometries:
        raise InputError(f"points must have shape (n, d) with d in {sorted(geometries)}.\n  points has shape {x.shape}.")
    geometry = geometries[x.shape[1]]
    return Atoms(Measure(geometry.check_points(x), weights), geometry)


def from_density(f: Callable[[np.ndarray], np.ndarray], geometry: Geometry) -> InitialLaw:
    """The law with density proportional to `f(points (n, d)) -> (n,)`, a non-negative piecewise smooth function.

    Peaks narrower than about a tenth of a degree may fall between the first panels: use a mixture for those.

    >>> import mfpde as mf
    >>> law = mf.initial.from_density(lambda x: 1 + 0.5 * x[:, 0], mf.Circle())
    >>> law.nodes(400).mean.round(6) + 0.0
    array([0.25, 0.  ])
    """
    if isinstance(geometry, Sphere):
        from mfpde.initial.sphere import SphereDensity

        return SphereDensity(f)
    if not isinstance(geometry, Circle):
        raise InputError(f"No density laws on {geometry!r}.\n  Give a geometry of this package, e.g. Circle().")

    def on_angles(theta: np.ndarray) -> np.ndarray:
        shape = np.shape(theta)
        value = np.asarray(f(Circle().points(np.ravel(theta))), dtype=float)
        if value.shape != (int(np.prod(shape)),):
            raise InputError(f"The density function maps points (n, d) to values (n,).\n  For {int(np.prod(shape))} points it returned shape {value.shape}.")
        return value.reshape(shape)

    return CircleLaw("given density", on_angles, breaks=np.linspace(0, TWO_PI, 721)[:-1], nonnegative=False)
