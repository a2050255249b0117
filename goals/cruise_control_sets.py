"""Cruise Control's `brokerSets.json`, and the broker sets that a goals file has for it.

Called by `goals.cruise_control`. The file names brokers alone: Cruise Control hashes the names of topics over its sets (or leaves a topic
where a replica of it is), where a goals file names topics. So of several sets only brokers are known, and they are written as comments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_model.errors import InputError, Problem
from cluster_model.json_source import json_document

GOAL = "BrokerSetAwareGoal"
EXPECTED = "expected brokerSetId and brokerIds"


@dataclass(frozen=True, slots=True)
class GivenSet:
    """A set as the file has it."""

    name: str
    brokers: tuple[int, ...]


def broker_set_file(text: str, name: str) -> tuple[GivenSet, ...]:
    """The sets of a file; all problems at once.

    Raises
    ------
    InputError
        No such file, a set without brokers, or a broker in two sets.
    """
    document = json_document(text, name, "give the file that broker.set.config.file names")
    listed = document.get("brokerSets") if isinstance(document, Mapping) else None
    if not isinstance(listed, list) or not listed:
        raise InputError(name, [Problem("brokerSets", "expected a list of broker sets, found none; give Cruise Control's brokerSets.json")])
    found, problems, home = list[GivenSet](), list[Problem](), dict[int, str]()
    for i, entry in enumerate(listed):
        place = f"brokerSets[{i}]"
        one = _set(entry)
        if one is None:
            problems.append(Problem(place, f"{EXPECTED}, a name and numbers, found {json.dumps(entry)[:60]}; correct it"))
            continue
        for broker in one.brokers:
            if home.setdefault(broker, one.name) != one.name:
                problems.append(Problem(place, f"broker {broker} is in set {home[broker]!r} too; take it out of one of them"))
        if any(one.name == other.name for other in found):
            problems.append(Problem(place, f"set {one.name!r} is there twice; give one another name"))
        found.append(one)
    if problems:
        raise InputError(name, problems)
    return tuple(found)


def _set(entry: Any) -> GivenSet | None:
    name, brokers = (entry.get("brokerSetId"), entry.get("brokerIds")) if isinstance(entry, Mapping) else (None, None)
    if not isinstance(name, str) or not name.strip() or not isinstance(brokers, list) or not brokers:
        return None
    if not all(isinstance(b, int) and not isinstance(b, bool) and b >= 0 for b in brokers):
        return None
    return GivenSet(name.strip(), tuple(dict.fromkeys(brokers)))


def set_lines(sets: Sequence[GivenSet] | None, listed: bool) -> tuple[list[str], list[str]]:
    """Lines under `constraints`, and what has no counterpart. `listed`: its goals name `BrokerSetAwareGoal`."""
    if sets is None:
        without = "which brokers are in which set stands in brokerSets.json (broker.set.config.file); give it with --broker-sets"
        return [], [f"{GOAL}: {without}"] if listed else []
    if not listed:
        return [], [f"--broker-sets: {GOAL} is not among the goals, so Cruise Control keeps no sets; none is written"]
    if len(sets) == 1:  # all topics are of it
        return ["  broker_sets:", f"    - {_entry(sets[0])}}}"], []
    comment = "  # Name the topics of each set (one may leave them out: it takes the rest), and drop the #."
    lines = ["  # broker_sets:", *(f"  #   - {_entry(one)}, topics: []}}" for one in sets)]
    told = "Cruise Control hashes topic names over its sets, a goals file names topics; name those of each under constraints.broker_sets"
    return [comment, *lines], [f"{GOAL}: {told}, where the {len(sets)} sets stand as comments"]


def _entry(one: GivenSet) -> str:
    return f"{{name: {json.dumps(one.name)}, brokers: [{', '.join(map(str, one.brokers))}]"
