"""Laws on the sphere: masses, half spaces, samples and nodes against closed forms, mpmath and each other."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import mfpde as mf
from mfpde.initial.fisher import fisher_halfspace
from mfpde.initial.quadrature import cell_triangles, hemisphere, integral, quarters, settle, whole_sphere

SPHERE = mf.Sphere()
AXIS = np.array([0.48, -0.6, 0.64])
SHARPNESS = [0.0, 1e-6, 0.3, 5.0, 80.0, 3e3, 1e6, 1e10]  # from uniform to a width of 1e-5, a thousandth of a cell


def mean_length(kappa):
    """|int x| of a Fisher bump: coth kappa - 1/kappa."""
    return kappa / 3 if kappa < 1e-4 else 1 / np.tanh(kappa) - 1 / kappa


def test_triangles_tile_the_sphere():
    one = lambda x: np.ones(len(x))
    assert settle(one, whole_sphere(2)).values.sum() == pytest.approx(4 * np.pi, rel=3e-12)  # the promise of the quadrature
    assert settle(one, hemisphere(AXIS, 3)).values.sum() == pytest.approx(2 * np.pi, rel=3e-12)  # the promise of the quadrature
    mesh = SPHERE.mesh(642)
    cell, corners = cell_triangles(mesh)
    leaves = settle(one, corners)
    np.testing.assert_allclose(np.bincount(cell[leaves.owner], leaves.values, len(mesh)), mesh.volumes, rtol=1e-11)


def test_the_rule_is_of_degree_eight():
    f = lambda x: np.exp(4 * x @ AXIS)
    exact = 4 * np.pi * np.sinh(4) / 4
    errors = [abs(integral(f, whole_sphere(k)).sum() - exact) for k in (0, 1, 2)]
    assert np.log2(errors[1] / errors[2]) > 8.5


@pytest.mark.parametrize("kappa", SHARPNESS)
@pytest.mark.parametrize("centre", [AXIS, [0.0, 0.0, 1.0], [0.0, 0.5257311121191336, 0.8506508083520399]], ids=["cell", "midpoint", "pentagon"])
def test_cell_masses_of_a_bump(kappa, centre):
    """They sum to one, and the moment of the cells (each exact to the size of a cell) is that of the bump; the whole cap is in the right cells."""
    mesh = SPHERE.mesh(642)
    law = mf.initial.fisher_mixture([centre], kappa)
    masses = law.cell_masses(mesh)
    assert masses.min() >= 0
    assert masses.sum() == pytest.approx(1, abs=1e-14)
    if kappa > 1e5:
        assert masses[np.argmax(mesh.centres @ centre)] > 0.999 or np.sort(masses)[-3:].sum() > 0.999  # on a face or corner it is shared


@pytest.mark.parametrize("kappa", [1e6, 1e10])
@pytest.mark.parametrize("turn", [0.0, 1e-15, -1e-13, 1e-10])
def test_a_bump_on_a_face_is_shared(kappa, turn):
    """Its centre is on a face, or off it by less than round-off: the two cells are mirror images. The rest is as the width has it."""
    mesh = SPHERE.mesh(642)
    face = 1234
    centre = np.cos(turn) * mesh.face_centres[face] + np.sin(turn) * mesh.face_normals[face]
    masses = mf.initial.fisher_mixture([centre], kappa).cell_masses(mesh)
    a, b = masses[mesh.face_cells[face]]
    assert a == pytest.approx(b, rel=2 * abs(turn) * np.sqrt(kappa) + 1e-12)
    assert masses.sum() == pytest.approx(1, abs=1e-14)
    if kappa > 1e9:
        assert a + b == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kappa", [0.3, 5.0, 80.0, 3e3])
def test_cell_masses_against_a_finer_mesh_and_an_even_finer_rule(kappa):
    """One cell of the mesh, integrated without adaptivity on 4^6 triangles."""
    mesh = SPHERE.mesh(162)
    law = mf.initial.fisher_mixture([AXIS, -AXIS], kappa, [2, 1])
    masses = law.cell_masses(mesh)
    cell, corners = cell_triangles(mesh)
    for i in (int(np.argmax(masses)), int(np.argsort(masses)[-9])):
        fine = corners[cell == i]
        for _ in range(6):
            fine = quarters(fine).reshape(-1, 3, 3)
        assert masses[i] == pytest.approx(integral(law.density, fine).sum(), rel=1e-11)


@pytest.mark.parametrize("kappa", SHARPNESS)
@pytest.mark.parametrize("cosine", [-1.0, -0.9, -0.3, -1e-3, -1e-9, 0.0, 1e-5, 0.5, 1.0])
def test_mass_of_a_half_space(kappa, cosine):
    """Against mpmath: int_0^1 of the density of <w, x>, kappa/(2 sinh kappa) e^{kappa c z} I_0(kappa s sqrt(1 - z^2))."""
    if kappa > 1e4 and not abs(cosine) * np.sqrt(kappa) < 6:  # all on one side
        assert fisher_halfspace(cosine, kappa) == pytest.approx(float(cosine > 0), abs=1e-8)
        return
    mpmath.mp.dps = 25
    k, c = mpmath.mpf(kappa), -abs(mpmath.mpf(cosine))
    if kappa == 0:
        far = mpmath.mpf(0.5)
    else:
        s, centre = mpmath.sqrt(1 - c * c), mpmath.asin(c)

        def f(psi):
            return mpmath.cos(psi) * mpmath.besseli(0, k * s * mpmath.cos(psi)) * mpmath.exp(k * c * mpmath.sin(psi) - k) * k / (1 - mpmath.exp(-2 * k))

        scale = min(1 / (k * abs(mpmath.sin(centre)) + mpmath.sqrt(k)), mpmath.mpf(0.1))
        far = mpmath.quad(f, [0, scale, 3 * scale, 8 * scale, min(20 * scale, 1), mpmath.pi / 2])
    expected = far if cosine <= 0 else 1 - far
    assert fisher_halfspace(cosine, kappa) == pytest.approx(float(expected), rel=1e-12)


def test_half_spaces_of_mixtures_and_densities_agree():
    law = mf.initial.fisher_mixture([AXIS, [1, 0, 0]], [7.0, 2.0], [0.3, 0.7])
    same = mf.initial.from_density(lambda x: 5 * law.density(x), SPHERE)
    assert same.total == pytest.approx(5, rel=1e-11)
    w = np.array([0.3, 1.0, -0.2])
    assert same.mass_of_halfspace(w) == pytest.approx(law.mass_of_halfspace(w), rel=1e-10)
    assert law.mass_of_halfspace(w) + law.mass_of_halfspace(-w) == pytest.approx(1, abs=1e-14)
    mesh = SPHERE.mesh(642)
    np.testing.assert_allclose(same.cell_masses(mesh), law.cell_masses(mesh), rtol=1e-10)


def test_a_density_with_a_jump():
    """The half sphere <e, x> > 0: the cells' moment is that of the half sphere, e/2, moved by the flatness of cells, and half spaces are exact."""
    law = mf.initial.from_density(lambda x: (x @ AXIS > 0).astype(float), SPHERE)
    assert law.total == pytest.approx(2 * np.pi, rel=1e-5)
    assert law.mass_of_halfspace(AXIS) == pytest.approx(1, abs=1e-12)
    mesh = SPHERE.mesh(642)
    masses = law.cell_masses(mesh)
    inside = mesh.centres @ AXIS > 0.1
    np.testing.assert_allclose(masses[inside], mesh.volumes[inside] / (2 * np.pi), rtol=1e-5)
    assert (law.sample(1000, np.random.default_rng(1)) @ AXIS > 0).all()


