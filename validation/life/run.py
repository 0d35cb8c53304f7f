"""A whole life at beta = 20, from a perturbed uniform law to one cluster at ln t = 40; and how many clusters form, for beta = 25 to 1600."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import claims

CIRCLE = mf.Circle()
PHASES = np.array([0.3, 1.1, 2.9, 4.0, 0.7, 5.2, 2.2, 1.9])
SEED = 20


def life(found: claims.Findings, quick: bool) -> None:
    """V = A = I, eight waves of amplitude .01 on the uniform law."""
    beta = 8.0 if quick else 20.0
    law = mf.initial.fourier(0.005 * np.exp(1j * PHASES))
    t_end = np.exp(45.0)
    problem = mf.Problem(mf.Attention.identity(2, beta), CIRCLE, law, t_end)
    times = np.concatenate([[0.0], np.exp(np.linspace(-1.0, np.log(t_end), 60 if quick else 250))[:-1], [t_end]])
    started = time.monotonic()
    run = mf.solve(problem, mf.Handover(mf.Lagrangian(cells=128 if quick else 256, tol=1e-9)), save_at=times, observe=[mf.diagnostics.log_energy])
    seconds = time.monotonic() - started
    energy = np.exp(run.observed["log_energy"])
    mergers = [[k, run.stats[f"ln t of merger {k}"]] for k in range(1, run.stats["mergers"] + 1)]
    found.numbers["life: atoms at the end"] = len(run.final)
    found.numbers["life: seconds"] = seconds
    found.numbers["life: largest fall of the energy between outputs"] = float(-np.minimum(np.diff(energy), 0.0).min(initial=0.0))
    found.numbers["life: mass x distance moved at the hand-over"] = run.stats["hand-over moved mass x distance"]
    found.numbers["life: mergers after the hand-over"] = len(mergers)
    found.tables[f"Mergers at beta = {beta:g}; hand-over at t = {run.stats['hand-over at t']:.2f}"] = [["merger", "ln t"], *mergers]
    figure = Figure(figsize=(8, 6), layout="constrained")
    tree, staircase = figure.subplots(2, 1, sharex=True)
    for t, measure in zip(times[1:], run.measures[1:], strict=True):
        heavy = measure.weights > 1e-3
        tree.scatter(np.full(heavy.sum(), np.log(t)), measure.angles()[heavy], s=40 * measure.weights[heavy], c="k", linewidths=0)
    tree.set(ylabel="angle", ylim=(0, 2 * np.pi), title=f"beta = {beta:g}")
    staircase.plot(np.log(times[1:]), energy[1:])
    staircase.set(xlabel="ln t", ylabel="energy over its maximum")
    found.figures["Clusters over logarithmic time, area by mass, and the staircase of the energy"] = figure


def number_of_clusters(beta: float, seed: int) -> int:
    """Clusters that hold 99 % of the mass when all of them are narrower than a fifth of the kernel, from noise of amplitude 1e-3 in the growing modes."""
    rng = np.random.default_rng([SEED, seed])
    modes = int(np.ceil(2.5 * np.sqrt(2 * beta)))
    noise = (rng.standard_normal(modes) + 1j * rng.standard_normal(modes)) * 1e-3 / np.sqrt(modes)
    problem = mf.Problem(mf.Attention.identity(2, beta), CIRCLE, mf.initial.fourier(noise), 200.0)
    method = mf.Handover(mf.Lagrangian(cells=int(10 * np.sqrt(2 * beta)), tol=1e-6), width=0.2 / np.sqrt(beta), influence=1.0)
    scheme = method.prepare(problem)
    state = scheme.initial()
    while state.time < problem.t_end:
        state = scheme.first.advance(state)
        gathered = scheme.gather(scheme.first.measure(state, state, state.time)) if state.time > 5 else None
        if gathered is not None:
            return len(gathered.masses)
    return 0


def counts(found: claims.Findings, quick: bool) -> None:
    betas, seeds = ([25.0], 3) if quick else ([25.0, 100.0, 400.0, 1600.0], 20)
    rows: list[list[Any]] = [["beta", "sqrt(2 beta)", "mean number", "standard deviation", "least", "most"]]
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    for beta in betas:
        numbers = np.array([number_of_clusters(beta, seed) for seed in range(seeds)])
        rows.append([beta, np.sqrt(2 * beta), numbers.mean(), numbers.std(), numbers.min(), numbers.max()])
        print(*rows[-1], flush=True)
        found.numbers[f"clusters over sqrt(2 beta), beta={beta:g}"] = float(numbers.mean() / np.sqrt(2 * beta))
        axes.errorbar(np.sqrt(2 * beta), numbers.mean(), numbers.std(), fmt="ko", capsize=3)
    top = np.sqrt(2 * betas[-1])
    axes.plot([0, top], [0, top], "--", lw=1, label="sqrt(2 beta), the fastest mode")
    axes.set(xlabel="sqrt(2 beta)", ylabel="clusters")
    axes.legend()
    found.tables["Number of clusters"] = rows
    found.figures["Number of clusters, mean and standard deviation over the seeds"] = figure
    found.seeds = [SEED, *range(seeds)]


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    for study in (life, counts):
        study(found, quick)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
