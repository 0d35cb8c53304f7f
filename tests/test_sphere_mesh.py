"""The Voronoi mesh of the sphere against independent geometry: scipy's Voronoi cells, quadrature, the exponential map."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import SphericalVoronoi, cKDTree

import mfpde as mf
from mfpde.mesh.icosahedral import SIZES, icosphere

LEVELS = [int(size) for size in SIZES[:6]]
SPHERE = mf.Sphere()


@pytest.fixture(scope="module", params=LEVELS)
def mesh(request):
    return SPHERE.mesh(request.param)


def dot(x, y):
    return np.sum(x * y, axis=-1)


def log_map(x, y):
    """Tangent vector at x of the geodesic to y, as long as the geodesic."""
    tangent = SPHERE.project(x, y)
    return SPHERE.distance(x, y)[..., None] * tangent / np.linalg.norm(tangent, axis=-1, keepdims=True)


def cone_cells(mesh):
    """(C,) the cell of every cone, (C, 2) its two neighbours."""
    s = mesh.stencils
    cell = np.repeat(np.arange(len(mesh)), np.diff(s.cone_start))
    ends = s.face_cells[s.cone_faces]
    assert ((ends == cell[:, None, None]).sum(axis=2) == 1).all()  # each face of a cone is a face of the cell
    return cell, ends.sum(axis=2) - cell[:, None]


@pytest.mark.parametrize(("wished", "given"), [(12, 12), (13, 12), (600, 642), (2000, 2562), (10_000, 10242), (25_000, 10242), (26_000, 40962)])
def test_the_nearest_level_is_taken(wished, given):
    assert SIZES[np.argmin(np.abs(SIZES - wished))] == given
    if given <= 10242:
        assert len(SPHERE.mesh(wished)) == given


@pytest.mark.parametrize("cells", [11, 0, -3, 163843, 642.0, "642", None])
def test_impossible_sizes_are_refused(cells):
    with pytest.raises(mf.InputError, match="between 12 and 163842"):
        SPHERE.mesh(cells)


def test_cells_tile_the_sphere(mesh):
    assert mesh.volumes.min() > 0
    assert mesh.volumes.sum() == pytest.approx(4 * np.pi, rel=1e-12)
    assert mesh.volumes.max() / mesh.volumes.min() < 1.37  # the limit of bisection, with the smallest cells around the 12 pentagons
    points, triangles = icosphere(LEVELS.index(len(mesh)))
    assert len(points) - len(mesh.face_cells) + len(triangles) == 2  # Euler
    assert 2 * len(mesh.face_cells) == 3 * len(triangles)
    degree = np.bincount(mesh.face_cells.ravel(), minlength=len(mesh))
    assert (degree == 5).sum() == 12
    assert ((degree == 5) | (degree == 6)).all()


def test_finest_mesh():
    mesh = SPHERE.mesh(163842)
    assert mesh.volumes.sum() == pytest.approx(4 * np.pi, rel=1e-12)
    assert np.linalg.norm(mesh.volumes @ mesh.centres) < 1e-9  # icosahedral symmetry; round-off of 163842 areas of 8e-5


@pytest.mark.parametrize("cells", [42, 642])
def test_areas_and_faces_are_those_of_scipy(cells):
    mesh = SPHERE.mesh(cells)
    voronoi = SphericalVoronoi(mesh.centres)
    np.testing.assert_allclose(mesh.volumes, voronoi.calculate_areas(), rtol=1e-9)
    voronoi.sort_vertices_of_regions()
    perimeter = np.zeros(cells)
    for i, region in enumerate(voronoi.regions):
        corners = voronoi.vertices[region]
        perimeter[i] = SPHERE.distance(corners, np.roll(corners, 1, axis=0)).sum()
    mine = np.bincount(mesh.face_cells[:, 0], mesh.face_areas, cells) + np.bincount(mesh.face_cells[:, 1], mesh.face_areas, cells)
    np.testing.assert_allclose(mine, perimeter, rtol=1e-9)


def test_faces_separate_their_two_cells(mesh):
    """A face centre is equally far from both cells and no other cell is nearer; the normal is tangent there and orthogonal to the face."""
    i, j = mesh.face_cells.T
    x, f = mesh.centres, mesh.face_centres
    to_i, to_j = SPHERE.distance(f, x[i]), SPHERE.distance(f, x[j])
    np.testing.assert_allclose(to_i, to_j, atol=1e-14)
    nearest, _ = cKDTree(x).query(f)
    np.testing.assert_allclose(2 * np.arcsin(nearest / 2), to_i, atol=1e-14)
    assert np.abs(dot(mesh.face_normals, f)).max() < 1e-15
    np.testing.assert_allclose(np.linalg.norm(mesh.face_normals, axis=1), 1, atol=1e-15)
    assert (dot(mesh.face_normals, x[j] - x[i]) > 0).all()
    e = mesh.stencils.directions
    for side, cell in ((0, i), (1, j)):
        assert np.abs(dot(e[:, side], x[cell])).max() < 1e-14
    length = SPHERE.distance(x[i], x[j])[:, None]
    # exponential map: the geodesic from x_i along e_i arrives at x_j in the direction e_j
    np.testing.assert_allclose(np.cos(length) * x[i] + np.sin(length) * e[:, 0], x[j], atol=1e-15)
    np.testing.assert_allclose(np.cos(length) * e[:, 0] - np.sin(length) * x[i], e[:, 1], atol=1e-14)


@pytest.mark.parametrize("cells", [12, 42, 162])
def test_first_moments_of_cells(cells):
    """`int_C x dA = -(1/2) sum |f| n`, against a quadrature that knows nothing of faces: Voronoi regions cut into small triangles."""
    mesh = SPHERE.mesh(cells)
    voronoi = SphericalVoronoi(mesh.centres)
    voronoi.sort_vertices_of_regions()
    moments = np.empty((cells, 3))
    for i, region in enumerate(voronoi.regions):
        b = voronoi.vertices[region]
        triangles = np.stack([np.broadcast_to(mesh.centres[i], b.shape), b, np.roll(b, 1, axis=0)], axis=1)
        for _ in range(5):
            p, q, r = np.moveaxis(triangles, 1, 0)
            pq, qr, rp = SPHERE.retract(p + q), SPHERE.retract(q + r), SPHERE.retract(r + p)
            triangles = np.concatenate([np.stack(t, axis=1) for t in ((p, pq, rp), (q, qr, pq), (r, rp, qr), (pq, qr, rp))])
        p, q, r = np.moveaxis(triangles, 1, 0)
        area = 2 * np.abs(np.arctan2(dot(p, np.cross(q, r)), 1 + dot(p, q) + dot(q, r) + dot(r, p)))
        moments[i] = area @ SPHERE.retract(p + q + r)
    for a in np.eye(3):
        # the flux of the constant vector a through the faces is int_C div P_x a = -2 int_C <a, x>
        flux = mesh.divergence(mesh.face_normals @ a) * mesh.volumes
        # the midpoint rule on triangles 32 times smaller than the cell errs by about (h/32)^2/24, h <= 1.1
        np.testing.assert_allclose(flux, -2 * moments @ a, atol=1e-4 * mesh.volumes.max())


def test_face_speeds_are_second_order():
    """Speed through the face centres of a smooth field from its values at cells; also without the correction, which then is first order at worst."""
    M = np.array([[0.3, -1.0, 0.4], [0.8, 0.1, -0.6], [-0.2, 0.5, 0.9]])

    def field(x):
        return SPHERE.project(x, x @ M.T + 0.5 * x[:, [1]] * x)

    errors, plain = [], []
    for cells in (642, 2562, 10242):
        mesh = SPHERE.mesh(cells)
        s = mesh.stencils
        v = field(mesh.centres)
        exact = dot(field(mesh.face_centres), mesh.face_normals)
        errors.append(np.abs(np.einsum("fsk,fsk->f", s.speed_weights, v[s.speed_cells]) - exact).max())
        plain.append(np.abs(np.einsum("fsk,fsk->f", s.speed_weights[:, :2], v[s.speed_cells[:, :2]]) - exact).max())
    assert errors[0] / errors[1] > 3.5  # the remaining terms are h^2
    assert errors[1] / errors[2] > 3.5
    assert plain[-1] > 5 * errors[-1]


def test_upwind_points_mirror_the_downwind_cell(mesh):
    s = mesh.stencils
    x = mesh.centres
    assert s.upwind_weights.min() >= 0
    assert s.upwind_weights.sum(axis=2).max() < (5 - np.sqrt(5)) / 2 + 1e-12  # 1.38197, the limit beside a pentagon
    for side in (0, 1):
        here, there = s.face_cells[:, side], s.face_cells[:, 1 - side]
        mirrored = sum(s.upwind_weights[:, side, k, None] * log_map(x[here], x[s.upwind_cells[:, side, k]]) for k in (0, 1))
        np.testing.assert_allclose(mirrored, -log_map(x[here], x[there]), atol=1e-13)


def test_cones_tile_every_tangent_plane(mesh):
    """Every velocity lies in exactly one cone and is the sum of its components along the two neighbours: the first moment is exact."""
    s = mesh.stencils
    x = mesh.centres
    cell, neighbours = cone_cells(mesh)
    l1, l2 = log_map(x[cell], x[neighbours[:, 0]]), log_map(x[cell], x[neighbours[:, 1]])
    sines = dot(np.cross(l1, l2), x[cell])
    assert sines.min() > 0  # counter-clockwise
    angles = np.arctan2(sines, dot(l1, l2))
    np.testing.assert_allclose(np.bincount(cell, angles, len(mesh)), 2 * np.pi, rtol=1e-13)
    assert (neighbours[:, 1] == np.where(np.roll(cell, -1) == cell, np.roll(neighbours[:, 0], -1), neighbours[s.cone_start[cell], 0])).all()

    rng = np.random.default_rng(5)
    for _ in range(3):
        v = SPHERE.project(x, rng.normal(size=x.shape))
        alpha = np.einsum("cqk,ck->cq", s.cone_duals, v[cell])
        inside = (alpha > 0).all(axis=1)
        assert (np.bincount(cell, inside, len(mesh)) == 1).all()
        moved = alpha[inside, :1] * l1[inside] + alpha[inside, 1:] * l2[inside]
        np.testing.assert_allclose(moved, v, atol=1e-12)
    # along a spoke the velocity belongs to both adjacent cones, and all mass goes to that neighbour
    alpha = np.einsum("cqk,ck->cq", s.cone_duals, l1)
    np.testing.assert_allclose(alpha, np.broadcast_to([1.0, 0.0], alpha.shape), atol=1e-12)


def test_divergence_conserves_mass(mesh):
    flux = np.random.default_rng(1).normal(size=len(mesh.face_cells))
    assert abs(mesh.volumes @ mesh.divergence(flux)) < 1e-12
