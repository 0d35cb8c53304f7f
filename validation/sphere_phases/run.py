"""The phases on the sphere: approach to the limit law at finite beta, rotation for a complex spectrum, by a mesh, by tokens and by the exact flow."""

from __future__ import annotations

import sys
import warnings

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import claims, diagnostics
from mfpde.methods.zero_temperature import flow

SPHERE = mf.Sphere()
I = np.eye(3)
LAW = mf.initial.fisher_mixture([[0.6, 0.0, 0.8], [0.0, -0.8, 0.6], [0.0, 0.0, -1.0]], kappa=[1.0, 0.8, 0.5])
BETA = 20.0
DRIFTS = {
    "pair of points": np.diag([1.0, 0.2, 0.1]),
    "great circle": np.diag([1.0, 1.0, 0.2]),
    "rotation": np.array([[1.0, -1.5, 0.0], [1.5, 1.0, 0.0], [0.0, 0.0, 0.2]]),
}


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    cells, n, t_end = (642, 900, 5.0) if quick else (2562, 2000, 6.0)
    times = np.linspace(0, t_end, 6 if quick else 13)
    spacing = SPHERE.mesh(cells).spacing
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    decay = figure.add_subplot(2, 3, 4)
    turning = figure.add_subplot(2, 3, 5)
    for column, (name, V) in enumerate(DRIFTS.items(), start=1):
        problem = mf.Problem(mf.Attention(I, I, V, BETA), SPHERE, LAW, t_end)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            tokens = mf.solve(problem, mf.Particles(n=n, placement="nodes", tol=1e-5), save_at=times)
            mesh = mf.solve(problem, mf.FiniteVolume(cells=cells), save_at=times)
        runs = {"tokens": tokens, "mesh": mesh}
        to_E = {key: np.array([diagnostics.distance_to_dominant_space(law, problem) for law in run.measures]) for key, run in runs.items()}
        found.numbers[f"{name}: distance to E, mesh against tokens, in cells"] = float(np.abs(to_E["mesh"] - to_E["tokens"]).max()) / spacing
        found.numbers[f"{name}: distance to E at the end, tokens"] = to_E["tokens"][-1]
        found.numbers[f"{name}: W1 between mesh and tokens at the end, in cells"] = mf.wasserstein(mesh.final, tokens.final, SPHERE, p=1) / spacing
        decay.semilogy(times, to_E["tokens"], "-", label=f"{name}, tokens")
        decay.semilogy(times, to_E["mesh"], ":", label=f"{name}, {cells} cells")
        picture = figure.add_subplot(2, 3, column, projection="3d")
        for k, colour in ((0, "0.7"), (len(times) // 3, "tab:orange"), (len(times) - 1, "tab:blue")):
            picture.scatter(*tokens.measures[k].points[:: max(1, n // 400)].T, s=3, color=colour, label=f"t = {times[k]:.2g}")
        picture.set_title(name, fontsize=8)
        picture.legend(fontsize=6)
        if name == "rotation":
            rotation(found, problem, tokens, turning)
        elif name == "pair of points":
            limit = mf.limits.push_forward(problem)
            found.numbers["pair of points: W1 to the push-forward at the end, times beta"] = BETA * mf.wasserstein(tokens.final, limit, SPHERE, p=1)
    decay.set(xlabel="t", ylabel="root-mean-square sine of the angle to E")
    decay.legend(fontsize=6)
    found.figures["Sphere at beta = 20: tokens at three times, fall onto the dominant space, and the rate of turning on it"] = figure
    return found


def rotation(found: claims.Findings, problem: mf.Problem, tokens: mf.Trajectory, axes: object) -> None:
    """Rate of turning about e3: 1.5 <x, m> on the plane; and the lag behind the rotating map of zero temperature."""
    rates = []
    for law in tokens.measures:
        operator = mf.attention.plan(problem.attention, SPHERE, law.points, tol=1e-8)
        v, x = operator.velocity(law.weights), law.points
        rates.append(float(law.weights @ ((x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]) / np.maximum(x[:, 0] ** 2 + x[:, 1] ** 2, 1e-12))))
    found.numbers["rotation: mean rate of turning at the end, over 1.5"] = rates[-1] / 1.5
    cold = flow(problem.attention, tokens.measures[0].points, problem.t_end)
    ahead = np.arctan2(cold[:, 1], cold[:, 0]) - np.arctan2(tokens.final.points[:, 1], tokens.final.points[:, 0])
    lag = np.angle(tokens.final.weights @ np.exp(1j * ahead))
    found.numbers["rotation: mean lag behind the rotating map at the end, times beta over 1.5 t"] = float(lag) * BETA / (1.5 * problem.t_end)
    axes.plot(tokens.times, rates, "o-")  # type: ignore[attr-defined]
    axes.axhline(1.5, color="k", ls=":")  # type: ignore[attr-defined]
    axes.set(xlabel="t", ylabel="mean rate of turning")  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
