"""The certified error of tilted blocks against the true one, over random states, matrices and temperatures; draws docs/figures/attention_bounds.png."""

from __future__ import annotations

import sys
from pathlib import Path

import mpmath
import numpy as np

import mfpde as mf
from mfpde import claims
from mfpde.attention.blocks import Blocks
from mfpde.attention.direct import EPS

CIRCLE = mf.Circle()
TOLERANCES = (1e-6, 1e-10, 1e-12)
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "attention_bounds.png"


def random_state(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles and weights: uniform, clusters of any width, masses over 300 decades, two von Mises bumps on a mesh, antipodal atoms."""
    theta = rng.uniform(0, 2 * np.pi, n)
    kind = rng.integers(5)
    if kind == 1:
        theta = rng.choice(theta[:3], n) + rng.choice(10 ** rng.uniform(-9, 0, 3), n) * rng.normal(size=n)
    elif kind == 2:
        return theta, 10.0 ** rng.uniform(-300, 0, n)
    elif kind == 3:
        theta = 2 * np.pi * np.arange(n) / n
        return theta, sum(np.exp(-np.minimum(10 ** rng.uniform(0, 5) * (1 - np.cos(theta - rng.uniform(0, 7))), 690)) for _ in range(2))
    elif kind == 4:
        return rng.choice([0.3, 0.3 + np.pi], n) + rng.choice([0, 1e-8], n) * rng.normal(size=n), np.ones(n)
    return theta, rng.uniform(0.1, 1, n)


def random_matrix(rng: np.random.Generator) -> np.ndarray:
    """Singular values in [0.1, 10]."""
    left, right = (np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(2))
    return left @ np.diag(10 ** rng.uniform(-1, 1, 2)) @ right


def true_error(attention: mf.Attention, y: np.ndarray, w: np.ndarray, x: np.ndarray, log_z: float, mean: np.ndarray) -> float:
    """The larger of the relative error of Z beyond its conditioning and the absolute error of m, against 40 digits."""
    with mpmath.workdps(40):
        q = [mpmath.mpf(attention.beta) * mpmath.fsum(mpmath.mpf(attention.A[r, k]) * mpmath.mpf(x[k]) for k in range(2)) for r in range(2)]
        rough = np.log(np.maximum(w, 1e-320)) + y @ np.array([float(v) for v in q])
        near = np.flatnonzero((w > 0) & (rough > rough[w > 0].max() - 90))
        score = [mpmath.log(mpmath.mpf(w[j])) + q[0] * mpmath.mpf(y[j, 0]) + q[1] * mpmath.mpf(y[j, 1]) for j in near]
        top = max(score)
        g = [mpmath.exp(s - top) for s in score]
        total = mpmath.fsum(g)
        exact = top + mpmath.log(total)
        beyond = abs(log_z - exact) - 8 * EPS * abs(exact)
        offsets = [abs(mean[k] - mpmath.fsum(a * mpmath.mpf(y[j, k]) for a, j in zip(g, near, strict=True)) / total) for k in range(2)]
        return float(max(beyond, *offsets, 0))


def measure(quick: bool) -> dict[str, float]:
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(60 if quick else 600):
        n = int(rng.choice([30, 300, 2000]))
        theta, w = random_state(rng, n)
        attention = mf.Attention(random_matrix(rng), np.eye(2), np.eye(2), 10 ** rng.uniform(-2, 6))
        y, x = CIRCLE.points(theta), CIRCLE.points(np.append(rng.uniform(0, 2 * np.pi, 200), 0.3 + np.pi / 2))
        for tol in TOLERANCES:
            log_z, mean, bound = Blocks(attention, y, x, tol).evaluate(w)
            for i in (0, 100, 200):
                rows.append((tol, attention.beta * np.linalg.norm(attention.A, 2), bound[i], bound.max(), true_error(attention, y, w, x[i], log_z[i], mean[i])))
    tol, strength, bound, largest, error = np.array(rows).T
    draw(tol, strength, bound, error)
    found = {"true error / bound, largest": float((error / bound).max())}
    for level in TOLERANCES:
        at = tol == level
        excess = np.median(bound[at] / np.maximum(error[at], 1e-17))
        print(f"tol {level:g}: bound / tol up to {(largest[at] / level).max():.2f}, median of bound / error {excess:.0f}")
        found[f"bound / tol, largest, tol={level:g}"] = float((largest[at] / level).max())
    return found


def draw(tol: np.ndarray, strength: np.ndarray, bound: np.ndarray, error: np.ndarray) -> None:
    """True error and certified error over beta |A|, one panel a tolerance."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(TOLERANCES), figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained")
    for panel, level in zip(axes, TOLERANCES, strict=True):
        at = tol == level
        panel.axhline(level, color="0.3", linewidth=0.8)
        panel.text(2e-3, level * 1.4, "tol", color="0.3", fontsize=9)
        panel.loglog(strength[at], bound[at], ".", color="#c65102", markersize=3, label="certified")
        panel.loglog(strength[at], np.maximum(error[at], 1e-18), ".", color="#1f5fa8", markersize=3, label="true, against 40 digits")
        panel.set_title(f"tol = {level:g}", fontsize=10)
        panel.set_xlabel(r"$\beta\,|A|$")
    axes[0].set_ylabel("error of $Z$ (relative) and $m$ (absolute)")
    axes[-1].legend(loc="upper right", fontsize=9)
    axes[0].set_ylim(5e-19, 1e-5)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=150)
    plt.close(figure)
    print(f"wrote {FIGURE.name}")


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__))
