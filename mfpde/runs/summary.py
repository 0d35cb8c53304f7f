"""What a comparison says in words and pictures: tables of distances, rates, plateaus and costs; figures by file name."""

from __future__ import annotations

from typing import Any

import numpy as np

from mfpde import figures, limits
from mfpde.comparison import FLOW, Comparison, find_plateau, fit_decay, lives_long
from mfpde.errors import InputError


def summary(comparison: Comparison) -> str:
    """The tables of W_1 and W_2 over time, the fitted and the predicted rates, the plateaus, and the cost of each method."""
    problem, times = comparison.problem, comparison.times
    lines = [repr(problem), "", repr(limits.spectrum(problem.attention))]
    shown = np.unique(np.linspace(0, len(times) - 1, 13).astype(int))
    for p in (1, 2) if comparison.distances else ():
        columns, table = comparison.rows(p)
        lines += ["", f"W{p} in radians", "  ".join([f"{columns[0]:>6}", *(f"{name:>17}" for name in columns[1:])])]
        lines += ["  ".join([f"{row[0]:6.2f}", *(f"{value:17.3e}" for value in row[1:])]) for row in table[shown]]
    if comparison.limit is not None and comparison.distances:
        lines += ["", "Decay to the limit: W_p ~ e^{-ct}; predicted for the zero-temperature flow (docs/theory, section 4)"]
        for p in (1, 2):
            predicted = limits.rate(problem.attention, p)
            for name in comparison.trajectories:
                fit = fit_decay(times, comparison.distances[name, "limit"][p])
                lines.append(f"  c(W{p}) predicted {predicted:.3f}   {name:>9} fitted {fit if fit else '(too few times before the plateau)'}")
        lines += ["", "Plateau: smallest distance to the limit, and departure (the distance doubles)"]
        for p in (1, 2):
            lines += [f"  W{p} {name:>9}  {find_plateau(times, comparison.distances[name, 'limit'][p])}" for name in comparison.trajectories if name != FLOW]
    lines += ["", "Cost"]
    for name, trajectory in comparison.trajectories.items():
        stages = ", ".join(
            f"{stage.removeprefix('seconds in ')} {seconds:.2f} s" for stage, seconds in trajectory.stats.items() if stage.startswith("seconds in")
        )
        served = ", ".join(f"{tier.removeprefix('targets by ')} {count:.3g}" for tier, count in trajectory.stats.items() if tier.startswith("targets by"))
        lines.append(
            f"  {name:>9}: {trajectory.stats['seconds']:.2f} s, {trajectory.stats.get('steps', 0)} steps ({stages}; attention targets: {served or 'none'})"
        )
        lines.append(f"  {'':>9}  mass drift {trajectory.stats['mass drift']:.1e}, smallest weight {trajectory.stats['minimum weight']:.1e}")
        if trajectory.status != "done":
            lines.append(f"  {'':>9}  {trajectory.status}: {trajectory.message}")
    return "\n".join(lines)


def draw(comparison: Comparison) -> dict[str, Any]:
    """The pictures of a comparison, by file name; those that its geometry or its laws do not allow are left out. Lives of clusters get theirs over ln t."""
    problem, times = comparison.problem, comparison.times
    first = next(iter(comparison.trajectories))
    few = times[:: max(1, len(times) // 5)]
    wanted = {"snapshots": lambda: figures.snapshots(comparison.trajectories[first], few, problem=problem)}
    if np.median(times) >= 0.01 * times[-1]:  # output times equal in ln t: a linear axis shows the end of a long life and nothing else
        wanted["density"] = lambda: figures.density(comparison.trajectories[first])
    long_lived = [trajectory for trajectory in comparison.trajectories.values() if lives_long(trajectory.method)]
    if long_lived:
        wanted |= {"cluster_tree": lambda: figures.cluster_tree(long_lived[0]), "energy_staircase": lambda: figures.energy_staircase(long_lived[0])}
    if comparison.limit is not None and comparison.distances and len(times) > 1:
        wanted |= {f"decay_W{p}": lambda p=p: _decay(comparison, first, p) for p in (1, 2)}  # type: ignore[misc]
    pictures = {}
    for name, make in wanted.items():
        try:
            pictures[name] = make()
        except InputError:  # no picture on this geometry, or all distances are zero
            continue
    return pictures


def _decay(comparison: Comparison, first: str, p: int) -> Any:
    times, rate = comparison.times, limits.rate(comparison.problem.attention, p)
    series = {f"{name} to limit": (times, comparison.distances[name, "limit"][p]) for name in comparison.trajectories}
    series |= {f"{a} to {b}": (times, d[p]) for (a, b), d in comparison.distances.items() if a == first and b not in ("limit", FLOW)}
    return figures.decay(series, p=p, rates={f"predicted, c = {rate:.3f}": rate})
