"""How many clusters form when V = A = I, and how fast: growth rates about the uniform law, and the count against sqrt(2 beta)."""

from __future__ import annotations

import sys
import warnings
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq

import mfpde as mf
from mfpde import claims, exact
from mfpde.claims import fits

CIRCLE = mf.Circle()
SEED = 20
AMPLITUDE = 1e-3  # of the noise on the uniform law
LATER = (100.0, 1000.0)  # time since the clusters have gathered


# ---- linear theory ----------------------------------------------------------------------------------------------------------------------------------


def modes_of(beta: float) -> int:
    """All that grow at a rate of at least a twentieth of the fastest."""
    return int(np.ceil(2.5 * np.sqrt(2 * beta)))


def growth(beta: float, modes: int) -> np.ndarray:
    return exact.growth_rate(mf.Attention.identity(2, beta), np.arange(1, modes + 1)).real


def fastest(beta: float) -> tuple[int, float]:
    """The mode that grows fastest about the uniform law, and its rate."""
    rates = growth(beta, int(4 * np.sqrt(2 * beta)) + 5)
    return int(rates.argmax()) + 1, float(rates.max())


def crests(beta: float, amplitude: float = AMPLITUDE) -> float:
    """Expected number of maxima of the wave that noise has become when its standard deviation reaches that of the uniform density itself.

    Rice: a Gaussian wave with the spectrum S_k has sqrt(sum k^4 S_k / sum k^2 S_k) maxima on the circle; here S_k = e^{2 lambda_k t}, linear theory.
    """
    modes = modes_of(beta)
    rates, k = growth(beta, modes), np.arange(1, modes + 1)

    def log_variance(t: float) -> float:
        return float(np.log(4 * amplitude**2 / modes * np.sum(np.exp(2 * rates * t))))

    spectrum = np.exp(2 * rates * brentq(log_variance, 0.0, 100.0))
    return float(np.sqrt((k**4 * spectrum).sum() / (k**2 * spectrum).sum()))


def measured_rate(beta: float, mode: int, method: object) -> float:
    """Growth of a wave of amplitude 1e-6 over one unit of time."""
    problem, _ = mf.cases.growth(beta=beta, mode=mode, t_end=1.0)
    run = mf.solve(problem, method)
    first, last = (abs(mf.diagnostics.fourier_moments(law, mode)) for law in run.measures)
    return float(np.log(last / first))


# ---- counts -----------------------------------------------------------------------------------------------------------------------------------------


class Count(NamedTuple):
    """Clusters when they have gathered, that time, and how many are left at the times `LATER` after it."""

    clusters: int
    time: float
    left: tuple[int, ...]


def count(beta: float, seed: int, amplitude: float = AMPLITUDE) -> Count:
    """The rule: clusters are counted at the first step after which arcs narrower than a fifth of the kernel width beta^{-1/2} hold 99 % of the mass
    and are a kernel width apart. From then on they are atoms.

    The law is uniform with Gaussian noise of equal strength in all growing modes, the same for all methods. 6 cells for each crest, tol and
    importance cut give the counts of 10 cells, tol = 1e-6, cut = -32, but for one of 40 (beta = 100 and 400) that differs by one.
    """
    rng = np.random.default_rng([SEED, seed])
    modes = modes_of(beta)
    noise = (rng.standard_normal(modes) + 1j * rng.standard_normal(modes)) * amplitude / np.sqrt(modes)
    problem = mf.Problem(mf.Attention.identity(2, beta), CIRCLE, mf.initial.fourier(noise), 200.0)
    cells = mf.Lagrangian(cells=int(6 * np.sqrt(2 * beta)), tol=1e-4, importance_cut=-8.0)
    scheme = mf.Handover(cells, width=0.2 / np.sqrt(beta), influence=1.0).prepare(problem)
    state = scheme.first.advance(scheme.initial())
    while (gathered := scheme.gather(scheme.first.measure(state, state, state.time)) if state.time > 5 else None) is None:
        if state.time > problem.t_end:
            raise mf.NumericalError(f"Nothing has gathered until t = {state.time:.3g}.\n  beta = {beta:g}, seed {seed}, amplitude {amplitude:g}")
        state = scheme.first.advance(state)
    if amplitude != AMPLITUDE:
        return Count(len(gathered.masses), state.time, ())
    atoms = mf.initial.atoms(CIRCLE.points(gathered.angles), gathered.masses)
    stats = mf.solve(mf.Problem(problem.attention, CIRCLE, atoms, LATER[-1]), mf.Clusters(tol=1e-6, merge_distance=1e-3)).stats
    mergers = np.array([stats[f"ln t of merger {k}"] for k in range(1, stats["mergers"] + 1)])
    return Count(len(gathered.masses), state.time, tuple(len(gathered.masses) - int(np.sum(mergers <= np.log(t))) for t in LATER))


