"""Values of options as records, and how they are read: broker ids, topic-partitions, patterns with a factor, files that must be there.

Called by `trimtab.commands.options` and by commands with options of their own. Parsers raise `ValueError` with the form that is expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer

from cluster_model.content import STDIN
from cluster_model.errors import Problem
from optimizer.options import AddedBroker

T = TypeVar("T")
LARGEST_ID = 2**31 - 1
LARGEST_FACTOR = 1_000


def parsed_by(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` for an option: its `ValueError` is told with the option's name."""

    def parser(value: str) -> T:
        try:
            return parse(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parser


def there(value: Path | None) -> Path | None:
    """A file that is read, or ``-``; refused where nothing is there."""
    return _there(value, "file")


def there_or_folder(value: Path | None) -> Path | None:
    """As `there`, of a file or a folder."""
    return _there(value, "file or folder")


def _there(value: Path | None, what: str) -> Path | None:
    try:
        if value is not None and value != STDIN and not value.exists():
            raise typer.BadParameter(f"there is no {what} {value}")
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise typer.BadParameter(f"cannot look for {value}: {error.strerror or error}") from None
    return value


def exactly_one(given: Mapping[str, object], ask: str) -> list[Problem]:
    """A problem where not just one of two options is given (None: it is not); `ask` says what to do."""
    found = [value for value in given.values() if value is not None]
    many = "none" if not found else "both"
    return [] if len(found) == 1 else [Problem(", ".join(given), f"expected one of them, found {many}; {ask}")]


def parse_added_broker(text: str) -> AddedBroker:
    """``ID`` or ``ID:RACK``."""
    number, colon, rack = text.partition(":")
    if all(re.fullmatch(r"\d+(:.*)?", part) for part in text.split(",")) and "," in text:
        raise ValueError(f"expected one broker, ID or ID:RACK, found {text!r}; give the option once for each")
    if not number.isdecimal() or int(number) > LARGEST_ID or (colon and not rack):
        raise ValueError(f"expected ID or ID:RACK such as 7 or 7:rack-b, found {text!r}")
    return AddedBroker(int(number), rack or None)


@dataclass(frozen=True, slots=True)
class BrokerIds:
    """One or more brokers, as one option names them."""

    ids: tuple[int, ...]


def parse_broker_ids(text: str) -> BrokerIds:
    """``ID`` or ``ID,ID``."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and part.isascii() and int(part) <= LARGEST_ID for part in parts):
        raise ValueError(f"expected a broker ID, or several as 1,2,3, found {text!r}")
    return BrokerIds(tuple(int(part) for part in parts))


def all_ids(given: Iterable[BrokerIds] | None) -> tuple[int, ...]:
    """Every broker that a repeated option names, in the order given."""
    return tuple(broker for each in given or () for broker in each.ids)


@dataclass(frozen=True, slots=True)
class ScaledLoad:
    """Topics by glob pattern, and what their load is multiplied with."""

    pattern: str
    factor: float


def parse_scale(text: str) -> ScaledLoad:
    """``GLOB=FACTOR``; the factor is finite and above 0."""
    pattern, _, factor = text.rpartition("=")
    try:
        value = float(factor)
    except ValueError:
        value = 0.0
    if not pattern or not 0.0 < value < float("inf"):
        raise ValueError(f"expected GLOB=FACTOR such as 'orders*=1.5', with a factor above 0, found {text!r}")
    return ScaledLoad(pattern, value)


@dataclass(frozen=True, slots=True)
class TopicPartition:
    topic: str
    number: int


@dataclass(frozen=True, slots=True)
class Factor:
    """Topics by glob pattern, and the replication factor that they are to have."""

    pattern: str
    replicas: int


def parse_factor(text: str) -> Factor:
    """``GLOB=N``; 1 or more."""
    pattern, _, number = text.rpartition("=")
    if not pattern or not number.isdecimal() or not 1 <= int(number) <= LARGEST_FACTOR:
        raise ValueError(f"expected GLOB=N such as 'orders*=3', found {text!r}")
    return Factor(pattern, int(number))


def parse_partition(text: str) -> TopicPartition:
    """``TOPIC-N``, as Kafka prints a topic-partition."""
    topic, dash, number = text.rpartition("-")
    if not topic or not dash or not number.isdecimal():
        raise ValueError(f"expected TOPIC-N such as orders-12, found {text!r}")
    return TopicPartition(topic, int(number))
