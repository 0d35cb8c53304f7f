"""
Density over time
=================

The heat map is the first picture to look at. General matrices at low temperature: the law leaves the repeller and
concentrates at the two ends of the dominant eigenvector, with masses known beforehand.
"""

import numpy as np

import mfpde as mf

problem, method = mf.cases.concentration(beta=100.0, t_end=6.0, cells=512)
run = mf.solve(problem, method, save_at=np.linspace(0, 6, 121))
figure = mf.figures.density(run)
