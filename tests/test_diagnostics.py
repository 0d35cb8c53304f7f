"""Diagnostics against closed forms, and the cluster definition on the states the equation visits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

import mfpde as mf
from mfpde import diagnostics as dg

CIRCLE = mf.Circle()
TURN = 2 * np.pi


def atoms(angles, weights=None):
    theta = np.atleast_1d(np.asarray(angles, dtype=float))
    w = np.ones(len(theta)) if weights is None else np.asarray(weights, dtype=float)
    return mf.Measure(CIRCLE.points(theta), w / w.sum())


def cells(law, count=512):
    mesh = CIRCLE.mesh(count)
    return mf.Measure(mesh.centres, law.cell_masses(mesh), mesh)


def problem(attention, geometry=CIRCLE):
    return mf.Problem(attention, geometry, mf.initial.uniform(geometry), t_end=1.0)


def identity(beta):
    return problem(mf.Attention.identity(2, beta))


UNIFORM = mf.initial.uniform(CIRCLE)


# ------------------------------------------------------------------ energy


@pytest.mark.parametrize("beta", [0.0, 1.0, 20.0, 1e3, 1e4])
def test_energy_of_the_uniform_law(beta):
    """I_0(beta) e^{-beta}; the periodic trapezoidal rule with 2048 nodes is exact here, the sums are held to 1e-10."""
    assert dg.energy(cells(UNIFORM, 2048), identity(beta)) == pytest.approx(ive(0, beta), rel=2e-10)


@pytest.mark.parametrize("beta", [0.0, 1.0, 1e3, 1e6])
def test_energy_of_points(beta):
    """1 for a point; (1 + e^{beta (cos D - 1)})/2 for a pair; log(1/2) when the two do not see each other, at any beta."""
    assert dg.log_energy(atoms(0.7), identity(beta)) == pytest.approx(0, abs=1e-9)  # log Z - beta cancels 1e6 against 1e6
    pair = dg.energy(atoms([0, 2.0]), identity(beta))
    assert pair == pytest.approx((1 + np.exp(beta * (np.cos(2.0) - 1))) / 2, rel=1e-9)


def test_energy_is_largest_for_a_point_at_the_top_singular_vector():
    """For A = diag(3, 1), max <Ax, y> = 3 at e_1; e_2 scores 1 and its energy e^{-2 beta} underflows where the logarithm does not."""
    attention = mf.Attention([[3, 0], [0, 1]], np.eye(2), np.eye(2), beta=1e3)
    assert dg.energy(atoms(0.0), problem(attention)) == pytest.approx(1, rel=1e-10)
    assert dg.energy(atoms(np.pi / 2), problem(attention)) == 0
    assert dg.log_energy(atoms(np.pi / 2), problem(attention)) == pytest.approx(-2e3, rel=1e-12)


def test_energy_of_any_matrix_by_brute_force():
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(3, 2, 2))
    attention = mf.Attention(Q, K, V, beta=2.5)
    measure = atoms(rng.uniform(0, TURN, 30), rng.exponential(size=30))
    scores = measure.points @ attention.A.T @ measure.points.T
    expected = measure.weights @ np.exp(2.5 * (scores - np.linalg.norm(attention.A, 2))) @ measure.weights
    assert dg.energy(measure, problem(attention)) == pytest.approx(expected, rel=1e-9)


def test_energy_of_golden_law():
    """E of (1 + .35 cos + .2 sin 2 - .15 cos 3)/2 pi from its Fourier series: E = (1/2 beta) sum_k I_k |z_k|^2."""
    law = mf.initial.from_density(lambda x: 1 + 0.35 * x[:, 0] + 0.4 * x[:, 0] * x[:, 1] - 0.15 * (4 * x[:, 0] ** 3 - 3 * x[:, 0]), CIRCLE)
    beta, k = 1.0, np.arange(4)
    z2 = np.array([1, 0.175, 0.1, 0.075]) ** 2
    expected = np.sum(np.array([1, 2, 2, 2]) * ive(k, beta) * z2)
    measure = cells(law, 1024)
    sinc = np.sinc(k / 1024)  # cell masses as Diracs at the centres: the moments carry this factor
    assert dg.energy(measure, identity(beta)) == pytest.approx(np.sum(np.array([1, 2, 2, 2]) * ive(k, beta) * z2 * sinc**2), rel=1e-9)
    assert dg.energy(measure, identity(beta)) == pytest.approx(expected, rel=1e-5)
    assert np.abs(dg.fourier_moments(measure, k) - np.array([1, 0.175, 0.1j, -0.075]) * sinc).max() < 1e-12


@pytest.mark.parametrize("matrix", [np.eye(2), [[2.0, 0.5], [0.5, -1.0]]])
@pytest.mark.parametrize("beta", [0.5, 4.0, 30.0])
def test_dissipation_is_the_derivative_of_the_energy(matrix, beta):
    """Tokens move along v for a small step either way; central difference, so 1e-6^2 and 1e-10/1e-6 of round-off in the energy."""
    attention = mf.Attention(matrix, np.eye(2), matrix, beta)
    setting = problem(attention)
    rng = np.random.default_rng(1)
    measure = atoms(rng.uniform(0, TURN, 40), rng.exponential(size=40))
    v = mf.attention.plan(attention, CIRCLE, measure.points).velocity(measure.weights)
    step = 1e-4 / (1 + beta)
    moved = [dg.energy(mf.Measure(CIRCLE.retract(measure.points + s * v), measure.weights), setting) for s in (step, -step)]
    rate = dg.dissipation(measure, setting)
    assert rate > 0
    assert (moved[0] - moved[1]) / (2 * step) == pytest.approx(rate, rel=1e-5)


def test_dissipation_of_other_values_may_be_negative():
    """V = -A turns the flow round, so the energy falls at the same rate."""
    up, down = (mf.Attention(np.diag([2.0, 1.0]), np.eye(2), sign * np.diag([2.0, 1.0]), 3.0) for sign in (1, -1))
    measure = cells(mf.initial.von_mises_mixture([0.5, 2.0], 4.0), 128)
    rate = dg.dissipation(measure, problem(up))
    assert rate > 0
    assert dg.dissipation(measure, problem(down)) == pytest.approx(-rate, rel=1e-12)


def test_dissipation_vanishes_at_equilibria():
    for measure in (atoms(0.3), atoms([0.0, np.pi]), cells(UNIFORM, 64)):
        assert dg.dissipation(measure, identity(4.0)) == pytest.approx(0, abs=1e-15)
    assert dg.dissipation(atoms([0, 1.0]), identity(0.0)) == 0  # the relative energy is 1 for all laws


# ------------------------------------------------------------------ moments, entropy


def test_fourier_moments():
    measure = atoms([0.2, 1.0], [0.3, 0.7])
    z = dg.fourier_moments(measure, np.array([[0, 1], [-2, 5]]))
    assert z.shape == (2, 2)
    assert z[1, 0] == pytest.approx(0.3 * np.exp(-0.4j) + 0.7 * np.exp(-2j))
    assert dg.fourier_moments(measure, 1) == pytest.approx(measure.mean[0] + 1j * measure.mean[1])
    poisson = cells(mf.initial.poisson(0.5, 1.0), 256)
    k = np.arange(6)
    exact = dg.fourier_moments(poisson, k) / np.sinc(k / 256)
    assert np.abs(exact - 0.5**k * np.exp(1j * k)).max() < 1e-12  # z_k = r^k e^{i k angle}; aliases are 2^-250


def test_order_parameter_in_any_dimension():
    assert dg.order_parameter(atoms(1.0)) == pytest.approx(1, rel=1e-15)
    assert dg.order_parameter(atoms([0, np.pi / 2]), identity(1.0)) == pytest.approx(np.sqrt(0.5))
    assert dg.order_parameter(mf.Measure([[0, 0, 1.0], [0, 0, -1.0]], [0.75, 0.25])) == pytest.approx(0.5)


def test_entropy():
    """kappa I_1/I_0 - log(2 pi I_0) for the von Mises law: second order in h; log N - log 2 pi for one cell of N."""
    expected = 3 * ive(1, 3) / ive(0, 3) - np.log(TURN * ive(0, 3)) - 3
    errors = [dg.entropy(cells(mf.initial.von_mises_mixture([1.0], 3.0), n)) - expected for n in (128, 256)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)
    assert abs(errors[1]) < 1e-4
    mesh = CIRCLE.mesh(16)
    one = mf.Measure(mesh.centres, np.eye(16)[3], mesh)
    assert dg.entropy(one) == pytest.approx(np.log(16 / TURN))


# ------------------------------------------------------------------ clusters


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("offset", [0.0, 0.3, 5.9])
@pytest.mark.parametrize("width", [1e-12, 0.02, 0.1])
def test_clusters_of_a_cloud(number, offset, width):
    """Centres, masses and widths of Gaussian clusters with masses 1 : 2 : ...; one of them lies across the seam for offset 0."""
    centres = (offset + TURN * np.arange(number) / number) % TURN
    masses = np.arange(1, number + 1) / np.arange(1, number + 1).sum()
    bell = np.sqrt(2) * np.array([-1.0, 0, 0, 1]) * width  # mean 0, standard deviation `width`
    cloud = atoms((centres[:, None] + bell).ravel() % TURN, np.repeat(masses, 4))
    found = dg.clusters(cloud)
    order = np.argsort(centres)
    assert len(found) == number == dg.cluster_count(cloud, identity(1.0))
    around = [CIRCLE.distance(CIRCLE.points(c.centre), CIRCLE.points(t)) for c, t in zip(sorted(found), centres[order], strict=True)] if offset else [0]
    assert max(around) < 1e-13
    for cluster in found:
        nearest = int(np.argmin(CIRCLE.distance(CIRCLE.points(cluster.centre), CIRCLE.points(centres))))
        assert cluster.mass == pytest.approx(masses[nearest], rel=1e-12)
        assert cluster.width == pytest.approx(width, rel=1e-9, abs=2e-15)  # angles are known to 1e-15
    assert sum(c.mass for c in found) == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kappa", [20.0, 300.0, 1e4])
@pytest.mark.parametrize("count", [256, 1024, 4096])
def test_clusters_of_a_density(number, kappa, count):
    """Each von Mises bump is found with its mass, centre and standard deviation, through the seam too."""
    centres = 0.01 + TURN * np.arange(number) / number
    measure = cells(mf.initial.von_mises_mixture(centres, kappa), count)
    found = dg.clusters(measure)
    assert len(found) == number
    h = TURN / count
    theta = np.linspace(-np.pi, np.pi, 20_001)
    density = np.exp(kappa * (np.cos(theta) - 1))
    deviation = np.sqrt(density @ theta**2 / density.sum())
    tail = 2 * np.exp(kappa * (np.cos(np.pi / number) - 1)) if number > 1 else 0.0  # density in the valley, relative to the peak
    lost = 1e-12 + (h + 0.012) * np.sqrt(kappa / TURN) / number * tail  # the valley is found to a cell of the mesh and of the smoothing grid
    binned = np.exp(-2 * (np.pi * deviation / h) ** 2)  # first alias of a bump as narrow as a cell
    for cluster, centre in zip(found, centres, strict=True):
        assert cluster.mass == pytest.approx(1 / number, abs=lost)
        assert cluster.centre == pytest.approx(centre, abs=np.pi * lost + h * binned)
        assert cluster.width**2 == pytest.approx(deviation**2 + h**2 / 12, rel=1e-6 + 2 * tail + 30 * binned)  # binning adds h^2/12


def test_no_cluster_without_relief():
    """Uniform, nearly uniform, and a bump that does not double the density: nothing stands out. A bump that does is one cluster of all the mass."""
    assert dg.clusters(cells(UNIFORM)) == []
    assert dg.clusters(cells(UNIFORM, 8)) == []
    assert dg.clusters(atoms(TURN * np.arange(2000) / 2000)) == []
    assert dg.clusters(cells(mf.initial.fourier([0.0, 1e-12]))) == []
    assert dg.clusters(cells(mf.initial.von_mises_mixture([1.0], 0.3))) == []  # e^{2 kappa} = 1.8
    (one,) = dg.clusters(cells(mf.initial.von_mises_mixture([1.0], 0.4)))  # 2.2
    assert one.mass == pytest.approx(1)
    assert one.centre == pytest.approx(1.0, abs=0.02)  # cut at the valley, which the grid places to about 0.01


def test_two_clusters_become_one_at_the_resolution():
    for distance, number in ((0.10, 1), (0.15, 1), (0.20, 2), (0.30, 2)):
        assert dg.cluster_count(atoms([1.0, 1.0 + distance])) == number
    assert len(dg.clusters(atoms([1.0, 1.1]), resolution=0.02)) == 2
    assert len(dg.clusters(atoms([1.0, 2.0]), resolution=0.5)) == 1


@pytest.mark.parametrize("turn", [0.0, 0.3, 2.0, 3.5, 5.0, 5.4])
def test_the_flattest_peak_goes_first(turn):
    """Bumps of 1 and 0.9 with a shallow valley between them, and one far away: two clusters, not three, wherever the seam lies."""
    bumps = cells(mf.initial.von_mises_mixture(np.array([1.0, 1.5, 4.0]) + turn, 30.0, [1.0, 0.9, 1.0]))
    assert sorted(round(c.mass, 3) for c in dg.clusters(bumps)) == [0.345, 0.655]
    assert len(dg.clusters(bumps, contrast=1.05)) == 3
    for side in (-0.75, 0.75):  # a knoll of 5 % on either flank of a mountain, 1.25 times as high as the dip between them
        flank = cells(mf.initial.von_mises_mixture(np.array([1.0, 1.0 + side, 4.0]) + turn, 30.0, [1.0, 0.05, 1.0]))
        assert dg.cluster_count(flank) == 2
        assert len(dg.clusters(flank, contrast=1.05)) == 3


def test_dust_is_left_out():
    """One token of 2000 between two clusters neither counts nor widens its neighbour."""
    theta = np.concatenate([np.full(999, 1.0), np.full(1000, 4.0), [2.5]])
    found = dg.clusters(atoms(theta))
    assert [c.mass for c in found] == pytest.approx([999 / 2000, 1000 / 2000])
    assert max(c.width for c in found) < 1e-14
    assert len(dg.clusters(atoms(theta), min_mass=0)) == 3


@given(st.floats(0, TURN), st.sampled_from([64, 100, 512]))
@settings(deadline=None, max_examples=30)
def test_clusters_turn_with_the_law(angle, count):
    """Rotation by any angle moves the centres with it and leaves masses and widths alone, atoms to round-off, cells to the valley's cell."""
    theta = np.array([0.1, 0.15, 2.0, 2.02, 4.0])
    before, after = dg.clusters(atoms(theta)), dg.clusters(atoms((theta + angle) % TURN))
    assert sorted(c.mass for c in after) == pytest.approx(sorted(c.mass for c in before))
    assert sorted(c.width for c in after) == pytest.approx(sorted(c.width for c in before), abs=1e-14)
    expected = sorted((c.centre + angle) % TURN for c in before)
    gaps = [float(np.min(CIRCLE.distance(CIRCLE.points(e), CIRCLE.points([c.centre for c in after])))) for e in expected]
    assert max(gaps) < 1e-13
    assert dg.cluster_count(cells(mf.initial.von_mises_mixture([angle, angle + 2.0], 40.0), count)) == 2


