"""Rates of every partition from two readings of logs and offsets; pure.

Used by `trimtab.capture.assemble`. docs/snapshot-command.md states the method and how exact it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from trimtab.capture.reading import Commits, Reading, TopicPartition, Topology

LEAST_OF_TYPICAL = 0.5  # a step with a smaller part of the usual bytes a record has lost some to cleaning


@dataclass(frozen=True, slots=True)
class Rate:
    """Bytes a second of one partition's leader: appended by producers, fetched by consumers (a lower bound).

    `estimated` says that the log was cut during the interval, so that appended bytes come from counted
    records times their size: as the log grew at other times of the interval or, where it is `guessed`, as what
    is left of it has on average.
    """

    appended: float
    fetched: float
    estimated: bool = False
    guessed: bool = False


@dataclass(frozen=True)
class Rates:
    """What could be measured, and what could not."""

    of: Mapping[TopicPartition, Rate]
    seconds: float  # mean time between the two readings of a log
    unmeasured: tuple[TopicPartition, ...] = ()  # have a leader now, but no two readings to compare
    moved_leader: int = 0  # partitions whose leader changed in between
    groups: int = 0  # consumer groups whose commits were compared
    unknown_groups: Mapping[str, str] = field(default_factory=dict)
    compacted: frozenset[str] = frozenset()  # topics
    unread: tuple[str, ...] = ()  # topics of which it is not known whether they are compacted


@dataclass(frozen=True, slots=True)
class _Span:
    """A counter at both ends of the interval."""

    before: int
    after: int
    seconds: float

    @property
    def growth(self) -> int:
        return self.after - self.before


def measure(
    before: Reading, after: Reading, earlier: Topology, topology: Topology, between: Sequence[Reading] = ()
) -> Rates:
    """Rates of the partitions of `topology`, which was described at the end of the interval, `earlier` at
    its start; `between` are readings of some logs in between."""
    rates: dict[TopicPartition, Rate] = {}
    unmeasured, moved, seconds = [], 0, []
    consumed = _consumed(before, after)
    for key, partition in topology.partitions.items():
        if partition.leader is None:
            continue
        known = earlier.partitions.get(key)
        was_led_by = known.leader if known is not None else None
        moved += was_led_by is not None and was_led_by != partition.leader
        steps = [before, *(part for part in between if key in _sizes_of(part, partition.leader)), after]
        rate, span = _rate(key, partition.leader, was_led_by, steps, consumed.get(key, 0.0))
        if rate is None:
            unmeasured.append(key)
        else:
            rates[key] = rate
        if span is not None:
            seconds.append(span.seconds)
    commits = [part for reading in after.values() if (part := reading.commits) is not None]
    unknown = {group: why for part in commits for group, why in part.unknown.items()}
    mean = sum(seconds) / len(seconds) if seconds else 0.0
    return Rates(rates, mean, tuple(unmeasured), moved, sum(len(c.offsets) for c in commits), unknown)


def _rate(
    key: TopicPartition,
    leader: int,
    was_led_by: int | None,
    readings: Sequence[Reading],
    records_consumed: float,
) -> tuple[Rate | None, _Span | None]:
    """Rate of one partition, and the span of its log size."""
    before, after = readings[0], readings[-1]
    size = _span(_sizes(before, leader), _sizes(after, leader), key)
    end = _span(_ends(before, was_led_by), _ends(after, leader), key)
    start_before, start_after = _start(before, was_led_by, key), _start(after, leader, key)
    grown = _grown_record(key, leader, readings)
    uncut = size is not None and size.growth >= 0 and start_before == start_after and not (grown is not None and grown.cut)
    average = _bytes_per_record(before, was_led_by, key) or _bytes_per_record(after, leader, key)
    estimated = guessed = False
    if size is not None and (uncut or (end is None and size.growth >= 0)):
        appended = size.growth / size.seconds
        if end is not None and end.growth > 0 and size.growth > 0:
            average = appended / (end.growth / end.seconds)
    elif end is not None and (grown is not None or average is not None or end.growth <= 0):
        guessed = grown is None and end.growth > 0
        average = average if grown is None else grown.bytes
        appended = max(end.growth, 0) / end.seconds * (average or 0.0)
        estimated = end.growth > 0
    else:
        return None, size
    return Rate(appended, records_consumed * (average or 0.0), estimated, guessed), size


@dataclass(frozen=True, slots=True)
class _Grown:
    """Bytes of a record as a log grew, and whether it was cut at some other time."""

    bytes: float
    cut: bool


def _grown_record(key: TopicPartition, leader: int, readings: Sequence[Reading]) -> _Grown | None:
    """From the steps of the interval in which nothing was cut off the log; None where there are none of several."""
    each: list[tuple[float, float]] = []  # bytes and records a second
    cut = False
    for one, other in pairwise(readings):
        size, end = _span(_sizes(one, leader), _sizes(other, leader), key), _span(_ends(one, leader), _ends(other, leader), key)
        if size is None or end is None or end.growth <= 0:
            continue
        if size.growth <= 0 or _start(one, leader, key) != _start(other, leader, key):
            cut = True
        else:
            each.append((size.growth / size.seconds, end.growth / end.seconds))
    if len(readings) <= 2 or not each:
        return None
    typical = median(grew / came for grew, came in each)
    clean = [(grew, came) for grew, came in each if grew / came >= LEAST_OF_TYPICAL * typical]
    return _Grown(sum(grew for grew, _ in clean) / sum(came for _, came in clean), cut or len(clean) < len(each))


def _sizes_of(reading: Reading, broker: int) -> Mapping[TopicPartition, int]:
    counter = _sizes(reading, broker)
    return {} if counter is None else counter[1]


Counter = tuple[float, Mapping[TopicPartition, int]]
"""When a broker's counters were read, and what they were."""


