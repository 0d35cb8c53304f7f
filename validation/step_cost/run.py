"""What a step costs: FiniteVolume against FiPy, FFT against direct attention, and memory that grows like the number of cells."""

from __future__ import annotations

import sys
import time
import tracemalloc
from functools import partial

import numpy as np

import mfpde as mf
from mfpde import claims

CIRCLE = mf.Circle()


def seconds(work, repeat: int) -> float:
    """The best of `repeat` runs, after one to warm up and compile."""
    work()
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def step_time(method, cells: int, steps: int) -> float:
    """Seconds a step, at infinite temperature, where attention is cheapest and the flux shows most."""
    scheme = type(method)(cells=cells, **({"order": 1} if isinstance(method, mf.FiniteVolume) else {})).prepare(mf.cases.poisson(t_end=100.0)[0])
    state = scheme.initial()

    def some_steps():
        nonlocal state
        for _ in range(steps):
            state = scheme.advance(state)

    return seconds(some_steps, 3) / steps


def peak_memory(cells: int) -> int:
    """Bytes allocated at the peak of preparing a run and making two steps."""
    problem, _ = mf.cases.concentration(t_end=1.0)
    tracemalloc.start()
    scheme = mf.FiniteVolume(cells=cells).prepare(problem)
    scheme.advance(scheme.advance(scheme.initial()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(quick: bool) -> dict[str, float]:
    found = {}
    for cells in (1024,) if quick else (1024, 16384):
        ours, fipy = step_time(mf.FiniteVolume(), cells, 20), step_time(mf.FiPyUpwind(), cells, 5)
        print(f"N = {cells:6d}: FiniteVolume {ours * 1e3:8.3f} ms a step, FiPyUpwind {fipy * 1e3:8.3f} ms")
        found[f"FiPyUpwind / FiniteVolume, a step, N={cells}"] = fipy / ours
    for cells in (1024,) if quick else (1024, 8192):
        mesh = CIRCLE.mesh(cells)
        weights = mf.initial.uniform(CIRCLE).cell_masses(mesh)
        attention = mf.Attention.identity(2, 10.0)
        times = {}
        for method in ("fft", "direct"):
            operator = mf.attention.plan(attention, CIRCLE, mesh, method=method)
            times[method] = seconds(partial(operator.evaluate, weights), 3)
        print(f"N = {cells:6d}: attention by FFT {times['fft'] * 1e3:8.3f} ms, direct {times['direct'] * 1e3:8.3f} ms")
        found[f"direct / FFT attention, N={cells}"] = times["direct"] / times["fft"]
    small, large = peak_memory(8192), peak_memory(65536)
    print(f"peak memory: {small / 1e6:.1f} MB at 8192 cells, {large / 1e6:.1f} MB at 65536")
    found["exponent of peak memory in N"] = float(np.log(large / small) / np.log(8))
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__))
