"""Merge times: atoms against exact times, moving cells against particles, the hand-over against moving cells, the antipodal pair against linear theory."""

from __future__ import annotations

import sys
from typing import Any

import mpmath as mp
import numpy as np

import mfpde as mf
from mfpde import claims
from mfpde.methods.clusters import life

CIRCLE = mf.Circle()
MERGE = 1e-6
BETAS = [4.0, 10.0, 100.0, 1e4, 1e6]


def pair(beta: float, mass: float, t_end: float = 1.0) -> mf.Problem:
    return mf.Problem(mf.Attention.identity(2, beta), CIRCLE, mf.initial.atoms(CIRCLE.points([0.0, 2.5]), [mass, 1 - mass]), t_end)


def log_time_by_quadrature(distance: float, beta: float, mass: float) -> Any:
    """ln of int dD / |D'| from MERGE to `distance` in 40 digits, D' = -sin D (b/(b + a g) + a/(a + b g)), g = e^{beta (1 - cos D)}."""
    with mp.workdps(40):
        a, b = mp.mpf(mass), 1 - mp.mpf(mass)

        def slowness(D: Any) -> Any:
            g = mp.exp(beta * (1 - mp.cos(D)))
            return 1 / (mp.sin(D) * (b / (b + a * g) + a / (a + b * g)))

        marks, h = [mp.mpf(distance)], mp.mpf(1) / beta  # panels that double away from the start, where the time is spent, and halve towards the end
        while marks[-1] - h > 2 * MERGE:
            marks.append(marks[-1] - h)
            h *= 2
        while marks[-1] / 2 > MERGE:
            marks.append(marks[-1] / 2)
        return mp.log(mp.quad(slowness, [mp.mpf(MERGE), *reversed(marks)]))


def log_time_in_closed_form(distance: float, beta: float) -> Any:
    """Equal masses: t = F(s_0) - F(s), F = [log(s/(2-s)) + Ei(beta s) - e^{2 beta} Ei(-beta (2-s))] / 4, s = 1 - cos D."""
    with mp.workdps(60):
        beta = mp.mpf(beta)

        def F(D: float) -> Any:
            s = 2 * mp.sin(mp.mpf(D) / 2) ** 2
            return (mp.log(s / (2 - s)) + mp.ei(beta * s) - mp.exp(2 * beta) * mp.ei(-beta * (2 - s))) / 4

        return mp.log(F(distance) - F(MERGE))


def atoms(found: claims.Findings, quick: bool) -> None:
    rows: list[list[Any]] = [["beta", "ln t, masses .6 and .4", "relative error", "ln t, equal masses", "relative error"]]
    for beta in BETAS:
        row: list[Any] = [beta]
        for name, mass, exact in (("unequal", 0.6, log_time_by_quadrature(2.5, beta, 0.6)), ("equal", 0.5, log_time_in_closed_form(2.5, beta))):
            log_time = life(pair(beta, mass)).log_times[0]
            error = float((log_time - exact) / exact)
            found.numbers[f"two atoms, {name}, beta={beta:g}: relative error of ln t"] = error
            row += [log_time, error]
        rows.append(row)
    found.tables["Two atoms, 2.5 apart, until they are 1e-6 apart"] = rows


def passing_time(problem: mf.Problem, method: Any, window: tuple[float, float], level: float = 0.998) -> tuple[float, dict[str, Any]]:
    """When the resultant passes `level`, looked for in `window` at 60 times."""
    times = np.unique(np.append(np.linspace(*window, 60), problem.t_end))
    run = mf.solve(problem, method, save_at=times[times <= problem.t_end], observe=[mf.diagnostics.order_parameter])
    gap = -np.log1p(-np.minimum(run.observed["order_parameter"][:60], 1 - 1e-15))  # 1 - resultant falls exponentially at the end
    return float(np.interp(-np.log1p(-level), gap, times[:60])), run.stats


