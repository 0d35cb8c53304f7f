"""How many clusters form when V = A = I, and how fast: growth rates about the uniform law, and the count against sqrt(2 beta)."""

from __future__ import annotations

import sys
import warnings

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import claims, exact
from mfpde.claims import fits

CIRCLE = mf.Circle()


def fastest(beta: float) -> tuple[int, float]:
    """The mode that grows fastest about the uniform law, and its rate."""
    modes = np.arange(1, int(4 * np.sqrt(2 * beta)) + 5)
    rates = exact.growth_rate(mf.Attention.identity(2, beta), modes).real
    return int(modes[rates.argmax()]), float(rates.max())


def measured_rate(beta: float, mode: int, method: object) -> float:
    """Growth of a wave of amplitude 1e-6 over one unit of time."""
    problem, _ = mf.cases.growth(beta=beta, mode=mode, t_end=1.0)
    run = mf.solve(problem, method)
    first, last = (abs(mf.diagnostics.fourier_moments(law, mode)) for law in run.measures)
    return float(np.log(last / first))


def count(beta: float, seed: int, t_end: float) -> int:
    """Clusters of 400 random tokens."""
    problem = mf.Problem(mf.Attention.identity(2, beta), CIRCLE, mf.initial.uniform(CIRCLE), t_end)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        cloud = mf.solve(problem, mf.Particles(n=400, seed=seed, tol=1e-6)).final
    return len(mf.diagnostics.clusters(cloud, resolution=0.02))


def measure(quick: bool) -> claims.Findings:
    betas = [25.0, 100.0, 400.0]
    seeds = [1, 2] if quick else list(range(1, 11))
    found = claims.Findings(seeds=seeds)
    head = ["beta", "fastest mode", "sqrt(2 beta)", "its rate", "2/e", "by finite volumes", "by moving cells", "clusters (seeds)", "mean over sqrt(2 beta)"]
    rows: list[list] = [head]
    means = []
    for beta in betas:
        mode, rate = fastest(beta)
        by_mesh = measured_rate(beta, mode, mf.FiniteVolume(cells=40 * mode))
        by_cells = measured_rate(beta, mode, mf.Lagrangian(cells=24 * mode))
        counts = [count(beta, seed, 15.0 if quick else 25.0) for seed in seeds]
        means.append(float(np.mean(counts)))
        found.numbers[f"beta = {beta:g}: fastest mode over sqrt(2 beta)"] = mode / np.sqrt(2 * beta)
        found.numbers[f"beta = {beta:g}: rate by finite volumes over the exact one"] = by_mesh / rate
        found.numbers[f"beta = {beta:g}: rate by moving cells over the exact one"] = by_cells / rate
        found.numbers[f"beta = {beta:g}: clusters of 400 random tokens over sqrt(2 beta)"] = means[-1] / np.sqrt(2 * beta)
        rows.append([beta, mode, np.sqrt(2 * beta), rate, 2 / np.e, by_mesh, by_cells, ", ".join(map(str, counts)), means[-1] / np.sqrt(2 * beta)])
    found.numbers["largest rate at beta = 1e4 over 2/e"] = fastest(1e4)[1] / (2 / np.e)
    found.numbers["exponent of the number of clusters in beta"] = fits.power(np.array(betas), np.array(means)).slope
    found.tables["Growth about the uniform law and clusters that remain"] = rows
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    rates, numbers = figure.subplots(1, 2)
    for beta in betas:
        modes = np.arange(1, int(3 * np.sqrt(2 * beta)))
        rates.plot(modes / np.sqrt(2 * beta), exact.growth_rate(mf.Attention.identity(2, beta), modes).real, ".-", label=rf"$\beta = {beta:g}$")
    rates.axhline(2 / np.e, color="k", ls=":", lw=0.8)
    rates.set(xlabel=r"$k / \sqrt{2\beta}$", ylabel=r"growth rate $\lambda_k$")
    rates.legend(fontsize=7)
    numbers.loglog(betas, means, "o-", label="clusters, mean over seeds")
    numbers.loglog(betas, np.sqrt(2 * np.array(betas)), "k:", label=r"$\sqrt{2\beta}$")
    numbers.set(xlabel=r"$\beta$", ylabel="number")
    numbers.legend(fontsize=7)
    found.figures["Growth rates about the uniform law, and the clusters of 400 random tokens, against sqrt(2 beta)"] = figure
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
