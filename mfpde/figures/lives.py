"""Exponentially long lives over logarithmic time: the tree of the clusters and the staircase of the energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mfpde import diagnostics
from mfpde.branches import Event, Tree, follow, moments_of
from mfpde.figures.circle import CircleView, _broken, _quiet_place
from mfpde.figures.curves import energies, mark_falls
from mfpde.figures.style import DASHES, GUIDE, PALETTE, _axes, _by, _figure, _legend_below
from mfpde.geometry import Circle
from mfpde.measure import Measure
from mfpde.methods.clusters import Life
from mfpde.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDEST = 9.0  # points: the line of all the mass
THINNEST = 0.5


def cluster_tree(run: Trajectory | Life, *, resolution: float | None = None) -> Figure:
    r"""The angles of the clusters against ln t, line width by mass; circles are mergers, triangles departures, a dotted line the hand-over to atoms.

    What counts as a cluster, a merger and a departure is defined in `mfpde.branches`. Output times spread evenly over ln t serve best; `Life` needs none,
    and goes beyond the largest time of double precision. Where resting clusters turn alike (V = a I + b J) angles are those in the turning frame.

    Parameters
    ----------
    run : Trajectory or Life
    resolution : float, optional
        Radians, see `mfpde.branches.follow`.

    Raises
    ------
    InputError
        If the law does not live on the circle, or has no cluster at any positive output time.

    Examples
    --------
    >>> import mfpde as mf
    >>> from mfpde.methods.clusters import life
    >>> four = mf.initial.atoms(mf.Circle().points([0.1, 1.3, 2.9, 4.6]), [0.3, 0.3, 0.25, 0.15])
    >>> story = life(mf.Problem(mf.Attention.identity(2, beta=1e6), mf.Circle(), four, t_end=1))
    >>> axes = mf.figures.cluster_tree(story).axes[0]
    >>> axes.get_xlabel(), bool(axes.get_xlim()[1] > 1.8e6)
    ('$\\ln t$', True)
    """
    tree = follow(run, resolution=resolution)
    figure = _figure(4.2)
    axes = _axes(figure)
    view = CircleView(_cut(tree))
    for branch in tree.branches:
        x, y = _broken(branch.log_times, view._into_view(branch.angles))
        width = max(THINNEST, WIDEST * float(branch.masses.mean()))
        if len(branch.log_times) == 1:
            axes.plot(x, y, ".", color=PALETTE[0], markersize=width, zorder=2)
        else:
            axes.plot(x, y, color=PALETTE[0], linewidth=width, alpha=0.75, solid_capstyle="butt", zorder=2)
    axes.plot([], [], color=PALETTE[0], linewidth=WIDEST / 4, label="cluster, width by mass")
    for (label, chosen), marker, colour in zip(_by_kind(tree), ("o", "^"), PALETTE[1:], strict=False):
        if chosen:
            places = view._into_view(np.array([event.angle for event in chosen]))
            axes.plot([event.log_time for event in chosen], places, marker, color=colour, markersize=6, markerfacecolor="white", label=label, zorder=3)
    _log_time_axis(axes, tree)
    view._angle_axis(axes, "y")
    if tree.turn:
        axes.set_ylabel(f"angle in a frame turning at rate {tree.turn:.3g} (rad)", fontsize=10)
    axes.set_title(f"Clusters over logarithmic time{_told_by(run)}", fontsize=11)
    _legend_below(figure, [axes])
    return figure


def energy_staircase(run: Trajectory | Life, *, resolution: float | None = None) -> Figure:
    r"""The interaction energy, relative to its largest possible value, against ln t: plateaus while clusters rest, a step at each merger.

    Taken from `observed["energy"]` or `observed["log_energy"]`, else computed. For V = A it never falls (docs/theory); every fall between output times is
    marked. While clusters do not see each other and A = I it is the sum of their squared masses.

    Parameters
    ----------
    run : Trajectory or Life
    resolution : float, optional
        Radians, see `mfpde.branches.follow`.

    Raises
    ------
    InputError
        As `cluster_tree`; if the energy was not observed and the trajectory does not know its problem; and at `beta = inf`.

    Examples
    --------
    >>> import mfpde as mf
    >>> run = mf.solve(*mf.cases.merge_time(beta=10.0, t_end=1e9), save_at=[1.0, 1e6, 1e9])
    >>> figure = mf.figures.energy_staircase(run)
    >>> figure.axes[0].lines[0].get_ydata()[[0, -1]].round(3)  # .6^2 + .4^2, and one cluster
    array([0.52, 1.  ])
    """
    tree = follow(run, resolution=resolution)
    log_times, values = _energies(run)
    figure = _figure(3.6)
    axes = _axes(figure)
    axes.plot(log_times, values, color=PALETTE[0], linewidth=1.6, label="energy", zorder=2)
    mark_falls(axes, log_times, values, run.problem)
    for (label, chosen), dashes, colour in zip(_by_kind(tree), (DASHES[2], DASHES[1]), PALETTE[1:], strict=False):
        for number, event in enumerate(chosen):
            axes.axvline(event.log_time, color=colour, linestyle=dashes, linewidth=0.9, label=None if number else label, zorder=1)
    _log_time_axis(axes, tree)
    axes.set_ylim(min(0.0, float(values.min())), 1.05 * max(1.0, float(values.max())))
    axes.set_ylabel("energy / largest energy", fontsize=10)
    axes.set_title(f"Interaction energy over logarithmic time{_told_by(run)}", fontsize=11)
    axes.grid(True, which="major", axis="y", color="0.9", linewidth=0.6, zorder=0)
    _legend_below(figure, [axes])
    return figure


def _by_kind(tree: Tree) -> list[tuple[str, list[Event]]]:
    """Mergers, then departures, each with a label that counts them."""
    kinds = {kind: [event for event in tree.events if event.kind == kind] for kind in ("merger", "departure")}
    return [(f"{len(events)} {kind}{'s' if len(events) > 1 else ''}", events) for kind, events in kinds.items()]


def _energies(run: Trajectory | Life) -> tuple[np.ndarray, np.ndarray]:
    """`(ln t, energy)` at the positive times."""
    if isinstance(run, Life):
        moments = moments_of(run)
        laws = [Measure(Circle().points(moment.angles), moment.masses) for moment in moments]
        return np.array([moment.log_time for moment in moments]), np.array([diagnostics.energy(law, run.problem) for law in laws])
    later = run.times > 0
    return np.log(run.times[later]), energies(run)[later]


def _log_time_axis(axes: Axes, tree: Tree) -> None:
    """From the first cluster to the end, and the hand-over as a dotted line."""
    begin = min(branch.log_times[0] for branch in tree.branches)
    end = max(branch.log_times[-1] for branch in tree.branches)
    margin = 0.02 * (end - begin) or 0.5
    axes.set_xlim(begin - margin, end + margin)
    axes.set_xlabel(r"$\ln t$")
    if tree.handed_over is not None:
        axes.axvline(tree.handed_over, color=GUIDE, linestyle=":", linewidth=1.0, label="hand-over to atoms", zorder=1)


def _cut(tree: Tree) -> float:
    """Where to cut the circle open: where the least mass passes at any time."""
    angles = np.concatenate([branch.angles for branch in tree.branches])
    masses = np.concatenate([branch.masses for branch in tree.branches])
    return _quiet_place([Measure(Circle().points(angles), masses / masses.sum())])


def _told_by(run: Trajectory | Life) -> str:
    return rf", {len(run.path[0].angles)} atoms, $\beta$ = {run.problem.attention.beta:g}" if isinstance(run, Life) else _by(run, size=False)

