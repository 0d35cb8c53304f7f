"""What all pictures share: palette, sizes, axes, legends, and files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mfpde.errors import InputError
from mfpde.measure import Measure
from mfpde.methods.cell_measure import CellMeasure
from mfpde.trajectory import Trajectory, write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's palette, distinguishable with every common colour blindness, without its yellow; and a perceptually uniform map
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))  # a second cue beside the colour, for print without it
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
GUIDE = "#555555"
COLOUR_MAP = "viridis"
WIDTH = 6.4  # inches; a text column and a half
TWO_PI = 2 * np.pi

Times = Sequence[float] | np.ndarray


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
        parts.append(_size(final))
    if trajectory.problem is not None:
        beta = trajectory.problem.attention.beta
        parts.append(r"$\beta = \infty$" if beta == np.inf else rf"$\beta = {beta:g}$")
    return "".join(f", {part}" for part in parts)


def _size(law: Measure) -> str:
    """`512 cells`, `100 tokens`."""
    if isinstance(law, CellMeasure):
        return f"{len(law.cells.masses)} cells"
    return f"{len(law)} {'cells' if law.mesh is not None else 'tokens' if len(law) > 1 else 'token'}"


def _short(method: str) -> str:
    """`FiniteVolume` of `FiniteVolume(cells=512, ...)`."""
    return method.split("(")[0]
