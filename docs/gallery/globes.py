"""
Turning on the sphere
=====================

Complex dominant eigenvalues: the tokens fall onto a plane and turn on it for ever. Front and back of the
globe at three times.
"""

import mfpde as mf

problem, method = mf.cases.sphere_rotation(beta=20.0, t_end=3.0, cells=2562)
run = mf.solve(problem, method, save_at=[0.5, 1.5, 3.0])
figure = mf.figures.snapshots(run)
