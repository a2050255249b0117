"""Everything that can be wrong with a snapshot document, in words and with its place.

`cluster_model.build` and `cluster_model.parquet` call this: always for the head and the brokers, for
partitions only after their own array checks found that something is wrong, because it walks every
partition in Python. It changes nothing and reads no files.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cluster_model.directories import MOST
from cluster_model.errors import Problem
from cluster_model.resources import DERIVED, LARGEST_AMOUNT, MEASURED, RESOURCES
from cluster_model.snapshot import STATES_BY_LABEL

VERSION = 1
STORAGES = ("local", "shared")
MAX_ID = 2**31 - 1

HEAD_KEYS = ("version", "cluster_id", "taken_at", "storage")
OPTIONAL_HEAD_KEYS = ("notes",)
ROW_LISTS = ("brokers", "partitions")
BROKER_KEYS = ("id",)
OPTIONAL_BROKER_KEYS = ("rack", "state", "capacity", "directories")
PARTITION_KEYS = ("topic", "partition", "replicas")
OPTIONAL_PARTITION_KEYS = ("leader", "leader_load", "follower_load", "directories")
DIRECTORY_KEYS = ("path", "size", "used")

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PLAIN_KEY = re.compile(r"[\w.-]{1,80}")
_LONGEST_FOUND = 60


def is_topic_name(name: str) -> bool:
    """Kafka's rule for topic names."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


def is_kind(kind: type, accepted: type | tuple[type, ...]) -> bool:
    """Whether values of type `kind` are taken where `accepted` is expected; true and false are no numbers."""
    return issubclass(kind, accepted) and not issubclass(kind, bool)


def found(value: object) -> str:
    """A value as messages show it, shortened."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "an infinite number"
        case int() if abs(value) >= 10**_LONGEST_FOUND:
            return "a number of more than 60 digits"
        case str() | int() | float():
            text = repr(value)
            return text if len(text) <= _LONGEST_FOUND else text[: _LONGEST_FOUND - 1] + "…"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
    return type(value).__name__


def label(key: object) -> str:
    """A key as places show it."""
    return key if isinstance(key, str) and _PLAIN_KEY.fullmatch(key) else found(key)


def suggestion(word: object, allowed: Iterable[str]) -> str:
    """``; did you mean …?``, or nothing where no allowed word is close."""
    close = difflib.get_close_matches(word, list(allowed), 1) if isinstance(word, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def unknown(key: object, allowed: Sequence[str], what: str = "key") -> str:
    """The message for a key that is none of the allowed ones."""
    return f"unknown {what}{suggestion(key, allowed) or '; expected one of ' + ', '.join(allowed)}"


def head_problems(head: Mapping[str, object], row_lists: Sequence[str] = ROW_LISTS) -> list[Problem]:
    """What is wrong with the document's own keys; `row_lists` are the lists expected beside them."""
    check = _Check()
    check.keys("", head, (*HEAD_KEYS, *row_lists), OPTIONAL_HEAD_KEYS)
    if "version" in head:
        version = head["version"]
        if not is_kind(type(version), int) or version != VERSION:
            quoted = str(version) == str(VERSION)
            advice = "write it without quotes" if quoted else "another version needs another Trimtab"
            check.refuse("version", f"expected {VERSION}, found {found(version)}; {advice}")
    if "cluster_id" in head:
        check.text("cluster_id", head["cluster_id"], "a string")
    if "taken_at" in head and check.text("taken_at", head["taken_at"], "an ISO-8601 time"):
        check.time("taken_at", str(head["taken_at"]))
    if "storage" in head and head["storage"] not in STORAGES:
        expected = "'local' (replicas hold data) or 'shared'"
        check.refuse("storage", f"expected {expected}, found {found(head['storage'])}")
    notes = head.get("notes")
    if notes is not None and check.is_list("notes", notes, "a list of strings"):
        for index, note in enumerate(_rows(notes)):
            check.text(f"notes[{index}]", note, "a string")
    return check.problems


