"""The documentation site: the same Markdown files that are read in the repository.

    make site        # writes build/site, which needs no network

The source is the whole repository, so that links between its documents work in both places.
"""

from importlib.metadata import version as version_of

project = "selftrain"
copyright = "The selftrain authors, Apache-2.0"
version = release = version_of("selftrain")

extensions = ["myst_parser", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "benchmarks/**.md",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
myst_heading_anchors = 4
suppress_warnings = [
    "toc.not_included",  # documents of the repository that a link leads to
    "myst.header",  # tables that are parts of another document
]

html_theme = "furo"
html_extra_path = ["start"]  # leads from the top of the site to docs/index.html
html_title = "selftrain"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1b5e9e", "color-brand-content": "#1b5e9e"},
    "dark_css_variables": {"color-brand-primary": "#8ec5ff", "color-brand-content": "#8ec5ff"},
}
