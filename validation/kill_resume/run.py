"""Runs killed with SIGKILL at random moments and resumed, until they finish: are they the uninterrupted ones, bit for bit?

    python validation/kill_resume/run.py [--quick] [-o FILE]

One process imports the package and forks a child for every attempt, so that an attempt costs a second and kills fall everywhere: in the middle
of a step, between the laws and the checkpoint that counts on them, between two renames. A second campaign kills whole command lines
(`mfpde run`, then `mfpde resume`), where they also fall before the folder is made and while pictures are drawn.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mfpde import claims

SEED = 0
BASE = """
t_end = {t_end}
[attention]
beta = 6.0
Q = [[1.1, 0.3], [-0.2, 0.9]]
V = [[1.0, 0.2], [0.0, 0.6]]
[initial]
{initial}
[methods.it]
{method}
[output]
times = 23
checkpoint_every = {every}
"""
SMOOTH = 'law = "von_mises_mixture"\nangles = [0.5, 2.5]\nkappa = [6.0, 2.0]'
NARROW = 'law = "von_mises_mixture"\nangles = [0.0, 2.0]\nkappa = 40.0'
POINTS = [[float(np.cos(a)), float(np.sin(a))] for a in (0.1, 1.3, 2.9, 4.6)]
ATOMS = f'law = "atoms"\npoints = {POINTS}\nweights = [0.3, 0.3, 0.25, 0.15]'
METHODS = {
    "FiniteVolume": dict(t_end=2.0, initial=SMOOTH, method='method = "FiniteVolume"\ncells = 1024', every=0.02),
    "FiPyUpwind": dict(t_end=0.5, initial=SMOOTH, method='method = "FiPyUpwind"\ncells = 64', every=0.02),
    "Particles": dict(t_end=2.0, initial=SMOOTH, method='method = "Particles"\nn = 600\nseed = 3', every=0.02),
    "ZeroTemperature": dict(t_end=2.0, initial=SMOOTH, method='method = "ZeroTemperature"\nnodes = 400', every=0.02),
    "Lagrangian": dict(t_end=2.0, initial=SMOOTH, method='method = "Lagrangian"\ncells = 64', every=0.05),
    "Clusters": dict(t_end=20.0, initial=ATOMS, method='method = "Clusters"', every=0.01),
    "Handover": dict(
        t_end=60.0, initial=NARROW, method='method = "Handover"\nwidth = 1e-2\nfirst = { method = "Lagrangian", cells = 32, tol = 1e-7 }', every=0.02
    ),
}


def command(words: list[str]) -> int:
    """The exit code of `mfpde words`."""
    from mfpde.cli import main

    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        try:
            main(words, prog_name="mfpde")
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def march(file: Path, folder: Path) -> int:
    """Solve with checkpoints in `folder`, from where they are; save the trajectory."""
    import mfpde as mf
    from mfpde.runs.config import resolve

    config = resolve(str(file))
    where = mf.Checkpoints(folder / "checkpoints", config.checkpoint_every)
    trajectory = mf.solve(config.problem(), config.methods()["it"], save_at=config.times(), observe=config.observers(), checkpoints=where)
    trajectory.save(folder / "it")
    return 0


def attempt(work: Callable[[], int], patience: float | None) -> int | None:
    """Fork a child that works; its exit code, or None if it was killed after `patience` seconds."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    deadline = None if patience is None else time.monotonic() + patience
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if deadline is not None and time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.002)


def total_steps(statistics: dict[str, float]) -> float:
    """Steps of all phases: a hand-over counts those of its first method under that name once it is over."""
    return sum(value for name, value in statistics.items() if name.removeprefix("first: ") == "steps")


def same(one: Path, other: Path) -> list[str]:
    """What differs between two finished runs, the seconds they took left out."""
    differences = []
    for name in ("it.npz", "distances.csv", "observables.csv", "run.toml"):
        a, b = one / name, other / name
        if a.exists() != b.exists():
            differences.append(f"{name} exists once only")
        elif name.endswith(".npz"):
            with np.load(a) as x, np.load(b) as y:
                if x.files != y.files:
                    differences.append(f"{name}: other arrays")
                differences += [f"{name}: {key}" for key in x.files if key in y.files and key != "meta" and x[key].tobytes() != y[key].tobytes()]
                if not (np.diff(x["times"]) > 0).all():
                    differences.append("output times are not increasing")
                steps = [total_steps(json.loads(str(z["meta"]))["stats"]) for z in (x, y)]
                if steps[0] != steps[1]:
                    differences.append(f"steps {steps}")
        elif a.exists() and a.read_bytes() != b.read_bytes():
            differences.append(name)
    return differences


class Campaign(NamedTuple):
    """What came of the runs of one method."""

    runs: int
    kills: int
    continued: int
    seconds: float
    wrong: list[str]


def campaign(name: str, runs: int, rng: random.Random, home: Path, *, whole_commands: bool) -> Campaign:
    """`runs` runs of a method, each killed until it happens to finish within its random time; one that does so unkilled starts over."""
    file = home / f"{name}.toml"
    file.write_text(BASE.format(**METHODS[name]))

    def job(folder: Path) -> Callable[[], int]:
        if not whole_commands:
            return lambda: march(file, folder)
        words = ["resume", str(folder), "-q"] if folder.exists() else ["run", str(file), "-o", str(folder), "-q"]
        return lambda: command(words)

    reference = home / f"{name}-{whole_commands}-reference"
    march(file, home / f"{name}-warm")  # kernels are loaded once, in the parent
    started = time.monotonic()
    assert attempt(job(reference), None) == 0
    length = time.monotonic() - started
    kills = from_checkpoint = 0
    wrong: list[str] = []
    for number in range(runs):
        folder = home / f"{name}-{whole_commands}-{number}"
        code, killed = None, 0
        while code is None:
            from_checkpoint += any(folder.glob("checkpoints/**/?.npz"))
            code = attempt(job(folder), None if killed == 19 else rng.uniform(0, 1.1 * length))
            if code is None:
                killed += 1
            elif code == 0 and not killed:
                shutil.rmtree(folder)
                code = None
        kills += killed
        wrong += [f"run {number}: exit code {code}"] if code != 0 else [f"run {number}: {difference}" for difference in same(reference, folder)]
    return Campaign(runs, kills, from_checkpoint, round(length, 2), wrong)


def measure(quick: bool) -> claims.Findings:
    os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")  # survives a fork, which OpenMP does not
    import mfpde.cli
    import mfpde.runs.experiment  # noqa: F401  loaded once, before the children fork

    found = claims.Findings(seeds=[SEED])
    rows: list[list[object]] = [["method", "what is killed", "runs", "kills", "continued from a checkpoint", "seconds of a whole run", "differences"]]
    with tempfile.TemporaryDirectory() as home:
        for name in METHODS:
            for kind, runs in (("a call of solve", 2 if quick else 20), ("a command line", 0 if quick else 2)):
                if runs:
                    result = campaign(name, runs, random.Random(f"{name} {SEED}"), Path(home), whole_commands=kind == "a command line")
                    rows.append([name, kind, result.runs, result.kills, result.continued, result.seconds, len(result.wrong)])
                    print(*rows[-1], *result.wrong, flush=True)
                    found.numbers[f"differences from the uninterrupted run, {name}, {kind}"] = len(result.wrong)
                    found.numbers[f"kills a run, {name}, {kind}"] = result.kills / result.runs
    found.tables["Killed and continued"] = rows
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
