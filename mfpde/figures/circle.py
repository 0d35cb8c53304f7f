"""How a law on the circle is drawn: cut open where the mass is least, densities as curves and images, tokens as dots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mfpde.errors import InputError
from mfpde.figures.profile import profile
from mfpde.figures.style import PALETTE, TWO_PI, _by, _colour_map
from mfpde.geometry import Circle, signed_angle
from mfpde.measure import Measure
from mfpde.methods.cell_measure import has_density
from mfpde.model import Problem
from mfpde.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class CircleView:
    """The circle cut open at the angle `cut`, a multiple of pi/2, and drawn from `cut` to `cut + 2 pi`."""

    cut: float

    def image(self, figure: Figure, axes: Axes, trajectory: Trajectory, densities: np.ndarray, scale: str) -> None:
        """Time to the right, angle upwards, density by colour: `densities` (times, cells)."""
        from matplotlib.colors import LogNorm, Normalize

        rho = densities.T
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
            ticks = cloud if cloud is not None else (None if has_density(measure) else measure)
            if ticks is not None:
                self._rug(axes, ticks)
            if problem is not None:
                self._limit(axes, problem)

    def _density_curve(self, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
        """`(values, edges)` over three turns, more than the window."""
        rho, edges = profile(measure)
        return np.tile(rho, 3), np.concatenate([edges[:-1] - TWO_PI, edges[:-1], edges + TWO_PI])

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
        apart = np.abs(signed_angle(measure.angles()[:, None] - cuts))
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
