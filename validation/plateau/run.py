"""How near the law comes to its limit, and when: the plateau and its time against beta, for smooth data and for data with a jump at the repeller."""

from __future__ import annotations

import sys
import warnings

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import claims
from mfpde.claims import fits

CIRCLE = mf.Circle()
I = np.eye(2)
LAWS = {
    "smooth": mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)]),
    "rough": mf.initial.from_density(lambda x: np.where(x[:, 0] > 0, 1.5, 0.5), CIRCLE),  # jumps at +-e2, the repeller
}
GAP = 0.8
EXPONENT = {"smooth": -1.0, "rough": -0.5}  # of the plateau of W1 in beta: docs/theory, section 3


def problem_of(law: str, beta: float) -> mf.Problem:
    """V = diag(1, 0.2), A = I: one gap, VA and V have the same top direction, so that the law stays where it gathers."""
    return mf.Problem(mf.Attention(I, I, np.diag([1.0, 1.0 - GAP]), beta), CIRCLE, LAWS[law], (np.log(beta) + 7) / GAP)


def moving_cells(beta: float) -> mf.Lagrangian:
    """At least five cells in the width of the kernel."""
    return mf.Lagrangian(cells=max(64, int(2 * np.pi * np.sqrt(beta / 0.1))), tol=1e-8)


def approach(problem: mf.Problem, method: object, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Times and distances to the limit law."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run = mf.solve(problem, method, save_at=np.linspace(0, problem.t_end, 61))
    limit = mf.limits.push_forward(problem)
    return run.times, np.array([mf.wasserstein(law, limit, CIRCLE, p=p) for law in run.measures])


def arrival(times: np.ndarray, W: np.ndarray) -> float:
    """The first time at which W is at most twice its minimum, by interpolation of log W."""
    after = int(np.argmax(2 * W.min() >= W))
    x = np.log(W[after - 1 : after + 1] / (2 * W.min()))
    return float(times[after - 1] + (times[after] - times[after - 1]) * x[0] / (x[0] - x[1]))


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    betas = 10 ** np.array([1.25, 1.75, 2.5, 3.25] if quick else [1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5])
    figure = Figure(figsize=(11, 4), layout="constrained")
    curves, plateaus, times_of = figure.subplots(1, 3)
    rows: list[list] = [["law", "beta", "plateau of W1", "time"]]
    fitted: list[list] = [["quantity", "fit against log beta", "95 % interval", "R^2", "residual", "predicted"]]
    for law in LAWS:
        plateau, arrived = [], []
        for beta in betas:
            problem = problem_of(law, beta)
            times, W = approach(problem, moving_cells(beta), 1)
            plateau.append(W.min())
            arrived.append(arrival(times, W))
            rows.append([law, float(beta), W.min(), arrived[-1]])
            curves.semilogy(times, W, "-" if law == "smooth" else "--", lw=1, label=rf"{law}, $\beta = 10^{{{np.log10(beta):g}}}$")
        slope = fits.power(betas, np.array(plateau))
        line = fits.line(np.log(betas), np.array(arrived))
        found.numbers[f"{law}: slope of the plateau of W1 in beta, less the predicted one"] = slope.slope - EXPONENT[law]
        found.numbers[f"{law}: decades of beta"] = float(np.log10(betas[-1] / betas[0]))
        found.numbers[f"{law}: R^2 of the concentration time against log beta"] = line.r_squared
        # W falls like (t + t0) e^{-gt} and the plateau like beta^{exponent}: slope (-exponent / g) / (1 - 1/(g (t + t0)))
        found.numbers[f"{law}: slope of the concentration time, over -exponent/g"] = line.slope / (-EXPONENT[law] / GAP)
        fitted.append([f"{law}: log plateau", slope.slope, slope.interval, slope.r_squared, slope.residual, EXPONENT[law]])
        fitted.append([f"{law}: concentration time", line.slope, line.interval, line.r_squared, line.residual, -EXPONENT[law] / GAP])
        plateaus.loglog(betas, plateau, "o-", label=f"{law}: slope {slope.slope:.3f}")
        times_of.semilogx(betas, arrived, "o-", label=f"{law}: {line.slope:.2f} per log beta, $R^2$ = {line.r_squared:.4f}")
    # the independent method: tokens, refined where they part, at one temperature; no cell, no interpolation
    beta, n, tail = (100.0, 300, 1e-5) if quick else (300.0, 600, 1e-7)
    tokens = mf.Particles(n=n, placement="graded", tail=tail, tol=1e-6)
    for law in ("rough",) if quick else LAWS:
        by_tokens, by_cells = (approach(problem_of(law, beta), method, 1)[1].min() for method in (tokens, moving_cells(beta)))
        found.numbers[f"{law}: plateau by tokens over plateau by moving cells"] = by_tokens / by_cells
    theorem = np.sqrt(np.log(betas + 1) / betas)
    found.numbers["theorem's curve sqrt(log(beta+1)/beta) over the plateau, least"] = float(
        min(np.min(theorem / np.array([row[2] for row in rows[1:] if row[0] == law])) for law in LAWS)
    )
    plateaus.loglog(betas, theorem, "k:", label=r"$\sqrt{\log(\beta+1)/\beta}$")
    for axes, label in ((curves, "$W_1$ to the limit"), (plateaus, "least $W_1$"), (times_of, "time of concentration")):
        axes.set_ylabel(label)
        axes.legend(fontsize=6)
    curves.set_xlabel("t")
    plateaus.set_xlabel(r"$\beta$")
    times_of.set_xlabel(r"$\beta$")
    found.tables["Plateaus by moving cells"] = rows
    found.tables["Fits over all beta"] = fitted
    found.figures["Approach to the limit at finite beta (full lines: smooth, dashed: jump at the repeller), plateau and its time"] = figure
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
