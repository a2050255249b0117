"""What is to be said to people about a snapshot of the live model: doubtful loads, silent reporters, frozen brokers.

Called by `cluster_model.model`; `LoadTrust` has the same as data. Sentences end up in reports and plans.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cluster_model.loops import ESTIMATED, STALE, UNKNOWN
from cluster_model.snapshot import BrokerState
from cluster_model.trust import NAMED, BrokerVoice, LiveSnapshot, spoken


def notes_of(snapshot: LiveSnapshot, moving: int, dead_after_ms: int) -> tuple[str, ...]:
    """One sentence for each kind of thing that is not as it should be; `moving` reassignments are in progress.
    O(partitions)."""
    return (*_load_notes(snapshot), *_voice_notes(snapshot.trust.voices), *_state_notes(snapshot, moving, dead_after_ms))


def _load_notes(snapshot: LiveSnapshot) -> list[str]:
    """Resources that are in doubt for the same partitions go together."""
    count, trust = snapshot.partition_count, snapshot.trust
    if count and not trust.leader:
        first = [snapshot.partition_name(row) for row in range(min(NAMED, count))]
        return [f"no load is known of any partition: {_some(first, count)}"]
    notes = []
    for bit, sentence in (
        (STALE, "no sample for more than {age} of {count}: the last known {resources} counts for {names}"),
        (ESTIMATED, "{resources} of {count} is estimated: {names}"),
        (UNKNOWN, "{resources} of {count} was never measured and counts as 0: {names}"),
    ):
        alike: dict[bytes, tuple[np.ndarray, list[str]]] = {}
        for resource, flags in trust.leader.items():
            rows = np.flatnonzero(flags & bit)
            if len(rows):
                alike.setdefault(rows.tobytes(), (rows, []))[1].append(resource)
        for rows, resources in alike.values():
            names = [snapshot.partition_name(row) for row in rows[:NAMED].tolist()]
            notes.append(
                sentence.format(
                    age=spoken(trust.stale_after_ms),
                    count=f"{len(rows)} partition{'' if len(rows) == 1 else 's'}",
                    resources=", ".join(resources),
                    names=_some(names, len(rows)),
                )
            )
    return notes


def _voice_notes(voices: Iterable[BrokerVoice]) -> list[str]:
    notes = []
    for voice, sentence in (
        ("never", "no samples yet from {names}"),
        ("silent", "no samples any more from {names}"),
        ("late", "samples arrive late from {names}: their clocks are behind, or they work off what they kept"),
    ):
        found = [v for v in voices if v.voice == voice]
        names = [str(v.broker) if v.age_ms is None else f"{v.broker} ({spoken(v.age_ms)} old)" for v in found[:NAMED]]
        if found:
            notes.append(sentence.format(names=f"{_brokers(len(found))} {_some(names, len(found))}"))
    return notes


def _state_notes(snapshot: LiveSnapshot, moving: int, dead_after_ms: int) -> list[str]:
    notes = []
    frozen = snapshot.broker_ids[snapshot.broker_states == BrokerState.EXCLUDED].tolist()
    if frozen:
        names = _some([str(broker) for broker in frozen[:NAMED]], len(frozen))
        verb = "is" if len(frozen) == 1 else "are"
        span = spoken(dead_after_ms)
        notes.append(f"{_brokers(len(frozen))} {names} {verb} fenced or shutting down; left alone for {span}")
    if moving:
        several = "" if moving == 1 else "s"
        notes.append(f"{moving} reassignment{several} in progress; replicas count where they are going")
    return notes


def _brokers(count: int) -> str:
    return "broker" if count == 1 else "brokers"


def _some(names: list[str], count: int) -> str:
    more = count - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")
