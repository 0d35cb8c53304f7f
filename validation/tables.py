"""Write the measured numbers of docs/results/*.json between the markers that name them: in README.md, docs/validation.md and validation/*/README.md.

READMEs get the numbers; docs/validation.md, the page of the suite, gets expectations, verdicts, tables of fits and figures, too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
PATTERN = re.compile(r"<!-- results: (?P<names>[\w, ]+) -->.*?<!-- end of results -->", re.DOTALL)


def head(name: str, record: dict[str, Any]) -> str:
    version = f", version {record['versions']['mfpde']}" if "versions" in record else ""
    return f"`validation/{name}`, {record['date']}{version}, {'quick' if record['quick'] else 'full'}, {record['seconds']:.0f} s:"


def numbers(name: str) -> str:
    """A Markdown table of one claim's measured numbers."""
    record = json.loads((RESULTS / f"{name}.json").read_text())
    rows = [f"| {text(v['quantity'])} | {v['measured']:.3g} |" for v in record["verdicts"]]
    return "\n".join([head(name, record), "", "| quantity | measured |", "|---|---|", *rows])


def everything(name: str) -> str:
    """Verdicts, tables and figures of one claim."""
    from mfpde.claims.suite import read_verdict

    record = json.loads((RESULTS / f"{name}.json").read_text())
    verdicts = [read_verdict(entry) for entry in record["verdicts"]]
    lines = [f"### {name}", "", head(name, record), "", "| quantity | expected | measured | verdict |", "|---|---|---|---|"]
    lines += [f"| {text(v.quantity)} | {v.expected} | {v.measured:.4g} | {'holds' if v.holds else 'FAILS'} |" for v in verdicts]
    for caption, rows in record.get("tables", {}).items():
        lines += ["", f"*{caption}*", "", *(f"| {' | '.join(text(cell) for cell in row)} |" for row in rows[:1]), "|" + "---|" * len(rows[0])]
        lines += [f"| {' | '.join(text(cell) for cell in row)} |" for row in rows[1:]]
    for picture in record.get("figures", []):
        lines += ["", f"![{picture['caption']}](results/{picture['file']})", "", f"*{picture['caption']}*"]
    return "\n".join(lines)


def text(cell: Any) -> str:
    return (cell if isinstance(cell, str) else "inf" if cell is None else f"{cell:.5g}").replace("|", "\\|")


def main() -> None:
    pages = [(page, numbers) for page in (ROOT / "README.md", *sorted((ROOT / "validation").glob("*/README.md")))]
    for page, show in (*pages, (ROOT / "docs" / "validation.md", everything)):

        def fill(match: re.Match[str], show: Any = show) -> str:
            names = [name.strip() for name in match["names"].split(",")]
            known = [name for name in names if (RESULTS / f"{name}.json").is_file()]
            if known != names:
                print(f"no record of {', '.join(sorted(set(names) - set(known)))}: run mfpde validate NAME --keep docs/results")
            return "\n\n".join([f"<!-- results: {match['names']} -->", *map(show, known), "<!-- end of results -->"])

        text_before = page.read_text()
        text_after = PATTERN.sub(fill, text_before)
        if text_after != text_before:
            page.write_text(text_after)


if __name__ == "__main__":
    main()
