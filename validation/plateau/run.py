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
# of the plateau: a velocity error eps at the repeller sends a mass of order eps to the wrong atom, W_1 ~ eps and W_2 ~ eps^{1/2} (docs/theory, section 3)
EXPONENT = {("smooth", 1): -1.0, ("smooth", 2): -0.5, ("rough", 1): -0.5, ("rough", 2): -0.25}


def problem_of(law: str, beta: float) -> mf.Problem:
    """V = diag(1, 0.2), A = I: one gap, VA and V have the same top direction, so that the law stays where it gathers."""
    return mf.Problem(mf.Attention(I, I, np.diag([1.0, 1.0 - GAP]), beta), CIRCLE, LAWS[law], (np.log(beta) + 7) / GAP)


def moving_cells(law: str, beta: float, fineness: float = 1.0) -> mf.Lagrangian:
    """Two to three cells in the width of the kernel, twice as many beside a jump; parts of less mass than e^{-26} are not refined, a millionth of the
    least plateau."""
    per_kernel = fineness * (2 if law == "rough" else 1)
    return mf.Lagrangian(cells=4 * max(16, int(per_kernel * np.pi * np.sqrt(beta / 0.1) / 4)), tol=1e-6, importance_cut=-26.0)


def approach(problem: mf.Problem, method: object, outputs: int) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Times and both distances to the limit law."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run = mf.solve(problem, method, save_at=np.linspace(0, problem.t_end, outputs))
    limit = mf.limits.push_forward(problem)
    return run.times, {p: np.array([mf.wasserstein(law, limit, CIRCLE, p=p) for law in run.measures]) for p in (1, 2)}


