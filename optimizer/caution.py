"""What is left alone because its numbers cannot be trusted, or because it was moved lately, and what is said about it.

Made by `problem.compile_problem`. A snapshot of a file has no such doubts, only a `LiveSnapshot` has. Goals on counts alone depend on no
measured load, so nothing is held back for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cluster_model.loops import STALE, UNKNOWN
from cluster_model.resources import DERIVED_FROM, MEASURED
from cluster_model.snapshot import BoolArray, BrokerState, Snapshot
from cluster_model.trust import DOUBTFUL_SHARE, LiveSnapshot, spoken
from goals.model import Goal
from optimizer.plan import Skipped

MOST_NAMED = 20  # with a sentence each
EXAMPLES = 3
LATELY = "moved lately (policy.partition_cooldown)"
FEW = 0.5  # of the active brokers may be kept from receiving what is repaired


@dataclass(frozen=True, eq=False)
class Caution:
    """What is not touched for balance. Repairs that need no numbers (off dead and draining brokers, out of crowded racks, leaders
    for the leaderless) are made all the same.

    Attributes
    ----------
    resources
        Measured resources that the goals use.
    partitions
        bool [P]: may move, but a load of theirs is stale or unknown.
    brokers
        bool [B]: active, and too much of a load of theirs is stale or unknown.
    unmeasured
        bool [B]: of these, those whose replicas count too little because no reporter measured them. They look idle, so what is repaired
        goes there only if no other broker takes it; none where they are most of the brokers.
    resting
        bool [P]: may move, and was moved lately.
    """

    resources: tuple[str, ...]
    partitions: BoolArray
    brokers: BoolArray
    unmeasured: BoolArray
    resting: BoolArray

    @property
    def held(self) -> BoolArray:
        """bool [P]: not touched for balance, for whatever reason."""
        return self.partitions | self.resting


def caution_of(
    snapshot: Snapshot, goals: Iterable[Goal], movable: np.ndarray, resting: Sequence[tuple[str, int]] = ()
) -> Caution | None:
    """The doubts that matter to `goals`, and the partitions `resting`, topic and number; None where there are neither. `movable` int64 [P]:
    1 for partitions that may change at all."""
    rests = np.zeros(snapshot.partition_count, np.bool_)
    rows = [snapshot.row_of_partition(topic, number) for topic, number in resting]
    rests[[row for row in rows if row >= 0]] = True
    rests &= movable == 1
    if not isinstance(snapshot, LiveSnapshot):
        none = np.zeros(snapshot.broker_count, np.bool_)
        return Caution((), np.zeros_like(rests), none, none, rests) if rests.any() else None
    used = [getattr(goal, "resource", None) for goal in goals]
    sources = [DERIVED_FROM.get(r, r) for r in used if r is not None]
    resources = tuple(r for r in dict.fromkeys(sources) if r in MEASURED and r in snapshot.trust.leader)
    partitions = snapshot.untrusted(resources) & (movable == 1)
    active = snapshot.broker_states == BrokerState.ACTIVE
    brokers, unmeasured = np.zeros_like(active), np.zeros_like(active)
    for resource in filter(snapshot.is_doubtful, resources):
        doubts = snapshot.broker_doubts(resource)
        brokers |= active & (doubts.share() > DOUBTFUL_SHARE)
        unmeasured |= active & (doubts.unknown > DOUBTFUL_SHARE * doubts.replicas)
    if not partitions.any() and not brokers.any() and not rests.any():
        return None
    if unmeasured.sum() > FEW * active.sum():
        unmeasured[:] = False
    return Caution(resources, partitions, brokers, unmeasured, rests)


def held_back(snapshot: Snapshot, caution: Caution | None) -> tuple[Skipped, ...]:
    """A sentence for each partition and broker that is left alone; beyond a few, for all together."""
    if caution is None:
        return ()
    rests = _resting(snapshot, np.flatnonzero(caution.resting))
    return (*_doubted(snapshot, caution), *rests) if isinstance(snapshot, LiveSnapshot) else rests


def _resting(snapshot: Snapshot, rows: np.ndarray) -> tuple[Skipped, ...]:
    if len(rows) <= MOST_NAMED:
        return tuple(Skipped(f"partition {snapshot.partition_name(row)}", f"not moved for balance; {LATELY}") for row in rows.tolist())
    named = ", ".join(snapshot.partition_name(row) for row in rows[:EXAMPLES].tolist())
    return (Skipped(f"{len(rows):,} partitions", f"not moved for balance; {LATELY} ({named} …)"),)


def _doubted(snapshot: LiveSnapshot, caution: Caution) -> tuple[Skipped, ...]:
    rows = np.flatnonzero(caution.partitions)
    told: list[Skipped] = []
    if len(rows) <= MOST_NAMED:
        for row in rows.tolist():
            why = "; ".join(_causes(snapshot, caution, np.array([row])))
            told.append(Skipped(f"partition {snapshot.partition_name(row)}", f"not moved for balance; {why}", why))
    else:
        why = "; ".join(_causes(snapshot, caution, rows))
        named = ", ".join(snapshot.partition_name(row) for row in rows[:EXAMPLES].tolist())
        told.append(Skipped(f"{len(rows):,} partitions", f"not moved for balance; {why} ({named} …)", f"{why} ({named} …)"))
    doubtful = snapshot.broker_ids[caution.brokers].tolist()
    for broker in doubtful[:MOST_NAMED]:
        why = "; ".join(snapshot.refusals([], [broker], caution.resources))
        told.append(Skipped(f"broker {broker}", f"neither gets nor gives load for balance; {why}", why))
    if len(doubtful) > MOST_NAMED:
        more = f"too much of their {few_words(caution.resources)} is stale or unknown"
        told.append(Skipped(f"{len(doubtful) - MOST_NAMED} more brokers", f"neither get nor give load for balance; {more}", more))
    return tuple(told)


def few_words(names: Sequence[str]) -> str:
    """``cpu``, ``cpu or disk``, ``cpu, disk or network_in``."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _causes(snapshot: LiveSnapshot, caution: Caution, rows: np.ndarray) -> Iterable[str]:
    """What is stale of the partitions `rows`, and what was never measured: resources, and of how many where there are several."""
    several = snapshot.replication_factor[rows] > 1
    found: dict[tuple[str, int], list[str]] = {}
    for resource in caution.resources:
        flags = snapshot.trust.leader[resource][rows]
        if resource in snapshot.trust.follower:
            flags = flags | np.where(several, snapshot.trust.follower[resource][rows], 0).astype(flags.dtype)
        unknown = flags & UNKNOWN > 0
        stale = (flags & STALE > 0) & ~unknown
        for word, hit in ((f"older than {spoken(snapshot.trust.stale_after_ms)}", stale), ("never measured", unknown)):
            if hit.any():
                found.setdefault((word, int(hit.sum())), []).append(resource)
    for (word, count), resources in found.items():
        yield f"{word}: {', '.join(resources)}" + (f" of {count:,}" if len(rows) > 1 else "")
