"""Reduce: the same balance for fewer moves and bytes.

Called by `search` once for each target, before its changes are put in order. Replicas that moved without need go home; then other
placements that are as good are tried (`sideways`).
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner, kernel, whole
from optimizer.parameters import HOME_SHARE, LAST_BROKERS, SOON
from optimizer.placement.commit import write_row
from optimizer.placement.feasible import may_host, misplaces
from optimizer.placement.standing import count_low
from optimizer.placement.state import Rows, State, is_active
from optimizer.placement.states import differing
from optimizer.problem import FOLLOWING, LEADING, Problem
from optimizer.search.sideways import cost_of_moves, sideways
from optimizer.search.steps import Step, add, hand_on, keeps_load_scores, make_step, new_step


def reduce(problem: Problem, target: State, standing: State, home: Rows, home_lead: Rows, seed: int) -> None:
    """Undo the moves of `target` that nothing needs, then look for placements that are as good and cost less.

    `home` int64 [P, R] and `home_lead` int64 [P] are the placement at the start of the round. Only partitions in which `target` differs
    from `standing` change; the changes up to `standing` are in order already. No broker scores lower in any goal.
    """
    order = _elsewhere(problem, target, standing)
    send_home(problem, target, home, home_lead, order)
    if count_low(problem, target) > LAST_BROKERS * len(problem.broker):
        return  # so many brokers outside their ranges may still need the remaining room
    paid = cost_of_moves(problem, target, home)
    sideways(problem, target, home, _elsewhere(problem, target, standing), paid, seed)
    send_home(problem, target, home, home_lead, _elsewhere(problem, target, standing))


def _elsewhere(problem: Problem, target: State, standing: State) -> Rows:
    """int64: partitions in which `target` differs from `standing`, the most expensive first."""
    moved = differing(target.replicas, target.lead, standing.replicas, standing.lead, target, standing)
    return moved[np.argsort(-problem.cost[moved], kind="stable")]


@kernel
def send_home(problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, order: np.ndarray) -> None:
    """Undo moves of `order` (partitions, in this order) where no broker scores lower, as long as a pass undoes enough (`HOME_SHARE`)."""
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
    """Send slot `s` of `p` home if that is allowed and no broker scores lower; returns whether it went."""
    back, one = step.home[p, s], whole(1)
    add(state, step, whole(0), p * state.replicas.shape[1] + s, back)
    if not keeps_load_scores(problem, state, step, one) or not may_host(problem, state, p, s, back):
        return False
    if len(problem.topic_goal) > 0:
        write_row(state, p, s, back)
        if misplaces(problem, state, p, s, state.lead[p]):
            return False
    return make_step(problem, state, step, one, False)


@inner
def leads_again(problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, p: int) -> bool:
    """Give the leadership of `p` back to its first leader if that is allowed and no broker scores lower; returns whether it went."""
    want, lead = home_lead[p], state.lead[p]
    if want < 0 or want == lead or lead < 0 or home[p, want] != state.replicas[p, want]:
        return False
    return bool(is_active(problem, home[p, want]) and hand_on(problem, state, p, want, False))
