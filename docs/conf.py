"""How the site is built:  python -m sphinx -W --keep-going -b html docs .venv/site     (extra "docs")."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "extensions"), str(Path(__file__).parent.parent)]
os.environ.setdefault("MPLBACKEND", "Agg")

import mfpde  # noqa: E402

project = "mfpde"
author = copyright = "The mfpde developers"
version = release = mfpde.__version__

extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",
    "plain_docstrings",  # docs/extensions: what our docstrings mean, before napoleon reads their sections
    "sphinx.ext.napoleon",
    "mathml",  # docs/extensions
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",  # runs tutorials and gallery
]
exclude_patterns = ["_build", "tutorials", "gallery"]  # their pages are generated

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"mfpde {release}"
html_static_path = ["static"]
html_css_files = ["wide.css"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3  # links to headings

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types and shapes are in the text
napoleon_google_docstring = False
napoleon_use_ivar = True
copybutton_prompt_text = ">>> |\\.\\.\\. "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials", "gallery"],
    "gallery_dirs": ["generated/tutorials", "generated/gallery"],
    "filename_pattern": r"\.py$",  # every script runs
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("figures_of_scripts",),  # docs/extensions
    "abort_on_example_error": True,
    "capture_repr": (),  # what a cell shows it prints
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1000,  # seconds are those of the machine that built the page
    "remove_config_comments": True,
}
