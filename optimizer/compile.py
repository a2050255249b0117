"""From a snapshot and goals to a `Problem`.

What has a row for each partition comes from `optimizer.columns`, the tables of goals on loads and of topics from modules of their own.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, FloatArray, Snapshot
from goals.model import Goal, GoalSet, Limit, RackAware, TopicDistribution, UsageDistribution
from optimizer.caution import caution_of
from optimizer.columns import Columns, Rules, any_differs, cost_of_moves, make_columns
from optimizer.linear_tables import linear_tables
from optimizer.options import PlanOptions
from optimizer.plan import Skipped
from optimizer.problem import (
    DISTRIBUTION,
    FOLLOWING,
    HARD_RACK,
    LEADING,
    LIMIT,
    MOVABLE,
    NO_RACK_GOAL,
    RACK,
    RF,
    SOFT_RACK,
    TOPIC,
    Compiled,
    Problem,
)
from optimizer.topic_tables import counted_topics, topic_tables, with_topics
from optimizer.whatif import matching_topics, movable_topics


def compile_problem(
    snapshot: Snapshot, goals: GoalSet, options: PlanOptions, columns: Columns | None = None, load: FloatArray | None = None
) -> Compiled:
    """Arrays of `snapshot` (what-ifs already applied) under `goals`.

    `columns` are those of the snapshot and `load` float64 [B, C] the loads of its brokers, where they are known; they change no result.
    """
    counted, skipped = counted_goals(snapshot, goals.goals)
    if columns is None:
        columns = make_columns(snapshot, resources_of(counted), rules_of(snapshot, goals, options))
    resources = list(columns.resources)
    eligible = snapshot.broker_states == BrokerState.ACTIVE
    rack = _dense_racks(snapshot)
    hard_rack = any(isinstance(g, RackAware) and g.hard for g in counted)
    totals, per_rack = _totals(snapshot, columns, load, rack, eligible, hard_rack)
    notes: list[str] = []
    linear = linear_tables(snapshot, counted, resources, totals, per_rack, rack, eligible, notes)
    by_topic = topic_tables(snapshot, counted, eligible)
    groups = _groups(counted)
    weight = np.array([0.0 if g.hard else g.weight for g in counted])
    topic_bound = np.array([g.bound if isinstance(g, TopicDistribution) else 0.0 for g in counted])
    topic_gap = np.array([g.min_gap if isinstance(g, TopicDistribution) else 0.0 for g in counted], np.float64)
    cost = cost_of_moves(columns.size, options.move_cost)
    problem = Problem(
        broker=np.stack([snapshot.broker_states, rack], axis=1).astype(np.int64),
        partition=columns.partition,
        topic=columns.topic,
        size=columns.size,
        cost=cost,
        typical=np.array([cost.mean() if len(cost) else 1.0]),
        vector=columns.vector,
        goal=np.stack(
            [
                np.array([_kind(g) for g in counted], dtype=np.int64),
                np.array(_column_of(counted, resources), dtype=np.int64),
                np.array([g.hard for g in counted], dtype=np.int64),
                groups,
                linear.absolute,
            ],
            axis=1,
        ),
        force=np.stack(
            [
                weight, linear.min_load, with_topics(linear.strength, by_topic, eligible), linear.spread, topic_bound,
                topic_gap,
            ],
            axis=1,
        ),
        table=linear.table,
        **by_topic,
        topic_first=columns.topic_first,
        topic_counted=counted_topics(columns.topic_first, snapshot.broker_count * len(by_topic["topic_goal"])),
        setting=np.array(
            [int(groups.max()) + 1 if len(groups) else 1, _rack_goal(counted), 0], dtype=np.int64
        ),
    )
    return Compiled(
        problem=problem,
        goals=tuple(counted),
        columns=columns.resources,
        skipped=tuple(skipped),
        notes=tuple(notes),
        means={
            g: float(totals[resources.index(goal.resource)]) / int(eligible.sum()) if eligible.any() else None
            for g, goal in enumerate(counted)
            if isinstance(goal, UsageDistribution)
        },
        replicas=columns.replicas,
        lead=columns.lead,
        home=columns.replicas,
        home_lead=columns.lead,
        leading=columns.laid.leading,
        roles=columns.laid.roles,
        caution=caution_of(snapshot, counted, columns.partition[:, MOVABLE], options.resting),
    )


def rules_of(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> Rules:
    """What a problem's columns are made by, beside partitions."""
    frozen = matching_topics(snapshot.topics, goals.constraints.freeze_topics)
    return Rules(movable_topics(snapshot, goals.constraints, options), ~frozen, counted_racks(snapshot))


def counted_racks(snapshot: Snapshot) -> int:
    """How many racks have an active or an excluded broker: a rack that is only out of reach still counts."""
    within = np.isin(snapshot.broker_states, (BrokerState.ACTIVE, BrokerState.EXCLUDED))
    return len(np.unique(_dense_racks(snapshot)[within]))


