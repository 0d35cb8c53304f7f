"""Sweeps: words, tables, resuming, failures, workers that die."""

from __future__ import annotations

import csv
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mfpde as mf
from mfpde.cli import app
from mfpde.runs.sweep import parse_sweep, run_sweep, to_xarray

needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason='the extra "sweep" (distributed) is not installed')
# tornado and dask open sockets whose closing races with the garbage collector; that is no business of ours
pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]
WORDS = ["r=0.1:0.4:lin3", "cells=16,24", "t_end=0.2", "only=pde,particles", "methods.particles.n=8", "output.times=2"]
HOME = {**os.environ, "PYTHONPATH": str(Path(mf.__file__).parent.parent)}


def table(folder: Path) -> list[dict[str, str]]:
    """The rows without the seconds."""
    with open(folder / "table.csv") as file:
        return [{key: value for key, value in row.items() if not key.endswith("seconds")} for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["r=0.1:0.4:log"], "form"),
        (["r=0:1:log3"], "positive"),
        (["r=a:b:lin3"], "form"),
        (["r=0.1:0.4:lin0"], "form"),
        (["t_end=1"], "nothing varies"),
        (["r=0.1,0.2", "r=0.3,0.4"], "twice"),
        (["cells=1:9:lin400", "r=0.1:0.2:lin400"], "100000"),
        (["rr=0.1,0.2"], "'r'"),
        (["r=1.5,2.0"], "0 <= r < 1"),
        (["r"], "key=value"),
    ],
)
def test_wrong_sweeps_are_named_and_write_nothing(words, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["sweep", "poisson", *words])
    assert result.exit_code == 2, result.output
    assert hint in result.output
    assert not list(tmp_path.iterdir())


def test_logarithmic_ranges_hit_their_ends():
    values = parse_sweep("concentration", ["beta=10:1000:log5"]).axes["beta"]
    assert values == [10.0, 31.6227766016838, 100.0, 316.227766016838, 1000.0]


@needs_dask
def test_one_and_two_workers_give_the_same_table_and_finished_points_are_kept(tmp_path):
    sweep = parse_sweep("poisson", [*WORDS, "order=2,3"])  # order 3 does not exist: those points fail
    with socket.socket() as other:  # another sweep's web server: dask's own port is taken, by this test or by somebody else
        with suppress(OSError):
            other.bind(("127.0.0.1", 8787))
            other.listen()
        rows, failures = run_sweep(sweep, tmp_path / "two", jobs=2)
    assert len(rows) == 12
    assert len(failures) == 6
    assert all("order = 3" in failure for failure in failures)
    first = table(tmp_path / "two")
    assert len(first) == 6
    points = sorted((tmp_path / "two" / "points").iterdir())
    stamps = [path.stat().st_mtime_ns for path in points]
    points[2].write_text("half of a ro")  # damaged: solved again
    points[4].unlink()
    rows, _ = run_sweep(sweep, tmp_path / "two", jobs=1)
    assert table(tmp_path / "two") == first
    assert [path.stat().st_mtime_ns == stamp for path, stamp in zip(points, stamps, strict=True)] == [True, True, False, True, False, True]
    with pytest.raises(mf.InputError, match="another sweep"):
        run_sweep(parse_sweep("poisson", WORDS), tmp_path / "two")
    if importlib.util.find_spec("xarray") is not None:
        data = to_xarray(rows, sweep.axes)
        assert dict(data.sizes) == {"r": 3, "cells": 2, "order": 2}
        assert data["W1 pde-particles"].sel(order=3).isnull().all()
        assert float(data["W1 pde-particles"].sel(r=0.25, cells=24, order=2)) == float(next(row["W1 pde-particles"] for row in rows if row["point"] == 6))


@needs_dask
def test_a_worker_is_killed_and_no_point_is_lost(tmp_path):
    """A scheduler and two workers as processes of their own; one worker gets SIGKILL while points are running."""
    processes = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-m", *words], env=HOME, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        processes.append(process)
        return process

    try:
        scheduler = start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        assert scheduler.stderr is not None
        address = next(found.group() for line in scheduler.stderr if (found := re.search(r"tcp://127\.0\.0\.1:\d+", line)))
        workers = [
            start("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
            for _ in range(2)
        ]
        killed = []

        def report(share: float, stage: str) -> None:
            if share > 0.3 and not killed:
                os.kill(workers[0].pid, signal.SIGKILL)
                killed.append(time.monotonic())

        sweep = parse_sweep("poisson", ["r=0.1:0.4:lin12", *WORDS[1:]])
        rows, failures = run_sweep(sweep, tmp_path / "out", scheduler=address, report=report)
        assert killed
        assert not failures
        assert len(rows) == len(table(tmp_path / "out")) == 24
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@needs_dask
def test_a_missing_scheduler_is_named(tmp_path):
    result = CliRunner().invoke(app, ["sweep", "poisson", *WORDS, "--scheduler", "not an address", "-o", str(tmp_path / "out"), "-q"])
    assert result.exit_code == 2
    assert "No scheduler answers" in result.output
