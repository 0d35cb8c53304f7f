"""The report of the validation suite: one HTML page that needs nothing beside it and reads like the numerical section of a paper."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from mfpde.claims.suite import Outcome
from mfpde.storage.provenance import provenance

STYLE = """
body{font:16px/1.55 Georgia,serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b}
h1,h2,h3{font-family:Helvetica,Arial,sans-serif;line-height:1.25} h2{border-top:1px solid #ccc;padding-top:1.2rem;margin-top:2.5rem}
table{border-collapse:collapse;margin:1rem 0;font-size:.85rem}
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #e4e4e4}
th:first-child,td:first-child{text-align:left}
thead th{border-bottom:2px solid #555} caption{caption-side:top;text-align:left;font-style:italic;padding:.3rem 0}
.fails{color:#b00020;font-weight:bold} .holds{color:#1a6b2f} figure{margin:1.5rem 0} img{max-width:100%} figcaption{font-style:italic;font-size:.9rem}
pre{background:#f6f6f6;padding:.7rem;overflow:auto;font-size:.78rem} code{background:#f6f6f6;padding:0 .2rem} .small{font-size:.8rem;color:#555}
"""


def page(outcomes: Sequence[Outcome], *, quick: bool, seconds: float) -> str:
    """The whole report as HTML."""
    failed = [o.name for o in outcomes if not o.holds]
    claims = sum(max(len(o.verdicts), 1) for o in outcomes)
    wrong = sum(not v.holds for o in outcomes for v in o.verdicts) + sum(not o.verdicts and o.code != 0 for o in outcomes)
    origin = provenance()
    verdict = "All of them hold." if not failed else f"<span class=fails>{wrong or len(failed)} fail</span>, in {', '.join(failed)}."
    head = (
        f"<h1>The mean-field transformer equation, measured</h1><p>{len(outcomes)} experiments ({'quick versions' if quick else 'in full'}) "
        f"test {claims} claims. {verdict}</p><p class=small>{escape(origin['date'])}; {seconds:.0f} s; commit {escape(str(origin['commit']))}; "
        f"Python {escape(origin['python'])}; {escape(origin['platform'])}, {origin['processors']} processors; "
        f"{escape(', '.join(f'{name} {version}' for name, version in origin['versions'].items()))}</p>"
    )
    contents = "".join(
        f"<li><a href='#{o.name}'>{escape(title(o))}</a> <span class={_css(o.holds)}>{_word(o.holds)}</span> <span class=small>{o.seconds:.1f} s</span></li>"
        for o in outcomes
    )
    sections = "".join(section(number, o) for number, o in enumerate(outcomes, start=1))
    top = f"<!doctype html><html lang=en><meta charset=utf-8><title>mfpde: validation</title><style>{STYLE}</style>"
    return f"{top}{head}<ol>{contents}</ol>{sections}</html>\n"


def title(outcome: Outcome) -> str:
    """The heading of the claim's README."""
    first = readme(outcome).lstrip().splitlines()[:1]
    return first[0].lstrip("# ").strip() if first else outcome.name.replace("_", " ")


def readme(outcome: Outcome) -> str:
    """The claim in words; empty if it has none yet."""
    file = outcome.folder / "README.md"
    return file.read_text() if file.is_file() else ""


def section(number: int, outcome: Outcome) -> str:
    """Words, figures, tables and verdicts of one claim."""
    record = outcome.record
    words = paragraphs("\n".join(readme(outcome).strip().splitlines()[1:]))
    figures = "".join(
        f"<figure><img alt='{escape(p['caption'], quote=True)}' src='data:image/png;base64,{base64.b64encode(outcome.pictures[p['file']]).decode()}'>"
        f"<figcaption>Figure {number}.{i}. {escape(p['caption'])}</figcaption></figure>"
        for i, p in enumerate(record.get("figures", []), start=1)
    )
    tables = "".join(rows(caption, lines) for caption, lines in record.get("tables", {}).items())
    seeds = f"; seeds {', '.join(map(str, record['seeds']))}" if record.get("seeds") else ""
    foot = f"<p class=small>{escape(outcome.name)}: exit code {outcome.code}, {outcome.seconds:.1f} s{seeds}</p>"
    printed = "" if outcome.verdicts and outcome.holds else f"<pre>{escape(outcome.output[-6000:])}</pre>"
    heading = f"<h2 id='{outcome.name}'>{number}. {escape(title(outcome))} <span class={_css(outcome.holds)}>{_word(outcome.holds)}</span></h2>"
    return f"{heading}{words}{figures}{tables}{verdict_table(outcome)}{printed}{foot}"


def verdict_table(outcome: Outcome) -> str:
    """`claim | expected | measured | verdict`, the reason of each bound under the pointer."""
    if not outcome.verdicts:
        return ""
    body = "".join(
        f"<tr title='{escape(v.reason, quote=True)}'><td>{escape(v.quantity)}</td><td>{escape(v.expected)}</td><td>{v.measured:.4g}</td>"
        f"<td class={_css(v.holds)}>{_word(v.holds)}</td></tr>"
        for v in outcome.verdicts
    )
    reasons = dict.fromkeys(v.reason for v in outcome.verdicts)
    listed = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
    return (
        f"<table><thead><tr><th>claim</th><th>expected</th><th>measured</th><th>verdict</th></tr></thead><tbody>{body}</tbody></table>"
        f"<details><summary class=small>Reasons of the bounds</summary><ul class=small>{listed}</ul></details>"
    )


def rows(caption: str, lines: Sequence[Sequence[Any]]) -> str:
    """A table whose first row is its head."""

    def cell(tag: str, value: Any) -> str:
        return f"<{tag}>{escape(value if isinstance(value, str) else 'inf' if value is None else f'{value:.5g}')}</{tag}>"

    head, *body = lines
    inner = "".join(f"<tr>{''.join(cell('td', value) for value in row)}</tr>" for row in body)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{''.join(cell('th', value) for value in head)}</tr></thead><tbody>{inner}</tbody></table>"


def paragraphs(text: str) -> str:
    """The little Markdown that the READMEs of claims use: paragraphs, indented code, lists, bold, code, links."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines if line):
            parts.append(f"<pre>{escape(block)}</pre>")
        elif lines[0].startswith(("* ", "- ")):
            items = re.split(r"\n(?=[*-] )", block)
            parts.append(f"<ul>{''.join(f'<li>{_inline(item[2:])}</li>' for item in items)}</ul>")
        elif lines[0].startswith("#"):
            parts.append(f"<h3>{_inline(lines[0].lstrip('# '))}</h3>{f'<p>{_inline(chr(10).join(lines[1:]))}</p>' if lines[1:] else ''}")
        elif block.strip():
            parts.append(f"<p>{_inline(block)}</p>")
    return "".join(parts)


def _inline(text: str) -> str:
    text = escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)


def _word(holds: bool) -> str:
    return "holds" if holds else "FAILS"


def _css(holds: bool) -> str:
    return _word(holds).lower()
