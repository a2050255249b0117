"""A planning problem as arrays: what the compiled search reads and never writes.

`compile_problem` turns a snapshot and goals into a `Problem`; the kernels in `optimizer.search` work on it. Loads are put on a
grid on which float64 addition is exact (every sum stays below 2**53 grid steps), so that the load of a broker does not depend on
the order in which replicas came and went, and undoing a change restores it bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BrokerState, FloatArray, Snapshot
from goals.model import Capacity, CountLimit, Goal, GoalSet, RackAware, TopicDistribution, UsageDistribution
from optimizer.caution import Caution, caution_of
from optimizer.options import PlanOptions
from optimizer.plan import Skipped
from optimizer.whatif import movable_topics

DISTRIBUTION, LIMIT, RACK, TOPIC = 0, 1, 2, 3  # kinds of goals
NO_RACK_GOAL, SOFT_RACK, HARD_RACK = 0, 1, 2

HINGE = 0.99  # the potential starts to rise a little inside the band
CENTERING = 3.0  # weight of the sum of squares that prefers the middle of the band
STEEP = 30.0  # of the fourth power beside the square beyond the hinge, so that the worst broker counts most
LINE = 64  # bytes of a cache line
LEAST_MEASURE = 0.01  # of the average load of a broker: what a smaller mean or limit counts as, in the potential
HARD_WEIGHT = 1e3  # a hard limit or band in the potential, against a soft one
UNIT_WEIGHT = 1e-3  # one misplaced replica of a topic or rack, against a squared deviation


# Columns of the tables of a `Problem`. Few wide tables keep calls between kernels, and compiling them, cheap.
STATE, RACK_OF = 0, 1  # broker
MOVABLE, RF, RACK_LIMIT, TOPIC_OF = 0, 1, 2, 3  # partition
SIZE, THRIFT = 0, 1  # haul
LEADING, FOLLOWING = 0, 1  # vector
KIND, COLUMN, HARD, GROUP, ABSOLUTE = 0, 1, 2, 3, 4  # goal
WEIGHT, MIN_LOAD, STRENGTH, SPREAD, TOPIC_BOUND = 0, 1, 2, 3, 4  # force
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
    )  # float64 [G, 5]: weight (0 if hard), min load, strength and spread in the potential, topic bound
    table: (
        np.ndarray
    )  # float64 [B, G, 7]: mean, bound, var, ceiling (inf: none); potential's high, low, scale (0: none)
    topic_goal: np.ndarray  # int64 [K, 2]: goal row, whether leaders are counted
    topic_total: np.ndarray  # float64 [K, T], replicas or leaders that eligible brokers share
    topic_share: np.ndarray  # float64 [K, B + 1], each broker's part of it (1, or its capacity); last: all parts
    topic_first: np.ndarray  # int64 [T + 1], first partition of each topic
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
    caution: Caution | None = None  # what is left alone because its numbers cannot be trusted


def compile_problem(snapshot: Snapshot, goals: GoalSet, options: PlanOptions) -> Compiled:
    """Arrays of `snapshot` (what-ifs already applied) under `goals`."""
    counted, skipped = _counted_goals(snapshot, goals.goals)
    columns = _columns(counted)
    leading, following = _vectors(snapshot, columns)
    eligible = snapshot.broker_states == BrokerState.ACTIVE
    rack = _dense_racks(snapshot)
    racks_eligible = len(np.unique(rack[eligible]))
    hard_rack = any(isinstance(g, RackAware) and g.hard for g in counted)
    totals, per_rack = _totals(snapshot, columns, leading, following, rack, eligible, hard_rack)
    notes: list[str] = []
    linear = _linear_tables(snapshot, counted, columns, totals, per_rack, rack, eligible, notes)
    topic_tables = _topic_tables(snapshot, counted, eligible)
    rf = snapshot.replication_factor
    topics_movable = movable_topics(snapshot, goals.constraints, options)
    movable = topics_movable[snapshot.partition_topic] & ~offline_partitions(snapshot)
    size = snapshot.vectors("disk")[0] if snapshot.storage == "local" else np.zeros(snapshot.partition_count)
    # What is copied follows `leader_load.disk` as given; the grid only carries broker sums.
    typical = size.mean() if len(size) and size.sum() > 0 else 1.0
    thrift = 1.0 / np.sqrt(0.1 + 0.9 * size / typical)
    groups = _groups(counted)
    rack_limit = -(-rf // max(racks_eligible, 1))
    weight = np.array([0.0 if g.hard else g.weight for g in counted])
    topic_bound = np.array([g.bound if isinstance(g, TopicDistribution) else 0.0 for g in counted])
    problem = Problem(
        broker=np.stack([snapshot.broker_states, rack], axis=1).astype(np.int64),
        partition=np.stack([movable, rf, rack_limit, snapshot.partition_topic], axis=1).astype(np.int64),
        haul=np.stack([size, thrift], axis=1),
        vector=np.stack([leading, following], axis=1),
        compact=compact_vectors(leading, following, np.where(movable, thrift, 0.0)),
        goal=np.stack(
            [
                np.array([_kind(g) for g in counted], dtype=np.int64),
                np.array(_column_of(counted, columns), dtype=np.int64),
                np.array([g.hard for g in counted], dtype=np.int64),
                groups,
                linear.absolute,
            ],
            axis=1,
        ),
        force=np.stack([weight, linear.min_load, linear.strength, linear.spread, topic_bound], axis=1),
        table=linear.table,
        **topic_tables,
        topic_first=np.searchsorted(snapshot.partition_topic, np.arange(len(snapshot.topics) + 1)).astype(
            np.int64
        ),
        setting=np.array(
            [int(groups.max()) + 1 if len(groups) else 1, _rack_goal(counted), 0], dtype=np.int64
        ),
    )
    slots = snapshot.replicas == snapshot.leader[:, None]
    lead = (
        np.where((snapshot.leader >= 0) & slots.any(axis=1), slots.argmax(axis=1), -1)
        if len(rf)
        else np.zeros(0)
    )
    problem.setting[SAME_RACK] = same_rack_only(problem, snapshot.replicas)
    return Compiled(
        problem=problem,
        goals=tuple(counted),
        columns=tuple(columns),
        skipped=tuple(skipped),
        notes=tuple(notes),
        means={
            g: float(totals[columns.index(goal.resource)]) / int(eligible.sum()) if eligible.any() else None
            for g, goal in enumerate(counted)
            if isinstance(goal, UsageDistribution)
        },
        replicas=np.array(snapshot.replicas, dtype=np.int64, order="C"),
        lead=lead.astype(np.int64),
        caution=caution_of(snapshot, counted, movable),
    )


def exact_grid(values: FloatArray, bound_on_sums: float) -> FloatArray:
    """`values` rounded to multiples of a power of two so that any sum up to `bound_on_sums` is exact in float64."""
    if bound_on_sums <= 0.0:
        return values
    step = math.ldexp(1.0, math.frexp(bound_on_sums)[1] - 52)
    if step <= 0.0:
        return values
    return np.rint(values / step) * step


def _counted_goals(snapshot: Snapshot, goals: tuple[Goal, ...]) -> tuple[list[Goal], list[Skipped]]:
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


def _columns(goals: list[Goal]) -> list[str]:
    columns: list[str] = []
    for goal in goals:
        if isinstance(goal, Capacity | CountLimit | UsageDistribution) and goal.resource not in columns:
            columns.append(goal.resource)
    return columns


def _vectors(snapshot: Snapshot, columns: list[str]) -> tuple[FloatArray, FloatArray]:
    count = snapshot.partition_count
    leading = np.zeros((count, max(len(columns), 1)))
    following = np.zeros_like(leading)
    rf = snapshot.replication_factor
    for i, resource in enumerate(columns):
        lead, follow = snapshot.vectors(resource)
        most = float((np.maximum(lead, follow) * rf).sum()) * 1.001
        leading[:, i] = exact_grid(lead, most)
        following[:, i] = exact_grid(follow, most)
    return leading, following


def compact_vectors(leading: FloatArray, following: FloatArray, thrift: FloatArray) -> np.ndarray:
    """float32 [P, 2, W]: vectors and thrift of a partition in as few cache lines as they fit, on their boundary."""
    count, columns = leading.shape
    width = -(-(columns + 1) // 8) * 8
    room = np.zeros(count * 2 * width + LINE // 4, np.float32)
    start = -(room.ctypes.data % LINE) % LINE // 4
    compact = room[start : start + count * 2 * width].reshape(count, 2, width)
    compact[:, LEADING, :columns] = leading
    compact[:, FOLLOWING, :columns] = following
    compact[:, :, columns] = thrift[:, None]
    return compact


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


def same_rack_only(problem: Problem, replicas: np.ndarray) -> int:
    """1 where every rack holds exactly its share of every partition, so that a replica can never leave its rack."""
    state, rack = problem.broker[:, STATE], problem.broker[:, RACK_OF]
    racks = len(np.unique(rack[state == BrokerState.ACTIVE]))
    if problem.setting[RACK_GOAL] != HARD_RACK or not racks or (problem.partition[:, RF] != racks).any():
        return 0
    hosts = np.where(replicas >= 0, rack[np.maximum(replicas, 0)], -1 - np.arange(replicas.shape[1]))
    ordered = np.sort(hosts, axis=1)
    return int(not (ordered[:, 1:] == ordered[:, :-1]).any())


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


def offline_partitions(snapshot: Snapshot) -> np.ndarray:
    """bool [P]: partitions whose every replica is on a dead broker; they have nothing to copy from and stay."""
    alive = np.append(snapshot.broker_states != BrokerState.DEAD, False)[snapshot.replicas]
    found: np.ndarray = np.logical_not(alive.any(axis=1))
    return found


def _led(snapshot: Snapshot) -> np.ndarray:
    """bool [P]: partitions that count a leader vector: they have a leader, or a replica that may become one."""
    states = snapshot.broker_states
    usable = (states == BrokerState.ACTIVE) | (states == BrokerState.DRAINING)
    hosts = snapshot.replicas
    led: np.ndarray = (snapshot.leader >= 0) | ((hosts >= 0) & usable[np.maximum(hosts, 0)]).any(axis=1)
    return led


def _totals(
    snapshot: Snapshot, columns: list[str], leading: FloatArray, following: FloatArray,
    rack: np.ndarray, eligible: np.ndarray, hard_rack: bool,
) -> tuple[FloatArray, dict[int, FloatArray]]:  # fmt: skip
    """float64 [C] totals that eligible brokers share; and, for columns whose mean is taken per rack, float64 [racks]."""
    rf = snapshot.replication_factor[:, None]
    led = _led(snapshot)[:, None] if snapshot.partition_count else np.zeros((0, 1), np.bool_)
    totals = np.where(led, leading + (rf - 1) * following, rf * following).sum(axis=0)
    excluded = snapshot.broker_states == BrokerState.EXCLUDED
    held = np.zeros((snapshot.broker_count, len(totals)))
    if excluded.any():
        slots = snapshot.replicas == snapshot.leader[:, None]
        lead = np.where((snapshot.leader >= 0) & slots.any(axis=1), slots.argmax(axis=1), -1)
        held = loads_by_broker(snapshot.replicas, lead, leading, following, snapshot.broker_count)
        totals = totals - held[excluded].sum(axis=0)
    per_rack: dict[int, FloatArray] = {}
    racks_eligible = np.unique(rack[eligible])
    forced = (
        hard_rack and snapshot.partition_count and None not in snapshot.racks
        and bool((snapshot.replication_factor == len(racks_eligible)).all())
    )  # fmt: skip
    if forced:
        for c in range(len(columns)):
            if np.array_equal(leading[:, c], following[:, c]):
                shares = np.full(int(rack.max()) + 1, leading[:, c].sum())
                for r in range(len(shares)):
                    shares[r] -= held[excluded & (rack == r), c].sum()
                per_rack[c] = shares
    return totals, per_rack


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
        each = _led(snapshot).astype(np.int64) - led_by_excluded
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
