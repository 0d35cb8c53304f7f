"""Write the measured numbers of docs/results/*.json into README.md, between the markers that name them."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def table(name: str) -> str:
    """A Markdown table of one claim's verdicts."""
    record = json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text())
    rows = [f"| {v['quantity']} | {v['measured']:.3g} |" for v in record["verdicts"]]
    return "\n".join([f"`validation/{name}`, {record['date']}, {'quick' if record['quick'] else 'full'}:", "", "| quantity | measured |", "|---|---|", *rows])


def main() -> None:
    readme = ROOT / "README.md"
    pattern = re.compile(r"<!-- results: (?P<names>[\w, ]+) -->.*?<!-- end of results -->", re.DOTALL)

    def fill(match: re.Match[str]) -> str:
        names = [name.strip() for name in match["names"].split(",")]
        return "\n\n".join([f"<!-- results: {match['names']} -->", *map(table, names), "<!-- end of results -->"])

    readme.write_text(pattern.sub(fill, readme.read_text()))


if __name__ == "__main__":
    main()
