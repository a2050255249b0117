"""A few brokers and the replicas on them that may change places: what `repack` anneals.

Changes are made to the state itself, by its own rules for racks, lists and sets. Scores and the potential stay as they are until `settle`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, whole
from optimizer.placement.commit import put, write_row
from optimizer.placement.feasible import in_set, may_swap
from optimizer.placement.potential import assess, price
from optimizer.placement.state import COST, State
from optimizer.problem import BOUND, COLUMN, HARD_WEIGHT, HIGH, LOW, MEAN, MOVABLE, SCALE, STRENGTH, TOPIC_ROW, Problem

TOP, BOTTOM, WEIGHT, COUNT = 0, 1, 2, 3  # columns of `Pool.band`


class Prices(NamedTuple):
    """Units of the energy of a pool: the cost of a typical move and the strength of a typical goal."""

    move: float
    goal: float


class Pool(NamedTuple):
    """n replicas that may move on K brokers, and G goals on loads."""

    group: np.ndarray  # int64 [K], broker rows
    seat: np.ndarray  # int64 [B], index in `group` of each broker, -1 if it is not in the pool
    free: np.ndarray  # int64 [n], entries (as in `hosted`) of the replicas that may move
    column: np.ndarray  # int64 [G], load column of each goal
    band: np.ndarray  # float64 [K, G, 4]: upper end, lower end, weight of a load of 1 beyond them, as how many brokers one beyond counts
    taken: np.ndarray  # int64 [m, 3], steps made: two replicas as for `send`, and the broker where the first was
    at: np.ndarray  # int64 [2], number of steps made, and after how many of them the placement is best
    prices: Prices


@inner
def pool_of(problem: Problem, state: State, goals: np.ndarray, group: np.ndarray, prices: Prices, most: int) -> Pool:
    """The pool of brokers `group` int64 [K], all of one broker set, with room for `most` steps."""
    slots, n = state.replicas.shape[1], whole(0)
    seat, column = np.full(len(state.hosts), -1, np.int64), np.zeros(len(goals), np.int64)
    band = np.zeros((len(group), len(goals), 4))
    for g in range(len(goals)):
        column[g] = problem.goal[goals[g], COLUMN]
    for k in range(len(group)):
        seat[group[k]] = k
        n += state.hosts[group[k]]
        for g in range(len(goals)):
            row, strength = problem.table[group[k], goals[g]], problem.force[goals[g], STRENGTH]
            band[k, g, TOP], band[k, g, BOTTOM] = max(row[HIGH], row[MEAN] + row[BOUND]), min(row[LOW], row[MEAN] - row[BOUND])
            band[k, g, WEIGHT], band[k, g, COUNT] = row[SCALE] * strength / prices.goal, len(group) if strength >= HARD_WEIGHT else 1
    free, found = np.zeros(n, np.int64), whole(0)
    for b in group:
        for i in range(state.hosts[b]):
            p = state.hosted[b, i] // slots
            if problem.partition[p, MOVABLE] == 1 and in_set(problem, p, b):
                free[found] = state.hosted[b, i]
                found += 1
    return Pool(group, seat, free[:found].copy(), column, band, np.empty((most, 3), np.int64), np.zeros(2, np.int64), prices)


@inner
def go_back(problem: Problem, state: State, pool: Pool, steps: int) -> None:
    """Undo all steps but the first `steps`."""
    while pool.at[0] > steps:
        pool.at[0] -= 1
        undo(problem, state, whole(pool.taken[pool.at[0], 0]), whole(pool.taken[pool.at[0], 1]), whole(pool.taken[pool.at[0], 2]))


@inner
def settle(problem: Problem, state: State, pool: Pool) -> None:
    """Go back to the best placement, and bring scores and potentials of all brokers up to date."""
    go_back(problem, state, pool, pool.at[1])
    for b in range(len(state.hosts)):
        state.score[b, COST] = assess(problem, state, b, state.score[b])


@inner
def paid_for(problem: Problem, state: State, pool: Pool) -> float:
    """Cost of having all free replicas where they are now, in prices of a typical move."""
    paid, slots = 0.0, state.replicas.shape[1]
    for entry in pool.free:
        paid += price(problem, state.home, entry, state.replicas[entry // slots, entry % slots])
    return float(paid / pool.prices.move)


@inner
def excess(problem: Problem, state: State, pool: Pool, k: int) -> tuple[int, float]:
    """How many brokers outside broker `k` of the pool counts as, and its weighted excess in all goals. It counts as 0 within all ranges, as
    1 outside a range or with misplaced replicas of a topic, as all brokers of the pool outside a range of a hard goal."""
    b, total, out = pool.group[k], 0.0, 0
    for g in range(len(pool.column)):
        band, load = pool.band[k, g], state.load[b, pool.column[g]]
        if band[WEIGHT] > 0.0 and (load > band[TOP] or load < band[BOTTOM]):
            total += band[WEIGHT] * max(load - band[TOP], band[BOTTOM] - load)
            out = max(out, int(band[COUNT]))
    for j in range(len(problem.topic_goal)):
        if state.units[j, b] > 0.0:
            total += problem.force[problem.topic_goal[j, TOPIC_ROW], STRENGTH] / pool.prices.goal * state.units[j, b]
            out = max(out, 1)
    return out, float(total)


@inner
def count_out(problem: Problem, state: State, pool: Pool) -> int:
    """Brokers of the pool outside their target ranges, as `excess` counts them."""
    out = 0
    for k in range(len(pool.group)):
        out += excess(problem, state, pool, whole(k))[0]
    return int(out)


@inner
def fits(problem: Problem, state: State, entry: int, b: int) -> bool:
    """Whether replica `entry` may go to broker `b` by replica lists, racks and broker sets; loads are not looked at."""
    slots = state.replicas.shape[1]
    return state.hosts[b] + 1 < state.hosted.shape[1] and may_swap(problem, state, entry // slots, entry % slots, b)


@inner
def send(problem: Problem, state: State, i: int, j: int, b: int) -> None:
    """Move replica `i` to broker `b`, and `j`, unless -1, to the broker of `i`. If both are of one partition, make `i` lead it instead."""
    slots = state.replicas.shape[1]
    p, q = i // slots, j // slots
    if p == q:
        put(problem, state, p, state.replicas[p], i % slots)
        return
    a = state.replicas[p, i % slots]
    write_row(state, p, i % slots, b)
    put(problem, state, p, state.row, state.lead[p])
    if j >= 0:
        write_row(state, q, j % slots, a)
        put(problem, state, q, state.row, state.lead[q])


@inner
def undo(problem: Problem, state: State, i: int, j: int, here: int) -> None:
    """Undo `send` of replicas `i` and `j`; before it, `i` was on broker `here`."""
    if i // state.replicas.shape[1] == j // state.replicas.shape[1]:
        send(problem, state, j, i, here)
    else:
        send(problem, state, i, j, here)
