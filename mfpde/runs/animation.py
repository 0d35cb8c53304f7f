"""A film of the law in time: gif through Pillow, mp4 where ffmpeg is installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from mfpde.errors import InputError, unknown_name
from mfpde.figures.profile import profile
from mfpde.figures.style import COLOUR_MAP
from mfpde.methods.cell_measure import has_density
from mfpde.storage.archive import write_whole
from mfpde.trajectory import Trajectory

FRAMES_A_SECOND = 15


def write(folder: str | os.PathLike[str], output: str | None = None, *, method: str | None = None, seconds: float = 6.0) -> Path:
    """Film one trajectory of a run folder; returns the file."""
    from mfpde.runs import experiment

    run, _, trajectories = experiment.read(folder)
    name = method or next(iter(trajectories))
    if name not in trajectories:
        raise unknown_name("method of this run", name, trajectories)
    return film(trajectories[name], Path(output) if output else run.path / f"{name}.gif", seconds=seconds)


def film(trajectory: Trajectory, path: str | os.PathLike[str], *, seconds: float = 6.0) -> Path:
    """Write a film of `trajectory`, its output times spread evenly over `seconds`; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        Suffix .gif, or .mp4 where ffmpeg is installed.
    seconds : float
        In (0, 600]. At most 15 frames a second are shown.

    Raises
    ------
    InputError
        For another suffix, an empty trajectory, or mp4 without ffmpeg.
    """
    target = Path(path)
    kind = target.suffix[1:].lower()
    if kind not in ("gif", "mp4"):
        raise InputError(f"Films are saved as gif or mp4.\n  path = {str(path)!r}")
    if kind == "mp4" and shutil.which("ffmpeg") is None:
        raise InputError("An mp4 needs ffmpeg, which is not installed.\n  Save a gif instead, or install ffmpeg.")
    if not 0 < seconds <= 600:
        raise InputError(f"A film lasts up to 600 seconds.\n  seconds = {seconds!r}")
    times = trajectory.times
    if not len(times):
        raise InputError("The trajectory is empty: the run failed before its first output.")
    frames = np.unique(np.linspace(0, len(times) - 1, min(len(times), max(2, int(FRAMES_A_SECOND * seconds)))).astype(int))
    pause = seconds / len(frames)
    import matplotlib

    with matplotlib.rc_context({"backend": "Agg"}):
        from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter

        figure, show = _scene(trajectory)
        moving = FuncAnimation(figure, lambda k: show(int(k)), frames=[int(k) for k in frames], interval=1000 * pause, cache_frame_data=False)
        rate: Any = 1 / pause  # need not be a whole number
        writer: Any = PillowWriter(fps=rate) if kind == "gif" else FFMpegWriter(fps=rate)

        def save(file: Any) -> None:
            whole = Path(file.name).with_suffix(f".{kind}")  # the writers look at the suffix
            try:
                moving.save(whole, writer=writer, dpi=100)
                file.write(whole.read_bytes())
            finally:
                whole.unlink(missing_ok=True)

        write_whole(target, save)
    return target


def _scene(trajectory: Trajectory) -> tuple[Any, Any]:
    """`(figure, function that shows the k-th output time)`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sphere = trajectory.final.points.shape[1] == 3
    figure = Figure(figsize=(6.0, 5.0) if sphere else (5.0, 5.0), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure, (_sphere_scene if sphere else _circle_scene)(figure, trajectory)


def _circle_scene(figure: Any, trajectory: Trajectory) -> Any:
    """The circle with its density as a ring of changing height; tokens as dots of an area by their mass."""
    axes = figure.add_subplot(projection="polar")
    axes.set_yticks([])
    axes.grid(alpha=0.3)
    axes.set_ylim(0, 2.2)
    title = axes.set_title("")
    curves = [profile(measure) for measure in trajectory.measures]
    top = max(float(rho.max()) for rho, _ in curves)
    (outline,) = axes.plot([], [], color="#0072B2", linewidth=1.5)
    axes.plot(np.linspace(0, 2 * np.pi, 200), np.ones(200), color="0.6", linewidth=0.8)
    dots = axes.scatter([], [], color="#D55E00", alpha=0.6, linewidths=0)

    def show(k: int) -> list[Any]:
        rho, edges = curves[k]
        theta = (edges[1:] + edges[:-1]) / 2
        outline.set_data(np.append(theta, theta[0] + 2 * np.pi), 1 + np.append(rho, rho[0]) / top)
        measure = trajectory.measures[k]
        if not has_density(measure):
            dots.set_offsets(np.column_stack([measure.angles(), np.ones(len(measure))]))
            dots.set_sizes(10 + 300 * measure.weights)
        title.set_text(f"t = {trajectory.times[k]:.4g}")
        return [outline, dots, title]

    return show


def _sphere_scene(figure: Any, trajectory: Trajectory) -> Any:
    """The sphere in a slow turn: cells coloured by density, tokens with an area by their mass. The film ends with the largest cluster in front."""
    from mfpde.figures.sphere import colours, frame, globe

    axes = figure.add_subplot()
    norm, label, _ = colours([measure for measure in trajectory.measures if measure.mesh is not None], "auto")
    if norm is not None:
        from matplotlib.cm import ScalarMappable

        figure.colorbar(ScalarMappable(norm, COLOUR_MAP), ax=axes, shrink=0.7, label=label)
    last = trajectory.final
    heaviest = last.points[int(np.argmax(last.density() if last.mesh is not None else last.weights))]
    towards = float(np.arctan2(heaviest[1], heaviest[0]))

    def show(k: int) -> list[Any]:
        angle = towards - 2 * np.pi / 3 * (1 - k / max(len(trajectory.times) - 1, 1))
        axes.clear()
        frame(axes, globe(np.array([np.cos(angle), np.sin(angle), np.tan(np.deg2rad(20))])), trajectory.measures[k], norm)
        axes.set_title(f"$t = {trajectory.times[k]:.4g}$")
        return [axes]

    return show
