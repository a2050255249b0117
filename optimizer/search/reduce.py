"""Reduce: the same balance for fewer moves and bytes.

Called by `search` once a target, before its changes are put in order. What moved without need goes home; then other placements are tried
that are as good (`sideways`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import ahead, inner, kernel, whole
from optimizer.problem import FOLLOWING, LEADING, STATE, Problem
from optimizer.search.bench import differing
from optimizer.search.commit import commit, write_row
from optimizer.search.feasible import keeps_scores, may_host, misplaces, scores_hold
from optimizer.search.parameters import HOME_SHARE, LAST_BROKERS, SOON
from optimizer.search.potential import NOTHING
from optimizer.search.sideways import cost_of_moves, sideways
from optimizer.search.standing import count_low
from optimizer.search.state import Rows, State


def reduce(problem: Problem, target: State, standing: State, home: Rows, home_lead: Rows, seed: int) -> None:
    """Take back what `target` moved without need, then look for placements as good that cost less.

    `home` int64 [P, R] and `home_lead` int64 [P] are where the round began; what `standing` has is in order already. No broker scores lower
    in any goal for any of it.
    """
    order = _elsewhere(problem, target, standing)
    send_home(problem, target, home, home_lead, order)
    if count_low(problem, target) > LAST_BROKERS * len(problem.broker):
        return  # where many brokers are out, they may still need the room that is left in bands
    paid = cost_of_moves(problem, target, home)
    sideways(problem, target, home, _elsewhere(problem, target, standing), paid, seed)
    send_home(problem, target, home, home_lead, _elsewhere(problem, target, standing))


def _elsewhere(problem: Problem, target: State, standing: State) -> Rows:
    """int64: partitions that differ, those that cost most first."""
    moved = differing(target.replicas, target.lead, standing.replicas, standing.lead, target, standing)
    return moved[np.argsort(-problem.cost[moved], kind="stable")]


class Way(NamedTuple):
    """A change that takes a replica or a leadership home, and who is touched by it; up to n = 3 brokers."""

    was: np.ndarray  # int64 [R + 1], replicas before it and the slot that led
    broker: np.ndarray  # int64 [n]
    before: np.ndarray  # float64 [n, G], scores


@kernel
def send_home(problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, order: np.ndarray) -> None:
    """Take moved replicas (`order`: partitions, largest first) and leaderships home where no broker is worse for it."""
    slots = state.replicas.shape[1]
    way = Way(np.zeros(slots + 1, np.int64), np.zeros(3, np.int64), np.zeros((3, len(problem.goal))))
    taken = len(order)
    while taken > HOME_SHARE * len(order):
        taken = 0
        for i in range(len(order)):
            if i + SOON < len(order):
                q = order[i + SOON]
                ahead(state.replicas, q)
                ahead(home, q)
                ahead(state.lead, q)
                ahead(home_lead, q)
                ahead(problem.vector[q], LEADING)
                ahead(problem.vector[q], FOLLOWING)
            p = order[i]
            for s in range(slots):
                if home[p, s] >= 0 and home[p, s] != state.replicas[p, s] and goes_home(problem, state, home, home_lead, p, s, way):
                    taken += 1
            if leads_again(problem, state, home, home_lead, p, way):
                taken += 1


@inner
def goes_home(problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, p: int, s: int, way: Way) -> bool:
    """Take slot `s` of `p` home if nothing speaks against it, with the leadership where it led there."""
    here, back, lead = state.replicas[p, s], home[p, s], state.lead[p]
    held = whole(LEADING if lead == s else FOLLOWING)
    if not keeps_scores(problem, state, here, p, whole(NOTHING), p, held):
        return False
    way.broker[0], way.broker[1], n, role = here, back, whole(2), held
    if home_lead[p] == s and problem.broker[back, STATE] == 0 and lead != s:
        role, n = whole(LEADING), whole(2 if lead < 0 else 3)
        way.broker[2] = state.replicas[p, lead]
        lead = s
    if not keeps_scores(problem, state, back, p, role, p, whole(NOTHING)) or not may_host(problem, state, p, s, back):
        return False
    write_row(state, p, s, back)
    return tried(problem, state, p, s, lead, n, way)


@inner
def leads_again(problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, p: int, way: Way) -> bool:
    """Take the leadership of `p` home if nothing speaks against it."""
    want, lead = home_lead[p], state.lead[p]
    if want < 0 or want == lead or lead < 0 or home[p, want] != state.replicas[p, want]:
        return False
    b = state.replicas[p, want]
    if problem.broker[b, STATE] != 0 or not keeps_scores(problem, state, b, p, whole(LEADING), p, whole(FOLLOWING)):
        return False
    way.broker[0], way.broker[1] = b, state.replicas[p, lead]
    write_row(state, p, want, b)
    return tried(problem, state, p, whole(-1), want, whole(2), way)


@inner
def tried(problem: Problem, state: State, p: int, s: int, lead: int, n: int, way: Way) -> bool:
    """Commit `state.row` led by slot `lead` unless one of `n` brokers is worse for it; `s` is the slot that moves, -1 if none does."""
    if len(problem.topic_goal) > 0 and misplaces(problem, state, p, s, lead):
        return False
    slots = state.replicas.shape[1]
    for o in range(slots):
        way.was[o] = state.replicas[p, o]
    way.was[-1] = state.lead[p]
    for i in range(n):
        for g in range(way.before.shape[1]):
            way.before[i, g] = state.score[way.broker[i], g]
    commit(problem, state, p, state.row, lead)
    if scores_hold(state, way.broker, n, way.before):
        return True
    commit(problem, state, p, way.was[:slots], whole(way.was[-1]))
    return False
