"""Two atoms that attract each other: how far apart they are, and how long they take to merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import exp1, expi

from mfpde.errors import InputError


def merge_time(beta: float, distance: float, *, masses: Sequence[float] = (0.5, 0.5), until: float = 0.1) -> float:
    r"""The time in which the distance of two atoms on a great circle falls from `distance` to `until`, under V = A = I.

    With `s = 1 - cos D` and `g = e^{beta s}` the distance obeys

        D' = -sin D ( m_2/(m_2 + m_1 g) + m_1/(m_1 + m_2 g) )

    and for equal masses `t = F(s_0) - F(s)` with `F(s) = (log(s/(2 - s)) + Ei(beta s) - e^{2 beta} Ei(-beta (2 - s))) / 4`. So it grows like `e^{beta s_0}`.

    Parameters
    ----------
    beta : float
        Finite, at least 0.
    distance, until : float
        Radians, `0 < until <= distance < pi`. The atoms never meet: finally the distance falls like `e^{-t}`.
    masses : pair of floats
        Positive, of sum 1.

    Returns
    -------
    float
        `inf` where it exceeds the largest double; `log_merge_time` does not.

    Raises
    ------
    InputError
        For values out of range.

    Notes
    -----
    Equal masses: the closed form, in the log domain. Others: Gauss-Legendre panels, relative error about 1e-13. Derived in docs/theory.

    Examples
    --------
    >>> round(merge_time(4.0, 2.0, until=1.0), 6)
    38.881882
    >>> merge_time(1e4, 2.0), round(log_merge_time(1e4, 2.0) / 1e4, 3)       # 1 - cos 2 = 1.416
    (inf, 1.415)
    """
    log_time = log_merge_time(beta, distance, masses=masses, until=until)
    return float(np.exp(log_time)) if log_time < np.log(np.finfo(float).max) else np.inf


def log_merge_time(beta: float, distance: float, *, masses: Sequence[float] = (0.5, 0.5), until: float = 0.1) -> float:
    """The logarithm of `merge_time`, which see; `-inf` when `until = distance`."""
    share = _check_pair(beta, distance, masses)
    if not 0 < until <= distance:
        raise InputError(f"The distance falls from `distance` to `until`, which it never quite reaches at 0.\n  distance = {distance!r}, until = {until!r}")
    if until == distance:
        return -np.inf
    start, end = _log_tangent(distance), _log_tangent(until)
    # close to the start the closed form is the difference of two nearly equal numbers, and the quadrature is not
    if share != 0.5 or beta == 0 or start - end < 0.1 / (1 + beta):
        return _log_duration(beta, start, start - end, share)
    s, s_end = _half_versine(start), _half_versine(end)
    difference = _ei_part(beta, start) - np.exp(-beta * (s - s_end)) * _ei_part(beta, end) + np.exp(-beta * s) * (start - end)
    return float(beta * s + np.log(difference / 4))


def two_atom_gap(beta: float, distance: float, t: float, *, masses: Sequence[float] = (0.5, 0.5)) -> float:
    r"""The distance at time `t` of two atoms that start at `distance` on a great circle, under V = A = I; the inverse of `merge_time`.

    Parameters
    ----------
    beta : float
        Finite, at least 0.
    distance : float
        Radians, in (0, pi).
    t : float
        At least 0.
    masses : pair of floats
        Positive, of sum 1.

    Returns
    -------
    float
        Radians. The time is right to about 1e-13 relative; the distance inherits the sensitivity of the merging, `e^{beta s_0}`.

    Raises
    ------
    InputError
        For values out of range.

    Examples
    --------
    >>> gap = two_atom_gap(3.0, np.arccos(1 - 1.3), 2.5)
    >>> round(1 - float(np.cos(gap)), 9)
    1.191470247
    """
    share = _check_pair(beta, distance, masses)
    if not (np.isfinite(t) and t >= 0):
        raise InputError(f"A distance is asked for at a finite time >= 0.\n  t = {t!r}")
    if t == 0:
        return float(distance)
    start = _log_tangent(distance)

    def lateness(log_fall: float) -> float:
        return _log_duration(beta, start, float(np.exp(log_fall)), share) - float(np.log(t))

    # 2 log tan(D/2) falls at a rate between its first one and 2
    fastest = float(np.log(2 * t))
    slowest = max(fastest - _log_slowness(beta, _half_versine(start), share) - 1e-9, -600.0)
    if lateness(slowest) >= 0:
        return float(distance)
    log_fall = brentq(lateness, slowest, fastest + 1e-9, xtol=1e-15, rtol=8.9e-16)
    return float(2 * np.arctan(np.exp((start - np.exp(log_fall)) / 2)))


def _check_pair(beta: float, distance: float, masses: Sequence[float]) -> float:
    """The mass of the first atom."""
    if not 0 <= beta < np.inf:
        raise InputError(f"Two atoms approach each other at a finite beta >= 0.\n  beta = {beta!r}\n  At beta = inf they stand still.")
    if not 0 < distance < np.pi:
        raise InputError(f"The distance of two atoms that approach each other lies strictly between 0 and pi.\n  distance = {distance!r}")
    pair = np.asarray(masses, dtype=float)
    if pair.shape != (2,) or not (pair > 0).all() or abs(pair.sum() - 1) > 1e-9:
        raise InputError(f"Two atoms have two positive masses of sum 1.\n  masses = {masses!r}")
    return float(pair[0])


def _log_tangent(distance: float) -> float:
    """`y = 2 log tan(D/2) = log(s / (2 - s))`; it falls from inf to -inf as the atoms merge, `dy/dt = -2 (m_2/(m_2 + m_1 g) + m_1/(m_1 + m_2 g))`."""
    return float(2 * np.log(np.tan(distance / 2)))


def _half_versine(y: float) -> float:
    """`s = 1 - cos D`, in (0, 2), of `y = log(s / (2 - s))`."""
    return float(2 / (1 + np.exp(-y)))


def _ei_part(beta: float, y: float) -> float:
    """`e^{-beta s} (Ei(beta s) + e^{2 beta} E_1(beta (2 - s)))`."""
    return _scaled_ei(beta * _half_versine(y)) + _scaled_e1(beta * _half_versine(-y))


def _scaled_ei(x: float) -> float:
    """`e^{-x} Ei(x)`."""
    return _asymptotic(x, 1.0) if x > 50 else float(np.exp(-x) * expi(x))


def _scaled_e1(x: float) -> float:
    """`e^x E_1(x)`."""
    return _asymptotic(x, -1.0) if x > 50 else float(np.exp(x) * exp1(x))


def _asymptotic(x: float, sign: float) -> float:
    """`sum_j (sign)^j j! / x^{j+1}`, cut at its smallest term, e^{-50} or less."""
    term = total = 1 / x
    for j in range(1, 50):
        term *= sign * j / x
        total += term
    return total


def _log_slowness(beta: float, s: Any, share: float) -> Any:
    """`log h` with `h = -2 / (dy/dt) = e^{beta s} (p (1 + w^2) + q w) / (q + 2 p w)`, p = m_1 m_2, q = m_1^2 + m_2^2, w = e^{-beta s}; 0 at s = 0."""
    p, q = share * (1 - share), share**2 + (1 - share) ** 2
    w = np.exp(-beta * s)
    return beta * s + np.log((p * (1 + w**2) + q * w) / (q + 2 * p * w))


def _log_duration(beta: float, start: float, fall: float, share: float) -> float:
    r"""log of the time in which `y = 2 log tan(D/2)` falls from `start` by `fall`, `t = int_0^fall h du / 2`.

    Panels in which y varies by at most 1/2 and beta s by at most 1, in all places that count: h has its poles at a distance of pi / beta,
    and from beta s = 750 below the start it is zero to double precision, relatively. Where beta s is below round-off, h = 1.
    """
    s_start = _half_versine(start)
    near = min(fall, max(start - np.log(1e-17 / (1 + beta)), 0.0))
    lattice = np.arange(0.0, near, 0.5)
    if beta > 0:
        s = s_start - np.arange(1, min(750, int(beta * s_start)) + 1) / beta
        s = s[s > 0]
        lattice = np.concatenate([lattice, start - np.log(s / (2 - s))])
    u = np.concatenate([np.unique(lattice[(lattice >= 0) & (lattice < near)]), [near]])
    x, weight = np.polynomial.legendre.leggauss(20)
    half = np.diff(u)[:, None] / 2
    s = 2 / (1 + np.exp(u[:-1, None] + half * (1 + x) - start))
    log_first = _log_slowness(beta, s_start, share)
    scaled = np.sum(half * weight * np.exp(_log_slowness(beta, s, share) - log_first)) + (fall - near) * np.exp(-log_first)
    return float(log_first + np.log(scaled / 2))
