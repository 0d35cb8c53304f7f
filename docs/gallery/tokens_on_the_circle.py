"""
Tokens on the circle
====================

The law as it lives: the density around the circle, outwards, with tokens that were solved separately. From left to
right: the initial law, half way, and two metastable clusters.
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf

problem = mf.Problem(mf.Attention.identity(dim=2, beta=4.0), mf.Circle(), mf.initial.von_mises_mixture([0.0, 2.0], kappa=4.0), t_end=3.0)
times = [0.0, 1.0, 3.0]
density = mf.solve(problem, mf.FiniteVolume(cells=256), save_at=times)
tokens = mf.solve(problem, mf.Particles(n=40, placement="nodes"), save_at=times)

figure = Figure(figsize=(9, 3.4), layout="constrained")
for axes, t in zip(figure.subplots(1, 3), times, strict=True):
    law, cloud = density.at(t), tokens.at(t)
    # a square root keeps a sharp cluster on the page
    ring = law.points * (1 + 0.35 * np.sqrt(law.density()))[:, None]
    axes.fill(*ring.T, color="tab:blue", alpha=0.3, label="density, outwards")
    axes.fill(*law.points.T, color="white")
    axes.plot(*np.vstack([law.points, law.points[:1]]).T, color="grey", linewidth=0.8)
    axes.scatter(*cloud.points.T, s=400 * cloud.weights, color="tab:orange", zorder=3, label="tokens, area by weight")
    axes.set(title=f"t = {t:g}", aspect="equal", xlabel="$x_1$", ylabel="$x_2$", xlim=(-1.7, 2.1), ylim=(-1.7, 2.1))
figure.axes[0].legend(fontsize=7, loc="lower left")
