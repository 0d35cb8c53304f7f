"""Progress of a run: a bar with the remaining time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[float, Any], None]


@contextmanager
def reporter(progress: bool | Report, t_end: float, label: str = "t") -> Iterator[Report]:
    """A function `(time, state)` that shows how far a run has come; it costs a microsecond when nothing is due."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda time, state: None
    elif sys.stderr.isatty():
        with _bar(t_end, label) as report:
            yield report
    else:
        yield _lines(t_end, label)


@contextmanager
def _bar(t_end: float, label: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.3g}/{task.total:g}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=10) as bar:
        task = bar.add_task(label, total=t_end)
        next_due = 0.0

        def report(time: float, state: Any) -> None:
            nonlocal next_due
            if clock.monotonic() >= next_due:
                bar.update(task, completed=time)
                next_due = clock.monotonic() + 0.1

        yield report


def _lines(t_end: float, label: str) -> Report:
    started = clock.monotonic()
    next_due = started + 1.0

    def report(time: float, state: Any) -> None:
        nonlocal next_due
        now = clock.monotonic()
        if now >= next_due:
            left = (now - started) * (t_end - time) / time if time > 0 else float("inf")
            print(f"{label} = {time:.4g} of {t_end:g}, {now - started:.0f} s, about {left:.0f} s left", file=sys.stderr, flush=True)
            next_due = now + 5.0

    return report
