"""
How many clusters?
==================

A ripple on the uniform law grows at a rate that is known for every wave number. The fastest one decides how many
clusters form. Lines are the closed form, dots are measured: the growth of a small wave between two times of a run.
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf

figure = Figure(figsize=(7, 4), layout="constrained")
axes = figure.add_subplot(xlabel="wave number $k$", ylabel="growth rate", title="Growth about the uniform law")
modes = np.arange(1, 15)
for colour, beta in zip(("tab:blue", "tab:orange", "tab:green"), (4.0, 9.0, 25.0), strict=True):
    axes.plot(modes, mf.exact.growth_rate(mf.Attention.identity(2, beta), modes).real, color=colour, label=f"beta = {beta:g}")
    for k in modes[::2]:
        run = mf.solve(*mf.cases.growth(beta=beta, mode=int(k), t_end=1.0, cells=256), save_at=[0.0, 1.0])
        wave = [abs(mf.diagnostics.fourier_moments(law, int(k))) for law in run.measures]
        axes.plot(k, np.log(wave[1] / wave[0]), "o", color=colour)
axes.axhline(2 / np.e, color="grey", linestyle=":", label="largest rate at low temperature, 2/e")
axes.set_ylim(-0.03, 1.0)
axes.legend(ncols=2, loc="upper right")
