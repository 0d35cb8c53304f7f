"""Moving cells: fourth order against the Poisson law and against themselves, for any V and A, before and after concentration."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np

import mfpde as mf
from mfpde import claims, exact

CIRCLE = mf.Circle()
I, J = np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])
SMOOTH = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])
HEADS = {
    "V=diag(1,.5)": (np.diag([1.0, 0.5]), I),
    "V=I+J": (I + J, I),
    "V, A non-symmetric": (np.array([[1.0, 0.4], [-0.2, 0.6]]), np.array([[1.1, 0.5], [-0.3, 0.8]])),
}
# the coarsest level satisfies beta |A| (2 pi / cells)^2 <= about 0.1
LEVELS = {10.0: [64, 128, 256, 512], 100.0: [256, 512, 1024], 1000.0: [512, 1024, 2048]}
# what time steps leave must be less than what cells leave, which is 1e-11 at beta = 1000
TOL = {10.0: 1e-10, 100.0: 1e-10, 1000.0: 1e-12}
TIMES = [1.0, 3.0, 6.0, 12.0]


def marks(law: Any) -> np.ndarray:
    """Angles that resolve every cell of a law sixfold, and both sides of its atoms."""
    nodes, widths, atoms = law.cells.nodes, law.cells.widths, law.cells.atoms % (2 * np.pi)
    return np.concatenate([*((nodes + share * widths) % (2 * np.pi) for share in np.arange(6) / 6), atoms, np.nextafter(atoms, -1)])


def distance(law: Any, distribution: Any, also: np.ndarray) -> float:
    """W_1 of cells and any law with a distribution function, by both distribution functions at the marks and at the angles `also`.

    `mf.wasserstein` reads 32 pieces of constant density to a cell, an error of second order: at 1e-9 it is larger than what is measured here.
    """
    angles = np.unique(np.concatenate([np.linspace(0, 2 * np.pi, 4001), marks(law), also]))
    gap = law.cumulative(angles) - distribution(angles)
    h, middle = np.diff(angles), 0.5 * (gap[1:] + gap[:-1])
    order = np.argsort(middle)
    share = np.cumsum(h[order])
    return float(h @ np.abs(middle - middle[order][np.searchsorted(share, share[-1] / 2)]))


def poisson_distribution(r: float) -> Any:
    return lambda angles: np.arctan2((1 + r) / (1 - r) * np.sin(angles / 2), np.cos(angles / 2)) / np.pi


def poisson(found: claims.Findings, quick: bool) -> None:
    """beta = 0: r' = r (1 - r^2) / 2; at t = 12 the kernel is 3e-5 wide."""
    times = [2.0, 6.0, 12.0]
    sizes = [64, 128, 256]
    errors = []
    for cells in sizes:
        problem = mf.Problem(mf.Attention.identity(2, 0.0), CIRCLE, mf.initial.poisson(0.3), 12.0)
        run = mf.solve(problem, mf.Lagrangian(cells=cells, tol=1e-11), save_at=times)
        radius = [np.sqrt(0.09 * np.exp(t) / (0.91 + 0.09 * np.exp(t))) for t in times]
        errors.append([distance(law, poisson_distribution(r), np.empty(0)) for law, r in zip(run.measures, radius, strict=True)])
    found.tables["W1 to the Poisson law"] = [["cells", *(f"t = {t:g}" for t in times)], *([n, *row] for n, row in zip(sizes, errors, strict=True))]
    found.numbers["poisson: W1 at t=12, 256 cells"] = errors[-1][-1]
    for k, t in enumerate(times):
        found.numbers[f"poisson: fitted order at t={t:g}"] = -float(np.polyfit(np.log(sizes), np.log([row[k] for row in errors]), 1)[0])


def self_convergence(found: claims.Findings, quick: bool) -> None:
    """W_1 between a run and the next finer one."""
    rows: list[list[Any]] = [["problem", "beta", "cells", *(f"W1 to the next finer, t = {t:g}" for t in TIMES)]]
    fitted: list[list[Any]] = [["problem", "beta", "levels", *(f"order at t = {t:g}" for t in TIMES)]]
    for name, (V, A) in HEADS.items():
        for beta, sizes in LEVELS.items():
            if quick and (beta != 10.0 or name == "V=I+J"):
                continue
            levels = sizes[:3] if quick else sizes
            times = TIMES[:2] if quick else TIMES
            problem = mf.Problem(mf.Attention(A, I, V, beta), CIRCLE, SMOOTH, times[-1])
            runs = [mf.solve(problem, mf.Lagrangian(cells=cells, tol=TOL[beta]), save_at=times) for cells in levels]
            gaps = np.array([[distance(a, b.cumulative, marks(b)) for a, b in zip(*pair, strict=True)] for pair in pairwise(run.measures for run in runs)])
            rows += [[name, beta, cells, *gap, *[""] * (len(TIMES) - len(times))] for cells, gap in zip(levels, gaps, strict=False)]
            # the order over all levels and times together: the moments at which cells are divided scatter single entries
            orders = -np.array([np.polyfit(np.log(levels[:-1]), np.log(gaps[:, k]), 1)[0] for k in range(len(times))])
            found.numbers[f"{name}, beta={beta:g}: order of self-convergence, mean over the times"] = float(orders.mean())
            fitted.append([name, beta, len(levels) - 1, *map(float, orders), *[""] * (len(TIMES) - len(times))])
            found.numbers[f"{name}, beta={beta:g}: order of self-convergence, least at a single time"] = float(orders.min())
            found.numbers[f"{name}, beta={beta:g}: W1 between the finest two"] = float(gaps[-1].max())
    found.tables["Self-convergence"] = rows
    found.tables["Orders of self-convergence"] = fitted


def growth(found: claims.Findings, quick: bool) -> None:
    """Rates about the uniform law, 16 nodes a wavelength."""
    for beta, k in [(10.0, 4)] if quick else [(10.0, 4), (100.0, 14), (1000.0, 45), (10_000.0, 141)]:
        problem, _ = mf.cases.growth(beta=beta, mode=k, t_end=2.0)
        run = mf.solve(problem, mf.Lagrangian(cells=16 * k, tol=1e-12), save_at=[0.5, 2.0])
        first, last = (abs(mf.diagnostics.fourier_moments(law, k)) for law in run.measures)
        found.numbers[f"growth about uniform, beta={beta:g}: relative error"] = float(
            np.log(last / first) / 1.5 / exact.growth_rate(problem.attention, k).real - 1
        )


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    for study in (poisson, self_convergence, growth):
        study(found, quick)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
