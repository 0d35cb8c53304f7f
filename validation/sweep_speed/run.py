"""A sweep of 64 points on one worker and on two: the same table, in how much less time?

    python validation/sweep_speed/run.py [--quick] [-o FILE]

Wall-clock time includes starting and stopping the workers. It measures the machine as much as the program: run it on an idle one.
"""

from __future__ import annotations

import csv
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mfpde import claims


def table(folder: Path) -> list[dict[str, str]]:
    """The rows without the seconds."""
    with open(folder / "table.csv") as file:
        return [{key: value for key, value in row.items() if not key.endswith("seconds")} for row in csv.DictReader(file)]


def measure(quick: bool) -> claims.Findings:
    try:
        import distributed  # noqa: F401
    except ImportError:
        print('left out: the extra "sweep" is not installed')
        raise SystemExit(0) from None
    from mfpde.runs.sweep import parse_sweep, run_sweep

    points = 8 if quick else 64
    words = [f"beta=2:8:lin{points // 2}", "distance=1.5,2.0", "only=pde,particles", "output.times=3", "methods.particles.n=100"]
    sweep = parse_sweep("two_clusters", [*words, "cells=64" if quick else "cells=512", "t_end=1.0" if quick else "t_end=40.0"])
    found = claims.Findings()
    rows: list[list[Any]] = [["workers", "points", "failed", "seconds"]]
    seconds, tables = {}, {}
    with tempfile.TemporaryDirectory() as home:
        for jobs in (1, 2):
            folder = Path(home) / str(jobs)
            started = time.perf_counter()
            _, failures = run_sweep(sweep, folder, jobs=jobs)
            seconds[jobs] = time.perf_counter() - started
            tables[jobs] = table(folder)
            rows.append([jobs, len(tables[jobs]), len(failures), round(seconds[jobs], 1)])
            print(*rows[-1], flush=True)
    found.numbers["points missing"] = points - len(tables[2])
    found.numbers["rows that differ between one and two workers"] = sum(a != b for a, b in zip(tables[1], tables[2], strict=True))
    if not quick:
        found.numbers["speed-up"] = seconds[1] / seconds[2]
    found.tables["One and two workers"] = rows
    return found


if __name__ == "__main__":
    sys.exit(claims.run(__file__, measure, __doc__ or ""))
