"""How goals and brokers stand, live: what the page shows between plans, and what a detector thinks of it.

Pure functions of a snapshot and goals; called by `trimtab.service.look`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from cluster_model.trust import LiveSnapshot
from goals.model import GoalSet, UsageDistribution
from optimizer.judgement import Judgement
from optimizer.outcome import goal_state, judged
from optimizer.placement.state import State
from optimizer.plan import Plan
from optimizer.problem import MEAN, Compiled
from trimtab.service.views import BrokerView, GoalView


def stand(
    found: Judgement, slow: Mapping[int, str] | None = None, draining: Collection[int] = ()
) -> tuple[tuple[GoalView, ...], tuple[BrokerView, ...]]:
    """Every goal in the order of the file, every broker by id. `slow`: why brokers count as slow, by id. `draining`: those that people told
    the service to empty."""
    return _goals(found.goals, found.compiled, found.state), _brokers(found.snapshot, found.compiled, found.state, slow or {}, draining)


def _goals(goals: GoalSet, compiled: Compiled, state: State) -> tuple[GoalView, ...]:
    rows = {goal.name: g for g, goal in enumerate(compiled.goals)}
    reasons = {s.what: s.reason for s in compiled.skipped}
    found = []
    for goal in goals.goals:
        g = rows.get(goal.name)
        now = None if g is None else goal_state(compiled, state, g)
        found.append(
            GoalView(
                name=goal.name, kind=goal.kind, resource=getattr(goal, "resource", None), hard=goal.hard, weight=goal.weight,
                violations=now.violations if now is not None else None,
                in_band=now.in_band if now is not None else None,
                max_deviation=now.max_deviation if now is not None else None,
                bound=goal.bound if isinstance(goal, UsageDistribution) else None,
                skipped=None if now is not None else reasons.get(f"goal {goal.name}", "not counted"),
            )
        )
    return tuple(found)


def _brokers(
    snapshot: Snapshot, compiled: Compiled, state: State, slow: Mapping[int, str], draining: Collection[int]
) -> tuple[BrokerView, ...]:
    voices = {v.broker: v.voice for v in snapshot.trust.voices} if isinstance(snapshot, LiveSnapshot) else {}
    reported = [r for r in ("network_in", "network_out", "cpu", "disk", "replicas", "leaders") if snapshot.is_reported(r)]
    known = {r: state.load[:, c] for c, r in enumerate(compiled.columns)}
    loads = {r: known[r] if r in known else snapshot.broker_load(r) for r in dict.fromkeys((*reported, *known))}
    hosts = snapshot.broker_load("replicas")
    judges = [set(judged(compiled, g).tolist()) for g in range(len(compiled.goals))]
    found = []
    for row, broker in enumerate(snapshot.broker_ids.tolist()):
        shares = {}
        for g, goal in enumerate(compiled.goals):
            if goal.kind == "usage_distribution" and row in judges[g]:
                mean = float(compiled.problem.table[row, g, MEAN])
                if mean > 0.0:
                    shares[goal.resource] = float(loads[goal.resource][row]) / mean
        found.append(
            BrokerView(
                id=broker, rack=snapshot.racks[row],
                state=BrokerState(int(snapshot.broker_states[row])).label, drained=broker in draining and not hosts[row],
                voice=voices.get(broker, "never"),
                slow=slow.get(broker),
                loads={r: float(values[row]) for r, values in loads.items()},
                share_of_mean=shares,
                violates=tuple(
                    goal.name for g, goal in enumerate(compiled.goals) if row in judges[g] and state.score[row, g] < 1.0
                ),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Repair:
    """What has to be mended whatever a detector says, in words; None where there is nothing.

    Attributes
    ----------
    lost
        Replicas on dead or draining brokers, partitions without a leader that could have one.
    limits
        Hard goals that are broken.
    """

    lost: str | None = None
    limits: str | None = None

    def __bool__(self) -> bool:
        return self.lost is not None or self.limits is not None


def to_repair(snapshot: Snapshot, goals: tuple[GoalView, ...]) -> Repair:
    """What has to be mended. O(replicas)."""
    broken = [g.name for g in goals if g.hard and g.violations]
    return Repair(_lost(snapshot), f"{broken[0]} is violated" if broken else None)


def _lost(snapshot: Snapshot) -> str | None:
    load = snapshot.broker_load("replicas")
    for state in (BrokerState.DEAD, BrokerState.DRAINING):
        rows = np.flatnonzero((snapshot.broker_states == state) & (load > 0))
        if len(rows):
            ids = ", ".join(str(int(snapshot.broker_ids[row])) for row in rows[:5].tolist())
            return f"{state.label} broker{'s' if len(rows) > 1 else ''} {ids} still host{'' if len(rows) > 1 else 's'} replicas"
    if snapshot.partition_count:
        live = snapshot.broker_states == BrokerState.ACTIVE
        present = snapshot.replicas >= 0
        alive = (present & live[np.maximum(snapshot.replicas, 0)]).any(axis=1)
        leaderless = int(((snapshot.leader < 0) & alive).sum())
        if leaderless:
            return f"{leaderless} partition{'s' if leaderless > 1 else ''} without a leader"
    return None


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The cluster as the plan leaves it. O(replicas + proposals)."""
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    rows = snapshot.row_of_broker
    for change in plan.proposals:
        p = snapshot.row_of_partition(change.topic, change.partition)
        placed = [rows[b] for b in change.replicas_after]
        replicas[p] = -1
        replicas[p, : len(placed)] = placed
        leader[p] = -1 if change.leader_after is None else rows[change.leader_after]
    return snapshot.with_placement(replicas, leader)


def moved_away(snapshot: Snapshot, plan: Plan) -> str | None:
    """Why the plan is no longer for this cluster: a partition it changes is not as it was; None where all are."""
    ids, rows = snapshot.broker_ids, snapshot.row_of_broker
    for change in plan.proposals:
        name = f"{change.topic}-{change.partition}"
        p = snapshot.row_of_partition(change.topic, change.partition)
        if p < 0:
            return f"there is no {name} any more"
        now = tuple(int(ids[b]) for b in snapshot.replicas[p].tolist() if b >= 0)
        if now != change.replicas_before:
            return f"replicas of {name} are {list(now)} now, the plan was made for {list(change.replicas_before)}"
        leader = int(ids[snapshot.leader[p]]) if snapshot.leader[p] >= 0 else None
        if leader != change.leader_before:
            return f"{name} has {_said(leader)} now, the plan was made for {_said(change.leader_before)}"
        for broker in change.added:
            row = rows.get(broker)
            if row is None or snapshot.broker_states[row] != BrokerState.ACTIVE:
                return f"broker {broker}, which {name} would move to, is not active any more"
    return None


def _said(leader: int | None) -> str:
    return "no leader" if leader is None else f"leader {leader}"