def count_of_tokens(beta: float, seed: int, t_end: float) -> int:
    """Clusters of 400 random tokens."""
    problem = mf.Problem(mf.Attention.identity(2, beta), CIRCLE, mf.initial.uniform(CIRCLE), t_end)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        cloud = mf.solve(problem, mf.Particles(n=400, seed=seed, tol=1e-6)).final
    return len(mf.diagnostics.clusters(cloud, resolution=0.02))


# ---- studies ----------------------------------------------------------------------------------------------------------------------------------------


def of_rates(found: claims.Findings, quick: bool) -> None:
    betas = [25.0, 100.0, 400.0]
    rows: list[list[Any]] = [["beta", "fastest mode", "sqrt(2 beta)", "its rate", "2/e", "by finite volumes", "by moving cells"]]
    for beta in betas:
        mode, rate = fastest(beta)
        by_mesh, by_cells = (measured_rate(beta, mode, method) for method in (mf.FiniteVolume(cells=40 * mode), mf.Lagrangian(cells=24 * mode)))
        found.numbers[f"beta = {beta:g}: fastest mode over sqrt(2 beta)"] = mode / np.sqrt(2 * beta)
        found.numbers[f"beta = {beta:g}: rate by finite volumes over the exact one"] = by_mesh / rate
        found.numbers[f"beta = {beta:g}: rate by moving cells over the exact one"] = by_cells / rate
        rows.append([beta, mode, np.sqrt(2 * beta), rate, 2 / np.e, by_mesh, by_cells])
    found.numbers["largest rate at beta = 1e4 over 2/e"] = fastest(1e4)[1] / (2 / np.e)
    found.tables["Growth about the uniform law"] = rows
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.subplots()
    for beta in betas:
        modes = int(3 * np.sqrt(2 * beta))
        axes.plot(np.arange(1, modes + 1) / np.sqrt(2 * beta), growth(beta, modes), ".-", label=rf"$\beta = {beta:g}$")
    axes.axhline(2 / np.e, color="k", ls=":", lw=0.8)
    axes.set(xlabel=r"$k / \sqrt{2\beta}$", ylabel=r"growth rate $\lambda_k$")
    axes.legend(fontsize=8)
    found.figures["Growth rates about the uniform law"] = figure


