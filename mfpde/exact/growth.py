"""How fast a Fourier mode grows on the uniform law."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ive

from mfpde.errors import InputError
from mfpde.model import Attention

LARGEST_BESSEL = 1e8  # scipy's scaled Bessel functions give NaN beyond 2^30


def growth_rate(attention: Attention, k: Any) -> Any:
    r"""Complex rate `lambda_k` of the perturbation `rho = (1 + Re eps e^{i k theta + lambda t}) / 2 pi` of the uniform law on the circle.

    For planar `V = a I + b J` and `A = c R(phi)`, c >= 0, J the quarter turn, R a rotation; with `I_n` at `c beta`, over `I_0`, and `G_n = I_n e^{i n phi}`:

        lambda_k = -i k (K_k + K_0 (1 - G_k)),     K_n = a i (G_{n-1} - G_{n+1})/2 + b (G_{n-1} + G_{n+1})/2

    For V = A = I this is `(k^2 / beta) I_k / I_0`, at most 2/e. The real part is growth; the wave travels at the angular speed `-Im(lambda_k) / k`.
    The moment `z_k = int e^{i k theta} dmu` of `diagnostics.fourier_moments` grows at the conjugate rate.

    Parameters
    ----------
    attention : Attention
        `beta` from 0 to inf.
    k : int or array_like of int
        Wave numbers.

    Returns
    -------
    complex or ndarray of complex

    Raises
    ------
    InputError
        If V or A has another form, k is not whole, or `c beta` is finite and above 1e8.

    Notes
    -----
    Absolute error about `eps k |V|`. Derived in docs/theory.

    Examples
    --------
    >>> import mfpde as mf
    >>> round(growth_rate(mf.Attention.identity(2, beta=1.0), 1).real, 10)
    0.4463899659
    """
    modes = np.asarray(k)
    if not (np.issubdtype(modes.dtype, np.number) and np.isrealobj(modes) and np.array_equal(modes, np.round(modes))):
        raise InputError(f"Wave numbers on the circle are whole.\n  k = {k!r}")
    V = _planar("V", attention.V)
    score = _planar("A = K^T Q", attention.A)
    sharpness = float(attention.beta * abs(score)) if abs(score) > 0 else 0.0
    if LARGEST_BESSEL < sharpness < np.inf:
        raise InputError(f"Growth rates are computed for beta |A| up to {LARGEST_BESSEL:g}, and inf.\n  beta |A| = {sharpness:g}")
    phi = np.angle(score)
    n = modes.astype(float)

    def bessel(n: Any) -> Any:
        """I_n / I_0."""
        return np.ones(np.shape(n)) if sharpness == np.inf else ive(np.abs(n), sharpness) / ive(0, sharpness)

    def K(n: Any) -> Any:
        """With I_{n-1} - I_{n+1} = 2 n I_n / (c beta), which has no cancellation."""
        total = (bessel(n - 1) + bessel(n + 1)) / 2
        difference = n * bessel(n) / sharpness if sharpness > 1 else (bessel(n - 1) - bessel(n + 1)) / 2
        c, s = np.cos(phi), np.sin(phi)
        return np.exp(1j * n * phi) * (V.real * (1j * difference * c + total * s) + V.imag * (total * c - 1j * difference * s))

    rate = -1j * n * (K(n) + K(0.0) * (1 - bessel(n) * np.exp(1j * n * phi)))
    return complex(rate) if modes.ndim == 0 else rate


def _planar(name: str, matrix: np.ndarray) -> complex:
    """`a + i b` of the matrix `a I + b J`, or an `InputError`."""
    a, b = matrix[0, 0], matrix[-1, 0]
    if matrix.shape != (2, 2) or np.abs(matrix - [[a, -b], [b, a]]).max() > 1e-14 * np.abs(matrix).max():
        raise InputError(f"{name} must be a multiple of a rotation of the plane: only then do Fourier modes grow one by one.\n  {name} = {matrix.tolist()}")
    return complex(a, b)
