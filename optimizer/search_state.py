"""What one plan leaves for the next: compiled columns and the states of the search, brought up to date where the cluster changed.

A caller that plans again and again owns a `SearchState` and hands it to `plan`. The plan is the same with and without it, byte for byte:
what is kept is what would be made again, loads lie on a grid on which sums are exact in any order, and whatever cannot be brought up to
date (another set of brokers, topics or partitions, other goals, another grid) is made from scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cluster_model.digest import Fingerprint
from cluster_model.snapshot import BoolArray, Snapshot
from goals.model import GoalSet
from optimizer.columns import Columns, make_columns
from optimizer.compile import compile_problem, counted_goals, counted_racks, resources_of, rules_of
from optimizer.options import PlanOptions
from optimizer.placement.state import State
from optimizer.placement.states import States
from optimizer.problem import STATE, Compiled
from optimizer.topic_tables import topics_alike

Rows = np.ndarray
MOST_PLACED = 8  # of so many partitions one may stand elsewhere; beyond, all is made from scratch
MOST_LOADED = 4  # of so many one may have other loads; beyond, all loads are taken again


@dataclass(eq=False)
class Work:
    """A compiled problem and the states that a search works on."""

    snapshot: Snapshot  # what-ifs applied
    fingerprint: Fingerprint
    asked: tuple[object, ...]  # what of goals and options columns depend on
    columns: Columns
    compiled: Compiled
    states: States

    @property
    def begin(self) -> State:
        return self.states.current


class SearchState:
    """When re-planning the same cluster repeatedly, pass one of these: same plan, several times faster.

    It is safe after an interrupted plan and with several threads. A plan takes the kept state out and puts it back when it is done;
    a plan that finds none starts from scratch.

    Notes
    -----
    Memory does not grow with the number of plans: about 140 bytes a replica with six goals on loads (`nbytes`), and the snapshot of
    the last plan.
    """

    def __init__(self) -> None:
        self._kept: list[Work] = []  # of one at most; taking from a list is one step, whatever other threads do

    def take(self) -> Work | None:
        """What is kept; nothing is, from here on."""
        try:
            return self._kept.pop()
        except IndexError:
            return None

    def keep(self, work: Work) -> None:
        """Keep `work` for the next plan, in place of what is kept."""
        self._kept = [work]

    @property
    def nbytes(self) -> int:
        """Memory of what is kept, without the snapshot."""
        return sum(work.columns.nbytes + work.states.nbytes for work in tuple(self._kept))


class Change(NamedTuple):
    """int64 partitions, ascending, in which a snapshot differs from one before: elsewhere or led by another, of other loads, either."""

    placed: Rows
    loaded: Rows
    rows: Rows


def work_on(given: Snapshot, snapshot: Snapshot, goals: GoalSet, options: PlanOptions, kept: Work | None) -> Work:
    """The work of planning `snapshot` (what-ifs applied; `given` is the file's), out of what was `kept` where that serves.

    `kept` is of a snapshot and given only where what-ifs leave partitions alone; it must not be used afterwards.
    """
    asked = (goals.goals, goals.constraints, options.exclude_topics)
    change = _change(kept.snapshot, snapshot) if kept is not None else None
    if kept is not None and change is not None:
        given.renew_fingerprint(kept.fingerprint, change.rows)
        if asked == kept.asked and _serves(kept, snapshot, goals, change):
            return _renewed(given, snapshot, goals, options, kept, change)
    columns = make_columns(snapshot, resources_of(counted_goals(snapshot, goals.goals)[0]), rules_of(snapshot, goals, options))
    compiled = compile_problem(snapshot, goals, options, columns)
    states = States(compiled.problem, compiled.replicas, compiled.lead)
    return Work(snapshot, given.fingerprint, asked, columns, compiled, states)


def _serves(kept: Work, snapshot: Snapshot, goals: GoalSet, change: Change) -> bool:
    """Whether `kept` can be brought up to date. Which goals count depends on what the snapshot reports."""
    return (
        tuple(counted_goals(snapshot, goals.goals)[0]) == kept.compiled.goals
        and np.array_equal(counted_racks(snapshot, goals.constraints), kept.columns.rules.racks)
        and len(change.placed) * MOST_PLACED <= snapshot.partition_count
    )


def _renewed(
    given: Snapshot, snapshot: Snapshot, goals: GoalSet, options: PlanOptions, kept: Work, change: Change
) -> Work:
    """`kept` brought to a snapshot that differs from its own by `change`."""
    columns, states, was = kept.columns, kept.states, kept.compiled.problem
    few = len(change.loaded) * MOST_LOADED <= snapshot.partition_count
    on = states.hosted_by(kept.snapshot.broker_states != snapshot.broker_states, columns.replicas)
    ruled = _either(change.placed, on)  # may move or not, and count a leader or not, otherwise than before
    rows = _either(change.rows, on) if few else ruled
    columns.replace(snapshot, change.placed)
    # Replicas go with the loads that they had, and only then get others: so sums are of the same numbers before and after.
    broker = was.broker.copy()
    broker[:, STATE] = snapshot.broker_states
    problem = was._replace(broker=broker)
    states.start(problem, columns.replicas, columns.lead, change.placed)
    before = columns.vector[rows] if few else None
    if before is None or not columns.renew(snapshot, rows):
        columns.reload(snapshot, ruled)
        before = None
    load = states.reload(problem, rows, before)
    compiled = compile_problem(snapshot, goals, options, columns, load)
    if not topics_alike(was, compiled.problem):
        states.recount(compiled.problem)
    states.appraise(compiled.problem)
    return Work(snapshot, given.fingerprint, kept.asked, columns, compiled, states)


def _either(one: Rows, other: Rows) -> Rows:
    return np.union1d(one, other) if len(other) else one


def leaves_partitions_alone(given: Snapshot, snapshot: Snapshot) -> bool:
    """Whether the what-ifs that made `snapshot` of `given` did."""
    one, other = _columns_of(given), _columns_of(snapshot)
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _columns_of(snapshot: Snapshot) -> list[np.ndarray]:
    loads = [*snapshot.leader_load.values(), *snapshot.follower_load.values()]
    return [snapshot.replicas, snapshot.leader, snapshot.partition_topic, snapshot.partition_number, snapshot.has_follower_load, *loads]


def _change(before: Snapshot, now: Snapshot) -> Change | None:
    """What differs; None where brokers, racks, topics, partitions, replication factors or what is reported do."""
    if (
        before.storage != now.storage
        or before.racks != now.racks
        or before.replicas.shape != now.replicas.shape
        or before.leader_load.keys() != now.leader_load.keys()
        or before.follower_load.keys() != now.follower_load.keys()
        or not _same(before.broker_ids, now.broker_ids)
        or not _same(before.partition_topic, now.partition_topic)
        or not _same(before.partition_number, now.partition_number)
        or (before.topics is not now.topics and before.topics != now.topics)
    ):
        return None
    moved, other = np.zeros(now.partition_count, np.bool_), np.zeros(now.partition_count, np.bool_)
    if before.replicas is not now.replicas:
        for s in range(now.replicas.shape[1]):
            moved |= before.replicas[:, s] != now.replicas[:, s]
    _mark(moved, before.leader, now.leader)
    _mark(other, before.has_follower_load, now.has_follower_load)
    for one, table in ((before.leader_load, now.leader_load), (before.follower_load, now.follower_load)):
        for name in table:
            _mark(other, one[name], table[name])
    placed, loaded, rows = np.flatnonzero(moved), np.flatnonzero(other), np.flatnonzero(moved | other)
    if ((before.replicas[placed] >= 0) != (now.replicas[placed] >= 0)).any():
        return None
    return Change(placed, loaded, rows)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one is other or np.array_equal(one, other)


def _mark(flags: BoolArray, one: np.ndarray, other: np.ndarray) -> None:
    """Set `flags` where two columns differ; floats by their bits, so that a NaN is like itself."""
    if one is not other:
        flags |= one != other if one.dtype.kind != "f" else one.view(np.int64) != other.view(np.int64)
