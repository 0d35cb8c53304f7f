"""
5. Your own weights
===================

So far the matrices were ready-made. This page takes weights as a machine-learning code stores them, reads their
spectrum, and shows that the spectrum foretells what tokens do: converge, rotate, or spread.
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf

# %%
# Rows and columns
# ----------------
#
# In a transformer code tokens are the *rows* of a matrix X, and weights act from the right: queries are ``X @ W_Q``.
# Here tokens are columns, so the matrices have to be transposed. ``from_weights`` does that, and nothing else in the
# package knows about rows. ``W_Q`` and ``W_K`` may be rectangular, with as many columns as the head has dimensions:
# only their product enters.

rng = np.random.default_rng(0)
W_Q, W_K, W_V = rng.normal(size=(3, 2, 2))
head = mf.Attention.from_weights(W_Q, W_K, W_V, beta=20.0)
print(head)
X = rng.normal(size=(5, 2))
scores = (X @ W_Q) @ (X @ W_K).T
print("scores agree with <Ax, y>:", np.allclose(scores, X @ head.A.T @ X.T))

# %%
# What will these tokens do?
# --------------------------
#
# Ask the spectrum of ``VA``. A random matrix has no reason to be symmetric, and this one does not even have real
# eigenvalues.

print(mf.limits.spectrum(head))

# %%
# Four heads
# ----------
#
# Here are four that differ in V alone, with A = I. The first has two real eigenvalues and is not normal; the second has
# a complex pair; the third a negative top eigenvalue; the fourth a Jordan block.

HEADS = {
    "real, not normal": [[1.0, 1.5], [0.0, 0.3]],
    "complex pair": [[0.5, -1.0], [1.0, 0.5]],
    "negative": [[-0.2, 0.0], [0.0, -1.0]],
    "Jordan block": [[0.5, 1.0], [0.0, 0.5]],
}
I = np.eye(2)
law = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1])
heads = {name: mf.Attention(I, I, V, beta=20.0) for name, V in HEADS.items()}
for name, attention in heads.items():
    print(f"{name}:\n    {mf.limits.spectrum(attention).explain}")

# %%
# And this is what happens. Each panel is the density over time.

times = np.linspace(0, 6, 61)
panels = Figure(figsize=(8, 6), layout="constrained")
runs = {}
for axes, (name, attention) in zip(panels.subplots(2, 2, sharex=True, sharey=True).flat, heads.items(), strict=True):
    problem = mf.Problem(attention, mf.Circle(), law, t_end=times[-1])
    runs[name] = mf.solve(problem, mf.FiniteVolume(cells=256), save_at=times)
    mesh = runs[name].final.mesh
    density = np.array([measure.density() for measure in runs[name].measures])
    image = axes.pcolormesh(times, np.sort(mesh.geometry.angles(mesh.centres)), np.log10(density).T, vmin=-4, vmax=1, shading="nearest", rasterized=True)
    axes.set_title(name)
for axes in panels.axes[::2]:
    axes.set_ylabel("angle (rad)")
for axes in panels.axes[2:]:
    axes.set_xlabel("time")
panels.colorbar(image, ax=panels.axes, label="log10 of the density (1/rad)")

# %%
# *Real, not normal*: two clusters at the two ends of the dominant eigenvector. *Complex pair*: the law turns and will
# not stop; clusters form too, but slowly, for this V turns all tokens alike and only their attraction gathers them.
# There is no limit law, and ``push_forward`` refuses with a sentence that says why. *Negative*: at zero temperature
# this is the first case again, since only differences of eigenvalues turn a token. But a token repels the others once
# they are close, so no cluster becomes a point: what remains are blobs, whose width the temperature sets. *Jordan
# block*: everything drifts to the two ends of one axis, from one side, and ever more slowly.

try:
    mf.limits.push_forward(mf.Problem(heads["complex pair"], mf.Circle(), law, t_end=6.0))
except mf.InputError as error:
    print(error)

# %%
# Not normal means: cut obliquely
# -------------------------------
#
# With a matrix that is not normal the place where tokens end and the line that divides them are not perpendicular. The
# limit law knows.

problem = mf.Problem(heads["real, not normal"], mf.Circle(), law, t_end=6.0)
spectrum = mf.limits.spectrum(problem.attention)
border = np.degrees(np.arctan2(-spectrum.left_basis[0, 0], spectrum.left_basis[0, 1])) % 180
axis = np.degrees(np.arctan2(spectrum.dominant_basis[1, 0], spectrum.dominant_basis[0, 0])) % 180
print(f"tokens end on the axis at {axis:.1f} degrees, the border between them lies at {border:.1f} degrees")
final = runs["real, not normal"].final
towards = final.points @ spectrum.dominant_basis[:, 0]
print(f"mass on one side: the run at t = {times[-1]:g} has {final.weights[towards > 0].sum():.4f}, the limit {mf.limits.push_forward(problem).weights[0]:.4f}")

# %%
# The two differ by what a finite temperature and a finite time leave (:doc:`2_concentration`).
#
# The blobs of the negative head, in three temperatures. Lower it, and they become narrower, like one over the square
# root of ``beta``.

print("beta   width of a blob   width times sqrt(beta)")
for beta in (10.0, 40.0, 160.0):
    attention = mf.Attention(I, I, HEADS["negative"], beta)
    blob = mf.solve(mf.Problem(attention, mf.Circle(), mf.initial.uniform(mf.Circle()), t_end=40.0), mf.FiniteVolume(cells=256)).final
    x = blob.points[:, 1][blob.points[:, 0] > 0]
    w = blob.weights[blob.points[:, 0] > 0]
    size = np.sqrt(w @ x**2 / w.sum())
    print(f"{beta:4g}   {size:.4f}            {size * np.sqrt(beta):.3f}")

# %%
# To run your weights from a file, without a script: :doc:`/howto/configure`. The theory of the terminal phase, where V
# rules alone, is :doc:`/theory`, section 5.
