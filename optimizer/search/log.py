"""What a search has done and may still spend: the log of its actions, and budgets of moves, bytes and partitions.

Every stage that publishes writes here; nothing here asks whether an action is any good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import by_reference, inner, whole
from optimizer.options import PlanOptions
from optimizer.problem import Compiled, Problem
from optimizer.search.commit import commit
from optimizer.search.evaluate import adopt
from optimizer.search.parameters import CHOICE_OF_MOVES, ENDLESS, UNIT_SHARE
from optimizer.search.state import LEAD, PARTITION, State


@by_reference
class Log(NamedTuple):
    """Actions as they were committed; `used` holds [actions, changes]. `first` int64 [A + 1] indexes the changes."""

    used: np.ndarray  # int64 [2]
    first: np.ndarray  # int64 [A + 1]
    partition: np.ndarray  # int64 [changes]
    replicas: np.ndarray  # int64 [changes, R]
    lead: np.ndarray  # int64 [changes]


@by_reference
class Budget(NamedTuple):
    """What may still be spent; negative entries of `limits` have no limit. Order: moves, bytes, partitions."""

    limits: np.ndarray  # float64 [3]
    spent: np.ndarray  # float64 [3]
    home: np.ndarray  # int64 [P, R], start of the plan
    home_lead: np.ndarray  # int64 [P]
    touched: np.ndarray  # int64 [P], 1 where an action changed the partition; empty where nothing is limited


def empty_log(slots: int, room: int) -> Log:
    """A log with room for `room` changes."""
    log = Log(
        used=np.zeros(2, np.int64),
        first=np.empty(room + 2, np.int64),  # far more than is used, and not touched beyond that
        partition=np.empty(room + 1, np.int64),
        replicas=np.empty((room + 1, slots), np.int64),
        lead=np.empty(room + 1, np.int64),
    )
    log.first[0] = 0
    return log


def written(log: Log) -> Log:
    """The same without the room that is left."""
    actions, changes = log.used.tolist()
    return Log(
        log.used.copy(), log.first[: actions + 1].copy(), log.partition[:changes].copy(), log.replicas[:changes].copy(),
        log.lead[:changes].copy(),
    )  # fmt: skip


def is_spent(problem: Problem, budget: Budget) -> bool:
    """Whether one replica more, or one more changed partition, is beyond the budget: a replica of typical size, the smallest at first."""
    if not is_limited(budget):
        return False
    sizes = problem.size
    size = 0.0 if not len(sizes) else sizes.mean() if budget.spent[1] > 0 else sizes.min()
    after = budget.spent + np.array([1.0, size, 1.0])
    return bool(((budget.limits >= 0) & (after > budget.limits)).any())


def has_partitions(budget: Budget) -> bool:
    """Whether one more partition may change, if only its leader."""
    return bool(budget.limits[2] < 0 or budget.spent[2] + 1.0 <= budget.limits[2])


def plenty(problem: Problem, budget: Budget) -> int:
    """Moves among which there are enough for what is left of the budget; of bytes, where partitions are small (a quarter is smaller)."""
    if not is_limited(budget):
        return ENDLESS
    left, sizes = budget.limits - budget.spent, problem.size
    size = max(float(np.partition(sizes, len(sizes) // 4)[len(sizes) // 4]), 1.0) if len(sizes) else 1.0
    most = [CHOICE_OF_MOVES * x for x, limit in zip(left / [1.0, size, 1.0], budget.limits, strict=True) if limit >= 0]
    return max(int(min(most, default=ENDLESS)), 1)


@inner
def price(problem: Problem, budget: Budget, p: int, replicas: np.ndarray, lead: int, touched: int, out: np.ndarray) -> None:
    """What partition `p` at `replicas` costs against its start: moves, bytes, partitions, into `out` float64 [3].

    Where it was `touched`, coming back may leave its list in another order, which counts as a partition.
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
    same_leader = (home_lead < 0 and lead < 0) or (
        home_lead >= 0 and lead >= 0 and budget.home[p, home_lead] == replicas[lead]
    )
    out[2] = 0.0 if moves == 0 and same_leader and (touched == 0 or home_lead == 0) else 1.0


@inner
def add_price(problem: Problem, state: State, budget: Budget, i: int, total: np.ndarray) -> None:
    """Add to `total` float64 [3] what change `i` costs more than its partition where it stands."""
    p, before, after = state.change[i, PARTITION], np.zeros(3), np.zeros(3)
    price(problem, budget, p, state.replicas[p], state.lead[p], budget.touched[p], before)
    price(problem, budget, p, state.change[i], state.change[i, LEAD], whole(1), after)
    for d in range(3):
        total[d] += after[d] - before[d]


@inner
def within_budget(problem: Problem, state: State, budget: Budget, n: int) -> bool:
    """Whether the action of `n` changes fits what is left."""
    return not is_limited(budget) or asks(problem, state, budget, n) <= 1


@inner
def is_limited(budget: Budget) -> bool:
    """Whether anything is limited."""
    return bool(budget.limits[0] >= 0 or budget.limits[1] >= 0 or budget.limits[2] >= 0)


@inner
def asks(problem: Problem, state: State, budget: Budget, n: int) -> int:
    """What the action of `n` changes asks of a limited budget: 0 nothing, 1 what is left of it, 2 more than that."""
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
    """Commit the action of `n` changes and write it down. Where it is what was judged last, so many brokers are `touched`, and their scores
    known; otherwise 0."""
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
    """Make action `a` of the log the one that is asked about; returns how many changes it has."""
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
    """Whether every target of an action of `n` changes has room in its replica list (a bound on storage, far above any load)."""
    for i in range(n):
        for s in range(state.replicas.shape[1]):
            b = state.change[i, s]
            came = b >= 0 and b != state.replicas[state.change[i, PARTITION], s]
            if came and state.hosts[b] + n > state.hosted.shape[1] and state.hosted.shape[1] < state.replicas.shape[0]:
                return False
    return True


def copied(budget: Budget) -> Budget:
    """The same to spend from elsewhere; one without limits is never asked, so it may be shared."""
    if not is_limited(budget):
        return budget
    return budget._replace(spent=budget.spent.copy(), touched=budget.touched.copy())


def budget_for(compiled: Compiled, options: PlanOptions) -> Budget:
    limits = [
        -1.0 if x is None else float(x)
        for x in (options.max_moves, options.max_bytes, options.max_partitions)
    ]
    return Budget(
        limits=np.array(limits),
        spent=np.zeros(3),
        home=compiled.replicas,
        home_lead=compiled.lead,
        touched=np.zeros(len(compiled.lead) if options.budgeted else 0, np.int64),
    )
