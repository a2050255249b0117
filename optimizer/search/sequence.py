"""Schedule: from a target placement to an order of acceptable actions.

Net changes are carried out one partition at a time, the most gain for its cost first, each only if acceptable at its turn. Changes that are
acceptable only together become one action (`bundle`). Changes that find no turn are dropped. `search`, `careful` and `course` call it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BrokerState
from kernels.compiled import inner, kernel, whole
from kernels.order import ascending
from optimizer.parameters import FEW_TRANSFERS, JUDGED_TOGETHER, LATE_SHARE, LEAST_STEP, SOON, STILL_GOOD
from optimizer.placement.commit import commit
from optimizer.placement.evaluate import REPAIRS_DEAD, acceptable, evaluate, prefetch_change, prefetch_counts
from optimizer.placement.log import Budget, Log, asks, has_room, is_full, is_limited, publish
from optimizer.placement.potential import thrift_of
from optimizer.placement.standing import undone
from optimizer.placement.state import COST, State
from optimizer.problem import HARD, STATE, Problem
from optimizer.search.bundle import bundle, last_change, load_change, moved_slots, note_change
from optimizer.threads import Threads


@inner
def key_of(problem: Problem, gain: float, repairs: int, moved: int, p: int) -> float:
    """Rank of a change, the largest first: repairs of dead brokers, then other repairs, then gain in potential for the cost."""
    thrift = thrift_of(problem, p)
    worth = gain * (thrift * thrift) / moved if moved > 0 else gain * 10.0
    if repairs != 0:
        urgent = 1e12 if (repairs >> REPAIRS_DEAD) & 1 else 1e9
        return urgent + max(worth, 0.0)
    return worth


class Judged(NamedTuple):
    """Judgements of n pending changes, each by itself."""

    gain: np.ndarray  # float64 [n], fall of the potential
    repairs: np.ndarray  # int64 [n], bits
    good: np.ndarray  # uint8 [n], 1 where the change repairs or lowers the potential, and is acceptable


# wide: lists and leaders of the target, budget and log of the plan, each with another owner
def carry_out(
    problem: Problem, state: State, budget: Budget, log: Log, turns: list[np.ndarray], to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool, threads: Threads | None = None,
) -> int:  # fmt: skip
    """`sequence` for the partitions of each of `turns` in order. If repairs are left, a change of both leader and replicas may go in two
    steps, the leadership first, which costs no move. Returns how many changes of the last turn are left."""
    left = 0
    for every in turns:
        rows = every[(state.replicas[every] != to[every]).any(axis=1) | (state.lead[every] != to_lead[every])]
        left = sequence(problem, state, budget, log, rows, to, to_lead, by_potential, threads) if len(rows) else 0
        if (left or is_limited(budget)) and undone(problem, state):  # `left` does not count changes that are beyond the budget
            stays = state.replicas[rows, to_lead[rows]] == to[rows, to_lead[rows]]
            led = rows[stays & (state.lead[rows] != to_lead[rows])]
            halfway = to.copy()
            halfway[led] = state.replicas[led]
            sequence(problem, state, budget, log, rows, halfway, to_lead, by_potential, threads)
            left = sequence(problem, state, budget, log, rows, to, to_lead, by_potential, threads)
    return left


def cheapest_broker_first(problem: Problem, state: State, rows: np.ndarray, to: np.ndarray, to_lead: np.ndarray) -> list[np.ndarray]:
    """Turns for `carry_out`: urgent repairs; then, for each broker that misses a hard goal, the changes that relieve it, the cheapest such
    broker first, so that a budget ends as many violations as possible; last, all `rows`. O(changes x such brokers)."""
    short = (state.score[:, :COST][:, problem.goal[:, HARD] == 1] < 1.0).any(axis=1)
    broken = (problem.broker[:, STATE] == BrokerState.ACTIVE) & short
    before, after, lead, at = state.replicas[rows], to[rows], state.lead[rows], np.arange(len(rows))
    gone = (before >= 0) & ~(before[:, :, None] == after[:, None, :]).any(axis=2)
    gone[at, lead] |= before[at, lead] != after[at, to_lead[rows]]
    source = np.where(gone & broken[before], before, -1).max(axis=1, initial=-1)
    urgent = (lead < 0) | (gone & (problem.broker[before, STATE] != BrokerState.ACTIVE)).any(axis=1)
    moves = ((after >= 0) & ~(after[:, :, None] == before[:, None, :]).any(axis=2)).sum(axis=1)
    price = np.bincount(source + 1, weights=moves * problem.cost[rows], minlength=len(broken) + 1)
    by_price = sorted(np.flatnonzero(broken).tolist(), key=lambda b: price[b + 1])
    return [rows[urgent], *(rows[~urgent & (source == b)] for b in by_price), rows]


# wide: lists and leaders of the target, budget and log of the plan, each with another owner
def sequence(
    problem: Problem, state: State, budget: Budget, log: Log, pending: np.ndarray, to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool, threads: Threads | None = None,
) -> int:  # fmt: skip
    """Carry out the net changes of partitions `pending` (int64) to `to` int64 [P, R], `to_lead` int64 [P]; returns how many are left.

    A budget is spent on the most gain for its cost first; changes that it is not enough for are dropped. All `threads` judge the changes
    once at first; then the changes follow one after the other. If many find no turn, all are taken back, and these go first, each in one
    action with changes that compensate for it, while there are most to choose from.
    """
    threads = threads or Threads()
    count = len(pending)
    judged = Judged(np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.uint8))
    parts = max(min(2 * threads.count, count // JUDGED_TOGETHER), 1) if threads.count > 1 else 1
    edges = np.linspace(0, count, parts + 1).astype(np.int64).tolist()

    def judge_part(i: int) -> None:
        own = state if parts == 1 else with_own_sums(state)
        judge_each(problem, own, edges[i], edges[i + 1], pending, to, to_lead, by_potential, judged)

    threads.share(judge_part, parts)
    used, before, before_lead = log.used.copy(), state.replicas[pending], state.lead[pending]
    known = judged.gain.copy(), judged.repairs.copy(), judged.good.copy()
    few = np.inf if is_limited(budget) else LATE_SHARE * count
    left = in_turn(problem, state, budget, log, pending, to, to_lead, by_potential, judged, 0, few)
    many = len(left) > few
    take_back(problem, state, pending if many else pending[:0], before, before_lead)  # always called, so that a warm-up compiles it
    if not many:
        return len(left)
    log.used[:] = used
    order = np.argsort(~np.isin(pending, left), kind="stable")
    judged = Judged(*(each[order] for each in known))
    return len(in_turn(problem, state, budget, log, pending[order], to, to_lead, by_potential, judged, len(left), np.inf))


def with_own_sums(state: State) -> State:
    """The same placement with its own sums, so that threads can judge changes of different partitions at the same time."""
    names = ("load", "units", "stamp", "touched", "change", "action", "old", "units_before", "fresh")
    return state._replace(**{name: getattr(state, name).copy() for name in names})


# wide: the changes, their target, and where the judgements go
@kernel
def judge_each(
    problem: Problem, state: State, first: int, last: int, pending: np.ndarray, to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool, judged: Judged,
) -> None:  # fmt: skip
    """Write into `judged` the judgements of the changes from `first` to below `last`, each by itself on the present `state`."""
    for i in range(first, last):
        if i + SOON < last:
            prefetch_change(problem, state, pending[i + SOON], to, to_lead)
        if i + SOON // 2 < last:
            q = pending[i + SOON // 2]
            prefetch_counts(problem, state, q, to, q)
        load_change(state, whole(0), pending[i], to, to_lead)
        judge_one(problem, state, by_potential, judged, i)


@inner
def judge_one(problem: Problem, state: State, by_potential: bool, judged: Judged, n: int) -> int:
    """Judge change 0 of `state.change` by itself, as pending change `n` of `judged`; returns how many brokers it touches."""
    verdict = evaluate(problem, state, whole(1))
    judged.gain[n], judged.repairs[n] = verdict.gain, verdict.repairs
    falls = verdict.repairs != 0 or verdict.gain > LEAST_STEP
    judged.good[n] = 1 if falls and acceptable(verdict, by_potential, LEAST_STEP) else 0
    return whole(verdict.touched)


# wide: lists and leaders of the target, budget and log of the plan, each with another owner
# long: publishes one change after the other, and keeps the judgements up to date on the way
@kernel
def in_turn(
    problem: Problem, state: State, budget: Budget, log: Log, pending: np.ndarray, to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool, judged: Judged, first: int, few: float,
) -> np.ndarray:  # fmt: skip
    """`sequence` after all changes were `judged` (written to). The first `first` of `pending` go first, in bundles. Returns the partitions
    that are left, int64. If more than `few` of these find no turn by themselves, it stops without looking for bundles."""
    left, item = pending.copy(), np.arange(len(pending))
    count = len(left)
    # Actions before each item was judged; the last action on each broker. A judgement holds if its brokers had no later action.
    known = np.zeros(count, np.int64)
    seen = np.zeros(len(problem.broker), np.int64)
    zero, one = whole(0), whole(1)
    limited, asked = is_limited(budget), whole(0)
    if first > 0:
        bundle(problem, state, budget, log, left[:count], to, to_lead, by_potential, seen, first)
        count = drop_published(left, item, count)
    while count > 0:
        keys = np.zeros(count)
        for i in range(count):
            p, n = left[i], item[i]
            if last_change(state, p, to, to_lead, seen) > known[n]:
                load_change(state, zero, p, to, to_lead)
                judge_one(problem, state, by_potential, judged, n)
                known[n] = log.used[0]
            keys[i] = -key_of(problem, judged.gain[n], judged.repairs[n], moved_slots(state, p, to), p)
        order = ascending(keys)
        kept = whole(0)
        done, asking = 0, 0
        waiting, numbers = left.copy(), item.copy()
        for i in range(count):
            if i + SOON < count:
                prefetch_change(problem, state, waiting[order[i + SOON]], to, to_lead)
            if i + SOON // 2 < count:
                q = waiting[order[i + SOON // 2]]
                prefetch_counts(problem, state, q, to, q)
            p, n = waiting[order[i]], numbers[order[i]]
            load_change(state, zero, p, to, to_lead)
            if limited:
                asked = asks(problem, state, budget, one)
                if asked > 1:  # later changes do not make the budget larger
                    continue
            touched = zero
            if last_change(state, p, to, to_lead, seen) > known[n]:
                touched = judge_one(problem, state, by_potential, judged, n)
                known[n] = log.used[0]
            waits = False
            if asked > 0 and done > 0:  # a change that needs no budget takes nothing from the others
                waits = key_of(problem, judged.gain[n], judged.repairs[n], moved_slots(state, p, to), p) < -STILL_GOOD * keys[order[i]]
            if not waits and judged.good[n] == 1 and has_room(state, one) and not is_full(log, one):
                note_change(problem, state, p, to, to_lead, seen, log.used[0] + 1)
                publish(problem, state, budget, log, one, touched)
                done += 1
            else:
                left[kept], item[kept] = p, n
                kept += 1
                asking += asked
        count = kept
        if limited and budget.limits[0] != 0.0 and asking == 0 and done <= FEW_TRANSFERS * count:
            break  # only leaderships are left, and few of them found a turn
        if done == 0:
            if count > few:
                break
            bundled = bundle(problem, state, budget, log, left[:count], to, to_lead, by_potential, seen, whole(count))
            if bundled == 0:
                break
            count = drop_published(left, item, count)
    return left[:count].copy()


@inner
def drop_published(left: np.ndarray, item: np.ndarray, count: int) -> int:
    """Drop entries with -1 in `left` from both arrays, among the first `count`; returns how many are left."""
    kept = whole(0)
    for i in range(count):
        if left[i] >= 0:
            left[kept], item[kept] = left[i], item[i]
            kept += 1
    return kept


@kernel
def take_back(problem: Problem, state: State, rows: np.ndarray, before: np.ndarray, before_lead: np.ndarray) -> None:
    """Put partitions `rows` back on `before` int64 [n, R], led by slots `before_lead` int64 [n]."""
    for i in range(len(rows)):
        commit(problem, state, rows[i], before[i], before_lead[i])


