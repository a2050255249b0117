"""From a target placement to an order of acceptable actions.

The net changes are carried out one partition at a time, most balance for its bytes first, each only when it is acceptable at its
turn; those that are acceptable only together become one action (`bundle`). What cannot be made acceptable is left undone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BrokerState
from kernels.compiled import inner, kernel, whole
from optimizer.problem import HARD, STATE, Problem
from optimizer.search.bundle import ask_for, ask_for_counts, bundle, last_change, load_change, moved_slots, note_change
from optimizer.search.commit import commit
from optimizer.search.evaluate import REPAIRS_DEAD, acceptable, evaluate
from optimizer.search.log import Budget, Log, asks, has_room, is_full, is_limited, publish
from optimizer.search.order import ascending
from optimizer.search.parameters import FEW_TRANSFERS, JUDGED_TOGETHER, LATE_SHARE, LEAST_STEP, SOON
from optimizer.search.potential import thrift_of
from optimizer.search.standing import undone
from optimizer.search.state import COST, State
from optimizer.threads import Threads


@inner
def key_of(problem: Problem, gain: float, repairs: int, moved: int, p: int) -> float:
    """Order of actions: dead brokers first, then other repairs, then gain in potential for the bytes."""
    thrift = thrift_of(problem, p)
    worth = gain * (thrift * thrift) / moved if moved > 0 else gain * 10.0
    if repairs != 0:
        urgent = 1e12 if (repairs >> REPAIRS_DEAD) & 1 else 1e9
        return urgent + max(worth, 0.0)
    return worth


class Judged(NamedTuple):
    """What is known of n pending changes."""

    gain: np.ndarray  # float64 [n], fall of the potential
    repairs: np.ndarray  # int64 [n], bits
    good: np.ndarray  # uint8 [n], 1 where the change by itself is acceptable


# wide: a target is lists and leaders, a plan has a budget and a log, and each has another owner
def carry_out(
    problem: Problem, state: State, budget: Budget, log: Log, turns: list[np.ndarray], to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool, threads: Threads | None = None,
) -> int:  # fmt: skip
    """As `sequence`, the partitions of each of `turns` before those of the next; and where repairs are left, what changes a leader and a
    replica may do so in two steps, the leader first, which costs no move. Returns changes left of the last turn."""
    left = 0
    for every in turns:
        rows = every[(state.replicas[every] != to[every]).any(axis=1) | (state.lead[every] != to_lead[every])]
        left = sequence(problem, state, budget, log, rows, to, to_lead, by_potential, threads) if len(rows) else 0
        if (left or is_limited(budget)) and undone(problem, state):  # a change that is beyond the budget is not among those left
            stays = state.replicas[rows, to_lead[rows]] == to[rows, to_lead[rows]]
            led = rows[stays & (state.lead[rows] != to_lead[rows])]
            halfway = to.copy()
            halfway[led] = state.replicas[led]
            sequence(problem, state, budget, log, rows, halfway, to_lead, by_potential, threads)
            left = sequence(problem, state, budget, log, rows, to, to_lead, by_potential, threads)
    return left


def cheapest_broker_first(problem: Problem, state: State, rows: np.ndarray, to: np.ndarray, to_lead: np.ndarray) -> list[np.ndarray]:
    """Turns of `carry_out`, the last of all `rows`: first what has to leave its broker, then what relieves a broker that misses a hard
    goal, of one that costs little before others, so that a budget ends as many violations as it is enough for. O(changes + brokers)."""
    short = (state.score[:, :COST][:, problem.goal[:, HARD] == 1] < 1.0).any(axis=1)
    broken = (problem.broker[:, STATE] == BrokerState.ACTIVE) & short
    before, after, lead, at = state.replicas[rows], to[rows], state.lead[rows], np.arange(len(rows))
    gone = (before >= 0) & ~(before[:, :, None] == after[:, None, :]).any(axis=2)
    gone[at, lead] |= before[at, lead] != after[at, to_lead[rows]]
    source = np.where(gone & broken[before], before, -1).max(axis=1, initial=-1)
    urgent = (lead < 0) | (gone & (problem.broker[before, STATE] != BrokerState.ACTIVE)).any(axis=1)
    moves = ((after >= 0) & ~(after[:, :, None] == before[:, None, :]).any(axis=2)).sum(axis=1)
    price = np.bincount(source + 1, weights=moves * problem.cost[rows], minlength=len(broken) + 1)
    dearer = sorted(np.flatnonzero(broken).tolist(), key=lambda b: price[b + 1])
    return [rows[urgent], *(rows[~urgent & (source == b)] for b in dearer), rows]


# wide: a target is lists and leaders, a plan has a budget and a log, and each has another owner
def sequence(
    problem: Problem, state: State, budget: Budget, log: Log, pending: np.ndarray, to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool, threads: Threads | None = None,
) -> int:  # fmt: skip
    """Carry out the net changes of partitions `pending` (int64) towards `to` int64 [P, R], `to_lead`; returns changes left.

    The budget, where there is one, is spent on the most gain per byte first, and what it is not enough for is not weighed again. All
    changes are judged once before the first, by all `threads`; from then on one comes after the other. Where many find no turn, all is
    taken back, and those go first, each in one action with what makes up for it, while there is most to choose from.
    """
    threads = threads or Threads()
    count = len(pending)
    judged = Judged(np.zeros(count), np.zeros(count, np.int64), np.zeros(count, np.uint8))
    parts = max(min(2 * threads.count, count // JUDGED_TOGETHER), 1) if threads.count > 1 else 1
    edges = np.linspace(0, count, parts + 1).astype(np.int64).tolist()

    def judge_part(i: int) -> None:
        own = state if parts == 1 else apart(state)
        judge_each(problem, own, edges[i], edges[i + 1], pending, to, to_lead, by_potential, judged)

    threads.share(judge_part, parts)
    used, before, before_lead = log.used.copy(), state.replicas[pending], state.lead[pending]
    known = judged.gain.copy(), judged.repairs.copy(), judged.good.copy()
    few = np.inf if is_limited(budget) else LATE_SHARE * count
    left = in_turn(problem, state, budget, log, pending, to, to_lead, by_potential, judged, 0, few)
    many = len(left) > few
    take_back(problem, state, pending if many else pending[:0], before, before_lead)  # called in any case, so that a warm-up compiles it
    if not many:
        return len(left)
    log.used[:] = used
    order = np.argsort(~np.isin(pending, left), kind="stable")
    judged = Judged(*(each[order] for each in known))
    return len(in_turn(problem, state, budget, log, pending[order], to, to_lead, by_potential, judged, len(left), np.inf))


def apart(state: State) -> State:
    """The same placement with sums of its own: a change may be judged on it while another thread judges one of another partition."""
    names = ("load", "units", "stamp", "touched", "change", "action", "old", "units_before", "fresh")
    return state._replace(**{name: getattr(state, name).copy() for name in names})


# wide: which changes, of which target, and where the verdicts go
@kernel
def judge_each(
    problem: Problem, state: State, first: int, last: int, pending: np.ndarray, to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool, judged: Judged,
) -> None:  # fmt: skip
    """What is known of the changes from `first` up to `last`, each by itself from where `state` stands."""
    for i in range(first, last):
        if i + SOON < last:
            ask_for(problem, state, pending[i + SOON], to, to_lead)
        if i + SOON // 2 < last:
            q = pending[i + SOON // 2]
            ask_for_counts(problem, state, q, to, q)
        load_change(state, whole(0), pending[i], to, to_lead)
        judge_one(problem, state, by_potential, judged, i)


@inner
def judge_one(problem: Problem, state: State, by_potential: bool, judged: Judged, n: int) -> int:
    """Judge change 0 of `state.change` by itself as the pending change `n`; returns how many brokers it touches."""
    verdict = evaluate(problem, state, whole(1))
    judged.gain[n], judged.repairs[n] = verdict.gain, verdict.repairs
    falls = verdict.repairs != 0 or verdict.gain > LEAST_STEP
    judged.good[n] = 1 if falls and acceptable(verdict, by_potential, LEAST_STEP) else 0
    return whole(verdict.touched)


# wide: a target is lists and leaders, a plan has a budget and a log, and each has another owner
# long: one change after the other; what is known of each is kept up to date on the way
@kernel
def in_turn(
    problem: Problem, state: State, budget: Budget, log: Log, pending: np.ndarray, to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool, judged: Judged, first: int, few: float,
) -> np.ndarray:  # fmt: skip
    """As `sequence`, after all changes were `judged` (which is written to); the `first` of them go first, in bundles. Returns the
    partitions that are left, int64; where these are not `few`, no bundles are looked for among them."""
    left, item = pending.copy(), np.arange(len(pending))
    count = len(left)
    # Since when each item is known as judged; a broker changed last at its `seen`. What no touched broker made stale still holds.
    known = np.zeros(count, np.int64)
    seen = np.zeros(len(problem.broker), np.int64)
    zero, one = whole(0), whole(1)
    limited, asked = is_limited(budget), whole(0)
    if first > 0:
        bundle(problem, state, budget, log, left[:count], to, to_lead, by_potential, seen, first)
        count = keep(left, item, count)
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
                ask_for(problem, state, waiting[order[i + SOON]], to, to_lead)
            if i + SOON // 2 < count:
                q = waiting[order[i + SOON // 2]]
                ask_for_counts(problem, state, q, to, q)
            p, n = waiting[order[i]], numbers[order[i]]
            load_change(state, zero, p, to, to_lead)
            if limited:
                asked = asks(problem, state, budget, one)
                if asked > 1:  # nothing that comes after it makes the budget larger
                    continue
            touched = zero
            if last_change(state, p, to, to_lead, seen) > known[n]:
                touched = judge_one(problem, state, by_potential, judged, n)
                known[n] = log.used[0]
            waits = False
            if asked > 0 and done > 0:  # what asks for nothing takes nothing from the others
                waits = key_of(problem, judged.gain[n], judged.repairs[n], moved_slots(state, p, to), p) < -0.8 * keys[order[i]]
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
            break  # only leaderships are left, of which there are many more
        if done == 0:
            if count > few:
                break
            bundled = bundle(problem, state, budget, log, left[:count], to, to_lead, by_potential, seen, whole(count))
            if bundled == 0:
                break
            count = keep(left, item, count)
    return left[:count].copy()


@inner
def keep(left: np.ndarray, item: np.ndarray, count: int) -> int:
    """Drop from both what is -1 in the first; returns how many are left."""
    kept = whole(0)
    for i in range(count):
        if left[i] >= 0:
            left[kept], item[kept] = left[i], item[i]
            kept += 1
    return kept


@kernel
def take_back(problem: Problem, state: State, rows: np.ndarray, before: np.ndarray, before_lead: np.ndarray) -> None:
    """Put partitions `rows` back to `before` int64 [n, R], led by `before_lead`."""
    for i in range(len(rows)):
        commit(problem, state, rows[i], before[i], before_lead[i])


