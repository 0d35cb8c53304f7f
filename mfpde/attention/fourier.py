r"""Attention sums by fast Fourier transform, with a certificate.

Split A into its conformal and anti-conformal part. On the circle, with x at angle a and y at angle b,

    <A x, y> = p cos(a + alpha - b) + q cos(a + gamma + b),        A = p R_alpha + q S_gamma.

`Circulant`: if p or q vanishes (A is a multiple of a rotation or reflection) and sources and targets are grids of one spacing, the sum
is a circular convolution with the kernel itself, tabulated: no spectral truncation, exact for every beta.

`Spectral`: in general the two factors expand in Bessel functions, e^{z cos t} = sum_n I_n(z) e^{int}, and

    Z(a) = sum_{n,k} I_n(beta p) e^{in alpha} I_k(beta q) e^{ik gamma} e^{i(n+k)a} w^(k-n),    w^(l) = sum_j w_j e^{il b_j}:

analysis, a small matrix, synthesis. Analysis and synthesis are non-uniform transforms (ducc0), so any points will do.

An FFT is accurate to a multiple E of the *largest* possible sum, e^{beta (p+q)}; softmax divides by the local Z, which may be smaller by
e^{-2 beta}. So every target gets the bound E / Z, and where it exceeds the tolerance another tier must do the work (docs/numerics).
"""

from __future__ import annotations

import numpy as np
from scipy import fft
from scipy.special import ive

from mfpde.attention.direct import EPS
from mfpde.geometry import signed_angle
from mfpde.model import Attention


def conformal_parts(A: np.ndarray) -> tuple[float, float, float, float]:
    """`(p, alpha, q, gamma)` with `A = p R_alpha + q S_gamma`, where S_gamma maps the angle a to -(a + gamma)."""
    rotation = complex(A[0, 0] + A[1, 1], A[1, 0] - A[0, 1]) / 2
    reflection = complex(A[0, 0] - A[1, 1], -(A[1, 0] + A[0, 1])) / 2
    return abs(rotation), float(np.angle(rotation)), abs(reflection), float(np.angle(reflection))


def grid_offset(points: np.ndarray) -> float | None:
    """The angle of the first point if `points` are equally spaced counter-clockwise to a few eps, else None."""
    angles = np.arctan2(points[:, 1], points[:, 0])
    expected = angles[0] + 2 * np.pi / len(points) * np.arange(len(points))
    gap = signed_angle(angles - expected)
    return float(angles[0]) if np.abs(gap).max() <= 16 * EPS else None


def transform_error(size: int) -> float:
    """A bound for one FFT of `size`, relative to the 2-norm of its data: 8 u a radix-2 stage (Higham, Accuracy and Stability, thm 24.2).

    Sizes with a prime factor above 11 go through a longer transform three times (Bluestein).
    """
    rest = size
    for prime in (2, 3, 5, 7, 11):
        while rest % prime == 0:
            rest //= prime
    return 8 * EPS * np.log2(max(size, 2)) * (1 if rest == 1 else 4)


def is_conformal(A: np.ndarray) -> bool:
    """Whether A is a multiple of a rotation or a reflection, to a few eps."""
    p, _, q, _ = conformal_parts(A)
    return min(p, q) <= 4 * EPS * max(p, q)


