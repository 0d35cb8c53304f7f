"""A run folder: everything needed to read, redraw and repeat a comparison. It appears whole or not at all.

    run.json       case, keywords, versions, platform, command, timings, status
    distances.csv  t and all distances W_1, W_2
    NAME.npz       the trajectory of each method
    *.png          pictures
    summary.txt    what was printed
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import time as clock
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from mfpde import figures, limits
from mfpde.comparison import FLOW, Comparison, compare, find_plateau, fit_decay, siblings
from mfpde.errors import InputError
from mfpde.methods.base import Method
from mfpde.model import Problem
from mfpde.progress import Report

OUTPUTS = 61


def fresh_folder(case: str, chosen: str | None) -> Path:
    """The folder of a new run: the chosen one, which must not exist or be empty, else runs/CASE-001, -002, ..."""
    if chosen is not None:
        folder = Path(chosen)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"The output folder already holds something.\n  folder = {folder}\n  Choose another with -o, or remove it.")
        return folder
    number = 1
    while (folder := Path("runs") / f"{case}-{number:03d}").exists():
        number += 1
    return folder


def provenance(case: str, keywords: dict[str, Any], started: float, comparison: Comparison) -> dict[str, Any]:
    """What it takes to repeat the run, and what it took to make it."""

    def installed(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    return {
        "case": case,
        "keywords": keywords,
        "problem": repr(comparison.problem),
        "methods": {name: repr(trajectory.method) for name, trajectory in comparison.trajectories.items()},
        "status": {name: trajectory.status for name, trajectory in comparison.trajectories.items()},
        "statistics": {name: trajectory.stats for name, trajectory in comparison.trajectories.items()},
        "command": sys.argv,
        "versions": {package: installed(package) for package in ("mfpde", "numpy", "scipy", "numba", "ducc0", "fipy", "pot", "matplotlib")},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "date": clock.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seconds": clock.monotonic() - started,
    }


def summary(comparison: Comparison) -> str:
    """The tables of W_1 and W_2 over time, the fitted and the predicted rates, the plateaus, and the cost of each method."""
    problem, times = comparison.problem, comparison.times
    lines = [repr(problem), "", repr(limits.spectrum(problem.attention))]
    shown = np.unique(np.linspace(0, len(times) - 1, 13).astype(int))
    for p in (1, 2):
        columns, table = comparison.rows(p)
        lines += ["", f"W{p} in radians", "  ".join([f"{columns[0]:>6}", *(f"{name:>17}" for name in columns[1:])])]
        lines += ["  ".join([f"{row[0]:6.2f}", *(f"{value:17.3e}" for value in row[1:])]) for row in table[shown]]
    if comparison.limit is not None:
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
        stages = ", ".join(f"{stage.removeprefix('seconds in ')} {seconds:.2f} s" for stage, seconds in trajectory.stats.items() if stage.startswith("seconds in"))
        served = ", ".join(f"{tier.removeprefix('targets by ')} {count:.3g}" for tier, count in trajectory.stats.items() if tier.startswith("targets by"))
        lines.append(f"  {name:>9}: {trajectory.stats['seconds']:.2f} s, {trajectory.stats.get('steps', 0)} steps ({stages}; attention targets: {served or 'none'})")
        lines.append(f"  {'':>9}  mass drift {trajectory.stats['mass drift']:.1e}, smallest weight {trajectory.stats['minimum weight']:.1e}")
    return "\n".join(lines)


def draw(comparison: Comparison) -> dict[str, Any]:
    """The pictures of a comparison, by file name."""
    problem, times = comparison.problem, comparison.times
    first = next(iter(comparison.trajectories))
    pictures = {"density": figures.density(comparison.trajectories[first]), "snapshots": figures.snapshots(comparison.trajectories[first], times[:: max(1, len(times) // 5)], problem=problem)}
    if comparison.limit is not None:
        for p in (1, 2):
            series = {f"{name} to limit": (times, comparison.distances[name, "limit"][p]) for name in comparison.trajectories}
            series[f"{first} to particles"] = (times, comparison.distances[first, "particles"][p])
            pictures[f"decay_W{p}"] = figures.decay(series, p=p, rates={f"predicted, c = {limits.rate(problem.attention, p):.3f}": limits.rate(problem.attention, p)})
    return pictures


def run(case: str, keywords: dict[str, Any], problem: Problem, method: Method, folder: Path, *, report: Report | None = None) -> tuple[Comparison, str]:
    """Solve by all siblings, and fill `folder` in one step when everything has succeeded."""
    started = clock.monotonic()
    comparison = compare(problem, siblings(problem, method), np.linspace(0, problem.t_end, OUTPUTS), report=report)
    text = summary(comparison)
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        for name, trajectory in comparison.trajectories.items():
            trajectory.save(unfinished / name)
        columns, w1 = comparison.rows(1)
        w2 = comparison.rows(2)[1]
        header = ",".join(["t", *(f"W1 {name}" for name in columns[1:]), *(f"W2 {name}" for name in columns[1:])])
        np.savetxt(unfinished / "distances.csv", np.column_stack([w1, w2[:, 1:]]), delimiter=",", header=header, comments="", fmt="%.17g")
        for name, figure in draw(comparison).items():
            figures.save(figure, unfinished / f"{name}.png")
        (unfinished / "summary.txt").write_text(text + "\n")
        (unfinished / "run.json").write_text(json.dumps(provenance(case, keywords, started, comparison), indent=2, default=float) + "\n")
        if folder.exists():  # empty, as fresh_folder has checked
            folder.rmdir()
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return comparison, text
