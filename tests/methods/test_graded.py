"""Graded tokens: exact weights, fine beside partings, and the mean field where equal tokens follow another law."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.errors import InputError

CIRCLE = mf.Circle()
LAW = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])


def two_basins(beta, t_end):
    """V = diag(1, .5), A = I: tokens gather at +-e1, the flow parts at +-e2."""
    return mf.Problem(mf.Attention(np.eye(2), np.eye(2), np.diag([1.0, 0.5]), beta), CIRCLE, LAW, t_end)


def test_shares_sum_to_one_and_are_fine_where_the_flow_parts():
    final = mf.solve(two_basins(5.0, 6.0), mf.Particles(n=100, placement="graded", tail=1e-5, tol=1e-6)).final
    assert final.weights.sum() == pytest.approx(1, abs=1e-12)
    light = final.weights < 1e-5
    assert 100 < light.sum() < 1000
    gaps = np.abs(np.angle(np.exp(1j * np.diff(final.angles()))))
    parted = np.flatnonzero(gaps > 1)  # what lies between two tokens a radian apart is light
    assert len(parted) > 0
    assert (np.minimum(final.weights[:-1], final.weights[1:])[parted] < 1e-5).all()


def test_graded_and_moving_cells_give_one_tail():
    """Mass beyond a quarter turn from both clusters, where equal tokens have it to the nearest token."""
    problem = two_basins(10.0, 4.0)
    tokens = mf.solve(problem, mf.Particles(n=300, placement="graded", tail=1e-6, tol=1e-7)).final
    cells = mf.solve(problem, mf.Lagrangian(cells=128, tol=1e-8)).final
    between = lambda law: law.weights @ np.exp(-20 * law.points[:, 0] ** 2)
    assert between(tokens) == pytest.approx(between(cells), rel=2e-2)  # a thirtieth of the tail to a token, squared, and the tail of the tail
    assert between(cells) < 1e-2


def test_bad_questions_are_named():
    with pytest.raises(InputError, match="graded"):
        mf.Particles(placement="grded")
    with pytest.raises(InputError, match="tail"):
        mf.Particles(placement="graded", tail=0)
    atoms = mf.Problem(mf.Attention.identity(2, 1.0), CIRCLE, mf.initial.atoms([[1, 0]], [1.0]), 1.0)
    with pytest.raises(InputError, match="density"):
        mf.Particles(placement="graded").prepare(atoms)
