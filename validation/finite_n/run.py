"""The wall of finitely many tokens: the velocity error of n random tokens over n, beta and d."""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure
from scipy.special import ive

import mfpde as mf
from mfpde import claims
from mfpde.cases import rotation

GEOMETRIES = {2: mf.Circle(), 3: mf.Sphere()}


def mean_field_shrinkage(d: int, kappa: float) -> float:
    """The mean of the uniform law tilted by kappa u is this multiple of u: I_{d/2}(kappa) / I_{d/2-1}(kappa)."""
    return float(ive(d / 2, kappa) / ive(d / 2 - 1, kappa))


def head(d: int, beta: float, *, turned: bool) -> mf.Attention:
    """V = I; A the identity, or an eighth of a turn (a third about the diagonal): no token attends its own place, and the error is not all along x."""
    eye = np.eye(d)
    A = rotation(np.pi / 4) if d == 2 else np.roll(eye, 1, axis=0)
    return mf.Attention(A if turned else eye, eye, eye, beta)


def velocity_error(d: int, beta: float, n: int, rng: np.random.Generator, *, turned: bool) -> float:
    """Root-mean-square of |v_n - v| over tokens, in units of |V|; the mean field of the uniform law is m = A_d(beta) Ax."""
    geometry, attention = GEOMETRIES[d], head(d, beta, turned=turned)
    x = mf.initial.uniform(geometry).sample(n, rng)
    seen = x[: min(n, 300)]
    operator = mf.attention.plan(attention, geometry, x, seen, tol=1e-8, method="direct")
    _, mean = operator.evaluate(np.full(n, 1 / n))
    off = geometry.project(seen, mean - mean_field_shrinkage(d, beta) * (seen @ attention.A.T))
    return float(np.sqrt(np.mean(np.sum(off**2, axis=1))))


def measure(quick: bool) -> claims.Findings:
    seed = 20_260_511
    rng = np.random.default_rng(seed)
    found = claims.Findings(seeds=[seed])
    betas = [30.0, 300.0] if quick else [10.0, 100.0, 1000.0, 10_000.0]
    crowd = np.array([0.01, 0.1, 1.0, 30.0, 300.0])  # tokens in a kernel: n / beta^{(d-1)/2}
    figure = Figure(figsize=(9, 4), layout="constrained")
    rows: list[list] = [["d", "beta", *(f"n = {c:g} beta^((d-1)/2)" for c in crowd)]]
    for axes, d in zip(figure.subplots(1, 2), GEOMETRIES, strict=True):
        seen: dict[float, list[float]] = {}
        for beta in betas:
            width = beta ** ((d - 1) / 2)
            sizes = np.maximum(2, np.round(crowd * width)).astype(int)
            sizes = sizes[sizes <= (100_000 if quick else 400_000)]
            repeats = [max(2, int(40_000 / n) if quick else int(100_000 / n)) for n in sizes]
            errors = [
                np.sqrt(np.mean([velocity_error(d, beta, n, rng, turned=True) ** 2 for _ in range(min(r, 40))])) for n, r in zip(sizes, repeats, strict=True)
            ]
            seen[beta] = errors
            rows.append([d, beta, *errors, *[np.nan] * (len(crowd) - len(errors))])
            axes.loglog(sizes / width, np.array(errors) * np.sqrt(beta), "o-", ms=3, label=rf"$\beta = {beta:g}$")
        # beyond the wall: errors in units of the kernel's width fall like n^{-1/2}, one curve for all beta
        enough = [np.array(errors)[3:5] * np.sqrt(beta) for beta, errors in seen.items() if len(errors) == 5]
        slopes = [np.log(pair[1] / pair[0]) / np.log(10) for pair in enough]
        found.numbers[f"d = {d}: exponent of the error in n beyond the wall"] = float(np.mean(slopes))
        found.numbers[f"d = {d}: error over kernel width at thirty tokens a kernel, largest over smallest beta"] = float(
            seen[betas[-1]][3] * np.sqrt(betas[-1]) / (seen[betas[0]][3] * np.sqrt(betas[0]))
        )
        found.numbers[f"d = {d}: error over kernel width with a hundredth of a token a kernel"] = seen[betas[-1]][0] * np.sqrt(betas[-1])
        hidden = velocity_error(d, betas[-1], int(max(2, 0.01 * betas[-1] ** ((d - 1) / 2))), rng, turned=False)
        found.numbers[f"d = {d}: the same with A = I, which hides it"] = hidden
        axes.loglog(crowd, 1 / np.sqrt(crowd), "k:", label=r"$n^{-1/2}$")
        axes.set(title=f"d = {d}", xlabel=r"$n\,\beta^{-(d-1)/2}$", ylabel=r"error of v over $\beta^{-1/2}$")
        axes.legend(fontsize=7)
    found.tables["Root-mean-square velocity error of n random tokens of the uniform law, |V| = 1, A a rotation without fixed tokens"] = rows
    found.figures["The finite-n wall: below one token in the kernel the velocity is that of the nearest neighbour, not of the mean field"] = figure
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
