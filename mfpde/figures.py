"""Pictures of laws, distances and orders. Every function returns a matplotlib `Figure` and touches no global state.

    density(run)                 the law over time and angle
    snapshots(run, times)        the law at a few times, with the limit it should reach
    decay(series, rates=...)     distances against time, with predicted slopes
    order_plot(table)            errors against resolution
    energy(run)                  the interaction energy against time
    save(figure, path)           a file that appears whole or not at all

matplotlib is loaded when the first figure is made. What depends on the space the tokens live in is one `View` each, chosen by `_view_of`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mfpde.errors import InputError, unknown_name
from mfpde.geometry import Circle, Geometry
from mfpde.measure import Measure
from mfpde.model import Problem
from mfpde.trajectory import Trajectory, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mfpde.convergence import ConvergenceTable

# Okabe and Ito's palette, distinguishable with every common colour blindness, without its yellow; and a perceptually uniform map
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))  # a second cue beside the colour, for print without it
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GUIDE = "#555555"
COLOUR_MAP = "viridis"
WIDTH = 6.4  # inches; a text column and a half
TWO_PI = 2 * np.pi

Times = Sequence[float] | np.ndarray


# ---- the law over time ---------------------------------------------------------------------------------------------------------------


def density(trajectory: Trajectory, *, scale: str = "auto", tokens: int = 200) -> Figure:
    r"""The law over time: an image of the density for a run on a mesh, the paths of tokens for particles; on the sphere equal-area maps at up to six times.

    Parameters
    ----------
    trajectory : Trajectory
        At least one output time.
    scale : {"auto", "log", "linear"}
        Colours by density or its logarithm, over at most eight decades; "auto" takes the logarithm when the density varies by more than a factor of 20.
    tokens : int
        At most so many paths are drawn, evenly spaced in the order of their starting angles.

    Raises
    ------
    InputError
        For an empty trajectory, an unknown scale, or a geometry that has no picture yet.

    Examples
    --------
    >>> import mfpde as mf
    >>> run = mf.solve(*mf.cases.poisson(t_end=1.0, cells=64), save_at=[0, 0.5, 1])
    >>> figure = mf.figures.density(run)
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('time $t$', 'angle (rad)')
    """
    if scale not in ("auto", "log", "linear"):
        raise unknown_name("scale", scale, ["auto", "log", "linear"])
    if _on_sphere(trajectory):
        from mfpde.figures_sphere import maps

        return maps(trajectory, scale=scale, tokens=tokens)
    view = _view_of(trajectory)
    figure = _figure(3.8)
    axes = _axes(figure)
    if all(measure.mesh is not None for measure in trajectory.measures) and len({len(measure) for measure in trajectory.measures}) == 1:
        view.image(figure, axes, trajectory, scale)
    else:
        view.paths(axes, trajectory, tokens)
    axes.set_xlabel("time $t$")
    if len(trajectory.times) > 1:
        axes.set_xlim(trajectory.times[0], trajectory.times[-1])
    else:
        axes.xaxis.set_ticks(trajectory.times)
    return figure


def snapshots(
    trajectory: Trajectory,
    times: Times | None = None,
    *,
    problem: Problem | None = None,
    tokens: Trajectory | None = None,
    scale: str = "auto",
) -> Figure:
    r"""The law at a few times, one panel each, and where it should go.

    A run on a mesh shows its density; particles show a histogram and every token as a tick below it. If the problem is known and its
    zero-temperature limit exists, dashed lines mark the dominant space E of the drift VA and triangles the atoms of the limit law, their area the mass.
    On the sphere each time shows two globes, front and back, with tokens as dots.

    Parameters
    ----------
    times : sequence of float, optional
        Output times of the trajectory; up to six of them, evenly chosen, when not given.
    problem : Problem, optional
        Taken from the trajectory when not given.
    tokens : Trajectory, optional
        A particle run whose tokens are drawn as ticks below each density.
    scale : {"auto", "log", "linear"}
        Of the density; "auto" is logarithmic when a peak is more than 20 times the uniform density.

    Raises
    ------
    InputError
        For times that were not saved, an unknown scale, or a geometry that has no picture yet.

    Examples
    --------
    >>> import mfpde as mf
    >>> run = mf.solve(*mf.cases.two_clusters(t_end=2.0, cells=64), save_at=[0, 1, 2])
    >>> len(mf.figures.snapshots(run, [0, 2]).axes)
    2
    """
    if scale not in ("auto", "log", "linear"):
        raise unknown_name("scale", scale, ["auto", "log", "linear"])
    if times is None:
        times = trajectory.times[np.unique(np.linspace(0, len(trajectory.times) - 1, 6).astype(int))]
    chosen = [float(t) for t in np.atleast_1d(np.asarray(times, dtype=float))]
    if not chosen:
        raise InputError("Snapshots need at least one time.\n  times is empty.")
    measures = [trajectory.at(t) for t in chosen]
    clouds = [None if tokens is None else tokens.at(t) for t in chosen]
    if _on_sphere(trajectory):
        from mfpde.figures_sphere import globes

        return globes(trajectory, measures, chosen, clouds, problem if problem is not None else trajectory.problem, scale=scale)
    view = _view_of(trajectory)
    columns = 1 if len(chosen) <= 3 else 2
    rows = -(-len(chosen) // columns)
    figure = _figure(max(2.8, 0.9 + 1.45 * rows))
    panels = [_axes(figure, (rows, columns, number + 1)) for number in range(len(chosen))]
    view.panels(panels, measures, clouds, problem if problem is not None else trajectory.problem, scale)
    for number, (axes, t) in enumerate(zip(panels, chosen, strict=True)):
        axes.set_title(f"$t = {t:.4g}$", fontsize=9, loc="left", pad=5)
        if number + columns < len(chosen):
            axes.tick_params(labelbottom=False)
            axes.set_xlabel("")
    figure.suptitle(f"Law of the tokens at {len(chosen)} times{_by(trajectory)}" if len(chosen) > 1 else f"Law of the tokens{_by(trajectory)}", fontsize=11)
    figure.supylabel("density (1/rad)", fontsize=10)
    _legend_below(figure, panels)
    return figure


class View(Protocol):
    """How the laws on one geometry are drawn."""

    def image(self, figure: Figure, axes: Axes, trajectory: Trajectory, scale: str) -> None: ...

    def paths(self, axes: Axes, trajectory: Trajectory, tokens: int) -> None: ...

    def panels(self, panels: list[Axes], measures: list[Measure], clouds: list[Measure | None], problem: Problem | None, scale: str) -> None: ...


def _on_sphere(trajectory: Trajectory) -> bool:
    """Whether the law lives on S^2, which has pictures of its own."""
    return trajectory.final.points.shape[1] == 3  # an InputError for an empty trajectory


def _view_of(trajectory: Trajectory) -> View:
    """The view of the geometry a trajectory lives on: the one place that knows which there are."""
    first = trajectory.final  # an InputError for an empty trajectory
    geometry: Geometry | None = trajectory.problem.geometry if trajectory.problem is not None else None
    if geometry is None:
        geometry = first.mesh.geometry if first.mesh is not None else Circle() if first.points.shape[1] == 2 else None
    if isinstance(geometry, Circle):
        return CircleView(_quiet_place(trajectory.measures))
    raise InputError(f"Laws are drawn on the circle and the sphere.\n  geometry = {geometry!r}\n  Draw its distances and energies instead.")


@dataclass(frozen=True)
class CircleView:
    """The circle cut open at the angle `cut`, a multiple of pi/2, and drawn from `cut` to `cut + 2 pi`."""

    cut: float

    def image(self, figure: Figure, axes: Axes, trajectory: Trajectory, scale: str) -> None:
        """Time to the right, angle upwards, density by colour."""
        from matplotlib.colors import LogNorm, Normalize

        rho = np.array([measure.density() for measure in trajectory.measures]).T  # (cells, times)
        top = float(rho.max())
        positive = rho[rho > 0]
        logarithmic = scale == "log" or (scale == "auto" and top > 20 * positive.min())
        if logarithmic:
            bottom = min(max(float(positive.min()), top * 1e-8), top / 10)
            norm: Any = LogNorm(bottom, top)
        else:
            norm = Normalize(0.0, top)
        image = axes.pcolormesh(
            _edges(trajectory.times),
            self._two_turns(len(rho)),
            np.concatenate([rho, rho]),
            norm=norm,
            cmap=_colour_map(),
            rasterized=True,
        )
        below = bool(logarithmic and (rho < norm.vmin).any())
        bar = figure.colorbar(image, ax=axes, pad=0.02, extend="min" if below else "neither")
        bar.set_label("density (1/rad)" + (", logarithmic" if logarithmic else ""), fontsize=10)
        bar.ax.tick_params(labelsize=9)
        self._angle_axis(axes, "y")
        axes.set_title(f"Density of the tokens{_by(trajectory)}", fontsize=11)

    def paths(self, axes: Axes, trajectory: Trajectory, tokens: int) -> None:
        """One line a token, broken where it passes the cut; a shorter list of tokens if there are too many."""
        start = trajectory.measures[0]
        constant = len({len(measure) for measure in trajectory.measures}) == 1 and start.mesh is None
        if constant:
            order = np.argsort((start.angles() - self.cut) % TWO_PI, kind="stable")
            shown = order[np.unique(np.linspace(0, len(order) - 1, min(tokens, len(order))).astype(int))]
            angles = self._into_view(np.array([measure.angles()[shown] for measure in trajectory.measures]))  # (times, tokens)
            faint = float(np.clip(15 / len(shown), 0.25, 1.0))
            if len(trajectory.times) == 1:
                axes.plot(np.full(len(shown), trajectory.times[0]), angles[0], ".", color=PALETTE[0], alpha=faint, markersize=4)
            for path in angles.T if len(trajectory.times) > 1 else ():
                axes.plot(*_broken(trajectory.times, path), color=PALETTE[0], alpha=faint, linewidth=0.9)
            count = f"{len(shown)} of {len(order)}" if len(shown) < len(order) else f"{len(order)}"
            axes.set_title(f"Paths of {count} token{'s' if len(order) > 1 else ''}{_by(trajectory, size=False)}", fontsize=11)
        else:  # points that come and go have no paths
            for t, measure in zip(trajectory.times, trajectory.measures, strict=True):
                carried = measure.weights > 0
                angles, area = self._into_view(measure.angles()[carried]), 200 * measure.weights[carried]
                axes.scatter(np.full(len(angles), t), angles, s=area, color=PALETTE[0], alpha=0.5, linewidths=0)
            axes.set_title(f"Points of the law, area by mass{_by(trajectory)}", fontsize=11)
        self._angle_axis(axes, "y")

    def panels(self, panels: list[Axes], measures: list[Measure], clouds: list[Measure | None], problem: Problem | None, scale: str) -> None:
        """Density against angle."""
        curves = [self._density_curve(measure) for measure in measures]
        peak = max(float(rho.max()) for rho, _ in curves)
        logarithmic = scale == "log" or (scale == "auto" and peak * TWO_PI > 20)
        positive = min(float(rho[rho > 0].min()) for rho, _ in curves)
        floor = min(max(positive, peak * 1e-8), peak / 10) / 2 if logarithmic else 0.0
        ceiling = peak * (2.0 if logarithmic else 1.1)
        for axes, (rho, edges), measure, cloud in zip(panels, curves, measures, clouds, strict=True):
            axes.stairs(np.maximum(rho, floor), edges, baseline=floor, fill=True, color=PALETTE[0], alpha=0.25, linewidth=0)
            axes.stairs(np.maximum(rho, floor), edges, baseline=None, color=PALETTE[0], linewidth=1.2)
            if logarithmic:
                axes.set_yscale("log")
            axes.set_ylim(floor, ceiling)
            self._angle_axis(axes, "x")
            ticks = cloud if cloud is not None else (measure if measure.mesh is None else None)
            if ticks is not None:
                self._rug(axes, ticks)
            if problem is not None:
                self._limit(axes, problem)

    def _density_curve(self, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
        """`(values, edges)` over more than the window: the density, or a histogram of tokens with at most 128 bins."""
        if measure.mesh is not None:
            rho = measure.density()
            return np.concatenate([rho, rho]), self._two_turns(len(rho))
        bins = int(np.clip(2 * np.sqrt(len(measure)), 16, 128)) // 4 * 4
        turns = measure.angles() * (bins / TWO_PI) + 0.5  # the axes' directions, where clusters like to be, are centres of bins
        rho = np.bincount(turns.astype(int) % bins, measure.weights, bins) * (bins / TWO_PI)
        return np.tile(rho, 3), TWO_PI * (np.arange(-bins, 2 * bins + 1) - 0.5) / bins

    def _rug(self, axes: Axes, measure: Measure) -> None:
        from matplotlib.transforms import blended_transform_factory

        angles = self._into_view(measure.angles()[measure.weights > 0])
        below = blended_transform_factory(axes.transData, axes.transAxes)
        faint = float(np.clip(40 / len(angles), 0.06, 0.9))
        axes.vlines(angles, 0.0, 0.1, transform=below, color=PALETTE[6], alpha=faint, linewidth=0.7)
        axes.plot([], [], "|", color=PALETTE[6], markersize=7, label=f"{len(angles)} token{'s' if len(angles) > 1 else ''}")

    def _limit(self, axes: Axes, problem: Problem) -> None:
        """Directions of E and atoms of the limit law, where the zero-temperature equation has one."""
        from matplotlib.transforms import blended_transform_factory

        from mfpde import limits

        try:
            spectrum = limits.spectrum(problem.attention)
            limit = limits.push_forward(problem, nodes=32)
        except InputError:  # tokens rotate for ever, or a Jordan block: no limit to draw
            return
        if spectrum.k > 1:  # E is the whole plane
            return
        directions = Circle().angles(np.concatenate([spectrum.dominant_basis.T, -spectrum.dominant_basis.T]))
        for number, angle in enumerate(self._into_view(directions)):
            label = "dominant space $E$ of $VA$" if number == 0 else None
            axes.axvline(angle, color=PALETTE[1], linestyle=(0, (4, 2)), linewidth=0.9, zorder=0.5, label=label)
        above = blended_transform_factory(axes.transData, axes.transAxes)
        place, area = self._into_view(limit.angles()), 90 * limit.weights
        style: dict[str, Any] = {"marker": "v", "color": PALETTE[1], "linewidths": 0, "transform": above, "clip_on": False}
        axes.scatter(place, np.full(len(place), 1.07), s=area, label="limit law, area = mass", **style)

    def _into_view(self, angles: np.ndarray) -> np.ndarray:
        return self.cut + (angles - self.cut) % TWO_PI

    def _two_turns(self, cells: int) -> np.ndarray:
        """Edges from -2 pi to 2 pi: every view lies inside."""
        return TWO_PI * np.arange(-cells, cells + 1) / cells

    def _angle_axis(self, axes: Axes, which: str) -> None:
        """The window, and ticks at multiples of pi/2."""
        quarters = round(self.cut / (np.pi / 2)) + np.arange(5)
        axis = axes.xaxis if which == "x" else axes.yaxis
        axis.set_ticks(quarters * (np.pi / 2), [_pi_label(int(q)) for q in quarters])
        (axes.set_xlim if which == "x" else axes.set_ylim)(self.cut, self.cut + TWO_PI)
        axis.set_label_text("angle (rad)", fontsize=10)


def _quiet_place(measures: list[Measure]) -> float:
    """Where to cut the circle open: the multiple of pi/2 in (-2 pi, 0] with the least mass around it at any time, 0 when it does not matter."""
    cuts = -np.arange(4) * (np.pi / 2)
    busiest = np.zeros(4)
    for measure in measures:
        apart = np.abs((measure.angles()[:, None] - cuts + np.pi) % TWO_PI - np.pi)
        busiest = np.maximum(busiest, measure.weights @ (apart < 0.4))
    return float(cuts[int(np.argmax(busiest <= busiest.min() + 0.02))])  # the first that is good enough


def _pi_label(quarters: int) -> str:
    """The angle `quarters * pi/2` as text."""
    if quarters % 2:
        return rf"${'-' if quarters < 0 else ''}{abs(quarters) if abs(quarters) > 1 else ''}\pi/2$"
    halves = quarters // 2
    return "$0$" if halves == 0 else rf"${'-' if halves < 0 else ''}{abs(halves) if abs(halves) > 1 else ''}\pi$"


def _broken(times: np.ndarray, path: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The path with a gap wherever it jumps by more than half a turn, that is, passes the cut."""
    jumps = np.flatnonzero(np.abs(np.diff(path)) > np.pi) + 1
    return np.insert(np.asarray(times, dtype=float), jumps, np.nan), np.insert(path, jumps, np.nan)


