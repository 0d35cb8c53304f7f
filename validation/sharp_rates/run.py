"""The exponents of the approach to the limit law at zero temperature: fitted on the exact flow, and the curve confirmed on a mesh."""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import claims
from mfpde.claims import fits

CIRCLE = mf.Circle()
I = np.eye(2)
SMOOTH = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])
UNIFORM = mf.initial.uniform(CIRCLE)
JUMPS = mf.initial.from_density(lambda x: np.where(x @ [0.8, 0.6] > 0, 1.5, 0.5), CIRCLE)


def head(A: np.ndarray, M: np.ndarray) -> mf.Attention:
    """The head with this A and this drift M = VA, at zero temperature."""
    return mf.Attention(A, I, M @ np.linalg.inv(A), np.inf)


def commuting(av: float, aw: float) -> mf.Attention:
    """Eigenvalues 1 and 0.2 of the drift, |Av| and |A w2| as given."""
    return head(np.diag([av, aw]), np.diag([1.0, 0.2]))


SKEW = np.array([[1.0, 0.6], [0.0, 0.3]])
PROBLEMS = {
    "symmetric, A = I": (commuting(1, 1), UNIFORM),
    "|Av|, |Aw| = 1, 2": (commuting(1, 2), UNIFORM),
    "|Av|, |Aw| = 2, 1": (commuting(2, 1), SMOOTH),
    "|Av|, |Aw| = 1, 0.4": (commuting(1, 0.4), SMOOTH),
    "non-normal, A = I": (head(I, SKEW), SMOOTH),
    "non-normal, general A": (head(np.array([[1.2, 0.3], [0.0, 0.8]]), np.array([[1.0, 0.5], [0.0, 0.2]])), SMOOTH),
    "jumps, A = I": (commuting(1, 1), JUMPS),
}
HIGH, LOW = 1e-2, 1e-4  # the window: distances between these two; the next exponential has faded, the exact flow still has all its digits with few atoms


def branch(attention: mf.Attention, p: int) -> str:
    """Which of the two rates is the smaller one."""
    rates = mf.limits.rates(attention)
    escape = rates.k * rates.escape / p
    return "equal" if abs(escape - rates.approach) < 1e-9 else ("escape" if escape < rates.approach else "approach")


def distances(run: mf.Trajectory, problem: mf.Problem, p: int) -> np.ndarray:
    limit = mf.limits.push_forward(problem)
    return np.array([mf.wasserstein(law, limit, CIRCLE, p=p) for law in run.measures])


def fitted_rates(found: claims.Findings, quick: bool) -> None:
    """|c_fit - c_pred| over (interval of the fit + 3 % of c_pred), for each problem and p."""
    rows: list[list] = [["problem", "p", "branch", "predicted c", "fitted c", "95 % interval", "residual of log W", "window in t"]]
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = dict(zip((1, 2), figure.subplots(1, 2), strict=True))
    for name, (attention, law) in PROBLEMS.items():
        for p in (1, 2):
            predicted = mf.limits.rate(attention, p)
            horizon = (np.log(1 / LOW) + 4) / predicted
            problem = mf.Problem(attention, CIRCLE, law, horizon)
            times = np.linspace(0.1 if quick else 0.0, 1.0, 25 if quick else 61) * horizon
            run = mf.solve(problem, mf.ZeroTemperature(nodes=1500 if quick else 4000), save_at=times)
            W = distances(run, problem, p)
            window = fits.between(W, HIGH, LOW)
            equal = branch(attention, p) == "equal"
            fit = fits.decay(run.times[window], W[window], p=p, factor="linear" if equal else "none")
            found.numbers[f"{name}, p={p}: miss over interval + 3 %"] = abs(fit.slope - predicted) / (fit.interval + 0.03 * predicted)
            rows.append([name, p, branch(attention, p), predicted, fit.slope, fit.interval, fit.residual, f"{fit.window[0]:.1f} to {fit.window[1]:.1f}"])
            (line,) = panels[p].semilogy(run.times, W, "-", lw=1)
            panels[p].semilogy(run.times[window], W[window], ".", ms=4, color=line.get_color(), label=f"{name}: c = {fit.slope:.3f} ({predicted:.3f})")
    for p, axes in panels.items():
        axes.set(xlabel="t", ylabel=f"$W_{p}$ to the limit (radians)", ylim=(1e-6, 3))
        axes.legend(fontsize=6)
    found.tables[
        "Fitted and predicted exponents at zero temperature; window: W between 1e-2 and 1e-4; where the rates are equal the fit has the factor t + t0"
    ] = rows
    found.figures["Distance to the limit law at zero temperature, exact flow; dots: the window of the fit; in brackets: min(k a / p, b)"] = figure
    found.numbers["branches covered (escape, approach, equal)"] = len({row[2] for row in rows[1:]})
    found.numbers["problems"] = len(rows) - 1


def on_a_mesh(found: claims.Findings, quick: bool) -> None:
    """The same curves by finite volumes at beta = inf: largest relative difference of W while it is above twenty cells."""
    cells = 512 if quick else 4096
    width = 2 * np.pi / cells
    for name in ("|Av|, |Aw| = 1, 2", "|Av|, |Aw| = 2, 1", "non-normal, general A")[2 if quick else 0 :]:
        attention, law = PROBLEMS[name]
        for p in (1, 2):
            problem = mf.Problem(attention, CIRCLE, law, np.log(1 / (10 * width)) / mf.limits.rate(attention, p))
            times = np.linspace(0, problem.t_end, 9)
            mesh = distances(mf.solve(problem, mf.FiniteVolume(cells=cells), save_at=times), problem, p)
            exact = distances(mf.solve(problem, mf.ZeroTemperature(nodes=2000), save_at=times), problem, p)
            above = exact > 20 * width
            found.numbers[f"{name}, p={p}: mesh against exact flow, relative"] = float(np.abs(mesh[above] / exact[above] - 1).max())


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    fitted_rates(found, quick)
    on_a_mesh(found, quick)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
