"""The documentation as a site: `make docs` builds it in build/docs."""

import re

from fillrank.version import __version__

project = "fillrank"
author = "The fillrank developers"
version = release = __version__
language = "en_GB"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

myst_heading_anchors = 3

# The docstrings are numpydoc's, and say the types themselves.
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "none"
default_role = "py:obj"  # `GASR` in a docstring is a link
autodoc_member_order = "alphabetical"
autodoc_default_options = {"members": True}

html_theme = "furo"
html_title = "fillrank"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False


def _skip(app, what, name, member, skip, options):
    """Leave out what scikit-learn gives to every estimator: scikit-learn's own docs have it."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def _trim(app, page, source):
    """Leave out the blank line that ends an example: doctest needs it, readers do not."""
    source[0] = re.sub(r"(```python\n>>> (?:(?!```).)*?\n)\n```", r"\1```", source[0], flags=re.S)


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", _trim)
    app.connect("autodoc-skip-member", _skip)
