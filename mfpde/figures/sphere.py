r"""Pictures of laws on the sphere: equal-area maps of the whole (Mollweide) and pairs of globes (orthographic, front and back).

Both are drawn pixel by pixel: a pixel is a point of the sphere and takes the density of its cell. Tokens are dots with an area by their mass. Where the
zero-temperature limit exists, the dominant space E is a dashed great circle or a pair of triangles, whose area is the mass of the limit.
`figures.density` and `figures.snapshots` come here for laws on the sphere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mfpde.errors import InputError
from mfpde.figures.style import GUIDE, PALETTE, WIDTH, _by, _colour_map, _legend_below
from mfpde.initial.sphere import frame_of
from mfpde.measure import Measure
from mfpde.model import Problem
from mfpde.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FACING = np.array([0.7, -0.6, 0.39])  # where the eye is that sees the front, when nothing is known about the law
PIXELS = 320  # along the height of a map or globe
MOST_DOTS = 4000


@dataclass(frozen=True)
class Projection:
    """A flat picture of a part of the sphere.

    Attributes
    ----------
    half_width, half_height : float
        Of the picture.
    place : function (n, 3) -> (n, 2)
        Where points of the sphere lie, NaN for those that are not seen.
    point : function (n, 2) -> (n, 3)
        Its inverse, NaN outside of the picture.
    outline : (m, 2)
    """

    half_width: float
    half_height: float
    place: Callable[[np.ndarray], np.ndarray]
    point: Callable[[np.ndarray], np.ndarray]
    outline: np.ndarray


def _ellipse(a: float, b: float) -> np.ndarray:
    turn = np.linspace(0, 2 * np.pi, 361)
    return np.stack([a * np.cos(turn), b * np.sin(turn)], axis=1)


def globe(facing: np.ndarray) -> Projection:
    """The half of the sphere that an eye far away in the direction `facing` sees, third axis up.

    >>> front = globe(np.array([1.0, 0.0, 0.0]))
    >>> front.place(np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8], [-1.0, 0.0, 0.0]])).round(6) + 0.0
    array([[0. , 0. ],
           [0.6, 0.8],
           [nan, nan]])
    """
    eye = facing / np.linalg.norm(facing)
    across = np.cross([0.0, 0.0, 1.0], eye)
    across = across / np.linalg.norm(across) if np.linalg.norm(across) > 1e-9 else frame_of(eye)[0]
    up = np.cross(eye, across)

    def place(x: np.ndarray) -> np.ndarray:
        return np.where((x @ eye > -1e-12)[:, None], np.stack([x @ across, x @ up], axis=1), np.nan)

    def point(flat: np.ndarray) -> np.ndarray:
        depth = 1 - np.sum(flat**2, axis=1)
        seen = depth >= 0
        x = flat[:, :1] * across + flat[:, 1:] * up + np.sqrt(np.where(seen, depth, 0.0))[:, None] * eye
        return np.where(seen[:, None], x, np.nan)

    return Projection(1.0, 1.0, place, point, _ellipse(1.0, 1.0))


def mollweide() -> Projection:
    """The whole sphere with true areas; third axis up, first axis in the middle.

    >>> world = mollweide()
    >>> x = np.array([[0.36, 0.48, 0.8], [-0.6, -0.64, -0.48]])
    >>> bool(np.allclose(world.point(world.place(x)), x))
    True
    """
    root = np.sqrt(2)

    def place(x: np.ndarray) -> np.ndarray:
        sine = np.clip(x[:, 2], -1, 1)
        # 2 t + sin 2t = pi sin(latitude), by bisection: Newton stalls at the poles
        low, high = np.full(len(x), -np.pi / 2), np.full(len(x), np.pi / 2)
        for _ in range(50):
            t = (low + high) / 2
            under = 2 * t + np.sin(2 * t) < np.pi * sine
            low, high = np.where(under, t, low), np.where(under, high, t)
        return np.stack([2 * root / np.pi * np.arctan2(x[:, 1], x[:, 0]) * np.cos(t), root * np.sin(t)], axis=1)

    def point(flat: np.ndarray) -> np.ndarray:
        t = np.arcsin(np.clip(flat[:, 1] / root, -1, 1))
        longitude = np.pi * flat[:, 0] / (2 * root * np.maximum(np.cos(t), 1e-9))
        sine = np.clip((2 * t + np.sin(2 * t)) / np.pi, -1, 1)
        cosine = np.sqrt(1 - sine**2)
        x = np.stack([cosine * np.cos(longitude), cosine * np.sin(longitude), sine], axis=1)
        inside = (flat[:, 0] / (2 * root)) ** 2 + (flat[:, 1] / root) ** 2 <= 1
        return np.where(inside[:, None], x, np.nan)

    return Projection(2 * root, root, place, point, _ellipse(2 * root, root))


def maps(trajectory: Trajectory, *, scale: str, tokens: int) -> Figure:
    """The law over time: up to six Mollweide maps with one colour scale, at evenly chosen output times."""
    shown = np.unique(np.linspace(0, len(trajectory.times) - 1, 6).astype(int))
    columns = 1 if len(shown) == 1 else 2
    rows = -(-len(shown) // columns)
    figure = _canvas(1.1 + rows * (0.86 * WIDTH / columns * 0.5 + 0.2))
    panels = [figure.add_subplot(rows, columns, number + 1) for number in range(len(shown))]
    measures = [trajectory.measures[k] for k in shown]
    world = mollweide()
    _paint(figure, [(axes, world, measure, None) for axes, measure in zip(panels, measures, strict=True)], trajectory.problem, scale, tokens)
    for axes, k in zip(panels, shown, strict=True):
        axes.set_title(f"$t = {trajectory.times[k]:.4g}$", fontsize=9, loc="left", pad=2)
    figure.suptitle(f"Law of the tokens, equal-area maps{_by(trajectory)}", fontsize=11)
    _legend_below(figure, panels)
    return figure


def globes(trajectory: Trajectory, measures: list[Measure], times: list[float], clouds: list[Measure | None], problem: Problem | None, *, scale: str) -> Figure:
    """The law at a few times: front and back of the sphere, side by side."""
    blocks = 1 if len(times) <= 2 else 2
    rows = -(-len(times) // blocks)
    figure = _canvas(1.1 + rows * (0.86 * WIDTH / (2 * blocks) + 0.2))
    panels, work, front = [], [], _facing(problem)
    for number, (measure, t, cloud) in enumerate(zip(measures, times, clouds, strict=True)):
        for side, facing in enumerate((front, -front)):
            axes = figure.add_subplot(rows, 2 * blocks, 2 * number + side + 1)
            axes.set_title(f"$t = {t:.4g}$" if side == 0 else "from behind", fontsize=9, loc="left", pad=2)
            panels.append(axes)
            work.append((axes, globe(facing), measure, cloud))
    _paint(figure, work, problem, scale, MOST_DOTS)
    figure.suptitle(f"Law of the tokens at {len(times)} times{_by(trajectory)}" if len(times) > 1 else f"Law of the tokens{_by(trajectory)}", fontsize=11)
    _legend_below(figure, panels)
    return figure


def _facing(problem: Problem | None) -> np.ndarray:
    """A view in which E is neither on the rim nor in the middle: atoms of the limit at 40 degrees from the middle, a great circle as an ellipse."""
    if problem is None:
        return FACING
    from mfpde import limits

    spectrum = limits.spectrum(problem.attention)
    if spectrum.k == 3:
        return FACING
    towards = spectrum.dominant_basis[:, 0] if spectrum.k == 1 else np.cross(*spectrum.dominant_basis.T)
    towards = towards if towards @ FACING >= 0 else -towards
    aside = FACING - (FACING @ towards) * towards
    angle = np.deg2rad(40 if spectrum.k == 1 else 65)
    return np.cos(angle) * towards + np.sin(angle) * aside / max(float(np.linalg.norm(aside)), 1e-9)


def _canvas(height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")


def frame(axes: Axes, projection: Projection, measure: Measure, norm: Any) -> None:
    """One law alone on empty `axes`: its density in the colours of `norm`, or its tokens. For films."""
    _ground(axes, projection)
    if measure.mesh is not None:
        _density_image(axes, projection, measure, norm)
    else:
        _dots(axes, projection, measure, MOST_DOTS, over_density=False)


def _ground(axes: Axes, projection: Projection) -> None:
    """The empty picture."""
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set(xlim=(-1.02 * projection.half_width, 1.02 * projection.half_width), ylim=(-1.02 * projection.half_height, 1.02 * projection.half_height))
    axes.plot(*projection.outline.T, color=GUIDE, linewidth=0.8)


def _paint(figure: Figure, work: list[tuple[Axes, Projection, Measure, Measure | None]], problem: Problem | None, scale: str, tokens: int) -> None:
    """Fill the panels: density, tokens, E and the limit; one colour bar for all."""
    norm, label, below = colours([measure for _, _, measure, _ in work if measure.mesh is not None], scale)
    image = None
    for axes, projection, measure, cloud in work:
        _ground(axes, projection)
        if measure.mesh is not None:
            image = _density_image(axes, projection, measure, norm) or image
        dots = cloud if cloud is not None else (measure if measure.mesh is None else None)
        if dots is not None:
            _dots(axes, projection, dots, tokens, over_density=measure.mesh is not None)
        if problem is not None:
            _limit(axes, projection, problem, over_density=measure.mesh is not None)
    if image is not None:
        bar = figure.colorbar(image, ax=[axes for axes, *_ in work], shrink=0.7, pad=0.02, extend="min" if below else "neither")
        bar.set_label(label, fontsize=10)
        bar.ax.tick_params(labelsize=9)


def colours(measures: list[Measure], scale: str) -> tuple[Any, str, bool]:
    """`(norm, label, whether something lies below it)`: the logarithm over at most eight decades when the density varies by more than a factor of 20."""
    from matplotlib.colors import LogNorm, Normalize

    if not measures:
        return None, "", False
    rho = np.concatenate([measure.density() for measure in measures])
    top, least = float(rho.max()), float(rho[rho > 0].min())
    if scale == "log" or (scale == "auto" and top > 20 * least):
        bottom = min(max(least, top * 1e-8), top / 10)
        return LogNorm(bottom, top), "density (1/sr), logarithmic", bool((rho < bottom).any())
    return Normalize(0.0, top), "density (1/sr)", False


def _density_image(axes: Axes, projection: Projection, measure: Measure, norm: Any) -> Any:
    """Each pixel takes the density of the cell it lies in, the one with the nearest centre."""
    from scipy.spatial import cKDTree

    a, b = projection.half_width, projection.half_height
    across = (np.arange(round(PIXELS * a / b)) + 0.5) / round(PIXELS * a / b) * 2 * a - a
    up = (np.arange(PIXELS) + 0.5) / PIXELS * 2 * b - b
    flat = np.stack([grid.ravel() for grid in np.meshgrid(across, up)], axis=1)
    x = projection.point(flat)
    seen = np.isfinite(x[:, 0])
    values = np.full(len(flat), np.nan)
    values[seen] = measure.density()[cKDTree(measure.points).query(x[seen])[1]]
    shown = np.ma.masked_invalid(values.reshape(PIXELS, -1))
    colours = _colour_map().with_extremes(bad=(1, 1, 1, 0))
    if norm.vmin > 0:  # an empty cell has no logarithm
        shown = np.ma.where(shown <= 0, norm.vmin / 10, shown)
    return axes.imshow(shown, origin="lower", extent=(-a, a, -b, b), norm=norm, cmap=colours, interpolation="nearest")


def _dots(axes: Axes, projection: Projection, measure: Measure, most: int, *, over_density: bool) -> None:
    """Tokens with an area by their mass, at most `most` of them."""
    carried = np.flatnonzero(measure.weights > 0)
    shown = carried[np.unique(np.linspace(0, len(carried) - 1, min(most, len(carried))).astype(int))]
    place = projection.place(measure.points[shown])
    area = np.clip(3000 * measure.weights[shown], 2.0, 60.0)
    faint = float(np.clip(500 / len(shown), 0.35, 0.9))
    colour = "white" if over_density else PALETTE[0]
    count = f"{len(shown)} of {len(carried)} tokens" if len(shown) < len(carried) else f"{len(carried)} token{'s' if len(carried) > 1 else ''}"
    rim = 0.3 if over_density else 0.0
    axes.scatter(place[:, 0], place[:, 1], s=area, color=colour, alpha=faint, edgecolors="black", linewidths=rim)
    axes.plot([], [], "o", color=colour, markeredgecolor="black" if over_density else colour, markeredgewidth=0.4, markersize=4, label=count)


def _limit(axes: Axes, projection: Projection, problem: Problem, *, over_density: bool) -> None:
    """E, the border between the two basins, and the atoms of the limit law, where the zero-temperature equation has one."""
    from mfpde import limits

    try:
        spectrum = limits.spectrum(problem.attention)
        limit = limits.push_forward(problem, nodes=32)
    except InputError:  # tokens rotate for ever, or a Jordan block: no limit to draw
        return
    if spectrum.k == 2:
        _great_circle(axes, projection, np.cross(*spectrum.dominant_basis.T), "dominant space $E$ of $VA$", PALETTE[1], (0, (4, 2)))
    elif spectrum.k == 1:
        w = spectrum.left_basis[0]
        _great_circle(axes, projection, w / np.linalg.norm(w), "border of the two basins", "white" if over_density else GUIDE, (0, (1, 1.5)))
        place = projection.place(limit.points)
        axes.scatter(place[:, 0], place[:, 1], s=20 + 90 * limit.weights, marker="v", color=PALETTE[1], edgecolors="white", linewidths=0.5, zorder=5)
        axes.plot([], [], "v", color=PALETTE[1], markersize=7, linestyle="none", label=r"$\pm v$ spanning $E$, area by the mass of the limit")


def _great_circle(axes: Axes, projection: Projection, normal: np.ndarray, label: str, colour: str, dashes: Any) -> None:
    """The great circle orthogonal to `normal`, broken where it leaves the picture."""
    frame, turn = frame_of(normal), np.linspace(0, 2 * np.pi, 721)
    place = projection.place(np.cos(turn)[:, None] * frame[0] + np.sin(turn)[:, None] * frame[1])
    jump = np.linalg.norm(np.diff(place, axis=0), axis=1) > 0.5 * projection.half_width
    place = np.insert(place, np.flatnonzero(jump) + 1, np.nan, axis=0)
    axes.plot(*place.T, color=colour, linewidth=1.3, linestyle=dashes)
    axes.plot([], [], color=GUIDE if colour == "white" else colour, linestyle=dashes, linewidth=1.3, label=label)
