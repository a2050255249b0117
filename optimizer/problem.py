"""A planning problem as arrays: what the compiled search reads and never writes.

`compile_problem` turns a snapshot and goals into a `Problem`; the kernels in `optimizer.search` work on it. What has a row for each
partition comes from `optimizer.columns`; here are the tables of goals and brokers, which are small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BrokerState, FloatArray, Snapshot
from goals.model import Capacity, CountLimit, Goal, GoalSet, RackAware, TopicDistribution, UsageDistribution
from optimizer.caution import Caution, caution_of
from optimizer.columns import (
    FOLLOWING as FOLLOWING,
)  # fmt: skip
from optimizer.columns import (
    LEADING as LEADING,
)
from optimizer.columns import (
    MOVABLE as MOVABLE,
)
from optimizer.columns import (
    RACK_LIMIT as RACK_LIMIT,
)
from optimizer.columns import (
    RF as RF,
)
from optimizer.columns import (
    SIZE as SIZE,
)
from optimizer.columns import (
    THRIFT as THRIFT,
)
from optimizer.columns import (
    TOPIC_OF as TOPIC_OF,
)
from optimizer.columns import (
    Columns,
    Rules,
    led_partitions,
    make_columns,
)
from optimizer.options import PlanOptions
from optimizer.plan import Skipped
from optimizer.whatif import movable_topics

DISTRIBUTION, LIMIT, RACK, TOPIC = 0, 1, 2, 3  # kinds of goals
NO_RACK_GOAL, SOFT_RACK, HARD_RACK = 0, 1, 2

HINGE = 0.99  # the potential starts to rise a little inside the band
CENTERING = 3.0  # weight of the sum of squares that prefers the middle of the band
STEEP = 30.0  # of the fourth power beside the square beyond the hinge, so that the worst broker counts most
LEAST_MEASURE = 0.01  # of the average load of a broker: what a smaller mean or limit counts as, in the potential
HARD_WEIGHT = 1e3  # a hard limit or band in the potential, against a soft one
UNIT_WEIGHT = 1e-3  # one replica too many in a rack, against a squared deviation
MISPLACED = 2.0  # potential of a broker whose every replica is misplaced by topic: worth going off the middle of a band, not beyond
MOST_SCANNED = 16  # partitions of a topic that are looked through for what a broker holds; larger topics are counted in a table
MOST_COUNTED = 16_000_000  # entries of that table, at most; beyond, the largest topics have it
COUNTABLE = 65_535  # partitions of a topic, what an entry can hold


# Columns of the tables of a `Problem`, those of `optimizer.columns` aside. Few wide tables keep calls between kernels, and compiling
# them, cheap.
STATE, RACK_OF = 0, 1  # broker
KIND, COLUMN, HARD, GROUP, ABSOLUTE = 0, 1, 2, 3, 4  # goal
WEIGHT, MIN_LOAD, STRENGTH, SPREAD, TOPIC_BOUND, TOPIC_GAP = 0, 1, 2, 3, 4, 5  # force
MEAN, BOUND, VAR, CEILING, HIGH, LOW, SCALE = 0, 1, 2, 3, 4, 5, 6  # table
TOPIC_ROW, COUNTS_LEADERS = 0, 1  # topic_goal
GROUPS, RACK_GOAL, SAME_RACK = 0, 1, 2  # setting


class Problem(NamedTuple):
    """B brokers, P partitions, R replicas at most, C columns of load, G goals, K topic goals, T topics.

    All arrays C-contiguous int64 or float64. Loads in the resource's unit, on the exact grid.
    """

    broker: np.ndarray  # int64 [B, 2]: state, dense rack (a broker without a rack has its own)
    partition: np.ndarray  # int64 [P, 4]: movable, replication factor, replicas allowed in one rack, topic
    haul: (
        np.ndarray
    )  # float64 [P, 2]: bytes a new replica copies, factor on the gain of a move (less for large partitions)
    vector: np.ndarray  # float64 [P, 2, C]: what a leader and a follower cost
    compact: np.ndarray  # float32 [P, 2, C + 1 and padding]: the same in one cache line; C: thrift, 0 if it may not move
    goal: (
        np.ndarray
    )  # int64 [G, 5]: kind, column (row in topic tables for a topic goal), hard, group, absolute tail
    force: (
        np.ndarray
    )  # float64 [G, 6]: weight (0 if hard), min load, strength and spread in the potential, topic bound and gap
    table: (
        np.ndarray
    )  # float64 [B, G, 7]: mean, bound, var, ceiling (inf: none); potential's high, low, scale (0: none)
    topic_goal: np.ndarray  # int64 [K, 2]: goal row, whether leaders are counted
    topic_total: np.ndarray  # float64 [K, T], replicas or leaders that eligible brokers share
    topic_share: np.ndarray  # float64 [K, B + 1], each broker's part of it (1, or its capacity); last: all parts
    topic_first: np.ndarray  # int64 [T + 1], first partition of each topic
    topic_counted: np.ndarray  # int64 [T], column of the topic in the table of counts, -1 where it is not counted
    setting: np.ndarray  # int64 [3]: goal groups, rack goal, whether a replica can never leave its rack


@dataclass(frozen=True)
class Compiled:
    """A `Problem` with the names that belong to its rows."""

    problem: Problem
    goals: tuple[Goal, ...]  # the goals that count, by row
    columns: tuple[str, ...]  # resource of each column
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    means: dict[int, float | None]  # row of a usage distribution goal -> total over eligible brokers
    replicas: np.ndarray  # int64 [P, R], start
    lead: np.ndarray  # int64 [P], slot of the leader, -1 none
    leading: FloatArray  # [C], what a leader of every partition would cost
    roles: np.ndarray  # int64 [C], partitions whose leader costs another amount than a follower
    caution: Caution | None = None  # what is left alone because its numbers cannot be trusted


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
    linear = _linear_tables(snapshot, counted, resources, totals, per_rack, rack, eligible, notes)
    topic_tables = _topic_tables(snapshot, counted, eligible)
    groups = _groups(counted)
    weight = np.array([0.0 if g.hard else g.weight for g in counted])
    topic_bound = np.array([g.bound if isinstance(g, TopicDistribution) else 0.0 for g in counted])
    topic_gap = np.array([g.min_gap if isinstance(g, TopicDistribution) else 0.0 for g in counted], np.float64)
    # Keys of the arrays' own type: with any other, searchsorted copies the whole array first.
    topics = np.arange(len(snapshot.topics) + 1, dtype=snapshot.partition_topic.dtype)
    topic_first = np.searchsorted(snapshot.partition_topic, topics).astype(np.int64)
    problem = Problem(
        broker=np.stack([snapshot.broker_states, rack], axis=1).astype(np.int64),
        partition=columns.partition,
        haul=columns.haul,
        vector=columns.vector,
        compact=columns.compact,
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
                weight, linear.min_load, _with_topics(linear.strength, topic_tables, eligible), linear.spread, topic_bound,
                topic_gap,
            ],
            axis=1,
        ),
        table=linear.table,
        **topic_tables,
        topic_first=topic_first,
        topic_counted=_counted_topics(topic_first, snapshot.broker_count * len(topic_tables["topic_goal"])),
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
        leading=columns.laid.leading,
        roles=columns.laid.roles,
        caution=caution_of(snapshot, counted, columns.partition[:, MOVABLE] == 1),
    )


def rules_of(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> Rules:
    """What a problem's columns are made by, beside partitions."""
    return Rules(movable_topics(snapshot, goals.constraints, options), eligible_racks(snapshot))


