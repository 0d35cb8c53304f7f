"""Matrices of a run file: lists of rows, or files that a trained model left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mfpde.errors import InputError
from mfpde.storage.archive import DAMAGE


def read_weights(base: Path, name: Any, wanted: tuple[str, ...]) -> list[np.ndarray]:
    """The matrices `wanted` of an `.npz` by their names, or of an `.npy` in their order."""
    if not isinstance(name, str) or not name.endswith((".npz", ".npy")):
        raise InputError(f"Weights are kept in an .npz or .npy file.\n  Given: {name!r}")
    path = base / name
    try:
        data = np.load(path, allow_pickle=False)
        if isinstance(data, np.ndarray):
            arrays = [data] if len(wanted) == 1 else list(data)
        else:
            with data:
                missing = [key for key in wanted if key not in data.files]
                if missing:
                    raise InputError(f"{path} holds no {', '.join(missing)}.\n  It holds {', '.join(data.files)}.")
                arrays = [data[key] for key in wanted]
        if len(arrays) != len(wanted):
            raise InputError(f"{path} should hold {len(wanted)} matrices.\n  Its shape is {np.shape(data)}.")
        return arrays
    except FileNotFoundError:
        raise InputError(f"There is no file of weights at {path}.") from None
    except DAMAGE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as a file of weights.\n  {type(error).__name__}: {error}") from None


def matrix(name: str, given: Any) -> np.ndarray:
    """A rectangular array of real numbers, or an `InputError`."""
    try:
        array = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} is a matrix of numbers, a list of rows.\n  {type(error).__name__}: {error}") from None
    if array.ndim != 2 or not np.isfinite(array).all():
        raise InputError(f"{name} is a matrix of finite numbers, a list of rows.\n  Its shape is {array.shape}.")
    return array
