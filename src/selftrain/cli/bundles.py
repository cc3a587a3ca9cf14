"""Bundles of options: a dataclass whose fields are options stands for them in a command.

typer reads the parameters of a function, one for each option. A command of ours has a parameter
for each bundle, and ``with_options`` shows typer the fields instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

from typer.core import TyperCommand, TyperOption

from selftrain.errors import ConfigError

Command = Callable[..., None]


def with_options(command: Command) -> Command:
    """The command with every bundle replaced by its options, for typer.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Columns:
    ...     text: str = "text"
    ...     label: str = "label"
    >>> @with_options
    ... def show(file: str, columns: Columns):
    ...     print(file, columns)
    >>> list(signature(show).parameters)
    ['file', 'text', 'label']
    >>> show(file="a.csv", text="review", label="stars")
    a.csv Columns(text='review', label='stars')
    """
    types = get_type_hints(command, include_extras=True)
    bundles = {name: kind for name, kind in types.items() if is_bundle(kind)}

    @wraps(command)
    def typed(**values: Any) -> None:
        filled = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in bundles.items()
        }
        command(**values, **filled)

    parameters = list(options_of(command, types))
    typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    typed.__annotations__ = {each.name: each.annotation for each in parameters}
    return typed


class Once(TyperCommand):
    """A command whose options with one value are given once: of two values one would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise for an option that is given twice, then read the arguments as usual."""
        *_, order = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(order).items():
            one_value = isinstance(option, TyperOption) and not (option.is_flag or option.multiple)
            if one_value and times > 1:
                raise ConfigError(
                    f"{option.opts[0]} is given {times} times; it takes one value",
                    f"leave out all but one {option.opts[0]}",
                )
        return super().parse_args(ctx, args)


def is_bundle(kind: Any) -> bool:
    """Whether a parameter of this type stands for several options."""
    return isinstance(kind, type) and is_dataclass(kind)


def options_of(command: Command, types: Mapping[str, Any]) -> Iterator[Parameter]:
    """The parameters of a command, with the fields of a bundle in its place."""
    for parameter in signature(command).parameters.values():
        kind = types[parameter.name]
        if not is_bundle(kind):
            yield parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind)
            continue
        field_types = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = Parameter.empty if field.default is MISSING else field.default
            yield Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=default,
                annotation=field_types[field.name],
            )
