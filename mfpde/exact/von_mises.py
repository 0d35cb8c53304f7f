"""log Z and m of von Mises laws, at any temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ive

from mfpde.errors import InputError
from mfpde.geometry import Circle
from mfpde.measure import check_weights
from mfpde.model import Attention

TWO_PI = 2 * np.pi
LARGEST_BESSEL = 1e8  # scipy's scaled Bessel functions give NaN beyond 2^30; from here two terms of their asymptotic series are exact


def von_mises_attention(attention: Attention, kappa: Any, angle: Any, points: Any, *, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    r"""`(log Z, m)` of a von Mises law, or of a mixture of them, seen from any points of the circle.

    A von Mises law is an exponential family, so attention only tilts it: with `w = beta A x + kappa e`, e the unit vector of `angle`, and `R = |w|`

        Z(x) = I_0(R) / I_0(kappa),     m(x) = (I_1(R) / I_0(R)) w / R

    Parameters
    ----------
    attention : Attention
        In R^2, any Q, K, V; `beta` finite.
    kappa, angle : float or array_like, shape (c,)
        Concentrations >= 0 and centres in radians.
    points : array_like, shape (n, 2)
    weights : array_like, shape (c,), optional
        Masses of a mixture, equal when not given; divided by their sum.

    Returns
    -------
    log_z : ndarray, shape (n,)
    mean : ndarray, shape (n, 2)

    Raises
    ------
    InputError
        For another dimension, `beta = inf`, or bad parameters.

    Notes
    -----
    Never overflows. Source: Mardia and Jupp, Directional Statistics (2000), section 3.5.4; docs/theory.

    Examples
    --------
    >>> import mfpde as mf
    >>> log_z, mean = von_mises_attention(mf.Attention.identity(2, beta=3.0), 2.0, 0.0, mf.Circle().points([0.9]))
    >>> velocity = mf.Circle().project(mf.Circle().points([0.9]), mean)
    >>> float(np.hypot(*velocity[0]).round(12))
    0.305146104237
    """
    kappas, angles = (a.ravel() for a in np.broadcast_arrays(np.asarray(kappa, dtype=float), np.asarray(angle, dtype=float)))
    if not (np.isfinite(kappas).all() and (kappas >= 0).all() and np.isfinite(angles).all()):
        raise InputError(f"kappa is finite and >= 0, angle is finite.\n  kappa = {kappa!r}, angle = {angle!r}")
    if attention.dim != 2 or attention.beta == np.inf:
        raise InputError(f"von Mises laws live on the circle, and beta is finite here.\n  attention = {attention!r}")
    masses = check_weights(np.ones(len(kappas)) if weights is None else weights, len(kappas))
    x = Circle().check_points(points)
    pull = attention.beta * (x @ attention.A.T)  # (n, 2)
    axis = Circle().points(angles)
    tilt = pull[:, None, :] + kappas[:, None] * axis  # (n, c, 2)
    R = np.hypot(tilt[..., 0], tilt[..., 1])
    # R - kappa = (R^2 - kappa^2) / (R + kappa), without the cancellation
    both = R + kappas
    risen = (np.sum(pull**2, axis=1)[:, None] + 2 * kappas * (pull @ axis.T)) / np.where(both > 0, both, 1.0)
    scaled_zero, ratio = _bessel(R)
    log_each = risen + np.log(scaled_zero) - np.log(_bessel(kappas)[0])
    log_share = log_each + np.log(masses / masses.sum(), out=np.full(len(masses), -np.inf), where=masses > 0)
    log_z = np.logaddexp.reduce(log_share, axis=1)
    each = ratio[..., None] * tilt
    return log_z, np.sum(np.exp(log_share - log_z[:, None])[..., None] * each, axis=1)


def _bessel(R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`e^{-R} I_0(R)` and `I_1(R) / (R I_0(R))`, which is 1/2 at 0."""
    large, safe = R > LARGEST_BESSEL, np.where(R > LARGEST_BESSEL, 1.0, R)
    far = np.where(large, R, 1.0)
    zero = np.where(large, (1 + 0.125 / far) / np.sqrt(TWO_PI * far), ive(0, safe))
    small = safe < 1e-8
    ratio = np.where(small, 0.5, ive(1, safe) / (ive(0, safe) * np.where(small, 1.0, safe)))
    return zero, np.where(large, (1 - 0.5 / far) / far, ratio)
