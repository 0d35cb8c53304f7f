"""The validation suite: find the claims of the source tree, run them, and say which hold.

A claim is a folder `validation/NAME` with a script `run.py [--quick] [-o FILE]` (`mfpde.claims`). Each runs in a process of its own, so that none can spoil
another, and its exit code counts as much as its numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time as clock
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mfpde.claims import Verdict
from mfpde.errors import InputError, unknown_name


@dataclass(frozen=True)
class Outcome:
    """How one claim went.

    Attributes
    ----------
    name : str
    folder : Path
    code : int
        Exit code of the script.
    seconds : float
        Wall-clock time.
    output : str
        What the script printed, errors last.
    record : dict
        What it wrote (`mfpde.claims.write`); empty if it wrote nothing.
    pictures : dict
        PNG bytes by file name.
    """

    name: str
    folder: Path
    code: int
    seconds: float
    output: str
    record: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)

    @property
    def verdicts(self) -> list[Verdict]:
        """One for each number; none if the script wrote no record."""
        return [read_verdict(entry) for entry in self.record.get("verdicts", [])]

    @property
    def holds(self) -> bool:
        """Whether the script ended with 0 and each of its numbers lies where it should."""
        return self.code == 0 and all(v.holds for v in self.verdicts)


def read_verdict(entry: dict[str, Any]) -> Verdict:
    """A verdict from its record."""
    low, high = (float(infinity) if entry[name] is None else float(entry[name]) for name, infinity in (("low", "-inf"), ("high", "inf")))
    measured = entry["measured"]
    return Verdict(entry["quantity"], float("inf") if measured is None else float(measured), low, high, entry["reason"])


def find_claims() -> Path:
    """The folder `validation` of the source tree: that of the working directory or one above it, else the one beside the package."""
    here = Path.cwd()
    for home in (here, *here.parents, Path(__file__).resolve().parent.parent):
        if any((home / "validation").glob("*/run.py")):
            return home / "validation"
    raise InputError(f"The claims come with the source tree, and none is here.\n  Looked for validation/*/run.py in {here} and above.\n  Run from a clone.")


def names_in(claims: Path) -> list[str]:
    """All claims by name."""
    return sorted(script.parent.name for script in claims.glob("*/run.py"))


def chosen(claims: Path, names: Sequence[str]) -> list[str]:
    """The claims asked for, all if none is named; an `InputError` for an unknown one."""
    known = names_in(claims)
    for name in names:
        if name not in known:
            raise unknown_name("claim", name, known)
    return list(dict.fromkeys(names)) or known


def run_claim(claims: Path, name: str, *, quick: bool, threads: int) -> Outcome:
    """Run one script in a fresh process with that many threads. One that does not take -o is run without it and judged by its exit code alone."""
    folder = claims / name
    words = [sys.executable, str(folder / "run.py"), *(["--quick"] if quick else [])]
    environment = dict(os.environ, NUMBA_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), MPLBACKEND="Agg")
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    started = clock.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / f"{name}.json"

        def start(*more: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([*words, *more], capture_output=True, text=True, env=environment, cwd=claims.parent)

        done = start("-o", str(file))
        if done.returncode == 2 and "unrecognized arguments: -o" in done.stderr:
            done = start()
        record = json.loads(file.read_text()) if file.is_file() else {}
        pictures = {picture["file"]: (file.parent / picture["file"]).read_bytes() for picture in record.get("figures", [])}
    return Outcome(name, folder, done.returncode, clock.monotonic() - started, done.stdout + done.stderr, record, pictures)


def runs_alone(claims: Path, name: str) -> bool:
    """Whether the claim is about seconds, so that nothing else may run meanwhile: the entry "run alone" of its expected.json, with the reason."""
    expected = claims / name / "expected.json"
    return expected.is_file() and "run alone" in json.loads(expected.read_text())


def validate(claims: Path, names: Sequence[str], *, quick: bool = False, jobs: int = 1, report: Callable[[int, Outcome], None] | None = None) -> list[Outcome]:
    """Run the claims, `jobs` at a time, then one by one those that run alone; `report(how many are done, outcome)` is called as each one ends."""
    if jobs < 1:
        raise InputError(f"jobs is a whole number >= 1.\n  jobs = {jobs}")
    processors = os.cpu_count() or 1
    wanted = chosen(claims, names)
    alone = [name for name in wanted if runs_alone(claims, name)]
    outcomes: dict[str, Outcome] = {}
    for group, workers in (([name for name in wanted if name not in alone], jobs), (alone, 1)):
        with ThreadPoolExecutor(max_workers=workers) as pool:
            futures = [pool.submit(run_claim, claims, name, quick=quick, threads=max(1, processors // workers)) for name in group]
            for future in as_completed(futures):
                outcome = future.result()
                outcomes[outcome.name] = outcome
                if report:
                    report(len(outcomes), outcome)
    return [outcomes[name] for name in wanted]


def keep(outcomes: Sequence[Outcome], results: Path) -> None:
    """Write each record and its pictures into the folder `results`, one file a claim: the latest output, with its date and version."""
    results.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes:
        if outcome.record:
            for old in results.glob(f"{outcome.name}-[0-9]*.png"):
                old.unlink()
            (results / f"{outcome.name}.json").write_text(json.dumps(outcome.record, indent=1) + "\n")
            for name, picture in outcome.pictures.items():
                (results / name).write_bytes(picture)


def table(outcomes: Sequence[Outcome]) -> str:
    """`claim | expected | measured | verdict` for all outcomes, as text."""
    rows = [("claim", "expected", "measured", "verdict")]
    for outcome in outcomes:
        rows += [(f"{outcome.name}: {v.quantity}", v.expected, f"{v.measured:.4g}", "holds" if v.holds else "FAILS") for v in outcome.verdicts]
        if not outcome.verdicts or (outcome.code != 0 and all(v.holds for v in outcome.verdicts)):
            rows.append((outcome.name, "exit code 0", f"{outcome.code}", "holds" if outcome.code == 0 else "FAILS"))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}" for row in rows)