def counted_goals(snapshot: Snapshot, goals: tuple[Goal, ...]) -> tuple[list[Goal], list[Skipped]]:
    counted: list[Goal] = []
    skipped: list[Skipped] = []
    if snapshot.broker_count and not (snapshot.broker_states == BrokerState.ACTIVE).any():
        return [], [Skipped(f"goal {goal.name}", "no broker is active") for goal in goals]
    for goal in goals:
        resource = getattr(goal, "resource", None)
        if resource is not None and not snapshot.is_reported(resource):
            skipped.append(Skipped(f"goal {goal.name}", f"no {resource} load in the snapshot"))
        elif isinstance(goal, Limit) and np.isnan(goal.ceilings(snapshot.capacity, snapshot.broker_count)).all():
            skipped.append(Skipped(f"goal {goal.name}", f"no broker has a capacity for {goal.resource}"))
        else:
            counted.append(goal)
    return counted, skipped


def resources_of(goals: list[Goal]) -> tuple[str, ...]:
    """Resource of each column of load that goals need."""
    used = (g.resource for g in goals if isinstance(g, Limit | UsageDistribution))
    return tuple(dict.fromkeys(used))


def _dense_racks(snapshot: Snapshot) -> np.ndarray:
    names = {name: i for i, name in enumerate(sorted({r for r in snapshot.racks if r is not None}))}
    dense = []
    following = len(names)
    for name in snapshot.racks:
        if name is None:
            dense.append(following)
            following += 1
        else:
            dense.append(names[name])
    return np.array(dense, dtype=np.int64)


def loads_by_broker(
    replicas: np.ndarray, lead: np.ndarray, leading: FloatArray, following: FloatArray, brokers: int
) -> FloatArray:
    """float64 [B, C]: loads of all brokers; `lead` is the slot of the leader. Exact on grid values."""
    load = np.zeros((brokers, leading.shape[1]))
    if not len(replicas):
        return load
    leads = np.arange(replicas.shape[1])[None, :] == lead[:, None]
    present = replicas >= 0
    hosts = replicas[present]
    for c in range(leading.shape[1]):
        amount = np.where(leads, leading[:, c][:, None], following[:, c][:, None])
        load[:, c] = np.bincount(hosts, weights=amount[present], minlength=brokers)
    return load


def _totals(
    snapshot: Snapshot, columns: Columns, load: FloatArray | None, rack: np.ndarray, eligible: np.ndarray, hard_rack: bool,
) -> tuple[FloatArray, dict[int, FloatArray]]:  # fmt: skip
    """float64 [C] totals that eligible brokers share; and, for columns whose mean is taken per rack, float64 [racks]."""
    excluded = snapshot.broker_states == BrokerState.EXCLUDED
    held = np.zeros((snapshot.broker_count, len(columns.laid.totals)))
    if excluded.any():
        held = load if load is not None else _held_by(columns, excluded)
    totals = columns.laid.totals - held[excluded].sum(axis=0)
    per_rack: dict[int, FloatArray] = {}
    racks_eligible = np.unique(rack[eligible])
    forced = (
        hard_rack and snapshot.partition_count and None not in snapshot.racks
        and not any_differs(columns.partition[:, RF], len(racks_eligible))
    )  # fmt: skip
    if forced:
        for c in range(len(columns.resources)):
            leading, following = columns.vector[:, LEADING, c], columns.vector[:, FOLLOWING, c]
            if not any_differs(leading, following):
                shares = np.full(int(rack.max()) + 1, leading.sum())
                for r in range(len(shares)):
                    shares[r] -= held[excluded & (rack == r), c].sum()
                per_rack[c] = shares
    return totals, per_rack


def _held_by(columns: Columns, brokers: np.ndarray) -> FloatArray:
    """float64 [B, C]: loads of the `brokers` (bool [B]) among all."""
    at = np.append(brokers, False)
    rows = np.flatnonzero(np.logical_or.reduce([at[columns.replicas[:, s]] for s in range(columns.replicas.shape[1])]))
    vector = columns.vector[rows]
    return loads_by_broker(columns.replicas[rows], columns.lead[rows], vector[:, LEADING], vector[:, FOLLOWING], len(brokers))


def _kind(goal: Goal) -> int:
    match goal:
        case UsageDistribution():
            return DISTRIBUTION
        case Limit():
            return LIMIT
        case RackAware():
            return RACK
        case TopicDistribution():
            return TOPIC


def _column_of(goals: list[Goal], columns: list[str]) -> list[int]:
    result, topic_row = [], 0
    for goal in goals:
        if isinstance(goal, Limit | UsageDistribution):
            result.append(columns.index(goal.resource))
        elif isinstance(goal, TopicDistribution):
            result.append(topic_row)
            topic_row += 1
        else:
            result.append(0)
    return result


def _groups(goals: list[Goal]) -> np.ndarray:
    names: list[str | None] = []
    for goal in goals:
        if not goal.hard and goal.group not in names:
            names.append(goal.group)
    return np.array([0 if g.hard else names.index(g.group) for g in goals], dtype=np.int64)


def _rack_goal(goals: list[Goal]) -> int:
    racks = [g for g in goals if isinstance(g, RackAware)]
    if not racks:
        return NO_RACK_GOAL
    return HARD_RACK if any(g.hard for g in racks) else SOFT_RACK
