"""A whole life at beta = 20, from a perturbed uniform law to one cluster at ln t = 40, with the energy at every instant that the run records."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import mfpde as mf
from mfpde import claims
from mfpde.branches import follow


class EnergyOfEveryStep:
    """The energy after each step of the method, and on both sides of the hand-over: what `solve` calls after each step."""

    def __init__(self, problem: mf.Problem, method: mf.Handover) -> None:
        self.problem, self.scheme = problem, method.prepare(problem)
        self.state = self.scheme.initial()
        self.entries = [(0.0, self.energy(self.state))]
        self.across = np.nan  # energy of the atoms over that of the cells they stand for, less 1

    def energy(self, state: Any) -> float:
        return mf.diagnostics.energy(self.scheme.measure(state, state, state.time), self.problem)

    def __call__(self, time: float, state: Any) -> None:
        if state.time == self.state.time:  # several output times within a step
            return
        if "handed_over" in state.arrays and "handed_over" not in self.state.arrays:
            atoms = self.energy(self.scheme.handed_over(self.state))
            self.across = atoms / self.entries[-1][1] - 1
            self.entries.append((self.state.time, atoms))
        self.state = state
        self.entries.append((state.time, self.energy(state)))


def largest_fall(energies: np.ndarray) -> float:
    """The most that the energy loses from one instant to the next, as a share of it."""
    return float(max(0.0, np.max(-np.diff(energies) / energies[:-1])))


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    beta = 8.0 if quick else 20.0
    problem, method = mf.cases.staircase(beta=beta, cells=128 if quick else 256)
    log_end = float(np.log(problem.t_end))
    marks = [log_time + side for log_time in worth_looking_at(problem, method) for side in (-1e-6, 1e-6)]
    log_times = np.unique(np.concatenate([np.linspace(-1.0, 4.0, 40 if quick else 80), np.linspace(4.1, log_end, 20 if quick else 80)[:-1], marks]))
    started = time.monotonic()
    every_step = EnergyOfEveryStep(problem, method)
    run = mf.solve(problem, method, save_at=[0.0, *np.exp(log_times), problem.t_end], observe=[mf.diagnostics.energy], progress=every_step)
    seconds = time.monotonic() - started
    tree = follow(run)
    outputs = list(zip(run.times.tolist(), run.observed["energy"].tolist(), strict=True))
    instants = sorted([*outputs, *every_step.entries], key=lambda entry: entry[0])
    mergers = [event for event in tree.events if event.kind == "merger"]
    found.numbers["atoms at the end"] = len(run.final)
    found.numbers["seconds"] = seconds
    found.numbers["largest fall of the energy from one output to the next, relative"] = largest_fall(run.observed["energy"])
    found.numbers["largest fall of the energy from one step to the next, relative"] = largest_fall(np.array([energy for _, energy in every_step.entries]))
    found.numbers["largest fall of the energy over all instants, relative"] = largest_fall(np.array([energy for _, energy in instants]))
    found.numbers["change of the energy at the hand-over, relative"] = every_step.across
    found.numbers["mass x distance moved at the hand-over"] = run.stats["hand-over moved mass x distance"]
    recorded = [run.stats[f"ln t of merger {k}"] for k in range(1, run.stats["mergers"] + 1)]
    merged = sum(len(event.masses) - 1 for event in mergers)
    begun = len(tree.branches) - len(mergers)  # branches that no merger began
    found.numbers["clusters that formed, less those that merged away"] = begun - merged
    found.numbers["mergers recorded after the hand-over, less those listed"] = len({*recorded} - {m.log_time for m in mergers})
    head = ["event", "ln t", "angle", "masses"]
    rows = [[event.kind, event.log_time, event.angle, ", ".join(f"{mass:.4f}" for mass in event.masses)] for event in tree.events]
    rows.append(["hand-over to atoms", tree.handed_over, "", f"{atoms_handed_over(run)} clusters"])
    found.tables[f"All events at beta = {beta:g}"] = [head, *sorted(rows, key=lambda row: float(row[1]))]
    found.tables["Instants at which the energy was taken"] = [["steps and hand-over", "output times"], [len(every_step.entries), len(outputs)]]
    found.figures["Clusters over logarithmic time"] = mf.figures.cluster_tree(run)
    found.figures["The energy over logarithmic time"] = mf.figures.energy_staircase(run)
    return found


def worth_looking_at(problem: mf.Problem, method: mf.Handover) -> list[float]:
    """ln t of the hand-over and of the mergers after it, from a run without outputs."""
    stats = mf.solve(problem, method).stats
    return [float(np.log(stats["hand-over at t"])), *(stats[f"ln t of merger {k}"] for k in range(1, stats["mergers"] + 1))]


def atoms_handed_over(run: mf.Trajectory) -> int:
    """Atoms at the first output time after the hand-over and the mergers until then."""
    at = int(np.flatnonzero(run.times > run.stats["hand-over at t"])[0])
    before = sum(run.stats[f"ln t of merger {k}"] <= np.log(run.times[at]) for k in range(1, run.stats["mergers"] + 1))
    return len(run.measures[at]) + before


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
