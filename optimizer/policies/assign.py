"""Where the partitions of a new topic go, or more partitions of one that there is: replica lists, leaders first.

Called by `trimtab assign` and `placed_anew`. Pure; chance comes from the seed. Replicas of a partition go to racks that hold fewest of
it, then to brokers that hold fewest of the topic, and of those to whom the placement picks; hard goals come before all. What was placed
counts for what follows. In the end lists are ordered so that the topic's leaders are level (`optimizer.policies.leaders`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cluster_model.errors import ConfigurationError, Problem, TrimtabError
from cluster_model.resources import DERIVED_FROM
from cluster_model.snapshot import BoolArray, BrokerState, FloatArray, Snapshot
from goals.model import GoalSet, Limit, RackAware
from goals.policy import Placement
from goals.policy_filters import Filters
from optimizer.broker_sets import sets_of
from optimizer.detectors import policy_of
from optimizer.options import PlanOptions
from optimizer.policies.confines import confines_of
from optimizer.policies.leaders import UNTOUCHED, Led, level_leaders
from optimizer.policies.placements import Dice, Placer
from optimizer.policies.profiles import broker_scores
from optimizer.whatif import apply_whatifs
from optimizer.why_words import few

MOST_PARTITIONS = 100_000


class InfeasibleError(TrimtabError):
    """Hard goals leave no place; the message says which."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """What is to be placed: `partitions` is how many the topic has in the end; `like` a topic whose mean loads are expected.

    Without a `replication_factor` it is that of the topic's other partitions.
    """

    name: str
    partitions: int
    replication_factor: int | None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """Replica lists (wire ids, preferred leader first) of partitions `first`, `first` + 1, …."""

    topic: str
    first: int
    replicas: tuple[tuple[int, ...], ...]


def assign(
    snapshot: Snapshot, goals: GoalSet, new: NewTopic, placement: Placement | None = None, score: str = "count", seed: int = 0
) -> Assigned:
    """Place the partitions of `new`.

    Raises
    ------
    ConfigurationError
        What is asked for does not fit the cluster.
    InfeasibleError
        Hard goals leave no broker for a replica; says which goals, of which brokers.
    """
    snapshot = apply_whatifs(snapshot, goals, PlanOptions())
    first, factor = _first(snapshot, new)
    count = new.partitions - first
    rows = range(snapshot.partition_count, snapshot.partition_count + count)
    lists = Work(_extended(snapshot, new, first, factor), goals, rows, factor, placement, score, Dice(seed)).placed()
    ids = snapshot.broker_ids
    return Assigned(new.name, first, tuple(tuple(int(ids[b]) for b in row) for row in lists))


def _first(snapshot: Snapshot, new: NewTopic) -> tuple[int, int]:
    """Number of the first partition to place, and how many replicas each gets; refuses what cannot be."""
    active = int((snapshot.broker_states == BrokerState.ACTIVE).sum())
    problems = []
    if not 1 <= new.partitions <= MOST_PARTITIONS:
        problems.append(Problem("--partitions", f"expected 1 to {MOST_PARTITIONS:,}, found {new.partitions}"))
    if new.like is not None and new.like not in snapshot.row_of_topic:
        problems.append(Problem("--like", f"no topic {new.like!r} in the snapshot; name one whose load the new one will have"))
    first, asked = 0, new.replication_factor
    if new.name in snapshot.row_of_topic:
        rows = np.flatnonzero(snapshot.partition_topic == snapshot.row_of_topic[new.name])
        first = int(snapshot.partition_number[rows].max()) + 1
        factor = int(snapshot.replication_factor[rows].max())
        if new.partitions <= first:
            message = f"topic {new.name} has {first} partitions; expected more, the number it is to have in all; found {new.partitions}"
            problems.append(Problem("--partitions", message))
        if asked is None:
            asked = factor
        elif factor != asked:
            message = f"expected {factor}, as the other partitions of topic {new.name} have, found {asked}"
            problems.append(Problem("--replication-factor", message))
    if asked is None:
        problems.append(Problem("--replication-factor", "expected a number, found none; a new topic needs it"))
    elif not 1 <= asked <= active:
        message = f"expected 1 to {active} replicas, one for each active broker, found {asked}"
        problems.append(Problem("--replication-factor", message))
    if problems or asked is None:
        raise ConfigurationError("trimtab assign", problems)
    return first, asked


def _extended(snapshot: Snapshot, new: NewTopic, first: int, factor: int) -> Snapshot:
    """The snapshot with the new partitions, which stand nowhere yet, at the end."""
    count = new.partitions - first
    topics = snapshot.topics if new.name in snapshot.row_of_topic else (*snapshot.topics, new.name)
    slots = max(snapshot.replicas.shape[1], factor)
    lists = np.full((snapshot.partition_count + count, slots), -1, np.int32)
    lists[: snapshot.partition_count, : snapshot.replicas.shape[1]] = snapshot.replicas
    like = new.like or (new.name if new.name in snapshot.row_of_topic else None)
    rows = np.flatnonzero(snapshot.partition_topic == snapshot.row_of_topic[like]) if like else np.zeros(0, np.int64)

    def more(values: FloatArray) -> FloatArray:
        known = values[rows][~np.isnan(values[rows])] if len(rows) else values[:0]
        return np.concatenate([values, np.full(count, float(known.mean()) if len(known) else 0.0)])

    given = bool(snapshot.has_follower_load[rows].any()) if len(rows) else False
    return replace(
        snapshot,
        topics=topics,
        partition_topic=np.concatenate([snapshot.partition_topic, np.full(count, topics.index(new.name), np.int32)]),
        partition_number=np.concatenate([snapshot.partition_number, np.arange(first, new.partitions, dtype=np.int32)]),
        replicas=lists,
        leader=np.concatenate([snapshot.leader, np.full(count, -1, np.int32)]),
        leader_load={name: more(values) for name, values in snapshot.leader_load.items()},
        follower_load={name: more(values) for name, values in snapshot.follower_load.items()},
        has_follower_load=np.concatenate([snapshot.has_follower_load, np.full(count, given)]),
    )


class Work:
    """Partitions of one topic being placed, one after the other, on a snapshot that goes along.

    Parameters
    ----------
    rows
        Of the partitions to place, which stand nowhere.
    """

    def __init__(
        self, snapshot: Snapshot, goals: GoalSet, rows: Sequence[int], factor: int, placement: Placement | None, score: str, dice: Dice
    ) -> None:
        self.snapshot, self.goals, self.rows, self.factor = snapshot, goals, rows, factor
        self.score, self._placer = score, Placer(placement, goals, dice)
        self._lists, self._leader = snapshot.replicas.copy(), snapshot.leader.copy()
        racks = {name: i for i, name in enumerate(sorted({r for r in snapshot.racks if r is not None}))}
        self._rack = np.array([racks[r] if r is not None else len(racks) + b for b, r in enumerate(snapshot.racks)])
        counted = np.isin(snapshot.broker_states, (BrokerState.ACTIVE, BrokerState.EXCLUDED))
        self._rack_goal = next((g for g in goals.goals if isinstance(g, RackAware)), None)
        self._mine = np.flatnonzero(snapshot.partition_topic == snapshot.partition_topic[rows[0]])
        placed = self._lists[self._mine]
        self._held = np.bincount(placed[placed >= 0], minlength=snapshot.broker_count)
        leads = self._leader[self._mine]
        self._led = np.bincount(leads[leads >= 0], minlength=snapshot.broker_count)
        self._confines = confines_of(policy_of(goals).filters or Filters(), snapshot, goals.constraints)
        self._topic = int(snapshot.partition_topic[rows[0]])
        sets = sets_of(snapshot, goals.constraints)
        counted &= np.True_ if sets is None else sets.takers(self._topic)
        self._per_rack = -(-factor // max(len(set(self._rack[counted].tolist())), 1))

    def allowed(self) -> BoolArray:
        """bool [B]: brokers that broker sets and isolation leave to the topic."""
        may = self._confines.may([self._topic])
        return np.ones(self.snapshot.broker_count, np.bool_) if may is None else may

    def placed(self) -> list[list[int]]:
        """Broker rows of all the partitions to place, those first that are to lead."""
        for row in self.rows:
            self._place(row)
        return self._ordered()

    def _place(self, row: int) -> None:
        """Find brokers for the partition of this row."""
        now = self.snapshot.with_placement(self._lists, self._leader)
        scores = broker_scores(self.score, now, self.goals)
        chosen: list[int] = []
        for _ in range(self.factor):
            able = self._able(now, row, chosen)
            company = self._confines.company([self._topic], self._lists, self.snapshot.partition_topic)
            if company is not None:  # apart from the others of its group, as far as possible
                rank = company[able]
                able = able[(rank == min(map(tuple, rank.tolist()))).all(axis=1)]
            few = able[self._held[able] == self._held[able].min()]
            chosen.append(self._placer.pick(now, few, scores, self._held))
        lead = min(range(len(chosen)), key=lambda i: (self._led[chosen[i]], scores[chosen[i]], i))
        chosen.insert(0, chosen.pop(lead))
        self._lists, self._leader = self._lists.copy(), self._leader.copy()
        self._lists[row, : len(chosen)] = chosen
        self._leader[row] = chosen[0]
        self._held[chosen] += 1
        self._led[chosen[0]] += 1

    def _ordered(self) -> list[list[int]]:
        """Lists so that the leaders of the topic are level."""
        lists = self._lists[self._mine].astype(np.int64)
        leads = (lists == self._leader[self._mine][:, None]) & (lists >= 0)
        lead = np.where(leads.any(axis=1), leads.argmax(axis=1), -1)
        new = np.isin(self._mine, self.rows)
        active = np.asarray(self.snapshot.broker_states == BrokerState.ACTIVE)
        lead = level_leaders(Led(lists, lead, new, active, np.full(len(self._mine), UNTOUCHED)))
        rows = [(row[row >= 0].tolist(), int(first)) for row, first in zip(lists[new], lead[new], strict=True)]
        return [[row[first], *row[:first], *row[first + 1 :]] for row, first in rows]

    def _able(self, now: Snapshot, row: int, chosen: list[int]) -> np.ndarray:
        """Broker rows that may take a replica: active, within hard goals, in the racks that hold fewest of the partition."""
        able = np.flatnonzero(self.snapshot.broker_states == BrokerState.ACTIVE)
        able = able[~np.isin(able, chosen)]
        blocked: dict[str, list[int]] = {}
        kept = self.allowed()[able]
        if not kept.all():
            blocked[self._confines.within], able = self.snapshot.broker_ids[able[~kept]].tolist(), able[kept]
        for goal in self.goals.goals:
            if goal.hard and isinstance(goal, Limit):
                full = able[_overfull(now, goal, row)[able]]
                if len(full):
                    blocked[goal.name] = self.snapshot.broker_ids[full].tolist()
                    able = able[~np.isin(able, full)]
        if self._rack_goal is not None and len(able):
            there = np.bincount(self._rack[chosen], minlength=int(self._rack.max()) + 1)[self._rack[able]]
            if self._rack_goal.hard:
                able, there = able[there < self._per_rack], there[there < self._per_rack]
                if not len(able):
                    blocked[self._rack_goal.name] = []
            able = np.asarray(able[there == there.min()] if len(able) else able)
        if not len(able):
            raise InfeasibleError(f"{now.partition_name(row)}: {_no_room(blocked, len(chosen), self._remedy(now, row, blocked))}")
        return able

    def _remedy(self, now: Snapshot, row: int, blocked: Collection[str]) -> str:
        """What makes room for one more replica of partition `row`: balance, where all brokers together stay within the limits with it."""
        full = [g for g in self.goals.goals if isinstance(g, Limit) and g.name in blocked]
        active = np.asarray(self.snapshot.broker_states == BrokerState.ACTIVE)
        room = [float((most - load)[active].sum()) - more for load, more, most in (_against(now, g, row) for g in full)]
        balance = "balance the cluster first (trimtab plan), " if full and min(room) >= 0.0 else ""
        rack = " in another rack" if self._rack_goal is not None and self._rack_goal.name in blocked else ""
        return f"{balance}{self._confines.remedy}{rack}"


def _overfull(now: Snapshot, goal: Limit, row: int) -> np.ndarray:
    """bool [B]: whether a replica of partition `row`, if only as a leader, would bring a broker above a limit."""
    load, more, most = _against(now, goal, row)
    return np.asarray(load + more > most * (1.0 + 1e-9))


def _against(now: Snapshot, goal: Limit, row: int) -> tuple[FloatArray, float, FloatArray]:
    """float64 [B] loads, what a replica of partition `row` adds at most, and float64 [B] ceilings (infinite where none is known), in the
    resource's unit."""
    load = now.broker_load(goal.resource) if now.is_reported(goal.resource) else np.zeros(now.broker_count)
    more = 0.0
    if now.is_reported(goal.resource) or goal.resource in DERIVED_FROM:
        leading, following = now.vectors(goal.resource)
        more = float(max(leading[row], following[row]))
    most = goal.ceilings(now.capacity, now.broker_count)
    return load, more, np.where(np.isnan(most), np.inf, most)


def _no_room(blocked: dict[str, list[int]], placed: int, remedy: str) -> str:
    parts = [f"{name} (brokers {few([str(b) for b in ids], 8)})" if ids else name for name, ids in blocked.items()]
    goals = ", ".join(parts) or "its other replicas"
    return f"no broker may take replica {placed + 1}: every one is ruled out by {goals}; {remedy}, or loosen the goal"


def replica_assignment(assigned: Assigned) -> str:
    """The value of ``kafka-topics --replica-assignment``: ``1:2:3,2:3:1``."""
    return ",".join(":".join(map(str, row)) for row in assigned.replicas)
