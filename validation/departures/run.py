"""When clusters leave a place that is not theirs to stay: the mean field by moving cells and by graded tokens, and equal tokens beside them."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

import mfpde as mf
from mfpde import claims
from mfpde.figures.style import GUIDE, PALETTE

CIRCLE = mf.Circle()
I = np.eye(2)
ASYMMETRIC = mf.initial.fourier([0.15 * np.exp(1j), 0.125j, 0.1 * np.exp(-0.4j)])  # (1 + .3 cos(x-1) + .25 sin 2x + .2 cos(3x+.4)) / 2 pi
TURN = np.deg2rad(20.0)
SLOPE = (1 - np.cos(TURN)) / 0.5  # |Av|^2 (1 - cos 20 degrees) / g with |Av| = 1, g = 1 - .5, docs/theory
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


def of_half(law: mf.Measure, side: int) -> float:
    """<x_2^2> of the half circle `side x_1 > 0` alone: of the cluster that formed at `side e1`."""
    inside = side * law.points[:, 0] > 0
    return float(law.weights[inside] @ law.points[inside, 1] ** 2 / law.weights[inside].sum())


def cluster_at_plus_e1(law: mf.Measure, problem: mf.Problem) -> float:
    return of_half(law, 1)


def cluster_at_minus_e1(law: mf.Measure, problem: mf.Problem) -> float:
    return of_half(law, -1)


def first_passing(times: np.ndarray, values: np.ndarray) -> float:
    """When `values` first pass 0 upwards, by a cubic spline; NaN if they do not."""
    crossing = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    if not len(crossing):
        return np.nan
    i = int(crossing[0])
    return float(brentq(CubicSpline(times, values), times[i], times[i + 1]))


def passing_times(problem: mf.Problem, method: Any, observables: list[Callable[..., float]], level: float, after: float) -> tuple[list[float], float]:
    """`(times, seconds)`: when each observable passes `level` for the first time after `after`, by a spline through every tenth of a unit of time."""
    started = time.process_time()
    times = np.linspace(after, problem.t_end, round(10 * (problem.t_end - after)) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # equal tokens are here to be seen failing
        run = mf.solve(problem, method, save_at=times, observe=observables)
    found = [first_passing(times, run.observed[observable.__name__] - level) for observable in observables]
    return found, time.process_time() - started


# problem, observable, the level it passes, from when on one looks
KINDS = {"log": (log_departure, second_moment, 0.5, 3.0), "linear": (linear_departure, axis_angle, 0.1, 2.0)}
# kind, beta, final time, cells, lightest tokens; cells so that beta |A| (2 pi / cells)^2 <= 0.3 where the departure hangs on tails
QUICK = [("log", 30, 9.0, 128, 1e-6), ("linear", 30, 6.0, 128, 1e-6)]
FULL = [
    ("log", 30, 9.0, 256, 1e-9),
    ("log", 100, 11.0, 256, 1e-9),
    ("log", 300, 13.0, 512, 1e-9),
    ("log", 600, 16.0, 1024, 1e-10),
    ("log", 1000, 18.0, 1024, 1e-10),
    ("linear", 30, 6.0, 256, 1e-9),
    ("linear", 60, 9.0, 256, 1e-9),
    ("linear", 100, 12.0, 256, 1e-10),
    ("linear", 200, 24.0, 256, 1e-12),
]
EQUAL = (200, 2000, 8000)  # numbers of equal tokens
# beta, final time, cells: the log departure cluster by cluster
SINGLY = [(100, 12.0, 384), (200, 13.0, 512), (300, 14.0, 576), (400, 14.0, 704), (600, 16.0, 832), (1000, 18.0, 1088), (1500, 19.0, 1280)]
SINGLY += [(2000, 20.0, 1472), (3000, 20.5, 1792), (6000, 21.5, 2560)]


def single_clusters(found: claims.Findings) -> None:
    """Each of the two clusters by itself: 1.5 per log beta until it is held, then later and steeper."""
    table: list[list[Any]] = [["beta", "cells", "cluster at e1", "cluster at -e1", "seconds"]]
    leaves: dict[float, list[float]] = {}
    for beta, t_end, cells in SINGLY:
        method = mf.Lagrangian(cells=cells, tol=1e-8)
        leaves[beta], seconds = passing_times(log_departure(beta, t_end), method, [cluster_at_plus_e1, cluster_at_minus_e1], 0.5, 3.0)
        table.append([beta, cells, *leaves[beta], seconds])
        print(*table[-1], flush=True)
    slope = lambda k, low, high: (leaves[high][k] - leaves[low][k]) / np.log(high / low)
    found.numbers["cluster at e1, free: slope per log beta, 100 to 300"] = slope(0, 100, 300)
    found.numbers["cluster at e1, held: slope per log beta, 2000 to 6000"] = slope(0, 2000, 6000)
    found.numbers["cluster at -e1, free: slope per log beta, 400 to 1500"] = slope(1, 400, 1500)
    found.numbers["cluster at e1: delay at beta = 400 against its free law"] = leaves[400][0] - leaves[300][0] - 1.5 * np.log(400 / 300)
    found.tables["The log departure cluster by cluster (moving cells): <x_2^2> of each half passes 1/2"] = table


def picture(table: list[list[Any]]) -> Figure:
    """F4: (b') against log beta with the slope 1.5, (b'') against beta with its slope; the mean field by moving cells and graded tokens, and equal tokens."""
    figure = Figure(figsize=(8.5, 3.8), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, kind, title in zip(panels, KINDS, ("log departure (b'): <x_2^2> passes 1/2", "linear departure (b''): axis turned by 0.1"), strict=True):
        rows = [row for row in table[1:] if row[0] == kind]
        if not rows:
            continue
        beta = np.array([row[1] for row in rows], dtype=float)
        times = np.array([row[3:-2] for row in rows], dtype=float)
        for k, (name, style) in enumerate(zip(table[0][5:-2], ("v:", "s:", "D:"), strict=False)):
            axes.plot(beta, times[:, 2 + k], style, color=PALETTE[2 + k], markersize=4, linewidth=1, label=name)
        axes.plot(beta, times[:, 1], "o", color=PALETTE[1], markersize=9, fillstyle="none", label="graded tokens")
        axes.plot(beta, times[:, 0], "x-", color=PALETTE[0], markersize=6, linewidth=1.2, label="moving cells")
        if kind == "log":
            axes.set_xscale("log")
            axes.plot(beta, times[0, 0] + 1.5 * np.log(beta / beta[0]), color=GUIDE, linestyle="--", linewidth=1, label="1.5 per log beta")
            axes.set_xticks(beta, labels=[f"{b:g}" for b in beta])
            axes.minorticks_off()
        else:
            axes.plot(beta, times[-1, 0] + SLOPE * (beta - beta[-1]), color=GUIDE, linestyle="--", linewidth=1, label=f"{SLOPE:.4f} per beta")
        axes.set(xlabel="beta", ylabel="time of departure", title=title)
        axes.title.set_fontsize(10)
        axes.legend(fontsize=8, frameon=False)
    return figure


def measure(quick: bool, rows: list[tuple[str, float, float, int, float]] | None = None) -> claims.Findings:
    found = claims.Findings()
    numbers = [1000] if quick else EQUAL
    heads = ["kind", "beta", "cells", "moving cells", "graded tokens", *(f"{n} equal tokens" for n in numbers), "seconds: cells", "graded"]
    table: list[list[Any]] = [heads]
    times: dict[tuple[str, float], float] = {}
    for kind, beta, t_end, cells, tail in rows or (QUICK if quick else FULL):
        problem_of, observable, level, after = KINDS[kind]
        tokens = lambda n, tail: mf.Particles(n=n, placement="graded", tail=tail, tol=1e-8)
        leaves = lambda method: passing_times(problem_of(beta, t_end), method, [observable], level, after)  # noqa: B023
        moving, s_moving = leaves(mf.Lagrangian(cells=cells, tol=1e-8))
        graded, s_graded = leaves(tokens(1000 if quick else 2000, tail))
        equal = [leaves(tokens(n, 0.9))[0][0] for n in numbers]  # no share is heavier than that: equal shares
        table.append([kind, beta, cells, moving[0], graded[0], *equal, s_moving, s_graded])
        print(*table[-1], flush=True)
        times[kind, beta] = graded[0]
        found.numbers[f"{kind} departure, beta={beta:g}: time by graded tokens"] = graded[0]
        found.numbers[f"{kind} departure, beta={beta:g}: moving cells over graded tokens - 1"] = moving[0] / graded[0] - 1
    if ("log", 300) in times and ("log", 30) in times:
        found.numbers["log departure: slope per log beta, 30 to 300"] = (times["log", 300] - times["log", 30]) / np.log(10)
    if ("log", 1000) in times and ("log", 300) in times:
        found.numbers["log departure: slope per log beta, 300 to 1000"] = (times["log", 1000] - times["log", 300]) / np.log(10 / 3)
    if ("linear", 200) in times and ("linear", 100) in times:
        found.numbers["linear departure: slope per beta, 100 to 200"] = (times["linear", 200] - times["linear", 100]) / 100
    found.tables["Departure times; equal tokens look converged and are early where the departure hangs on tails"] = table
    found.figures["Departure times of the mean field by two methods, and of equal tokens (F4)"] = picture(table)
    if not quick and rows is None:
        single_clusters(found)
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
