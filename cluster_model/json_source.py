"""JSON text as values, with every key that is written twice and where a text breaks off.

Called by `cluster_model.files`, and for other files with `json_document`. The standard parser keeps the last of two equal keys without a
word, and to watch every object costs a third of its speed. So keys are counted: a text has as many colons outside of strings as its
values have keys, unless one is written twice. Only then it is read again, watching.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from cluster_model.errors import InputError, Problem
from cluster_model.refusals import label

YAML_KEY = re.compile(rb"(?:\s*#[^\n]*\n)*\s*[a-z_]+:(?:\s|$)")


class BrokenJsonError(ValueError):
    """The text is no JSON; the message says what was expected, found and what to do."""


def parse_json(content: bytes) -> tuple[Any, list[Problem]]:
    """The value of a JSON text, and a problem for each key that is written twice in one object.

    Raises
    ------
    BrokenJsonError
        It is no JSON.
    """
    try:
        value = json.loads(content)
        if _keys_once(content, value):
            return value, []
        watched = json.loads(content, object_pairs_hook=_Watched.of_pairs)
    except json.JSONDecodeError as error:
        raise BrokenJsonError(_mistake(content, error)) from None
    except RecursionError:
        raise BrokenJsonError("expected a snapshot, found JSON nested too deep to be one") from None
    except ValueError as error:  # not Unicode, or a number of more digits than Python takes
        raise BrokenJsonError(f"expected JSON, found what cannot be read as such ({str(error)[:120]})") from None
    return value, [Problem(place, "key written twice; keep one") for place in _twice(watched, "")]


def json_document(text: str, name: str, remedy: str) -> Any:
    """The value of a small JSON text; `name` is what messages call it, and `remedy` says which file to give where it is none.

    Raises
    ------
    InputError
        It is no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(name, [Problem("", f"expected JSON, found {error}; {remedy}")]) from None


def _mistake(content: bytes, error: json.JSONDecodeError) -> str:
    again = "copy or capture it again"
    if not content.strip():
        return f"expected JSON, found an empty file; {again}"
    if error.pos == 0 and YAML_KEY.match(content):
        return "expected JSON, found what looks like YAML; a goals file is given with --goals, and a capacity file with --capacity"
    at = f"line {error.lineno}, column {error.colno}"
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"expected JSON, found a text that breaks off at {at}; {again}"
    return f"expected JSON, found a mistake at {at}: {error.msg}; correct it there, or {again}"


def _keys_once(content: bytes, value: Any) -> bool:
    """Whether no key is written twice. A doubtful text (odd shapes, escaped colons) is not said to be free of them.

    O(objects), most of it in C: rows of partitions are counted, not walked.
    """
    if b"\\u003" in content or not isinstance(value, dict):
        return False
    partitions = value.get("partitions")
    rows: Sequence[Any] = partitions if isinstance(partitions, list) else ()
    if not set(map(type, rows)) <= {dict}:
        return False
    held = _colons({key: item for key, item in value.items() if item is not rows}) + ("partitions" in value)
    held += sum(map(len, rows))
    for name in ("leader_load", "follower_load"):
        loads = [row.get(name) for row in rows]
        held += sum(len(load) for load in loads if isinstance(load, dict))
    return content.count(b":") == held


def _colons(value: Any) -> int:
    """Colons that a value takes in JSON: one for each key, and those within strings."""
    match value:
        case dict():
            return sum(1 + key.count(":") + _colons(item) for key, item in value.items())
        case list():
            return sum(map(_colons, value))
        case str():
            return value.count(":")
    return 0


class _Watched(dict[str, Any]):
    """An object of JSON that knows which of its keys are written twice."""

    twice: tuple[str, ...]

    @classmethod
    def of_pairs(cls, pairs: list[tuple[str, Any]]) -> _Watched:
        made = cls()
        twice = []
        for key, value in pairs:
            if key in made:
                twice.append(key)
            made[key] = value
        made.twice = tuple(dict.fromkeys(twice))
        return made


def _twice(value: object, place: str) -> Iterator[str]:
    """Places of keys that are written twice, in the order of the text."""
    if isinstance(value, _Watched):
        prefix = f"{place}." if place else ""
        yield from (prefix + label(key) for key in value.twice)
        for key, item in cast(Mapping[str, object], value).items():
            yield from _twice(item, prefix + label(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _twice(item, f"{place}[{index}]")
