"""When clusters leave a place that is not theirs to stay: the mean field by moving cells and by graded tokens, and equal tokens beside them. See README.md.

python validation/departures/run.py            all inverse temperatures, about 20 minutes on two cores
python validation/departures/run.py --quick    one of each kind, two minutes
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

import mfpde as mf

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


def passing_time(problem: mf.Problem, method: Any, observable: Callable[..., float], level: float, after: float) -> tuple[float, float, dict[str, Any]]:
    """`(time, seconds, statistics)`: when the observable passes `level` for the first time after `after`."""
    started = time.process_time()
    times = np.linspace(after, problem.t_end, round(10 * (problem.t_end - after)) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # equal tokens are here to be seen failing
        run = mf.solve(problem, method, save_at=times, observe=[observable])
    values = run.observed[observable.__name__] - level
    crossing = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    if not len(crossing):
        return np.nan, time.process_time() - started, run.stats
    i = int(crossing[0])
    return float(brentq(CubicSpline(times, values), times[i], times[i + 1])), time.process_time() - started, run.stats


KINDS = {
    "log": (log_departure, second_moment, 0.5, 3.0),
    "linear": (linear_departure, axis_angle, 0.1, 2.0),
}


def methods(kind: str, beta: float, settings: dict[str, Any]) -> dict[str, Any]:
    cells, tokens, tail = settings["cells"], settings["tokens"], settings["tail"]
    return {
        "moving cells": mf.Lagrangian(cells=cells, tol=1e-8),
        "graded tokens": mf.Particles(n=tokens, placement="graded", tail=tail, tol=1e-8),
        "equal tokens": mf.Particles(n=tokens, placement="graded", tail=0.5, tol=1e-8),  # a tail of one half: no refinement
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="one row, e.g. log:30")
    arguments = parser.parse_args()
    expected = json.loads((Path(__file__).parent / "expected.json").read_text())
    failures = 0
    for row in expected["quick" if arguments.quick else "full"]:
        kind, beta = row["kind"], row["beta"]
        if arguments.only and arguments.only != f"{kind}:{beta:g}":
            continue
        problem_of, observable, level, after = KINDS[kind]
        found = {}
        for name, method in methods(kind, beta, row).items():
            found[name], seconds, stats = passing_time(problem_of(beta, row["t_end"]), method, observable, level, after)
            details = {key: stats[key] for key in ("steps", "most nodes", "unresolved cells", "importance cut") if key in stats}
            print(f"{kind:6} beta {beta:5g}  {name:14} {found[name]:8.4f}   {seconds:6.1f} s  {details}", flush=True)
        apart = abs(found["moving cells"] / found["graded tokens"] - 1)
        off = abs(found["graded tokens"] / row["time"] - 1)
        for claim, value, most in ((f"{kind} {beta:g}: two methods agree", apart, 0.02), (f"{kind} {beta:g}: departure at {row['time']}", off, row["within"])):
            holds = bool(value <= most)
            failures += not holds
            print(f"{'holds' if holds else 'FAILS'}: {claim}, off by {value:.2%}, wanted {most:.0%}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