@pytest.mark.parametrize("kappa", [0.0, 1e-6, 2.0, 50.0, 1e6])
def test_samples_have_the_moments_of_the_law(kappa):
    n = 20_000
    law = mf.initial.fisher_mixture([AXIS], kappa)
    x = law.sample(n, np.random.default_rng(3))
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() < 1e-14
    np.testing.assert_allclose(x.mean(axis=0), mean_length(kappa) * AXIS if kappa else 0, atol=4 / np.sqrt(n) * min(1, 2 / np.sqrt(kappa + 1)))
    u = x @ AXIS
    second = 1 / 3 if kappa < 1e-3 else 1 - 2 * mean_length(kappa) / kappa
    assert np.mean(u**2) == pytest.approx(second, abs=4 / np.sqrt(n) * min(0.3, 2 / (kappa + 1)))


def test_samples_of_a_density():
    """Rejection against the exact sampler: mean and covariance within four standard errors."""
    law = mf.initial.fisher_mixture([AXIS, [1, 0, 0]], [7.0, 2.0], [0.3, 0.7])
    same = mf.initial.from_density(law.density, SPHERE)
    n = 20_000
    a, b = law.sample(n, np.random.default_rng(1)), same.sample(n, np.random.default_rng(2))
    np.testing.assert_allclose(a.mean(axis=0), b.mean(axis=0), atol=4 * np.sqrt(2 / 3 / n))
    np.testing.assert_allclose(a.T @ a / n, b.T @ b / n, atol=4 * np.sqrt(2 / 9 / n))


