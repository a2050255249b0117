"""Why topics would stay misplaced on a broker: the proof, where something forces it.

Called by `why` for goals of kind `topic_distribution`. It looks at one topic of the broker after the other and tells the first
proof that it finds.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.score import TOLERANCE
from optimizer.placement.state import RACKS, State
from optimizer.problem import (
    ANY_NUMBER,
    ANYWHERE,
    COUNTS_LEADERS,
    HARD_RACK,
    LEVELS,
    MOVABLE,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    RF,
    SET_OF,
    STATE,
    TOPIC_BOUND,
    TOPIC_GAP,
    TOPIC_ROW,
    Compiled,
    Problem,
)

MOST_TOPICS = 20  # of a broker that are looked at


def topic_proof(snapshot: Snapshot, compiled: Compiled, end: State, row: int, g: int) -> str | None:
    """What forces a misplaced topic of goal `g` on broker `row`; None where nothing is known to."""
    problem = compiled.problem
    k = int(np.flatnonzero(problem.topic_goal[:, TOPIC_ROW] == g)[0])
    mine = _held_by(problem, end, k, row)
    held = np.bincount(problem.topic[mine], minlength=len(snapshot.topics))
    low, high = _band(compiled, k, np.arange(len(held)), row)
    for t in np.flatnonzero((held > high) | (held < low))[:MOST_TOPICS].tolist():
        text = _proof(snapshot, compiled, end, row, k, t, bool(held[t] > high[t]))
        if text is not None:
            return text
    return None


def _held_by(problem: Problem, end: State, k: int, row: int) -> np.ndarray:
    """int64 partitions that broker `row` holds, or leads where leaders are counted."""
    slots = end.replicas.shape[1]
    entries = end.hosted[row, : end.hosts[row]]
    partitions: np.ndarray = entries // slots
    if problem.topic_goal[k, COUNTS_LEADERS]:
        partitions = partitions[end.lead[partitions] == entries % slots]
    return partitions


def _band(compiled: Compiled, k: int, topics: np.ndarray | int, rows: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """Fewest and most of the topics with which the brokers score 1; in the order of operations of the scores."""
    problem = compiled.problem
    own, here = problem.topic_set[topics], problem.broker[rows, SET_OF]
    among = np.where(own == ANYWHERE, problem.topic_share.shape[1] - 1, len(problem.broker) + own)
    level = problem.topic_total[k, topics] * problem.topic_share[k, rows] / problem.topic_share[k, among]
    level = np.where((own == ANYWHERE) | (own == here), level, 0.0)
    bound, gap = problem.force[problem.topic_goal[k, TOPIC_ROW], [TOPIC_BOUND, TOPIC_GAP]]
    up, down = 1.0 + TOLERANCE, 1.0 - TOLERANCE
    low = np.minimum(np.floor(level * (1.0 - bound) * up), np.floor(level * up) - gap)
    high = np.maximum(np.ceil(level * (1.0 + bound) * down), np.ceil(level * down) + gap)
    return np.maximum(low, 0.0), high if problem.topic_goal[k, LEVELS] else np.full_like(high, ANY_NUMBER)


def _proof(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, k: int, t: int, over: bool
) -> str | None:
    problem = compiled.problem
    leaders = bool(problem.topic_goal[k, COUNTS_LEADERS])
    what = "leaders" if leaders else "replicas"
    topic = snapshot.topics[t]
    low, high = (int(x) for x in _band(compiled, k, t, row))
    partitions = np.arange(problem.topic_first[t], problem.topic_first[t + 1])
    fixed = problem.partition[partitions, MOVABLE] == 0
    here = np.isin(partitions, _held_by(problem, end, k, row))
    if over and (fixed & here).sum() > high:
        return f"excluded topic {topic} has {int((fixed & here).sum())} {what} on it, at most {high} are in its target range; include it"
    reach = int((~fixed | here).sum())
    if not over and reach < low:
        if (fixed & ~here).any():
            return f"excluded topic {topic} leaves it {reach} {what}, its target range starts at {low}; include it"
        return (
            f"of topic {topic} it can hold at most one replica of each of {reach} partitions, its target range starts at {low}; "
            "a wider bound or other capacities would help"
        )
    eligible = np.flatnonzero(problem.broker[:, STATE] == BrokerState.ACTIVE)
    lows = float(_band(compiled, k, t, eligible)[0].sum())
    most = len(partitions) if leaders else int(problem.partition[partitions, RF].sum())
    if not over and most < lows:
        return f"topic {topic} has {most} {what} and its brokers need {int(lows)} together; more partitions, or a lower minimum, would help"
    if leaders:
        return None
    hosts = end.replicas[partitions]
    frozen = (hosts >= 0) & (problem.broker[np.maximum(hosts, 0), STATE] == BrokerState.EXCLUDED)
    needed = (hosts >= 0).sum(axis=1) - frozen.sum(axis=1)  # replicas of each partition that active brokers have to hold
    highs = np.minimum(_band(compiled, k, t, eligible)[1], len(partitions))
    if over and needed.sum() > highs.sum():
        return (
            f"topic {topic} has {int(needed.sum())} replicas and all brokers' target ranges together hold {int(highs.sum())}, with one "
            "replica of a partition on a broker; a wider bound or more brokers would help"
        )
    return _rack_share(snapshot, compiled, end, row, k, t, over, partitions, needed, eligible)


def _rack_share(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, k: int, t: int, over: bool,
    partitions: np.ndarray, needed: np.ndarray, eligible: np.ndarray,
) -> str | None:  # fmt: skip
    """Whether the hard rack rule forces the share of the broker's rack out of its brokers' bands."""
    problem = compiled.problem
    excluded = (problem.broker[:, STATE] == BrokerState.EXCLUDED).any()
    if problem.setting[RACK_GOAL] != HARD_RACK or end.units[RACKS].any() or excluded:
        return None  # replicas on excluded brokers are part of each share, and stay
    racks = problem.broker[eligible, RACK_OF]
    sizes = np.bincount(racks, minlength=int(problem.broker[:, RACK_OF].max()) + 1)
    rack = int(problem.broker[row, RACK_OF])
    room = np.minimum(problem.partition[partitions, RACK_LIMIT][:, None], sizes[None, :])
    mine = room[:, rack]
    elsewhere = room.sum(axis=1) - mine
    low, high = _band(compiled, k, t, eligible[racks == rack])
    least = int(np.maximum(needed - elsewhere, 0).sum())
    most = int(np.minimum(mine, needed).sum())
    topic, name, count = snapshot.topics[t], snapshot.racks[row] or "its own", int((racks == rack).sum())
    brokers = f"{count} broker{'' if count == 1 else 's'}"
    if over and least > high.sum():
        return (
            f"the rack rule forces {least} replicas of topic {topic} into rack {name}, whose {brokers} may have {int(high.sum())}; "
            "add brokers to that rack"
        )
    if not over and most < low.sum():
        return (
            f"the rack rule lets at most {most} replicas of topic {topic} into rack {name}, whose {brokers} should have "
            f"{int(low.sum())}; even out the racks"
        )
    return None