def test_a_density_and_its_particles_have_the_same_clusters():
    law = mf.initial.von_mises_mixture([0.0, 1.5, 3.0], 50.0, [0.5, 0.3, 0.2])
    density, cloud = dg.clusters(cells(law)), dg.clusters(atoms(CIRCLE.angles(law.nodes(2000).points), law.nodes(2000).weights))
    assert len(density) == len(cloud) == 3
    for one, other in zip(density, cloud, strict=True):
        assert one.mass == pytest.approx(other.mass, abs=1e-3)  # one node of 2000
        assert one.width == pytest.approx(other.width, rel=2e-2)


# ------------------------------------------------------------------ distances to subspaces


def test_distance_to_a_subspace():
    """|sin| of the angle; tiny angles keep their digits; any basis of the space will do; the whole space is at distance 0."""
    assert dg.distance_to_subspace(atoms(0.3), [1, 0]) == pytest.approx(np.sin(0.3))
    assert dg.distance_to_subspace(mf.Measure([[1.0, 1e-12]], [1.0]), [[5], [0]]) == pytest.approx(1e-12, rel=1e-12)
    assert dg.distance_to_subspace(cells(UNIFORM), [[1], [1]]) == pytest.approx(np.sqrt(0.5))
    assert dg.distance_to_subspace(atoms(0.3), np.eye(2)) == 0
    x = np.array([[1.0, 2, 2]]) / 3
    skew = np.array([[1.0, 1], [1, 1.001], [0, 0]])
    assert dg.distance_to_subspace(mf.Measure(x, [1.0]), skew) == pytest.approx(2 / 3, rel=1e-12)


