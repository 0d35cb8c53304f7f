"""The solver commutes with what the equation commutes with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mfpde as mf
from mfpde.cases import rotation

CIRCLE = mf.Circle()
CELLS = 96
GENERAL = np.array([[1.1, 0.4], [-0.3, 0.8]])
VALUE = np.array([[0.9, -0.5], [0.3, 0.6]])
FLIP = np.diag([1.0, -1.0])


def masses_after(attention: mf.Attention, masses: np.ndarray, t_end: float = 1.0, order: int = 2) -> np.ndarray:
    """Run from given cell masses."""
    problem = mf.Problem(attention, CIRCLE, GivenMasses(masses), t_end)
    return mf.solve(problem, mf.FiniteVolume(cells=len(masses), order=order, tol=1e-12)).final.weights


class GivenMasses(mf.initial.InitialLaw):
    """A law that is known by its cell masses alone."""

    def __init__(self, masses):
        self.geometry, self.masses, self.name = CIRCLE, masses, "given masses"

    def cell_masses(self, mesh):
        return self.masses


def bumps(angles, sharpness) -> np.ndarray:
    return mf.initial.von_mises_mixture(angles, sharpness).cell_masses(CIRCLE.mesh(CELLS))


states = st.lists(st.tuples(st.floats(0, 2 * np.pi), st.floats(0, 1e4)), min_size=1, max_size=3).map(lambda pairs: bumps(*zip(*pairs, strict=True)))
SLOW = settings(max_examples=12, deadline=None)


@SLOW
@given(states, st.integers(1, CELLS - 1), st.sampled_from([1, 2]), st.floats(0, 300))
def test_shift_by_whole_cells(masses, shift, order, beta):
    """Turning the data and both matrices by k cells turns the solution; velocities are non-zero at the seam."""
    R = rotation(2 * np.pi * shift / CELLS)
    turned = mf.Attention(R @ GENERAL @ R.T, np.eye(2), R @ VALUE @ R.T, beta)
    plain = masses_after(mf.Attention(GENERAL, np.eye(2), VALUE, beta), masses, order=order)
    # the turned matrices carry an error of eps into scores of size beta, and growth at most e^{t}
    assert np.abs(masses_after(turned, np.roll(masses, shift), order=order) - np.roll(plain, shift)).max() < 1e-10


@SLOW
@given(states, st.sampled_from([1, 2]), st.floats(0, 300))
def test_reflection(masses, order, beta):
    flipped = mf.Attention(FLIP @ GENERAL @ FLIP, np.eye(2), FLIP @ VALUE @ FLIP, beta)
    plain = masses_after(mf.Attention(GENERAL, np.eye(2), VALUE, beta), masses, order=order)
    assert np.abs(masses_after(flipped, masses[::-1], order=order) - plain[::-1]).max() < 1e-10


@SLOW
@given(states, st.floats(0.1, 10), st.floats(0, 100))
def test_value_matrix_sets_the_clock(masses, c, beta):
    """V -> cV is t -> ct."""
    plain = masses_after(mf.Attention(GENERAL, np.eye(2), VALUE, beta), masses)
    assert np.abs(masses_after(mf.Attention(GENERAL, np.eye(2), c * VALUE, beta), masses, t_end=1 / c) - plain).max() < 1e-9


@SLOW
@given(states, st.floats(0.1, 10), st.floats(0, 100))
def test_scale_of_the_score_is_a_temperature(masses, c, beta):
    """A -> cA with beta -> beta / c changes nothing."""
    plain = masses_after(mf.Attention(GENERAL, np.eye(2), VALUE, beta), masses)
    assert np.abs(masses_after(mf.Attention(c * GENERAL, np.eye(2), VALUE, beta / c), masses) - plain).max() < 1e-9


@pytest.mark.parametrize("folds", [2, 3, 4])
def test_symmetric_data_stay_symmetric(folds):
    masses = bumps(2 * np.pi * np.arange(folds) / folds + 0.3, 30.0)
    after = masses_after(mf.Attention.identity(2, 10.0), masses, t_end=3.0)
    # round-off grows at a rate of at most 2/e
    assert np.abs(after - np.roll(after, CELLS // folds)).max() < 1e-13


def test_a_density_without_first_moment_is_stationary_at_infinite_temperature():
    masses = mf.initial.fourier([0.0, 0.2, 0.1]).cell_masses(CIRCLE.mesh(CELLS))
    assert np.abs(masses_after(mf.Attention.identity(2, 0.0), masses, t_end=5.0) - masses).max() < 1e-13
