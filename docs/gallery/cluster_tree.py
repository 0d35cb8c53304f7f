"""
A whole life in logarithmic time
================================

From a rippled uniform law to a single cluster: clusters form, wait exponentially long, and merge. The energy climbs a
staircase. Density first, atoms once the clusters are narrow (``Handover``).
"""

import numpy as np

import mfpde as mf

log_end = 28.0
problem, method = mf.cases.staircase(beta=12.0, cells=80, log_t_end=log_end)
log_times = np.linspace(-1, log_end, 120)
life = mf.solve(problem, method, save_at=np.r_[np.exp(log_times[:-1]), problem.t_end], observe=[mf.diagnostics.energy])

tree = mf.figures.cluster_tree(life)

# %%
# Each merger is a step of the energy, and each tread a state that lasts exponentially long.

staircase = mf.figures.energy_staircase(life)
