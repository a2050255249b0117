"""From a snapshot and goals to a `Problem`.

What has a row for each partition comes from `optimizer.columns`, the tables of goals on loads and of topics from modules of their own.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, FloatArray, Snapshot
from goals.model import Constraints, Goal, GoalSet, Limit, RackAware, TopicGoal, UsageDistribution
from optimizer.broker_sets import Sets, sets_of
from optimizer.caution import caution_of
from optimizer.columns import Columns, Rules, cost_of_moves, make_columns
from optimizer.linear_tables import linear_tables
from optimizer.options import PlanOptions
from optimizer.plan import Skipped
from optimizer.problem import ANYWHERE, DISTRIBUTION, HARD_RACK, LIMIT, MOVABLE, NO_RACK_GOAL, RACK, SOFT_RACK, TOPIC, Compiled, Problem
from optimizer.shares import Ground, shares_of
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
    sets = sets_of(snapshot, goals.constraints)
    shares = shares_of(Ground(snapshot, columns, sets, rack, hard_rack, load))
    notes: list[str] = []
    linear = linear_tables(snapshot, counted, resources, shares, eligible, notes)
    by_topic, held = topic_tables(snapshot, counted, eligible, sets)
    groups = _groups(counted)
    weight = np.array([0.0 if g.hard else g.weight for g in counted])
    topic_bound = np.array([g.width[0] if isinstance(g, TopicGoal) else 0.0 for g in counted])
    topic_gap = np.array([g.width[1] if isinstance(g, TopicGoal) else 0.0 for g in counted], np.float64)
    cost = cost_of_moves(columns.size, options.move_cost)
    problem = Problem(
        broker=np.stack(
            [snapshot.broker_states, rack, np.zeros_like(rack) if sets is None else sets.broker], axis=1
        ).astype(np.int64),
        partition=columns.partition,
        topic=columns.topic,
        size=columns.size,
        cost=cost,
        typical=np.array([cost.mean() if len(cost) else 1.0, float(cost[0] - columns.size[0]) if len(cost) else 1.0]),
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
                weight, linear.min_load, with_topics(linear.strength, held, eligible), linear.spread, topic_bound,
                topic_gap,
            ],
            axis=1,
        ),
        table=linear.table,
        **by_topic,
        topic_first=columns.topic_first,
        topic_counted=counted_topics(columns.topic_first, snapshot.broker_count * len(by_topic["topic_goal"])),
        topic_set=np.full(len(snapshot.topics), ANYWHERE) if sets is None else sets.topic,
        setting=np.array(
            [
                int(groups.max()) + 1 if len(groups) else 1, _rack_goal(counted), 0, sets is not None,
                resources.index("replicas") if "replicas" in resources else -1,
            ],
            dtype=np.int64,
        ),
    )
    return Compiled(
        problem=problem,
        goals=tuple(counted),
        columns=columns.resources,
        skipped=tuple(skipped),
        notes=tuple(notes),
        means={
            g: float(shares.totals[resources.index(goal.resource)]) / int(eligible.sum()) if eligible.any() else None
            for g, goal in enumerate(counted)
            if isinstance(goal, UsageDistribution)
        },
        replicas=columns.replicas,
        lead=columns.lead,
        home=columns.replicas,
        home_lead=columns.lead,
        leading=columns.laid.leading,
        roles=columns.laid.roles,
        sets=sets,
        caution=caution_of(snapshot, counted, columns.partition[:, MOVABLE], options.resting),
    )


def rules_of(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> Rules:
    """What a problem's columns are made by, beside partitions."""
    frozen = matching_topics(snapshot.topics, goals.constraints.freeze_topics)
    sets, movable = sets_of(snapshot, goals.constraints), movable_topics(snapshot, goals.constraints, options)
    return Rules(movable if sets is None else movable & ~sets.astray, ~frozen, racks_by_topic(snapshot, sets))


def counted_racks(snapshot: Snapshot, constraints: Constraints) -> np.ndarray:
    """`racks_by_topic` under the sets of the constraints."""
    return racks_by_topic(snapshot, sets_of(snapshot, constraints))


def racks_by_topic(snapshot: Snapshot, sets: Sets | None) -> np.ndarray:
    """int64 [T], or [1] where it is the same for all: how many racks have an active or an excluded broker that is of the topic's set: a
    rack that is only out of reach still counts."""
    within, racks = np.isin(snapshot.broker_states, (BrokerState.ACTIVE, BrokerState.EXCLUDED)), _dense_racks(snapshot)
    every = len(np.unique(racks[within]))
    if sets is None:
        return np.array([every])
    of_set = [len(np.unique(racks[within & (sets.broker == number)])) for number in range(len(sets.names))]
    return np.asarray(np.array([*of_set, every])[sets.topic])


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


def _kind(goal: Goal) -> int:
    match goal:
        case UsageDistribution():
            return DISTRIBUTION
        case Limit():
            return LIMIT
        case RackAware():
            return RACK
        case TopicGoal():
            return TOPIC


def _column_of(goals: list[Goal], columns: list[str]) -> list[int]:
    result, topic_row = [], 0
    for goal in goals:
        if isinstance(goal, Limit | UsageDistribution):
            result.append(columns.index(goal.resource))
        elif isinstance(goal, TopicGoal):
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