def eligible_racks(snapshot: Snapshot) -> int:
    """How many racks have eligible brokers."""
    return len(np.unique(_dense_racks(snapshot)[snapshot.broker_states == BrokerState.ACTIVE]))


def counted_goals(snapshot: Snapshot, goals: tuple[Goal, ...]) -> tuple[list[Goal], list[Skipped]]:
    counted: list[Goal] = []
    skipped: list[Skipped] = []
    for goal in goals:
        resource = getattr(goal, "resource", None)
        if resource is not None and not snapshot.is_reported(resource):
            skipped.append(Skipped(f"goal {goal.name}", f"no {resource} load in the snapshot"))
        elif (
            isinstance(goal, Capacity)
            and np.isnan(snapshot.capacity.get(goal.resource, np.full(1, np.nan))).all()
        ):
            skipped.append(Skipped(f"goal {goal.name}", f"no broker has a capacity for {goal.resource}"))
        else:
            counted.append(goal)
    return counted, skipped


def resources_of(goals: list[Goal]) -> tuple[str, ...]:
    """Resource of each column of load that goals need."""
    used = (g.resource for g in goals if isinstance(g, Capacity | CountLimit | UsageDistribution))
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
        and bool((columns.partition[:, RF] == len(racks_eligible)).all())
    )  # fmt: skip
    if forced:
        for c in range(len(columns.resources)):
            leading, following = columns.vector[:, LEADING, c], columns.vector[:, FOLLOWING, c]
            if np.array_equal(leading, following):
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


