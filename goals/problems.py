"""What pydantic found wrong with a file, in the words of its reader: expected, found, what to do.

Called by `goals.document` for goals files, which have unions by kind, and by `goals.calibration` and the configurations of the services,
whose models have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from goals import policy, policy_detectors, registry, schema
from goals.policy_part import PolicyPart
from goals.wording import meant_or_known, nearest, shown
from goals.yaml_source import Found, Path, YamlSource

_DETECTORS: dict[str, type[PolicyPart]] = {
    "goal_band": policy_detectors.GoalBand, "cv": policy_detectors.Cv, "absolute": policy_detectors.Absolute,
    "above_mean": policy_detectors.AboveMean, "minmax": policy_detectors.MinMax, "std": policy_detectors.Std,
    "pairs": policy_detectors.Pairs, "count_spread": policy_detectors.CountSpread,
    "any_of": policy_detectors.AnyOf, "all_of": policy_detectors.AllOf,
}  # fmt: skip
_AMOUNTS: dict[str, type[PolicyPart]] = {
    "one": policy.Amount, "half_gap": policy.Amount, "to_target_counts": policy.Amount,
    "fraction": policy.Fraction, "until_below": policy.UntilBelow,
}  # fmt: skip
_EXPECTED = {
    "bool_type": "true or false", "string_type": "text", "int_type": "a whole number",
    "float_type": "a number", "finite_number": "a finite number", "list_type": "a list",
    "model_type": "a mapping", "model_attributes_type": "a mapping", "dict_type": "a mapping",
    "string_too_short": "some text", "too_short": "at least one",
}  # fmt: skip


ModelAt = Callable[[Path, Mapping[Path, str]], type[BaseModel]]
"""The model of the mapping at a path, given the tags of the unions on the way."""


def to_problems(source: YamlSource, errors: Iterable[ErrorDetails], root: type[BaseModel] | None = None) -> list[Found]:
    """Each pydantic error with its place, line and suggestion; `root` is the model of a document that is not a goals file."""
    model_at: ModelAt = _model_at if root is None else lambda path, _: _model_within(root, path)
    found: list[Found] = []
    for error in errors:
        path, tags = _untagged(error["loc"])
        if error["type"].startswith("union_tag"):
            path = (*path, "kind")
        if path[-1:] == ("[key]",):  # so pydantic marks a key that is wrong itself
            path = path[:-1]
        if error["type"] == "extra_forbidden" and root is not None and (where := _elsewhere(root, model_at(path[:-1], tags), path)):
            message = f"unknown key; {where}"
        else:
            message = _message(error, path, tags, model_at)
        if path[-1:] == ("var",) and path not in source.lines:  # its default does not go with the bound that is written
            path = (*path[:-1], "bound")
            message = f"expected a share below var, {error['input']} by default; lower it (10% is 0.10) or write var"
        found.append(source.problem(path, message))
    return found


def _elsewhere(root: type[BaseModel], model: type[BaseModel], path: Path) -> str | None:
    """Where a key belongs that `model` does not know; None where it is only misspelt, or nothing else knows it either."""
    key = str(path[-1])
    if nearest(key, model.model_fields) is None:
        for place, other in _parts(root):
            if key in other.model_fields and place != path[:-1]:
                return f"{key!r} belongs " + (f"under {'.'.join(map(str, place))}" if place else "at the top")
    return None


def _parts(root: type[BaseModel], at: Path = ()) -> Iterator[tuple[Path, type[BaseModel]]]:
    """Every mapping of a document by its path, the outer ones first; none in lists."""
    yield at, root
    for name, info in root.model_fields.items():
        for kind in (info.annotation, *get_args(info.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _parts(kind, (*at, name))


def _model_within(root: type[BaseModel], path: Path) -> type[BaseModel]:
    """The model at `path` in a document without unions of models: through lists, mappings and what may be absent."""
    model, kind = root, None
    for step in path:
        if kind is None:
            kind = model.model_fields[str(step)].annotation
        else:  # an element of a list, or a value of a mapping
            kind = get_args(kind)[-1]
        while get_origin(kind) in (Annotated, UnionType):
            kind = get_args(kind)[0]
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            model, kind = kind, None
    return model


def _untagged(loc: tuple[str | int, ...]) -> tuple[Path, dict[Path, str]]:
    """`loc` without the tags of unions, and those tags by the path they stand at."""
    path: Path = ()
    tags: dict[Path, str] = {}
    for step in loc:
        if _is_union(path) and path not in tags and isinstance(step, str):
            tags[path] = step
        else:
            path = (*path, step)
    return path, tags


def _is_union(path: Path) -> bool:
    match path:
        case ("goals", int()) | ("policy", "detector") | ("policy", "amount"):
            return True
        case ("policy", "detector", "any_of" | "all_of", int()):
            return True
    return False


def _model_at(path: Path, tags: Mapping[Path, str]) -> type[BaseModel]:
    """The model of the mapping at `path`."""
    match path:
        case ():
            return schema.GoalsDocument
        case ("goals", int()):
            return registry.KINDS[tags[path]].document
        case ("constraints", *_):
            return _model_within(schema.ConstraintsDocument, path[1:])
        case ("policy",):
            return policy.PolicyDocument
        case ("policy", "amount"):
            return _AMOUNTS[tags[path]]
        case ("policy", "detector", *_, "persist"):
            return policy_detectors.Persist
        case ("policy", "detector", *_, "hysteresis"):
            return policy_detectors.Hysteresis
        case ("policy", str(part), *_) if part != "detector":
            return _model_within(policy.PolicyDocument, path[1:])
    return _DETECTORS[tags[path]]


def _message(error: ErrorDetails, path: Path, tags: Mapping[Path, str], model_at: ModelAt) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    match kind:
        case "extra_forbidden":
            return f"unknown key; {_unknown_key(path, tags, model_at)}"
        case "missing":
            info = model_at(path[:-1], tags).model_fields[str(path[-1])]
            return f"missing; expected {info.description}"
        case "value_error":
            return str(context["error"])
        case "union_tag_not_found" | "union_tag_invalid":
            return _unknown_kind(value, path)
        case "literal_error":
            choices = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
            match_ = nearest(value, choices) if isinstance(value, str) else None
            hint = f"; did you mean {match_!r}?" if match_ else ""
            return f"expected {' or '.join(choices)}, found {shown(value)}{hint}"
        case "greater_than":
            return f"expected a number above {context['gt']:g}, found {shown(value)}"
        case "greater_than_equal":
            return f"expected a number of at least {context['ge']:g}, found {shown(value)}"
        case "less_than_equal":
            return f"expected a number of at most {context['le']:g}, found {shown(value)}"
        case "too_short" | "too_long" if context.get("min_length", 1) > 1 or kind == "too_long":
            wanted = context["min_length"] if kind == "too_short" else f"at most {context['max_length']}"
            return f"expected {wanted} elements, found {context['actual_length']}"
        case "string_too_long":
            return f"expected at most {context['max_length']} characters, found {len(str(value))}"
    if kind not in _EXPECTED:
        return f"{error['msg']}, found {shown(value)}"
    return f"expected {_EXPECTED[kind]}, found {shown(value)}{_hint(kind, value)}"


def _hint(kind: str, value: object) -> str:
    if kind == "float_type" and isinstance(value, str):
        return "; 10% is written 0.10" if "%" in value else "; write it without quotes or unit"
    if kind == "int_type" and isinstance(value, str) and value.strip().isdecimal():
        return f"; write {int(value)}, without quotes"
    if kind == "bool_type" and str(value).lower() in ("yes", "on", "1", "true"):
        return "; write true"
    if kind == "bool_type" and str(value).lower() in ("no", "off", "0", "false"):
        return "; write false"
    if kind == "list_type" and isinstance(value, str | int):
        return f"; write [{value!r}]" if isinstance(value, int) else f'; write ["{value}"]'
    if kind == "string_type" and isinstance(value, int | float):
        return "; put it in quotes"
    return ""


def _unknown_key(path: Path, tags: Mapping[Path, str], model_at: ModelAt) -> str:
    """What to do about a key that nothing knows at its place."""
    key, around = str(path[-1]), path[:-1]
    known = list(model_at(around, tags).model_fields)
    if nearest(key, known) is None:
        if around[:1] == ("goals",):
            others = [name for name, entry in registry.KINDS.items() if key in entry.document.model_fields]
            if others:
                return f"{key!r} is for {', '.join(others)}, not for {tags[around]}"
        for part in ("constraints", "policy"):
            if not around and part in known and key in model_at((part,), tags).model_fields:
                return f"{key!r} belongs under {part}"
    return meant_or_known(key, known)


def _unknown_kind(value: object, path: Path) -> str:
    known: Iterable[str] = [name for name in _DETECTORS if not name.endswith("_of")]
    if path[0] == "goals":
        known = registry.KINDS
    elif path[1] == "amount":
        known = _AMOUNTS
    found = value.get("kind") if isinstance(value, Mapping) else None
    if found is None:
        return f"missing; expected one of {', '.join(known)}"
    return f"unknown kind {shown(found)}; {meant_or_known(found, known)}"
