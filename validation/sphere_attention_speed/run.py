"""Attention on the sphere: how fast against sums over all pairs, how long for one velocity, how accurate. Prints the tables of docs/attention_sphere.md."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import mfpde as mf
from mfpde import claims
from mfpde.attention.direct import EPS, Direct
from mfpde.attention.exp2 import LOG2E
from mfpde.attention.tree import CHUNK, Tree, softmax_sum
from mfpde.compiled import compiled, parallel_range

SPHERE = mf.Sphere()
TOL = 1e-10
MATRICES = {"A = I": np.eye(3), "general A": np.array([[1.3, 0.2, 0.0], [-0.1, 0.8, 0.1], [0.0, 0.3, 0.5]])}
CENTRES = SPHERE.retract(np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.2], [-0.5, 0.8, -0.3]]))
SAMPLE = 100  # targets checked against the sum over all pairs


def state(name: str, x: np.ndarray, volumes: np.ndarray) -> np.ndarray:
    """Cell masses of a density, or atoms in single cells."""
    if name == "even":
        density = np.ones(len(x))
    elif name == "clusters":
        density = sum(kappa * np.exp(kappa * (x @ c - 1)) for c, kappa in zip(CENTRES, (60.0, 300.0, 900.0), strict=True))
    elif name == "ridge":
        density = np.exp(-2000 * (x @ SPHERE.retract(np.array([0.3, -0.5, 0.8]))) ** 2)
    elif name == "atoms":
        density = np.zeros(len(x))
        density[np.argsort(-(x @ CENTRES.T), axis=0)[:3].ravel()] = 1.0
    else:
        density = np.where(x @ CENTRES[0] > 0.9, np.exp(60 * (x @ CENTRES[0] - 1)), 0.0)
    return density * volumes / (density @ volumes)


@compiled(parallel=True)
def library_exponential(q, y, w, out):
    """The plain compiled sum, one library exponential a pair; targets in parallel."""
    for i in parallel_range(len(q)):
        norm = math.sqrt(q[i, 0] ** 2 + q[i, 1] ** 2 + q[i, 2] ** 2)
        Z, s0, s1, s2 = 0.0, 0.0, 0.0, 0.0
        for j in range(len(w)):
            g = w[j] * math.exp(q[i, 0] * y[j, 0] + q[i, 1] * y[j, 1] + q[i, 2] * y[j, 2] - norm)
            Z += g
            s0 += g * y[j, 0]
            s1 += g * y[j, 1]
            s2 += g * y[j, 2]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = Z, s0, s1, s2


@compiled(parallel=True)
def vectorised_exponential(q, y, log2_w, out):
    """The same with the exponential and the loop of the pruned sums, over all pairs; y (3, n)."""
    for i in parallel_range(len(q)):
        norm = math.sqrt(q[i, 0] ** 2 + q[i, 1] ** 2 + q[i, 2] ** 2)
        out[i] = 0.0
        for begin in range(0, log2_w.size, CHUNK):
            end = min(begin + CHUNK, log2_w.size)
            y0, y1, y2 = y[0, begin:end], y[1, begin:end], y[2, begin:end]
            part = softmax_sum(q[i, 0] * LOG2E, q[i, 1] * LOG2E, q[i, 2] * LOG2E, y0, y1, y2, log2_w[begin:end], norm * LOG2E)
            for k in range(4):
                out[i, k] += part[k]


def fastest(repeats: int, call: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Wall-clock and processor seconds (all threads) of the fastest of `repeats` calls, after one that compiles."""
    call(*arguments)
    wall, processor = [], []
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        call(*arguments)
        wall.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    return min(wall), min(processor)


def direct_seconds(attention: mf.Attention, x: np.ndarray, weights: np.ndarray, targets: int) -> tuple[float, float]:
    """Seconds of the two sums over all pairs, (library, vectorised), extrapolated from the first `targets` targets."""
    q = attention.beta * x[:targets] @ attention.A.T
    out = np.empty((targets, 4))
    y, log2_w = np.ascontiguousarray(x.T), np.log2(np.maximum(weights, 1e-300))
    factor = len(x) / targets
    return factor * fastest(3, library_exponential, q, x, weights, out)[0], factor * fastest(3, vectorised_exponential, q, y, log2_w, out)[0]