def two_clusters(found: claims.Findings, quick: bool) -> None:
    problem, _ = mf.cases.two_clusters(beta=4.0, t_end=43.0)
    window = (40.0, 43.0)
    cells, _ = passing_time(problem, mf.Lagrangian(cells=64 if quick else 256, tol=1e-9), window)
    tokens, _ = passing_time(problem, mf.Particles(n=400, placement="graded", tail=0.9, tol=1e-10), window)
    handed, stats = passing_time(problem, mf.Handover(mf.Lagrangian(cells=128, tol=1e-9)), window)
    found.numbers["two clusters, beta=4: time at which the resultant passes .998"] = cells
    found.numbers["two clusters, beta=4: moving cells over particles - 1"] = cells / tokens - 1
    found.numbers["two clusters, beta=4: hand-over over moving cells - 1"] = handed / cells - 1
    found.numbers["two clusters, beta=4: moved mass x distance at the hand-over"] = stats["hand-over moved mass x distance"]
    if quick:
        return
    run = mf.solve(mf.cases.two_clusters(beta=6.0, t_end=1e5)[0], mf.Handover(mf.Lagrangian(cells=128, tol=1e-9)))
    merged = np.exp(run.stats["ln t of merger 1"])  # at a distance of 1e-6, some 12 after the resultant passes .998
    window = (merged - 18.0, merged - 6.0)
    problem, _ = mf.cases.two_clusters(beta=6.0, t_end=window[1])
    cells, _ = passing_time(problem, mf.Lagrangian(cells=64, tol=1e-9), window)
    handed, _ = passing_time(problem, mf.Handover(mf.Lagrangian(cells=128, tol=1e-9)), window)
    found.numbers["two clusters, beta=6: time at which the resultant passes .998"] = cells
    found.numbers["two clusters, beta=6: hand-over over moving cells - 1"] = handed / cells - 1


def antipodal(found: claims.Findings, quick: bool) -> None:
    """V = diag(1, .8), A = I: an equal antipodal pair is stable iff .8 < tanh beta. Bisection on a finite displacement of 1e-4."""
    low, high = 0.8, 1.4
    while high - low > 1e-4:
        beta = 0.5 * (low + high)
        law = mf.initial.atoms(CIRCLE.points([1e-4, np.pi - 1e-4]), [0.5, 0.5])
        problem = mf.Problem(mf.Attention(np.eye(2), np.eye(2), np.diag([1.0, 0.8]), beta), CIRCLE, law, 3.0)
        grown = np.abs(mf.solve(problem, mf.Clusters(tol=1e-13)).final.points[:, 1]).max() > 1e-4
        low, high = (beta, high) if grown else (low, beta)
    found.numbers["antipodal pair: threshold of beta over atanh(.8) - 1"] = low / np.arctanh(0.8) - 1


def antipodal_rates(found: claims.Findings, quick: bool) -> None:
    """Masses p and 1 - p at +-e1, A = I, V = diag(1, .8): growth of a displacement along each eigenvector, and of a cluster split in two.

    A displacement of 1e-6 is nonlinear by 1e-12 of itself.
    """
    l1, l2, d, t = 1.0, 0.8, 1e-6, 1.0
    rows: list[list[Any]] = [["beta", "p", "mode", "rate, measured", "rate, linear theory"]]

    def final(angles: Any, masses: Any, beta: float) -> np.ndarray:
        law = mf.initial.atoms(CIRCLE.points(angles), masses)
        problem = mf.Problem(mf.Attention(np.eye(2), np.eye(2), np.diag([l1, l2]), beta), CIRCLE, law, t)
        return mf.solve(problem, mf.Clusters(tol=1e-14, merge_distance=1e-13)).final.points

    for beta, p in ((0.8, 0.5), (1.3, 0.5), (1.3, 0.6), (3.0, 0.7)):
        up, down = np.exp(beta), np.exp(-beta)
        plus, minus = p * up / (p * up + (1 - p) * down), (1 - p) * up / ((1 - p) * up + p * down)
        matrix = np.array([[l2 * plus - l1 * (2 * plus - 1), l2 * (1 - plus)], [l2 * (1 - minus), l2 * minus - l1 * (2 * minus - 1)]])
        rates, modes = np.linalg.eig(matrix)
        for rate, mode in zip(rates, modes.T, strict=True):
            start = d * mode / np.abs(mode).max()
            after = final([start[0], np.pi - start[1]], [p, 1 - p], beta)
            left, right = after[after[:, 0] < 0, 1], after[after[:, 0] > 0, 1]
            rows.append([beta, p, "centroids", float(np.log((mode @ [right[0], left[0]]) / (mode @ start)) / t), float(rate)])
        split = final([d, -d, np.pi], [p / 2, p / 2, 1 - p], beta)
        rows.append([beta, p, "within the first", float(np.log(np.abs(split[split[:, 0] > 0, 1]).max() / np.sin(d)) / t), float(-l1 * (2 * plus - 1))])
    found.tables["Rates of an antipodal pair"] = rows
    found.numbers["antipodal pair: largest error of a rate"] = max(abs(row[3] - row[4]) for row in rows[1:])


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    for study in (atoms, two_clusters, antipodal, antipodal_rates):
        study(found, quick)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
