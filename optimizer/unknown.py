"""Loads that a snapshot does not give: how many partitions lack one, which goals that weakens, and whose bytes are unknown.

Called by `assemble`, `outcome` and `whatif`. Unknown is not zero: a limit may be broken unseen, and bytes cannot be counted.
"""

from __future__ import annotations

import numpy as np

from cluster_model.resources import DERIVED_FROM, MEASURED
from cluster_model.snapshot import BoolArray, Snapshot
from goals.model import Goal
from optimizer.why_words import counted, few


def lacks(snapshot: Snapshot, resource: str) -> BoolArray:
    """bool [P]: partitions whose leader load of a resource, or of what it is derived from, is not given. None of a count."""
    source = DERIVED_FROM.get(resource, resource)
    if source not in MEASURED:
        return np.zeros(snapshot.partition_count, np.bool_)
    given = snapshot.leader_load.get(source)
    return np.ones(snapshot.partition_count, np.bool_) if given is None else np.isnan(given)


def unsized(snapshot: Snapshot) -> BoolArray:
    """bool [P]: partitions for which the bytes that a move copies are unknown. None with shared storage."""
    if snapshot.storage != "local":
        return np.zeros(snapshot.partition_count, np.bool_)
    return lacks(snapshot, "disk")


def unknown_partitions(snapshot: Snapshot, goal: Goal) -> int:
    """How many partitions lack the load that a goal judges."""
    return int(np.count_nonzero(lacks(snapshot, str(getattr(goal, "resource", "replicas")))))


def unknown_notes(snapshot: Snapshot, goals: tuple[Goal, ...]) -> tuple[str, ...]:
    """A note for each load that some partitions lack and `goals` judge by the others; and one where sizes are unknown."""
    every = counted(snapshot.partition_count, "partition")
    notes, by_source = [], dict[str, list[str]]()
    for goal in goals:
        resource = getattr(goal, "resource", None)
        if resource is not None and unknown_partitions(snapshot, goal):
            by_source.setdefault(DERIVED_FROM.get(resource, resource), []).append(goal.name)
    for source, names in by_source.items():
        number = int(np.count_nonzero(lacks(snapshot, source)))
        judge = "judges" if len(names) == 1 else "judge"
        notes.append(
            f"{source} is unknown for {number:,} of {every}: {few(names)} {judge} the others only, and may be broken unseen; "
            f"give leader_load.{source} for all partitions"
        )
    number = int(np.count_nonzero(unsized(snapshot)))
    if number:
        notes.append(f"the size of {number:,} of {every} is unknown, so the bytes that their moves copy are, too; give leader_load.disk")
    return tuple(notes)
