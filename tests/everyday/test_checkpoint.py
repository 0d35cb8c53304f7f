"""Checkpoints: a run stopped anywhere goes on bit for bit, whatever was half written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mfpde as mf
from mfpde.interruption import Interrupted, polite
from mfpde.methods.base import State
from mfpde.storage.checkpoint import Checkpoints, generator_from_array, generator_to_array

CIRCLE = mf.Circle()
ATTENTION = mf.Attention([[1.1, 0.3], [-0.2, 0.9]], np.eye(2), [[1.0, 0.2], [0.0, 0.6]], 8.0)
SMOOTH = mf.Problem(ATTENTION, CIRCLE, mf.initial.von_mises_mixture([0.5, 2.5], [6.0, 2.0]), 0.5)
ATOMS = mf.Problem(ATTENTION, CIRCLE, mf.initial.atoms(CIRCLE.points([0.1, 1.3, 2.9, 4.6]), [0.3, 0.3, 0.25, 0.15]), 2.0)
PAIR = mf.Problem(mf.Attention.identity(2, 6.0), CIRCLE, mf.initial.von_mises_mixture([0.0, 2.0], 40.0), 60.0)
TIMES = 9
PAIRS = [
    (SMOOTH, mf.FiniteVolume(cells=64)),
    (SMOOTH, mf.Particles(n=40, seed=3)),
    (SMOOTH, mf.Particles(n=40, seed=3, steps=12)),
    (SMOOTH, mf.ZeroTemperature(nodes=64)),
    (SMOOTH, mf.Lagrangian(cells=32)),
    (ATOMS, mf.Clusters()),
    (PAIR, mf.Handover(mf.Lagrangian(cells=32, tol=1e-7), width=1e-2)),
]


class RandomWalk:
    """Tokens that jump at random: a method whose state holds a random generator."""

    def prepare(self, problem):
        return self

    def __repr__(self):
        return "RandomWalk()"

    def initial(self):
        return State(0.0, 0.01, {"angles": np.zeros(5), "generator": generator_to_array(np.random.default_rng(7))})

    def advance(self, state):
        generator = generator_from_array(state.arrays["generator"])
        angles = state.arrays["angles"] + 0.1 * generator.standard_normal(5)
        return State(state.time + 0.01, 0.01, {"angles": angles, "generator": generator_to_array(generator)})

    def measure(self, before, after, time):
        return mf.Measure(CIRCLE.points(after.arrays["angles"]), np.full(5, 0.2))

    def statistics(self):
        return {}


class Killed(BaseException):
    """Stands for SIGKILL: nothing runs after it."""


def solve(problem, method, folder=None, every=0.0, stop_after=None):
    """A run with a checkpoint after every step, which dies after `stop_after` steps."""
    steps = 0

    def report(time, state):
        nonlocal steps
        steps += 1
        if steps == stop_after:
            raise Killed

    times = np.linspace(0, problem.t_end, TIMES)
    where = None if folder is None else Checkpoints(folder, every)
    return mf.solve(problem, method, save_at=times, observe=[mf.diagnostics.order_parameter], progress=report, checkpoints=where), steps


def assert_same(run, other):
    assert np.array_equal(run.times, other.times)
    assert len(run.measures) == len(other.measures) == TIMES  # no output twice, none lost
    for a, b in zip(run.measures, other.measures, strict=True):
        assert a.points.tobytes() == b.points.tobytes()
        assert a.weights.tobytes() == b.weights.tobytes()
        assert (a.mesh is None) == (b.mesh is None)
        for x, y in zip(getattr(a, "cells", ()), getattr(b, "cells", ()), strict=True):
            assert x.tobytes() == y.tobytes()
    assert np.array_equal(run.observed["order_parameter"], other.observed["order_parameter"])
    for name in ("steps", "rejected steps"):  # a hand-over counts the steps of its first method apart once it is over
        assert sum(run.stats.get(prefix + name, 0) for prefix in ("", "first: ")) == sum(other.stats.get(prefix + name, 0) for prefix in ("", "first: "))
    assert run.stats.get("smallest mass") == other.stats.get("smallest mass")


@pytest.mark.parametrize(("problem", "method"), [*PAIRS, (SMOOTH, RandomWalk())], ids=lambda value: type(value).__name__)
def test_a_run_stopped_again_and_again_is_the_uninterrupted_one(problem, method, tmp_path):
    whole, steps = solve(problem, method)
    for stop_after in sorted({2, 3, max(steps // 3, 2)}):  # the process dies before the checkpoint of that step, so 1 would never get on
        folder = tmp_path / str(stop_after)
        for _ in range(steps + 1):
            try:
                run, _ = solve(problem, method, folder, stop_after=stop_after)
                break
            except Killed:
                continue
        assert_same(run, whole)
        assert_same(mf.load(run.save(tmp_path / f"{stop_after}.npz")), mf.load(whole.save(tmp_path / "whole.npz")))  # as laws on a mesh, where they were


def test_nothing_older_than_the_last_checkpoint_is_lost(tmp_path):
    """The state on disk is that of the last step but one: a checkpoint follows the report of its step."""
    with pytest.raises(Killed):
        solve(SMOOTH, PAIRS[0][1], tmp_path, stop_after=6)
    keeper = Checkpoints(tmp_path).keeper(SMOOTH, PAIRS[0][1], np.linspace(0, 0.5, TIMES))
    kept = keeper.restore()
    scheme = PAIRS[0][1].prepare(SMOOTH)
    state = scheme.initial()
    for _ in range(5):
        state = scheme.advance(state)
    assert kept.state.time == state.time
    assert np.array_equal(kept.state.arrays["masses"], state.arrays["masses"])


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"x" * len(data), lambda data: data[:-1]])
@pytest.mark.parametrize("which", ["newest", "laws"])
def test_a_damaged_checkpoint_is_passed_over(damage, which, tmp_path):
    problem, method = PAIRS[0]
    whole, steps = solve(problem, method)
    with pytest.raises(Killed):
        solve(problem, method, tmp_path, stop_after=steps // 2)
    if which == "newest":
        victim = max(tmp_path.glob("?.npz"), key=lambda path: path.stat().st_mtime_ns)
        victim.write_bytes(damage(victim.read_bytes()))
        run, _ = solve(problem, method, tmp_path)
        assert_same(run, whole)
    else:
        victim = min(tmp_path.glob("laws-*.npz"))  # both checkpoints count on it
        victim.write_bytes(damage(victim.read_bytes()))
        with pytest.raises(mf.InputError, match="No checkpoint in"):
            solve(problem, method, tmp_path)


def test_a_death_between_the_laws_and_their_checkpoint_changes_nothing(tmp_path, monkeypatch):
    """Files of laws are written before the checkpoint that counts on them; here the process dies in between."""
    import mfpde.storage.checkpoint as checkpoint

    problem, method = PAIRS[0]
    whole, _ = solve(problem, method)
    write, left = checkpoint.write_arrays, 7

    def dies(path, *words, **keywords):
        nonlocal left
        left -= 1
        if left < 0 and path.name in ("a.npz", "b.npz"):
            raise Killed
        write(path, *words, **keywords)

    monkeypatch.setattr(checkpoint, "write_arrays", dies)
    with pytest.raises(Killed):
        solve(problem, method, tmp_path)
    monkeypatch.undo()
    run, _ = solve(problem, method, tmp_path)
    assert_same(run, whole)


def test_checkpoints_of_another_run_are_refused(tmp_path):
    problem, method = PAIRS[0]
    solve(problem, method, tmp_path)
    others = [
        (problem, mf.FiniteVolume(cells=32)),
        (mf.Problem(ATTENTION, CIRCLE, mf.initial.von_mises_mixture([0.5, 2.6], [6.0, 2.0]), 0.5), method),  # prints the same
        (mf.Problem(mf.Attention(ATTENTION.Q * (1 + 1e-6), ATTENTION.K, ATTENTION.V, 8.0), CIRCLE, problem.initial, 0.5), method),
    ]
    for other_problem, other_method in others:
        with pytest.raises(mf.InputError, match="another run"):
            solve(other_problem, other_method, tmp_path)
    with pytest.raises(mf.InputError, match="seconds"):
        Checkpoints(tmp_path, every=-1)


def test_a_signal_ends_the_run_after_its_step(tmp_path):
    problem, method = PAIRS[0]
    whole, _ = solve(problem, method)
    times = np.linspace(0, problem.t_end, TIMES)

    def report(time, state):
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with polite(), pytest.raises(Interrupted, match="stopped at t"):
        mf.solve(problem, method, save_at=times, observe=[mf.diagnostics.order_parameter], progress=report, checkpoints=Checkpoints(tmp_path))
    assert signal.getsignal(signal.SIGTERM) is before
    run, _ = solve(problem, method, tmp_path)
    assert_same(run, whole)


RUN = """
import sys
import mfpde.cli
mfpde.cli.main(sys.argv[1:])
"""


def start(*words, cwd):
    home = {**os.environ, "PYTHONPATH": str(Path(mf.__file__).parent.parent)}
    return subprocess.Popen([sys.executable, "-c", RUN, *words], cwd=cwd, env=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_real_process_is_killed_and_resumed(number, tmp_path):
    """The command line from outside: `mfpde run`, a signal in the middle, `mfpde resume`; see validation/kill_resume for the long campaign."""
    words = ["two_clusters", "t_end=60.0", "cells=256", "only=pde", "output.times=20", "output.checkpoint_every=0.02", "output.observe=order_parameter"]
    process = start("run", *words, "-o", "out", "-q", cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not any((tmp_path / "out").glob("checkpoints/pde/b.npz")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    if number == signal.SIGINT:
        assert process.returncode == 130, errors
        assert "mfpde resume out" in errors
    else:
        assert process.returncode == -signal.SIGKILL
    from mfpde.runs import experiment
    from mfpde.runs.config import resolve

    folder = experiment.RunFolder.open(tmp_path / "out")
    assert folder.record["state"] == ("interrupted" if number == signal.SIGINT else "running")
    assert folder.config().hash == resolve("two_clusters", words[1:]).hash
    again = start("resume", "out", "-q", cwd=tmp_path)
    _, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    resumed = mf.load(tmp_path / "out" / "pde")
    config = folder.config()
    whole = mf.solve(config.problem(), config.methods()["pde"], save_at=config.times())
    assert np.array_equal(resumed.times, whole.times)
    assert all(a.weights.tobytes() == b.weights.tobytes() for a, b in zip(resumed.measures, whole.measures, strict=True))
    assert resumed.stats["steps"] == whole.stats["steps"]
    assert not (tmp_path / "out" / "checkpoints").exists()
