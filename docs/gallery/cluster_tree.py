"""
A whole life in logarithmic time
================================

From a rippled uniform law to a single cluster: clusters form, wait exponentially long, and merge. The energy climbs a
staircase. Density first, atoms once the clusters are narrow (``Handover``).
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf

log_end = 28.0
problem, method = mf.cases.staircase(beta=12.0, cells=80, log_t_end=log_end)
log_times = np.linspace(-1, log_end, 120)
life = mf.solve(problem, method, save_at=np.r_[np.exp(log_times[:-1]), problem.t_end], observe=[mf.diagnostics.energy])

figure = Figure(figsize=(7.5, 6.5), layout="constrained")
tree, steps = figure.subplots(2, 1, sharex=True)
for log_t, law in zip(log_times, life.measures, strict=True):
    heavy = law.weights > 1e-3
    tree.scatter(np.full(heavy.sum(), log_t), law.angles()[heavy], s=40 * law.weights[heavy], color="black", linewidths=0)
tree.set(ylabel="angle (rad)", ylim=(0, 2 * np.pi), title="Clusters over logarithmic time, area by mass")
steps.plot(log_times, life.observed["energy"])
steps.set(xlabel="ln t", ylabel="energy over its maximum")
