"""Clusters: merge times against closed forms and quadrature, rates against linear algebra, positions against particles."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import mfpde as mf
from mfpde.errors import InputError
from mfpde.methods.clusters import Clusters, life
from mfpde.methods.pull import common_turn, pull

CIRCLE = mf.Circle()
BETAS = [4.0, 10.0, 100.0, 1e4, 1e6]
MERGE = 1e-6


def problem_of(angles, masses, *, beta=4.0, V=((1, 0), (0, 1)), A=((1, 0), (0, 1)), t_end=1.0):
    head = mf.Attention(A, np.eye(2), V, beta)
    return mf.Problem(head, CIRCLE, mf.initial.atoms(CIRCLE.points(angles), masses), t_end)


def log_time_of_unequal_pair(distance, beta, mass):
    """ln of the time in which two atoms close in from `distance` to MERGE: the quadrature of D' = -sin D (...), in 40 digits."""
    with mp.workdps(40):
        a, b = mp.mpf(mass), 1 - mp.mpf(mass)

        def slowness(D):
            g = mp.exp(beta * (1 - mp.cos(D)))
            return 1 / (mp.sin(D) * (b / (b + a * g) + a / (a + b * g)))

        marks, h = [mp.mpf(distance)], mp.mpf(1) / beta  # panels that double away from the start, where the time is spent, and halve towards the end
        while marks[-1] - h > 2 * MERGE:
            marks.append(marks[-1] - h)
            h *= 2
        while marks[-1] / 2 > MERGE:
            marks.append(marks[-1] / 2)
        return mp.log(mp.quad(slowness, [mp.mpf(MERGE), *reversed(marks)]))


def log_time_of_equal_pair(distance, beta):
    """The closed form with exponential integrals (docs/theory), in 60 digits."""
    with mp.workdps(60):
        beta = mp.mpf(beta)

        def F(D):
            s = 2 * mp.sin(mp.mpf(D) / 2) ** 2
            return (mp.log(s / (2 - s)) + mp.ei(beta * s) - mp.exp(2 * beta) * mp.ei(-beta * (2 - s))) / 4

        return mp.log(F(distance) - F(MERGE))


@pytest.mark.parametrize("beta", BETAS)
def test_merge_time_of_an_unequal_pair(beta):
    story = life(problem_of([0.0, 2.5], [0.6, 0.4], beta=beta))
    exact = log_time_of_unequal_pair(2.5, beta, 0.6)
    assert abs(float((story.log_times[0] - exact) / exact)) < 1e-10  # observed 8e-12 at beta 4, 1e-15 beyond: tol 1e-11 of the path


@pytest.mark.parametrize("beta", BETAS)
def test_merge_time_of_an_equal_pair(beta):
    story = life(problem_of([0.0, 2.5], [0.5, 0.5], beta=beta))
    exact = log_time_of_equal_pair(2.5, beta)
    assert abs(float((story.log_times[0] - exact) / exact)) < 1e-10  # observed 1.3e-11 at beta 4, 1e-15 beyond
    assert story.left == 1
    assert story.angles[0] == pytest.approx(1.25, abs=1e-9)


def test_a_solution_passes_through_its_merger_at_any_output_time():
    exact = float(mp.exp(log_time_of_equal_pair(2.5, 10.0)))
    problem = problem_of([0.0, 2.5], [0.5, 0.5], beta=10.0, t_end=1e300)
    times = [0.0, exact * 1e-3, exact * (1 - 1e-9), exact * (1 + 1e-9), 1e300]
    run = mf.solve(problem, Clusters(), save_at=times)
    assert [len(law) for law in run.measures] == [2, 2, 2, 1, 1]
    alone = mf.solve(problem, Clusters(), save_at=[times[2]])
    assert np.array_equal(alone.final.points, run.measures[2].points)  # output times change nothing
    assert run.stats["ln t of merger 1"] == pytest.approx(np.log(exact), rel=1e-10)