class Linear(NamedTuple):
    """What goals on loads contribute: the columns of `Problem.table`, `goal` and `force` that are theirs."""

    table: np.ndarray
    absolute: np.ndarray
    min_load: np.ndarray
    strength: np.ndarray
    spread: np.ndarray


def _linear_tables(
    snapshot: Snapshot, goals: list[Goal], columns: list[str], totals: FloatArray, per_rack: dict[int, FloatArray],
    rack: np.ndarray, eligible: np.ndarray, notes: list[str],
) -> Linear:  # fmt: skip
    table = np.zeros((snapshot.broker_count, len(goals), 7))
    table[:, :, VAR] = 1.0
    table[:, :, CEILING] = table[:, :, HIGH] = np.inf
    table[:, :, LOW] = -np.inf
    absolute = np.zeros(len(goals), np.int64)
    min_load, strength, spread = np.zeros(len(goals)), np.zeros(len(goals)), np.zeros(len(goals))
    for g, goal in enumerate(goals):
        strength[g] = HARD_WEIGHT if goal.hard else goal.weight
        if isinstance(goal, UsageDistribution):
            c = columns.index(goal.resource)
            level = broker_means(snapshot, goal.resource, totals[c], per_rack.get(c), rack, eligible)
            bound = goal.bound * level
            table[:, g, MEAN] = level
            table[:, g, BOUND] = bound
            table[:, g, VAR] = goal.var * level if goal.var_is_share else bound + goal.var
            absolute[g] = goal.tail == "absolute"
            min_load[g] = goal.min_load
            spread[g] = CENTERING * strength[g]
            live = eligible & (level > 0)
            table[live, g, SCALE] = 1.0 / np.maximum(level[live], LEAST_MEASURE * level.sum() / max(int(eligible.sum()), 1))
            table[live, g, HIGH] = level[live] + HINGE * bound[live]
            table[live, g, LOW] = level[live] - HINGE * bound[live]
            small = live & (level < goal.min_load)
            table[small, g, HIGH] = np.maximum(table[small, g, HIGH], goal.min_load * (1 - 1e-9))
            table[small, g, LOW] = -np.inf
        elif isinstance(goal, Capacity | CountLimit):
            limit = _ceilings(snapshot, goal, notes)
            table[:, g, CEILING] = table[:, g, HIGH] = limit
            counts = np.isfinite(limit) & eligible
            typical = float(totals[columns.index(goal.resource)]) / max(int(eligible.sum()), 1)
            least = max(LEAST_MEASURE * typical, 1e-9 if isinstance(goal, Capacity) else 1.0)
            table[counts, g, SCALE] = 1.0 / np.maximum(limit[counts], least)
    return Linear(table, absolute, min_load, strength, spread)


def broker_means(
    snapshot: Snapshot,
    resource: str,
    total: float,
    per_rack: FloatArray | None,
    rack: np.ndarray,
    eligible: np.ndarray,
) -> FloatArray:
    """float64 [B]: the mean each broker is measured against, 0 where it is not eligible."""
    means = np.zeros(snapshot.broker_count)
    for r in np.unique(rack[eligible]) if per_rack is not None else [-1]:
        members = eligible & (rack == r) if per_rack is not None else eligible
        share = float(per_rack[r]) if per_rack is not None else float(total)
        count = int(members.sum())
        if not count:
            continue
        capacity = snapshot.capacity.get(resource, np.full(snapshot.broker_count, np.nan))
        given = capacity[eligible]
        if np.isnan(given).any() or (given == given[0]).all() or capacity[members].sum() <= 0:
            means[members] = share / count
        else:
            means[members] = share * capacity[members] / capacity[members].sum()
    return np.maximum(means, 0.0)


