"""What stands in the way of a broker for which no proof is known: single moves that would help, and what each would break.

Called by `why` for brokers about which it can prove nothing. It looks at moves only; the search also tried swaps and exchanges.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from optimizer.placement.feasible import legal_moves
from optimizer.placement.state import State
from optimizer.problem import (
    ANYWHERE,
    BOUND,
    CEILING,
    COLUMN,
    DISTRIBUTION,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MOVABLE,
    SET_OF,
    STATE,
    Compiled,
)

MOST_REPLICAS, MOST_BROKERS = 40, 40  # looked at, those that would help most


@dataclass(frozen=True, slots=True)
class Obstacles:
    """Moves looked at; how many of them have no legal place; goal -> how many take the other broker, or this one, out of it."""

    moves: int
    illegal: int
    other: Counter[str]
    own: Counter[str]
    nearest: str | None  # the move that breaks least


def obstacles(snapshot: Snapshot, compiled: Compiled, end: State, row: int, g: int) -> Obstacles | None:
    """What the moves that would bring broker `row` nearer to goal `g` on a load would break; None where there are none to look at.

    Notes
    -----
    At most `MOST_REPLICAS` times `MOST_BROKERS` moves, within the broker set of the broker.
    """
    problem = compiled.problem
    column = int(problem.goal[g, COLUMN])
    over = _is_over(compiled, end, row, g)
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    own_set = problem.broker[:, SET_OF] == problem.broker[row, SET_OF]
    others = np.flatnonzero(eligible & own_set & (np.arange(len(eligible)) != row))
    order = np.argsort(end.load[others, column] * (1.0 if over else -1.0), kind="stable")
    others = others[order][:MOST_BROKERS]
    givers = [row] if over else others.tolist()
    each = max(1, MOST_REPLICAS // len(givers)) if givers else 0
    takers = others.tolist() if over else [row]
    moves = np.array(
        [
            (p, slot, role, taker if over else giver, taker)
            for giver in givers
            for p, slot, role in _largest(compiled, end, giver, column, each)
            for taker in takers
        ],
        dtype=np.int64,
    ).reshape(-1, 5)
    moves = moves[np.isin(problem.topic_set[problem.topic[moves[:, 0]]], (ANYWHERE, problem.broker[row, SET_OF]))]
    if not len(moves):
        return None
    may = np.zeros(len(moves), np.bool_)
    legal_moves(problem, end, moves[:, 0].copy(), moves[:, 1].copy(), moves[:, 4].copy(), may)
    legal = moves[may]
    p, _, role, other, _ = legal.T
    linear = np.flatnonzero(problem.goal[:, KIND] <= LIMIT)
    sign = 1.0 if over else -1.0
    theirs = _broken(compiled, end, linear, other, sign * problem.vector[p, role])
    own = _broken(compiled, end, linear, np.full(len(legal), row), -sign * problem.vector[p, role])
    broken = theirs.sum(axis=1) + own.sum(axis=1)
    nearest: str | None = None
    if broken.any():
        rows = np.flatnonzero(broken)
        best = rows[np.lexsort((-problem.vector[p[rows], role[rows], column], broken[rows]))[0]]
        place = f"{'to' if over else 'from'} broker {snapshot.broker_ids[other[best]]}"
        stops = [f"{compiled.goals[g].name} there" for g in linear[theirs[best]].tolist()]
        stops += [f"{compiled.goals[g].name} here" for g in linear[own[best]].tolist()]
        nearest = f"{snapshot.partition_name(int(p[best]))} {place}, against {' and '.join(stops[:2])}"
    return Obstacles(len(moves), len(moves) - len(legal), _counted(compiled, linear, theirs), _counted(compiled, linear, own), nearest)


def _counted(compiled: Compiled, linear: np.ndarray, broken: np.ndarray) -> Counter[str]:
    """How many moves (bool [n, W]) break each goal; goals in the order in which moves do."""
    first = np.where(broken.any(axis=0), broken.argmax(axis=0), len(broken)) if len(broken) else np.zeros(len(linear))
    counts = broken.sum(axis=0)
    return Counter({compiled.goals[linear[k]].name: int(counts[k]) for k in np.argsort(first, kind="stable") if counts[k]})


def _is_over(compiled: Compiled, end: State, row: int, g: int) -> bool:
    problem = compiled.problem
    load = end.load[row, problem.goal[g, COLUMN]]
    return bool(load > (problem.table[row, g, MEAN] if problem.goal[g, KIND] == DISTRIBUTION else problem.table[row, g, CEILING]))


def _largest(compiled: Compiled, end: State, b: int, column: int, most: int) -> list[tuple[int, int, int]]:
    """Partition, slot and role of the replicas on broker `b` that may move and cost most of a column."""
    problem, slots = compiled.problem, end.replicas.shape[1]
    entries = np.sort(end.hosted[b, : end.hosts[b]])
    entries = entries[problem.partition[entries // slots, MOVABLE] == 1]
    role = np.where(end.lead[entries // slots] == entries % slots, LEADING, FOLLOWING)
    cost = problem.vector[entries // slots, role, column]
    order = np.argsort(-cost, kind="stable")[:most]
    order = order[cost[order] > 0.0]
    return [(int(entries[i]) // slots, int(entries[i]) % slots, int(role[i])) for i in order]


def _broken(compiled: Compiled, end: State, linear: np.ndarray, brokers: np.ndarray, more: np.ndarray) -> np.ndarray:
    """bool [n, W]: the goals on loads of which each of n brokers would leave the band, or the limit, with `more` float64 [n, C]."""
    problem = compiled.problem
    columns = problem.goal[linear, COLUMN]
    load = end.load[np.ix_(brokers, columns)] + more[:, columns]
    table = problem.table[np.ix_(brokers, linear)]
    band = np.abs(load - table[:, :, MEAN]) > table[:, :, BOUND] * (1.0 + 1e-9)
    out = np.where(problem.goal[linear, KIND] == DISTRIBUTION, band & (table[:, :, MEAN] > 0.0), load > table[:, :, CEILING])
    return np.asarray(out & (end.score[np.ix_(brokers, linear)] >= 1.0))
