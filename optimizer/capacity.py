"""What brokers can carry by the calibration, where the snapshot does not say: filled in before anything is planned or judged.

Called by what-ifs, detectors and the service's view of how goals stand. Pure; a snapshot that needs nothing comes back as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from cluster_model.snapshot import FloatArray, Snapshot
from goals.model import Calibrated, GoalSet

S = TypeVar("S", bound=Snapshot)


def with_capacity(snapshot: S, goals: GoalSet) -> S:
    """`snapshot` with the capacities of the goals' calibration for brokers without one. O(brokers x resources)."""
    given = goals.calibrated
    if given is None or _foreign(snapshot, given):
        return snapshot
    filled = {}
    for resource, of in given.capacity.items():
        now = _given(snapshot, resource)
        found = np.array([of.get(int(broker), np.nan) for broker in snapshot.broker_ids])
        if (np.isnan(now) & ~np.isnan(found)).any():
            filled[resource] = np.where(np.isnan(now), found, now)
    return replace(snapshot, capacity={**snapshot.capacity, **filled}) if filled else snapshot


def capacity_notes(snapshot: Snapshot, goals: GoalSet) -> tuple[str, ...]:
    """What `with_capacity` does to the snapshot as given, and what it does not, in words."""
    given = goals.calibrated
    if given is None or not (given.capacity or given.lower_bounds):
        return ()
    if _foreign(snapshot, given):
        told = f"{given.source} is of cluster {given.cluster_id}, the snapshot of {snapshot.cluster_id}"
        return (f"{told}: the capacities in it are not used",)
    taken, left = [], []
    for resource in dict.fromkeys((*given.capacity, *given.lower_bounds)):
        without = set(snapshot.broker_ids[np.isnan(_given(snapshot, resource))].tolist())
        found = len(without.intersection(given.capacity.get(resource, ())))
        low = len(without.intersection(given.lower_bounds.get(resource, ())))
        taken += [f"{resource} of {_brokers(found)}"] if found else []
        left += [f"{resource} of {_brokers(low)}"] if low else []
    notes = []
    if taken:
        notes.append(f"capacity from {given.source} ({given.span}): {', '.join(taken)}")
    if left:
        why = "estimates of low confidence are lower bounds and not used"
        notes.append(f"no capacity for {', '.join(left)}: in {given.source}, {why}")
    return tuple(notes)


def _foreign(snapshot: Snapshot, given: Calibrated) -> bool:
    return bool(snapshot.cluster_id and given.cluster_id and snapshot.cluster_id != given.cluster_id)


def _given(snapshot: Snapshot, resource: str) -> FloatArray:
    return snapshot.capacity.get(resource, np.full(snapshot.broker_count, np.nan))


def _brokers(count: int) -> str:
    return f"{count:,} broker{'' if count == 1 else 's'}"
