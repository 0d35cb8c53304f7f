"""Just-in-time compilation of the inner loops, cached on disk where a folder can be written.

numba compiles a kernel at its first call and keeps the machine code beside the package, or in the user's cache
folder when the package is read-only. Where neither can be written it compiles anew in every process, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
import numpy as np

parallel_range = numba.prange


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorate a kernel: `@compiled` or `@compiled(parallel=True)`. Strict IEEE arithmetic unless `fastmath` is given."""
    if function is None:
        return lambda f: compiled(f, **options)
    if options.get("parallel"):
        function = _renamed(function, f"{function.__name__}_parallel")
    try:
        return numba.njit(function, cache=True, nogil=True, **options)
    except RuntimeError:  # "cannot cache function: no locator available": no writable folder anywhere
        return numba.njit(function, nogil=True, **options)


def _renamed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same code under another name: numba's cache knows a function by its name, not by its options, and would mix up serial and parallel code."""
    twin = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    twin.__module__, twin.__qualname__ = function.__module__, name
    return twin


def as_float_array(values: Any) -> np.ndarray:
    """A contiguous float64 array, so that a kernel is compiled for one signature only."""
    return np.ascontiguousarray(values, dtype=np.float64)
