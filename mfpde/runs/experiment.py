"""A run folder: everything needed to read, redraw, continue and repeat a comparison.

    run.toml         the resolved configuration: `mfpde run run.toml` repeats the run bit for bit
    run.json         the same with origins and hash, seeds, versions, commit, platform, threads, command, timings, state
    NAME.npz         the trajectory of each method, when it is finished
    checkpoints/     while the run is unfinished
    distances.csv    t and all distances W_1, W_2
    observables.csv  t and the observables of each method
    *.png            pictures
    summary.txt      what was printed

Bad input is found before the folder is made. The folder appears with its run.toml and run.json in one step, and every file in it appears whole:
a process killed at any moment loses what is newer than its last checkpoint and nothing else.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import time as clock
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mfpde import figures
from mfpde.comparison import Comparison, find_limit, measure_distances
from mfpde.errors import InputError, NumericalError, unknown_name
from mfpde.export import distances_csv, observables_csv, save_netcdf
from mfpde.interruption import Interrupted, asked, polite
from mfpde.measure import Measure
from mfpde.methods.base import Method, Scheme, State
from mfpde.model import Problem
from mfpde.progress import Report
from mfpde.runs.config import Config, hash_of, resolve
from mfpde.runs.runfile import read_toml
from mfpde.runs.summary import draw, summary
from mfpde.solver import Run, march
from mfpde.storage.archive import write_text
from mfpde.storage.checkpoint import Checkpoints
from mfpde.storage.provenance import provenance
from mfpde.trajectory import Trajectory, load

FORMAT = 1
CHECKPOINTS = "checkpoints"


# ---- what is to be done --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Plan:
    """A configuration made ready: problem, methods and schemes, output times, observers, the limit. Everything that can be wrong with it is known."""

    config: Config
    problem: Problem
    methods: dict[str, Method]
    schemes: dict[str, Scheme]
    starts: dict[str, State]
    times: np.ndarray
    limit: Measure | None
    warnings: list[str]
    seconds: float


def prepare(config: Config) -> Plan:
    """Build everything a run needs; `InputError` for whatever cannot be run."""
    begun = clock.monotonic()
    problem, methods = config.problem(), config.methods()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UserWarning)
        schemes = {name: method.prepare(problem) for name, method in methods.items()}
    starts = {name: scheme.initial() for name, scheme in schemes.items()}  # a law without a density, a density without a mass: better now than later
    try:
        limit = find_limit(problem)
    except InputError:  # atoms on the boundary between two basins: the comparison does without
        limit = None
    return Plan(config, problem, methods, schemes, starts, config.times(), limit, [str(warning.message) for warning in heard], clock.monotonic() - begun)


@dataclass(frozen=True)
class Estimate:
    """What the first steps of a method promise for the whole."""

    steps: float
    seconds: float

    def __str__(self) -> str:
        return f"about {self.steps:.0f} steps, {self.seconds:.0f} s"


def estimate(plan: Plan, *, patience: float = 0.5) -> dict[str, Estimate]:
    """The cost of each method at the pace of its first steps, which takes `patience` seconds or two steps a method."""
    promised = {}
    for name, method in plan.methods.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scheme = method.prepare(plan.problem)
        state = scheme.advance(scheme.initial())  # the first step may compile
        started, begin, steps = clock.monotonic(), state.time, 0
        while state.time < plan.problem.t_end and (steps < 1 or clock.monotonic() - started < patience):
            state = scheme.advance(state)
            steps += 1
        pace = (state.time - begin) / (clock.monotonic() - started) if steps else math.inf
        left = max(plan.problem.t_end - state.time, 0.0)
        promised[name] = Estimate(steps + 1 + (left / (state.time - begin) * steps if steps else 0), left / pace if pace > 0 else math.inf)
    return promised


# ---- the folder ----------------------------------------------------------------------------------------------------------------------


def fresh_folder(name: str, chosen: str | None) -> Path:
    """The folder of a new run: the chosen one, which must not exist or be empty, else runs/NAME-001, -002, ..."""
    if chosen is not None:
        folder = Path(chosen)
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise InputError(
                    f"The output folder already holds something.\n  folder = {folder}\n  Choose another with -o, remove it, or go on with mfpde resume."
                )
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"The output folder cannot be used.\n  folder = {folder}\n  {type(error).__name__}: {error}") from None
        return folder
    number = 1
    while (folder := Path("runs") / f"{name}-{number:03d}").exists():
        number += 1
    return folder


class RunFolder:
    """A folder and its record, `run.json`, which `note` rewrites in one step."""

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.path, self.record = path, record

    @classmethod
    def create(cls, path: Path, plan: Plan) -> RunFolder:
        """Make the folder with its configuration and record, in one step."""
        folder = cls(path, first_record(plan))
        unfinished = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
            write_text(unfinished / "run.toml", plan.config.toml())
            write_text(unfinished / "run.json", folder._text())
            unfinished.chmod(0o755)
            unfinished.rename(path)  # onto nothing, or onto an empty folder
        except OSError as error:
            if unfinished is not None:
                shutil.rmtree(unfinished, ignore_errors=True)
            raise InputError(f"The output folder cannot be made.\n  folder = {path}\n  {type(error).__name__}: {error}") from None
        return folder

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """The run in an existing folder; `InputError` if there is none, or its record is damaged."""
        source = Path(path) / "run.json"
        try:
            record = json.loads(source.read_text())
            if record["format"] != FORMAT or not isinstance(record["state"], str) or not isinstance(record["hash"], str):
                raise KeyError("format")
            for key in ("status", "statistics", "timings"):
                record[key].items()
            record["parts"].copy()
        except FileNotFoundError:
            raise InputError(f"There is no run in {path}.\n  A run folder holds run.json and run.toml.") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{source} is no record of a run, or it is damaged.\n  {type(error).__name__}: {error}") from None
        return cls(Path(path), record)

    def config(self) -> Config:
        """The configuration, which must be the one the run began with."""
        source = self.path / "run.toml"
        if hash_of(read_toml(source)) != self.record["hash"]:
            raise InputError(f"{source} is not the configuration this run began with.\n  Run the changed file anew: mfpde run {source}")
        return resolve(str(source))

    def note(self, **changes: Any) -> None:
        """Update the record, in memory and on disk."""
        self.record |= changes
        write_text(self.path / "run.json", self._text())

    def trajectory(self, name: str, plan_problem: Problem, method: Method) -> Trajectory:
        """The saved trajectory of a method, with its problem."""
        trajectory = load(self.path / f"{name}.npz")
        trajectory.problem, trajectory.method = plan_problem, method
        return trajectory

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the system lifts the lock of a killed one. Where there are no such locks nothing is checked."""
        try:
            import fcntl
        except ImportError:  # not on every system
            yield
            return
        folder = self.path / CHECKPOINTS
        folder.mkdir(exist_ok=True)
        with open(folder / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"Another process is working on {self.path}.\n  Wait for it, or stop it first.") from None
            yield

    def _text(self) -> str:
        return json.dumps(strict(self.record), indent=2, allow_nan=False) + "\n"


