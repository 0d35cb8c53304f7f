"""The law over time and angle, and at a few times with the limit it should reach. What depends on the space of the tokens is one `View` each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from mfpde.errors import InputError, unknown_name
from mfpde.figures.circle import CircleView, _quiet_place
from mfpde.figures.profile import profile
from mfpde.figures.style import Times, _axes, _by, _figure, _legend_below
from mfpde.geometry import Circle, Geometry
from mfpde.measure import Measure
from mfpde.methods.cell_measure import has_density
from mfpde.model import Problem
from mfpde.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def density(trajectory: Trajectory, *, scale: str = "auto", tokens: int = 200) -> Figure:
    r"""The law over time: an image of the density, of moving cells too, or the paths of tokens; on the sphere equal-area maps at up to six times.

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
        from mfpde.figures.sphere import maps

        return maps(trajectory, scale=scale, tokens=tokens)
    view = _view_of(trajectory)
    figure = _figure(3.8)
    axes = _axes(figure)
    densities = [profile(measure)[0] for measure in trajectory.measures] if all(map(has_density, trajectory.measures)) else []
    if len(set(map(len, densities))) == 1:
        view.image(figure, axes, trajectory, np.array(densities), scale)
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

    A run on a mesh or with moving cells shows its density; particles show a histogram and every token as a tick below it. If the problem is known and its
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
        from mfpde.figures.sphere import globes

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

    def image(self, figure: Figure, axes: Axes, trajectory: Trajectory, densities: np.ndarray, scale: str) -> None: ...

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
