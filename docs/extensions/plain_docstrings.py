"""Our docstrings are plain text with a few habits; this tells Sphinx what they mean.

    `code`, *emphasis*          as in Markdown
    an indented block           after an empty line is shown as it stands: formulas, tables of commands
    docs/theory                 links to that page
    everything else             is text, so that |Ax|, m_i or 2*x are no markup
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

KEPT = re.compile(r"(``.+?``|`[^`]+`|(?<![\w*])\*\w[^*]*\w\*(?![\w*]))")  # code and *emphasis*
SHAPE = re.compile(r"(\((?:[^(),]+,)+[^(),]*\))")
PARAMETER = re.compile(r"^\s*\w[\w, ]* : ")
PAGE = re.compile(r"\bdocs/(\w+)(?:\.md)?")
PAGES = {page.stem for page in Path(__file__).parents[1].glob("*.md")}
MARKUP = re.compile(r"([|*\\]|(?<=\w)_(?!\w))")
UNDERLINE = re.compile(r"^\s*-{3,}\s*$")


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def link(match: re.Match[str]) -> str:
    """docs/theory as a link to that page."""
    page = match[1]
    return f":doc:`docs/{page} </{page}>`" if page in PAGES else match[0]


def inline(line: str) -> str:
    """A line of text as reST."""
    bullet, line = re.fullmatch(r"(\s*(?:\* )?)(.*)", line).groups()
    if PARAMETER.match(line):
        line = SHAPE.sub(r"`\1`", line)  # as code, so that Sphinx does not look for a class called k
    parts = KEPT.split(line)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            parts[i] = PAGE.sub(link, MARKUP.sub(r"\\\1", part))
        elif part.startswith("`") and not part.startswith("``"):
            parts[i] = f"`{part}`"
    return bullet + "".join(parts)


def as_rst(lines: list[str]) -> list[str]:
    """A docstring, already dedented, as reST with numpydoc sections.

    >>> as_rst(["The mass |x| of `m`:", "", "    m_i = 2 * 3", "", "no more."])
    ['The mass \\\\|x\\\\| of ``m``:', '', '.. code-block:: text', '', '    m_i = 2 * 3', '', 'no more.']
    """
    text: list[str] = []
    margin, above = 0, ""  # of the last line of text
    literal = doctest = False
    for line in lines:
        if not line.strip():
            doctest = False
            text.append("")
            continue
        if literal and indent(line) > margin:
            text.append(line)
            continue
        literal = False
        if line.lstrip().startswith(">>>"):
            doctest = True
        if doctest or UNDERLINE.match(line):
            text.append(line)
        elif text and not text[-1] and above and indent(line) > margin:
            text += [" " * margin + ".. code-block:: text", "", line]
            literal = True
            continue
        else:
            text.append(inline(line))
        margin, above = indent(line), line
    return text


def process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_rst(lines)


def skip(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """The fields of a named tuple are explained by its own text."""
    return True if (getattr(thing, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", process, priority=100)  # before napoleon
    return {"parallel_read_safe": True}