def of_clusters(found: claims.Findings, quick: bool) -> None:
    betas, seeds = ([25.0, 100.0], range(3)) if quick else ([25.0, 100.0, 400.0, 1600.0], range(20))
    token_seeds = [1, 2] if quick else list(range(1, 11))
    head = ["beta", "sqrt(2 beta)", "fastest mode", "crests (Rice)", "clusters, mean", "standard deviation", "least", "most", "gathered at t"]
    rows: list[list[Any]] = [[*head, *(f"left after {t:g} more" for t in LATER), "400 random tokens"]]
    means, spreads, later, tokens = [], [], [], []
    for beta in betas:
        root = np.sqrt(2 * beta)
        counts = [count(beta, seed) for seed in seeds]
        numbers = np.array([each.clusters for each in counts])
        left = np.mean([each.left for each in counts], axis=0)
        means.append(float(numbers.mean()))
        spreads.append(float(numbers.std(ddof=1)))
        later.append(left)
        tokens.append(float(np.mean([count_of_tokens(beta, seed, 15.0 if quick else 25.0) for seed in token_seeds])) if beta <= 400 else np.nan)
        found.numbers[f"beta = {beta:g}: clusters over sqrt(2 beta), mean"] = means[-1] / root
        found.numbers[f"beta = {beta:g}: clusters over sqrt(2 beta), standard deviation"] = spreads[-1] / root
        found.numbers[f"beta = {beta:g}: clusters over crests of the linear wave"] = means[-1] / crests(beta)
        found.numbers[f"beta = {beta:g}: clusters left after {LATER[-1]:g} more, over sqrt(2 beta)"] = float(left[-1]) / root
        if beta <= 400:
            found.numbers[f"beta = {beta:g}: clusters of 400 random tokens over sqrt(2 beta)"] = tokens[-1] / root
        gathered = float(np.mean([each.time for each in counts]))
        spread = [float(numbers.std(ddof=1)), int(numbers.min()), int(numbers.max())]
        rows.append([beta, root, fastest(beta)[0], crests(beta), means[-1], *spread, gathered, *map(float, left), tokens[-1] if beta <= 400 else ""])
        print(*rows[-1], flush=True)
    found.tables[f"Number of clusters, {len(seeds)} seeds; {len(token_seeds)} of tokens"] = rows
    found.seeds = [SEED, *seeds, *token_seeds]
    if not quick:
        found.numbers["exponent of the number of clusters in beta"] = fits.power(np.array(betas), np.array(means)).slope
    roots = np.sqrt(2 * np.array(betas))
    figure = Figure(figsize=(5.5, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.errorbar(roots, means, spreads, fmt="o", capsize=3, label=f"when gathered, mean and standard deviation of {len(seeds)}")
    axes.plot(roots, [left[-1] for left in later], "s", label=f"{LATER[-1]:g} later, mean")
    axes.plot(roots, tokens, "^", mfc="none", label=f"400 random tokens, mean of {len(token_seeds)}")
    axes.plot(roots, [crests(beta) for beta in betas], "--", lw=1, label="crests of the linear wave")
    axes.plot([roots[0], roots[-1]], [roots[0], roots[-1]], "k:", lw=1, label=r"$\sqrt{2\beta}$, the fastest mode")
    axes.set(xscale="log", yscale="log", xlabel=r"$\sqrt{2\beta}$", ylabel="clusters")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("{x:g}")
        axis.set_ticks([5, 7, 10, 14, 20, 28, 40, 57])
        axis.set_ticks([], minor=True)
    axes.legend(fontsize=8)
    found.figures["Number of clusters against sqrt(2 beta)"] = figure


def of_noise(found: claims.Findings, quick: bool) -> None:
    """Weaker noise grows for longer, the spectrum narrows about the fastest mode, and the count tends to that mode."""
    if quick:
        return
    beta, rows = 100.0, [["amplitude of the noise", "crests (Rice)", "clusters, mean", "standard deviation", "over sqrt(2 beta)"]]
    for amplitude in (1e-2, 1e-4, 1e-6, 1e-8):
        numbers = np.array([count(beta, seed, amplitude).clusters for seed in range(20)])
        rows.append([amplitude, crests(beta, amplitude), numbers.mean(), numbers.std(ddof=1), numbers.mean() / np.sqrt(2 * beta)])
        found.numbers[f"noise of {amplitude:g}: clusters over sqrt(2 beta), mean"] = float(numbers.mean() / np.sqrt(2 * beta))
        print(*rows[-1], flush=True)
    found.tables["Number of clusters at beta = 100, by the strength of the noise, 20 seeds"] = rows


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    for study in (of_rates, of_clusters, of_noise):
        study(found, quick)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
