"""
Why attention sums need a certificate
=====================================

The partition function of three sharp clusters spans many decades. A plain Fourier convolution is accurate relative to
its *largest* value, so it is noise where the partition function is small, and that noise is what softmax divides by.
An operator made by ``plan`` serves such targets in another way.
"""

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf

circle, beta, cells = mf.Circle(), 60.0, 2048
mesh = circle.mesh(cells)
weights = mf.initial.von_mises_mixture([0.3, 1.2, 2.0], kappa=3e3).cell_masses(mesh)
theta = circle.angles(mesh.centres)

operator = mf.attention.plan(mf.Attention.identity(2, beta), circle, mesh)
log_z, _ = operator.evaluate(weights)
kernel = np.exp(beta * (np.cos(theta - theta[0]) - 1))
plain = np.fft.irfft(np.fft.rfft(kernel) * np.fft.rfft(weights), cells)
print("targets by tier:", operator.tiers)
print(f"the plain transform is off by more than 1e-6 at {np.mean(np.abs(plain / np.exp(log_z - beta) - 1) > 1e-6):.0%} of the targets")
print(f"and not even positive at {np.mean(plain <= 0):.0%}")

figure = Figure(figsize=(7, 4), layout="constrained")
axes = figure.add_subplot(xlabel="angle (rad)", ylabel="partition function over its largest value", title="Three sharp clusters seen from all around")
scale = np.exp(log_z.max() - beta)
axes.semilogy(theta, np.abs(plain) / scale, ",", color="tab:orange")
axes.plot([], [], "o", color="tab:orange", markersize=3, label="plain Fourier convolution (absolute value)")
axes.semilogy(theta, np.exp(log_z - log_z.max()), color="tab:blue", label="mf.attention.plan")
axes.legend()
