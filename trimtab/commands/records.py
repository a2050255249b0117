"""Commands whose parameters are records: the command line gets one option for each field.

Called where commands are declared. It knows no option.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, get_type_hints

R = TypeVar("R")


def expanded(command: Callable[..., R]) -> Callable[..., R]:
    """`command` as the parser takes it: the fields of each parameter that is a dataclass, in its place, all by keyword."""
    hints = get_type_hints(command, include_extras=True)
    records = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in records:
            options = get_type_hints(records[name], include_extras=True)
            parameters += [_keyword(f.name, options[f.name], f.default) for f in fields(records[name])]
        else:
            parameters.append(_keyword(name, hints[name], parameter.default))

    @wraps(command)
    def call(**given: Any) -> R:
        made = {name: record(**{f.name: given.pop(f.name) for f in fields(record)}) for name, record in records.items()}
        return command(**made, **given)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


def _keyword(name: str, annotation: object, default: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
