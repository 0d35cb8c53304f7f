"""Shows every matplotlib `Figure` that a cell of a tutorial assigns to a name: our figures live outside pyplot, where sphinx-gallery would look."""

from __future__ import annotations

import weakref
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_shown: weakref.WeakSet[Figure] = weakref.WeakSet()


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the new figures among the script's names, return the reST that shows them."""
    paths = []
    figures = [value for value in block_vars["example_globals"].values() if isinstance(value, Figure)]
    for figure, path in zip((f for f in figures if f not in _shown), block_vars["image_path_iterator"], strict=False):
        figure.savefig(path, dpi=110)
        _shown.add(figure)
        paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Any:
    """The name by which sphinx-gallery finds a scraper in a module."""
    return scrape
