"""From rounds of search to a `Plan`: actions with scores and reasons, proposals, outcomes, identity.

Called by the planner only. Actions stay in arrays until somebody looks at one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.bounds import lower_bounds
from optimizer.frontier import Frontier
from optimizer.options import PlanOptions
from optimizer.outcome import bands_of, broker_outcomes, goal_outcomes, judged, offline_notes
from optimizer.plan import Action, ActionType, Change, GoalScore, Plan, Summary
from optimizer.problem import SIZE, WEIGHT, Compiled
from optimizer.reasons import reason_of
from optimizer.search.evaluate import REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS
from optimizer.search.rounds import Found, Round
from optimizer.search.state import build_state
from optimizer.whatif import idle_patterns
from optimizer.why import why_left

REPAIR_NAMES = {
    REPAIRS_DEAD: "dead_broker",
    REPAIRS_DRAINING: "draining_broker",
    REPAIRS_LEADERLESS: "leaderless",
}


@dataclass(frozen=True)
class ChangeTable:
    """Changes in rows: partition, lists before and after (wire ids, -1 beyond the list), leaders (-1 none)."""

    snapshot: Snapshot
    partition: np.ndarray
    before: np.ndarray
    after: np.ndarray
    leader_before: np.ndarray
    leader_after: np.ndarray

    def row(self, i: int) -> Change:
        p = int(self.partition[i])
        return Change(
            topic=self.snapshot.topics[self.snapshot.partition_topic[p]],
            partition=int(self.snapshot.partition_number[p]),
            replicas_before=tuple(int(b) for b in self.before[i] if b >= 0),
            replicas_after=tuple(int(b) for b in self.after[i] if b >= 0),
            leader_before=int(self.leader_before[i]) if self.leader_before[i] >= 0 else None,
            leader_after=int(self.leader_after[i]) if self.leader_after[i] >= 0 else None,
        )

    def __len__(self) -> int:
        return len(self.partition)


class Proposals(Sequence[Change]):
    """Net changes, built when asked for."""

    def __init__(self, table: ChangeTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> list[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | list[Change]:
        if isinstance(index, slice):
            return [self._table.row(i) for i in range(*index.indices(len(self)))]
        return self._table.row(range(len(self))[index])

    def __iter__(self) -> Iterator[Change]:
        return (self._table.row(i) for i in range(len(self)))


@dataclass(frozen=True)
class ActionTable:
    """Columns of all actions; `first` and `first_broker` index the rows of changes and of touched brokers."""

    changes: ChangeTable
    first: np.ndarray  # int64 [A + 1]
    score: np.ndarray  # float64 [A]
    repairs: np.ndarray  # int64 [A]
    goal_score: np.ndarray  # float64 [A, G]
    first_broker: np.ndarray  # int64 [A + 1]
    broker: np.ndarray  # int64 [N], wire ids
    score_before: np.ndarray  # float64 [N, G]
    score_after: np.ndarray  # float64 [N, G]
    bytes_to_move: np.ndarray  # float64 [A]


class ActionLog(Sequence[Action]):
    """Actions of a plan in order, built when asked for."""

    def __init__(self, table: ActionTable, compiled: Compiled) -> None:
        self._table = table
        self._names = [goal.name for goal in compiled.goals]
        self._weights = compiled.problem.force[:, WEIGHT].tolist()
        ids = table.changes.snapshot.broker_ids
        self._judged = [{int(ids[row]) for row in judged(compiled, g)} for g in range(len(compiled.goals))]
        self._states = {
            int(b): int(state)
            for b, state in zip(table.changes.snapshot.broker_ids, compiled.problem.broker[:, 0], strict=True)
        }

    def __len__(self) -> int:
        return len(self._table.score)

    @overload
    def __getitem__(self, index: int) -> Action: ...
    @overload
    def __getitem__(self, index: slice) -> list[Action]: ...
    def __getitem__(self, index: int | slice) -> Action | list[Action]:
        if isinstance(index, slice):
            return [self._build(i) for i in range(*index.indices(len(self)))]
        return self._build(range(len(self))[index])

    def __iter__(self) -> Iterator[Action]:
        return (self._build(i) for i in range(len(self)))

    def _build(self, i: int) -> Action:
        table = self._table
        changes = tuple(table.changes.row(c) for c in range(table.first[i], table.first[i + 1]))
        lo, hi = table.first_broker[i], table.first_broker[i + 1]
        brokers = [int(b) for b in table.broker[lo:hi]]
        before, after = table.score_before[lo:hi].tolist(), table.score_after[lo:hi].tolist()
        scores = table.goal_score[i].tolist()
        goal_scores = {
            name: GoalScore(
                score=scores[g],
                before={b: before[n][g] for n, b in enumerate(brokers) if b in self._judged[g]},
                after={b: after[n][g] for n, b in enumerate(brokers) if b in self._judged[g]},
            )
            for g, name in enumerate(self._names)
        }
        repairs = self._repairs(int(table.repairs[i]))
        kind = action_type(changes)
        return Action(
            seq=i + 1,
            type=kind,
            score=float(table.score[i]),
            repairs=repairs,
            reason=reason_of(kind, changes, repairs, goal_scores, self._names, self._weights, self._states),
            bytes_to_move=round(float(table.bytes_to_move[i])),
            changes=changes,
            goal_scores=goal_scores,
        )

    def _repairs(self, bits: int) -> tuple[str, ...]:
        beyond = [name for bit, name in REPAIR_NAMES.items() if bits >> bit & 1]
        return (*beyond, *(name for g, name in enumerate(self._names) if bits >> g & 1))


def action_type(changes: tuple[Change, ...]) -> ActionType:
    """What the contract calls an action of these changes."""
    if len(changes) == 1:
        added = len(changes[0].added)
        return "leadership" if added == 0 else ("move" if added == 1 else "exchange")
    if len(changes) == 2:
        one, two = changes
        gone = [set(c.replicas_before) - set(c.replicas_after) for c in changes]
        came = [set(c.added) for c in changes]
        if len(came[0]) == 1 and came[0] == gone[1] and came[1] == gone[0] and one != two:
            return "swap"
    return "exchange"


def assemble(
    given: Snapshot,
    snapshot: Snapshot,
    goals: GoalSet,
    options: PlanOptions,
    compiled: Compiled,
    found: Found,
) -> Plan:
    """The plan for `snapshot` (what-ifs applied; `given` is the file's) out of what a search found."""
    actions = _actions(snapshot, compiled, found.rounds)
    proposals = _net_changes(snapshot, compiled, actions.changes)
    start, end = build_state(compiled.problem, compiled.replicas, compiled.lead), found.end
    summary = _summary(compiled, proposals, len(actions.score))
    bounds = lower_bounds(compiled.problem, start)
    left = why_left(snapshot, compiled, end, options)
    brokers = broker_outcomes(snapshot, compiled, start, end, left)
    outcomes = goal_outcomes(compiled, goals, start, end, brokers, left, options)
    skipped = (*compiled.skipped, *offline_notes(snapshot, compiled, end))
    recorded = _recorded(options)
    goals_digest = goals.digest or "sha256:" + hashlib.sha256(repr(goals.goals).encode()).hexdigest()
    return Plan(
        plan_id=_identity(given.digest, goals_digest, recorded, actions),
        cluster_id=snapshot.cluster_id,
        taken_at=snapshot.taken_at,
        snapshot_digest=given.digest,
        storage=snapshot.storage,
        goals_digest=goals_digest,
        options=recorded,
        actions=ActionLog(actions, compiled),
        proposals=Proposals(proposals),
        goals=outcomes,
        summary=summary,
        lower_bounds=bounds,
        brokers=brokers,
        skipped=tuple(skipped),
        notes=(
            *snapshot.notes, *goals.notes, *idle_patterns(snapshot, goals.constraints), *compiled.notes,
            *_mode_notes(options, found),
        ),
        bands=bands_of(snapshot, compiled),
        frontier=Frontier(actions, compiled, start),
    )


def _mode_notes(options: PlanOptions, found: Found) -> tuple[str, ...]:
    notes = []
    if options.acceptance == "potential":
        notes.append("acceptance is by potential: not every action scores above 0.5 on its own")
    if found.stopped:
        notes.append("stopped on request before the search was done: the best plan so far; planning again on its result would go on")
    return tuple(notes)


def _ids(snapshot: Snapshot, rows: np.ndarray) -> np.ndarray:
    return np.where(rows >= 0, snapshot.broker_ids[np.maximum(rows, 0)], -1)


def _leaders(snapshot: Snapshot, lists: np.ndarray, slots: np.ndarray) -> np.ndarray:
    rows = lists[np.arange(len(lists)), np.maximum(slots, 0)]
    return np.where(slots >= 0, _ids(snapshot, rows), -1)


def _actions(snapshot: Snapshot, compiled: Compiled, rounds: list[Round]) -> ActionTable:
    goals = len(compiled.goals)
    slots = compiled.replicas.shape[1]
    partition, before, after, lead_before, lead_after = [], [], [], [], []
    first, first_broker = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    score, repairs, goal_score = [], [], []
    broker, score_before, score_after, data = [], [], [], []
    changes_before = brokers_before = 0
    for part in rounds:
        actions, changes = int(part.log.used[0]), int(part.log.used[1])
        rows = part.log.partition[:changes]
        lists_before, leads_before = part.changes.before, part.changes.lead_before
        lists, leads = part.changes.after, part.changes.lead_after
        partition.append(rows)
        before.append(_ids(snapshot, lists_before))
        after.append(_ids(snapshot, lists))
        lead_before.append(_leaders(snapshot, lists_before, leads_before))
        lead_after.append(_leaders(snapshot, lists, leads))
        first.append(part.log.first[1 : actions + 1] + changes_before)
        first_broker.append(part.record.first[1:] + brokers_before)
        changes_before += changes
        brokers_before += len(part.record.broker)
        score.append(part.record.score)
        repairs.append(part.record.repairs)
        goal_score.append(part.record.goal_score)
        broker.append(snapshot.broker_ids[part.record.broker])
        score_before.append(part.record.before)
        score_after.append(part.record.after)
        new = ((lists[:, :, None] != lists_before[:, None, :]).all(axis=2) & (lists >= 0)).sum(axis=1)
        moved = np.concatenate([[0.0], np.cumsum(new * compiled.problem.haul[rows, SIZE])])
        data.append(moved[part.log.first[1 : actions + 1]] - moved[part.log.first[:actions]])

    def joined(parts: list[np.ndarray], shape: tuple[int, ...], kind: type) -> np.ndarray:
        return np.concatenate(parts) if parts else np.zeros(shape, kind)

    return ActionTable(
        changes=ChangeTable(
            snapshot,
            joined(partition, (0,), np.int64),
            joined(before, (0, slots), np.int64),
            joined(after, (0, slots), np.int64),
            joined(lead_before, (0,), np.int64),
            joined(lead_after, (0,), np.int64),
        ),
        first=np.concatenate(first),
        score=joined(score, (0,), np.float64),
        repairs=joined(repairs, (0,), np.int64),
        goal_score=joined(goal_score, (0, goals), np.float64),
        first_broker=np.concatenate(first_broker),
        broker=joined(broker, (0,), np.int64),
        score_before=joined(score_before, (0, goals), np.float64),
        score_after=joined(score_after, (0, goals), np.float64),
        bytes_to_move=joined(data, (0,), np.float64),
    )


def _net_changes(snapshot: Snapshot, compiled: Compiled, changes: ChangeTable) -> ChangeTable:
    """The first list and the last of every partition, where they differ; in order of partitions."""
    rows, last = np.unique(changes.partition[::-1], return_index=True)
    last = len(changes.partition) - 1 - last
    before, after = _ids(snapshot, compiled.replicas[rows]), changes.after[last]
    leader_before = _leaders(snapshot, compiled.replicas[rows], compiled.lead[rows])
    differs = (before != after).any(axis=1) | (leader_before != changes.leader_after[last])
    return ChangeTable(
        snapshot, rows[differs], before[differs], after[differs], leader_before[differs], changes.leader_after[last][differs]
    )


def _summary(compiled: Compiled, proposals: ChangeTable, actions: int) -> Summary:
    new = (proposals.after[:, :, None] != proposals.before[:, None, :]).all(axis=2) & (proposals.after >= 0)
    moves = new.sum(axis=1)
    data = float((moves * compiled.problem.haul[proposals.partition, SIZE]).sum())
    return Summary(
        actions=actions,
        replica_moves=int(moves.sum()),
        leadership_changes=int((proposals.leader_before != proposals.leader_after).sum()),
        partitions=len(proposals),
        bytes_to_move=round(data),
    )


def _recorded(options: PlanOptions) -> dict[str, object]:
    """Options that decide the plan, as they stand in it; what was not asked for is left out."""
    recorded: dict[str, object] = {"seed": options.seed, "acceptance": options.acceptance}
    for name in ("max_moves", "max_bytes", "max_partitions"):
        if getattr(options, name) is not None:
            recorded[name] = getattr(options, name)
    if options.add_brokers:
        recorded["add_brokers"] = [{"id": b.id, "rack": b.rack} for b in options.add_brokers]
    for name in ("remove_brokers", "exclude_brokers", "exclude_topics"):
        if getattr(options, name):
            recorded[name] = list(getattr(options, name))
    if options.scale_load:
        recorded["scale_load"] = dict(options.scale_load)
    return recorded


def _identity(
    snapshot_digest: str, goals_digest: str, options: dict[str, object], actions: ActionTable
) -> str:
    h = hashlib.sha256()
    h.update(json.dumps([snapshot_digest, goals_digest, options], sort_keys=True).encode())
    table = actions.changes
    for array in (
        actions.first,
        table.partition,
        table.before,
        table.after,
        table.leader_before,
        table.leader_after,
    ):
        h.update(np.ascontiguousarray(array, dtype=np.int64).tobytes())
    return "sha256:" + h.hexdigest()