def strict(value: Any) -> Any:
    """JSON that every reader takes: numpy numbers become numbers, inf and NaN texts."""
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def first_record(plan: Plan) -> dict[str, Any]:
    """The record of a run that is about to begin."""
    config = plan.config
    given = {key: value for key, value in config.values.get("keywords", {}).items() if not config.origins[f"keywords.{key}"].startswith("case ")}
    return {
        "format": FORMAT,
        "name": config.name,
        "case": config.values.get("case"),
        "keywords": given,
        "configuration": config.values,
        "origins": config.origins,
        "hash": config.hash,
        "seeds": {name: method.seed for name, method in plan.methods.items() if hasattr(method, "seed")},
        "problem": repr(plan.problem),
        "methods": {name: repr(method) for name, method in plan.methods.items()},
        "warnings": plan.warnings,
        **provenance(),
        "parts": [],
        "state": "running",
        "message": "",
        "status": {},
        "statistics": {},
        "timings": {"preparation": plan.seconds},
    }


# ---- doing it ------------------------------------------------------------------------------------------------------------------------


def run(plan: Plan, folder: Path, *, report: Report) -> tuple[Comparison, str]:
    """Make `folder`, solve by all methods, compare, and fill it; `Interrupted` after a signal, with all that is needed to go on."""
    return work(RunFolder.create(folder, plan), plan, report=report)


def resume(folder: RunFolder, plan: Plan, *, report: Report) -> tuple[Comparison, str]:
    """Go on with an unfinished run: finished methods are read, the others continue from their last checkpoint, bit for bit."""
    if folder.record["state"] == "failed":
        raise InputError(f"This run failed, and would fail again.\n  {folder.record['message']}\n  Change it: mfpde run {folder.path / 'run.toml'} key=value")
    if plan.config.hash != folder.record["hash"]:
        began, now = folder.record["versions"]["mfpde"], provenance()["versions"]["mfpde"]
        raise InputError(f"This version of the package knows other parameters than the one that began the run.\n  Then {began}, now {now}.\n  Run it anew.")
    return work(folder, plan, report=report)


def work(folder: RunFolder, plan: Plan, *, report: Report) -> tuple[Comparison, str]:
    """Whatever is left to do in a folder."""
    started = clock.monotonic()
    with folder.locked(), polite():
        for stray in folder.path.rglob(".*.part"):  # of a killed process
            stray.unlink(missing_ok=True)
        part = {key: value for key, value in provenance().items() if key in ("command", "date", "versions", "commit", "threads")}
        folder.note(state="running", message="", parts=[*folder.record["parts"], part])
        try:
            comparison, text = _finish(folder, plan, report)
        except KeyboardInterrupt as stop:
            message = str(stop) or "stopped at once"
            folder.note(state="interrupted", message=message, seconds=_seconds(folder, started))
            raise Interrupted(f"interrupted: {message}\nGo on with: mfpde resume {folder.path}") from None
        except NumericalError as error:
            folder.note(state="failed", message=str(error), seconds=_seconds(folder, started))
            raise
        except Exception as error:  # a full disk, too little memory, a damaged file: what can be mended
            folder.note(state="interrupted", message=f"{type(error).__name__}: {error}", seconds=_seconds(folder, started))
            raise
        folder.note(state="done", message="", seconds=_seconds(folder, started))
    shutil.rmtree(folder.path / CHECKPOINTS, ignore_errors=True)
    return comparison, text


