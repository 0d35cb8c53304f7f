"""Exact densities of the zero-temperature flow against every method, the distances to the limit in closed form, and the masses of its two atoms."""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import claims
from mfpde.cases import rotation
from mfpde.methods.zero_temperature import density

CIRCLE = mf.Circle()
I = np.eye(2)
GAP = 1.0
UNIFORM = mf.initial.uniform(CIRCLE)
SMOOTH = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])


def closed_form(points: np.ndarray, t: float) -> np.ndarray:
    """From the uniform law, symmetric drift of gap g, A = I: 1 / (2 pi (cosh gt - sinh gt cos 2 theta)), theta from v = e1."""
    cos_twice = 2 * points[:, 0] ** 2 - 1
    return 1 / (2 * np.pi * (np.cosh(GAP * t) - np.sinh(GAP * t) * cos_twice))


def cold(V: np.ndarray, law: mf.initial.InitialLaw, t_end: float, A: np.ndarray = I) -> mf.Problem:
    return mf.Problem(mf.Attention(A, I, V, np.inf), CIRCLE, law, t_end)


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    t = 2.0
    problem = cold(np.diag([1.0 + GAP, 1.0]), UNIFORM, t)
    cells = 512 if quick else 4096
    mesh = CIRCLE.mesh(cells)
    exact_law = mf.initial.from_density(lambda x: closed_form(x, t), CIRCLE)
    exact = mf.Measure(mesh.centres, exact_law.cell_masses(mesh), mesh)
    finite_volumes = mf.solve(problem, mf.FiniteVolume(cells=cells)).final
    flow_density = density(problem, t, mesh.centres)
    found.numbers["density of the exact flow, largest relative error"] = float(np.abs(flow_density / closed_form(mesh.centres, t) - 1).max())
    found.numbers["finite volumes, L1 error times cells squared"] = float(np.abs(finite_volumes.weights - exact.weights).sum()) * cells**2
    beta = 1e4
    warm = mf.Problem(mf.Attention(I, I, problem.attention.V, beta), CIRCLE, UNIFORM, t)
    moving = mf.solve(warm, mf.Lagrangian(cells=1024, tol=1e-8)).final
    found.numbers["moving cells at beta = 1e4, largest relative error of the density, times beta"] = beta * float(
        np.abs(moving.density_at(mesh.centres) / closed_form(mesh.centres, t) - 1).max()
    )
    found.numbers["first moment E cos 2 theta of finite volumes less tanh(gt/2), times cells squared"] = cells**2 * abs(
        float(finite_volumes.weights @ (2 * finite_volumes.points[:, 0] ** 2 - 1)) - np.tanh(GAP * t / 2)
    )
    distances(found, quick)
    masses(found, quick)
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    theta = np.degrees(np.arctan2(mesh.centres[:, 1], mesh.centres[:, 0]))
    order = np.argsort(theta)
    axes.semilogy(theta[order], closed_form(mesh.centres, t)[order], "k-", lw=3, alpha=0.3, label="closed form")
    axes.semilogy(theta[order], finite_volumes.density()[order], "--", label=f"finite volumes, {cells} cells")
    axes.semilogy(theta[order], moving.density_at(mesh.centres)[order], ":", label=r"moving cells, $\beta = 10^4$")
    axes.set(xlabel="angle (degrees)", ylabel="density", title=f"t = {t:g}")
    axes.legend()
    found.figures["Density from the uniform law at zero temperature"] = figure
    return found


def distances(found: claims.Findings, quick: bool) -> None:
    """W2^2 = (4/pi) e^{-gt} and W1 = e^{-gt} ((2/pi) gt + .5851), chordal, both as t grows."""
    t = 9.0
    problem = cold(np.diag([1.0 + GAP, 1.0]), UNIFORM, t)
    law = mf.solve(problem, mf.ZeroTemperature(nodes=4000 if quick else 40_000)).final
    near = np.sqrt(2 * (1 - np.abs(law.points[:, 0])).clip(0))  # chord to the nearer of +-v
    small = np.abs(law.points[:, 1]) < 1e-4
    near[small] = np.abs(law.points[small, 1])  # 1 - |x_1| has lost its digits there
    found.numbers["W2^2 over (4/pi) e^{-gt} at gt = 9"] = float(law.weights @ near**2) / (4 / np.pi * np.exp(-GAP * t))
    found.numbers["W1 over e^{-gt} ((2/pi) gt + 0.5851) at gt = 9"] = float(law.weights @ near) / (np.exp(-GAP * t) * (2 / np.pi * GAP * t + 0.5851))


def masses(found: claims.Findings, quick: bool) -> None:
    """Non-normal drift: the circle is cut by the left eigenvector; masses at +-v from three methods."""
    V = rotation(0.3) @ np.array([[1.0, 0.8], [0.0, 0.2]]) @ rotation(0.3).T
    t_end = 12.0
    problem = cold(V, SMOOTH, t_end)
    limit = mf.limits.push_forward(problem)
    v = limit.points[0]
    by_flow = mf.solve(problem, mf.ZeroTemperature(nodes=4000)).final
    by_mesh = mf.solve(problem, mf.FiniteVolume(cells=512 if quick else 2048)).final
    warm = mf.Problem(mf.Attention(I, I, V, 1000.0), CIRCLE, SMOOTH, t_end)
    by_cells = mf.solve(warm, mf.Lagrangian(cells=640, tol=1e-8)).final
    for name, law in (("exact flow", by_flow), ("finite volumes", by_mesh), ("moving cells, beta = 1000", by_cells)):
        found.numbers[f"mass at +v less mu_0(<w,x> > 0), {name}"] = float(law.weights[law.points @ v > 0].sum() - limit.weights[0])
    orthogonal = SMOOTH.mass_of_halfspace(v)
    found.numbers["difference that an orthogonal projector would make"] = abs(float(orthogonal - limit.weights[0]))


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
