"""Every method against every other, each with the error it claims itself: mesh, FiPy, tokens, moving cells, zero temperature."""

from __future__ import annotations

import sys
import warnings
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

import mfpde as mf
from mfpde import claims
from mfpde.methods.zero_temperature import density, flow

CIRCLE = mf.Circle()
I = np.eye(2)
SAFETY = 1.25  # on the difference to half the size, which at first order is the error itself (Roache's grid convergence index, J. Fluids Eng. 116 (1994) 405)
LAW = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])


def problems() -> dict[str, mf.Problem]:
    concentration = mf.cases.concentration(t_end=1.5)[0]
    nearly_cold = mf.Problem(mf.Attention(I, I, np.diag([1.0, 0.2]), 1000.0), CIRCLE, LAW, 1.5)
    return {
        "V = A = I, beta = 5": mf.Problem(mf.Attention.identity(2, 5.0), CIRCLE, LAW, 2.0),
        "general Q, K, V, beta = 100": concentration,
        "V = I + J, beta = 20": mf.cases.gallery(spectrum="complex", beta=20.0, t_end=1.5)[0],
        "V = diag(1, 0.2), beta = 1000": nearly_cold,
        "general Q, K, V, beta = inf": mf.cases.concentration(beta=np.inf, t_end=1.5)[0],
    }


def levels(problem: mf.Problem, quick: bool) -> dict[str, tuple]:
    """For each method its coarse and its fine version: half the size, and the size that is compared."""
    cells, fipy, tokens = (512, 256, 1500) if quick else (4096, 512, 8000)
    found: dict[str, tuple] = {
        "finite volumes": tuple(mf.FiniteVolume(cells=n) for n in (cells // 2, cells)),
        "FiPy": tuple(mf.FiPyUpwind(cells=n) for n in (fipy // 2, fipy)),
    }
    if problem.attention.beta == np.inf:  # tokens attend their nearest neighbour: a velocity with jumps, for steps of fixed size
        found["tokens"] = tuple(mf.Particles(n=n, placement="nodes", steps=n // 5) for n in (tokens // 2, tokens))
    else:
        found["tokens"] = tuple(mf.Particles(n=n, placement="nodes", tol=1e-8) for n in (tokens // 2, tokens))
        resolved = int(2 * np.pi * np.sqrt(max(problem.attention.beta, 20.0) / 0.1))
        found["moving cells"] = tuple(mf.Lagrangian(cells=n, tol=1e-8) for n in (resolved, 2 * resolved))
    return found


def cold_claim(problem: mf.Problem) -> float:
    """What the zero-temperature flow claims at finite beta: |V| (|grad log rho_t| + 1/2) / (beta |Ax|), averaged over the tokens, grown by e^{L(t-s)}."""
    attention, t_end = problem.attention, problem.t_end
    start = problem.initial.nodes(400)
    h, total, steps = 1e-4, 0.0, 12
    growth = float(np.linalg.norm(attention.drift, 2)) / float(np.linalg.svd(attention.A)[1][-1])
    for s in (np.arange(steps) + 0.5) * t_end / steps:
        x = flow(attention, start.points, s)
        theta = CIRCLE.angles(x @ attention.A.T / np.linalg.norm(x @ attention.A.T, axis=1, keepdims=True))
        left, right = (np.log(density(problem, s, CIRCLE.points(theta + d))) for d in (-h, h))
        error = (np.abs(right - left) / (2 * h) + 0.5) / (attention.beta * np.linalg.norm(x @ attention.A.T, axis=1))
        total += float(start.weights @ error) * np.exp(growth * (t_end - s)) * t_end / steps
    return float(np.linalg.norm(attention.V, 2)) * total


def solved(problem: mf.Problem, quick: bool) -> tuple[dict[str, mf.Measure], dict[str, float]]:
    """`(laws at the end, the error each method claims for its own, in W1)`: SAFETY times the distance to its own version of half the size."""
    laws, errors = {}, {}
    for name, (coarse, fine) in levels(problem, quick).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            half, law = (mf.solve(problem, method).final for method in (coarse, fine))
        laws[name], errors[name] = law, SAFETY * mf.wasserstein(half, law, CIRCLE, p=1)
    if mf.limits.spectrum(problem.attention).kind == "real" and problem.attention.beta >= 1000:
        half, law = (mf.solve(problem, mf.ZeroTemperature(nodes=n)).final for n in (2000, 8000))
        laws["zero temperature"] = law
        errors["zero temperature"] = SAFETY * mf.wasserstein(half, law, CIRCLE, p=1) + (cold_claim(problem) if problem.attention.beta < np.inf else 0.0)
    return laws, errors


def measure(quick: bool) -> claims.Findings:
    found = claims.Findings()
    chosen = problems()
    if quick:
        chosen = {name: chosen[name] for name in list(chosen)[1::2] + list(chosen)[-1:]}
    figure = Figure(figsize=(3.6 * len(chosen), 3.4), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(chosen)))
    for axes, (title, problem) in zip(panels, chosen.items(), strict=True):
        laws, errors = solved(problem, quick)
        names = list(laws)
        rows: list[list] = [["W1, in brackets over the sum of claims", "claims", *names]]
        shares = np.full((len(names), len(names)), np.nan)
        cells = {}
        for a, b in combinations(names, 2):
            distance = mf.wasserstein(laws[a], laws[b], CIRCLE, p=1)
            share = distance / (errors[a] + errors[b])
            cells[a, b] = cells[b, a] = f"{distance:.1e} ({share:.2f})"
            i, j = names.index(a), names.index(b)
            shares[i, j] = shares[j, i] = share
            found.numbers[f"{title}: {a} against {b}, distance over the sum of the claims"] = share
        rows += [[a, f"{errors[a]:.1e}", *(cells.get((a, b), "") for b in names)] for a in names]
        found.tables[f"{title}, t = {problem.t_end:g}"] = rows
        image = axes.imshow(shares, vmin=0, vmax=1.2, cmap="RdYlGn_r")
        axes.set_xticks(range(len(names)), names, rotation=60, fontsize=6, ha="right")
        axes.set_yticks(range(len(names)), names, fontsize=6)
        axes.set_title(title, fontsize=7)
    figure.colorbar(image, ax=list(panels), label="distance / sum of claims")
    found.figures["Cross-validation: distance of two methods over the sum of the errors they claim; above 1 a cell fails"] = figure
    found.numbers["methods"] = len({name for caption in found.tables.values() for name in caption[0][2:]})
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