@dataclass
class Row:
    """One matrix, one beta, one state: seconds a velocity, who served, and the errors at a sample of the targets."""

    cells: int
    matrix: str
    beta: float
    state: str
    seconds: float
    processor: float
    tiers: dict[str, int]
    tree_seconds: float
    tree_processor: float
    pairs: float
    log_z_error: float
    mean_error: float
    scalar: float = math.nan
    vectorised: float = math.nan

    def __str__(self) -> str:
        tiers = ", ".join(f"{name} {count / self.cells:.0%}" for name, count in self.tiers.items() if count)
        entries = [f"{self.cells}", self.matrix, f"{self.beta:g}", self.state, f"{self.seconds:.4f}", f"{self.processor:.4f}", tiers]
        entries += [f"{self.tree_seconds:.4f}", f"{self.tree_processor:.4f}", f"{self.pairs:.0f}"]
        entries += [f"{self.log_z_error:.0e}", f"{self.mean_error:.0e}"]
        if self.scalar > 0:
            entries += [f"{self.scalar:.2f}", f"{self.vectorised:.3f}", f"{self.scalar / self.seconds:.0f}", f"{self.vectorised / self.seconds:.1f}"]
        return "| " + " | ".join(entries) + " |"


def velocities(cells: int, betas: list[float], states: list[str]) -> Iterator[Row]:
    """One row for every matrix, beta and state, without the sums over all pairs."""
    mesh = SPHERE.mesh(cells)
    x = mesh.centres
    rows = np.sort(np.random.default_rng(0).choice(len(x), SAMPLE, replace=False))
    repeats = 5 if len(x) < 100_000 else 1
    for name, A in MATRICES.items():
        for beta in betas:
            attention = mf.Attention(A, np.eye(3), np.eye(3), beta)
            tree = Tree(attention, x, x, TOL)
            chosen = mf.attention.plan(attention, SPHERE, mesh, tol=TOL)
            direct = Direct(attention, x, x)
            for law in states:
                weights = state(law, x, mesh.volumes)
                seconds, processor = fastest(repeats, chosen.evaluate, weights)
                log_z, mean = chosen.evaluate(weights)
                tree_seconds, tree_processor = fastest(repeats, tree.evaluate, weights, np.arange(len(x)))
                exact_z, exact_mean, _ = direct.evaluate(weights, rows)
                beyond = np.abs(log_z[rows] - exact_z) - 8 * EPS * np.maximum(np.abs(exact_z), 1)  # beyond its conditioning
                yield Row(
                    cells=len(x),
                    matrix=name,
                    beta=beta,
                    state=law,
                    seconds=seconds,
                    processor=processor,
                    tiers=dict(chosen.tiers),
                    tree_seconds=tree_seconds,
                    tree_processor=tree_processor,
                    pairs=tree.pairs / len(x),
                    log_z_error=max(0.0, float(beyond.max())),
                    mean_error=float(np.abs(mean[rows] - exact_mean).max()),
                )


def with_direct(row: Row) -> Row:
    """Add the times of the sums over all pairs, measured on a part of the targets."""
    mesh = SPHERE.mesh(row.cells)
    attention = mf.Attention(MATRICES[row.matrix], np.eye(3), np.eye(3), row.beta)
    row.scalar, row.vectorised = direct_seconds(attention, mesh.centres, state(row.state, mesh.centres, mesh.volumes), 4096)
    return row


HEAD = "| cells | A | beta | state | s | cpu s | served by | tree alone s | cpu s | pairs a target | Z error | m error |"
BASELINE = " library exp | vectorised | ratio | ratio |"


def measure(quick: bool) -> dict[str, float]:
    found = {}
    print(f"{HEAD}{BASELINE}\n|" + "---|" * 16)
    rows = []
    for row in velocities(10242 if quick else 40962, [100.0], ["even", "clusters"]):
        rows.append(with_direct(row))
        print(row, flush=True)
        where = f"{row.state}, {row.matrix}, beta=100, N={row.cells}"
        found[f"{where}: compiled sum / ours"] = row.scalar / row.seconds
        found[f"{where}: vectorised sum / ours"] = row.vectorised / row.seconds
    print(f"\n{HEAD}\n|" + "---|" * 12)
    tables = [(10242, [10.0, 1000.0])] if quick else [(40962, [1.0, 10.0, 30.0, 100.0, 1e3, 1e4]), (163842, [10.0, 30.0, 100.0, 1e3, 1e4])]
    for cells, betas in tables:
        for row in velocities(cells, betas, ["even", "clusters"] if quick else ["even", "clusters", "ridge", "atoms"]):
            rows.append(row)
            print(row, flush=True)
            name = f"seconds, worst state and A, beta={row.beta:g}, N={cells}"
            if cells == tables[-1][0] and row.beta > 10:
                found[name] = max(found.get(name, 0.0), row.seconds)
    print()
    found["error of Z / tol"] = max(row.log_z_error for row in rows) / TOL
    found["error of m / tol"] = max(row.mean_error for row in rows) / TOL
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__))
