"""Reduce: the same balance for fewer moves and bytes.

Called by `search` once a target, before its changes are put in order. What moved without need goes home; then other placements are tried
that are as good (`sideways`).
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner, kernel, whole
from optimizer.problem import FOLLOWING, LEADING, STATE, Problem
from optimizer.search.commit import write_row
from optimizer.search.feasible import may_host, misplaces
from optimizer.search.parameters import HOME_SHARE, LAST_BROKERS, SOON
from optimizer.search.sideways import cost_of_moves, sideways
from optimizer.search.standing import count_low
from optimizer.search.state import Rows, State
from optimizer.search.states import differing
from optimizer.search.steps import Step, add, done, fits, hand_on, new_step


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


@kernel
def send_home(problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, order: np.ndarray) -> None:
    """Take moved replicas (`order`: partitions, largest first) and leaderships home where no broker is worse for it."""
    slots, step, taken = state.replicas.shape[1], new_step(problem, home), len(order)
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
                if home[p, s] >= 0 and home[p, s] != state.replicas[p, s] and goes_home(problem, state, step, p, whole(s)):
                    taken += 1
            if leads_again(problem, state, home, home_lead, p):
                taken += 1


@inner
def goes_home(problem: Problem, state: State, step: Step, p: int, s: int) -> bool:
    """Take slot `s` of `p` home if nothing speaks against it."""
    back, one = step.home[p, s], whole(1)
    add(state, step, whole(0), p * state.replicas.shape[1] + s, back)
    if not fits(problem, state, step, one) or not may_host(problem, state, p, s, back):
        return False
    if len(problem.topic_goal) > 0:
        write_row(state, p, s, back)
        if misplaces(problem, state, p, s, state.lead[p]):
            return False
    return done(problem, state, step, one, False)


@inner
def leads_again(problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, p: int) -> bool:
    """Take the leadership of `p` home if nothing speaks against it."""
    want, lead = home_lead[p], state.lead[p]
    if want < 0 or want == lead or lead < 0 or home[p, want] != state.replicas[p, want]:
        return False
    return bool(problem.broker[home[p, want], STATE] == 0 and hand_on(problem, state, p, want, False))
