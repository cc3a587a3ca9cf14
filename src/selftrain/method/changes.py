"""Configuration entries laid over a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selftrain.method.spec import Method
    from selftrain.model.backbone import Backbone

Plain = Mapping[str, Any]


def method_of(changes: Plain, preset: str = "laptop") -> Method:
    """The recipe that ``name`` names (the default without one), with what differs from it.

    >>> method_of({"name": "upet-head-adapter", "student": {"loss": {"tau": 4}}}).student[0].loss
    PHCE(tau=4.0, kind='phce')
    """
    from selftrain.method.recipes import DEFAULT, recipe
    from selftrain.method.spec import from_plain, to_plain

    chosen = recipe(str(changes.get("name", DEFAULT)), preset)
    differs = {key: value for key, value in changes.items() if key != "name"}
    return from_plain(merged(to_plain(chosen), differs)) if differs else chosen


def can_use(method: Method, backbone: Backbone | str) -> bool:
    """Whether a backbone has what a method needs: prompts and TAPT need an MLM head.

    A backbone may be given by its name, before it is loaded. Then False is certain, and True means
    that loading it gives the answer.
    """
    if not (method.prompts or method.tapt):
        return True
    if isinstance(backbone, str):
        from selftrain.model.embedded import may_have_mlm_head

        return may_have_mlm_head(backbone)
    return backbone.can_prompt


def backbone_for(method: Method) -> str:
    """The first embedded backbone that a method can use."""
    from selftrain.model.embedded import EMBEDDED

    return next(name for name in EMBEDDED if can_use(method, name))


def given(flags: Plain) -> dict[str, Any]:
    """The entries that were given, in tables too: without None.

    >>> given({"seed": None, "method": {"name": None, "rounds": 2}})
    {'method': {'rounds': 2}}
    """
    entries = {
        key: given(value) if isinstance(value, Mapping) else value for key, value in flags.items()
    }
    return {key: value for key, value in entries.items() if value is not None}


def is_table(value: object) -> bool:
    """Whether a value is a table of entries."""
    return isinstance(value, Mapping)


def merged(base: Plain, changes: Plain) -> dict[str, Any]:
    """Tables are merged entry by entry; a table over a list changes each of its members.

    A changed ``kind`` starts from that kind's own defaults: the old entries would not fit it. Of
    two entries that exclude each other, the one in the changes wins.
    """
    whole = dict(base)
    for key, value in changes.items():
        old = whole.get(key)
        if isinstance(value, Mapping) and isinstance(old, list) and old and all(map(is_table, old)):
            whole[key] = [merged(member, value) for member in old]
        elif isinstance(value, Mapping) and isinstance(old, Mapping):
            other_kind = "kind" in value and value["kind"] != old.get("kind")
            whole[key] = dict(value) if other_kind else merged(old, value)
        elif value != {} or key not in whole:  # an empty table changes nothing, wherever it is
            whole[key] = value
    for one, other in (("steps", "epochs"), ("count", "shares")):
        if one in changes and other not in changes:
            whole.pop(other, None)
        elif other in changes and one not in changes:
            whole.pop(one, None)
    return whole
