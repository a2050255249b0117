"""What each broker should hold of every topic, and which topics are worth a table of counts."""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, FloatArray, Snapshot
from goals.model import Goal, TopicGoal
from optimizer.broker_sets import Sets
from optimizer.columns import led_partitions
from optimizer.problem import MISPLACED, STATE, Problem

MOST_SCANNED = 16  # partitions of a topic that are looked through for what a broker holds; larger topics are counted in a table
MOST_COUNTED = 16_000_000  # entries of that table, at most; beyond, the largest topics have it
COUNTABLE = 65_535  # partitions of a topic, what an entry can hold


def topic_tables(
    snapshot: Snapshot, goals: list[Goal], eligible: np.ndarray, sets: Sets | None
) -> tuple[dict[str, np.ndarray], dict[int, float]]:
    """Columns of a `Problem` that are of topic goals; and by row of the goal, how many replicas or leaders active brokers have to share."""
    rows = [(g, goal) for g, goal in enumerate(goals) if isinstance(goal, TopicGoal)]
    topics, brokers = len(snapshot.topics), snapshot.broker_count
    total = np.zeros((len(rows), topics))
    share = np.zeros((len(rows), brokers))
    # Columns of what brokers share together: of each set, in the last of all.
    among = eligible[None, :] if sets is None else np.vstack([eligible & (sets.broker == n) for n in range(len(sets.names))] + [eligible])
    whole = np.ones((len(rows), len(among)))
    column = np.zeros(topics, np.int64) if sets is None else np.where(sets.astray, len(among) - 1, sets.topic)
    held: dict[int, float] = {}
    for k, (g, goal) in enumerate(rows):
        count = _topic_counts(snapshot, goal.resource)
        whole[k] = np.maximum(among.sum(axis=1), 1)
        capacity = snapshot.capacity.get(goal.resource, np.full(brokers, np.nan))
        given = capacity[eligible]
        share[k, eligible] = 1.0
        if goal.levels and len(given) and not np.isnan(given).any() and not (given == given[0]).all() and given.sum() > 0:
            share[k, eligible] = given
            for i, members in enumerate(among):
                whole[k, i] = capacity[members].sum()
                if not whole[k, i]:  # they share equally
                    share[k, members], whole[k, i] = 1.0, max(int(members.sum()), 1)
        total[k], held[g] = goal.shared(snapshot.topics, count, whole[k, column]), float(count.sum())
    return {
        "topic_goal": np.array([[g, goal.resource == "leaders", goal.levels] for g, goal in rows], dtype=np.int64).reshape(-1, 3),
        "topic_total": total,
        "topic_share": np.concatenate([share, whole], axis=1),
    }, held


def topics_alike(one: Problem, other: Problem) -> bool:
    """Whether replicas that are misplaced by topic in one problem are so in the other, and as many; there are the same goals in both."""
    return not len(one.topic_goal) or (
        np.array_equal(one.broker[:, STATE], other.broker[:, STATE])
        and np.array_equal(one.topic_total, other.topic_total)
        and np.array_equal(one.topic_share, other.topic_share)
    )


def with_topics(strength: FloatArray, held: dict[int, float], eligible: np.ndarray) -> FloatArray:
    """`strength` of the goals in the potential, that of topic goals for each misplaced replica (or leader) of a typical broker's; `held` by
    row of the goal is what brokers have to share."""
    result = strength.copy()
    for g, total in held.items():
        result[g] *= MISPLACED / max(total / max(int(eligible.sum()), 1), 1.0)
    return result


def counted_topics(first: np.ndarray, rows: int) -> np.ndarray:
    """int64 [T]: columns of the topics that are counted in a table of `rows` rows, -1 for the others."""
    if not rows:
        return np.full(len(first) - 1, -1, np.int64)
    size, most = np.diff(first), MOST_COUNTED // rows
    largest = np.argsort(-size, kind="stable")[:most]
    chosen = np.sort(largest[(size[largest] > MOST_SCANNED) & (size[largest] <= COUNTABLE)])
    columns = np.full(len(size), -1, np.int64)
    columns[chosen] = np.arange(len(chosen))
    return columns


def _topic_counts(snapshot: Snapshot, resource: str) -> FloatArray:
    """float64 [T]: replicas or leaders of each topic that eligible brokers share (excluded brokers' are not)."""
    excluded = snapshot.broker_states == BrokerState.EXCLUDED
    topics = len(snapshot.topics)
    hosts, some = snapshot.replicas, excluded.any()
    if resource == "replicas":
        each = snapshot.replication_factor
        if some:
            each = each - ((hosts >= 0) & excluded[np.maximum(hosts, 0)]).sum(axis=1)
    else:
        each = led_partitions(snapshot).astype(np.int64)
        if some:
            each -= (snapshot.leader >= 0) & excluded[np.maximum(snapshot.leader, 0)]
    return np.asarray(np.bincount(snapshot.partition_topic, weights=each, minlength=topics), np.float64)
