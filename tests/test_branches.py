"""Clusters followed over logarithmic time: what merges, what departs, and when."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.branches import follow, moments_of
from mfpde.methods.clusters import life
from mfpde.trajectory import Trajectory

CIRCLE = mf.Circle()
I, J = np.eye(2), np.array([[0.0, -1.0], [1.0, 0.0]])


def atoms(rows, times, masses, method="Clusters()"):
    """A trajectory of atoms at the angles of each row; masses by the number of atoms."""
    measures = [mf.Measure(CIRCLE.points(row), masses[len(row)]) for row in rows]
    run = Trajectory(None, None, np.array(times, dtype=float), measures, status="done")
    run._described = {"problem": "", "method": method}
    return run


def test_mergers_are_where_the_method_recorded_them():
    """Three atoms, ln t of both mergers, the places and the masses from a run with coarse output against the life step by step."""
    law = mf.initial.atoms(CIRCLE.points([0.1, 1.3, 2.9]), [0.5, 0.2, 0.3])
    problem = mf.Problem(mf.Attention.identity(2, 10.0), CIRCLE, law, 1e9)
    run = mf.solve(problem, mf.Clusters(), save_at=np.geomspace(0.01, 1e9, 8))
    tree, story = follow(run), life(problem)
    assert [event.kind for event in tree.events] == ["merger"] * 2
    assert [event.log_time for event in tree.events] == story.log_times.tolist()
    assert [event.angle for event in tree.events] == pytest.approx(story.angles, abs=1e-12)
    assert [sorted(event.masses) for event in tree.events] == [pytest.approx(sorted(pair)) for pair in story.masses.tolist()]
    assert len(tree.branches) == 5
    assert tree.branches[-1].masses[-1] == pytest.approx(1)
    assert [event[:2] for event in follow(story).events] == [event[:2] for event in tree.events]


def test_several_mergers_between_two_output_times_stay_apart():
    four = mf.initial.atoms(CIRCLE.points([0.1, 1.3, 2.9, 4.6]), [0.3, 0.3, 0.25, 0.15])
    problem = mf.Problem(mf.Attention.identity(2, 10.0), CIRCLE, four, 1e12)
    run, story = mf.solve(problem, mf.Clusters(), save_at=[0, 1.0, 1e12]), life(problem)
    events = follow(run).events
    assert [event.log_time for event in events] == story.log_times.tolist()
    assert [sorted(event.masses) for event in events] == [pytest.approx(sorted(pair)) for pair in story.masses.tolist()]


def test_the_heavier_neighbour_does_not_take_what_is_not_its():
    """0 and 1.5 merge at .75; the atom at 1.5 is nearer to the one at 2, which has not got its mass."""
    run = atoms([[0.0, 1.5, 2.0], [0.75, 2.0]], [1, 10], {3: [1 / 3] * 3, 2: [2 / 3, 1 / 3]})
    (event,) = follow(run).events
    assert event.masses == pytest.approx((1 / 3, 1 / 3))
    assert event.angle == pytest.approx(0.75)
    assert event.log_time == pytest.approx(np.log(10))  # nothing was recorded: known to the spacing of the output times


@pytest.mark.parametrize("turn", [0.0, 1.0, 6.2, 3.1])
def test_links_cross_the_seam(turn):
    run = atoms([np.array([0.0, 1.5, 2.0]) + turn, np.array([0.75, 2.0]) + turn], [1, 10], {3: [1 / 3] * 3, 2: [2 / 3, 1 / 3]})
    assert follow(run).events[0].angle == pytest.approx((0.75 + turn) % (2 * np.pi))


def test_a_branch_goes_on_across_the_seam():
    run = atoms([[6.2, 3.0], [0.05, 3.0], [6.25, 3.0]], [1, 2, 4], {2: [0.7, 0.3]})
    tree = follow(run)
    assert len(tree.branches) == 2
    heavy = max(tree.branches, key=lambda branch: branch.masses[0])
    assert heavy.angles == pytest.approx([6.2, 0.05 + 2 * np.pi, 6.25])


def test_atoms_rest_until_their_time_has_come():
    """beta = 1e6: nothing moves before ln t = beta (1 - cos D), which two steps of the path may bridge."""
    angles, masses = [0.1, 1.3, 2.9, 4.6], [0.3, 0.3, 0.25, 0.15]
    story = life(mf.Problem(mf.Attention.identity(2, 1e6), CIRCLE, mf.initial.atoms(CIRCLE.points(angles), masses), 1.0))
    for branch in follow(story).branches[:4]:
        start = branch.angles[0]
        last = 1e6 * (1 - np.cos(1.2 if start < 2 else 1.7))
        assert np.interp(0.99 * last, branch.log_times, branch.angles) == pytest.approx(start, abs=1e-6)


def test_a_cluster_that_leaves_departs_and_one_that_merges_does_not():
    times = np.geomspace(1, 100, 60)
    path = 0.01 * np.exp(np.minimum(times - 30, 5.5))  # leaves at about t = 33.4 and stops at 2.4
    run = atoms(np.stack([path, np.full(60, 4.0)], axis=1), times, {2: [0.7, 0.3]})
    (event,) = follow(run).events
    assert event.kind == "departure"
    assert event.masses == (0.7,)
    passed = np.log(30 + np.log(31))
    assert passed <= event.log_time <= passed + np.diff(np.log(times))[0]
    rows = [[x, 4.0] if x < 2.4 else [2.9] for x in path]  # the same, but it merges
    assert [event.kind for event in follow(atoms(rows, times, {2: [0.7, 0.3], 1: [1.0]})).events] == ["merger"]


def test_a_cluster_that_moves_a_little_does_not_depart():
    times = np.geomspace(1, 100, 60)
    run = atoms(0.29 * np.linspace(0, 1, 60)[:, None], times, {1: [1.0]})
    assert follow(run).events == []


def test_the_departure_of_a_density():
    """V = diag(1, 2), A = diag(4, 1): both clusters form near +-e1, end near +-e2, and do not merge."""
    problem, _ = mf.cases.departure_log(beta=30.0, t_end=14.0)
    run = mf.solve(problem, mf.Lagrangian(cells=128, tol=1e-6), save_at=[0.0, *np.linspace(2, 14, 49)])
    tree = follow(run)
    assert [event.kind for event in tree.events] == ["departure"] * 2
    assert sorted(mass for event in tree.events for mass in event.masses) == pytest.approx([0.468, 0.532], abs=5e-3)  # basins, moved by beta = 30
    for event, branch in zip(tree.events, tree.branches, strict=True):
        assert abs(np.cos(branch.angles[0])) > 0.95
        assert abs(np.sin(branch.angles[-1])) > 0.95
        gone = np.interp(event.log_time, branch.log_times, branch.angles) - branch.angles[0]
        assert 0.3 < abs(gone) < 0.6


def test_turning_clusters_rest_in_their_frame():
    """V = I + J: the whole picture turns at rate 1, and nothing departs."""
    problem = mf.Problem(mf.Attention(I, I, I + J, 10.0), CIRCLE, mf.initial.atoms(CIRCLE.points([0.0, 2.5]), [0.6, 0.4]), 1e8)
    run = mf.solve(problem, mf.Clusters(), save_at=np.geomspace(0.1, 1e8, 8))
    tree = follow(run)
    assert tree.turn == 1.0
    assert [event.kind for event in tree.events] == ["merger"]
    assert tree.events[0].angle == pytest.approx(life(problem).angles[0], abs=1e-6)  # t = 6e6 turns: 1e-9 of round-off
    assert np.cos(sorted(branch.angles[0] for branch in tree.branches[:2])) == pytest.approx(np.cos([2.5, 0.0]), abs=1e-6)  # both rest at t = .1


def test_densities_have_clusters_when_they_are_narrow():
    """Two von Mises laws that sharpen: no cluster while wider than half a kernel, then two."""
    mesh = CIRCLE.mesh(1024)
    problem, _ = mf.cases.two_clusters(beta=4.0)
    laws = [mf.initial.von_mises_mixture([1.0, 4.0], kappa=kappa) for kappa in (4.0, 20.0, 1e3, 1e4)]
    run = Trajectory(problem, None, np.arange(1.0, 5.0), [mf.Measure(mesh.centres, law.cell_masses(mesh), mesh) for law in laws], status="done")
    assert [len(moment.angles) for moment in moments_of(run)] == [0, 0, 2, 2]
    assert [len(branch.log_times) for branch in follow(run).branches] == [2, 2]
    assert [branch.angles[-1] for branch in follow(run).branches] == pytest.approx([1.0, 4.0], abs=1e-3)


def test_the_noise_of_tokens_is_no_cluster():
    run = mf.solve(mf.Problem(mf.Attention.identity(2, 100.0), CIRCLE, mf.initial.uniform(CIRCLE), 0.01), mf.Particles(n=400, seed=1))
    with pytest.raises(mf.InputError, match="no clusters"):
        follow(run)


def test_a_life_that_never_begins():
    """One atom rests for ever."""
    tree = follow(life(mf.Problem(mf.Attention.identity(2, 5.0), CIRCLE, mf.initial.atoms(CIRCLE.points([1.0]), [1.0]), 1.0)))
    assert tree.events == []
    assert [branch.masses.tolist() for branch in tree.branches] == [[1.0]]
    assert np.isfinite(tree.branches[0].log_times).all()


def test_where_there_are_no_clusters():
    uniform = mf.Measure(CIRCLE.mesh(64).centres, np.full(64, 1 / 64), CIRCLE.mesh(64))
    for run in (Trajectory(None, None, np.array([1.0, 2.0]), [uniform] * 2, status="done"), Trajectory(None, None, np.array([0.0]), [uniform], status="done")):
        with pytest.raises(mf.InputError, match="no clusters at any of"):
            follow(run)
    with pytest.raises(mf.InputError, match="empty"):
        follow(Trajectory())
    ball = mf.Measure([[0.0, 0.0, 1.0]], [1.0])
    with pytest.raises(mf.InputError, match="on the circle"):
        follow(Trajectory(None, None, np.array([1.0]), [ball], status="done"))