def test_distances_to_the_spaces_of_the_limits():
    """V = [[1, .4], [0, .5]], A = I: the dominant eigenvector e_1 of both. With A = diag(1, 4), VA = [[1, 1.6], [0, 2]]: (1.6, 1)."""
    V = [[1.0, 0.4], [0.0, 0.5]]
    token = atoms(0.4)
    same = problem(mf.Attention(np.eye(2), np.eye(2), V, 10.0))
    assert dg.distance_to_dominant_space(token, same) == pytest.approx(np.sin(0.4))
    other = problem(mf.Attention(np.diag([1.0, 4.0]), np.eye(2), V, 10.0))
    assert dg.distance_to_dominant_space(token, other) == pytest.approx(abs(np.sin(np.arctan2(1, 1.6) - 0.4)))
    assert dg.distance_to_value_space(token, other) == pytest.approx(np.sin(0.4))
    assert dg.distance_to_dominant_space(token, identity(np.inf)) == 0


# ------------------------------------------------------------------ as observers, and bad input


def test_every_diagnostic_observes_a_run():
    setting = mf.Problem(mf.Attention.identity(2, beta=4.0), CIRCLE, mf.initial.von_mises_mixture([0.0, 2.0], 4.0), t_end=0.2)
    observers = [dg.energy, dg.log_energy, dg.dissipation, dg.order_parameter, dg.entropy, dg.cluster_count,
                 dg.distance_to_dominant_space, dg.distance_to_value_space]  # fmt: skip
    run = mf.solve(setting, mf.FiniteVolume(cells=128), save_at=[0, 0.1, 0.2], observe=observers)
    assert all(run.observed[f.__name__].shape == (3,) for f in observers)
    energy, rate = run.observed["energy"], run.observed["dissipation"]
    assert (np.diff(energy) > 0).all()
    assert energy[2] - energy[0] == pytest.approx(0.1 * (rate[0] + 4 * rate[1] + rate[2]) / 3, rel=1e-2)  # Simpson; the scheme's error in space


