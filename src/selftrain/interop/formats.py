"""The tools there are. A new one is a file beside this one with a ``TOOL``, and a line here."""

from __future__ import annotations

from selftrain.errors import ConfigError, closest
from selftrain.interop import argilla, cleanlab, csv, doccano, huggingface, label_studio
from selftrain.interop.tool import Tool

TOOLS: dict[str, Tool] = {
    "label-studio": label_studio.TOOL,
    "argilla": argilla.TOOL,
    "doccano": doccano.TOOL,
    "hf": huggingface.TOOL,
    "cleanlab": cleanlab.TOOL,
    "csv": csv.TOOL,
}
"""By the name that ``--to`` and ``--from`` take."""
READ = tuple(name for name, tool in TOOLS.items() if tool.row)
"""Those whose files come back."""


def find(name: str, flag: str) -> Tool:
    """The tool of a name; ``flag`` is the option that names it.

    >>> find("doccano", "--to").title
    'doccano'
    """
    known = tuple(TOOLS) if flag == "--to" else READ
    if name not in known:
        near = closest(name, known) or known[0]
        raise ConfigError(
            f"{flag} is `{name}`; expected one of {', '.join(known)}", f"{flag} {near}"
        )
    return TOOLS[name]
