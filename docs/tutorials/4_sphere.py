"""
4. The sphere
=============

Nothing in the first two tutorials was special to the circle. With 3 x 3 matrices and ``mf.Sphere()`` the same methods,
distances and figures work on S^2; meshes are cells around the points of a bisected icosahedron, attention sums use
spherical harmonics and a tree.
"""

import numpy as np

import mfpde as mf

# %%
# Onto two points
# ---------------
#
# General Q, K, V again, with a spectral gap. The spectrum tells the story before the run does: tokens converge to the
# two ends of an axis, and a great circle, perpendicular to the left eigenvector, separates those that go one way from
# those that go the other.

problem, method = mf.cases.sphere_concentration(beta=30.0, t_end=4.0, cells=2562)
print(mf.limits.spectrum(problem.attention).explain)

times = np.linspace(0, 4, 9)
run = mf.solve(problem, method, save_at=times)
figure = mf.figures.density(run)

# %%
# Equal-area maps: the first axis is in the middle, the third is up. As on the circle, a trajectory is a list of
# measures:

print(run.final)
print(f"largest density {run.final.density().max():.4g} per steradian, smallest {run.final.density().min():.2g}, mass {run.final.mass:.15f}")

# %%
# Two views of the globe, from the front and from behind, with tokens on the density. These tokens were solved
# separately: they know nothing of the mesh.

cloud = mf.solve(problem, mf.Particles(n=1000, seed=1, tol=1e-6), save_at=times)
globes = mf.figures.snapshots(run, [1.0, 3.0], tokens=cloud)

# %%
# How far are the two from the limit?
# -----------------------------------
#
# Against two atoms the optimal plan on the sphere is a sort, so this distance is exact as well. The dotted lines have
# the predicted slopes, which the curves of the mesh are about to reach when the page ends: its clusters have become as
# narrow as a few cells, and it says so. The tokens part from it earlier, W2 first. By chance some too many of them
# started on one side of the border, and for these the limit is at the antipode.

limit = mf.limits.push_forward(problem)
series = {
    f"W{p}, {name}": (times, [mf.wasserstein(measure, limit, problem.geometry, p) for measure in trajectory.measures])
    for p in (1, 2)
    for name, trajectory in [("mesh", run), ("tokens", cloud)]
}
decay = mf.figures.decay(series, rates={f"W{p}, mesh": mf.limits.rate(problem.attention, p) for p in (1, 2)}, title="Distance to the limit on the sphere")
print(run.status, run.message, sep=": ")
towards = cloud.measures[0].points @ mf.limits.spectrum(problem.attention).left_basis[0] > 0
print(f"mass on one side of the border: {cloud.measures[0].weights[towards].sum():.4f} of the tokens at random, {limit.weights[0]:.4f} of the law")

# %%
# Onto a circle
# -------------
#
# A sphere has room for more than the circle. When the top eigenvalue is double, tokens fall onto a great circle, and
# then attract each other along it for much longer.

problem, method = mf.cases.sphere_great_circle(beta=30.0, t_end=4.0, cells=2562)
print(mf.limits.spectrum(problem.attention).explain)
ring = mf.solve(problem, method, save_at=[0.0, 2.0, 4.0])
circle = mf.figures.snapshots(ring, [0.0, 2.0, 4.0])

# %%
# And when the dominant eigenvalues are complex, they turn on that circle for ever: try ``mf.cases.sphere_rotation()``.
#
# What the sphere cannot do: moving cells, clusters and the hand-over live on the circle. On S^2 a mesh is the finest
# description of a density, so sharp clusters are better followed with particles. See :doc:`/sphere` and
# :doc:`/which_method`.