def _ceilings(snapshot: Snapshot, goal: Capacity | CountLimit, notes: list[str]) -> FloatArray:
    if isinstance(goal, CountLimit):
        return np.full(snapshot.broker_count, float(goal.max))
    capacity = snapshot.capacity[goal.resource]
    without = snapshot.broker_ids[np.isnan(capacity)]
    if len(without):
        some = ", ".join(str(b) for b in without[:10]) + (" …" if len(without) > 10 else "")
        notes.append(f"goal {goal.name}: left out are brokers without a {goal.resource} capacity: {some}")
    return np.where(np.isnan(capacity), np.inf, goal.limit * capacity)


def _topic_tables(snapshot: Snapshot, goals: list[Goal], eligible: np.ndarray) -> dict[str, np.ndarray]:
    rows = [(g, goal) for g, goal in enumerate(goals) if isinstance(goal, TopicDistribution)]
    topics, brokers = len(snapshot.topics), snapshot.broker_count
    total = np.zeros((len(rows), topics))
    share = np.zeros((len(rows), brokers))
    whole = np.ones(len(rows))
    for k, (_, goal) in enumerate(rows):
        count = _topic_counts(snapshot, goal.resource)
        alive = max(int(eligible.sum()), 1)
        total[k] = count
        whole[k] = alive
        capacity = snapshot.capacity.get(goal.resource, np.full(brokers, np.nan))
        given = capacity[eligible]
        share[k, eligible] = 1.0
        if len(given) and not np.isnan(given).any() and not (given == given[0]).all() and given.sum() > 0:
            share[k, eligible] = given
            whole[k] = given.sum()
    return {
        "topic_goal": np.array([[g, goal.resource == "leaders"] for g, goal in rows], dtype=np.int64).reshape(
            -1, 2
        ),
        "topic_total": total,
        "topic_share": np.concatenate([share, whole[:, None]], axis=1),
    }


def topics_alike(one: Problem, other: Problem) -> bool:
    """Whether replicas that are misplaced by topic in one problem are so in the other, and as many; there are the same goals in both."""
    return not len(one.topic_goal) or (
        np.array_equal(one.broker[:, STATE], other.broker[:, STATE])
        and np.array_equal(one.topic_total, other.topic_total)
        and np.array_equal(one.topic_share, other.topic_share)
    )


def _with_topics(strength: FloatArray, tables: dict[str, np.ndarray], eligible: np.ndarray) -> FloatArray:
    """`strength` of the goals in the potential, that of topic goals for each misplaced replica (or leader) of a typical broker's."""
    result = strength.copy()
    for (g, _), total in zip(tables["topic_goal"].tolist(), tables["topic_total"], strict=True):
        typical = total.sum() / max(int(eligible.sum()), 1)
        result[g] *= MISPLACED / max(typical, 1.0)
    return result


def _counted_topics(first: np.ndarray, rows: int) -> np.ndarray:
    """int64 [T]: columns of the topics that are counted in a table of `rows` rows, -1 for the others."""
    size = np.diff(first)
    most = MOST_COUNTED // max(rows, 1) if rows else 0
    largest = np.argsort(-size, kind="stable")[:most]
    chosen = np.sort(largest[(size[largest] > MOST_SCANNED) & (size[largest] <= COUNTABLE)])
    columns = np.full(len(size), -1, np.int64)
    columns[chosen] = np.arange(len(chosen))
    return columns


def _topic_counts(snapshot: Snapshot, resource: str) -> FloatArray:
    """float64 [T]: replicas or leaders of each topic that eligible brokers share (excluded brokers' are not)."""
    excluded = snapshot.broker_states == BrokerState.EXCLUDED
    topics = len(snapshot.topics)
    hosts = snapshot.replicas
    frozen = (hosts >= 0) & excluded[np.maximum(hosts, 0)]
    if resource == "replicas":
        each = snapshot.replication_factor - frozen.sum(axis=1)
    else:
        led_by_excluded = (snapshot.leader >= 0) & excluded[np.maximum(snapshot.leader, 0)]
        each = led_partitions(snapshot).astype(np.int64) - led_by_excluded
    return np.asarray(np.bincount(snapshot.partition_topic, weights=each, minlength=topics), np.float64)


def _kind(goal: Goal) -> int:
    match goal:
        case UsageDistribution():
            return DISTRIBUTION
        case Capacity() | CountLimit():
            return LIMIT
        case RackAware():
            return RACK
        case TopicDistribution():
            return TOPIC


def _column_of(goals: list[Goal], columns: list[str]) -> list[int]:
    result, topic_row = [], 0
    for goal in goals:
        if isinstance(goal, Capacity | CountLimit | UsageDistribution):
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
