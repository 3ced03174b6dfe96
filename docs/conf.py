"""How Sphinx makes a site of these pages: `./dev docs`. It needs no network, and neither does the site."""

import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
# The sources beside the pages are documented, whatever else may be installed.
sys.path[:0] = [str(DOCS.parent / "src"), str(DOCS / "_extensions")]

project = "dashi"
author = "The dashi developers"
release = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]["version"]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "files_above", "markdown_docstrings", "public_api"]
exclude_patterns = ["_extensions"]
# Dates and names of machines would make two builds of one commit differ.
html_last_updated_fmt = None
html_show_copyright = False

# Links to headings are GitHub's, since the pages are read there too; the deepest heading of any page is the fourth.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

add_module_names = False
autodoc_default_options = {"members": True, "undoc-members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

# System fonts and files of its own: nothing is fetched when a page is opened.
html_theme = "furo"
html_title = f"dashi {release}"
html_theme_options = {"top_of_page_buttons": []}
html_copy_source = False
html_show_sourcelink = False