def _edges(times: np.ndarray) -> np.ndarray:
    """Borders of the time slots of an image: halfway between output times; a single time gets a slot of width 1."""
    t = np.asarray(times, dtype=float)
    if len(t) == 1:
        return np.array([t[0] - 0.5, t[0] + 0.5])
    return np.concatenate([t[:1], (t[1:] + t[:-1]) / 2, t[-1:]])


# ---- distances -----------------------------------------------------------------------------------------------------------------------


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


# ---- orders --------------------------------------------------------------------------------------------------------------------------


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


# ---- energy --------------------------------------------------------------------------------------------------------------------------


def energy(trajectory: Trajectory) -> Figure:
    r"""The interaction energy, relative to its largest possible value, against time; every fall between output times is marked.

    Taken from `trajectory.observed["energy"]` if it was observed, else computed. For V = A it never falls (docs/theory).

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
    if "energy" in trajectory.observed:
        values = np.asarray(trajectory.observed["energy"], dtype=float)
    elif trajectory.problem is None:
        remedy = "Observe it: solve(..., observe=[mf.diagnostics.energy])."
        raise InputError(f"The energy was not observed, and a trajectory loaded from a file does not know its problem.\n  {trajectory!r}\n  {remedy}")
    else:
        from mfpde import diagnostics

        values = np.array([diagnostics.energy(measure, trajectory.problem) for measure in trajectory.measures])
    times = np.asarray(trajectory.times, dtype=float)
    figure = _figure(3.6)
    axes = _axes(figure)
    axes.plot(times, values, color=PALETTE[0], linewidth=1.6, marker="o" if len(times) <= 15 else None, markersize=4.5, label="energy")
    falls = np.flatnonzero(np.diff(values) < -1e-12 * np.abs(values[1:])) + 1  # round-off is no fall
    if len(falls):
        worst = float((-np.diff(values)[falls - 1] / values[falls - 1]).max())
        axes.plot(times[falls], values[falls], "v", color=PALETTE[1], markersize=5, label=f"falls, by at most {worst:.1e} of itself between two output times")
    spread = float(np.ptp(values))
    if spread <= 1e-9 * float(np.abs(values).max()):  # a constant: show it as one, not its round-off
        centre = float(values.mean())
        axes.set_ylim(0.9 * centre, 1.1 * centre if centre > 0 else 1.0)
    axes.set_xlabel("time $t$")
    axes.set_ylabel("energy / largest energy")
    axes.set_title(f"Interaction energy{_by(trajectory)}", fontsize=11)
    axes.grid(True, which="major", axis="y", color="0.9", linewidth=0.6, zorder=0)
    if len(falls):
        _legend_below(figure, [axes])
    return figure


# ---- files and common style ----------------------------------------------------------------------------------------------------------


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write `figure` to `path`; the suffix .png (also when there is none), .pdf or .svg decides the format. The file appears whole or not at all.

    Raises `InputError` for another suffix. Returns the path written.
    """
    target = Path(path)
    if target.suffix == "":
        target = target.with_suffix(".png")
    kind = target.suffix[1:].lower()
    if kind not in ("png", "pdf", "svg"):
        raise InputError(f"Figures are saved as png, pdf or svg.\n  path = {str(path)!r}")
    undated: dict[str, dict[str, Any]] = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}  # equal pictures, equal files
    write_whole(target, lambda file: figure.savefig(file, format=kind, dpi=200, metadata=undated[kind]))
    return target


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")


