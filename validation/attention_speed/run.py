"""Attention on the circle: what the certified sum costs against the direct sum and against a plain FFT, on meshes and for scattered particles.

All times are CPU seconds of one thread, or of two threads divided by two, so that they can be compared on a machine that does other things.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable

import numba
import numpy as np
from scipy import fft

import mfpde as mf
from mfpde import claims
from mfpde.attention.blocks import PARALLEL_POINTS, Blocks
from mfpde.attention.direct import EPS, Direct

CIRCLE = mf.Circle()
TOL = 1e-10
MATRICES = {"A = I": np.eye(2), "general A": np.array([[1.3, 0.4], [-0.5, 0.6]])}
STATES = ("uniform", "clustered", "near-Dirac")
THREADS = min(2, numba.config.NUMBA_NUM_THREADS)


def seconds(work: Callable[[], object], repeats: int, threads: int = 1) -> float:
    """CPU seconds a thread, the best of `repeats` runs after one that compiles."""
    work()
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / threads


def state(name: str, theta: np.ndarray) -> np.ndarray:
    """Masses of a uniform density, of three von Mises bumps, or of three atoms of 3, 1 and 5 cells."""
    if name == "uniform":
        w = np.ones_like(theta)
    elif name == "clustered":
        bumps = ((0.5, 200, 0.5), (2.2, 80, 0.3), (4.4, 500, 0.2))
        w = sum(share * np.sqrt(kappa) * np.exp(kappa * (np.cos(theta - centre) - 1)) for centre, kappa, share in bumps)
    else:
        w = np.zeros_like(theta)
        for centre, width, share in ((0.5, 3, 0.5), (2.2, 1, 0.3), (4.4, 5, 0.2)):
            w[int(centre / (2 * np.pi) * len(theta)) + np.arange(width) - width // 2] += share / width
    return w / w.sum()


def fft_pair(n: int) -> float:
    """Seconds of the two circular convolutions of a plain FFT: one transform forth, two back."""
    rng = np.random.default_rng(0)
    w, k = rng.uniform(size=n), fft.rfft(rng.uniform(size=n))

    def convolve():
        f = fft.rfft(w)
        return fft.irfft(f * k, n), fft.irfft(f * k, n)

    return seconds(convolve, 20)


def direct_seconds(direct: Direct, w: np.ndarray, targets: int) -> float:
    """Seconds of the direct sum on two threads; from a sample of the targets where all would take too long."""
    n = len(w)
    rows = np.arange(n) if targets >= n else np.linspace(0, n - 1, targets).astype(int)
    return seconds(lambda: direct.evaluate(w, rows), 3, THREADS) * n / len(rows)


def mesh_table(cells: int, betas: tuple[float, ...], found: dict[str, float]) -> None:
    """One line for each temperature, matrix and density; the worst ratios go to `found`."""
    theta = 2 * np.pi * (np.arange(cells) + 0.5) / cells
    x = CIRCLE.points(theta)
    plain = fft_pair(cells)
    print(f"\nN = {cells}: plain FFT pair {plain * 1e3:.3f} ms")
    print(f"{'beta':>8} {'A':>9} {'density':>10} {'blocks ms':>10} {'/ FFT':>6} {'direct / blocks':>15} {'bound':>8} {'error':>8}")
    worst: dict[str, list[float]] = {"direct": [], "direct, cold": [], "fft": [], "general": [], "error": [], "bound": []}
    for beta in betas:
        times = {}
        for label, A in MATRICES.items():
            attention = mf.Attention(A, np.eye(2), np.eye(2), beta)
            blocks, direct = Blocks(attention, x, x, TOL), Direct(attention, x, x)
            for name in STATES:
                w = state(name, theta)
                times[label, name] = ours = seconds(lambda b=blocks, w=w: b.evaluate(w), 7, THREADS if cells >= PARALLEL_POINTS else 1)
                theirs = direct_seconds(direct, w, cells if cells <= 8192 else 200)
                log_z, mean, bound = blocks.evaluate(w)
                rows = np.linspace(0, cells - 1, 60).astype(int)
                exact_z, exact_mean, _ = direct.evaluate(w, rows)
                rounding = 16 * EPS * (np.abs(exact_z) + beta)  # of the two logarithms
                error = max(np.abs(mean[rows] - exact_mean).max(), np.maximum(np.abs(log_z[rows] - exact_z) - rounding, 0).max())
                print(f"{beta:8g} {label:>9} {name:>10} {ours * 1e3:10.3f} {ours / plain:6.1f} {theirs / ours:15.0f} {bound.max():8.1e} {error:8.1e}")
                if name == "clustered":  # the direct sum skips empty cells: nine atoms are cheap for it too
                    worst["direct" if beta < 1e4 else "direct, cold"].append(theirs / ours)
                worst["fft"].append(ours / plain)
                worst["error"].append(float(error))
                worst["bound"].append(float(bound.max()))
        worst["general"] += [times["general A", name] / times["A = I", name] for name in STATES]
    found[f"direct / blocks, clustered, beta up to 1e3, N={cells}"] = min(worst["direct"])
    found[f"direct / blocks, clustered, beta = 1e4, N={cells}"] = min(worst["direct, cold"])
    if cells > 8192:
        found[f"blocks / FFT pair, N={cells}"] = max(worst["fft"])
    if cells >= 8192:
        found[f"general A / A = I, N={cells}"] = max(worst["general"])
    found[f"largest error, N={cells}"] = max(worst["error"])
    found[f"largest bound, N={cells}"] = max(worst["bound"])


def crossover(found: dict[str, float]) -> None:
    """What `Blocks.pays` chooses against the better of the two, for small problems."""
    print(f"\n{'N':>6} {'beta':>8} {'blocks ms':>10} {'direct ms':>10}  choice")
    worst = 0.0
    for cells in (64, 128, 256, 512, 1024, 2048):
        theta = 2 * np.pi * (np.arange(cells) + 0.5) / cells
        x, w = CIRCLE.points(theta), state("clustered", theta)
        for beta in (10.0, 1e2, 1e3, 1e4):
            attention = mf.Attention(MATRICES["general A"], np.eye(2), np.eye(2), beta)
            blocks, direct = Blocks(attention, x, x, TOL), Direct(attention, x, x)
            ours, theirs = seconds(lambda b=blocks, w=w: b.evaluate(w), 7), direct_seconds(direct, w, cells)
            pays = Blocks.pays(attention, cells, cells, TOL)
            print(f"{cells:6d} {beta:8g} {ours * 1e3:10.3f} {theirs * 1e3:10.3f}  {'blocks' if pays else 'direct'}")
            worst = max(worst, (ours if pays else theirs) / theirs)
    found["chosen / direct, N=64 to 2048, worst"] = worst


def particles(counts: tuple[int, ...], found: dict[str, float]) -> None:
    """Scattered particles: planning (sorting) and one velocity, and how both grow."""
    attention = mf.Attention(MATRICES["general A"], np.eye(2), np.eye(2), 1e3)
    whole = []
    print(f"\n{'n':>8} {'plan ms':>9} {'velocity ms':>12} {'peak MB':>8}")
    for n in counts:
        y = CIRCLE.points(np.random.default_rng(0).uniform(0, 2 * np.pi, n))
        w = np.full(n, 1 / n)
        threads = THREADS if n >= PARALLEL_POINTS else 1
        planning = seconds(lambda y=y: Blocks(attention, y, y, TOL), 3)
        blocks = Blocks(attention, y, y, TOL)
        velocity = seconds(lambda b=blocks, w=w: b.evaluate(w), 5, threads)
        tracemalloc.start()
        Blocks(attention, y, y, TOL).evaluate(w)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        whole.append((n, planning + velocity, peak))
        print(f"{n:8d} {planning * 1e3:9.1f} {velocity * 1e3:12.1f} {peak / 1e6:8.1f}")
        if n == 100_000:
            found["seconds, 1e5 particles, general A, beta=1000"] = planning + velocity
            found["bytes a particle, n=1e5"] = peak / n
    (n0, t0, _), (n1, t1, _) = whole[0], whole[-1]
    found[f"exponent of the cost, n={n0} to {n1}"] = np.log(t1 / t0) / np.log(n1 / n0)
    found[f"exponent of the memory, n={n0} to {n1}"] = np.log(whole[-1][2] / whole[0][2]) / np.log(n1 / n0)


def finite_volume_steps(found: dict[str, float]) -> None:
    """A step of a run with three clusters at beta = 1e3 on 8192 cells against one whose density stays uniform."""
    times = {}
    for name, law in {"clusters": mf.initial.von_mises_mixture([0.5, 2.2, 4.4], [200, 80, 500], [5, 3, 2]), "uniform": mf.initial.uniform(CIRCLE)}.items():
        scheme = mf.FiniteVolume(cells=8192).prepare(mf.Problem(mf.Attention.identity(2, 1e3), CIRCLE, law, 1.0))
        start = scheme.initial()
        times[name] = seconds(lambda scheme=scheme, start=start: scheme.advance(start), 10)
    print(f"\nFiniteVolume, 8192 cells, beta = 1e3: {times['clusters'] * 1e3:.2f} ms a step with clusters, {times['uniform'] * 1e3:.2f} ms uniform")
    found["FiniteVolume step, clusters / uniform, N=8192, beta=1e3"] = times["clusters"] / times["uniform"]


def measure(quick: bool) -> dict[str, float]:
    numba.set_num_threads(THREADS)
    found: dict[str, float] = {}
    for cells in (1024, 8192) if quick else (1024, 8192, 98304):
        mesh_table(cells, (1e2, 1e4) if quick else (1e1, 1e2, 1e3, 1e4), found)
    crossover(found)
    finite_volume_steps(found)
    particles((10_000, 100_000) if quick else (10_000, 100_000, 1_000_000), found)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__))
