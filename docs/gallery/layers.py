"""
Depth as time
=============

A transformer of finite depth is an explicit Euler scheme: ``Particles(steps=L)`` has L layers. The deeper it is, the
closer its tokens are to continuous time, and the distance falls like one over the depth.
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf

problem, _ = mf.cases.gallery(spectrum="complex", beta=8.0, t_end=3.0)
tokens = dict(n=300, placement="nodes")
exact = mf.solve(problem, mf.Particles(**tokens)).final
depths = np.array([6, 12, 24, 48, 96])
W2 = [mf.wasserstein(exact, mf.solve(problem, mf.Particles(**tokens, steps=int(L))).final, mf.Circle()) for L in depths]

figure = Figure(figsize=(6, 4), layout="constrained")
axes = figure.add_subplot(xlabel="layers", ylabel="$W_2$ to continuous time (rad)", title="How deep is infinitely deep?")
axes.loglog(depths, W2, "o-", label="measured")
axes.loglog(depths, W2[-1] * depths[-1] / depths, "--", color="grey", label="slope -1")
axes.set_xticks(depths, labels=[str(L) for L in depths])
axes.minorticks_off()
axes.legend()