def _seconds(folder: RunFolder, started: float) -> float:
    return float(folder.record.get("seconds", 0.0)) + clock.monotonic() - started


def _finish(folder: RunFolder, plan: Plan, report: Report) -> tuple[Comparison, str]:
    record, stages = folder.record, len(plan.methods) + 2
    trajectories: dict[str, Trajectory] = {}

    def heard(share: float, stage: str) -> None:
        if asked():
            raise Interrupted(f"stopped during {stage}")
        report(share, stage)

    for i, (name, method) in enumerate(plan.methods.items()):
        report(i / stages, name)
        if (folder.path / f"{name}.npz").exists():
            trajectories[name] = folder.trajectory(name, plan.problem, method)
            continue
        checkpoints = Checkpoints(folder.path / CHECKPOINTS / name, plan.config.checkpoint_every)
        end = plan.problem.t_end or 1.0
        todo = Run(plan.problem, method, plan.schemes[name], plan.times, plan.config.observers(), plan.starts[name])
        try:
            trajectory = march(todo, report=lambda t, _, i=i, name=name, end=end: report((i + t / end) / stages, name), checkpoints=checkpoints)  # type: ignore[misc]
        except NumericalError as error:
            if error.trajectory is not None:
                error.trajectory.save(folder.path / f"{name}-failed.npz")
            record["status"][name] = "failed"
            raise NumericalError(f"{name}: {error}\n  What was computed until then is in {folder.path}.") from error
        trajectory.save(folder.path / name)
        trajectories[name] = trajectory
        record["status"][name], record["statistics"][name] = trajectory.status, trajectory.stats
        record["timings"][name] = trajectory.stats["seconds"]
        folder.note()
        shutil.rmtree(checkpoints.folder, ignore_errors=True)
        if asked():
            raise Interrupted(f"stopped after {name}")
    for name, trajectory in trajectories.items():  # also after a kill between a trajectory and the record of it
        record["status"][name], record["statistics"][name] = trajectory.status, trajectory.stats
    begun = clock.monotonic()
    comparison = measured(plan, trajectories, lambda share, name: heard((len(plan.methods) + share) / stages, name))
    text = "\n".join([summary(comparison), *(f"note: {warning}" for warning in plan.warnings)])
    if comparison.distances:
        write_text(folder.path / "distances.csv", distances_csv(comparison))
    write_text(folder.path / "observables.csv", observables_csv(trajectories))
    write_text(folder.path / "summary.txt", text + "\n")
    record["timings"]["distances"] = clock.monotonic() - begun
    begun = clock.monotonic()
    heard((stages - 1) / stages, "pictures")
    for name, figure in draw(comparison).items():
        figures.save(figure, folder.path / f"{name}.png")
        heard((stages - 1) / stages, "pictures")
    record["timings"]["pictures"] = clock.monotonic() - begun
    report(1.0, "done")
    return comparison, text


def measured(plan: Plan, trajectories: dict[str, Trajectory], report: Report) -> Comparison:
    """The distances, where the geometry has them; else a comparison without."""
    try:
        return measure_distances(plan.problem, plan.times, trajectories, plan.limit, report=report)
    except InputError:
        return Comparison(plan.problem, plan.times, trajectories, plan.limit, {})


# ---- reading a finished run ----------------------------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> tuple[RunFolder, Config, dict[str, Trajectory]]:
    """A run folder, its configuration and the trajectories that are finished, with their problem."""
    folder = RunFolder.open(path)
    config = folder.config()
    problem = config.problem()
    finished = {name: method for name, method in config.methods().items() if (folder.path / f"{name}.npz").exists()}
    if not finished:
        raise InputError(f"No method of this run is finished.\n  {path}: {folder.record['state']}\n  Go on with: mfpde resume {path}")
    return folder, config, {name: folder.trajectory(name, problem, method) for name, method in finished.items()}


def export(path: str | os.PathLike[str], output: str | None, form: str) -> list[Path]:
    """Write the finished trajectories of a folder as NetCDF, with the record as metadata, or their observables as one table; return the files."""
    if form not in ("nc", "csv"):
        raise unknown_name("format", form, ["nc", "csv"])
    folder, _, trajectories = read(path)
    if form == "csv":
        target = Path(output) if output else folder.path / "observables.csv"
        write_text(target, observables_csv(trajectories))
        return [target]
    home = Path(output) if output else folder.path
    return [save_netcdf(trajectory, home / f"{name}.nc", metadata={"run": strict(folder.record)}) for name, trajectory in trajectories.items()]
