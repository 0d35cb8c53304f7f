"""Claims that numbers can refute: a script measures, `expected.json` beside it says what is expected and why, a table says how it went.

    validation/NAME/run.py         measures; takes --quick and -o FILE
    validation/NAME/expected.json  {"quantity": {"low": ..., "high": ..., "reason": "..."}}; a bound may be left out, a quantity may be a pattern with *;
                                   "run alone": "reason" for claims about seconds, beside which nothing else may run
    validation/NAME/README.md      the claim, its source, and what would refute it

With -o FILE.json the verdicts are written there, and the figures beside it as FILE-1.png, FILE-2.png and so on.
"""

from __future__ import annotations

import argparse
import json
import math
import runpy
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mfpde.storage.provenance import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    @property
    def expected(self) -> str:
        """The interval as text."""
        low = "" if self.low == -math.inf else f"{self.low:g} <= "
        high = "" if self.high == math.inf else f" <= {self.high:g}"
        return f"{low}x{high}"


@dataclass
class Findings:
    """What a script has measured: the numbers to be judged, and what a reader wants to see beside them.

    Attributes
    ----------
    numbers : dict
        Quantity to value; each needs an expectation.
    tables : dict
        Caption to rows of texts or numbers, the head first.
    figures : dict
        Caption to matplotlib figure.
    seeds : list of int
        Of every random number that was drawn.
    """

    numbers: dict[str, float] = field(default_factory=dict)
    tables: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)


Measure = Callable[[bool], dict[str, float] | Findings]


def expectation_of(quantity: str, expected: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The entry of that name, else the longest pattern that matches it; none is a `KeyError`, since a number nobody expects proves nothing.

    >>> expectation_of("rate, p = 2", {"rate*": {"low": 1}, "*": {"low": 0}})
    {'low': 1}
    """
    if quantity in expected:
        return expected[quantity]
    matching = [pattern for pattern in expected if "*" in pattern and fnmatchcase(quantity, pattern.replace("[", "[[]"))]
    if not matching:
        raise KeyError(f"expected.json has no entry for {quantity!r}")
    return expected[max(matching, key=len)]


def judge(measured: Mapping[str, float], expected: Mapping[str, dict[str, Any]]) -> list[Verdict]:
    """A verdict for each measured quantity.

    >>> [verdict.holds for verdict in judge({"order": 1.96}, {"order": {"low": 1.8, "high": 2.2, "reason": "second order"}})]
    [True]
    """
    verdicts = []
    for name, value in measured.items():
        entry = expectation_of(name, expected)
        verdicts.append(Verdict(name, float(value), float(entry.get("low", -math.inf)), float(entry.get("high", math.inf)), entry["reason"]))
    return verdicts


def check(folder: Path, *, quick: bool = True) -> list[Verdict]:
    """The verdicts of the claim in `folder`, measured in this process: what `run.py` would print. For tests that break the model on purpose."""
    measure = runpy.run_path(str(folder / "run.py"), run_name="claim")["measure"]
    return judge(as_findings(measure(quick)).numbers, json.loads((folder / "expected.json").read_text()))


def as_findings(measured: dict[str, float] | Findings) -> Findings:
    """Numbers alone are findings, too."""
    return measured if isinstance(measured, Findings) else Findings(numbers=dict(measured))


def table(verdicts: list[Verdict]) -> str:
    """The table `claim | expected | measured | verdict` as text."""
    width = max(len(v.quantity) for v in verdicts)
    lines = [f"{'claim':<{width}}  {'expected':>24}  {'measured':>11}  verdict"]
    lines += [f"{v.quantity:<{width}}  {v.expected:>24}  {v.measured:11.4g}  {'holds' if v.holds else 'FAILS'}" for v in verdicts]
    return "\n".join(lines)


def run(script: str, measure: Measure, description: str) -> int:
    """The `main` of a validation script: parse --quick and -o, measure, judge, print, write JSON and figures; 0 if every claim holds, else 1."""
    folder = Path(script).resolve().parent
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a subset that takes seconds")
    parser.add_argument("-o", "--output", type=Path, help="write the numbers to this JSON file, and figures beside it")
    arguments = parser.parse_args()
    started = clock.monotonic()
    found = as_findings(measure(arguments.quick))
    seconds = clock.monotonic() - started
    verdicts = judge(found.numbers, json.loads((folder / "expected.json").read_text()))
    print(table(verdicts))
    if arguments.output:
        write(arguments.output, folder.name, found, verdicts, quick=arguments.quick, seconds=seconds)
    return 0 if all(v.holds for v in verdicts) else 1


def write(file: Path, claim: str, found: Findings, verdicts: list[Verdict], *, quick: bool, seconds: float) -> None:
    """The record of a claim: `file` as strict JSON (an open bound is null, NaN and infinities are texts), figures as PNG beside it."""
    origin = provenance()
    pictures = []
    for number, (caption, figure) in enumerate(found.figures.items(), start=1):
        picture = file.with_name(f"{file.stem}-{number}.png")
        figure.savefig(picture, dpi=110)
        pictures.append({"file": picture.name, "caption": caption})
    record = {
        "claim": claim,
        "quick": quick,
        "date": origin["date"][:10],
        "python": origin["python"],
        "versions": origin["versions"],
        "commit": origin["commit"],
        "machine": f"{origin['platform']}, {origin['processors']} processors",
        "seconds": seconds,
        "seeds": found.seeds,
        "verdicts": [{name: _plain(value) for name, value in asdict(v).items()} | {"holds": v.holds} for v in verdicts],
        "tables": {caption: [[_plain(cell) for cell in row] for row in rows] for caption, rows in found.tables.items()},
        "figures": pictures,
    }
    file.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """What strict JSON can hold."""
    if isinstance(value, str) or value is None:
        return value
    number = float(value)
    if math.isinf(number):
        return None
    return "nan" if math.isnan(number) else (int(number) if number.is_integer() and not isinstance(value, float) else number)