def broker_problems(brokers: object) -> list[Problem]:
    """What is wrong with the list of brokers."""
    check = _Check()
    if not check.is_list("brokers", brokers, "a list of brokers"):
        return check.problems
    if not _rows(brokers):
        check.refuse("brokers", "expected every broker of the cluster, found an empty list; add them")
    first: dict[int, int] = {}
    for index, broker in enumerate(_rows(brokers)):
        place = f"brokers[{index}]"
        if not check.is_object(place, broker):
            continue
        check.keys(place, broker, BROKER_KEYS, OPTIONAL_BROKER_KEYS)
        if "id" in broker and check.id(f"{place}.id", broker["id"], "a broker id"):
            seen = first.setdefault(broker["id"], index)
            if seen != index:
                twice = f"broker {broker['id']} is already given by brokers[{seen}]; keep one of the two"
                check.refuse(f"{place}.id", twice)
        rack = broker.get("rack")
        if rack is not None and check.text(f"{place}.rack", rack, "a rack name") and not rack:
            advice = "leave the key out where a broker has no rack"
            check.refuse(f"{place}.rack", f"expected a rack name, found ''; {advice}")
        state = broker.get("state")
        if state is not None and not (isinstance(state, str) and state in STATES_BY_LABEL):
            expected = ", ".join(STATES_BY_LABEL)
            hint = suggestion(state, STATES_BY_LABEL)
            check.refuse(f"{place}.state", f"expected one of {expected}, found {found(state)}{hint}")
        check.amounts(f"{place}.capacity", broker.get("capacity"), RESOURCES)
        check.directories(f"{place}.directories", broker.get("directories"))
    return check.problems


def partition_problems(partitions: object, brokers: object) -> list[Problem]:
    """What is wrong with the list of partitions; `brokers` is the document's list of them, right or wrong."""
    check = _Check()
    if not check.is_list("partitions", partitions, "a list of partitions"):
        return check.problems
    known = _known_brokers(brokers)
    directories = _known_directories(brokers)
    first: dict[tuple[str, int], int] = {}
    for index, partition in enumerate(_rows(partitions)):
        place = f"partitions[{index}]"
        if not check.is_object(place, partition):
            continue
        check.keys(place, partition, PARTITION_KEYS, OPTIONAL_PARTITION_KEYS)
        named = "topic" in partition and check.topic(f"{place}.topic", partition["topic"])
        number = partition.get("partition")
        numbered = "partition" in partition and check.id(f"{place}.partition", number, "a partition number")
        if named and numbered:
            key = (partition["topic"], number)
            seen = first.setdefault(key, index)
            if seen != index:
                twice = f"{key[0]}-{key[1]} is already given by partitions[{seen}]; keep one of the two"
                check.refuse(place, twice)
        if "replicas" in partition:
            check.replicas(f"{place}.replicas", partition["replicas"], known)
            check.leader(f"{place}.leader", partition.get("leader"), partition["replicas"])
            check.held(f"{place}.directories", partition.get("directories"), partition["replicas"], directories)
        check.amounts(f"{place}.leader_load", partition.get("leader_load"), MEASURED)
        check.amounts(f"{place}.follower_load", partition.get("follower_load"), MEASURED)
    check.count_more()
    return check.problems


def _rows(value: object) -> Sequence[Any]:
    assert isinstance(value, list | tuple)
    return value


def _known_brokers(brokers: object) -> frozenset[int] | None:
    """Ids that replica lists may name; None where the brokers are too broken to tell."""
    if not isinstance(brokers, list | tuple) or not brokers:
        return None
    ids = [broker.get("id") if isinstance(broker, Mapping) else None for broker in brokers]
    if not all(is_kind(type(i), int) for i in ids):
        return None
    return frozenset(i for i in ids if isinstance(i, int))


def _known_directories(brokers: object) -> dict[object, int]:
    """How many log directories each broker has."""
    if _known_brokers(brokers) is None:
        return {}
    given = {broker["id"]: broker.get("directories") for broker in _rows(brokers)}
    return {broker: len(of) if isinstance(of, list | tuple) else 0 for broker, of in given.items()}


