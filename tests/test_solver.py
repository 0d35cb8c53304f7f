"""The time loop, trajectories and their errors."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf

CIRCLE = mf.Circle()
PROBLEM = mf.Problem(mf.Attention.identity(2, 5.0), CIRCLE, mf.initial.von_mises_mixture([0.0, 2.0], 4.0), 1.0)
METHOD = mf.FiniteVolume(cells=64)


@pytest.mark.parametrize("save_at", [[0.5, 0.2], [-0.1], [1.1], [0.3, 0.3], [np.nan], [[0.1], [0.2]], []])
def test_bad_output_times_are_named(save_at):
    with pytest.raises(mf.InputError):
        mf.solve(PROBLEM, METHOD, save_at=save_at)


def test_observers_see_every_output():
    run = mf.solve(PROBLEM, METHOD, save_at=[0, 0.25, 1], observe={"mean": lambda measure, problem: measure.mean})
    assert run.observed["mean"].shape == (3, 2)
    assert np.array_equal(run.observed["mean"][1], run.at(0.25).mean)


def test_bad_observers_and_methods_are_named():
    with pytest.raises(mf.InputError, match="function of"):
        mf.solve(PROBLEM, METHOD, observe=["energy"])
    with pytest.raises(mf.InputError, match="share a name"):
        mf.solve(PROBLEM, METHOD, observe=[mf.diagnostics.energy, mf.diagnostics.energy])
    with pytest.raises(mf.InputError, match="instance"):
        mf.solve(PROBLEM, "FiniteVolume")


def test_unsaved_times_are_named_with_the_nearest():
    run = mf.solve(PROBLEM, METHOD, save_at=[0.0, 0.5])
    with pytest.raises(mf.InputError, match=r"nearest output time is .*0\.5"):
        run.at(0.6)


def test_progress_may_be_a_function():
    seen = []
    mf.solve(PROBLEM, METHOD, progress=lambda time, state: seen.append(time))
    assert seen == sorted(seen)
    assert seen[-1] == PROBLEM.t_end


def test_progress_without_a_terminal_is_plain_lines(capsys, monkeypatch):
    import mfpde.progress as progress

    clock = iter(range(100000))
    monkeypatch.setattr(progress.clock, "monotonic", lambda: float(next(clock)))
    mf.solve(PROBLEM, METHOD, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all("s left" in line for line in lines)


class Failing:
    """Two good steps, then a promise that cannot be kept."""

    def prepare(self, problem):
        scheme = METHOD.prepare(problem)
        advance, count = scheme.advance, iter(range(100))

        def fail_at_the_third(state):
            if next(count) == 2:
                raise mf.NumericalError("the third step fails")
            return advance(state)

        scheme.advance = fail_at_the_third
        return scheme


def test_a_failure_keeps_what_was_computed():
    with pytest.raises(mf.NumericalError, match="third step") as caught:
        mf.solve(PROBLEM, Failing(), save_at=[0.0, 1e-9, 1.0])
    partial = caught.value.trajectory
    assert partial.status == "failed"
    assert len(partial.measures) == len(partial.times) == 2


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"text"])
def test_damaged_files_are_named(tmp_path, damage):
    path = mf.solve(PROBLEM, METHOD).save(tmp_path / "run.npz")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(mf.InputError, match=r"damaged|no trajectory"):
        mf.load(path)
    with pytest.raises(mf.InputError, match="There is no run"):
        mf.load(tmp_path / "other")


@pytest.mark.parametrize(
    "build", [lambda: mf.FiniteVolume(order=3), lambda: mf.Particles(placement="grid"), lambda: mf.Particles(n=0), lambda: mf.Particles(tol=1e-20)]
)
def test_bad_methods_are_named(build):
    with pytest.raises(mf.InputError):
        build()


def test_too_few_tokens_for_the_temperature_are_announced():
    problem = mf.Problem(mf.Attention.identity(2, 1e4), CIRCLE, mf.initial.uniform(CIRCLE), 0.01)
    from mfpde.methods.particles import FiniteSampleWarning

    with pytest.warns(FiniteSampleWarning, match="finite-n"):
        mf.solve(problem, mf.Particles(n=100))
