"""From rounds of search to a `Plan`: actions with scores and reasons, proposals, outcomes, identity.

Called by the planner only. Actions stay in arrays until a reader looks at one.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.actions import ActionLog, ActionTable
from optimizer.broker_outcome import BrokerOutcomes
from optimizer.broker_sets import set_notes
from optimizer.capacity import capacity_notes
from optimizer.caution import held_back
from optimizer.changes import ChangeTable, Proposals
from optimizer.found import Found, Round
from optimizer.frontier import Frontier
from optimizer.full_directories import full_directories
from optimizer.identity import identified
from optimizer.loops import without_loops
from optimizer.offline import offline_notes, repaired_though_excluded
from optimizer.options import PlanOptions
from optimizer.outcome import Picture, bands_of, goal_outcomes
from optimizer.placement.record import joined_before
from optimizer.plan import LowerBounds, Plan, Summary
from optimizer.problem import Compiled
from optimizer.unknown import unknown_notes, unsized
from optimizer.whatif import idle_patterns
from optimizer.why import why_left
from optimizer.why_budget import budget_text
from optimizer.why_sets import told_of_sets


def assemble(
    given: Snapshot,
    snapshot: Snapshot,
    goals: GoalSet,
    options: PlanOptions,
    compiled: Compiled,
    start: Picture,
    bounds: LowerBounds,
    found: Found,
    waiting: int = 0,
    because: str | None = None,
) -> Plan:
    """The plan for `snapshot` (what-ifs applied; `given` is the file's) out of what a search found from `start`. `waiting` are actions that
    were found, too, and that a policy leaves for the next plan; `because` says why a plan that does one thing only does nothing else.
    """
    actions = _actions(snapshot, compiled, found.rounds)
    if len(found.rounds) > 1:  # within one, every action lowers the same potential
        actions = without_loops(actions)
    proposals = _net_changes(snapshot, compiled, actions.changes)
    end = found.end
    summary = _summary(snapshot, compiled, proposals, len(actions.score))
    left = why_left(snapshot, compiled, end, options, found, waiting, because)
    cut_short = options.budgeted or waiting > 0 or bool(because) or compiled.caution is not None or found.stopped
    outcomes = goal_outcomes(snapshot, compiled, goals, start, end, left, cut_short)
    small = [] if found.left_out is None else [found.left_out.skipped(options)]
    ended = because or budget_text(compiled, end, options, waiting)
    skipped = (
        *compiled.skipped, *small, *held_back(snapshot, compiled.caution), *offline_notes(snapshot, compiled, end, ended),
    )  # fmt: skip
    recorded = _recorded(options)
    goals_digest = goals.digest or "sha256:" + hashlib.sha256(repr(goals.goals).encode()).hexdigest()
    made = Plan(
        plan_id="",
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
        brokers=BrokerOutcomes(snapshot, compiled, start, end, left),
        skipped=tuple(skipped),
        notes=(
            *snapshot.notes, *goals.notes, *_provenance(given, goals, options), *idle_patterns(snapshot, goals),
            *set_notes(snapshot, goals.constraints), *told_of_sets(snapshot, compiled, start, end),
            *compiled.notes, *unknown_notes(snapshot, compiled.goals), *full_directories(snapshot, goals),
            *repaired_though_excluded(snapshot, compiled, proposals.partition), *_mode_notes(options, found),
        ),
        bands=bands_of(snapshot, compiled),
        frontier=Frontier(actions, compiled, start),
        stopped=found.stopped,
        cannot_be_emptied=() if cut_short else tuple(int(snapshot.broker_ids[row]) for row, why in sorted(left.items()) if why.stuck),
    )
    return identified(made)


def _provenance(given: Snapshot, goals: GoalSet, options: PlanOptions) -> tuple[str, ...]:
    """What comes from a calibration: values of goals, capacities, loads."""
    told = goals.calibrated.sentence if goals.calibrated is not None else ""
    loads = options.loads
    return (*([told] if told else []), *capacity_notes(given, goals), *([loads.note(given)] if loads is not None else []))


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
    broker, score_after, data = [], [], []
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
        score_after.append(part.record.after)
        new = ((lists[:, :, None] != lists_before[:, None, :]).all(axis=2) & (lists >= 0)).sum(axis=1)
        moved = np.concatenate([[0.0], np.cumsum(new * compiled.problem.size[rows])])
        data.append(moved[part.log.first[1 : actions + 1]] - moved[part.log.first[:actions]])

    def joined(parts: list[np.ndarray], shape: tuple[int, ...], kind: type) -> np.ndarray:
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.zeros(shape, kind)

    after_actions = joined(score_after, (0, goals), np.float64)
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
        score_before=joined_before([part.record for part in rounds], after_actions),
        score_after=after_actions,
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


def _summary(snapshot: Snapshot, compiled: Compiled, proposals: ChangeTable, actions: int) -> Summary:
    new = (proposals.after[:, :, None] != proposals.before[:, None, :]).all(axis=2) & (proposals.after >= 0)
    moves = new.sum(axis=1)
    data = float((moves * compiled.problem.size[proposals.partition]).sum())
    return Summary(
        actions=actions,
        replica_moves=int(moves.sum()),
        leadership_changes=int((proposals.leader_before != proposals.leader_after).sum()),
        partitions=len(proposals),
        bytes_to_move=round(data),
        unsized_moves=int(moves[unsized(snapshot)[proposals.partition]].sum()),
    )


def _recorded(options: PlanOptions) -> dict[str, object]:
    """Options that decide the plan, as they stand in it; what was not asked for is left out."""
    recorded: dict[str, object] = {"seed": options.seed, "acceptance": options.acceptance}
    for name in ("max_moves", "max_bytes", "max_partitions", "move_cost", "min_gain", "noise", "restarts"):
        if getattr(options, name) is not None:
            recorded[name] = getattr(options, name)
    if options.add_brokers:
        recorded["add_brokers"] = [{"id": b.id, "rack": b.rack} for b in options.add_brokers]
    for name in ("remove_brokers", "exclude_brokers", "demote_brokers", "exclude_topics"):
        if getattr(options, name):
            recorded[name] = list(getattr(options, name))
    if options.scale_load:
        factors: dict[str, float] = {}
        for glob, factor in options.scale_load:  # one that is given twice counts twice
            factors[glob] = factors.get(glob, 1) * factor
        recorded["scale_load"] = factors
    if options.resting:
        digest = hashlib.sha256(json.dumps(options.resting).encode()).hexdigest()
        recorded["resting"] = {"partitions": len(options.resting), "digest": f"sha256:{digest}"}
    if options.replication_factor:
        recorded["replication_factor"] = dict(options.replication_factor)
    if options.split_hits is not None:
        recorded["split_hits"] = dict(options.split_hits)
    if options.loads is not None:
        recorded["load"] = options.loads.statistic
        recorded["loads_digest"] = options.loads.digest
    return recorded
