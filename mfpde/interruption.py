"""Stopping politely: the first SIGINT or SIGTERM asks the running step to be the last one, the second ends the process as usual."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_asked = threading.Event()


class Interrupted(KeyboardInterrupt):
    """The run has stopped between two steps because it was asked to; its text says how to go on."""


def asked() -> bool:
    """Whether a signal has asked the run to stop."""
    return _asked.is_set()


@contextmanager
def polite() -> Iterator[None]:
    """Within it the first SIGINT or SIGTERM only sets `asked()`; outside the main thread, where no handler can be set, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _asked.clear()
    signals = [signal.SIGINT, signal.SIGTERM]
    before = {number: signal.getsignal(number) for number in signals}

    def ask(number: int, frame: Any) -> None:
        _asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second one is not so polite
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    for number in signals:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _asked.clear()
