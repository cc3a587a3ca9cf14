"""Compare two methods entry by entry."""

from __future__ import annotations

from selftrain.method.spec import Method, to_plain


def differences(one: Method, other: Method) -> set[str]:
    """The places at which two methods differ, besides their names."""

    def walk(a, b, place):
        if isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
            a, b = dict(enumerate(a)), dict(enumerate(b))
        if isinstance(a, dict) and isinstance(b, dict):
            kinds = {a.get("kind"), b.get("kind")}
            if len(kinds) > 1:
                yield place
                return
            for key in a.keys() | b.keys():
                yield from walk(a.get(key), b.get(key), f"{place}.{key}" if place else str(key))
        elif a != b:
            yield place

    return set(walk(to_plain(one), to_plain(other), "")) - {"name"}
