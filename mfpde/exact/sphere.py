r"""Solutions in closed form on the sphere S^2: what every method is measured against.

    axisymmetric_law   beta = 0: a law that is symmetric about an axis moves by Moebius maps along it, one number that depends on time
    growth_rate        how fast a spherical harmonic grows on the uniform law

Clusters on a great circle move as on the circle: `exact.two_clusters`. Derivations in docs/sphere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import ive

from mfpde.errors import InputError, NumericalError
from mfpde.geometry import Sphere
from mfpde.initial import InitialLaw
from mfpde.initial.sphere import SphereDensity, frame_of
from mfpde.model import Attention


def rapidity(law: InitialLaw, axis: Any, t: float) -> float:
    r"""The number s(t) by which a law with an axis of symmetry is moved along it at `beta = 0`, V = I.

    With `u = <axis, x>` every token has `u_t = (u_0 + tanh s)/(1 + u_0 tanh s)`, that is `artanh u_t = artanh u_0 + s`, and `s' = int u_t dmu_0`, s(0) = 0.

    Parameters
    ----------
    law : InitialLaw
        A density on the sphere, symmetric about `axis`.
    axis : array_like, shape (3,)
        A unit vector.
    t : float
        At least 0.

    Raises
    ------
    InputError
        If the law is not symmetric about the axis, or for another geometry or a negative time.

    Notes
    -----
    Gauss-Legendre panels in `artanh u`, where the map is a shift; DOP853 to 1e-12. Derived in docs/sphere.

    Examples
    --------
    >>> import mfpde as mf
    >>> law = mf.initial.from_density(lambda x: 1 + 0.9 * x[:, 2], mf.Sphere())
    >>> round(float(np.tanh(rapidity(law, [0, 0, 1], 3.0))), 3)
    0.965
    """
    if law.geometry != Sphere():
        raise InputError(f"Rapidities belong to laws on the sphere.\n  {law!r} lives on {law.geometry!r}.")
    if not (np.isfinite(t) and t >= 0):
        raise InputError(f"A law is asked for at a finite time >= 0.\n  t = {t!r}")
    e = Sphere().check_points(axis)[0]
    node, weight = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(-20, 20, 321)  # 1 - |u| < 1e-17 beyond
    z = (edges[:-1, None] + 0.0625 * (node + 1)).ravel()
    u, radius = np.tanh(z), 1 / np.cosh(z)
    frame = frame_of(e)
    rings = [u[:, None] * frame[2] + radius[:, None] * (np.cos(turn) * frame[0] + np.sin(turn) * frame[1]) for turn in (0.0, 1.0, 2.3, 4.0)]
    values = np.array([law.density(ring / np.linalg.norm(ring, axis=1, keepdims=True)) for ring in rings])
    if np.ptp(values, axis=0).max() > 1e-9 * values.max():
        raise InputError(
            f"{law!r} is not symmetric about the axis.\n  axis = {e.tolist()}\n  Its density varies by {np.ptp(values, axis=0).max():.3g} along a parallel."
        )
    masses = 2 * np.pi * values[0] * radius**2 * np.tile(0.0625 * weight, len(edges) - 1)
    if abs(masses.sum() - 1) > 1e-8:
        raise NumericalError(f"{law!r} is too sharp for the quadrature along its axis.\n  total {masses.sum()!r}")
    solution = solve_ivp(lambda _, s: [masses @ np.tanh(z + s[0])], (0.0, t), [0.0], method="DOP853", rtol=1e-12, atol=1e-13)
    if not solution.success:
        raise NumericalError(f"The rapidity could not be followed to t = {t:g}.\n  {solution.message}")
    return float(solution.y[0, -1])


def axisymmetric_law(law: InitialLaw, axis: Any, t: float) -> InitialLaw:
    r"""The law at time `t` that starts as `law`, symmetric about `axis`, under `beta = 0`, V = I, on the sphere.

    With `T = tanh s(t)` (`rapidity`) and `u = <axis, x>` its density is `rho_0(y) (1 - T^2)/(1 - u T)^2`, where y lies on the meridian of x at
    `u_0 = (u - T)/(1 - u T)`.

    Raises and cost as `rapidity`; cell masses by adaptive quadrature. Derived in docs/sphere.

    Examples
    --------
    >>> import mfpde as mf
    >>> law = axisymmetric_law(mf.initial.uniform(mf.Sphere()), [0, 0, 1], 1.0)  # the uniform law has no mean and rests
    >>> law.density(np.array([[0.0, 0.0, 1.0]])).round(6)
    array([0.079577])
    """
    s = rapidity(law, axis, t)
    e = Sphere().check_points(axis)[0]
    T = np.tanh(s)

    def density(x: np.ndarray) -> np.ndarray:
        u = x @ e
        # the map is a boost: y = ((x - u e)/cosh s + (u - T) e) / (1 - u T)
        y = ((x - u[:, None] * e) / np.cosh(s) + (u - T)[:, None] * e) / (1 - u * T)[:, None]
        return law.density(y / np.linalg.norm(y, axis=1, keepdims=True)) * (1 / np.cosh(s) / (1 - u * T)) ** 2

    return SphereDensity(density, name=f"Moebius image of {law!r}, rapidity {s:.6g}")


def growth_rate(attention: Attention, degree: Any) -> Any:
    r"""Rate `lambda_l` at which a spherical harmonic of degree l grows on the uniform law, for `V = v I`, `A = a I`:

        lambda_l = v l (l + 1) i_l(z) / (z i_0(z)),     z = beta a,     i_l the modified spherical Bessel functions

    Parameters
    ----------
    attention : Attention
        In R^3, V and A multiples of the identity, `beta` finite.
    degree : int or array_like of int
        At least 0.

    Raises
    ------
    InputError
        For other matrices, degrees or temperatures.

    Notes
    -----
    Source: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv 2312.10794 (the linearisation); derived in docs/sphere.

    Examples
    --------
    >>> import mfpde as mf
    >>> growth_rate(mf.Attention.identity(3, beta=3.0), [1, 2]).round(10)
    array([0.44775766, 0.65672702])
    """
    l = np.asarray(degree)
    if not (np.issubdtype(l.dtype, np.integer) and (l >= 0).all()):
        raise InputError(f"Degrees of spherical harmonics are whole numbers >= 0.\n  degree = {degree!r}")
    factors = []
    for name, matrix in (("V", attention.V), ("A = K^T Q", attention.A)):
        factor = float(np.trace(matrix)) / 3
        if matrix.shape != (3, 3) or np.abs(matrix - factor * np.eye(3)).max() > 1e-14 * np.abs(matrix).max():
            raise InputError(f"{name} must be a multiple of the identity of R^3: only then do harmonics grow one by one.\n  {name} = {matrix.tolist()}")
        factors.append(factor)
    z = abs(attention.beta * factors[1])
    if not z <= 1e8:
        raise InputError(f"Growth rates are computed for beta |A| up to 1e8.\n  beta |A| = {z:g}")
    if z < 1e-8:
        ratio = np.where(l == 1, 1 / 3, 0.0)  # i_l(z)/(z i_0(z)) at z = 0
    else:
        ratio = ive(l + 0.5, z) / (z * ive(0.5, z))
    sign = np.where(l % 2 == 1, 1.0, -1.0) if factors[1] < 0 else 1.0  # i_l(-z) = (-1)^l i_l(z), and z itself changes sign
    rate = factors[0] * l * (l + 1) * ratio * sign
    return float(rate) if l.ndim == 0 else rate
