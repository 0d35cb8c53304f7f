r"""What interpolation and round-off can do to a block sum: the constants behind the certified error. Derived in docs/attention_blocks.md.

A pair of arcs contributes `A(x) S(x)` with an exact factor `A` and the tame sum `S(x) = sum_j a_j e^{<h(x), w_j>}`, `a_j >= 0` and
`|<h, w_j>| <= c`. So `S >= e^{-c} sum_j a_j`, and whatever is small against `sum_j a_j` is small against `S`.
"""

from __future__ import annotations

import numpy as np

EPS = 2.0**-53
STEP = 2  # node counts are multiples of it, as the three-term recurrence takes two steps at a time
MAX_NODES = 60
_RHO = np.concatenate([np.linspace(1.1, 8.0, 70), np.geomspace(8.5, 4000.0, 120)])[:, None]


def ellipse_reach(rho: np.ndarray | float, radius: np.ndarray | float) -> np.ndarray:
    """Bound of |w| on the Bernstein ellipse rho of an arc: `|w|^2 = 2 cosh b (cosh b - cos a)` at a + ib, so `|w| <= 2 sinh(s/2) sqrt(cosh s)`, |a + ib| <= s."""
    s = np.minimum(radius * 0.5 * (rho + 1 / rho), 700.0)
    return 2 * np.sinh(0.5 * s) * np.sqrt(np.cosh(s))


def interpolation_error(nodes: np.ndarray, tilt: np.ndarray, radius: np.ndarray) -> np.ndarray:
    r"""Largest error of interpolating `e^{<h, w(delta)>}` and `w e^{<h, w>}` in `p` Chebyshev nodes on an arc of half-width `radius`.

    `w(delta) = (sin(delta), cos(delta) - 1)` and `|h| = tilt`. In the Bernstein ellipse rho of the arc `|w| <= reach(rho)`, so the function is at
    most `M(rho) = max(1, reach) e^{tilt reach}`, and the error at most `4 M rho^{1-p} / (rho - 1)` for every rho > 1; the best of a list is taken.
    """
    p, h, r = (np.asarray(a, dtype=float)[..., None, None] for a in np.broadcast_arrays(nodes, tilt, radius))
    with np.errstate(over="ignore"):
        reach = ellipse_reach(_RHO, r)
        log_error = np.log(4 * np.maximum(1.0, reach)) + h * reach + (1 - p) * np.log(_RHO) - np.log(_RHO - 1)
        return np.exp(log_error.min(axis=(-2, -1)))


def lebesgue(nodes: np.ndarray) -> np.ndarray:
    """Bound `1 + (2/pi) log p` of the Lebesgue constant of p Chebyshev nodes (Rivlin, Chebyshev Polynomials, 1974, theorem 1.2)."""
    return 1 + 2 / np.pi * np.log(nodes)


def nodes_needed(radius: np.ndarray, tilt: float, tol: float) -> np.ndarray:
    """Smallest multiple of `STEP` nodes whose `interpolation_error` on arcs of half-widths `radius` stays below `tol`."""
    widest = float(radius.max(initial=0.0))
    grid = widest * np.linspace(0.0, 1.0, 33)[1:] ** 3  # radii are rounded up to this grid
    counts = np.arange(STEP, MAX_NODES + 1, STEP)
    enough = interpolation_error(counts, tilt, grid[:, None]) <= tol
    enough[:, -1] = True
    needed = counts[enough.argmax(axis=1)]
    return needed[np.minimum(np.searchsorted(grid, radius), len(grid) - 1)]


def round_off(source_nodes: int, target_nodes: int, exponent: float, reach: float, depth: float) -> float:
    r"""Relative round-off of one pair beyond that of its exponents; `source_nodes`, `target_nodes` are 0 where points stay as they are.

    `depth` is the longest chain of additions, `exponent` the bound c, `reach` a bound of `log M(2)`: the Chebyshev coefficients of the
    tame factor decay at least like `2 M(2) 2^{-k}`, so errors of high moments hardly count.
    """
    growth = np.exp(exponent)
    decay = 2 * np.exp(reach)
    error = depth + 8.0 if not source_nodes else 0.0
    if source_nodes:
        p = source_nodes
        error += growth * decay * (2 * (depth + 6) + 12)  # moments: summation, and 2 k^2 eps in T_k
        error += growth**2 * (p + 1) * (1.3 * p + 2 * lebesgue(np.array(p)) + 4)  # to the nodes and through the kernel
    if target_nodes:
        p = target_nodes
        error = float(lebesgue(np.array(p))) * error + growth**2 * 2 * p * (p + 1) + growth * decay * (2 * p + 12)
    return float(EPS * error)
