"""Changes to a goals file as its author wrote it: single values replaced, keys and goals added, every other sign left alone.

Called by ``trimtab tune`` and ``trimtab goals show``. The text is not written again: ruamel.yaml says where each value stands, and
only those places change, so comments, order, quotes, flow style, alignment and line ends survive. Reading the result back proves it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from cluster_model.errors import ConfigurationError, Problem
from goals.yaml_source import read_yaml

# Where a new key goes: after those before it here.
ORDER = (
    "kind", "name", "resource", "hard", "weight", "group", "limit", "max", "bound", "var", "tail", "min_load", "trivial_change",
)  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.%+/-]*")


@dataclass(frozen=True, slots=True)
class Edit:
    """One key of one goal of the file; `text` is its new value as YAML (a number, or a size)."""

    goal: int
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class _Splice:
    start: int
    end: int
    text: str


def edited(text: str, name: str, edits: Iterable[Edit], added: Iterable[Mapping[str, object]] = ()) -> str:
    """`text` with values of goals changed, and goals added at the end of its list.

    Raises
    ------
    ConfigurationError
        The file cannot be changed without changing more than that, such as where anchors and aliases share a value.
    """
    edits, added = tuple(edits), tuple(added)
    if not edits and not added:
        return text
    root = YAML(typ="safe", pure=True).compose(StringIO(text))
    newline = "\r\n" if "\r\n" in text else "\n"
    splices = _splices(text, root, edits, added, newline) if isinstance(root, MappingNode) else []
    made = text
    # From the end on; of two at one place the later one first, so that it ends up behind: a goal after a key of the goal before it.
    for splice in sorted(splices, key=lambda s: s.start)[::-1]:
        made = made[: splice.start] + splice.text + made[splice.end :]
    if not _as_meant(text, made, name, edits, added):
        message = "cannot change it without changing more: values are shared (&, *), or written in an unusual way; write them out first"
        raise ConfigurationError(name, [Problem("goals", message)])
    return made


def _as_meant(before: str, after: str, name: str, edits: tuple[Edit, ...], added: tuple[Mapping[str, object], ...]) -> bool:
    """Whether reading `after` gives exactly what reading `before` gave, but for the changes."""
    wanted: Any = deepcopy(read_yaml(before, name).value)
    for edit in edits:
        wanted["goals"][edit.goal] = {**wanted["goals"][edit.goal], edit.key: read_yaml(edit.text, name).value}
    if added:
        wanted["goals"] = [*wanted.get("goals", []), *map(dict, added)]
    try:
        source = read_yaml(after, name)
    except ConfigurationError:
        return False
    return source.value == wanted and not source.problems


def _splices(
    text: str, root: MappingNode, edits: tuple[Edit, ...], added: tuple[Mapping[str, object], ...], newline: str
) -> list[_Splice]:
    goals = _value(root, "goals")
    splices: list[_Splice] = []
    if isinstance(goals, SequenceNode):
        for index, goal in enumerate(goals.value):
            mine = [edit for edit in edits if edit.goal == index]
            if mine and isinstance(goal, MappingNode):
                splices += _goal_splices(text, goal, mine, newline)
    if added:
        splices.append(_added(text, root, goals, [_flow(goal, _is_json(root)) for goal in added], newline))
    return splices


def _goal_splices(text: str, goal: MappingNode, edits: list[Edit], newline: str) -> list[_Splice]:
    pairs = [(str(key.value), key, value) for key, value in goal.value]
    splices = [_replaced(text, value, edit.text) for edit in edits for name, _, value in pairs if name == edit.key]
    new: dict[int, list[str]] = {}  # place -> what goes there, in order
    json = _is_json(goal)
    for edit in sorted((e for e in edits if e.key not in {name for name, _, _ in pairs}), key=lambda e: ORDER.index(e.key)):
        before = [pair for pair in pairs if pair[0] in ORDER[: ORDER.index(edit.key)]] or pairs
        _, key, value = max(before, key=lambda pair: pair[2].start_mark.index)
        end = _end(text, value)
        if goal.flow_style:
            new.setdefault(end, []).append(f", {_json_flow({edit.key: edit.text}) if json else f'{edit.key}: {edit.text}'}")
        else:
            new.setdefault(_line_end(text, end), []).append(f"{newline}{' ' * key.start_mark.column}{edit.key}: {edit.text}")
    return splices + [_Splice(place, place, "".join(parts)) for place, parts in new.items()]


def _replaced(text: str, old: Node, value: str) -> _Splice:
    """A value in the place of another; a comment right behind it keeps its column, where there is room."""
    start, end = int(old.start_mark.index), _end(text, old)
    new = _as_quoted(value, old)
    gap = re.compile(r" +(?=#)").match(text, end)
    if gap is not None:
        new += " " * max(len(gap[0]) - len(new) + (end - start), 1)
        end = gap.end()
    return _Splice(start, end, new)


def _added(text: str, root: MappingNode, goals: Node | None, listed: list[str], newline: str) -> _Splice:
    """Goals at the end of the list, which is started where there is none."""
    if isinstance(goals, SequenceNode) and not goals.flow_style and goals.value:
        place = _line_end(text, _end(text, goals))
        return _Splice(place, place, "".join(f"{newline}{' ' * goals.start_mark.column}- {goal}" for goal in listed))
    if isinstance(goals, SequenceNode) and goals.value:
        place = _end(text, goals.value[-1])
        return _Splice(place, place, "".join(f", {goal}" for goal in listed))
    if isinstance(goals, SequenceNode):  # an empty one
        return _Splice(goals.start_mark.index, _end(text, goals), f"[{', '.join(listed)}]")
    place = _end(text, root.value[-1][1])
    if root.flow_style:
        key = '"goals"' if _is_json(root) else "goals"
        return _Splice(place, place, f", {key}: [{', '.join(listed)}]")
    place = _line_end(text, place)
    return _Splice(place, place, f"{newline}goals:" + "".join(f"{newline}  - {goal}" for goal in listed))


def _value(mapping: MappingNode, name: str) -> Node | None:
    return next((value for key, value in mapping.value if key.value == name), None)


def _end(text: str, node: Node) -> int:
    """Index behind the last sign of a value; blocks end with their last value, not with what follows."""
    if isinstance(node, CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    end = int(node.end_mark.index)
    while end > node.start_mark.index and text[end - 1].isspace():
        end -= 1
    return end


def _line_end(text: str, place: int) -> int:
    """Index of the end of the line that `place` is in, comment included."""
    found = re.compile(r"\r?\n|$").search(text, place)
    return found.start() if found is not None else len(text)


def _is_json(mapping: MappingNode) -> bool:
    """Whether keys stand in quotes, as JSON has them."""
    return bool(mapping.flow_style) and all(isinstance(key, ScalarNode) and key.style == '"' for key, _ in mapping.value)


def _as_quoted(value: str, old: Node) -> str:
    """A value in the quotes of the one that it replaces; numbers have none."""
    quote = old.style if isinstance(old, ScalarNode) and old.style in ("'", '"') else ""
    return f"{quote}{value}{quote}" if quote and not _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _flow(goal: Mapping[str, object], json: bool) -> str:
    """A goal on one line."""
    if json:
        return "{" + _json_flow({key: _json_text(value) for key, value in goal.items()}) + "}"
    return "{" + ", ".join(f"{key}: {_yaml_text(value)}" for key, value in goal.items()) + "}"


def _json_flow(values: Mapping[str, str]) -> str:
    return ", ".join(f'"{key}": {value if _is_literal(value) else _json_text(value)}' for key, value in values.items())


def _is_literal(text: str) -> bool:
    return _is_number(text) or text in ("true", "false") or text[:1] == '"'


def _json_text(value: object) -> str:
    import json

    return json.dumps(value)


def _yaml_text(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and isinstance(read_yaml(value, "").value, str):
        return value
    return _json_text(value)
