"""W_1 and W_2 on the sphere against closed forms, the linear program, the axisymmetric formula and the axioms of a distance."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde.transport.sphere import _linear_program, _to_two_atoms, axial_distance, coarsened, distance_with_error

SPHERE = mf.Sphere()
AXIS = np.array([0.48, -0.6, 0.64])
both = pytest.mark.parametrize("p", [1, 2])


def masses(law, cells):
    mesh = SPHERE.mesh(cells)
    return mf.Measure(mesh.centres, law.cell_masses(mesh), mesh)


def bump(kappa, centre=AXIS):
    return mf.initial.fisher_mixture([centre], kappa)


def random_atoms(n, seed):
    rng = np.random.default_rng(seed)
    w = rng.random(n) ** 3
    return mf.Measure(mf.initial.uniform(SPHERE).sample(n, rng), w / w.sum())


@both
def test_uniform_to_a_point(p):
    """W_1 = pi/2 exactly by symmetry, W_2^2 = (pi^2 - 4)/2 but for the width of the cells."""
    exact = [np.pi / 2, np.sqrt((np.pi**2 - 4) / 2)][p - 1]
    point = mf.Measure([AXIS], [1.0])
    assert mf.wasserstein(masses(mf.initial.uniform(SPHERE), 2562), point, SPHERE, p=p) == pytest.approx(exact, rel=2e-4)


@both
@pytest.mark.parametrize("share", [0.5, 0.3, 1e-3, 1 - 1e-3])
def test_two_atoms_by_sorting_are_the_linear_program(p, share):
    law = masses(bump(3.0, [0, 0, 1]), 162)
    pair = mf.Measure([AXIS, [0.0, 0.6, -0.8]], [share, 1 - share])
    assert _to_two_atoms(law, pair, p) == pytest.approx(_linear_program(law, pair, p), rel=1e-12)


@both
def test_antipodes_and_tiny_distances(p):
    a = mf.Measure([AXIS], [1.0])
    assert mf.wasserstein(a, mf.Measure([-AXIS], [1.0]), SPHERE, p=p) == pytest.approx(np.pi, rel=1e-15)
    tangent = np.cross(AXIS, [1.0, 0, 0])
    for small in (1e-3, 1e-7, 1e-12):
        near = mf.Measure([SPHERE.retract(AXIS + small * tangent / np.linalg.norm(tangent))], [1.0])
        assert mf.wasserstein(a, near, SPHERE, p=p) == pytest.approx(np.arctan(small), rel=1e-15 / small + 1e-14)


@both
def test_axioms(p):
    a, b, c = (random_atoms(40, seed) for seed in (1, 2, 3))
    ab, bc, ac = (mf.wasserstein(x, y, SPHERE, p=p) for x, y in ((a, b), (b, c), (a, c)))
    assert mf.wasserstein(a, a, SPHERE, p=p) < 1e-7  # the root of round-off
    assert mf.wasserstein(b, a, SPHERE, p=p) == pytest.approx(ab, rel=1e-12)
    assert ac <= ab + bc
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    turned = [mf.Measure(m.points @ turn.T, m.weights) for m in (a, b)]
    assert mf.wasserstein(*turned, SPHERE, p=p) == pytest.approx(ab, rel=1e-10)


@both
def test_axisymmetric_laws(p):
    """Two bumps about one axis: the transport runs along meridians. Nodes are fine along the axis, the program sees their longitudes too."""
    a, b = bump(2.0).nodes(800), bump(30.0).nodes(800)
    exact = axial_distance(bump(2.0).nodes(80_000), bump(30.0).nodes(80_000), AXIS, p)
    assert mf.wasserstein(a, b, SPHERE, p=p) == pytest.approx(exact, rel=1e-2)  # 800 nodes: spacing 0.12; observed 2e-3
    assert axial_distance(a, b, AXIS, p) <= mf.wasserstein(a, b, SPHERE, p=p) + 1e-12


@both
def test_coarsening_says_what_it_costs(p):
    a, b = masses(bump(2.0), 642), masses(bump(8.0, [0, 0.6, 0.8]), 642)
    fine = mf.wasserstein(a, b, SPHERE, p=p)
    rough = distance_with_error(a, b, p, atoms=162)
    assert abs(rough.value - fine) <= 1.5 * rough.error  # the error falls by 3 to 5 a level
    assert rough.error <= rough.bound
    assert abs(rough.value - fine) < 0.06 * fine  # observed 3 % and less


def test_coarsening_conserves_mass_and_first_moment():
    law = mf.Measure(bump(30.0).sample(3000, np.random.default_rng(1)), np.full(3000, 1 / 3000))
    for level, width in ((2, 0.28), (4, 0.07)):
        few, moved = coarsened(law, level)
        assert few.mass == pytest.approx(1, abs=1e-14)
        assert moved < 0.6 * width
        np.testing.assert_allclose(few.mean, law.mean, atol=0.3 * width**2)  # chords are shorter than arcs
        assert _linear_program(few, law, 2) <= moved + 1e-12 if level == 2 else True
    on_mesh = mf.Measure(SPHERE.mesh(162).centres, SPHERE.mesh(162).volumes / (4 * np.pi))
    same, moved = coarsened(on_mesh, 2)
    assert moved < 1e-15
    assert np.array_equal(same.points, on_mesh.points)


def test_clusters_are_coarsened_to_finer_meshes():
    a, b = (mf.Measure(bump(1e4, c).sample(3000, np.random.default_rng(1)), np.full(3000, 1 / 3000)) for c in (AXIS, [0.48, -0.64, 0.6]))
    found = distance_with_error(a, b, 1, atoms=600)
    assert found.bound < 0.05  # spacing 0.035
    assert found.value == pytest.approx(0.0566, rel=0.03)  # one is the other, turned


@both
def test_two_pictures_of_one_law_are_close(p):
    """Cells and nodes of a smooth law, coarsened to 642 atoms of spacing 0.14."""
    law = mf.initial.fisher_mixture([AXIS, [1, 0, 0]], [2.0, 4.0])
    found = distance_with_error(masses(law, 2562), law.nodes(4000), p, atoms=642, estimate=False).value
    assert found < [0.01, 0.03][p - 1]


def test_the_error_covers_laws_closer_than_the_mesh():
    """5000 tokens and their law: W_2 = 0.05 or so, and coarse atoms exaggerate it; the finer mesh lies within the error of the coarser one."""
    law = bump(3.0)
    cells, cloud = masses(law, 2562), mf.Measure(law.sample(5000, np.random.default_rng(2)), np.full(5000, 1 / 5000))
    coarse = distance_with_error(cells, cloud, 2, atoms=162)
    fine = distance_with_error(cells, cloud, 2, atoms=642, estimate=False)
    assert fine.value < coarse.value
    assert coarse.value - fine.value <= coarse.error


@both
def test_few_atoms_against_many_are_not_coarsened(p):
    law, few = masses(bump(2.0), 10242), random_atoms(5, 4)
    found = distance_with_error(law, few, p, atoms=642)
    assert found.error == found.bound == 0
    assert found.value == pytest.approx(_linear_program(law, few, p), rel=1e-12)


def test_bad_input_is_refused():
    a = mf.Measure([AXIS], [1.0])
    circle = mf.Measure([[1.0, 0.0]], [1.0])
    with pytest.raises(mf.InputError, match="Only W_1 and W_2"):
        mf.wasserstein(a, a, SPHERE, p=3)
    with pytest.raises(mf.InputError):
        mf.wasserstein(a, circle, SPHERE)
    with pytest.raises(mf.InputError):
        mf.wasserstein(circle, circle, SPHERE)
    with pytest.raises(mf.InputError, match="second opinion is for the circle"):
        mf.transport.wasserstein_reference(a, a, SPHERE)
