"""The site: Sphinx with MyST's Markdown and the theme Furo. `make docs` builds it; docs/_ext has what is our own."""

from __future__ import annotations

import sys
from pathlib import Path

import definetti

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project, author = "definetti", "The definetti developers"
version = release = definetti.__version__
project_copyright = author

extensions = ["myst_parser", "generate", "run", "mathml", "links"]
exclude_patterns = ["_ext"]
nitpicky = True
smartquotes = False  # options have two hyphens

myst_enable_extensions = ["amsmath", "dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = True

html_theme = "furo"
html_title = f"definetti {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "friendly", "monokai"
html_math_renderer = "mathml"  # the site loads nothing from elsewhere
