"""The hand-over: the clusters go on where the density left them, and the report says what that cost."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.errors import InputError
from mfpde.methods.clusters import Clusters
from mfpde.methods.handover import Handover
from mfpde.methods.lagrangian import Lagrangian

CELLS = Lagrangian(cells=64, tol=1e-8)


def distance(law):
    """Angle between the two heaviest groups, left and right of angle 0."""
    theta = (law.angles() + np.pi) % (2 * np.pi) - np.pi
    right = theta > 0
    return (law.weights[right] @ theta[right]) / law.weights[right].sum() - (law.weights[~right] @ theta[~right]) / law.weights[~right].sum()


def test_clusters_take_over_and_merge_when_the_cells_would():
    problem, _ = mf.cases.two_clusters(beta=4.0, t_end=60.0)
    times = [20.0, 38.0, 60.0]
    handed, cells = (mf.solve(problem, method, save_at=times) for method in (Handover(CELLS), CELLS))
    assert len(handed.at(20.0)) == 2
    for t in times[:2]:
        assert distance(handed.at(t)) == pytest.approx(distance(cells.at(t)), abs=1e-5)  # the merger is at 41.6; observed 1e-7
    assert len(handed.final) == 1
    stats = handed.stats
    assert 3 < stats["hand-over at t"] < 20
    assert stats["hand-over change of velocity"] <= 1e-6
    assert stats["hand-over moved mass x distance"] < 1e-5
    assert np.exp(stats["ln t of merger 1"]) == pytest.approx(53.4, abs=0.5)  # at a distance of 1e-6: 11.8 after the resultant passes .998


def test_a_mesh_can_hand_over_too():
    problem, _ = mf.cases.two_clusters(beta=4.0, t_end=1e3)
    run = mf.solve(problem, Handover(mf.FiniteVolume(cells=256), width=0.2, influence=0.05), save_at=[0, 5, 1e3])
    assert len(run.final) == 1
    assert run.stats["hand-over moved mass x distance"] < 0.05
    assert np.exp(run.stats["ln t of merger 1"]) == pytest.approx(53.4, rel=0.05)  # the mesh is handed over early, with clusters four cells wide


def test_a_run_continues_bit_for_bit_across_the_hand_over():
    problem, _ = mf.cases.two_clusters(beta=6.0, t_end=1e4)
    method = Handover(Lagrangian(cells=32, tol=1e-6), width=1e-3, influence=1e-3)
    scheme = method.prepare(problem)
    states = [scheme.initial()]
    while "handed_over" not in states[-1].arrays or len(states) < 5:
        states.append(scheme.advance(states[-1]))
        assert len(states) < 500
    states.append(scheme.advance(states[-1]))
    again = method.prepare(problem)
    state = states[-5]
    for expected in states[-4:]:
        state = again.advance(state)
        assert state.time == expected.time
        assert all(np.array_equal(state.arrays[name], expected.arrays[name]) for name in expected.arrays)


def test_no_hand_over_while_the_law_is_spread():
    problem, _ = mf.cases.two_clusters(beta=4.0, t_end=1.0)
    run = mf.solve(problem, Handover(CELLS))
    assert "hand-over at t" not in run.stats
    assert isinstance(run.final, type(mf.solve(problem, CELLS).final))


def test_a_quadrature_of_few_points_is_no_set_of_clusters():
    """Points of a smooth density are far apart compared with `width`, and heavy: they are not handed over as atoms."""
    problem = mf.Problem(mf.Attention.identity(2, 20.0), mf.Circle(), mf.initial.fourier([0.005, 0.003j]), 0.5)
    assert "hand-over at t" not in mf.solve(problem, Handover(CELLS)).stats


def test_bad_questions_are_named():
    with pytest.raises(InputError, match="width"):
        Handover(CELLS, width=0.0)
    with pytest.raises(InputError, match="Clusters"):
        Handover(CELLS, CELLS)
    assert Handover(CELLS, Clusters()).influence == 1e-6
