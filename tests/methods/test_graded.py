"""Graded tokens: exact weights, fine beside partings, and the mean field where equal tokens follow another law."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.errors import InputError
from mfpde.methods.graded import GRADE, graded_nodes

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


def test_tokens_are_graded_towards_partings():
    """A token has at most a fifth of the mass between it and the nearest parting, as far as `tail`, and a parting is between tokens of less than `tail`."""
    tail = 1e-7
    levels = [0.3, 0.3 + 2e-4, 0.81]  # where a flow would part

    def gaps(start):
        ends = np.cumsum(start.weights)
        centres = ends - 0.5 * start.weights
        between = [(centres < level) & (np.roll(centres, -1) >= level) for level in levels]
        return np.where(np.any(between, axis=0), 1.0, 0.0)

    shares = graded_nodes(LAW, 50, tail, gaps).weights
    edges = np.concatenate([[0.0], np.cumsum(shares)])
    distance = np.min([np.minimum(np.abs(edges[:-1] - level), np.abs(edges[1:] - level)) for level in (levels[0], levels[2])], axis=0)
    assert (shares <= 2.5 * GRADE * distance + 2 * tail).all()
    assert len(shares) < 50 + 3 * 2 * 30 * np.log(1 / tail)


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