@dataclass(slots=True)
class _Check:
    """Collects problems; a check that returns bool tells whether the value can be worked with."""

    problems: list[Problem] = field(default_factory=list)
    strangers: dict[object, list[int]] = field(default_factory=dict)  # not in brokers -> number of its problem, partitions that name it
    misnamed: dict[str, list[int]] = field(default_factory=dict)  # topics that Kafka would refuse -> the same

    def refuse(self, place: str, message: str) -> None:
        self.problems.append(Problem(place, message))

    def keys(
        self, place: str, mapping: Mapping[str, object], required: Sequence[str], optional: Sequence[str]
    ) -> None:
        """Refuses unknown keys and misses required ones."""
        prefix = f"{place}." if place else ""
        allowed = (*required, *optional)
        for key in mapping:
            if key not in allowed:
                self.refuse(prefix + label(key), unknown(key, allowed))
        for key in required:
            if key not in mapping:
                self.refuse(prefix + key, "expected this key, found none; add it")

    def is_object(self, place: str, value: object) -> bool:
        if isinstance(value, Mapping):
            return True
        self.refuse(place, f"expected an object, found {found(value)}")
        return False

    def is_list(self, place: str, value: object, expected: str) -> bool:
        if isinstance(value, list | tuple):
            return True
        self.refuse(place, f"expected {expected}, found {found(value)}")
        return False

    def text(self, place: str, value: object, expected: str) -> bool:
        if not isinstance(value, str):
            self.refuse(place, f"expected {expected}, found {found(value)}")
            return False
        try:
            value.encode()
        except UnicodeEncodeError:
            half = f"half a surrogate pair in {found(value)}"
            self.refuse(place, f"expected {expected} of whole characters, found {half}")
            return False
        return True

    def time(self, place: str, value: str) -> None:
        try:
            datetime.fromisoformat(value)
        except ValueError:
            expected = "an ISO-8601 time such as '2026-11-20T12:00:00Z'"
            self.refuse(place, f"expected {expected}, found {found(value)}")

    def id(self, place: str, value: object, what: str) -> bool:
        if not is_kind(type(value), int):
            self.refuse(place, f"expected {what} (a whole number), found {found(value)}")
            return False
        assert isinstance(value, int)
        if not 0 <= value <= MAX_ID:
            self.refuse(place, f"expected {what} from 0 to {MAX_ID}, found {found(value)}")
            return False
        return True

    def topic(self, place: str, value: object) -> bool:
        if not isinstance(value, str):
            self.refuse(place, f"expected a topic name, found {found(value)}")
            return False
        if not is_topic_name(value):
            if value not in self.misnamed:
                self.misnamed[value] = [len(self.problems), 0]
                rule = "1 to 249 of a-z A-Z 0-9 . _ - (and not '.' or '..')"
                self.refuse(place, f"expected a topic name that Kafka takes, {rule}, found {found(value)}")
            self.misnamed[value][1] += 1
            return False
        return True

    def replicas(self, place: str, value: object, known: Set[int] | None) -> None:
        if not self.is_list(place, value, "a list of broker ids"):
            return
        replicas = _rows(value)
        if not replicas:
            advice = "leave partitions that are gone out"
            self.refuse(place, f"expected at least one broker id, found an empty list; {advice}")
        wrong = [v for v in replicas if not is_kind(type(v), int)]
        if wrong:
            self.refuse(place, f"expected broker ids (whole numbers), found {found(wrong[0])}")
            return
        seen: set[object] = set()
        twice: dict[object, None] = {}
        unknown: dict[object, None] = {}
        for broker in replicas:
            if broker in seen:
                twice[broker] = None
            elif known is not None and broker not in known:
                unknown[broker] = None
            seen.add(broker)
        for broker in twice:
            advice = "a broker holds one replica of a partition"
            self.refuse(place, f"broker {found(broker)} stands in the list twice; {advice}")
        for broker in unknown:
            if broker not in self.strangers:
                self.strangers[broker] = [len(self.problems), 0]
                advice = "add it there, with state 'dead' if it is gone"
                self.refuse(place, f"broker {found(broker)} is not in brokers; {advice}")
            self.strangers[broker][1] += 1

    def count_more(self) -> None:
        """Say with each broker that is not in brokers, and each wrong topic name, how many more partitions have it."""
        for at, count in (*self.strangers.values(), *self.misnamed.values()):
            if count > 1:
                told = self.problems[at]
                more = f"({count - 1:,} more partition{'s name' if count > 2 else ' names'} it)"
                self.problems[at] = Problem(told.place, f"{told.message} {more}")

    def leader(self, place: str, value: object, replicas: object) -> None:
        if value is None:
            return
        otherwise = f"or null where there is no leader, found {found(value)}"
        if not is_kind(type(value), int):
            self.refuse(place, f"expected a broker id, {otherwise}")
        elif isinstance(replicas, list | tuple) and replicas and value not in replicas and all(is_kind(type(r), int) for r in replicas):
            self.refuse(place, f"expected one of the replicas, {otherwise}")

    def directories(self, place: str, value: object) -> None:
        """Log directories of one broker; null and absent are the same."""
        if value is None or not self.is_list(place, value, "a list of log directories"):
            return
        if len(_rows(value)) > MOST:
            self.refuse(place, f"expected at most {MOST} log directories, found {len(_rows(value))}")
        seen: set[str] = set()
        for index, one in enumerate(_rows(value)):
            at = f"{place}[{index}]"
            if not self.is_object(at, one):
                continue
            self.keys(at, one, DIRECTORY_KEYS, ("volume",))
            if "path" in one and self.text(f"{at}.path", one["path"], "a path"):
                if one["path"] in seen:
                    self.refuse(f"{at}.path", f"expected each directory once, found {found(one['path'])} twice; keep one")
                seen.add(one["path"])
                if not one["path"]:
                    self.refuse(f"{at}.path", "expected a path, found ''; give the path that log.dirs has")
            for key in ("size", "used"):
                if key in one:
                    self._amount(f"{at}.{key}", one[key], "bytes")
            if one.get("size") == 0:
                self.refuse(f"{at}.size", "expected more than 0 (bytes), found 0; leave directories of unknown size out")
            if one.get("volume") is not None:
                self.id(f"{at}.volume", one["volume"], "a number that directories of one volume share")

    def held(self, place: str, value: object, replicas: object, directories: Mapping[object, int]) -> None:
        """Positions of the log directories that hold the replicas of a partition; null and absent are the same."""
        if value is None or not self.is_list(place, value, "a list of positions, one a replica"):
            return
        if not isinstance(replicas, list | tuple) or len(replicas) != len(_rows(value)):
            self.refuse(place, f"expected as many entries as replicas (null where one is not known), found {len(_rows(value))}")
            return
        for index, (broker, at) in enumerate(zip(replicas, _rows(value), strict=True)):
            count = directories.get(broker, 0) if is_kind(type(broker), int) else 0
            if at is not None and not (is_kind(type(at), int) and 0 <= at < count):
                told = f"a position from 0 to {count - 1} in the directories of broker {found(broker)}"
                none = f"null, since no directories of broker {found(broker)} are given"
                self.refuse(f"{place}[{index}]", f"expected {told if count else none}, found {found(at)}")

    def amounts(self, place: str, value: object, allowed: Mapping[str, str]) -> None:
        """A capacity or load: an object of resource to amount; null and absent are the same."""
        if value is None or not self.is_object(place, value):
            return
        assert isinstance(value, Mapping)
        for resource, amount in value.items():
            if resource not in allowed:
                if resource in DERIVED:
                    derived = "is computed from placement and other loads; leave it out"
                    self.refuse(f"{place}.{resource}", derived)
                else:
                    self.refuse(f"{place}.{label(resource)}", unknown(resource, tuple(allowed), "resource"))
            elif amount is not None:
                self._amount(f"{place}.{resource}", amount, allowed[resource])

    def _amount(self, place: str, amount: object, unit: str) -> None:
        if not is_kind(type(amount), (int, float)):
            self.refuse(place, f"expected a number ({unit}), found {found(amount)}")
            return
        assert isinstance(amount, int | float)
        try:
            finite = math.isfinite(float(amount))
        except OverflowError:
            finite = False
        if not finite:
            advice = "; leave the key out where it is unknown" if amount != amount else ""
            self.refuse(place, f"expected a finite number ({unit}), found {found(amount)}{advice}")
        elif amount < 0:
            self.refuse(place, f"expected 0 or more ({unit}), found {found(amount)}")
        elif amount > LARGEST_AMOUNT:
            self.refuse(place, f"expected at most {LARGEST_AMOUNT:g} ({unit}), found {found(amount)}; check the unit")
