"""The broker sets of the constraints on a snapshot: where topics may stand, and which replicas stand elsewhere.

Made by `optimizer.compile`; the rule itself is `in_set` of `optimizer.placement.feasible`. Brokers of no set are one more set, which takes
the topics of no set. Where every broker is in one, and no set takes the rest, such topics stay where they are: repairs alone move them, to
any broker. Source: Cruise Control's BrokerSetAwareGoal; ours: topics are named, where Cruise Control hashes their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState, Snapshot
from goals.model import BrokerSet, Constraints
from optimizer.plan import Change
from optimizer.problem import ANYWHERE, MOVABLE, SET_OF, SETS, STATE, Problem
from optimizer.whatif import matching_topics
from optimizer.why_words import counted, few

REST = "brokers of no set"


@dataclass(frozen=True, slots=True)
class Homes:
    """What people call the set of each topic that is kept to one, and of each broker, by id."""

    of_topic: Mapping[str, str]
    of_broker: Mapping[int, str]

    def brought(self, change: Change) -> str | None:
        """The set that a change brings a replica to from a broker of another; None where it brings none."""
        home = self.of_topic.get(change.topic)
        left = [b for b in change.replicas_before if b not in change.replicas_after]
        return home if home is not None and any(self.of_broker.get(b, home) != home for b in left) else None


@dataclass(frozen=True, eq=False)
class Sets:
    """`names` are of the sets by number, the last of the brokers of none; `topic` int64 [T] and `broker` int64 [B] are these numbers."""

    names: tuple[str, ...]
    topic: np.ndarray
    broker: np.ndarray

    @property
    def astray(self) -> BoolArray:
        """bool [T]: topics of no set where every broker is in one."""
        return np.asarray(self.topic == ANYWHERE)

    def label(self, number: int) -> str:
        """What people call set `number`."""
        return self.names[number] if number == len(self.names) - 1 else f"broker set {self.names[number]}"

    def told(self, topics: tuple[str, ...], brokers: np.ndarray) -> Homes:
        """The same by the names of `topics` [T] and by the ids of `brokers` int64 [B]."""
        labels = [*map(self.label, range(len(self.names))), ""]
        return Homes(
            {name: labels[number] for name, number in zip(topics, self.topic.tolist(), strict=True) if number != ANYWHERE},
            {broker: labels[number] for broker, number in zip(brokers.tolist(), self.broker.tolist(), strict=True)},
        )  # fmt: skip

    def takers(self, topic: int) -> BoolArray:
        """bool [B]: brokers that may host the topic in this row."""
        return np.asarray((self.topic[topic] == ANYWHERE) | (self.broker == self.topic[topic]))


def sets_of(snapshot: Snapshot, constraints: Constraints) -> Sets | None:
    """The sets of a snapshot (what-ifs applied); None where the constraints name none."""
    if not constraints.broker_sets:
        return None
    given, topics = constraints.broker_sets, snapshot.topics
    broker = np.full(snapshot.broker_count, len(given), np.int64)
    for number, one in enumerate(given):
        broker[[snapshot.row_of_broker[b] for b in one.brokers if b in snapshot.row_of_broker]] = number
    rest = next((n for n, one in enumerate(given) if not one.topics), len(given) if (broker == len(given)).any() else ANYWHERE)
    topic = np.full(len(topics), rest, np.int64)
    for number, one in reversed(list(enumerate(given))):
        topic[matching_topics(topics, one.topics)] = number
    return Sets((*(one.name for one in given), REST), topic, broker)


def outside_sets(problem: Problem, lists: np.ndarray, rows: np.ndarray | slice = slice(None)) -> BoolArray:
    """bool [n, R]: replicas of partitions `rows`, with `lists` int64 [n, R], on brokers of another set than their topic's."""
    own = problem.topic_set[problem.topic[rows]][:, None]
    here = np.append(problem.broker[:, SET_OF], ANYWHERE)[lists]
    return np.asarray((own != ANYWHERE) & (here != ANYWHERE) & (own != here))


def strays(problem: Problem, lists: np.ndarray) -> np.ndarray:
    """int64 entries, ``partition * R + slot``, of replicas on active brokers of other sets that may move; ascending."""
    if problem.setting[SETS] == 0:
        return np.zeros(0, np.int64)
    active = np.append(problem.broker[:, STATE] == BrokerState.ACTIVE, False)
    return np.flatnonzero(outside_sets(problem, lists) & active[lists] & (problem.partition[:, MOVABLE] == 1)[:, None])


def set_notes(snapshot: Snapshot, constraints: Constraints) -> tuple[str, ...]:
    """What is legal about the sets and probably not meant, as this cluster shows."""
    sets = sets_of(snapshot, constraints)
    if sets is None:
        return ()
    given = constraints.broker_sets
    told = [note for number, one in enumerate(given) for note in _of_one(snapshot, sets, number, one)]
    hits = np.sum([matching_topics(snapshot.topics, one.topics) for one in given], axis=0)
    if (hits > 1).any():
        names = few([snapshot.topics[t] for t in np.flatnonzero(hits > 1).tolist()], 5)
        told.append(f"constraints.broker_sets: {names} match several sets; the first one holds")
    if sets.astray.any():
        names = few([snapshot.topics[t] for t in np.flatnonzero(sets.astray).tolist()], 5)
        told.append(
            f"constraints.broker_sets: every broker is in a set and {names} in none, so only repairs would move "
            "them; one set may leave its topics out and takes all of no other set"
        )
    idle = np.flatnonzero(sets.broker == len(given))
    if len(idle) and any(not one.topics for one in given):
        names = few([str(b) for b in snapshot.broker_ids[idle].tolist()], 8)
        told.append(f"constraints.broker_sets: brokers {names} are in no set and get no replicas, as one set takes all topics of no other")
    return tuple(told)


def _of_one(snapshot: Snapshot, sets: Sets, number: int, one: BrokerSet) -> list[str]:
    """Notes on set `number`."""
    told, place = [], f"broker set {one.name}"
    for pattern in one.topics:
        if not pattern.startswith("__") and not matching_topics(snapshot.topics, (pattern,)).any():
            told.append(f"{place}: no topic matches {pattern!r}")
    members, mine = sets.broker == number, (sets.topic == number)[snapshot.partition_topic]
    active = members & (snapshot.broker_states == BrokerState.ACTIVE)
    factor = int(snapshot.replication_factor[mine].max(initial=0))
    if factor > active.sum():
        worst = snapshot.partition_name(int(np.flatnonzero(mine & (snapshot.replication_factor == factor))[0]))
        told.append(
            f"{place}: {worst} has {counted(factor, 'replica')} and the set {counted(int(active.sum()), 'active broker')}; "
            f"add {factor - int(active.sum())} to it"
        )
    racks = {r if r is not None else b for b, r in enumerate(snapshot.racks)}
    own = {snapshot.racks[b] if snapshot.racks[b] is not None else b for b in np.flatnonzero(members).tolist()}
    if mine.any() and members.any() and len(own) < min(factor, len(racks)):
        told.append(
            f"{place}: its brokers are in {counted(len(own), 'rack')} of {len(racks)}, so up to {-(-factor // len(own))} replicas of a "
            "partition share one"
        )
    return told
