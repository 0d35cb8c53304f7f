r"""Attention sums on the sphere by spherical harmonics, with a certificate.

With z = beta A x = t u, |u| = 1, the kernel is zonal in u (Funk and Hecke), with modified spherical Bessel functions i_l:

    e^{<z, y>} = sum_l 4 pi i_l(t) sum_m Y_lm(u) Y*_lm(y),      Z(z) = sum_l 4 pi i_l(t) f_l(u),   f_l = sum_m Y_lm <w, Y*_lm>,
    Z m = grad_z Z = u sum_l 4 pi i_l'(t) f_l(u) + sum_l 4 pi (i_l(t)/t) grad f_l(u).

One analysis of the weights at the sources, then syntheses at the directions u; ducc0 does both at arbitrary points. If A is a multiple of a rotation or
reflection, t is the same everywhere and three syntheses do. Otherwise i_l(t), i_l'(t) and i_l(t)/t are, as matrices in l and t, of small rank;
a singular value decomposition separates the variables, and every term costs one synthesis.

A transform is accurate to a multiple E of the largest possible sum, the total weight times e^t; softmax divides by the local Z, which may be e^{-2t} of it.
So every target gets the bound E / Z, and where that exceeds the tolerance another tier must do the work. E is an estimate with a margin, not a proof,
so every evaluation is checked at a few targets against the plain sum, and promises nothing if the check fails (docs/attention_sphere).
The same targets show beforehand whether enough would pass to be worth the transforms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

from mfpde.attention.direct import EPS
from mfpde.attention.exp2 import LOG2E
from mfpde.attention.tree import NOTHING, softmax_sum
from mfpde.compiled import as_float_array, compiled
from mfpde.model import Attention

TRANSFORM = 1e-13  # asked of ducc0
SEPARATION = 3e-14  # what the separation of l and t may lose, of a total of 1
NEAR, FAR = 1e-13, 2.5e-14  # noise of the transforms: relative to the local sum, and to the largest possible one (measured: half of that, and a fifth)
ANGLES = 1e-15  # each |z| of the scores adds this: colatitude and longitude are rounded
PROBES = 16  # targets summed directly at every evaluation
WORTH = 0.25  # share of the probes that must pass for the transforms to be done at all
THREADED = 100_000  # points above which ducc0 uses all cores


def scaled_bessel(t: np.ndarray, degree: int) -> np.ndarray:
    """`i_l(t) e^{-t}` for l = 0 .. degree, to a relative error of a few l eps; shape (degree + 1, len(t)).

    From i_0 = sinh(t)/t by the ratios r_l = i_l / i_{l-1} = t / (2l + 1 + t r_{l+1}), run downwards, where errors die out. (The library's Bessel functions
    lose two digits.) They start from a bound of Amos, Math. Comp. 28 (1974).

    Examples
    --------
    >>> scaled_bessel(np.array([0.0, 2.0]), 1).round(6)  # i_0 = sinh(t)/t, i_1 = (t cosh(t) - sinh(t))/t^2
    array([[1.      , 0.245421],
           [0.      , 0.131868]])
    """
    values = np.ones((degree + 1, len(t)))
    positive = t > 0
    values[0, positive] = -np.expm1(-2 * t[positive]) / (2 * t[positive])
    top = degree + 60 + int(2 * np.sqrt(t.max()))
    ratio = t / (top + 0.5 + np.hypot(top + 1.5, t))
    for l in range(top - 1, 0, -1):
        ratio = t / (2 * l + 1 + t * ratio)
        if l <= degree:
            values[l] = ratio
    return np.cumprod(values, axis=0)


def bandwidth(t: float) -> int:
    """Degree beyond which `sum_l (2l + 1) i_l(t) e^{-t}`, of total 1, has at most 1e-16 left.

    Examples
    --------
    >>> bandwidth(0.0), bandwidth(10.0), bandwidth(100.0)
    (1, 31, 88)
    """
    degrees = np.arange(40 + int(12 * np.sqrt(t)))
    left = np.cumsum(((2 * degrees + 1) * scaled_bessel(np.array([t]), len(degrees) - 1)[:, 0])[::-1])[::-1]
    return max(1, int(np.sum(left > 1e-16)) - 1)


def separate(columns: np.ndarray) -> tuple[np.ndarray, float]:
    """An orthonormal basis (r, L + 1) of as few rows as reproduce `columns` (L + 1, c) up to `SEPARATION` in the sum of absolute values; and what is lost."""
    basis, singular, _ = np.linalg.svd(columns, full_matrices=False)
    least = int(np.sum(singular > SEPARATION * columns.shape[1] ** 0.5))  # some column loses more than SEPARATION with fewer
    for rank in range(max(1, least), basis.shape[1] + 1):
        rows = basis[:, :rank].T
        lost = float(np.abs(columns - rows.T @ (rows @ columns)).sum(axis=0).max())
        if lost <= SEPARATION:
            break
    return rows, lost


class Separated:
    """Functions `4 pi g_l(t) = sum_r a_rl b_r(t)`, the a common to all of them.

    `functions(t)` returns a list of arrays g (L + 1, len(t)), entire functions of t. `multipliers` is a (r, L + 1), `factors` one array b (r, n)
    for each function at the targets' t, `lost` the largest error of `sum_l (2l + 1) |g_l|`.
    """

    def __init__(self, functions: Callable[[np.ndarray], list[np.ndarray]], t: np.ndarray) -> None:
        middle, half = 0.5 * (t.max() + t.min()), 0.5 * (t.max() - t.min())
        size = 16
        if half <= 32 * EPS * middle:
            half, size = 0.0, 1
        while True:
            angle = np.pi * (np.arange(size) + 0.5) / size
            samples = functions(middle + half * np.cos(angle))
            weight = (2 * np.arange(len(samples[0])) + 1)[:, None]
            rows, self.lost = separate(weight * np.concatenate(samples, axis=1))
            # discrete orthogonality of the Chebyshev polynomials at their nodes
            project = np.cos(angle[:, None] * np.arange(size)) * np.where(np.arange(size) == 0, 1.0, 2.0) / size
            series = [rows @ (weight * g) @ project for g in samples]
            left = max(float(np.abs(coefficients[:, -2:]).max()) for coefficients in series) if half > 0 else 0.0
            if left <= SEPARATION / 5 or size == 256:
                break
            size *= 2
        self.lost += 5 * left
        self.multipliers = 4 * np.pi * rows / weight.T
        place = (t - middle) / half if half > 0 else np.zeros_like(t)
        polynomials = chebyshev.chebvander(place, size - 1).T
        self.factors = [coefficients @ polynomials for coefficients in series]


def angles(u: np.ndarray) -> np.ndarray:
    """Colatitude and longitude of vectors u (n, 3), as ducc0 wants them; shape (n, 2)."""
    return np.stack([np.arctan2(np.hypot(u[:, 0], u[:, 1]), u[:, 2]), np.arctan2(u[:, 1], u[:, 0]) % (2 * np.pi)], axis=1)


@compiled
def plain_sums(z, t, y, log2_weights):
    """`e^{-t} sum_j w_j e^{<z, y_j>} (1, y_j)` for a few z (r, 3) of length t, over all sources y (3, n); shape (r, 4)."""
    sums = np.empty((len(z), 4))
    for i in range(len(z)):
        sums[i] = softmax_sum(z[i, 0] * LOG2E, z[i, 1] * LOG2E, z[i, 2] * LOG2E, y[0], y[1], y[2], log2_weights, t[i] * LOG2E)
    return sums


class Harmonics:
    """Zonal sums on S^2 by transforms; `inf` as the error of targets whose Z is too far below the largest possible one, or of all if few would reach `tol`.

    Cost: one analysis and `terms` syntheses, each about 50 ns a point and core and 1.5 L^3 ns, L = `degree`; memory 2 `terms` doubles a target.

    Attributes
    ----------
    degree : int
        Band limit L, about 9 sqrt(beta |A|).
    terms : int
        Number of syntheses; 3 (one of a gradient) if A is a multiple of an orthogonal matrix.

    Examples
    --------
    >>> import mfpde as mf
    >>> mesh = mf.Sphere().mesh(2562)
    >>> tier = Harmonics(mf.Attention.identity(3, beta=3), mesh.centres, mesh.centres, tol=1e-10)
    >>> log_z, mean, error = tier.evaluate(mesh.volumes / (4 * np.pi), np.arange(5))
    >>> tier.degree, tier.terms, bool(abs(log_z - np.log(np.sinh(3) / 3)).max() < 1e-4), bool(error.max() < 1e-10)
    (20, 3, True, True)
    """

    name = "harmonics"

    def __init__(self, attention: Attention, sources: np.ndarray, targets: np.ndarray, tol: float) -> None:
        self.tol = tol
        self.sources, self.z = as_float_array(sources.T), attention.beta * (targets @ attention.A.T)
        self.t = np.linalg.norm(self.z, axis=1)
        self.degree = degree = bandwidth(float(self.t.max()))
        self.places, self.directions = angles(sources), angles(self.z)
        self.frame = np.concatenate([np.sin(self.directions), np.cos(self.directions)], axis=1)  # sines and cosines of colatitude and longitude
        order = np.arange(degree + 1)[:, None]

        def values_and_slopes(t: np.ndarray) -> list[np.ndarray]:
            i = scaled_bessel(t, degree + 1)
            below = np.concatenate([i[:1], i[:-2]])  # multiplied by l = 0 where it is meaningless
            return [i[:-1], (order * below + (order + 1) * i[1:]) / (2 * order + 1)]

        def gradients(t: np.ndarray) -> list[np.ndarray]:
            i = scaled_bessel(t, degree + 1)
            return [np.concatenate([np.zeros((1, len(t))), (i[:-2] - i[2:]) / (2 * order[1:] + 1)])]  # i_l/t, also at t = 0

        self.radial = Separated(values_and_slopes, self.t)
        self.tangential = Separated(gradients, self.t)
        self.terms = len(self.radial.multipliers) + len(self.tangential.multipliers)

    @staticmethod
    def pays(attention: Attention, sources: int, targets: int) -> bool:
        """Whether the transforms cost well below the pruned sums of an even density (`Tree`), so that a try is cheap even where most targets fail.

        The model: 60 ns a point and transform, .2 L^3 ns a transform; .25 ns a kept pair. Measured, two cores (docs/attention_sphere).
        """
        stretch = np.linalg.svd(attention.A, compute_uv=False)
        degree = 9 * np.sqrt(attention.beta * float(stretch[0])) + 10
        terms = 3.0 if stretch[-1] >= stretch[0] * (1 - 1e-13) else 32 + 0.4 * degree * max(0.0, 0.3 - stretch[-1] / stretch[0])
        transforms = 60e-9 * (sources + terms * targets) + 0.2e-9 * (1 + terms) * degree**3
        mean_scale = max(attention.beta * float(np.sqrt(np.mean(stretch**2))), 1e-9)
        reach = np.sqrt(60 / mean_scale) + 12 / np.sqrt(sources)  # of the kernel, and of leaves of 40 points on both sides
        pairs = sources * targets * min(1.0, reach**2 / 4)
        return bool(transforms < 0.4 * 0.25e-9 * pairs)

    def evaluate(self, weights: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z (r,), m (r, 3), error (r,))` at the targets `rows`."""
        total = weights.sum()
        w = weights / total
        probes = np.linspace(0, len(rows) - 1, min(PROBES, len(rows)), dtype=int)
        check = rows[probes]
        with np.errstate(divide="ignore"):
            log2_weights = np.maximum(np.log2(w), NOTHING)
        exact = plain_sums(self.z[check], self.t[check], self.sources, log2_weights)
        if np.mean(self.errors(exact[:, 0], check) <= self.tol) < WORTH:
            return np.zeros(len(rows)), np.zeros((len(rows), 3)), np.full(len(rows), np.inf)
        sums = self.sums(w, rows)
        Z = sums[:, 0]
        error = self.errors(Z, rows)
        if (np.abs(sums[probes] - exact).max(axis=1) > self.noise(Z[probes], check)).any():
            error[:] = np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(Z) + (self.t[rows] + np.log(total)), sums[:, 1:] / Z[:, None], error

    def noise(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What the transforms lose of `e^{-t} Z`, in units of the total weight."""
        return (NEAR + ANGLES * self.t[rows]) * np.abs(Z) + FAR + self.radial.lost + self.tangential.lost

    def errors(self, Z: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The bound for log Z and m where `e^{-t} Z` is Z."""
        noise = self.noise(Z, rows)
        return np.divide(2 * noise, Z, out=np.full(len(Z), np.inf), where=2 * noise < Z)

    def sums(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """`e^{-t} (Z, Z m)` at the targets `rows`; shape (r, 4)."""
        import ducc0

        degree = self.degree
        options = {"lmax": degree, "mmax": degree, "epsilon": TRANSFORM, "nthreads": 1 if max(len(weights), len(rows)) < THREADED else 0}
        moments = ducc0.sht.adjoint_synthesis_general(map=weights[None], spin=0, loc=self.places, **options)
        directions = self.directions[rows]
        l = np.concatenate([np.arange(m, degree + 1) for m in range(degree + 1)])
        values, slopes, tangent = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros((2, len(rows)))
        for multiplier, value, slope in zip(self.radial.multipliers, *self.radial.factors, strict=True):
            f = ducc0.sht.synthesis_general(alm=moments * multiplier[l], spin=0, loc=directions, **options)[0]
            values += value[rows] * f
            slopes += slope[rows] * f
        for multiplier, factor in zip(self.tangential.multipliers, *self.tangential.factors, strict=True):
            tangent += factor[rows] * ducc0.sht.synthesis_general(alm=moments * multiplier[l], spin=1, mode="DERIV1", loc=directions, **options)
        (sin_u, sin_v, cos_u, cos_v), (south, east) = self.frame[rows].T, tangent
        across = sin_u * slopes + cos_u * south
        return np.stack([values, across * cos_v - east * sin_v, across * sin_v + east * cos_v, cos_u * slopes - sin_u * south], axis=1)