@pytest.mark.parametrize("kappa", SHARPNESS)
def test_nodes_integrate_smooth_functions(kappa):
    """Exponential moments: `int e^{<b, x>}` of a bump is sinh|r| / |r| / (sinh kappa / kappa) with r = kappa e + b."""
    law = mf.initial.fisher_mixture([AXIS], kappa)
    nodes = law.nodes(2000)
    assert len(nodes) <= 2000
    assert nodes.weights.min() >= 0
    b = np.array([1.5, -0.4, 2.0])
    R = np.linalg.norm(kappa * AXIS + b)
    log_sinhc = lambda z: z + np.log(-np.expm1(-2 * z) / (2 * z)) if z > 0 else 0.0
    rise = R - kappa if kappa < 1e4 else (2 * kappa * (AXIS @ b) + b @ b) / (R + kappa)
    exact = np.exp(rise + (log_sinhc(R) - R) - (log_sinhc(kappa) - kappa))
    assert nodes.weights @ np.exp(nodes.points @ b) == pytest.approx(exact, rel=1e-10 + 1e-16 * kappa)


def test_nodes_of_a_density_converge_spectrally():
    law = mf.initial.from_density(lambda x: np.exp(2 * x[:, 0] + x[:, 2]), SPHERE)
    z = np.sqrt(5)
    np.testing.assert_allclose(law.nodes(1000).mean, (1 / np.tanh(z) - 1 / z) * np.array([2, 0, 1]) / z, atol=1e-13)


def test_uniform():
    law = mf.initial.uniform(SPHERE)
    mesh = SPHERE.mesh(642)
    assert repr(law) == "uniform"
    np.testing.assert_allclose(law.cell_masses(mesh), mesh.volumes / (4 * np.pi), rtol=1e-12)
    np.testing.assert_allclose(law.density(mesh.centres), 1 / (4 * np.pi), rtol=1e-15)
    assert law.mass_of_halfspace([0, 1, 0]) == 0.5


def test_bad_input_is_refused():
    with pytest.raises(mf.InputError, match="does not lie on Sphere"):
        mf.initial.fisher_mixture([[0, 0, 2]], 1.0)
    with pytest.raises(mf.InputError, match="kappa must be finite"):
        mf.initial.fisher_mixture([[0, 0, 1]], -1.0)
    with pytest.raises(mf.InputError, match="One kappa for all bumps"):
        mf.initial.fisher_mixture([[0, 0, 1]], [1.0, 2.0, 3.0])
    with pytest.raises(mf.InputError, match="Points of Sphere"):
        mf.initial.fisher_mixture([[0, 1]], 1.0)
    with pytest.raises(mf.InputError, match="not finite and non-negative"):
        mf.initial.from_density(lambda x: x[:, 0], SPHERE).cell_masses(SPHERE.mesh(42))
    with pytest.raises(mf.InputError, match="no positive mass"):
        mf.initial.from_density(lambda x: 0 * x[:, 0], SPHERE).density(SPHERE.mesh(42).centres)
    with pytest.raises(mf.InputError, match="returned shape"):
        mf.initial.from_density(lambda x: x, SPHERE).density(SPHERE.mesh(42).centres)
    with pytest.raises(mf.InputError, match="kappa is a number"):
        mf.initial.fisher_mixture([[0, 0, 1]], "sharp")
    with pytest.raises(mf.InputError, match="at least one node"):
        mf.initial.uniform(SPHERE).nodes(0)
    for name, keywords in (("sphere_growth", {"degree": 0}), ("sphere_pair", {"distance": 4.0}), ("sphere_mobius", {"slope": 1.5})):
        with pytest.raises(mf.InputError, match=next(iter(keywords))):
            mf.cases.build(name, **keywords)
