"""Numbers against time or resolution: distances with predicted slopes, observed orders, energies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mfpde.errors import InputError, unknown_name
from mfpde.figures.style import DASHES, GUIDE, MARKERS, PALETTE, Times, _axes, _by, _figure, _legend_below, _short
from mfpde.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mfpde.convergence import ConvergenceTable
    from mfpde.model import Problem


def decay(
    series: Mapping[str, tuple[Times, Times]],
    *,
    rates: Mapping[str, float] | None = None,
    plateaus: Mapping[str, float] | None = None,
    p: int | None = None,
    title: str = "Approach to the limit law",
) -> Figure:
    r"""Distances against time on a logarithmic axis, with the slopes that theory predicts.

    Parameters
    ----------
    series : mapping from label to (times, values)
        Values that are zero or not finite are left out: a logarithmic axis has no place for them.
    rates : mapping from label to exponent c, optional
        Straight lines `e^{-c t}`. Where the label is that of a series the line lies along this series, in its colour; any other label is the text
        of a line along the first series. It touches where the slope of the series agrees best with it, slightly raised.
    plateaus : mapping from label of a series to level, optional
        Dotted marks at the level where the series stays.
    p : int, optional
        Order of the Wasserstein distance, for the axis.
    title : str

    Raises
    ------
    InputError
        If there is no series, times and values differ in length, a rate is not finite, or a plateau names no series.

    Examples
    --------
    >>> import mfpde as mf
    >>> t = np.linspace(0, 10, 41)
    >>> figure = mf.figures.decay({"density": (t, np.exp(-0.4 * t) + 1e-2)}, rates={"predicted, $e^{-0.4 t}$": 0.4}, plateaus={"density": 1e-2}, p=2)
    >>> figure.axes[0].get_yscale(), figure.axes[0].get_ylabel()
    ('log', '$W_2$ (rad)')
    """
    if not series:
        raise InputError("A decay plot needs at least one series.\n  series is empty.\n  Give a mapping from labels to (times, values).")
    curves = {label: _curve(label, *pair) for label, pair in series.items()}
    for label in plateaus or {}:
        if label not in curves:
            raise unknown_name("series", label, curves)
    colours = {label: PALETTE[number % len(PALETTE)] for number, label in enumerate(curves)}
    figure = _figure(4.2)
    axes = _axes(figure)
    drawn = {label: (t[v > 0], v[v > 0]) for label, (t, v) in curves.items()}
    values = np.concatenate([v for _, v in drawn.values()])
    if len(values):
        axes.set_yscale("log")
        axes.set_ylim(values.min() / 1.6, values.max() * 2.2)
    else:
        axes.set_ylim(0, 1)
        axes.text(0.5, 0.5, "all values are zero", transform=axes.transAxes, ha="center", va="center", color=GUIDE)
    for number, (label, (t, v)) in enumerate(drawn.items()):
        style: dict[str, Any] = {"linestyle": DASHES[(number + 2 * (number // len(PALETTE))) % len(DASHES)]}
        if len(t) <= 15:
            style |= {"marker": MARKERS[number % len(MARKERS)], "markersize": 4.5}
        axes.plot(t, v, color=colours[label], linewidth=1.6, label=label, **style)
    for label, rate in (rates or {}).items():
        if not np.isfinite(rate):
            raise InputError(f"A slope is a finite exponent.\n  rates[{label!r}] = {rate!r}")
        along = label if label in curves else next(iter(curves))
        text = f"predicted, $e^{{-{rate:.3g}t}}$" if label in curves else label
        _slope_line(axes, *drawn[along], rate, colours[label] if label in curves else GUIDE, text)
    for label, level in (plateaus or {}).items():
        _plateau_mark(axes, *drawn[label], level, colours[label])
    axes.set_xlabel("time $t$")
    axes.set_ylabel("distance (rad)" if p is None else f"$W_{p}$ (rad)")
    axes.set_title(title, fontsize=11)
    axes.grid(True, which="major", axis="y", color="0.9", linewidth=0.6, zorder=0)
    _legend_below(figure, [axes])
    return figure


def _curve(label: str, times: Times, values: Times) -> tuple[np.ndarray, np.ndarray]:
    """Times and values as arrays of one length, what is not finite left out."""
    t, v = np.atleast_1d(np.asarray(times, dtype=float)), np.atleast_1d(np.asarray(values, dtype=float))
    if t.ndim != 1 or t.shape != v.shape:
        raise InputError(f"A series has one value a time.\n  {label}: times has shape {t.shape}, values has shape {v.shape}.")
    good = np.isfinite(t) & np.isfinite(v)
    return t[good], v[good]


def _slope_line(axes: Axes, t: np.ndarray, v: np.ndarray, rate: float, colour: str, text: str) -> None:
    """`C e^{-rate t}` within the limits of the axes, where C makes it touch the series at its best-fitting slope, raised by 1.35."""
    if len(t) < 2:
        return
    slopes = -np.diff(np.log(v)) / np.diff(t)
    reach = max(1, len(slopes) // 10)  # compare slopes over a tenth of the series: single steps are noisy
    smooth = np.convolve(slopes, np.full(reach, 1 / reach), mode="valid")
    at = int(np.argmin(np.abs(smooth - rate))) + reach // 2
    bottom, _ = axes.get_ylim()
    if rate > 0:
        end = min(t[-1], t[at] + np.log(1.35 * v[at] / bottom) / rate)
    else:
        end = t[-1]
    line_t = np.array([t[0], end])
    exponents = np.log(1.35 * v[at]) - rate * (line_t - t[at])
    axes.plot(line_t, np.exp(np.clip(exponents, -700, 700)), color=colour, linewidth=1.0, linestyle=(0, (1, 1.2)), label=text, zorder=1.5, scaley=False)


def _plateau_mark(axes: Axes, t: np.ndarray, v: np.ndarray, level: float, colour: str) -> None:
    """A thin line at the level over the times at which the series is within a factor of 1.5 of it, and its value at the right end."""
    if not len(t) or not level > 0:
        return
    near = t[np.abs(np.log(v / level)) < np.log(1.5)]
    start, end = (near[0], near[-1]) if len(near) else (t[0], t[-1])
    axes.plot([start, end], [level, level], color=colour, linewidth=3.5, alpha=0.3, solid_capstyle="butt", zorder=1, scaley=False)
    axes.annotate(f"{level:.2g}", (end, level), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8, color=colour, annotation_clip=False)


def order_plot(table: ConvergenceTable | Mapping[str, ConvergenceTable], *, title: str = "Error against resolution") -> Figure:
    r"""Errors of one or several refinements on logarithmic axes, with their fitted orders and guides of the nearest simple order.

    Parameters
    ----------
    table : ConvergenceTable, or mapping from label to ConvergenceTable
        Made by `converge`. Errors that are zero are left out.

    Raises
    ------
    InputError
        If the mapping is empty.

    Examples
    --------
    >>> import mfpde as mf
    >>> from mfpde import exact
    >>> problem, method = mf.cases.poisson(t_end=0.5)
    >>> table = mf.converge(problem, method, [32, 64, 128], reference=exact.poisson_law(0.3, 0.5))
    >>> mf.figures.order_plot(table).axes[0].get_xlabel()
    'cells'
    """
    tables = dict(table) if isinstance(table, Mapping) else {_short(table.method): table}
    if not tables:
        raise InputError("An order plot needs at least one table.\n  The mapping is empty.")
    figure = _figure(4.2)
    axes = _axes(figure)
    axes.set_xscale("log")
    drawn = {label: (each.levels[each.errors > 0], each.errors[each.errors > 0]) for label, each in tables.items()}
    some = [(n, e) for n, e in drawn.values() if len(n)]
    levels = np.unique(np.concatenate([each.levels for each in tables.values()])).astype(float)
    axes.set_xlim(levels[0] / 1.25, levels[-1] * 1.25)
    if some:
        axes.set_yscale("log")
        axes.set_ylim(min(e.min() for _, e in some) / 3, max(e.max() for _, e in some) * 2)
    else:
        axes.set_ylim(0, 1)
        axes.text(0.5, 0.5, "all errors are zero", transform=axes.transAxes, ha="center", va="center", color=GUIDE)
    guides: dict[float, tuple[np.ndarray, np.ndarray]] = {}
    for number, (label, each) in enumerate(tables.items()):
        n, e = drawn[label]
        order, scatter = each.fitted_order, each.fitted_order_error
        text = label if np.isnan(order) else f"{label}: order {order:.3f}" + ("" if np.isnan(scatter) else rf" $\pm$ {scatter:.3f}")
        axes.plot(n, e, color=PALETTE[number % len(PALETTE)], marker=MARKERS[number % len(MARKERS)], markersize=5.5, linewidth=1.4, label=text)
        if len(n) >= 2:
            simple = min((0.5, 1.0, 1.5, 2.0, 3.0, 4.0), key=lambda candidate: abs(candidate - order))
            guides.setdefault(simple, (n, e))
    for simple, (n, e) in guides.items():
        line = 0.6 * e[-1] * (n / n[-1]) ** -simple
        axes.plot(n, line, color=GUIDE, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1, scaley=False)
        middle = np.sqrt(n[0] * n[-1])
        place = (middle, 0.6 * e[-1] * (middle / n[-1]) ** -simple)
        axes.annotate(f"slope $-{simple:g}$", place, xytext=(-3, -3), textcoords="offset points", ha="right", va="top", fontsize=9, color=GUIDE)
    shown = levels if len(levels) <= 8 else levels[:: -(-len(levels) // 8)]
    axes.xaxis.set_ticks(shown, [f"{n:g}" if n < 1e6 else f"{n:.3g}" for n in shown])
    axes.xaxis.set_ticks([], minor=True)
    names = {each.size for each in tables.values()}
    axes.set_xlabel(", ".join(sorted({"n": "number of tokens", "nodes": "number of nodes"}.get(name, name) for name in names)))
    whats = {each.error for each in tables.values()}
    what = re.sub(r"^W(\d)", r"$W_\1$", whats.pop()) if len(whats) == 1 else ""
    axes.set_ylabel((what.split(" to ")[0] or "error") + (" (rad)" if what.startswith("$W") else ""))
    axes.set_title(f"{title}: {what}" if what else title, fontsize=11, wrap=True)
    axes.grid(True, which="major", color="0.9", linewidth=0.6, zorder=0)
    _legend_below(figure, [axes])
    return figure


def energy(trajectory: Trajectory) -> Figure:
    r"""The interaction energy, relative to its largest possible value, against time; every fall between output times is marked.

    Taken from `observed["energy"]` or `observed["log_energy"]`, else computed. For V = A it never falls (docs/theory).

    Raises
    ------
    InputError
        If it was not observed and the trajectory has no problem (it was loaded from a file), or at `beta = inf`.

    Examples
    --------
    >>> import mfpde as mf
    >>> run = mf.solve(*mf.cases.two_clusters(t_end=2.0, cells=64), save_at=[0, 1, 2], observe=[mf.diagnostics.energy])
    >>> mf.figures.energy(run).axes[0].get_ylabel()
    'energy / largest energy'
    """
    values = energies(trajectory)
    times = np.asarray(trajectory.times, dtype=float)
    figure = _figure(3.6)
    axes = _axes(figure)
    axes.plot(times, values, color=PALETTE[0], linewidth=1.6, marker="o" if len(times) <= 15 else None, markersize=4.5, label="energy")
    falls = mark_falls(axes, times, values, trajectory.problem)
    spread = float(np.ptp(values))
    if spread <= 1e-9 * float(np.abs(values).max()):  # a constant: show it as one, not its round-off
        centre = float(values.mean())
        axes.set_ylim(0.9 * centre, 1.1 * centre if centre > 0 else 1.0)
    axes.set_xlabel("time $t$")
    axes.set_ylabel("energy / largest energy")
    axes.set_title(f"Interaction energy{_by(trajectory)}", fontsize=11)
    axes.grid(True, which="major", axis="y", color="0.9", linewidth=0.6, zorder=0)
    if falls:
        _legend_below(figure, [axes])
    return figure


def mark_falls(axes: Axes, times: np.ndarray, values: np.ndarray, problem: Problem | None) -> bool:
    """A triangle where the energy is less than at the time before; whether there is any. Round-off, of the order of `beta |A|` units of it, is no fall."""
    exponent = 0.0 if problem is None else problem.attention.sharpness
    round_off = max(1e-12, 4 * np.finfo(float).eps * exponent)
    falls = np.flatnonzero(np.diff(values) < -round_off * np.abs(values[1:])) + 1
    if len(falls):
        worst = float((-np.diff(values)[falls - 1] / values[falls - 1]).max())
        label = f"falls, by at most {worst:.1e} of itself between two output times"
        axes.plot(times[falls], values[falls], "v", color=PALETTE[1], markersize=5, label=label, zorder=3)
    return len(falls) > 0


def energies(trajectory: Trajectory) -> np.ndarray:
    """The energy at each output time (k,), observed or computed; an `InputError` where neither is possible."""
    if "energy" in trajectory.observed:
        return np.asarray(trajectory.observed["energy"], dtype=float)
    if "log_energy" in trajectory.observed:
        return np.exp(np.asarray(trajectory.observed["log_energy"], dtype=float))
    if trajectory.problem is None:
        remedy = "Observe it: solve(..., observe=[mf.diagnostics.energy])."
        raise InputError(f"The energy was not observed, and a trajectory loaded from a file does not know its problem.\n  {trajectory!r}\n  {remedy}")
    from mfpde import diagnostics

    return np.array([diagnostics.energy(measure, trajectory.problem) for measure in trajectory.measures])