def _axes(figure: Figure, place: tuple[int, int, int] = (1, 1, 1)) -> Axes:
    axes = figure.add_subplot(*place)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, direction="out")
    return axes


def _legend_below(figure: Figure, panels: list[Axes]) -> None:
    """One legend for all panels, outside of them, each label once."""
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        columns = 1 if max(map(len, entries)) > 45 else min(len(entries), 3 if max(map(len, entries)) < 26 else 2)
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, fontsize=9, frameon=False, handlelength=2.6)


def _colour_map() -> Any:
    """The map, with its darkest colour for what is empty."""
    from matplotlib import colormaps

    chosen = colormaps[COLOUR_MAP]
    return chosen.with_extremes(bad=chosen(0.0), under=chosen(0.0))


def _by(trajectory: Trajectory, *, size: bool = True) -> str:
    """`, FiniteVolume, 512 cells, beta = 4` for a title, as far as it is known; without the size where the title has it already."""
    parts = [] if trajectory.method is None else [_short(repr(trajectory.method))]
    final = trajectory.final
    if size:
        parts.append(f"{len(final)} {'cells' if final.mesh is not None else 'tokens' if len(final) > 1 else 'token'}")
    if trajectory.problem is not None:
        beta = trajectory.problem.attention.beta
        parts.append(r"$\beta = \infty$" if beta == np.inf else rf"$\beta = {beta:g}$")
    return "".join(f", {part}" for part in parts)


def _short(method: str) -> str:
    """`FiniteVolume` of `FiniteVolume(cells=512, ...)`."""
    return method.split("(")[0]