def test_distance_on_the_plateau_follows_the_closed_form():
    """At a share of the merge time the distance is known by inverting F."""
    beta, wanted = 20.0, 2.2
    with mp.workdps(60):
        F = lambda D: (mp.log(s(D) / (2 - s(D))) + mp.ei(beta * s(D)) - mp.exp(2 * beta) * mp.ei(-beta * (2 - s(D)))) / 4
        s = lambda D: 2 * mp.sin(mp.mpf(D) / 2) ** 2
        time = float(F(2.5) - F(wanted))
    run = mf.solve(problem_of([0.0, 2.5], [0.5, 0.5], beta=beta, t_end=time), Clusters())
    assert np.ptp(run.final.angles()) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("V", "A"),
    [
        ([[1, 0], [0, 1]], [[1, 0], [0, 1]]),
        ([[1, -1], [1, 1]], [[1, 0], [0, 1]]),  # turning frame
        ([[1, 0], [0, 1]], [[2, 0.3], [-0.1, 0.7]]),  # path clock, general A
        ([[1, 0.4], [-0.2, 0.6]], [[1.1, 0.5], [-0.3, 0.8]]),  # ordinary clock
        ([[-1, 0], [0, -0.5]], [[1, 0], [0, 1]]),
    ],
)
def test_positions_agree_with_particles(V, A):
    problem = problem_of([0.3, 1.5, 3.9, 5.5], [0.1, 0.4, 0.3, 0.2], beta=3.0, V=V, A=A, t_end=1.5)
    atoms = mf.solve(problem, Clusters(tol=1e-12)).final
    tokens = _particles(problem)
    gap = np.sort(atoms.angles()) - np.sort(tokens.angles())
    assert np.abs(gap).max() < 1e-9  # both integrate the same ODE; observed below 1e-10


def _particles(problem):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # four tokens are the whole law here, not a sample
        return mf.solve(problem, mf.Particles(placement="nodes", tol=1e-12)).final


def test_velocities_keep_their_digits_where_the_plain_sum_loses_them():
    """Against 60 digits: three clusters, beta = 60, pulls down to 1e-50."""
    head = mf.Attention([[1.2, 0.3], [0.1, 0.9]], np.eye(2), np.eye(2), 60.0)
    angles, masses = np.array([0.2, 1.7, 4.0]), np.array([0.5, 0.3, 0.2])
    found = pull(head, angles, masses)
    with mp.workdps(60):
        A = mp.matrix(head.A.tolist())
        y = [mp.matrix([mp.cos(t), mp.sin(t)]) for t in angles.tolist()]
        for i in range(3):
            weight = [mp.mpf(m) * mp.exp(60 * ((A * y[i]).T * y[j])[0]) for j, m in enumerate(masses.tolist())]
            e = mp.matrix([-y[i][1], y[i][0]])
            v = sum(w * (e.T * y[j])[0] for j, w in enumerate(weight)) / sum(weight)
            assert found.sign[i] * np.exp(found.log_size[i]) == pytest.approx(float(v), rel=1e-12)


def test_a_merger_keeps_mass_and_barycentre():
    start = problem_of([6.2831850, 0.0000004, 2.0], [0.1, 0.3, 0.6])  # 7e-7 apart across the seam
    law = mf.solve(start, Clusters(), save_at=[0.0]).final
    assert len(law) == 2
    assert sorted(law.weights) == pytest.approx([0.4, 0.6], abs=1e-16)
    place = (0.1 * (6.2831850 - 2 * np.pi) + 0.3 * 4e-7) / 0.4
    assert np.abs(law.angles() - place).min() < 1e-15


def test_mergers_come_in_order_until_one_atom_holds_all():
    masses = np.array([0.3, 0.3, 0.25, 0.15])
    story = life(problem_of([0.1, 1.3, 2.9, 4.6], masses, beta=30.0))
    assert story.left == 1
    assert story.masses[-1].sum() == pytest.approx(1.0, abs=1e-15)
    assert (np.diff(story.log_times) > 0).all()


def test_one_atom_follows_the_value_matrix_alone():
    V = np.array([[0.3, 1.0], [0.2, -0.5]])
    problem = problem_of([2.0], [1.0], beta=50.0, V=V, A=[[3, 1], [0, 2]], t_end=2.0)
    run = mf.solve(problem, Clusters())
    from scipy.linalg import expm

    x = expm(2.0 * V) @ CIRCLE.points(2.0)
    assert CIRCLE.distance(run.final.points[0], x / np.linalg.norm(x)) < 1e-9


def antipodal(d_plus, d_minus, beta, l2, t_end, p=0.5):
    """Atoms at e1 and -e1, displaced by d_plus and d_minus towards +e2; their displacements at t_end."""
    problem = problem_of([d_plus, np.pi - d_minus], [p, 1 - p], beta=beta, V=[[1, 0], [0, l2]], t_end=t_end)
    return mf.solve(problem, Clusters(tol=1e-14, merge_distance=1e-9)).final.points[:, 1]


