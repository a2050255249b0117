"""Lower bounds: replica moves and bytes that no plan can avoid.

For every broker and goal: the fewest replicas and the fewest bytes that must leave the broker (or come to it) before it is within its
target range, each as a fractional knapsack, which no whole number of replicas can beat; and the fewest replicas for all goals together
that the broker exceeds. Leadership transfers are free: a broker counts as if it led nothing if it holds too much (except partitions of one
replica), and as if it led everything if it holds too little. Goals on topics force moves of their own (`optimizer.topic_bounds`), and so do
racks (`optimizer.rack_bounds`); for each broker the larger need counts.
Source: ours, reference study of the planner.
"""

from __future__ import annotations

import math

import numpy as np

from cluster_model.snapshot import BrokerState
from kernels.compiled import ahead, inner, kernel, whole
from kernels.order import ascending
from optimizer.broker_sets import strays
from optimizer.parameters import SOON
from optimizer.placement.state import RACKS, State, is_active
from optimizer.placement.topic_counts import all_marked
from optimizer.plan import LowerBounds
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    DISTRIBUTION,
    FOLLOWING,
    HARD,
    HARD_RACK,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MENDABLE,
    MIN_LOAD,
    RACK_GOAL,
    STATE,
    Problem,
)
from optimizer.rack_bounds import with_racks
from optimizer.topic_bounds import forced_by_topics

Array = np.ndarray

FEW = 400  # replicas per broker, on average: with more, replicas that help several goals at once hardly change what must leave
WEIGHINGS, STRIDE = 16, 8.0  # rounds of weighing goals against each other; step of the first round
CLOSE = 0.01  # if a choice reaches every goal within this share, no weights are much better
FIRST = 4096  # partitions that are sorted first to fill a broker
SAMPLED = 16_384  # partitions that show which of all are large
ROWS = 8_192  # partitions that are looked at together


def lower_bounds(problem: Problem, state: State, topics_out: Array | None = None) -> LowerBounds:
    """Lower bounds for plans that get every broker within its target ranges (dead and draining brokers empty) from `state`.

    `topics_out` uint8 [K, T] is 0 if no broker is outside the target range of a topic, 1 if one is or may be.

    O(G P R log P). A broker that cannot reach its target range counts with the part of its need that is certain.
    """
    count, goals = len(problem.broker), len(problem.goal)
    states = problem.broker[:, STATE]
    out_moves, out_bytes = _must_go(problem, state)
    low, high = np.full((goals, count), -np.inf), np.full((goals, count), np.inf)
    for g in range(goals):
        if problem.goal[g, KIND] <= LIMIT:
            low[g], high[g] = _band(problem, state, g)
    lack = np.zeros((goals, count))
    leaving(problem, state, low, high, out_moves, out_bytes, lack)
    in_moves, in_bytes = _must_come(problem, lack, (states == BrokerState.ACTIVE) & (lack > 1e-9 * np.maximum(low, 1e-300)))
    topics = forced_by_topics(problem, state, all_marked(problem) if topics_out is None else topics_out)
    out_moves, in_moves = np.maximum(out_moves, topics.out_moves), np.maximum(in_moves, topics.in_moves)
    out_bytes, in_bytes = np.maximum(out_bytes, topics.out_bytes), np.maximum(in_bytes, topics.in_bytes)
    out_moves = np.ceil(out_moves - 1e-9)
    least_moves = max(float(out_moves.sum()), float(np.ceil(in_moves - 1e-9).sum()), float(topics.total[0]))
    least_bytes = max(float(out_bytes.sum()), float(in_bytes.sum()), float(topics.total[1]))
    if problem.setting[RACK_GOAL] == HARD_RACK and state.units[RACKS].any():
        racks = with_racks(problem, state, out_moves, out_bytes)
        least_moves, least_bytes = max(least_moves, racks[0]), max(least_bytes, racks[1])
    return LowerBounds(replica_moves=int(least_moves), bytes_to_move=math.floor(least_bytes * (1 - 1e-12)))


