"""Numbers in the documents come from scripts: measured numbers need one beside them, and generated tables are those of the recorded results.

The rule. A measured number is a decimal number in a row of a table, or in a sentence that says "measured". A section (from one heading to the next)
that holds one also names what produces it, or the introduction of the document does: a folder of `validation/`, a file of `tests/`, or a record of
`docs/results/`, and all that is named exists.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "validation").glob("*/README.md"))]
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+|\d(?:\.\d+)?e-\d+")
SOURCES = re.compile(r"(?:validation|tests)/[\w/]+(?:\.py)?|(?:docs/)?results/\w+\.json")
MARKED = re.compile(r"<!-- results: ([\w, ]+) -->(.*?)<!-- end of results -->", re.DOTALL)


def sections(text: str) -> list[str]:
    """From one heading to the next; code blocks are left out."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.split(r"(?m)^(?=#+ )", prose)


def measured(section: str) -> list[str]:
    """Lines with measured numbers."""
    return [line for line in section.splitlines() if DECIMAL.search(line) and (line.lstrip().startswith("|") or "measured" in line.lower())]


def sources(section: str) -> list[str]:
    return [name.rstrip("/") for name in SOURCES.findall(section)]


def exists(name: str) -> bool:
    path = ROOT / "docs" / name if name.startswith("results/") else ROOT / name
    return path.exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_measured_numbers_name_their_script(document):
    parts = sections(document.read_text())
    named = any(sources(part) for part in parts if not part.startswith("##"))
    orphans = {part.splitlines()[0]: measured(part) for part in parts if measured(part) and not (named or sources(part))}
    assert not orphans, f"numbers without a script: {orphans}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_named_exists(document):
    assert not [name for name in sources(document.read_text()) if not exists(name)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_tables_are_those_of_the_records(document):
    for names, body in MARKED.findall(document.read_text()):
        for name in filter(None, (name.strip() for name in names.split(","))):
            file = ROOT / "docs" / "results" / f"{name}.json"
            if not file.is_file() or not body.strip():
                assert f"`validation/{name}`" not in body  # no record, no number
                continue
            record = json.loads(file.read_text())
            assert record["date"] in body
            for verdict in record["verdicts"]:
                assert "| " + verdict["quantity"].replace("|", "\\|") + " |" in body, f"run validation/tables.py: {document.name} lacks {verdict['quantity']}"


def test_the_rule_finds_an_orphan():
    assert measured("| a | 0.123 |") == ["| a | 0.123 |"]
    assert not sources("| a | 0.123 |")
    assert sources("see validation/plateau/run.py") == ["validation/plateau/run.py"]
