"""
The whole sphere on a map
=========================

Equal-area maps of a law on the sphere that concentrates onto two points. The dotted line divides the two basins; it is
perpendicular to the left eigenvector of the drift, while the triangles sit at the right one.
"""

import mfpde as mf

problem, method = mf.cases.sphere_concentration(beta=30.0, t_end=3.0, cells=2562)
run = mf.solve(problem, method, save_at=[0.0, 1.0, 2.0, 3.0])
figure = mf.figures.density(run)
