"""One suite that every method passes: see mfpde/methods/base.py for the contract."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.methods.base import Method

CIRCLE = mf.Circle()
ATTENTION = mf.Attention([[1.1, 0.3], [-0.2, 0.9]], np.eye(2), [[1.0, 0.2], [0.0, 0.6]], 8.0)
PROBLEM = mf.Problem(ATTENTION, CIRCLE, mf.initial.von_mises_mixture([0.5, 2.5], [6.0, 2.0]), 1.0)
METHODS = [
    mf.FiniteVolume(cells=128, order=1),
    mf.FiniteVolume(cells=128, order=2),
    mf.FiPyUpwind(cells=64),
    mf.Particles(n=60, placement="random", seed=5),
    mf.Particles(n=60, placement="nodes"),
    mf.Particles(n=60, placement="nodes", steps=24),
    mf.Particles(n=60, placement="graded"),
    mf.ZeroTemperature(nodes=200),
    mf.Lagrangian(cells=48, tol=1e-6),
    mf.Handover(mf.Lagrangian(cells=48, tol=1e-6), mf.Clusters()),
]


@pytest.fixture(params=METHODS, ids=repr)
def method(request):
    return request.param


def test_is_a_method_that_prints_itself(method):
    assert isinstance(method, Method)
    assert type(method).__name__ in repr(method)


def test_measures_are_laws_on_the_circle(method):
    run = mf.solve(PROBLEM, method, save_at=np.linspace(0, 1, 5))
    assert run.status == "done"
    for measure in run.measures:
        assert measure.mass == pytest.approx(1, abs=1e-13)
        assert measure.weights.min() >= 0
        assert np.abs(np.linalg.norm(measure.points, axis=1) - 1).max() < 1e-14
    assert run.stats["seconds"] > 0


def test_output_times_do_not_change_the_result(method):
    few = mf.solve(PROBLEM, method)
    many = mf.solve(PROBLEM, method, save_at=np.linspace(0, 1, 38))
    assert np.array_equal(few.final.weights, many.final.weights)
    assert np.array_equal(few.final.points, many.final.points)
    assert np.array_equal(many.times, np.linspace(0, 1, 38))


def test_a_run_repeats_bit_for_bit(method):
    a, b = mf.solve(PROBLEM, method), mf.solve(PROBLEM, method)
    assert np.array_equal(a.final.weights, b.final.weights)
    assert np.array_equal(a.final.points, b.final.points)


def test_a_run_continues_from_a_state_bit_for_bit(method):
    """A state holds all that the future depends on: a fresh scheme goes on from it as the old one would."""
    scheme = method.prepare(PROBLEM)
    states = [scheme.initial()]
    while states[-1].time < PROBLEM.t_end and len(states) < 8:
        states.append(scheme.advance(states[-1]))
    middle = states[len(states) // 2]
    kept = {name: array.copy() for name, array in middle.arrays.items()}
    again = method.prepare(PROBLEM)
    state = middle._replace(arrays=kept)
    for expected in states[len(states) // 2 + 1 :]:
        state = again.advance(state)
        assert state.time == expected.time
        for name, array in expected.arrays.items():
            assert np.array_equal(state.arrays[name], array)


def test_advance_leaves_its_state_alone(method):
    scheme = method.prepare(PROBLEM)
    state = scheme.initial()
    before = {name: array.copy() for name, array in state.arrays.items()}
    scheme.advance(state)
    assert all(np.array_equal(before[name], array) for name, array in state.arrays.items())


def test_measures_between_steps_are_continuous(method):
    scheme = method.prepare(PROBLEM)
    state = scheme.initial()
    after = scheme.advance(state)
    last = min(after.time, PROBLEM.t_end)
    for time in (0.0, last):
        exact = scheme.measure(state, after, time)
        near = scheme.measure(state, after, time + (1e-9 if time == 0 else -1e-9) * last)
        # weights are masses of cells or tokens, points move at speed at most |V|
        assert np.abs(exact.weights - near.weights).max() < 1e-7
        assert np.abs(exact.points - near.points).max() < 1e-7


def test_time_zero_is_the_initial_law(method):
    run = mf.solve(mf.Problem(ATTENTION, CIRCLE, PROBLEM.initial, 0.0), method)
    assert np.array_equal(run.times, [0.0])
    if run.final.mesh is not None:
        assert np.array_equal(run.final.weights, PROBLEM.initial.cell_masses(run.final.mesh))


def test_trajectories_survive_the_disk(method, tmp_path):
    run = mf.solve(PROBLEM, method, save_at=[0.0, 0.5, 1.0], observe=[mf.diagnostics.order_parameter])
    back = mf.load(run.save(tmp_path / "run"))
    assert np.array_equal(back.times, run.times)
    assert back.status == "done"
    assert np.array_equal(back.observed["order_parameter"], run.observed["order_parameter"])
    for a, b in zip(back.measures, run.measures, strict=True):
        assert np.array_equal(a.weights, b.weights)
        assert np.array_equal(a.points, b.points)
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]  # no temporary file stays


def test_a_resting_problem_is_left_alone(method):
    """V = 0: nothing moves, and no step size collapses."""
    problem = mf.Problem(mf.Attention(np.eye(2), np.eye(2), np.zeros((2, 2)), 3.0), CIRCLE, PROBLEM.initial, 1.0)
    run = mf.solve(problem, method)
    assert np.abs(run.final.weights - run.measures[0].weights).max() < 1e-15
    assert np.abs(run.final.points - run.measures[0].points).max() < 1e-15
