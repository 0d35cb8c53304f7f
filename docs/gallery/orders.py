"""
Errors against resolution
=========================

Against an exact solution: at ``beta = 0`` a Poisson kernel stays one. The two orders of finite volumes, and moving
cells, which have order four.
"""

import mfpde as mf

problem, _ = mf.cases.poisson(r=0.3, t_end=2.0)
exact = mf.exact.poisson_law(0.3, 2.0)
cells = [64, 128, 256, 512]
tables = {
    "order 1": mf.converge(problem, mf.FiniteVolume(order=1), cells, reference=exact),
    "order 2": mf.converge(problem, mf.FiniteVolume(order=2), cells, reference=exact),
    "moving cells": mf.converge(problem, mf.Lagrangian(tol=1e-11), [16, 32, 64], reference=exact),
}
figure = mf.figures.order_plot(tables)
