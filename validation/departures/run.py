"""When clusters leave a place that is not theirs to stay: the mean field by moving cells and by graded tokens, and equal tokens beside them."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

import mfpde as mf
from mfpde import claims

CIRCLE = mf.Circle()
I = np.eye(2)
ASYMMETRIC = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])  # (1 + .3 cos(x-1) + .25 sin 2x + .2 cos(3x+.4)) / 2 pi
TURN = np.deg2rad(20.0)
ROTATION = np.array([[np.cos(TURN), -np.sin(TURN)], [np.sin(TURN), np.cos(TURN)]])


def log_departure(beta: float, t_end: float) -> mf.Problem:
    """(b'): the top of VA is e1, that of V is e2."""
    return mf.Problem(mf.Attention(np.diag([4.0, 1.0]), I, np.diag([1.0, 2.0]), beta), CIRCLE, ASYMMETRIC, t_end)


def linear_departure(beta: float, t_end: float) -> mf.Problem:
    """(b''): tokens gather at +-e1, but look 20 degrees away."""
    return mf.Problem(mf.Attention(ROTATION, I, np.diag([1.0, 0.5]) @ ROTATION.T, beta), CIRCLE, mf.initial.uniform(CIRCLE), t_end)


def second_moment(law: mf.Measure, problem: mf.Problem) -> float:
    """<x_2^2>, 0 at +-e1 and 1 at +-e2."""
    return float(law.weights @ law.points[:, 1] ** 2)


def axis_angle(law: mf.Measure, problem: mf.Problem) -> float:
    """|angle| of the axis of the law against e1, in radians: half the argument of the second Fourier moment."""
    return abs(0.5 * float(np.angle(mf.diagnostics.fourier_moments(law, 2))))


def passing_time(problem: mf.Problem, method: Any, observable: Callable[..., float], level: float, after: float) -> tuple[float, float]:
    """`(time, seconds)`: when the observable passes `level` for the first time after `after`, by a cubic spline through every tenth of a unit of time."""
    started = time.process_time()
    times = np.linspace(after, problem.t_end, round(10 * (problem.t_end - after)) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # equal tokens are here to be seen failing
        run = mf.solve(problem, method, save_at=times, observe=[observable])
    values = run.observed[observable.__name__] - level
    crossing = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    if not len(crossing):
        return np.nan, time.process_time() - started
    i = int(crossing[0])
    return float(brentq(CubicSpline(times, values), times[i], times[i + 1])), time.process_time() - started


# problem, observable, the level it passes, from when on one looks
KINDS = {"log": (log_departure, second_moment, 0.5, 3.0), "linear": (linear_departure, axis_angle, 0.1, 2.0)}
# kind, beta, final time, cells, lightest tokens
QUICK = [("log", 30, 9.0, 128, 1e-6), ("linear", 30, 6.0, 128, 1e-6)]
FULL = [
    ("log", 30, 9.0, 256, 1e-9),
    ("log", 100, 11.0, 256, 1e-9),
    ("log", 300, 13.0, 256, 1e-9),
    ("log", 600, 16.0, 0, 1e-10),  # 0: no moving cells; beyond beta |A| of about 1200 they need more nodes than they are worth (docs/moving_cells)
    ("log", 1000, 18.0, 0, 1e-10),
    ("linear", 30, 6.0, 256, 1e-9),
    ("linear", 60, 9.0, 256, 1e-9),
    ("linear", 100, 12.0, 256, 1e-10),
    ("linear", 200, 24.0, 256, 1e-12),
]


def measure(quick: bool, rows: list[tuple[str, float, float, int, float]] | None = None) -> claims.Findings:
    found = claims.Findings()
    table: list[list[Any]] = [["kind", "beta", "moving cells", "graded tokens", "equal tokens", "seconds: cells", "graded", "equal"]]
    times: dict[tuple[str, float], float] = {}
    for kind, beta, t_end, cells, tail in rows or (QUICK if quick else FULL):
        problem_of, observable, level, after = KINDS[kind]
        n = 1000 if quick else 2000
        methods = (
            mf.Lagrangian(cells=cells, tol=1e-8) if cells else None,
            mf.Particles(n=n, placement="graded", tail=tail, tol=1e-8),
            mf.Particles(n=n, placement="graded", tail=0.9, tol=1e-8),  # nothing is heavier: equal shares
        )
        moving, graded, equal = (passing_time(problem_of(beta, t_end), method, observable, level, after) if method else (np.nan, 0.0) for method in methods)
        table.append([kind, beta, moving[0], graded[0], equal[0], moving[1], graded[1], equal[1]])
        print(*table[-1], flush=True)
        times[kind, beta] = graded[0]
        found.numbers[f"{kind} departure, beta={beta:g}: time by graded tokens"] = graded[0]
        if cells:
            found.numbers[f"{kind} departure, beta={beta:g}: moving cells over graded tokens - 1"] = moving[0] / graded[0] - 1
    if ("log", 300) in times and ("log", 30) in times:
        found.numbers["log departure: slope per log beta, 30 to 300"] = (times["log", 300] - times["log", 30]) / np.log(10)
    if ("linear", 200) in times and ("linear", 100) in times:
        found.numbers["linear departure: slope per beta, 100 to 200"] = (times["linear", 200] - times["linear", 100]) / 100
    found.tables["Departure times; equal tokens look converged and are early where the departure hangs on tails"] = table
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
