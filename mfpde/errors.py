"""The errors of the package: what went wrong, what was given, what to do.

Every message has three parts: the fact, the values that led to it (indented), and the usual remedy.
The command line turns `InputError` into exit code 2 and `NumericalError` into exit code 3.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """The question was ill posed: shapes, signs, names or values that no solver can use."""


class NumericalError(RuntimeError):
    """The question was fine, but a promise about the answer could not be kept.

    Raised by `solve`, its `trajectory` holds what was computed until then.
    """

    trajectory: Any = None


class ToleranceError(NumericalError):
    """A computed error bound exceeds the tolerance that was promised."""


def unknown_name(kind: str, given: str, known: Iterable[str]) -> InputError:
    """An `InputError` that answers a wrong name with the nearest right one."""
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "Choose one of them."
    return InputError(f"Unknown {kind} {given!r}.\n  Known: {', '.join(names)}.\n  {hint}")
