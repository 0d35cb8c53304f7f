"""
3. Clusters
===========

Tokens that attract each other gather in clusters, clusters attract each other so faintly that for an exponentially long
time nothing seems to happen, and then two of them merge. This page follows one law from nearly uniform to a single
point. Time has to be logarithmic: the last merger comes long after everything else.
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf

# %%
# Why a mesh is the wrong tool
# ----------------------------
#
# The cells of a fixed mesh do not become narrow with the law. Once a cluster fits into one, the density is that of the
# mesh and no longer that of the equation. ``FiniteVolume`` says so: its status is no longer ``done``, the number of
# clusters it cannot see is counted, and the error this causes in W1 is stated.

problem, mesh = mf.cases.two_clusters(beta=4.0, t_end=12.0, cells=256)
coarse = mf.solve(problem, mesh)
print(coarse.status)
print(coarse.message)
print(f"W1 floor: {coarse.stats['W1 floor']:.4f}")

# %%
# Moving cells
# ------------
#
# ``Lagrangian`` has no such floor. Its cells carry their mass and move with the tokens, so they become narrow where the
# law does. The reward: the width of a cluster, which shrinks exponentially, can be followed over many decades (down to
# ``atom_width``, where cells become an atom).

moving = mf.Lagrangian(cells=128, tol=1e-8)
times = np.linspace(0, 12, 41)
sharp = mf.solve(problem, moving, save_at=times)
blurred = mf.solve(problem, mesh, save_at=times)


def width(measure):
    """Standard deviation, in radians, of the tokens near the cluster at positive angles (both clusters are alike)."""
    theta = (measure.angles() + np.pi) % (2 * np.pi) - np.pi
    w = np.where((theta > 0) & (theta < 2), measure.weights, 0)
    mean = w @ theta / w.sum()
    return np.sqrt(w @ (theta - mean) ** 2 / w.sum())


widths = Figure(figsize=(7, 3.8), layout="constrained")
axes = widths.add_subplot(xlabel="time", ylabel="width of a cluster (rad)", title="A fixed mesh stops at its cells, moving cells do not")
axes.semilogy(times, [width(m) for m in sharp.measures], label="moving cells")
axes.semilogy(times, [width(m) for m in blurred.measures], label="fixed mesh, 256 cells")
axes.axhline(2 * np.pi / 256, color="grey", linestyle=":", label="width of a cell")
axes.legend()

# %%
# The hand-over
# -------------
#
# When clusters are far narrower than the kernel, the law is as good as a few atoms, and atoms can live for ever: their
# velocities are sums of a few exponentially small terms, formed as logarithms. ``Handover`` runs the first method until
# that is so, checks that the velocities agree, and goes on with atoms. A whole life is one run.
#
# The law starts uniform up to ripples of one per cent. The case ends when the logarithm of time does.

log_end = 25.0
problem, method = mf.cases.staircase(beta=10.0, cells=128, log_t_end=log_end)
log_times = np.linspace(-1, log_end, 200)
times = np.r_[np.exp(log_times[:-1]), problem.t_end]
life = mf.solve(problem, method, save_at=times, observe=[mf.diagnostics.energy])
print(f"hand-over at t = {life.stats['hand-over at t']:.2f}, it moved mass x distance = {life.stats['hand-over moved mass x distance']:.1e}")
for number in range(1, life.stats["mergers"] + 1):
    print(f"merger {number}: ln t = {life.stats[f'ln t of merger {number}']:.4f}")

# %%
# Two pictures of it, over the logarithm of time. First, where the mass is: the nearly uniform law breaks into clusters,
# and these merge like the branches of a tree.

tree = mf.figures.cluster_tree(life)

# %%
# Second, the interaction energy: a staircase. Every tread is a metastable state that looks like the end until it is
# not.

staircase = mf.figures.energy_staircase(life)

# %%
# Do the treads last as long as they should?
# ------------------------------------------
#
# For two equal clusters the time of the merger has a closed form. It grows like the exponential of ``beta (1 - cos
# distance)``, which is why only its logarithm can be printed: written out, the last of these times would fill ten lines
# with digits.

for beta in (10.0, 100.0, 1000.0):
    two, clusters = mf.cases.merge_time(beta=beta, distance=2.5, mass=0.5)
    story = mf.methods.clusters.life(two, clusters)
    closed = mf.exact.log_merge_time(beta, 2.5, until=clusters.merge_distance)
    print(f"beta = {beta:6g}: ln t = {story.log_times[0]:.8f}, closed form {closed:.8f}")

# %%
# How the methods are built and what they were measured against: :doc:`/moving_cells`. Not all clusters merge: depending
# on the spectrum of V they may leave together, turn for ever, or never collapse at all. :doc:`5_your_weights` shows how
# to ask.
