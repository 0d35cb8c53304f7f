"""Every law agrees with itself: density, cell masses, samples, nodes and half-space masses describe one measure."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ive

import mfpde as mf

CIRCLE = mf.Circle()
LAWS = {
    "uniform": mf.initial.uniform(CIRCLE),
    "broad and narrow bumps": mf.initial.von_mises_mixture([0.1, 2.0], [4.0, 1e6], [3, 1]),
    "bump across the seam": mf.initial.von_mises_mixture([6.28], 1e8),
    "Poisson": mf.initial.poisson(0.3, 1.0),
    "sharp Poisson": mf.initial.poisson(1 - 1e-6, 2.0),
    "Fourier": mf.initial.fourier([0.2, 0.1j, -0.05]),
    "jumps": mf.initial.from_density(lambda x: np.where(x[:, 0] > 0.2, 3.0, 1.0), CIRCLE),
}


@pytest.fixture(params=list(LAWS))
def law(request):
    return LAWS[request.param]


def test_cell_masses_sum_to_one_and_refine_consistently(law):
    coarse, fine = law.cell_masses(CIRCLE.mesh(50)), law.cell_masses(CIRCLE.mesh(200))
    assert fine.sum() == pytest.approx(1, abs=1e-14)
    assert np.abs(fine.reshape(50, 4).sum(axis=1) - coarse).max() < 1e-14


def test_density_is_the_derivative_of_the_cumulative_function(law):
    """Against adaptive quadrature of the density, between the jumps and away from needles."""
    for a, b in ((0.5, 0.9), (2.7, 3.9), (5.0, 5.6)):
        integral = quad(lambda t: float(law.density(CIRCLE.points(np.array([t])))[0]), a, b, epsabs=1e-13, limit=200)[0]
        F = law.cumulative(np.array([a, b]))
        assert F[1] - F[0] == pytest.approx(integral, abs=1e-12)


def test_quantiles_invert_the_cumulative_function(law):
    u = (np.arange(501) + 0.5) / 501
    theta = law.cumulative.inverse(u)
    # an angle known to a few eps moves F by density * eps
    slack = 1e-14 + 2e-14 * law.density(CIRCLE.points(theta)).max()
    assert np.abs(law.cumulative(theta) - u).max() < slack


def test_nodes_have_the_mass_and_the_distribution_of_the_law(law):
    nodes = law.nodes(2001)
    assert nodes.mass == pytest.approx(1, abs=1e-14)
    order = np.argsort(nodes.angles())
    F = law.cumulative(nodes.angles()[order])
    assert np.abs(np.cumsum(nodes.weights[order]) - nodes.weights[order] / 2 - F).max() < 2e-3  # one node's mass, at jumps


def test_samples_follow_the_law_and_repeat_with_their_seed(law):
    x = law.sample(4000, np.random.default_rng(3))
    assert np.array_equal(x, law.sample(4000, np.random.default_rng(3)))
    F = np.sort(law.cumulative(CIRCLE.angles(x)))
    assert np.abs(F - (np.arange(4000) + 0.5) / 4000).max() < 0.03  # Kolmogorov: 1.95 / sqrt(n) at level 1e-3


def test_halfspace_mass_is_the_mass_of_half_the_cells(law):
    masses = law.cell_masses(CIRCLE.mesh(1000))
    for cell in (0, 130, 499, 777):  # the half circle that begins at the left edge of a cell
        start = cell * 2 * np.pi / 1000
        w = np.array([np.cos(start + np.pi / 2), np.sin(start + np.pi / 2)])
        assert law.mass_of_halfspace(w) == pytest.approx(np.roll(masses, -cell)[:500].sum(), abs=2e-11)


def test_moments_of_the_named_laws():
    moment = lambda law, k: law.nodes(400).weights @ np.exp(1j * k * law.nodes(400).angles())
    assert moment(mf.initial.poisson(0.3, 1.0), 1) == pytest.approx(0.3 * np.exp(1j), abs=1e-12)
    assert moment(mf.initial.fourier([0.2, 0.1j]), 2) == pytest.approx(0.1j, abs=1e-12)
    for kappa in (5.0, 50.0):  # spectral also where the density falls by e^{-2 kappa}
        expected = ive(1, kappa) / ive(0, kappa) * np.exp(0.7j)
        nodes = mf.initial.von_mises_mixture([0.7], kappa).nodes(400)
        assert complex(*nodes.mean) == pytest.approx(expected, abs=1e-12)


def test_atoms_are_exact_whatever_is_asked():
    law = mf.initial.atoms(CIRCLE.points([0.0, 2.0]), [0.25, 0.75])
    assert len(law.nodes(1000)) == 2
    assert law.cell_masses(CIRCLE.mesh(64)).max() == 0.75
    assert law.mass_of_halfspace(np.array([1.0, 0.0])) == 0.25
    assert law.mass_of_halfspace(np.array([0.0, 1.0])) == pytest.approx(0.75 + 0.125)  # half of the atom on the boundary
    with pytest.raises(mf.InputError, match="no density"):
        law.density(CIRCLE.points([0.0]))


@pytest.mark.parametrize(
    ("build", "fact"),
    [
        (lambda: mf.initial.fourier([0.9]), "finite and non-negative"),
        (lambda: mf.initial.from_density(lambda x: x[:, 0], CIRCLE), "finite and non-negative"),
        (lambda: mf.initial.from_density(lambda x: x, CIRCLE), "values"),
        (lambda: mf.initial.from_density(lambda x: np.full(len(x), np.nan), CIRCLE), "finite and non-negative"),
        (lambda: mf.initial.poisson(1.0), "0 <= r < 1"),
        (lambda: mf.initial.von_mises_mixture([0.0], -1.0), "kappa"),
        (lambda: mf.initial.von_mises_mixture([np.nan], 1.0), "angles"),
        (lambda: mf.initial.von_mises_mixture([0.0, 1.0], 1.0, [0.0, 0.0]), "empty"),
        (lambda: mf.initial.from_density(lambda x: np.zeros(len(x)), CIRCLE).cell_masses(CIRCLE.mesh(8)), "no finite positive mass"),
    ],
)
def test_bad_laws_are_named(build, fact):
    with pytest.raises(mf.InputError, match=fact):
        build()
