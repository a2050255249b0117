"""Moves and bytes that over-full racks force beyond what goals on loads do.

Called by `optimizer.bounds` where a rack goal is hard.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState
from optimizer.placement.state import State
from optimizer.problem import MOVABLE, RACK_LIMIT, RACK_OF, STATE, Problem

Array = np.ndarray


def with_racks(problem: Problem, state: State, moves: Array, data: Array) -> tuple[float, float]:
    """Least moves and bytes, given those that must leave each broker (float64 [B]; `moves` whole), when every rack may also hold no more
    than its share.

    Of the replicas that have to leave crowded racks, as many as can be are among those that have to leave their brokers anyway; the
    others come on top. For bytes, whatever set of brokers one takes: what leaves the others is at least their need, and off those of
    the set come the replicas of a crowded rack of which all holders belong to it. The sets are the brokers of least need, of every size.

    Notes
    -----
    O(P R), a sort of the crowded partitions, and a largest flow in them (`most_given`).
    """
    groups = crowded(problem, state)
    if not len(groups):
        return float(moves.sum()), float(data.sum())
    leave, holder = np.ascontiguousarray(groups[:, 1]), np.ascontiguousarray(groups[:, 2:])
    beside = int(leave.sum()) - most_given(leave, holder, moves.astype(np.int64))
    return float(moves.sum() + beside), _most(groups, problem.size[groups[:, 0]], data)


def most_given(leave: Array, holder: Array, need: Array) -> int:
    """The most replicas that can leave crowded racks while no broker gives more than it needs to: a largest flow.

    Of group i `leave` int64 [n] have to go, each from another of the brokers `holder` int64 [n, R] (-1: none); `need` int64 [B].
    """
    from scipy.sparse import csr_array  # here, as it takes 20 MB, and few clusters have crowded racks
    from scipy.sparse.csgraph import maximum_flow

    groups, brokers = len(leave), len(need)
    source, sink = groups + brokers, groups + brokers + 1
    group, slot = np.nonzero(holder >= 0)
    giver = groups + np.arange(brokers)
    rows = np.concatenate([np.full(groups, source), group, giver])
    columns = np.concatenate([np.arange(groups), giver[holder[group, slot]], np.full(brokers, sink)])
    most = np.concatenate([leave, np.ones(len(group), np.int64), need]).astype(np.int32)
    return int(maximum_flow(csr_array((most, (rows, columns)), shape=(sink + 1, sink + 1)), source, sink).flow_value)


def crowded(problem: Problem, state: State) -> Array:
    """int64 [n, R + 2]: partition, how many of its replicas have to leave a rack, and the brokers there that may give one up (else -1)."""
    slots = state.replicas.shape[1]
    rack = np.append(problem.broker[:, RACK_OF], -1)[state.replicas]
    mates = problem.partition[:, RACK_LIMIT] < 1  # of few partitions do any replicas share a rack; the others are left out first
    for s in range(slots):
        for o in range(s):
            mates |= (rack[:, s] == rack[:, o]) & (rack[:, s] >= 0)
    rows = np.flatnonzero(mates & (problem.partition[:, MOVABLE] == 1))
    hosts, rack = state.replicas[rows], rack[rows]
    found = []
    for s in range(slots):
        first = (rack[:, s] >= 0) & (rack[:, :s] != rack[:, s : s + 1]).all(axis=1)
        there = (rack == rack[:, s : s + 1]) & first[:, None]
        over = there.sum(axis=1) - problem.partition[rows, RACK_LIMIT]
        at = np.flatnonzero(first & (over > 0))
        may = there[at] & (problem.broker[hosts[at], STATE] != BrokerState.EXCLUDED)
        leave = np.minimum(over[at], may.sum(axis=1))
        found.append(np.column_stack([rows[at], leave, np.where(may, hosts[at], -1)]))
    return np.concatenate(found) if found else np.zeros((0, slots + 2), np.int64)


def _most(groups: Array, price: Array, need: Array) -> float:
    """The largest of the bounds, where each replica that leaves one of `groups` costs `price` float64 [n]."""
    brokers = len(need)
    rank = np.empty(brokers + 1, np.int64)
    order = np.argsort(need, kind="stable")
    rank[order], rank[-1] = np.arange(brokers), -1
    forced = np.zeros(brokers + 1)
    held = np.sort(rank[groups[:, 2:]], axis=1)  # those that may give none up come first
    for j in range(held.shape[1]):  # the last `leave` holders to come into the set each bring one
        counts = groups[:, 1] >= held.shape[1] - j
        np.add.at(forced, held[counts, j] + 1, price[counts])
    left = np.concatenate([need[order][::-1].cumsum()[::-1], [0.0]])
    return float((left + forced.cumsum()).max())
