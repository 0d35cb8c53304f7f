"""
Distances and their sharp rates
===============================

Zero temperature, an exact flow: W1 and W2 to the limit law fall at different rates, because W2 is ruled by the few
tokens that leave the repeller late. The thin lines have the slopes that the spectrum predicts.
"""

import numpy as np

import mfpde as mf

problem, _ = mf.cases.zero_temperature(gap=1.0, t_end=10.0)
times = np.linspace(0, 10, 41)
run = mf.solve(problem, mf.ZeroTemperature(nodes=2048), save_at=times)
limit = mf.limits.push_forward(problem)
series = {f"W{p}": (times, [mf.wasserstein(law, limit, mf.Circle(), p) for law in run.measures]) for p in (1, 2)}
figure = mf.figures.decay(series, rates={f"W{p}": mf.limits.rate(problem.attention, p) for p in (1, 2)})