def arrival(times: np.ndarray, W: np.ndarray) -> float:
    """The first time at which W is at most twice its minimum, by interpolation of log W."""
    after = int(np.argmax(2 * W.min() >= W))
    x = np.log(W[after - 1 : after + 1] / (2 * W.min()))
    return float(times[after - 1] + (times[after] - times[after - 1]) * x[0] / (x[0] - x[1]))


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    betas = 10 ** np.array([1.5, 2.5, 3.5] if quick else [1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5])
    outputs = 26 if quick else 46
    theorem = np.sqrt(np.log(betas + 1) / betas)
    figure = Figure(figsize=(12, 7), layout="constrained")
    panels = figure.subplots(2, 3)
    rows: list[list] = [["law", "beta", "plateau of W1", "time", "plateau of W2", "time", "theorem's curve", "least two-term bound on W2"]]
    fitted: list[list] = [["quantity", "fit against log beta", "95 % interval", "R^2", "residual", "predicted"]]
    for law in LAWS:
        plateau: dict[int, list[float]] = {1: [], 2: []}
        arrived: dict[int, list[float]] = {1: [], 2: []}
        late: dict[int, list[bool]] = {1: [], 2: []}
        for beta in betas:
            times, W = approach(problem_of(law, beta), moving_cells(law, beta), outputs)
            for p in (1, 2):
                plateau[p].append(float(W[p].min()))
                late[p].append(2 * plateau[p][-1] <= W[p][0] / 3)  # one exponential rules by then
                arrived[p].append(arrival(times, W[p]))
                panels[p - 1, 0].semilogy(times, W[p], "-" if law == "smooth" else "--", lw=1, label=rf"{law}, $\beta = 10^{{{np.log10(beta):g}}}$")
            rows.append(
                [law, float(beta), plateau[1][-1], arrived[1][-1], plateau[2][-1], arrived[2][-1], float(np.sqrt(np.log(beta + 1) / beta)), least_bound(beta)]
            )
        found.numbers[f"{law}: decades of beta"] = float(np.log10(betas[-1] / betas[0]))
        for p in (1, 2):
            slope = fits.power(betas, np.array(plateau[p]))
            line = fits.line(np.log(betas), np.array(arrived[p]))
            found.numbers[f"{law}: slope of the plateau of W{p} in beta, less the predicted one"] = slope.slope - EXPONENT[law, p]
            found.numbers[f"{law}: R^2 of the concentration time of W{p} against log beta"] = line.r_squared
            # W1 falls like (t + t0) e^{-gt}, W2 like e^{-gt/2}, the plateaus like beta^{exponent}: slope -exponent/g of W1, over 1 - 1/(g (t + t0)) for p = 1
            predicted = -EXPONENT[law, 1] / GAP
            if sum(late[p]) >= 3:
                asymptotic = fits.line(np.log(betas[late[p]]), np.array(arrived[p])[late[p]])
                found.numbers[f"{law}: slope of the concentration time of W{p}, over the predicted one"] = asymptotic.slope / predicted
                fitted.append([f"{law}: concentration time of W{p}, where 2 plateau <= W(0)/3", asymptotic.slope, asymptotic.interval,
                               asymptotic.r_squared, asymptotic.residual, predicted])  # fmt: skip
            fitted.append([f"{law}: log plateau of W{p}", slope.slope, slope.interval, slope.r_squared, slope.residual, EXPONENT[law, p]])
            fitted.append([f"{law}: concentration time of W{p}", line.slope, line.interval, line.r_squared, line.residual, predicted])
            panels[p - 1, 1].loglog(betas, plateau[p], "o-", label=f"{law}: slope {slope.slope:.3f}")
            panels[p - 1, 2].semilogx(betas, arrived[p], "o-", label=f"{law}: {line.slope:.2f} per log beta, $R^2$ = {line.r_squared:.4f}")
        found.numbers[f"{law}: theorem's curve sqrt(log(beta+1)/beta) over the plateau of W1, least"] = float(np.min(theorem / plateau[1]))
        found.numbers[f"{law}: least two-term bound over the plateau of W2, least"] = float(
            np.min([least_bound(beta) for beta in betas] / np.array(plateau[2]))
        )
    by_tokens_and_finer_cells(found, quick)
    for p in (1, 2):
        panels[p - 1, 1].loglog(betas, theorem, "k:", label=r"$\sqrt{\log(\beta+1)/\beta}$")
        for axes, label, x in zip(
            panels[p - 1], (f"$W_{p}$ to the limit", f"least $W_{p}$", f"time of concentration, $W_{p}$"), ("t", r"$\beta$", r"$\beta$"), strict=True
        ):
            axes.set(xlabel=x, ylabel=label)
            axes.legend(fontsize=6)
    panels[1, 1].loglog(betas, [least_bound(beta) for beta in betas], "k-.", label="two-term bound at its best time")
    panels[1, 1].legend(fontsize=6)
    found.tables["Plateaus by moving cells"] = rows
    found.tables["Fits over all beta"] = fitted
    found.figures[
        "F3: approach to the limit at finite beta (full lines: smooth, dashed: jump at the repeller), plateau and its time, W1 above and W2 below"
    ] = figure
    return found


def least_bound(beta: float) -> float:
    """min over t of sqrt(log(beta+1)/beta) e^{gt} + e^{-gt/2}, the two-term bound on W_2 with unit constants, C = g and c = g/2."""
    t = np.linspace(0, 30, 3001)
    return float((np.sqrt(np.log(beta + 1) / beta) * np.exp(GAP * t) + np.exp(-GAP * t / 2)).min())


def by_tokens_and_finer_cells(found: claims.Findings, quick: bool) -> None:
    """The independent method, at one temperature: tokens, refined where they part; no cell, no interpolation. And moving cells of half the width."""
    outputs = 26 if quick else 46
    beta, n, tail = (30.0, 200, 1e-4) if quick else (300.0, 600, 1e-7)
    tokens = mf.Particles(n=n, placement="graded", tail=tail, tol=1e-6)
    for law in ("rough",) if quick else LAWS:
        cells = approach(problem_of(law, beta), moving_cells(law, beta), outputs)[1]
        for name, method in (("tokens", tokens), ("cells of half the width", moving_cells(law, beta, 2.0)))[: 1 if quick else 2]:
            other = approach(problem_of(law, beta), method, outputs)[1]
            for p in (1, 2):
                found.numbers[f"{law}: plateau of W{p} by {name} over plateau by moving cells"] = other[p].min() / cells[p].min()


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