def _span(before: Counter | None, after: Counter | None, key: TopicPartition) -> _Span | None:
    if before is None or after is None or after[0] <= before[0]:
        return None
    if key not in before[1] or key not in after[1]:
        return None
    return _Span(before[1][key], after[1][key], after[0] - before[0])


def _sizes(reading: Reading, broker: int | None) -> Counter | None:
    part = reading[broker].sizes if broker is not None and broker in reading else None
    return None if part is None else (part.at, part.sizes)


def _ends(reading: Reading, broker: int | None) -> Counter | None:
    part = reading[broker].ends if broker is not None and broker in reading else None
    return None if part is None else (part.at, part.ends)


def _start(reading: Reading, broker: int | None, key: TopicPartition) -> int | None:
    part = reading[broker].ends if broker is not None and broker in reading else None
    return None if part is None else part.starts.get(key)


def _bytes_per_record(reading: Reading, leader: int | None, key: TopicPartition) -> float | None:
    """Average over the whole local log, None where it is empty or unknown."""
    sizes, ends, start = _sizes(reading, leader), _ends(reading, leader), _start(reading, leader, key)
    if sizes is None or ends is None or start is None or key not in sizes[1] or key not in ends[1]:
        return None
    records = ends[1][key] - start
    return sizes[1][key] / records if records > 0 and sizes[1][key] > 0 else None


def _consumed(before: Reading, after: Reading) -> dict[TopicPartition, float]:
    """Records a second that consumer groups committed; groups seen at one end only count as nothing."""
    earlier: dict[str, tuple[Commits, Mapping[TopicPartition, int]]] = {
        group: (part, offsets)
        for reading in before.values()
        if (part := reading.commits) is not None
        for group, offsets in part.offsets.items()
    }
    rates: dict[TopicPartition, float] = {}
    for reading in after.values():
        part = reading.commits
        if part is None:
            continue
        for group, offsets in part.offsets.items():
            if group not in earlier:
                continue
            begun, old = earlier[group]
            seconds = part.at - begun.at
            for key, offset in offsets.items():
                if key in old and offset > old[key] and seconds > 0:
                    rates[key] = rates.get(key, 0.0) + (offset - old[key]) / seconds
    return rates
