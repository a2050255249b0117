"""Which brokers may take a topic, and which of those keep it apart from others: broker sets, the filters `isolation` and `anti_affinity`.

Called by `targeting` and `assign`, on whatever lists they have come to. They say where replicas may go; what stands elsewhere is counted
and left. Source: Apache Pulsar's namespace isolation policies, with minimum available brokers, and anti-affinity groups of namespaces over
failure domains; here of topics over racks. Ours: where no broker is as far apart as the one that a replica stands on, it stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BoolArray, BrokerState, Snapshot
from goals.model import Constraints
from goals.policy_filters import AntiAffinity, Filters, Isolation
from optimizer.broker_sets import sets_of
from optimizer.policies.board import Rows
from optimizer.whatif import matching_topics
from optimizer.why_words import counted

IntArray = npt.NDArray[np.int32] | npt.NDArray[np.int64]

RACK = "rack:"
ISOLATION, SETS = "policy.filters.isolation", "constraints.broker_sets"
FREE = -1  # topics of no rule, or of no group


@dataclass(frozen=True)
class Confines:
    """What the filters make of a snapshot. T topics, B brokers; rows.

    Attributes
    ----------
    allowed
        bool [T, B]; None where there is no rule.
    group
        int64 [T], `FREE` for topics of none.
    rack
        int64 [B]; a broker without a rack is one of its own.
    told
        What each rule comes to, in a sentence.
    within
        What of a goals file leaves a topic fewer brokers.
    """

    allowed: BoolArray | None
    group: Rows
    rack: Rows
    told: tuple[str, ...] = ()
    within: str = ISOLATION

    @property
    def remedy(self) -> str:
        """What gives a topic one more broker."""
        return "add a broker to its set" if SETS in self.within else "add a broker"

    def may(self, topics: Collection[int]) -> BoolArray | None:
        """bool [B]: brokers that may take all of these topics; None where there is no rule."""
        return None if self.allowed is None else np.asarray(self.allowed[list(topics)].all(axis=0))

    def company(self, topics: Collection[int], lists: IntArray, partition_topic: IntArray) -> Rows | None:
        """int64 [B, 2]: how many other topics of the groups of `topics` stand in the rack of each broker, and on it, in `lists` [P, R] of
        the topics `partition_topic` [P]; None where none of them is in a group."""
        groups = {int(g) for g in self.group[list(topics)]} - {FREE}
        if not groups:
            return None
        others = np.isin(self.group, list(groups))
        others[list(topics)] = False
        rows = np.flatnonzero(others[partition_topic])
        at, slot = np.nonzero(lists[rows] >= 0)
        topic, broker = partition_topic[rows[at]].astype(np.int64), lists[rows[at], slot].astype(np.int64)
        found = np.zeros((len(self.rack), 2), np.int64)
        racks = np.unique(np.stack([topic, self.rack[broker]]), axis=1)[1]
        found[:, 0] = np.bincount(racks, minlength=int(self.rack.max()) + 1)[self.rack]
        found[:, 1] = np.bincount(np.unique(np.stack([topic, broker]), axis=1)[1], minlength=len(self.rack))
        return found


def confines_of(filters: Filters, snapshot: Snapshot, constraints: Constraints | None = None) -> Confines:
    """The filters on a snapshot (what-ifs applied), and the broker sets of the constraints."""
    racks = {name: i for i, name in enumerate(sorted({r for r in snapshot.racks if r is not None}))}
    rack = np.array([racks[r] if r is not None else len(racks) + b for b, r in enumerate(snapshot.racks)], np.int64)
    group = np.full(len(snapshot.topics), FREE, np.int64)
    for number, one in reversed(list(enumerate(filters.anti_affinity))):
        group[matching_topics(snapshot.topics, one.topics)] = number
    allowed, told = _isolated(filters.isolation, snapshot)
    sets = sets_of(snapshot, constraints) if constraints is not None else None
    within = ISOLATION if sets is None else SETS if allowed is None else f"{SETS} and {ISOLATION}"
    if sets is not None:
        homes = np.array([sets.takers(t) for t in range(len(snapshot.topics))], np.bool_).reshape(len(snapshot.topics), -1)
        allowed = homes if allowed is None else allowed & homes
    return Confines(allowed, group, rack, (*told, *_apart(filters.anti_affinity, group)), within)


def takers(rule: Isolation, snapshot: Snapshot) -> BoolArray:
    """bool [B]: brokers that take the topics of a rule: active primary ones, and secondary ones where those are too few."""
    active = np.asarray(snapshot.broker_states == BrokerState.ACTIVE)
    found = active & named(rule.primary, snapshot)
    return found if found.sum() >= rule.min_primary else np.asarray(found | (active & named(rule.secondary, snapshot)))


def named(patterns: Sequence[int | str], snapshot: Snapshot) -> BoolArray:
    """bool [B]: brokers whose id, or whose rack, a list of a rule names."""
    found = np.zeros(snapshot.broker_count, np.bool_)
    for row, (broker, rack) in enumerate(zip(snapshot.broker_ids.tolist(), snapshot.racks, strict=True)):
        for pattern in map(str, patterns):
            if pattern.startswith(RACK):
                found[row] |= rack is not None and fnmatchcase(rack, pattern.removeprefix(RACK))
            else:
                found[row] |= fnmatchcase(str(broker), pattern)
    return found


def _isolated(rules: Sequence[Isolation], snapshot: Snapshot) -> tuple[BoolArray | None, list[str]]:
    if not rules:
        return None, []
    reserved = np.any([named(rule.primary, snapshot) for rule in rules], axis=0)
    allowed = np.tile(~reserved, (len(snapshot.topics), 1))
    topics = np.zeros(len(snapshot.topics), np.bool_)
    told = []
    for rule in rules:
        mine = matching_topics(snapshot.topics, rule.topics) & ~topics
        topics |= mine
        allowed[mine] = takes = takers(rule, snapshot)
        few = int((takes & named(rule.primary, snapshot)).sum()) < rule.min_primary
        who = ", ".join(map(str, snapshot.broker_ids[takes].tolist())) or "none"
        which = f"primary and secondary, fewer than {rule.min_primary} primary ones are active" if few else "primary"
        what, others = f"{counted(int(mine.sum()), 'topic')} of {', '.join(rule.topics)}", _elsewhere(snapshot, mine, takes)
        told.append(f"filter isolation: {what} may go to brokers {who} ({which}){others}")
    told.append(f"filter isolation: other topics may go to brokers that are primary in no rule{_elsewhere(snapshot, ~topics, ~reserved)}")
    return allowed, told


def _elsewhere(snapshot: Snapshot, topics: BoolArray, takes: BoolArray) -> str:
    """How many replicas of topics stand where none would go now."""
    lists = snapshot.replicas[topics[snapshot.partition_topic]]
    count = int((~takes[lists[lists >= 0]]).sum())
    return f"; {counted(count, 'replica')} elsewhere" if count else ""


def _apart(groups: Sequence[AntiAffinity], group: Rows) -> list[str]:
    return [
        f"filter anti_affinity: {counted(int((group == number).sum()), 'topic')} of {', '.join(one.topics)} are kept apart"
        for number, one in enumerate(groups)
    ]
