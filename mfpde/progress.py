"""Progress of a run: a bar with the remaining time on a terminal, plain lines elsewhere, one JSON object a line for machines.

Lines and JSON come from a thread that wakes when something is due, so that a long step does not look like a hang: the first after one
second, whatever the run does. The remaining time is what the rate of the last half minute promises.
"""

from __future__ import annotations

import json
import sys
import threading
import time as clock
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[float, Any], None]
RECENT = 30.0  # seconds that the estimate of the remaining time looks back
FIRST, AGAIN = 0.8, {"lines": 5.0, "json": 1.0}  # seconds until the first message, and between later ones


@contextmanager
def reporter(progress: bool | str | Report, t_end: float, label: str = "t") -> Iterator[Report]:
    """A function `(time, state)` that shows how far a run has come; it costs a microsecond when nothing is due.

    `progress`: False, True (a bar on a terminal, else lines), "json", or such a function itself. A `state` that is a text names the stage.
    """
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda time, state: None
    elif progress == "json":
        with _heard("json", t_end, label) as report:
            yield report
    elif sys.stderr.isatty():
        with _bar(t_end, label) as report:
            yield report
    else:
        with _heard("lines", t_end, label) as report:
            yield report


@contextmanager
def _bar(t_end: float, label: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.3g}/{task.total:g}"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=RECENT) as bar:
        task = bar.add_task(label, total=t_end)
        next_due = 0.0

        def report(time: float, state: Any) -> None:
            nonlocal next_due
            if clock.monotonic() >= next_due:
                bar.update(task, completed=time, description=f"{label} {state}" if isinstance(state, str) else label)
                next_due = clock.monotonic() + 0.1

        yield report


class _Account:
    """How far a run has come, and how fast."""

    def __init__(self, t_end: float) -> None:
        self.t_end, self.started = t_end, clock.monotonic()
        self.time, self.stage = 0.0, "preparing"
        self.recent: deque[tuple[float, float]] = deque([(self.started, 0.0)])

    def note(self, now: float, time: float, state: Any) -> None:
        self.time = time
        self.stage = state if isinstance(state, str) else ""
        if now - self.recent[-1][0] >= 0.1 or len(self.recent) == 1:
            self.recent.append((now, time))
        while len(self.recent) > 2 and self.recent[1][0] < now - RECENT:
            self.recent.popleft()

    def left(self, now: float) -> float:
        """Seconds to go, inf while nothing has moved."""
        then, before = self.recent[0]
        return (now - then) * (self.t_end - self.time) / (self.time - before) if self.time > before else float("inf")


@contextmanager
def _heard(kind: str, t_end: float, label: str) -> Iterator[Report]:
    account, lock, over = _Account(t_end), threading.Lock(), threading.Event()
    next_due = account.started + FIRST

    def say_if_due() -> None:
        nonlocal next_due
        with lock:
            now = clock.monotonic()
            if now < next_due or over.is_set():
                return
            next_due = now + AGAIN[kind]
            elapsed, left = now - account.started, account.left(now)
            if kind == "json":
                known = left if left < float("inf") else None
                line = json.dumps(
                    {"event": "progress", "label": label, "stage": account.stage, "done": account.time, "of": t_end, "seconds": elapsed, "left": known}
                )
            else:
                stage = f", {account.stage}" if account.stage else ""
                line = f"{label} = {account.time:.4g} of {t_end:g}{stage}, {elapsed:.0f} s, about {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    def report(time: float, state: Any) -> None:
        now = clock.monotonic()
        account.note(now, time, state)
        if now >= next_due:
            say_if_due()

    def watch() -> None:
        while not over.wait(0.2):
            say_if_due()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield report
    finally:
        over.set()
        watcher.join()


def announce(progress: bool | str | Report, event: str, **facts: Any) -> None:
    """One fact about a run: a JSON line for machines, a plain line for people, nothing when quiet or when progress is a function."""
    if progress == "json":
        print(json.dumps({"event": event, **facts}, default=str), file=sys.stderr, flush=True)
    elif progress is True:
        print(f"{event}: " + ", ".join(f"{name} {value}" for name, value in facts.items()), file=sys.stderr, flush=True)
