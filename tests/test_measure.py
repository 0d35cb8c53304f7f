"""Measures and geometry: what they accept, what they refuse, what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf

CIRCLE = mf.Circle()


@pytest.mark.parametrize(
    ("weights", "fact"),
    [([0.5, np.nan], "finite"), ([1.5, -0.5], "non-negative"), ([0.0, 0.0], "empty"), ([0.5, 0.6], "sum to 1"), ([1.0], "One weight a point")],
)
def test_bad_weights_are_named(weights, fact):
    with pytest.raises(mf.InputError, match=fact):
        mf.Measure(CIRCLE.points([0.0, 1.0]), weights)


def test_atoms_off_the_circle_are_named():
    with pytest.raises(mf.InputError, match="Point 1 does not lie on"):
        mf.initial.atoms([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5])


def test_density_needs_a_mesh():
    with pytest.raises(mf.InputError, match="no density"):
        _ = mf.Measure(CIRCLE.points([0.0]), [1.0]).density()


def test_angles_and_points_are_inverse_and_stay_below_a_full_turn():
    theta = np.r_[np.linspace(0, 2 * np.pi, 101)[:-1], 2 * np.pi - 1e-16]
    angles = CIRCLE.angles(CIRCLE.points(theta))
    assert (angles < 2 * np.pi).all()
    assert np.abs(np.exp(1j * angles) - np.exp(1j * theta)).max() < 1e-15


def test_distance_is_accurate_for_near_and_antipodal_points():
    for gap in (1e-9, 1.0, np.pi - 1e-9, np.pi):
        assert CIRCLE.distance(CIRCLE.points(0.4), CIRCLE.points(0.4 + gap)) == pytest.approx(gap, abs=3e-16)


@pytest.mark.parametrize("cells", [4, 5, 64])
def test_divergence_of_a_flux_is_its_integral_over_the_faces(cells):
    mesh = CIRCLE.mesh(cells)
    flux = np.random.default_rng(0).normal(size=len(mesh.face_cells))
    assert abs(mesh.volumes @ mesh.divergence(flux)) < 1e-14
    h = 2 * np.pi / cells
    assert np.allclose(mesh.divergence(flux), (flux - np.roll(flux, 1)) / h)
    assert mesh.volumes.sum() == pytest.approx(2 * np.pi)


@pytest.mark.parametrize("cells", [3, -1, 2.5, "many"])
def test_a_mesh_needs_a_number_of_cells(cells):
    with pytest.raises(mf.InputError, match="cells"):
        CIRCLE.mesh(cells)