def test_bad_input_is_named():
    cloud, sphere = atoms([0.0, 1.0]), mf.Measure([[0, 0, 1.0]], [1.0])
    with pytest.raises(mf.InputError, match="beta = inf"):
        dg.energy(cloud, identity(np.inf))
    with pytest.raises(mf.InputError, match="symmetric"):
        dg.dissipation(cloud, problem(mf.Attention([[1, 1], [0, 1]], np.eye(2), np.eye(2), 1.0)))
    with pytest.raises(mf.InputError, match="no density"):
        dg.entropy(cloud)
    for f in (dg.clusters, lambda m: dg.fourier_moments(m, 1)):
        with pytest.raises(mf.InputError, match="circle"):
            f(sphere)
    for k in (0.5, 1j, "1", [1, np.nan]):
        with pytest.raises(mf.InputError, match="whole"):
            dg.fourier_moments(cloud, k)
    for bad in ({"resolution": 0}, {"resolution": 1.0}, {"resolution": np.nan}, {"contrast": 0.5}, {"min_mass": -1}, {"contrast": np.nan}):
        with pytest.raises(mf.InputError, match=next(iter(bad)).split("_")[-1]):
            dg.clusters(cloud, **bad)
    for basis in ([1, 0, 0], np.zeros((2, 0)), np.ones((2, 3)), [np.nan, 1], [[1, 2], [1, 2]], [0, 0]):
        with pytest.raises(mf.InputError, match=r"basis"):
            dg.distance_to_subspace(cloud, basis)
