"""Pictures of the sphere: projections are inverse to their inverses, areas are true, pixels take the right cell, dots and E lie where they should."""

from __future__ import annotations

import numpy as np
import pytest

import mfpde as mf
from mfpde import figures
from mfpde.figures.sphere import globe, mollweide

SPHERE = mf.Sphere()


def points(n=500):
    return mf.initial.uniform(SPHERE).sample(n, np.random.default_rng(0))


@pytest.mark.parametrize("facing", [[1.0, 0, 0], [0.3, -0.5, 0.8], [0, 0, 1.0]])
def test_a_globe_shows_one_half(facing):
    projection, x = globe(np.array(facing)), points()
    flat = projection.place(x)
    seen = np.isfinite(flat[:, 0])
    assert np.array_equal(seen, x @ facing > -1e-12)
    np.testing.assert_allclose(projection.point(flat[seen]), x[seen], atol=1e-7)  # the root at the rim
    assert np.isnan(projection.point(np.array([[0.9, 0.9]]))).all()


def test_mollweide_has_true_areas_and_an_inverse():
    world, x = mollweide(), points()
    flat = world.place(x)
    np.testing.assert_allclose(world.point(flat), x, atol=1e-9)
    poles = world.place(np.array([[0, 0, 1.0], [0, 0, -1.0], [1.0, 0, 0]]))
    np.testing.assert_allclose(poles, [[0, np.sqrt(2)], [0, -np.sqrt(2)], [0, 0]], atol=1e-7)
    # the Jacobian of the inverse, by differences: equal areas, 4 pi in all
    step = 1e-5
    inner = flat[np.abs(flat[:, 1]) < 1.2][:50] * 0.9
    du, dv = (world.point(inner + step * axis) - world.point(inner - step * axis) for axis in np.eye(2))
    np.testing.assert_allclose(np.linalg.norm(np.cross(du, dv), axis=1), 4 * step**2, rtol=1e-4)


@pytest.fixture(scope="module")
def run():
    problem, _ = mf.cases.sphere_concentration(beta=5.0, cells=162, t_end=1.0)
    return mf.solve(problem, mf.FiniteVolume(cells=162), save_at=[0, 0.5, 1])


def images(figure):
    return [axes.images[0].get_array() for axes in figure.axes if axes.images]


def test_maps_show_the_mass(run, tmp_path):
    """The mean over the pixels of an equal-area map is the mass over 4 pi."""
    figure = figures.density(run, scale="linear")
    found = images(figure)
    assert len(found) == 3
    for values in found:
        assert values.mean() == pytest.approx(1 / (4 * np.pi), rel=1e-2)  # pixels against cells of width 0.28
    assert figures.save(figure, tmp_path / "maps").stat().st_size > 10_000


def test_globes_show_front_and_back_with_the_limit(run, tmp_path):
    figure = figures.snapshots(run, [0, 1])
    panels = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title(loc="left") for axes in panels] == ["$t = 0$", "from behind", "$t = 1$", "from behind"]
    atoms = [np.ma.filled(collection.get_offsets(), np.nan) for axes in panels for collection in axes.collections]
    assert all(np.isfinite(pair).all(axis=1).sum() == 1 for pair in atoms)  # of v and -v each globe shows one
    assert all(np.linalg.norm(pair[np.isfinite(pair[:, 0])][0]) < 0.75 for pair in atoms)  # and not on its rim
    figures.save(figure, tmp_path / "globes")


def test_pixels_take_the_density_of_their_cell():
    """One cell holds everything, and it is where it should be."""
    mesh = SPHERE.mesh(162)
    for cell in (3, 77):
        weights = np.zeros(162)
        weights[cell] = 1.0
        problem = mf.Problem(mf.Attention.identity(3, 1.0), SPHERE, mf.initial.atoms(mesh.centres[[cell]], [1.0]), 0.0)
        trajectory = mf.solve(problem, mf.FiniteVolume(cells=162))
        values = images(figures.density(trajectory, scale="linear"))[0]
        row, column = np.nonzero(np.ma.filled(values, 0) > 0)
        world = mollweide()
        width, height = values.shape[1], values.shape[0]
        flat = np.stack(
            [(column + 0.5) / width * 2 * world.half_width - world.half_width, (row + 0.5) / height * 2 * world.half_height - world.half_height], axis=1
        )
        assert SPHERE.distance(world.point(flat), mesh.centres[cell]).max() < 0.2
        figures.density(trajectory, scale="log")  # empty cells have no logarithm


def test_tokens_are_dots_and_a_great_circle_is_dashed(tmp_path):
    problem, _ = mf.cases.sphere_great_circle(beta=2.0, t_end=0.5)
    cloud = mf.solve(problem, mf.Particles(n=300))
    figure = figures.snapshots(cloud, [0.5])
    assert {text for axes in figure.axes for text in axes.get_legend_handles_labels()[1]} == {"300 tokens", "dominant space $E$ of $VA$"}
    shown = sum(np.isfinite(np.ma.filled(axes.collections[0].get_offsets(), np.nan)[:, 0]).sum() for axes in figure.axes)
    assert shown == 300  # on one of the two globes each
    figures.save(figure, tmp_path / "dots")
    figures.save(figures.density(cloud, tokens=50), tmp_path / "few")


def test_runs_without_a_problem_and_without_a_limit(run, tmp_path):
    back = mf.load(run.save(tmp_path / "run"))
    assert len(images(figures.snapshots(back))) == 6
    rotating = mf.solve(*mf.cases.sphere_rotation(cells=162, beta=2.0, t_end=0.5))
    assert not figures.snapshots(rotating).legends
    with pytest.raises(mf.InputError, match="scale"):
        figures.density(run, scale="loud")
