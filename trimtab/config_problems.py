"""What pydantic found wrong with a configuration file, in the words of its reader: expected, found, what to do.

Works for any model whose parts are models; used by `trimtab.config_file`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from goals.wording import meant_or_known, nearest, shown
from goals.yaml_source import Found, Path, YamlSource

_EXPECTED = {
    "bool_type": "true or false", "string_type": "text", "int_type": "a whole number", "float_type": "a number",
    "finite_number": "a finite number", "list_type": "a list", "model_type": "a mapping", "dict_type": "a mapping",
    "model_attributes_type": "a mapping", "string_too_short": "some text",
}  # fmt: skip


def to_problems(document: type[BaseModel], source: YamlSource, errors: Iterable[ErrorDetails]) -> list[Found]:
    """Each pydantic error with its place, line and suggestion."""
    return [source.problem(error["loc"], _message(document, error)) for error in errors]


def _models(document: type[BaseModel]) -> Iterator[tuple[Path, type[BaseModel]]]:
    """Every mapping of the document by its path."""
    yield (), document
    for name, info in document.model_fields.items():
        for kind in (info.annotation, *get_args(info.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from (((name, *path), model) for path, model in _models(kind))


def _model_at(document: type[BaseModel], path: Path) -> type[BaseModel]:
    """The model that stands at a path, also within lists and mappings of any keys."""
    kind: Any = document
    for step in path:
        is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
        kind = kind.model_fields[str(step)].annotation if is_model else get_args(kind)[-1]
        while get_origin(kind) in (Annotated, Union, UnionType):
            kind = next(part for part in get_args(kind) if part is not NoneType)
    found: type[BaseModel] = kind
    return found


def _message(document: type[BaseModel], error: ErrorDetails) -> str:
    kind, value, context, path = error["type"], error["input"], error.get("ctx", {}), error["loc"]
    match kind:
        case "extra_forbidden":
            return f"unknown key; {_unknown_key(document, path)}"
        case "missing":
            around = _model_at(document, path[:-1])
            return f"missing; expected {around.model_fields[str(path[-1])].description}"
        case "value_error":
            return str(context["error"])
        case "literal_error":
            choices = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
            near = nearest(value, choices) if isinstance(value, str) else None
            hint = f"; did you mean {near!r}?" if near else ""
            return f"expected {' or '.join(choices)}, found {shown(value)}{hint}"
        case "greater_than":
            return f"expected a number above {context['gt']:g}, found {shown(value)}"
        case "greater_than_equal":
            return f"expected a number of at least {context['ge']:g}, found {shown(value)}"
        case "less_than_equal":
            return f"expected a number of at most {context['le']:g}, found {shown(value)}"
        case "string_pattern_mismatch":
            return f"expected letters, digits, dots, dashes and underscores, found {shown(value)}"
    if kind not in _EXPECTED:
        return f"{error['msg']}, found {shown(value)}"
    return f"expected {_EXPECTED[kind]}, found {shown(value)}"


def _unknown_key(document: type[BaseModel], path: Path) -> str:
    """What to do about a key that nothing knows at its place."""
    key, around = str(path[-1]), path[:-1]
    models = dict(_models(document))
    known = list(_model_at(document, around).model_fields)
    if nearest(key, known) is None:
        for elsewhere, model in models.items():
            if key in model.model_fields and elsewhere != around:
                where = ".".join(str(step) for step in elsewhere)
                return f"{key!r} belongs under {where}" if where else f"{key!r} belongs at the top"
    return meant_or_known(key, known)
