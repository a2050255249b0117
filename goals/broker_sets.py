"""What is wrong with the broker sets of a goals file, beyond keys and types. Called by `goals.document`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from goals.yaml_source import Found, Path, YamlSource

PLACE: Path = ("constraints", "broker_sets")
Sets = Mapping[int, Mapping[str, object]]


def set_problems(source: YamlSource) -> list[Found]:
    """Names, brokers and patterns that two sets share, and a second set without topics; also where something else is wrong with them."""
    sets = _sets(source)
    found = [entry for key in ("name", "brokers", "topics") for entry in _shared(source, sets, key)]
    rest = [index for index, one in sets.items() if "topics" not in one]
    for index in rest[1:]:
        message = f"broker_sets[{rest[0]}] has no topics either, so it takes all topics of no other set; name the topics of this one"
        found.append(source.problem((*PLACE, index), message))
    return found


def _sets(source: YamlSource) -> Sets:
    value: object = source.value
    for key in PLACE:
        value = value.get(str(key)) if isinstance(value, dict) else None
    return {index: one for index, one in enumerate(value if isinstance(value, list) else ()) if isinstance(one, dict)}


def _shared(source: YamlSource, sets: Sets, key: str) -> Iterable[Found]:
    first: dict[object, int] = {}
    word = {"name": "name", "brokers": "broker", "topics": "pattern"}[key]
    for index, one in sets.items():
        given = one.get(key)
        items = list(enumerate(given)) if isinstance(given, list) else [(None, given)]
        for number, item in items:
            if isinstance(item, int | str) and first.setdefault(item, index) != index:
                path: Path = (*PLACE, index, key) if number is None else (*PLACE, index, key, number)
                remedy = "give this set a name of its own" if key == "name" else "take it out of one of them"
                yield source.problem(path, f"{word} {item!r} is in broker_sets[{first[item]}] already; {remedy}")
