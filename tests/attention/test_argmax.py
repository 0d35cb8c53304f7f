"""Attention at beta = inf: against brute force over the support, and as the limit of the finite-beta sum."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.attention.zero_temperature import Argmax

CIRCLE = mf.Circle()
MATRICES = {
    "identity": np.eye(2),
    "rotation": np.array([[0.8, -0.6], [0.6, 0.8]]),
    "general": np.array([[1.3, 0.9], [-0.4, 0.5]]),
    "singular": np.array([[0.9, 0.3], [0.6, 0.2]]),
}


def attention(A, beta=np.inf):
    return mf.Attention(Q=A, K=np.eye(2), V=np.eye(2), beta=beta)


def direct(A, beta, y, x, weights):
    """The plain sum at a finite temperature."""
    return mf.attention.plan(attention(A, beta), CIRCLE, y, x, method="direct").evaluate(weights)


def random_angles(rng, n):
    return rng.uniform(0, 2 * np.pi, n)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("n", [1, 2, 7, 400])
def test_atoms_against_the_maximum_over_all_pairs(name, n):
    rng = np.random.default_rng(n)
    A, y, x = MATRICES[name], CIRCLE.points(random_angles(rng, n)), CIRCLE.points(random_angles(rng, 300))
    weights = rng.random(n) * (rng.random(n) < 0.6)  # some atoms carry nothing and must not be seen
    weights[0] = 1.0
    score, mean, error = Argmax(attention(A), CIRCLE, y, x).evaluate(weights)
    pairs = np.where(weights > 0, x @ A.T @ y.T, -np.inf)
    assert np.abs(score - pairs.max(axis=1)).max() < 1e-14  # |Ax| <= 2 and a few roundings
    assert np.abs(mean - y[pairs.argmax(axis=1)]).max() < 1e-15
    assert (error * np.linalg.norm(x @ A.T, axis=1) < 4e-15).all()  # round-off, times the conditioning of u = Ax/|Ax|


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("carried", [[3], [0, 63], [5, 6, 7, 40], [*range(10, 60)], [*range(63)], [*range(64)]])
def test_cells_against_the_maximum_over_their_arcs(name, carried):
    """On an arc the score is largest at u = Ax/|Ax| when the arc holds u, else at one of its ends: compare with all of these."""
    rng = np.random.default_rng(0)
    A, mesh, h = MATRICES[name], CIRCLE.mesh(64), 2 * np.pi / 64
    x = CIRCLE.points(random_angles(rng, 500))
    weights = np.zeros(64)
    weights[carried] = rng.random(len(carried)) + 0.1
    score, mean, _ = Argmax(attention(A), CIRCLE, mesh, x).evaluate(weights)
    u = CIRCLE.retract(x @ A.T)
    inside = np.isin((CIRCLE.angles(u) / h).astype(int), carried)
    ends = CIRCLE.points(h * np.append(np.array(carried), np.array(carried) + 1))
    best = ends[(u @ ends.T).argmax(axis=1)]
    expected = np.where(inside[:, None], u, best)
    assert np.abs(mean - expected).max() < 1e-14
    assert np.abs(score - np.sum(x @ A.T * expected, axis=1)).max() < 1e-14


def test_full_support_gives_the_direction_of_Ax_and_the_projective_velocity():
    A, V = MATRICES["general"], np.array([[1.0, 0.2], [-0.3, 0.5]])
    mesh = CIRCLE.mesh(128)
    operator = mf.attention.plan(mf.Attention(A, np.eye(2), V, np.inf), CIRCLE, mesh)
    x = mesh.centres
    _, mean = operator.evaluate(np.geomspace(1e-300, 1, 128))  # a tiny mass is a mass
    assert np.abs(mean - CIRCLE.retract(x @ A.T)).max() < 1e-15
    exact = CIRCLE.project(x, x @ (V @ A).T) / np.linalg.norm(x @ A.T, axis=1, keepdims=True)
    assert np.abs(operator.velocity(np.ones(128)) - exact).max() < 1e-15
    assert operator.tiers == {"argmax": 128}


@pytest.mark.parametrize("turn", np.linspace(0, 6.2, 23))
def test_tied_atoms_share_by_their_weights(turn):
    """Two atoms mirrored in the direction of the query, at every orientation: round-off must not break the tie."""
    y = CIRCLE.points(turn + np.array([-0.7, 0.7, 2.0]))
    weights = np.array([0.2, 0.6, 0.2])
    score, mean, _ = Argmax(attention(np.eye(2)), CIRCLE, y, CIRCLE.points([turn])).evaluate(weights)
    assert mean[0] == pytest.approx(0.25 * y[0] + 0.75 * y[1], abs=1e-15)
    assert score[0] == pytest.approx(np.cos(0.7), abs=1e-15)
    # a difference that a double can hold does break it: 1e-14 radians
    _, mean, _ = Argmax(attention(np.eye(2)), CIRCLE, y, CIRCLE.points([turn + 1e-14])).evaluate(weights)
    assert np.array_equal(mean[0], y[1])


@pytest.mark.parametrize("turn", [0.0, 1.0, np.pi / 2, 4.0])
def test_antipodal_atoms_and_atoms_that_coincide(turn):
    y = CIRCLE.points(turn + np.array([0.0, np.pi, 0.0, 2 * np.pi, -1e-16]))
    weights = np.array([0.1, 0.4, 0.2, 0.2, 0.1])
    x = CIRCLE.points(turn + np.array([0.3, np.pi / 2, 3 * np.pi / 2, np.pi - 1e-3, np.pi + 1.0]))
    _, mean, _ = Argmax(attention(np.eye(2)), CIRCLE, y, x).evaluate(weights)
    expected = np.array([1, 0.2, 0.2, -1, -1])[:, None] * CIRCLE.points([turn])  # .6 - .4 where they tie
    assert np.abs(mean - expected).max() < 1e-15


def test_the_ends_of_two_arcs_share_by_their_densities():
    """Cells 0..3 and 9..12 of 64 are mirrored in the direction of angle 6.5 h."""
    mesh, h = CIRCLE.mesh(64), 2 * np.pi / 64
    weights = np.zeros(64)
    weights[0:4], weights[9:13] = [0.3, 0.1, 0.1, 0.05], [0.15, 0.1, 0.1, 0.1]  # the masses of the cells at the ends decide: 1 to 3
    _, mean, _ = Argmax(attention(np.eye(2)), CIRCLE, mesh, CIRCLE.points([6.5 * h])).evaluate(weights)
    assert mean[0] == pytest.approx(0.25 * CIRCLE.points(4 * h) + 0.75 * CIRCLE.points(9 * h), abs=1e-15)


def test_where_Ax_vanishes_every_token_ties():
    A, y, weights = np.diag([1.0, 0.0]), CIRCLE.points([0.1, 2.0, 4.0]), np.array([0.5, 0.25, 0.25])
    x = CIRCLE.points([np.pi / 2, 0.2])  # cos(pi / 2) is 6e-17 in floating point
    score, mean, _ = Argmax(attention(A), CIRCLE, y, x).evaluate(weights)
    assert mean[0] == pytest.approx(weights @ y, abs=1e-16)
    assert score[0] == 0
    assert np.array_equal(mean[1], y[0])
    mesh = CIRCLE.mesh(64)
    _, mean, _ = Argmax(attention(np.zeros((2, 2))), CIRCLE, mesh, x).evaluate(np.arange(64.0))
    assert mean == pytest.approx(np.tile(np.arange(64) @ mesh.centres / np.arange(64).sum(), (2, 1)), abs=1e-15)


@pytest.mark.parametrize("name", ["identity", "rotation", "general"])
def test_it_is_the_limit_of_the_sum_over_atoms(name):
    """Direct at beta = 1e6: the second best atom counts e^{-beta gap}, below 1e-17 once the gap exceeds 4e-5."""
    rng = np.random.default_rng(3)
    A, y, x = MATRICES[name], CIRCLE.points(random_angles(rng, 50)), CIRCLE.points(random_angles(rng, 2000))
    weights = rng.random(50) + 0.01
    score, mean, _ = Argmax(attention(A), CIRCLE, y, x).evaluate(weights)
    pairs = np.sort(x @ A.T @ y.T, axis=1)
    clear = pairs[:, -1] - pairs[:, -2] > 1e-4
    assert clear.mean() > 0.9
    log_z, finite = direct(A, 1e6, y, x, weights)
    assert np.abs(mean - finite)[clear].max() < 1e-15
    assert np.abs(score - log_z / 1e6).max() < 1e-5  # log w / beta


def test_it_is_the_limit_of_the_sum_over_arcs():
    """Each cell as 4000 atoms, spaced 2.5e-5 and 1.2e-5 apart, far below the widths beta^{-1/2} and 1/beta of the layers at beta = 3e3.

    Laplace: |m - u| = O(1/beta) inside an arc (density gradient 0), 1/(beta sin(angle)) at its end, and shares by density at a tie.
    """
    mesh, h = CIRCLE.mesh(64), 2 * np.pi / 64
    weights = np.zeros(64)
    weights[[2, 3, 14]] = [0.2, 0.2, 0.6]
    carried = np.flatnonzero(weights)
    sub = CIRCLE.points(((carried[:, None] + (np.arange(4000) + 0.5) / 4000) * h).ravel())
    tie = (4 + 14) / 2 * h
    targets = CIRCLE.points([2.9 * h, 8 * h, 1.0 * h, 30 * h, tie])
    _, mean, _ = Argmax(attention(np.eye(2)), CIRCLE, mesh, targets).evaluate(weights)
    errors = []
    for beta in (3e3, 6e3):
        finite = direct(np.eye(2), beta, sub, targets, np.repeat(weights[carried] / 4000, 4000))[1]
        errors.append(np.linalg.norm(mean - finite, axis=1))
    # the first target is u itself: 1/(2 beta); the others are slopes: at most 1/(beta sin(1.5 h)) = 2.3e-3 at the second beta
    assert errors[0][0] == pytest.approx(0.5 / 3e3, rel=0.05)
    assert errors[1].max() < 2.4e-3
    assert errors[1] / errors[0] == pytest.approx(np.full(5, 0.5), rel=0.1)
    assert mean[-1] == pytest.approx(0.25 * CIRCLE.points(4 * h) + 0.75 * CIRCLE.points(14 * h), abs=1e-14)


def test_subsets_of_targets_and_permutations_of_sources_change_nothing():
    rng = np.random.default_rng(8)
    y, x = CIRCLE.points(random_angles(rng, 100)), CIRCLE.points(random_angles(rng, 80))
    weights = rng.random(100)
    tier = Argmax(attention(MATRICES["general"]), CIRCLE, y, x)
    whole = tier.evaluate(weights)
    rows = np.array([3, 50, 7])
    for part, all_rows in zip(tier.evaluate(weights, rows), whole, strict=True):
        assert np.array_equal(part, all_rows[rows])
    shuffle = rng.permutation(100)
    again = Argmax(attention(MATRICES["general"]), CIRCLE, y[shuffle], x).evaluate(weights[shuffle])
    assert np.array_equal(whole[1], again[1])


def test_only_the_circle_is_served():
    from mfpde.geometry import Geometry

    with pytest.raises(mf.InputError, match="Circle"):
        Argmax(mf.Attention.identity(3, np.inf), Geometry(), np.eye(3), np.eye(3))
