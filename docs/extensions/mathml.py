"""Formulas as MathML, which browsers draw themselves: the site needs no script from elsewhere and works from a folder without network."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def inline(writer: Any, node: Any) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise SkipNode


def block(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
