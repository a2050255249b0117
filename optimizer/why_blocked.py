"""What stands in the way of a broker for which no proof is known: single moves that would help, and what each would break.

Called by `why` for brokers about which it can prove nothing. It looks at moves only; the search also tried swaps and exchanges.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from optimizer.problem import (
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
    STATE,
    Compiled,
)
from optimizer.search.hosting import hosts_legally
from optimizer.search.state import State

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
    At most `MOST_REPLICAS` times `MOST_BROKERS` moves.
    """
    problem = compiled.problem
    column = int(problem.goal[g, COLUMN])
    over = _is_over(compiled, end, row, g)
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    others = np.flatnonzero(eligible & (np.arange(len(eligible)) != row))
    order = np.argsort(end.load[others, column] * (1.0 if over else -1.0), kind="stable")
    others = others[order][:MOST_BROKERS]
    linear = np.flatnonzero(problem.goal[:, KIND] <= LIMIT)
    found = Obstacles(0, 0, Counter(), Counter(), None)
    moves = illegal = 0
    best = (len(linear) + 1, 0.0)
    nearest: str | None = None
    givers = [row] if over else others.tolist()
    each = max(1, MOST_REPLICAS // len(givers)) if givers else 0
    for giver in givers:
        for p, slot, role in _largest(compiled, end, giver, column, each):
            amount = float(problem.vector[p, role, column])
            for taker in others.tolist() if over else [row]:
                moves += 1
                if not hosts_legally(problem, end, p, slot, taker):
                    illegal += 1
                    continue
                other = taker if over else giver
                theirs = _broken(compiled, end, linear, other, problem.vector[p, role], 1.0 if over else -1.0)
                own = _broken(compiled, end, linear, row, problem.vector[p, role], -1.0 if over else 1.0)
                found.other.update(theirs)
                found.own.update(own)
                if theirs or own:
                    worth = (len(theirs) + len(own), -amount)
                    if worth < best:
                        best = worth
                        place = f"{'to' if over else 'from'} broker {snapshot.broker_ids[other]}"
                        stops = [f"{name} there" for name in theirs] + [f"{name} here" for name in own]
                        nearest = f"{snapshot.partition_name(p)} {place}, against {' and '.join(stops[:2])}"
    return None if not moves else Obstacles(moves, illegal, found.other, found.own, nearest)


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


def _broken(
    compiled: Compiled, end: State, linear: np.ndarray, b: int, vector: np.ndarray, sign: float
) -> list[str]:
    """Goals on loads of which broker `b` would leave the band, or the limit, with the vector more (or less)."""
    problem = compiled.problem
    columns = problem.goal[linear, COLUMN]
    load = end.load[b, columns] + sign * vector[columns]
    table = problem.table[b, linear]
    band = np.abs(load - table[:, MEAN]) > table[:, BOUND] * (1.0 + 1e-9)
    out = np.where(problem.goal[linear, KIND] == DISTRIBUTION, band & (table[:, MEAN] > 0.0), load > table[:, CEILING])
    return [compiled.goals[g].name for g in linear[out & (end.score[b, linear] >= 1.0)].tolist()]