def _must_go(problem: Problem, state: State) -> tuple[Array, Array]:
    """float64 [B] replicas, and bytes, that have to leave dead and draining brokers, and brokers outside the set of their topic."""
    moves, data = np.zeros(len(problem.broker)), np.zeros(len(problem.broker))
    usable = np.append(problem.broker[:, STATE] != BrokerState.DEAD, False)
    for b in np.flatnonzero(np.isin(problem.broker[:, STATE], (BrokerState.DEAD, BrokerState.DRAINING))).tolist():
        partitions = state.hosted[b, : state.hosts[b]] // state.replicas.shape[1]
        counts = usable[state.replicas[partitions]].any(axis=1) & (problem.partition[partitions, MENDABLE] == 1)
        moves[b] = counts.sum()
        data[b] = np.cumsum(np.append(0.0, problem.size[partitions[counts]]))[-1]
    entries, slots = strays(problem, state.replicas), state.replicas.shape[1]
    hosts = state.replicas.ravel()[entries]
    moves += np.bincount(hosts, minlength=len(moves))
    data += np.bincount(hosts, weights=problem.size[entries // slots], minlength=len(data))
    return moves, data


def _must_come(problem: Problem, lack: Array, under: Array) -> tuple[Array, Array]:
    """float64 [B] replicas, and bytes, that have to come to each broker: the largest need in goals `under`, of loads `lack` ([G, B])."""
    moves, data = np.zeros(len(problem.broker)), np.zeros(len(problem.broker))
    goals = np.flatnonzero(under.any(axis=1))
    if not len(goals):
        return moves, data
    columns = problem.goal[goals, COLUMN]
    largest = _largest(problem.vector, columns, np.where(under[goals], lack[goals], 0.0).max(axis=1))
    amounts = most_of_each(problem.vector, columns) if problem.size.any() else np.zeros((len(goals), 0))
    for g, amount, best in zip(goals.tolist(), amounts, largest, strict=True):
        brokers = np.flatnonzero(under[g])
        moves[brokers] = np.maximum(moves[brokers], _fractions(best, np.ones(len(best)), lack[g, brokers]))
        if len(amount):
            data[brokers] = np.maximum(data[brokers], _filling(amount, problem.size, lack[g, brokers]))
    return moves, data


@kernel
def most_of_each(vector: Array, columns: Array) -> Array:
    """float64 [n, P]: the largest load of each partition, in either role, in `columns` int64 [n] of `vector`."""
    most = np.empty((len(columns), len(vector)))
    for p in range(len(vector)):
        for k in range(len(columns)):
            most[k, p] = max(vector[p, LEADING, columns[k]], vector[p, FOLLOWING, columns[k]])
    return most


@kernel
def leaving(
    problem: Problem, state: State, low: Array, high: Array, out_moves: Array, out_bytes: Array, lack: Array
) -> None:
    """Raise `out_moves` and `out_bytes` float64 [B] to what must leave each active broker; set `lack` [G, B] to the load that must come.

    `low`, `high` float64 [G, B] are the ends of target ranges. A broker may give up or take any number of leaderships for free, except
    of partitions of one replica.
    """
    slots = state.replicas.shape[1]
    room = 1
    for b in range(len(problem.broker)):
        room = max(room, state.hosts[b])
    least, most = np.zeros((len(problem.goal), room)), np.zeros((len(problem.goal), room))
    size, keys, rows = np.zeros(room), np.zeros(room), np.zeros(room, np.int64)
    few = len(state.lead) * slots <= FEW * len(problem.broker)
    out, beyond = np.zeros(len(problem.goal), np.int64), np.zeros(len(problem.goal))
    amounts = np.zeros((len(problem.goal), room if few else 0))
    for b in range(len(problem.broker)):
        outs = outside(problem, state, b, low, high, out) if is_active(problem, b) else whole(0)
        if outs == 0:
            continue
        n = state.hosts[b]
        for i in range(n):
            if i + SOON < n:
                q = state.hosted[b, i + SOON] // slots
                ahead(problem.size, q)
                ahead(problem.vector[q], LEADING)
                ahead(problem.vector[q], FOLLOWING)
            p = state.hosted[b, i] // slots
            size[i] = problem.size[p]
            alone = state.lead[p] == state.hosted[b, i] % slots  # whether it leads, and no other replica can
            for o in range(slots):
                alone = alone and (state.replicas[p, o] < 0 or state.replicas[p, o] == b)
            for k in range(outs):
                c = problem.goal[out[k], COLUMN]
                leads, follows = problem.vector[p, LEADING, c], problem.vector[p, FOLLOWING, c]
                least[k, i] = leads if alone else min(leads, follows)
                most[k, i] = max(leads, follows)
        over = whole(0)
        for k in range(outs):
            g, floor, roof = out[k], 0.0, 0.0
            for i in range(n):
                floor += least[k, i]
                roof += most[k, i]
            lack[g, b] = max(low[g, b] - roof, 0.0)
            excess = floor - high[g, b]
            if excess > 1e-9 * max(high[g, b], 1e-300):
                for i in range(n):
                    keys[i] = -least[k, i]
                out_moves[b] = max(out_moves[b], fraction(keys[:n], least[k], size, False, excess, rows))
                for i in range(n):
                    keys[i] = size[i] / least[k, i] if least[k, i] > 0.0 else np.inf
                out_bytes[b] = max(out_bytes[b], fraction(keys[:n], least[k], size, True, excess, rows))
                beyond[over] = excess
                for i in range(n if few else 0):
                    amounts[over, i] = least[k, i]
                over += 1
        if over > 1 and few:
            out_moves[b] = max(out_moves[b], fewest(amounts[:over, :n], beyond[:over]))


@inner
def fewest(amounts: Array, excess: Array) -> float:
    """A lower bound on the replicas that must leave a broker, the last in part, for `amounts` float64 [k, n] to reach `excess` float64 [k].

    Replicas that reach each excess also reach any weighted sum of them. So all weights give lower bounds, and the largest counts. A goal
    that the choice for one sum does not reach gets more weight in the next. Source: surrogate relaxation (Glover, 1968).
    """
    count, n = amounts.shape
    weight, reached = np.zeros(count), np.zeros(count)
    for k in range(count):
        weight[k] = 1.0 / excess[k]
    best = 0.0
    for turn in range(WEIGHINGS):
        need = 0.0
        for k in range(count):
            need += weight[k] * excess[k]
        summed = np.zeros(n)
        for k in range(count):
            for i in range(n):
                summed[i] += weight[k] * amounts[k, i]
        order = ascending(-summed)
        have, taken = 0.0, 0
        reached[:] = 0.0
        while taken < n and have + summed[order[taken]] < need:
            have += summed[order[taken]]
            for k in range(count):
                reached[k] += amounts[k, order[taken]]
            taken += 1
        part = 0.0
        if taken < n:
            part = (need - have) / summed[order[taken]]
        best = max(best, taken + part)
        most = 0.0
        for k in range(count):
            if taken < n:
                reached[k] += part * amounts[k, order[taken]]
            most = max(most, abs(1.0 - reached[k] / excess[k]))
        if most <= CLOSE:
            break
        for k in range(count):
            lack = (1.0 - reached[k] / excess[k]) / most * STRIDE / (1.0 + turn)
            weight[k] *= 1.0 + lack if lack > 0.0 else 1.0 / (1.0 - lack)
    return best


@inner
def outside(problem: Problem, state: State, b: int, low: Array, high: Array, out: Array) -> int:
    """Write the goals in which broker `b` is outside its target range into `out` int64 [G]; returns how many. Others force nothing."""
    count = whole(0)
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT:
            load = state.load[b, problem.goal[g, COLUMN]]
            if load > high[g, b] or load < low[g, b]:
                out[count] = g
                count += 1
    return count


@inner
def fraction(keys: Array, amount: Array, size: Array, by_size: bool, need: float, rows: Array) -> float:
    """Price (1 for each item, or its size) of taking items in ascending order of `keys`, the last in part, until `need` is reached.

    `rows` int64 [n] is scratch space. Expected O(n): halves are taken or left as a whole, nothing is sorted.
    """
    paid, gone = 0.0, 0.0
    start, stop = 0, 0
    for i in range(len(keys)):
        if amount[i] > 0.0:
            rows[stop] = i
            stop += 1
    while start < stop:
        x, y, z = keys[rows[start]], keys[rows[(start + stop) // 2]], keys[rows[stop - 1]]
        pivot = max(min(x, y), min(max(x, y), z))
        below = start
        for i in range(start, stop):  # without a branch: no processor could predict it
            row = rows[i]
            rows[i], rows[below] = rows[below], row
            below += 1 if keys[row] < pivot else 0
        have, cost = 0.0, 0.0
        for i in range(start, below):
            have += amount[rows[i]]
            cost += size[rows[i]] if by_size else 1.0
        if gone + have >= need:
            stop = below
            continue
        gone += have
        paid += cost
        start = below
        for i in range(start, stop):
            row = rows[i]
            rows[i], rows[below] = rows[below], row
            below += 1 if keys[row] == pivot else 0
        for j in range(start, below):  # equal keys: any order costs the same
            row = rows[j]
            price = size[row] if by_size else 1.0
            if gone + amount[row] >= need:
                return float(paid + price * (need - gone) / amount[row])
            gone += amount[row]
            paid += price
        start = below
    return float(paid)


def _fits(problem: Problem, state: State, g: int) -> bool:
    """Whether active brokers could hold their load under the ceilings of limit `g`, each replica in the role with the smaller load."""
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    vector = problem.vector[:, :, problem.goal[g, COLUMN]]
    held = active[state.replicas] & (state.replicas >= 0)
    least = float((vector.min(axis=1)[:, None] * held).sum())
    return least <= float(problem.table[active, g, CEILING].sum())


def _band(problem: Problem, state: State, g: int) -> tuple[Array, Array]:
    """float64 [B] low and high end of loads that score 1 (or are under the ceiling). A soft limit that cannot hold everywhere has none."""
    table = problem.table[:, g]
    if problem.goal[g, KIND] != DISTRIBUTION:
        binds = problem.goal[g, HARD] == 1 or _fits(problem, state, g)
        return np.full(len(table), -np.inf), table[:, CEILING] if binds else np.full(len(table), np.inf)
    mean = table[:, MEAN]
    low, high = mean - table[:, BOUND], mean + table[:, BOUND]
    quiet = mean < problem.force[g, MIN_LOAD]
    high = np.where(quiet, np.maximum(high, problem.force[g, MIN_LOAD]), high)
    return np.where(quiet | (mean <= 0), -np.inf, low), np.where(mean <= 0, np.inf, high)


def _filling(amount: Array, size: Array, lack: Array) -> Array:
    """float64 [n]: the least total `size` of partitions whose `amount` supplies each `lack`; every broker may use the best partitions."""
    rows: Array | slice = slice(None)
    if not (amount > 0.0).all():
        rows = np.flatnonzero(amount > 0.0)
        amount = amount[rows]
    best = _first(size[rows] / amount, amount, lack.max())
    return _fractions(amount[best], size[rows][best], lack)


def _largest(vector: Array, columns: Array, needs: Array) -> list[Array]:
    """For each of `columns` of `vector`: the largest amounts of all partitions, in either role, descending, that add up to more than its
    entry of `needs` (or all amounts).

    A sample of partitions shows which amounts are large. Then all partitions are read a few thousand at a time, so that they are fetched
    once for all columns.
    """
    stride = max(len(vector) // SAMPLED, 1)
    some, result = np.sort(vector[::stride].max(axis=1)[:, columns], axis=0)[::-1], [np.zeros(0)] * len(columns)
    left, most = list(range(len(columns))), FIRST
    while left:
        cuts = [float(some[most // stride, i]) if most < len(vector) - stride else 0.0 for i in left]
        above: list[list[Array]] = [[] for _ in left]
        level = [0] * len(left)  # partitions exactly at the cut
        for start in range(0, len(vector), ROWS):
            block = vector[start : start + ROWS]
            for n, i in enumerate(left):
                amount = np.maximum(block[:, LEADING, columns[i]], block[:, FOLLOWING, columns[i]])
                above[n].append(amount[amount > cuts[n]])
                level[n] += int((amount == cuts[n]).sum()) if cuts[n] > 0.0 else 0
        short = []
        for n, i in enumerate(left):
            equal = min(level[n], int(needs[i] / cuts[n]) + 2) if cuts[n] > 0.0 else 0
            result[i] = np.concatenate([np.sort(np.concatenate([np.zeros(0), *above[n]]))[::-1], np.full(equal, cuts[n])])
            if cuts[n] > 0.0 and result[i].sum() <= needs[i]:
                short.append(i)
        left, most = short, most * 8
    return result


def _first(keys: Array, amount: Array, need: float) -> Array:
    """int64: rows in ascending order of `keys`, equal keys by row, as many as add up to more than `need` (or all)."""
    most = FIRST
    while most < len(keys):
        last = np.partition(keys, most - 1)[most - 1]
        below = np.flatnonzero(keys < last)
        rows = np.concatenate([below, np.flatnonzero(keys == last)[: most - len(below)]])
        if amount[rows].sum() > need:
            return np.asarray(rows[np.argsort(keys[rows], kind="stable")])
        most *= 8
    return np.argsort(keys, kind="stable")


def _fractions(amount: Array, price: Array, need: Array) -> Array:
    """float64 [n]: price of taking items in the given order, the last in part, until each `need` is reached or all are taken."""
    if not len(amount):
        return np.zeros(len(need))
    taken = np.concatenate([[0.0], np.cumsum(amount)])
    paid = np.concatenate([[0.0], np.cumsum(price)])
    at = np.minimum(np.searchsorted(taken, need) - 1, len(amount))
    last = np.minimum(at, len(amount) - 1)
    return np.asarray(paid[at] + np.where(at < len(amount), (need - taken[at]) / amount[last], 0.0) * price[last])