@pytest.mark.parametrize("p", [0.5, 0.7])
def test_rates_of_the_antipodal_pair(p):
    """The 2 x 2 matrix of the two centroids (docs/theory) against finite displacements of 1e-6, whose nonlinear error is 1e-12 of them."""
    from scipy.linalg import expm

    beta, l2, t, d = 1.3, 0.8, 1.0, 1e-6
    up, down = p * np.exp(beta), (1 - p) * np.exp(-beta)
    w_plus, w_minus = up / (up + down), (1 - p) * np.exp(beta) / ((1 - p) * np.exp(beta) + p * np.exp(-beta))
    M = np.array([[l2 * w_plus - (2 * w_plus - 1), l2 * (1 - w_plus)], [l2 * (1 - w_minus), l2 * w_minus - (2 * w_minus - 1)]])
    for start in ([d, 0.0], [0.0, d]):
        assert antipodal(*start, beta, l2, t, p) / d == pytest.approx(expm(t * M) @ start / d, abs=1e-6)


def test_threshold_of_the_antipodal_pair():
    """Stable iff l2 / l1 < tanh beta: for V = diag(1, .8) above beta = atanh .8 = 1.0986."""
    low, high = 0.8, 1.4
    while high - low > 1e-3:
        beta = 0.5 * (low + high)
        grown = np.abs(antipodal(1e-4, 1e-4, beta, 0.8, 2.0)).sum() > 2e-4
        low, high = (beta, high) if grown else (low, beta)
    assert low == pytest.approx(np.arctanh(0.8), rel=2e-3)


def test_intra_cluster_contraction_at_the_antipodes():
    """Two atoms 2e-6 apart at e1, the rest at -e1: they close in at the rate tanh beta."""
    beta, t = 1.5, 1.0
    problem = problem_of([1e-6, 2 * np.pi - 1e-6, np.pi], [0.25, 0.25, 0.5], beta=beta, V=[[1, 0], [0, 0.5]], t_end=t)
    law = mf.solve(problem, Clusters(tol=1e-14, merge_distance=1e-9)).final
    width = np.ptp(law.points[law.points[:, 0] > 0][:, 1]) / 2e-6
    assert -np.log(width) / t == pytest.approx(np.tanh(beta), abs=1e-6)


def test_regular_polygons_rest():
    angles = 2 * np.pi * np.arange(5) / 5
    run = mf.solve(problem_of(angles, np.full(5, 0.2), beta=8.0, t_end=1e12), Clusters())
    assert np.abs(np.sort(run.final.angles()) - angles).max() < 1e-12


def test_common_turn_is_found_and_nothing_else():
    R = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    head = lambda V, A: mf.Attention(A, np.eye(2), V, 5.0)
    assert common_turn(head([[2, -0.7], [0.7, 2]], 3 * R)) == pytest.approx(0.7)
    assert common_turn(head([[2, -0.7], [0.7, 2]], [[1, 0], [0, 2]])) is None
    assert common_turn(head([[2, 0], [0, 2]], [[1, 0], [0, 2]])) == 0
    assert common_turn(head([[1, 0], [0, 2]], R)) is None


@pytest.mark.parametrize("V", [[[1, 0], [0, 1]], [[1, 0], [0, 0.6]]])
def test_a_run_continues_bit_for_bit_from_any_state(V):
    scheme = Clusters().prepare(problem_of([0.1, 1.3, 2.9, 4.6], [0.3, 0.3, 0.25, 0.15], beta=6.0, V=V, t_end=1e6))
    states = [scheme.initial()]
    for _ in range(12):
        kept = {name: array.copy() for name, array in states[-1].arrays.items()}
        states.append(scheme.advance(states[-1]))
        assert all(np.array_equal(kept[name], states[-2].arrays[name]) for name in kept)  # a state is never altered
    again = Clusters().prepare(scheme.problem)
    state = states[5]
    for expected in states[6:]:
        state = again.advance(state)
        assert state.time == expected.time
        assert all(np.array_equal(state.arrays[name], expected.arrays[name]) for name in expected.arrays)


def test_bad_questions_are_named():
    density = mf.Problem(mf.Attention.identity(2, 4.0), CIRCLE, mf.initial.poisson(0.3), 1.0)
    with pytest.raises(InputError, match="start from atoms"):
        mf.solve(density, Clusters())
    with pytest.raises(InputError, match="order one"):
        life(problem_of([0.0, 1.0], [0.5, 0.5], V=[[1, 0], [0, 0.5]]))
    with pytest.raises(InputError, match="merge_distance"):
        Clusters(merge_distance=1.0)
    with pytest.raises(InputError, match="tol"):
        Clusters(tol=0.0)
    with pytest.raises(InputError, match="beta = inf"):
        Clusters().prepare(problem_of([0.0], [1.0], beta=np.inf))
