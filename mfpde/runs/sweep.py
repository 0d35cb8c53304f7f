"""Sweeps: the same run at many points of parameter space, on one worker or many (extra "sweep").

    points("beta=10:1000:log7", "cells=128,256")     14 points
    run_sweep(...)                                    one JSON file a point, then one tidy table

A point is a configuration; its row holds the final distances between the methods, the final observables, and the cost. Workers are processes of
`dask.distributed` with one thread each: a local cluster, or an existing scheduler by its address. A point depends on its configuration alone, seed
included, so the table is the same for 1 and n workers. Every finished point is a file of its own, written in one step by the process that
steers, so a sweep that is killed goes on where it was; points that fail are listed and do not stop the rest.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import logging
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mfpde.errors import InputError, NumericalError
from mfpde.export import needs
from mfpde.progress import Report
from mfpde.runs.config import Config, resolve
from mfpde.runs.experiment import measured, prepare, strict
from mfpde.runs.runfile import literal, parse
from mfpde.solver import Run, march
from mfpde.storage.archive import write_text, write_whole

MOST_POINTS = 100_000


@dataclass(frozen=True)
class Sweep:
    """A case or run file, what is fixed, and what varies: `axes` maps keys to their values."""

    source: str
    fixed: list[str]
    axes: dict[str, list[Any]]

    def points(self) -> list[dict[str, Any]]:
        """All combinations, the last axis varying fastest."""
        return [dict(zip(self.axes, values, strict=True)) for values in itertools.product(*self.axes.values())]

    def words(self, point: dict[str, Any]) -> list[str]:
        """The overrides of a point."""
        return [*self.fixed, *(f"{key}={value if isinstance(value, str) else repr(value)}" for key, value in point.items())]


def parse_sweep(source: str, words: Iterable[str]) -> Sweep:
    """`key=a:b:logN` and `key=a:b:linN` are ranges of N values, `key=1,2,3` lists; anything else is fixed.

    >>> sweep = parse_sweep("poisson", ["r=0.1:0.4:lin4", "cells=64,128", "t_end=1"])
    >>> sweep.axes, sweep.fixed, len(sweep.points())
    ({'r': [0.1, 0.2, 0.3, 0.4], 'cells': [64, 128]}, ['t_end=1'], 8)
    """
    fixed, axes = [], {}
    for word in words:
        key, _, value = word.partition("=")
        values = None if key == "only" or value.startswith(("[", '"', "'")) else _values(word, value)
        if values is None:
            fixed.append(word)
        elif key in axes:
            raise InputError(f"{key} is given twice.\n  Given: {word!r}")
        else:
            axes[key] = values
    parse([*fixed, *(f"{key}=0" for key in axes)])  # the form of the words, and keys that are given twice
    number = math.prod(len(values) for values in axes.values())
    if not axes or number > MOST_POINTS:
        here = number if axes else "nothing varies"
        raise InputError(f"A sweep has between 1 and {MOST_POINTS} points.\n  Here: {here}\n  For example beta=10:1000:log7 or cells=64,128.")
    return Sweep(source, fixed, axes)


def _values(word: str, text: str) -> list[Any] | None:
    """The values of a range or a list, None for a single value."""
    parts = text.split(":")
    if len(parts) == 3:
        spacing, number = parts[2][:3], parts[2][3:]
        try:
            first, last, count = float(parts[0]), float(parts[1]), int(number)
        except ValueError:
            raise InputError(f"A range has the form first:last:logN or first:last:linN.\n  Given: {word!r}") from None
        good = math.isfinite(first) and math.isfinite(last) and 1 <= count <= MOST_POINTS and spacing in ("log", "lin")
        if not good or (spacing == "log" and not (first > 0 and last > 0)):
            raise InputError(f"A range has the form first:last:logN or first:last:linN, positive ends for log.\n  Given: {word!r}")
        values = np.geomspace(first, last, count) if spacing == "log" else np.linspace(first, last, count)
        return [float(f"{value:.15g}") for value in values]  # 0.3, not 0.30000000000000004
    return [literal(part) for part in text.split(",")] if "," in text else None


def solve_point(values: dict[str, Any]) -> dict[str, Any]:
    """One row: final distances W_1, W_2 between all pairs of methods, final observables, steps and seconds. Runs in a worker, which needs
    nothing but the resolved values: no file, no folder."""
    plan = prepare(Config("point", values, {}))
    observers = plan.config.observers()
    trajectories = {
        name: march(Run(plan.problem, method, plan.schemes[name], plan.times, observers, plan.starts[name]), report=lambda time, state: None)
        for name, method in plan.methods.items()
    }
    row: dict[str, Any] = {"hash": plan.config.hash}
    for (a, b), distances in measured(plan, trajectories, lambda share, name: None).distances.items():
        row |= {f"W{p} {a}-{b}": float(distances[p][-1]) for p in (1, 2)}
    for name, trajectory in trajectories.items():
        for observable, series in trajectory.observed.items():
            last = np.ravel(series[-1])
            row |= {f"{name} {observable}" + (f" {i}" if len(last) > 1 else ""): float(value) for i, value in enumerate(last)}
        row[f"{name} steps"] = trajectory.stats.get("steps", 0)
        row[f"{name} seconds"] = trajectory.stats["seconds"]
    return row


def attempt(values: dict[str, Any]) -> dict[str, Any]:
    """`solve_point` on one thread, with a failure as a row that says what went wrong."""
    import numba

    numba.set_num_threads(1)  # two workers on two cores, not two workers with two threads each; results do not depend on it
    try:
        return solve_point(values)
    except (InputError, NumericalError, MemoryError, FloatingPointError, ArithmeticError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


@contextmanager
def workers(jobs: int, scheduler: str | None) -> Iterator[Any]:
    """A `distributed.Client`: of a local cluster with `jobs` processes of one thread, or of the scheduler at an address."""
    import dask
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.ERROR)  # a worker that is slow to leave is no news
    calm = {"distributed.worker.daemon": False, "distributed.scheduler.allowed-failures": 5, "distributed.logging.distributed": "error"}
    with dask.config.set(calm):
        if scheduler is not None:
            try:
                client = Client(scheduler, timeout="10s", set_as_default=False)
            except (OSError, ValueError, TimeoutError) as error:
                raise InputError(f"No scheduler answers at this address.\n  scheduler = {scheduler!r}\n  {type(error).__name__}: {error}") from None
            with client:
                yield client
        else:
            # Port 0: any free one. Without an address the scheduler's web server insists on 8787, which another sweep may hold.
            local = LocalCluster(n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1")
            with local, Client(local, set_as_default=False) as client:
                yield client


def run_sweep(
    sweep: Sweep, folder: Path, *, jobs: int = 1, scheduler: str | None = None, report: Report = lambda share, stage: None
) -> tuple[list[dict[str, Any]], list[str]]:
    """All points that `folder` does not hold yet, then the tables; returns `(rows, failures)`.

    Points that failed before are tried again. Raises `InputError` when no point makes sense, without writing anything.
    """
    points = sweep.points()
    checked = [_checked(sweep, point) for point in points]
    if all(isinstance(result, InputError) for result in checked):
        raise checked[0]  # type: ignore[misc]
    if jobs < 1:
        raise InputError(f"At least one worker.\n  jobs = {jobs}")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / "sweep.json").exists())):
        raise InputError(f"The output folder already holds something else.\n  folder = {folder}\n  Choose another with -o.")
    try:
        from distributed import as_completed
    except ImportError:
        raise needs("distributed", "sweep") from None
    if (folder / "sweep.json").exists():
        _same_sweep(folder, sweep)
    rows: dict[int, dict[str, Any]] = {}
    todo = []
    for number, result in enumerate(checked):
        kept = _kept(folder, number, result.hash) if isinstance(result, Config) else None
        if isinstance(result, InputError):
            rows[number] = {"error": f"InputError: {result}"}
        elif kept is not None:
            rows[number] = kept
        else:
            todo.append(number)
    if not (folder / "sweep.json").exists():
        write_text(folder / "sweep.json", json.dumps(strict({"source": sweep.source, "fixed": sweep.fixed, "axes": sweep.axes}), indent=2) + "\n")
    if todo:
        report(len(rows) / len(points), "starting workers")
        with workers(min(jobs, len(todo)) if scheduler is None else jobs, scheduler) as client:
            futures = {client.submit(attempt, checked[number].values, pure=False, retries=3): number for number in todo}  # type: ignore[union-attr]
            for future in as_completed(futures, loop=client.loop):
                number = futures[future]
                error = future.exception() if future.status == "error" else None
                row = future.result() if error is None else {"error": f"{type(error).__name__}: {error}"}
                rows[number] = row
                if "error" not in row:
                    write_text(_file(folder, number), json.dumps(strict(row), indent=1) + "\n")
                future.release()
                report(len(rows) / len(points), f"{len(rows)} of {len(points)} points")
    table = [{"point": number, **points[number], **rows[number]} for number in range(len(points))]
    write_text(folder / "table.csv", tidy_csv([row for row in table if "error" not in row], list(sweep.axes)))
    failures = [f"point {row['point']} ({', '.join(f'{key}={row[key]}' for key in sweep.axes)}): {row['error']}" for row in table if "error" in row]
    write_text(folder / "failures.txt", "\n\n".join(failures) + ("\n" if failures else ""))
    return table, failures


def _checked(sweep: Sweep, point: dict[str, Any]) -> Config | InputError:
    """The configuration of a point, or what is wrong with it."""
    try:
        return resolve(sweep.source, sweep.words(point))
    except InputError as error:
        return error


def _file(folder: Path, number: int) -> Path:
    return folder / "points" / f"{number:06d}.json"


def _kept(folder: Path, number: int, wanted: str) -> dict[str, Any] | None:
    """The row of a point that is finished, None if it is not, is damaged, or was of another configuration."""
    try:
        row = json.loads(_file(folder, number).read_text())
        if row["hash"] != wanted:
            return None
        return {key: float(value) if value in ("inf", "-inf", "nan") else value for key, value in row.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _same_sweep(folder: Path, sweep: Sweep) -> None:
    try:
        kept = json.loads((folder / "sweep.json").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'sweep.json'} cannot be read.\n  {error}") from None
    if kept != strict({"source": sweep.source, "fixed": sweep.fixed, "axes": sweep.axes}):
        raise InputError(f"{folder} holds another sweep.\n  There: {kept}\n  Choose another folder with -o.")


def tidy_csv(rows: list[dict[str, Any]], axes: list[str]) -> str:
    """One line a point; seconds last, for they alone differ from run to run."""
    names = dict.fromkeys(key for row in rows for key in row)
    seconds = [name for name in names if name.endswith(" seconds")]
    columns = ["point", *axes, *(name for name in names if name not in ("point", "hash", *axes, *seconds)), *seconds]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def to_xarray(rows: list[dict[str, Any]], axes: dict[str, list[Any]]) -> Any:
    """The table on its axes as an `xarray.Dataset`, NaN where a point failed (extra "io")."""
    try:
        import xarray
    except ImportError:
        raise needs("xarray", "io") from None
    shape = tuple(len(values) for values in axes.values())
    names = dict.fromkeys(key for row in rows if "error" not in row for key in row if key not in ("point", "hash", *axes))
    variables = {}
    for name in names:
        values = np.array([row.get(name, math.nan) if "error" not in row else math.nan for row in rows], dtype=float)
        variables[name] = (tuple(axes), values.reshape(shape))
    return xarray.Dataset(variables, dict(axes))


def save_netcdf(rows: list[dict[str, Any]], axes: dict[str, list[Any]], path: str | os.PathLike[str]) -> Path:
    """Write the table as NetCDF; the file appears whole or not at all."""
    data = to_xarray(rows, axes)
    write_whole(Path(path), lambda file: data.to_netcdf(file.name, engine="h5netcdf"))
    return Path(path)
