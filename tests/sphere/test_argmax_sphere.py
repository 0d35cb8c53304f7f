"""Attention at zero temperature on the sphere: the maximiser of the score over the support, by brute force."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf

SPHERE = mf.Sphere()
A = np.array([[1.1, 0.3, 0.0], [-0.2, 0.9, 0.1], [0.0, 0.2, 0.7]])


def head(Q=A):
    return mf.Attention(Q, np.eye(3), np.eye(3), np.inf)


def test_full_support_attends_to_the_maximiser_itself():
    mesh = SPHERE.mesh(642)
    operator = mf.attention.plan(head(), SPHERE, mesh)
    score, mean = operator.evaluate(mf.initial.uniform(SPHERE).cell_masses(mesh))
    u = mesh.centres @ A.T
    np.testing.assert_allclose(mean, u / np.linalg.norm(u, axis=1, keepdims=True), atol=1e-15)
    np.testing.assert_allclose(score, np.linalg.norm(u, axis=1), rtol=1e-15)


def test_a_half_sphere_is_left_for_its_edge():
    """Brute force: the largest score over a million points that lie in supported cells."""
    mesh = SPHERE.mesh(162)
    weights = np.where(mesh.centres[:, 2] > 0.2, mesh.volumes, 0.0)
    score, mean = mf.attention.plan(head(), SPHERE, mesh).evaluate(weights)
    from scipy.spatial import cKDTree

    x = mf.initial.uniform(SPHERE).nodes(400_000).points
    x = x[weights[cKDTree(mesh.centres).query(x)[1]] > 0]
    for i in range(0, 162, 5):
        scores = x @ (A @ mesh.centres[i])
        assert score[i] >= scores.max() - 1e-12  # no point does better
        assert score[i] <= scores.max() + 1e-2  # nodes are 0.005 apart
        assert mean[i] @ A @ mesh.centres[i] == pytest.approx(score[i], abs=1e-12)


def test_atoms_and_ties():
    points = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0]])
    operator = mf.attention.plan(head(np.eye(3)), SPHERE, points, np.array([[0.6, 0.0, 0.8], [0.0, 0.0, 1.0], [0.6, 0.64, 0.48]]))
    score, mean = operator.evaluate(np.array([0.25, 0.5, 0.25]))
    np.testing.assert_allclose(mean, [[1, 0, 0], [-0.25, 0.25, 0], [0, 1, 0]], atol=1e-15)
    np.testing.assert_allclose(score, [0.6, 0, 0.64], atol=1e-15)


def test_atoms_without_mass_do_not_count():
    points = mf.initial.uniform(SPHERE).sample(500, np.random.default_rng(0))
    weights = np.where(np.arange(500) % 3 == 0, 1.0, 0.0)
    _, mean = mf.attention.plan(head(), SPHERE, points).evaluate(weights)
    kept = points[::3]
    assert np.array_equal(mean, kept[np.argmax((points @ A.T) @ kept.T, axis=1)])


def test_a_singular_score_ties_with_everything():
    """Ax = 0: the mean of the measure."""
    mesh = SPHERE.mesh(42)
    weights = mf.initial.fisher_mixture([[1, 0, 0]], 2.0).cell_masses(mesh)
    _, mean = mf.attention.plan(head(np.diag([1.0, 1.0, 0.0])), SPHERE, mesh, np.array([[0.0, 0.0, 1.0]])).evaluate(weights)
    np.testing.assert_allclose(mean[0], weights @ mesh.centres, atol=1e-15)
