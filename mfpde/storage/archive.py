"""Arrays on disk: laws as named arrays, and files that appear whole or not at all.

Everything the package keeps is an `.npz` of plain arrays and one JSON text, written to a temporary file beside its target and moved into
place, so that a process killed at any moment leaves the old file or the new one. Numbers come back bit for bit.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from mfpde.errors import InputError
from mfpde.geometry import Geometry
from mfpde.measure import Measure
from mfpde.mesh import Mesh

Arrays = dict[str, np.ndarray]
DAMAGE = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, OSError, EOFError, TypeError, AttributeError, NotImplementedError, IndexError)


def write_whole(target: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Let `write(file)` fill a temporary file beside `target`, then move it into place in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        os.close(handle)
        with open(name, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def write_text(target: Path, text: str) -> None:
    """`text` as a file that appears whole."""
    write_whole(target, lambda file: file.write(text.encode()))


def write_arrays(target: Path, arrays: Arrays, meta: dict[str, Any], *, compress: bool = True) -> None:
    """`arrays` and `meta` (anything JSON can say; numpy numbers become floats) as one `.npz`."""
    save = np.savez_compressed if compress else np.savez
    named = {**arrays, "meta": np.array(json.dumps(meta, default=float))}
    write_whole(target, lambda file: save(file, allow_pickle=False, **named))


def read_arrays(source: Path, what: str) -> tuple[Arrays, dict[str, Any]]:
    """What `write_arrays` wrote; `InputError` when the file is missing or damaged. `what` names the content in the message."""
    try:
        with open(source, "rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
        meta = json.loads(str(arrays.pop("meta")))
        if not isinstance(meta, dict):
            raise ValueError("its description is no dictionary")
    except FileNotFoundError:
        raise InputError(f"There is no {what} at {source}.") from None
    except DAMAGE as error:
        raise InputError(f"{source} is no {what} of this package, or it is damaged.\n  {type(error).__name__}: {error}") from None
    return arrays, meta


def common_mesh(measures: Sequence[Measure]) -> Mesh | None:
    """The mesh of all `measures`, or None. A geometry and a number of cells determine a mesh, so two copies of it are one."""
    if not measures or measures[0].mesh is None:
        return None
    first = measures[0].mesh
    same = all(m.mesh is first or (m.mesh is not None and m.mesh.geometry == first.geometry and len(m.mesh) == len(first)) for m in measures)
    return first if same else None


@lru_cache(maxsize=4)
def _mesh(geometry: str, cells: int) -> Mesh:
    geometries = {kind.__name__: kind for kind in Geometry.__subclasses__()}
    return geometries[geometry]().mesh(cells)


def pack_laws(measures: Sequence[Measure]) -> tuple[Arrays, dict[str, Any]]:
    """`(arrays, description)` of laws: weights alone on a common mesh, else points and weights of each, and its moving cells where it has them."""
    mesh = common_mesh(measures)
    if mesh is not None:
        about = {"geometry": type(mesh.geometry).__name__, "cells": len(mesh)}
        return {"weights": np.array([measure.weights for measure in measures])}, {"laws": len(measures), "mesh": about}
    arrays: Arrays = {}
    for i, measure in enumerate(measures):
        arrays[f"points_{i}"], arrays[f"weights_{i}"] = measure.points, measure.weights
        cells = getattr(measure, "cells", None)
        if cells is not None:
            arrays |= {f"cells_{i}_{name}": array for name, array in cells._asdict().items()}
    return arrays, {"laws": len(measures)}


def unpack_laws(arrays: Arrays, meta: dict[str, Any]) -> list[Measure]:
    """The laws that `pack_laws` packed, bit for bit; a mesh is built anew."""
    if "mesh" in meta:
        mesh = _mesh(meta["mesh"]["geometry"], meta["mesh"]["cells"])
        return [Measure(mesh.centres, weights, mesh) for weights in arrays["weights"]]
    return [_law(arrays, i) for i in range(meta["laws"])]


def _law(arrays: Arrays, i: int) -> Measure:
    prefix = f"cells_{i}_"
    cells = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    if not cells:
        return Measure(arrays[f"points_{i}"], arrays[f"weights_{i}"])
    from mfpde.methods.cell_measure import CellMeasure
    from mfpde.methods.moving_cells import Cells

    return CellMeasure(arrays[f"points_{i}"], arrays[f"weights_{i}"], cells=Cells(**cells))


def as_numbers(name: str, values: Any) -> np.ndarray:
    """Observed values as one array of numbers, or an `InputError`."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype == object:
        raise InputError(f"The observable {name!r} is no array of numbers and cannot be saved.\n  Let the observer return numbers or arrays of one shape.")
    return array
