"""The log of the actions of a search, and its budget of moves, bytes and partitions.

Every stage that publishes actions writes here. Nothing here judges whether an action is acceptable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import by_reference, inner, whole
from optimizer.options import PlanOptions
from optimizer.parameters import CHOICE_OF_MOVES, ENDLESS, UNIT_SHARE
from optimizer.placement.commit import commit
from optimizer.placement.evaluate import adopt
from optimizer.placement.state import LEAD, PARTITION, State
from optimizer.problem import Compiled, Problem


@by_reference
class Log(NamedTuple):
    """Actions in the order in which they were committed; the changes of action a are those from `first[a]` to below `first[a + 1]`."""

    used: np.ndarray  # int64 [2], how many actions, how many changes
    first: np.ndarray  # int64 [A + 1]
    partition: np.ndarray  # int64 [changes]
    replicas: np.ndarray  # int64 [changes, R]
    lead: np.ndarray  # int64 [changes]


@by_reference
class Budget(NamedTuple):
    """Limits on a plan and what it has spent so far, in the order moves, bytes, partitions. A negative entry of `limits`: no limit."""

    limits: np.ndarray  # float64 [3]
    spent: np.ndarray  # float64 [3]
    home: np.ndarray  # int64 [P, R], replicas at the start of the plan
    home_lead: np.ndarray  # int64 [P], leader slots at the start of the plan
    touched: np.ndarray  # int64 [P], 1 where an action changed the partition; empty without limits


def empty_log(slots: int, room: int) -> Log:
    """A log with room for `room` changes."""
    log = Log(
        used=np.zeros(2, np.int64),
        first=np.empty(room + 2, np.int64),  # far more than is used; the rest takes no memory
        partition=np.empty(room + 1, np.int64),
        replicas=np.empty((room + 1, slots), np.int64),
        lead=np.empty(room + 1, np.int64),
    )
    log.first[0] = 0
    return log


def written(log: Log) -> Log:
    """A copy of the log without its unused room."""
    actions, changes = log.used.tolist()
    return Log(
        log.used.copy(), log.first[: actions + 1].copy(), log.partition[:changes].copy(), log.replicas[:changes].copy(),
        log.lead[:changes].copy(),
    )  # fmt: skip


def is_spent(problem: Problem, budget: Budget) -> bool:
    """Whether one more move or changed partition exceeds the budget; the replica has mean size, or at first the smallest size."""
    if not is_limited(budget):
        return False
    sizes = problem.size
    size = 0.0 if not len(sizes) else sizes.mean() if budget.spent[1] > 0 else sizes.min()
    after = budget.spent + np.array([1.0, size, 1.0])
    return bool(((budget.limits >= 0) & (after > budget.limits)).any())


def has_partitions(budget: Budget) -> bool:
    """Whether the budget allows one more partition to change, if only its leader."""
    return bool(budget.limits[2] < 0 or budget.spent[2] + 1.0 <= budget.limits[2])


def plenty(problem: Problem, budget: Budget) -> int:
    """How many moves to choose from: `CHOICE_OF_MOVES` times what the rest of the budget pays for, bytes at the lower quartile of sizes."""
    if not is_limited(budget):
        return ENDLESS
    left, sizes = budget.limits - budget.spent, problem.size
    size = max(float(np.partition(sizes, len(sizes) // 4)[len(sizes) // 4]), 1.0) if len(sizes) else 1.0
    most = [CHOICE_OF_MOVES * x for x, limit in zip(left / [1.0, size, 1.0], budget.limits, strict=True) if limit >= 0]
    return max(int(min(most, default=ENDLESS)), 1)


@inner
def price(problem: Problem, budget: Budget, p: int, replicas: np.ndarray, lead: int, touched: int, out: np.ndarray) -> None:
    """Write into `out` float64 [3] what partition `p` on `replicas` costs against the start of the plan: moves, bytes, partitions.

    If it was `touched` and did not start led by slot 0, its list may come back in another order, which counts as a changed partition.
    """
    slots = budget.home.shape[1]
    moves = 0
    for s in range(slots):
        b = replicas[s]
        if b < 0:
            continue
        there = False
        for o in range(slots):
            if budget.home[p, o] == b:
                there = True
        if not there:
            moves += 1
    out[0] = moves
    out[1] = moves * problem.size[p]
    home_lead = budget.home_lead[p]
    same_leader = (home_lead < 0 and lead < 0) or (home_lead >= 0 and lead >= 0 and budget.home[p, home_lead] == replicas[lead])
    out[2] = 0.0 if moves == 0 and same_leader and (touched == 0 or home_lead == 0) else 1.0


@inner
def add_price(problem: Problem, state: State, budget: Budget, i: int, total: np.ndarray) -> None:
    """Add to `total` float64 [3] what change `i` costs more than its partition costs now; may be negative."""
    p, before, after = state.change[i, PARTITION], np.zeros(3), np.zeros(3)
    price(problem, budget, p, state.replicas[p], state.lead[p], budget.touched[p], before)
    price(problem, budget, p, state.change[i], state.change[i, LEAD], whole(1), after)
    for d in range(3):
        total[d] += after[d] - before[d]


@inner
def within_budget(problem: Problem, state: State, budget: Budget, n: int) -> bool:
    """Whether the rest of the budget is enough for the action of `n` changes."""
    return not is_limited(budget) or asks(problem, state, budget, n) <= 1


@inner
def is_limited(budget: Budget) -> bool:
    """Whether the budget has any limit."""
    return bool(budget.limits[0] >= 0 or budget.limits[1] >= 0 or budget.limits[2] >= 0)


@inner
def asks(problem: Problem, state: State, budget: Budget, n: int) -> int:
    """What the action of `n` changes needs of a limited budget: 0 nothing, 1 no more than its rest, 2 more than that."""
    extra = np.zeros(3)
    for i in range(n):
        add_price(problem, state, budget, i, extra)
    asked = whole(0)
    for d in range(3):
        if budget.limits[d] >= 0 and extra[d] > 0:
            asked = whole(1)
            if budget.spent[d] + extra[d] >= budget.limits[d] + UNIT_SHARE:
                return whole(2)
    return asked


@inner
def publish(problem: Problem, state: State, budget: Budget, log: Log, n: int, touched: int) -> None:
    """Commit the action of `n` changes and append it to the log. `touched` is how many brokers it touches if it was judged last, so that
    their scores are known; otherwise 0."""
    at, limited = log.used[1], is_limited(budget)
    for i in range(n):
        p, lead = state.change[i, PARTITION], state.change[i, LEAD]
        if limited:
            add_price(problem, state, budget, i, budget.spent)
            budget.touched[p] = 1
        if touched == 0:
            commit(problem, state, p, state.change[i], lead)
        log.partition[at] = p
        for s in range(state.replicas.shape[1]):
            log.replicas[at, s] = state.change[i, s]
        log.lead[at] = lead
        at += 1
    if touched > 0:
        adopt(problem, state, n, touched)
    log.used[0] += 1
    log.used[1] = at
    log.first[log.used[0]] = at


@inner
def load_action(state: State, log: Log, a: int) -> int:
    """Copy action `a` of the log into `state.change`; returns how many changes it has."""
    n = whole(0)
    for i in range(log.first[a], log.first[a + 1]):
        for s in range(state.replicas.shape[1]):
            state.change[n, s] = log.replicas[i, s]
        state.change[n, PARTITION], state.change[n, LEAD] = log.partition[i], log.lead[i]
        n += 1
    return n


@inner
def is_full(log: Log, n: int) -> bool:
    """Whether the log has no room for an action of `n` changes (a bound on storage, far above what a round publishes)."""
    return bool(log.used[1] + n >= len(log.partition))


@inner
def has_room(state: State, n: int) -> bool:
    """Whether every broker that gets a replica by the `n` changes has room in its list (a bound on storage, far above any load)."""
    for i in range(n):
        for s in range(state.replicas.shape[1]):
            b = state.change[i, s]
            came = b >= 0 and b != state.replicas[state.change[i, PARTITION], s]
            if came and state.hosts[b] + n > state.hosted.shape[1] and state.hosted.shape[1] < state.replicas.shape[0]:
                return False
    return True


def copied(budget: Budget) -> Budget:
    """A copy of the budget, to be spent separately. A budget without limits is never written to, so it is shared instead."""
    if not is_limited(budget):
        return budget
    return budget._replace(spent=budget.spent.copy(), touched=budget.touched.copy())


def budget_for(compiled: Compiled, options: PlanOptions) -> Budget:
    limits = np.array([-1.0 if x is None else float(x) for x in (options.max_moves, options.max_bytes, options.max_partitions)])
    touched = np.zeros(len(compiled.lead) if options.budgeted else 0, np.int64)
    return Budget(limits, np.zeros(3), compiled.replicas, compiled.lead, touched)
