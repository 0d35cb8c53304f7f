"""Claims that numbers can refute: a script measures, `expected.json` beside it says what is expected and why, a table says how it went.

    validation/NAME/run.py         measures; takes --quick and -o FILE
    validation/NAME/expected.json  {"quantity": {"low": ..., "high": ..., "reason": "..."}}; a bound may be left out
    validation/NAME/README.md      the claim, its source, and what would refute it
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time as clock
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """One quantity: what was expected, what was measured, and whether the claim holds."""

    quantity: str
    measured: float
    low: float
    high: float
    reason: str

    @property
    def holds(self) -> bool:
        """False for NaN too."""
        return self.low <= self.measured <= self.high


def judge(measured: dict[str, float], expected: dict[str, dict[str, Any]]) -> list[Verdict]:
    """A verdict for each measured quantity; one without expectation is a `KeyError`, since a number nobody expects proves nothing.

    >>> [verdict.holds for verdict in judge({"order": 1.96}, {"order": {"low": 1.8, "high": 2.2, "reason": "second order"}})]
    [True]
    """
    return [
        Verdict(name, float(value), expected[name].get("low", -math.inf), expected[name].get("high", math.inf), expected[name]["reason"])
        for name, value in measured.items()
    ]


def table(verdicts: list[Verdict]) -> str:
    """The table `claim | expected | measured | verdict` as text."""
    width = max(len(v.quantity) for v in verdicts)
    lines = [f"{'claim':<{width}}  {'expected':>24}  {'measured':>11}  verdict"]
    for v in verdicts:
        low = "" if v.low == -math.inf else f"{v.low:g} <= "
        high = "" if v.high == math.inf else f" <= {v.high:g}"
        lines.append(f"{v.quantity:<{width}}  {low + 'x' + high:>24}  {v.measured:11.4g}  {'holds' if v.holds else 'FAILS'}")
    return "\n".join(lines)


def run(script: str, measure: Callable[[bool], dict[str, float]], description: str) -> int:
    """The `main` of a validation script: parse --quick and -o, measure, judge, print, write JSON; 0 if every claim holds, else 1."""
    folder = Path(script).resolve().parent
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a subset that takes seconds")
    parser.add_argument("-o", "--output", type=Path, help="write the numbers to this JSON file")
    arguments = parser.parse_args()
    started = clock.monotonic()
    measured = measure(arguments.quick)
    verdicts = judge(measured, json.loads((folder / "expected.json").read_text()))
    print(table(verdicts))
    if arguments.output:
        record = {
            "claim": folder.name,
            "quick": arguments.quick,
            "date": clock.strftime("%Y-%m-%d"),
            "python": platform.python_version(),
            "seconds": clock.monotonic() - started,
            "verdicts": [{**asdict(v), "holds": v.holds} for v in verdicts],
        }
        arguments.output.write_text(json.dumps(record, indent=2) + "\n")
    return 0 if all(v.holds for v in verdicts) else 1
