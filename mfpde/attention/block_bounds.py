r"""How wide the arcs of a block sum may be and what the error is: the constants of docs/attention_blocks.md, where they are derived.

A pair of arcs contributes an exact factor times the tame sum `S(x) = sum_j a_j e^{<h(x), w_j>}`, with `a_j >= 0` and `|<h, w_j>| <= c`. So
`S >= e^{-c} sum_j a_j`, and whatever is small against `sum_j a_j` is small against `S`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

EPS = 2.0**-53
LANES = 128  # points handled together: they stay in the first-level cache
GROUP = 16  # such sums are added up first, to keep chains of additions short
STEP = 2  # node counts are multiples of it
MAX_NODES = 60
WIDEST = 0.25  # half-width of an arc where the kernel is flat
EXPONENTS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25)  # wide arcs are fast, narrow ones accurate
INTERPOLATION, PRUNING = 0.1, 0.1  # their shares of tol
RHO = np.concatenate([np.linspace(1.1, 8.0, 70), np.geomspace(8.5, 4000.0, 120)])


class Design(NamedTuple):
    """Arcs of half-width `half_width`, on which `|<h, w>| <= exponent`, and the nodes an arc needs: `nodes[i]` up to the radius `radii[i]`."""

    half_width: float
    exponent: float
    radii: np.ndarray
    nodes: np.ndarray

    def nodes_for(self, radius: np.ndarray) -> np.ndarray:
        """Chebyshev nodes that represent an arc of half-width `radius`."""
        return self.nodes[np.minimum(np.searchsorted(self.radii, radius), len(self.radii) - 1)]


@lru_cache(maxsize=64)
def design(strength: float, points: int, tol: float) -> Design:
    """The widest arcs for `strength` = beta |A| whose certified error leaves room below `tol`, for up to `points` (a power of two) sources."""
    for c in EXPONENTS:
        half_width = min(WIDEST, float(np.sqrt(c / max(strength, 1e-300))))
        exponent = strength * half_width**2
        share = INTERPOLATION * tol / (np.exp(exponent) * (1 + lebesgue(MAX_NODES / 3)))
        radii = half_width * np.linspace(0.0, 1.0, 17)[1:] ** 3
        counts = np.arange(STEP, MAX_NODES + 1, STEP)
        enough = interpolation_error(counts, strength * half_width, radii[:, None]) <= share
        enough[:, -1] = True
        made = Design(half_width, exponent, radii, counts[enough.argmax(axis=1)])
        p = int(made.nodes.max())
        if round_off(p, p, exponent, strength * half_width, half_width, summation_depth(points)) <= tol / 3:
            break
    return made


def ellipse_reach(rho: np.ndarray, radius: np.ndarray | float) -> np.ndarray:
    r"""Bound of |w|, `w(delta) = (sin(delta), cos(delta) - 1)`, on the Bernstein ellipse rho around an arc `|delta| <= radius`.

    `|w|^2 = 2 cosh b (cosh b - cos a)` at `delta = a + ib`, hence `|w| <= 2 sinh(s/2) sqrt(cosh s)` for `|delta| <= s`.
    """
    s = np.minimum(radius * 0.5 * (rho + 1 / rho), 700.0)
    return 2 * np.sinh(0.5 * s) * np.sqrt(np.cosh(s))


def interpolation_error(nodes: np.ndarray, tilt: float, radius: np.ndarray) -> np.ndarray:
    r"""Largest error of interpolating `e^{<h, w(delta)>}` and `w e^{<h, w>}`, `|h| = tilt`, at `p` Chebyshev nodes on `|delta| <= radius`.

    `4 M(rho) rho^{1-p} / (rho - 1)` with `M = max(1, reach) e^{tilt reach}` for every rho > 1; the best of a list is taken. `nodes` and `radius` broadcast.
    """
    p, r = (np.asarray(a, dtype=float)[..., None] for a in np.broadcast_arrays(nodes, radius))
    with np.errstate(over="ignore"):
        reach = ellipse_reach(RHO, r)
        log_error = np.log(4 * np.maximum(1.0, reach)) + tilt * reach + (1 - p) * np.log(RHO) - np.log(RHO - 1)
        return np.exp(log_error.min(axis=-1))


def coefficient_decay(nodes: int, tilt: float, radius: float) -> np.ndarray:
    r"""Bounds of the Chebyshev coefficients k = 0 .. p-1 of the polynomial through the tame factor: `2 M(rho) rho^{-k} / (1 - rho^{-2})`."""
    with np.errstate(over="ignore"):
        log_bound = np.log(2) + tilt * ellipse_reach(RHO, radius) - np.arange(nodes)[:, None] * np.log(RHO) - np.log1p(-(RHO**-2.0))
        return np.exp(log_bound.min(axis=1))


def lebesgue(nodes: float) -> float:
    """Bound `1 + (2/pi) log p` of the Lebesgue constant of p Chebyshev nodes (Rivlin, Chebyshev Polynomials, 1974, theorem 1.2)."""
    return float(1 + 2 / np.pi * np.log(nodes))


def summation_depth(points: int) -> float:
    """Longest chain of additions in a sum over `points` that adds up LANES of them, then GROUP such sums, then the rest."""
    return LANES + GROUP + points / (LANES * GROUP)


def round_off(source_nodes: int, target_nodes: int, exponent: float, tilt: float, radius: float, depth: float) -> float:
    """Round-off of one pair relative to S, that of its exponents apart; `source_nodes`, `target_nodes` are 0 where points stay as they are."""
    growth = np.exp(exponent)
    error, through = 0.0, lebesgue(max(target_nodes, 1))
    if source_nodes:
        p, k = source_nodes, np.arange(source_nodes)
        error += float(coefficient_decay(p, tilt, radius) @ (depth + 6.0 * k**2 + 2))  # the moments: summation, and T_k itself
        error += growth * 1.5 * p * (p + 2)  # from moments to proxies
        error += growth * through * lebesgue(p) * (p + 12)  # through the kernel to the stations
    else:
        error += through * (depth + 12)
    if target_nodes:
        p, k = target_nodes, np.arange(target_nodes)
        error += growth * 1.5 * p * (p + 2)  # from stations to coefficients
        error += float(coefficient_decay(p, tilt, radius) @ (6.0 * k**2 + p))  # and to the targets
    return float(EPS * growth * error)