class Circulant:
    """Grid to grid of one spacing, A a multiple of a rotation or reflection: one transform forth, three back.

    Cost: about 4 real FFTs of the grid's size; memory 3 half-spectra.
    """

    name = "fft"

    def __init__(self, attention: Attention, targets: np.ndarray, source_offset: float, target_offset: float) -> None:
        p, alpha, q, gamma = conformal_parts(attention.A)
        self.reflected = q > p
        scale = attention.beta * max(p, q)
        size = len(targets)
        steps = 2 * np.pi / size * np.arange(size)
        if self.reflected:  # A x sits at -(a + gamma)
            gap = source_offset + target_offset + gamma + steps
        else:
            gap = source_offset - target_offset - alpha - steps
        kernel = np.exp(-2 * scale * np.sin(gap / 2) ** 2)
        # y = u cos(gap) + u_perp sin(gap), u = A x / |A x|
        self.spectra = [fft.rfft(k) for k in (kernel, -2 * np.sin(gap / 2) ** 2 * kernel, np.sin(gap) * kernel)]
        self.scale, self.size = scale, size
        self.kernel_norm = float(np.linalg.norm(kernel))
        sign = -1.0 if self.reflected else 1.0
        angle = sign * (target_offset + steps) + (-gamma if self.reflected else alpha)
        self.towards = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        self.across = np.stack([-self.towards[:, 1], self.towards[:, 0]], axis=1)

    def evaluate(self, weights: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z, m, error)` at the targets `rows`."""
        spectrum = fft.rfft(weights)
        if self.reflected:
            spectrum = spectrum.conj()
        Z, radial, tangential = (fft.irfft(spectrum * k, self.size) for k in self.spectra)
        # |error| <= E componentwise: forth, product and back lose one transform_error each, of |kernel|_2 |weights|_2
        E = 3 * transform_error(self.size) * self.kernel_norm * np.sqrt(np.sum(weights * weights))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            mean = self.towards + (radial / Z)[:, None] * self.towards + (tangential / Z)[:, None] * self.across
            log_z = np.log(Z) + self.scale
            # m: the numerators' kernels are at most twice as large; the angles themselves carry a few eps into the scores
            error = np.where(Z > 2 * E, 8 * E / Z + 8 * EPS * self.scale, np.inf)
        if len(rows) == self.size:
            return log_z, mean, error
        return log_z[rows], mean[rows], error[rows]


class Spectral:
    """Any sources, any targets, any A: non-uniform analysis, Bessel multipliers, non-uniform synthesis.

    Cost: O(n + m) with about 30 ns a point (ducc0), plus (2L+1)^2 multiplications unless A is conformal; L = 12 + 8.5 sqrt(beta |A|).
    Memory O(n + m + L^2).
    """

    name = "fft"
    TRANSFORM = 1e-14  # asked of ducc0
    SAFETY = 50.0  # its errors are stated in the 2-norm; the bound below is for every single value

    def __init__(self, attention: Attention, sources: np.ndarray, targets: np.ndarray) -> None:
        p, alpha, q, gamma = conformal_parts(attention.A)
        self.sources, self.targets = (np.arctan2(x[:, 1], x[:, 0]) % (2 * np.pi) for x in (sources, targets))
        self.scale = attention.beta * (p + q)
        n, k = self.bandwidth(attention.beta * p), self.bandwidth(attention.beta * q)
        self.modes = n + k + 1
        rotating = ive(np.arange(-n, n + 1), attention.beta * p) * np.exp(1j * alpha * np.arange(-n, n + 1))
        reflecting = ive(np.arange(-k, k + 1), attention.beta * q) * np.exp(1j * gamma * np.arange(-k, k + 1))
        self.n, self.k = n, k
        self.rotating, self.reflecting = rotating, reflecting
        # what the truncated Bessel series leave out, of a total of 1
        self.lost = sum(max(0.0, 1 - np.abs(series).sum()) for series in (rotating, reflecting))

    @staticmethod
    def bandwidth(z: float) -> int:
        """Number of modes beyond which I_n(z) e^{-z} is below 1e-17."""
        return 0 if z == 0 else int(12 + 8.8 * np.sqrt(z))

    def _apply(self, moments: np.ndarray, shift: int) -> np.ndarray:
        """Spectrum of the sum whose source moments are `w^(l + shift)`; modes -(n+k) .. n+k."""
        n, k, centre = self.n, self.k, len(moments) // 2
        out = np.zeros(2 * (n + k) + 1, dtype=complex)
        for j in range(-k, k + 1):  # one column of the small matrix at a time
            source = moments[centre + shift + j - np.arange(-n, n + 1)]
            out[j + k : j + k + 2 * n + 1] += self.reflecting[j + k] * self.rotating * source
        return out

    def evaluate(self, weights: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(log Z, m, error)` at the targets `rows`."""
        import ducc0

        half = self.n + self.k + 1
        options = {"epsilon": self.TRANSFORM, "nthreads": 1 if max(len(self.sources), len(rows)) < 100_000 else 0, "fft_order": False}
        moments = np.zeros(2 * half + 2, dtype=complex)  # ducc0 orders modes -N/2 .. N/2 - 1
        ducc0.nufft.nu2u(points=weights.astype(complex), coord=self.sources[:, None], forward=False, out=moments, **options)
        moments = moments[1:]  # modes -half .. half
        total = weights.sum()
        targets = self.targets[rows]
        spectra = [self._apply(moments, shift) for shift in (0, 1)]
        values = []
        for spectrum in spectra:
            padded = np.zeros(len(spectrum) + 1, dtype=complex)
            padded[1:] = spectrum
            values.append(ducc0.nufft.u2nu(grid=padded, coord=targets[:, None], forward=False, **options))
        Z, M = values[0].real, values[1]
        E = total * (self.SAFETY * self.TRANSFORM + self.lost + 16 * EPS * half)
        with np.errstate(divide="ignore", invalid="ignore"):
            m = M / Z
            error = np.where(Z > 2 * E, 4 * E / Z + 8 * EPS * self.scale, np.inf)
            return np.log(Z) + self.scale, np.stack([m.real, m.imag], axis=1), error
