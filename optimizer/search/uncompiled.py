"""Kernels as they run without a compiler: many replicas at once by numpy, single brokers by plain floats.

Each stands in for the loop of the same name (`cluster_model.compiled.inner_as` and `kernel_as` choose) and gives the same bits:
the same operations in the same order per element, and loads lie on a grid on which sums are exact in any order. Plain floats from
``tolist`` are several times faster than elements of arrays.
"""

from __future__ import annotations

import numpy as np

from goals.score import TOLERANCE, distribution_score, limit_score, units_score
from optimizer.problem import (
    ABSOLUTE,
    BOUND,
    CEILING,
    COLUMN,
    COUNTS_LEADERS,
    DISTRIBUTION,
    FOLLOWING,
    GROUP,
    GROUPS,
    HARD,
    HARD_RACK,
    HIGH,
    KIND,
    LEADING,
    LIMIT,
    LOW,
    MEAN,
    MIN_LOAD,
    NO_RACK_GOAL,
    RACK,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    SAME_RACK,
    SCALE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    TOPIC_OF,
    TOPIC_ROW,
    WEIGHT,
    Problem,
)
from optimizer.search.shelf import Shelf
from optimizer.search.state import LED, RACKS, STRAY, State

# --- one broker ------------------------------------------------------------------------------------------------------


def linear_cost(problem: Problem, b: int, g: int, load: float) -> float:
    """`optimizer.search.broker_scores.linear_cost`."""
    mean, _, _, _, high, low, scale = problem.table[b, g].tolist()
    strength, spread = problem.force[g, [STRENGTH, SPREAD]].tolist()
    return _cost(float(load), mean, high, low, scale, strength, spread)


def _cost(load: float, mean: float, high: float, low: float, scale: float, strength: float, spread: float) -> float:
    over, under = load - high, low - load
    beyond = over if over > 0.0 else (under if under > 0.0 else 0.0)
    beyond *= scale
    off = (load - mean) * scale
    square = beyond * beyond
    return strength * square * (1.0 + STEEP * square) + spread * off * off


def assess(problem: Problem, state: State, b: int, score: np.ndarray) -> float:
    """`optimizer.search.broker_scores.assess`."""
    table, loads, units = problem.table[b].tolist(), state.load[b].tolist(), state.units[:, b].tolist()
    eligible = problem.broker[b, STATE] == 0
    cost = 0.0
    scores = []
    for goal, force, (mean, bound, var, ceiling, high, low, scale) in zip(
        problem.goal.tolist(), problem.force.tolist(), table, strict=True
    ):
        kind, column = goal[KIND], goal[COLUMN]
        if kind == DISTRIBUTION:
            if not eligible:
                scores.append(1.0)
                continue
            load = loads[column]
            scores.append(distribution_score(load, mean, bound, var, goal[ABSOLUTE] == 1, force[MIN_LOAD]))
            cost += _cost(load, mean, high, low, scale, force[STRENGTH], force[SPREAD])
        elif kind == LIMIT:
            load = loads[column]
            scores.append(limit_score(load, ceiling))
            cost += _cost(load, mean, high, low, scale, force[STRENGTH], force[SPREAD])
        elif kind == RACK:
            scores.append(units_score(units[RACKS]))
        else:
            scores.append(units_score(units[column]))
            if eligible:
                cost += force[STRENGTH] * units[column]
    score[: len(scores)] = scores
    return cost


def cost_of_gaining(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    """`optimizer.search.costs.cost_of_gaining`; roles below 0 are no replica."""
    cost = _cost_on_loads(problem, state, b, p, held, role)
    if len(problem.topic_goal):
        cost = _cost_of_topics(problem, state, b, p, held, role, cost)
    return cost


def _cost_on_loads(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    cost = 0.0
    loads, vectors = state.load[b].tolist(), problem.vector[p].tolist()
    forces = problem.force.tolist()
    for g, (goal, row) in enumerate(zip(problem.goal.tolist(), problem.table[b].tolist(), strict=True)):
        mean, _, _, _, high, low, scale = row
        if goal[KIND] <= LIMIT and scale > 0.0:
            c = goal[COLUMN]
            load = after = loads[c]
            if role >= 0:
                after += vectors[role][c]
            if held >= 0:
                after -= vectors[held][c]
            if after != load:
                strength, spread = forces[g][STRENGTH], forces[g][SPREAD]
                cost += _cost(after, mean, high, low, scale, strength, spread) - _cost(
                    load, mean, high, low, scale, strength, spread
                )
    return cost


def _cost_of_topics(problem: Problem, state: State, b: int, p: int, held: int, role: int, cost: float) -> float:
    from optimizer.search.topic_counts import topic_rise

    for k in range(len(problem.topic_goal)):
        if problem.topic_goal[k, COUNTS_LEADERS] == 1:
            by = (1 if role == LEADING else 0) - (1 if held == LEADING else 0)
        else:
            by = (1 if role >= 0 else 0) - (1 if held >= 0 else 0)
        if by != 0:
            rise = topic_rise(problem, state, k, problem.partition[p, TOPIC_OF], b, by)
            cost += float(problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]) * rise
    return cost


def short_list(
    problem: Problem, state: State, p: int, s: int, felt: np.ndarray, slope: np.ndarray, targets: np.ndarray, tries: int,
    chosen: np.ndarray, keys: np.ndarray,
) -> int:  # fmt: skip
    """`optimizer.search.drain.short_list`."""
    targets, lists = targets[:tries], state.replicas[p]
    racks, others = problem.broker[targets, RACK_OF], lists[lists >= 0]
    legal = (targets[:, None] != lists).all(axis=1)
    if problem.setting[RACK_GOAL] == HARD_RACK:
        taken, old, limit = problem.broker[others, RACK_OF], problem.broker[lists[s], RACK_OF], problem.partition[p, RACK_LIMIT]
        if (taken == old).sum() <= limit:
            legal &= (racks == old) | (1 + (taken == racks[:, None]).sum(axis=1) <= limit)
    targets = targets[legal]
    amount = problem.vector[p, LEADING if state.lead[p] == s else FOLLOWING]
    key = np.zeros(len(targets))
    for k, g in enumerate(felt.tolist()):
        key += slope[targets, k] * amount[problem.goal[g, COLUMN]]
    best = targets[np.argsort(key, kind="stable")[: len(chosen)]]
    chosen[: len(best)] = best
    return len(best)


def load_cost_of_taking(
    problem: Problem, state: State, felt: np.ndarray, known: np.ndarray, b: int, p: int, role: int
) -> float:
    """`optimizer.search.costs.load_cost_of_taking`."""
    return _cost_on_loads(problem, state, b, p, -1, role)


def cost_of_taking(problem: Problem, state: State, felt: np.ndarray, known: np.ndarray, b: int, p: int, role: int) -> float:
    """`optimizer.search.costs.cost_of_taking`."""
    return cost_of_gaining(problem, state, b, p, -1, role)


def leaves_band(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> bool:
    """`optimizer.search.homeward.leaves_band`; roles below 0 are no replica."""
    if problem.broker[b, STATE] != 0:
        return False
    loads, vectors, scores = state.load[b].tolist(), problem.vector[p].tolist(), state.score[b].tolist()
    forces = problem.force.tolist()
    for g, (goal, row) in enumerate(zip(problem.goal.tolist(), problem.table[b].tolist(), strict=True)):
        if goal[KIND] > LIMIT or scores[g] < 1.0:
            continue
        c = goal[COLUMN]
        load = loads[c]
        if role >= 0:
            load += vectors[role][c]
        if held >= 0:
            load -= vectors[held][c]
        if goal[KIND] == LIMIT:
            if load > row[CEILING]:
                return True
        elif abs(load - row[MEAN]) > row[BOUND] * (1.0 + TOLERANCE) and load > forces[g][MIN_LOAD] and row[MEAN] > 0.0:
            return True
    return False


# --- one partition ---------------------------------------------------------------------------------------------------


def rack_units(problem: Problem, state: State, p: int, sign: float) -> int:
    """`optimizer.search.broker_scores.rack_units`."""
    brokers = state.replicas[p].tolist()
    racks = [problem.broker[b, RACK_OF] if b >= 0 else None for b in brokers]
    limit = problem.partition[p, RACK_LIMIT]
    excess = 0
    for s, b in enumerate(brokers):
        if b < 0:
            continue
        same = racks.count(racks[s])
        if same > limit:
            state.units[RACKS, b] += sign
            if racks.index(racks[s]) == s:
                excess += same - int(limit)
    return excess


def fits_rack(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`optimizer.search.hosting.fits_rack`."""
    if problem.setting[RACK_GOAL] != 2:
        return True
    brokers = state.replicas[p].tolist()
    new, old = problem.broker[target, RACK_OF], problem.broker[brokers[s], RACK_OF]
    if old == new:
        return True
    racks = [problem.broker[b, RACK_OF] for b in brokers if b >= 0]
    limit = problem.partition[p, RACK_LIMIT]
    return bool(1 + racks.count(new) <= limit or racks.count(old) > limit)


def may_host(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`optimizer.search.hosting.may_host`."""
    if problem.broker[target, STATE] != 0 or state.hosts[target] >= state.hosted.shape[1]:
        return False
    if target in state.replicas[p].tolist() or not fits_rack(problem, state, p, s, target):
        return False
    role = LEADING if state.lead[p] == s else FOLLOWING
    for g, goal in enumerate(problem.goal.tolist()):
        if goal[KIND] == LIMIT and goal[HARD] == 1:
            c = goal[COLUMN]
            amount = problem.vector[p, role, c]
            if amount > 0.0 and state.load[target, c] + amount > problem.table[target, g, CEILING]:
                return False
    return True


def rack_mates(problem: Problem, state: State, p: int, b: int) -> int:
    """`optimizer.search.racks.rack_mates`."""
    rack = problem.broker[b, RACK_OF]
    return sum(1 for o in state.replicas[p].tolist() if o >= 0 and problem.broker[o, RACK_OF] == rack)


def combine(problem: Problem, scores: np.ndarray) -> tuple[bool, float]:
    """`optimizer.search.evaluate.combine`."""
    total, weights = 0.0, 0.0
    one_above, none_below = False, True
    rows = list(zip(problem.goal.tolist(), problem.force[:, WEIGHT].tolist(), scores.tolist(), strict=True))
    for group in range(int(problem.setting[GROUPS])):
        part, weight = 0.0, 0.0
        for goal, force, score in rows:
            if goal[HARD] == 0 and goal[GROUP] == group:
                part += force * score
                weight += force
        if weight > 0.0:
            mean = part / weight
            if mean > 0.5 + 1e-9 + 5e-10:
                one_above = True
            if mean < 0.5 - 1e-9 + 5e-10:
                none_below = False
            total += part
            weights += weight
    if weights <= 0.0:
        return False, 0.5
    return one_above and none_below, total / weights


# --- many replicas ---------------------------------------------------------------------------------------------------


def fill(problem: Problem, state: State) -> None:
    """`optimizer.search.commit.fill`."""
    from optimizer.search.topic_counts import count_topics

    slots = state.replicas.shape[1]
    flat = state.replicas.reshape(-1)
    entry = np.flatnonzero(flat >= 0)
    broker = flat[entry]
    leads = state.lead[entry // slots] == entry % slots
    role = np.where(leads, LEADING, FOLLOWING)
    for c in range(state.load.shape[1]):
        state.load[:, c] += np.bincount(broker, weights=problem.vector[entry // slots, role, c], minlength=len(state.hosts))
    order = np.argsort(broker, kind="stable")
    counts = np.bincount(broker, minlength=len(state.hosts))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    state.place.reshape(-1)[entry[order]] = rank
    state.hosted[broker[order], rank] = entry[order]
    state.mark[broker[order], rank] = np.where(leads[order], LED, 0)
    state.hosts[:] = counts
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        crowded = _crowded(problem, state.replicas)
        state.units[RACKS] += np.bincount(state.replicas[crowded], minlength=len(state.hosts))
    for k in range(len(problem.topic_goal)):
        count_topics(problem, state, k)
    for b in range(len(state.hosts)):
        state.score[b, -1] = assess(problem, state, b, state.score[b])


def _crowded(problem: Problem, replicas: np.ndarray) -> np.ndarray:
    """bool [P, R]: the replica stands in a rack that holds more of its partition than may be there."""
    racks = np.append(problem.broker[:, RACK_OF], -1)[replicas]
    same = np.zeros(replicas.shape, np.int64)
    for s in range(replicas.shape[1]):
        same += racks == racks[:, s : s + 1]
    return np.asarray((same > problem.partition[:, RACK_LIMIT, None]) & (replicas >= 0))


def gather(problem: Problem, state: State, shelf: Shelf, b: int, thrifty: bool, factors: np.ndarray) -> int:
    """`optimizer.search.candidates.gather`."""
    n = int(state.hosts[b])
    marks = state.mark[b, :n]
    role = np.where(marks & LED, LEADING, FOLLOWING)
    shelf.vector[b, :, :n] = problem.compact[state.hosted[b, :n] // state.replicas.shape[1], role, : shelf.vector.shape[1]].T
    factor = factors[:n]
    factor[:] = shelf.vector[b, -1, :n]
    stray = ((marks & STRAY) != 0) & (factor > 0.0)
    if thrifty:
        factor[~stray] *= factor[~stray]
    factor[stray] = 10.0
    return n


def scan(
    problem: Problem, state: State, watched: np.ndarray, source: int, target: int, n: int, block: np.ndarray,
    gains: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.candidates.scan`."""
    total = np.zeros(n)
    for g in watched.tolist():
        c = int(problem.goal[g, COLUMN])
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        ms, _, _, _, hs, os, ss = problem.table[source, g].tolist()
        mt, _, _, _, ht, ot, st = problem.table[target, g].tolist()
        if ss == 0.0 and st == 0.0:
            continue
        ls, lt = float(state.load[source, c]), float(state.load[target, c])
        now = _cost(ls, ms, hs, os, ss, w, e) + _cost(lt, mt, ht, ot, st, w, e)
        x = block[c, :n].astype(np.float64)
        a, b = ls - x, lt + x
        beyond = (np.maximum(a - hs, 0.0) + np.maximum(os - a, 0.0)) * ss
        off = (a - ms) * ss
        beyond2 = (np.maximum(b - ht, 0.0) + np.maximum(ot - b, 0.0)) * st
        off2 = (b - mt) * st
        beyond *= beyond
        beyond2 *= beyond2
        cost = beyond * (1.0 + STEEP * beyond) + beyond2 * (1.0 + STEEP * beyond2)
        total += now - w * cost - e * (off * off + off2 * off2)
    gains[:n] = total


def swap_gains(
    problem: Problem, state: State, watched: np.ndarray, v: int, u: int, x: np.ndarray, i: int, n: int, y: np.ndarray,
    gains: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.swaps.swap_gains`."""
    total = np.zeros(n)
    for g in watched.tolist():
        c = int(problem.goal[g, COLUMN])
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        mv, _, _, _, hv, ov, sv = problem.table[v, g].tolist()
        mu, _, _, _, hu, ou, su = problem.table[u, g].tolist()
        if sv == 0.0 and su == 0.0:
            continue
        lv, lu = float(state.load[v, c]), float(state.load[u, c])
        now = _cost(lv, mv, hv, ov, sv, w, e) + _cost(lu, mu, hu, ou, su, w, e)
        d = x[c, i] - y[c, :n]
        a, b = lv - d, lu + d
        beyond = (np.maximum(a - hv, 0.0) + np.maximum(ov - a, 0.0)) * sv
        off = (a - mv) * sv
        beyond2 = (np.maximum(b - hu, 0.0) + np.maximum(ou - b, 0.0)) * su
        off2 = (b - mu) * su
        beyond *= beyond
        beyond2 *= beyond2
        cost = beyond * (1.0 + STEEP * beyond) + beyond2 * (1.0 + STEEP * beyond2)
        total += now - w * cost - e * (off * off + off2 * off2)
    gains[:n] = total


def keep_best(keys: np.ndarray, n: int, floor: float, most: int, kept: np.ndarray, spare: np.ndarray) -> int:
    """`optimizer.search.candidates.keep_best`."""
    found = np.flatnonzero(keys[:n] > floor)
    if len(found) > most:
        above = keys[found]
        cut = np.partition(above, len(above) - most)[len(above) - most]
        found = np.concatenate([found[above > cut], found[above == cut]])[:most]
    kept[: len(found)] = found
    return len(found)


def cut_of(keys: np.ndarray, n: int, floor: float, most: int, spare: np.ndarray) -> float:
    """`optimizer.search.candidates.cut_of`."""
    above = keys[:n][keys[:n] > floor]
    return float(np.partition(above, len(above) - most)[len(above) - most])


def best_key(gains: np.ndarray, factors: np.ndarray, entries: np.ndarray, found: int, least: float) -> int:
    """`optimizer.search.candidates.best_key`."""
    keys = np.where(gains[:found] > least, gains[:found] * factors[:found], 0.0)
    top = keys.max()
    if not top > 0.0:
        return -1
    equal = np.flatnonzero(keys == top)
    return int(equal[np.argmin(entries[equal])])


def rank_partners(
    problem: Problem, state: State, watched: np.ndarray, v: int, most: int, noise: int, partners: np.ndarray,
    worth: np.ndarray,
) -> int:  # fmt: skip
    """`optimizer.search.partners.rank_partners`."""
    worth[:] = 0.0
    for g in watched.tolist():
        c = int(problem.goal[g, COLUMN])
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        mv, _, _, _, hv, ov, sv = problem.table[v, g].tolist()
        lv = float(state.load[v, c])
        now = _cost(lv, mv, hv, ov, sv, w, e)
        lu, mu, hu, ou, su = state.load[:, c], *(problem.table[:, g, i] for i in (MEAN, HIGH, LOW, SCALE))
        both = mv + mu
        share = np.full(len(worth), 0.5)
        if problem.goal[g, KIND] == DISTRIBUTION:
            np.divide(mv, both, out=share, where=both > 0.0)
        mid = (lv + lu) * share
        rest = lv + lu - mid
        x = np.maximum(np.maximum(lu - hu, ou - lu), 0.0) * su
        y = np.maximum(np.maximum(mid - hv, ov - mid), 0.0) * sv
        z = np.maximum(np.maximum(rest - hu, ou - rest), 0.0) * su
        x *= x
        y *= y
        z *= z
        cost = x * (1.0 + STEEP * x) - y * (1.0 + STEEP * y) - z * (1.0 + STEEP * z)
        x, y, z = (lu - mu) * su, (mid - mv) * sv, (rest - mu) * su
        worth += now + w * cost + e * (x * x - y * y - z * z)
    unfit = (problem.broker[:, STATE] != 0) | ~(worth > 0.0)
    if problem.setting[SAME_RACK] == 1:
        unfit |= problem.broker[:, RACK_OF] != problem.broker[v, RACK_OF]
    unfit[v] = True
    if noise != 0:
        worth *= 1.0 - 0.3 * ((scrambled(noise + v * 1000003 + np.arange(len(worth))) & 0xFFFF) / 65536.0)
    worth[unfit] = -1.0
    order = np.argsort(-worth, kind="stable")[:most]
    found = order[worth[order] > 0.0]
    partners[: len(found)] = found
    worth[found] = -1.0
    return len(found)


def scrambled(x: np.ndarray) -> np.ndarray:
    """`optimizer.search.chance.scramble` of int64 [n]."""
    z = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)


def scramble(x: int) -> int:
    """`optimizer.search.chance.scramble`."""
    mask = 0xFFFFFFFFFFFFFFFF
    z = (int(x) + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) >> 2


def take(block: np.ndarray, factors: np.ndarray, kept: np.ndarray, found: int, small: np.ndarray) -> None:
    """`optimizer.search.topics.take`."""
    small[:, :found] = block[:, kept[:found]]
    small[-1, :found] = factors[kept[:found]]


def closest(
    amount: np.ndarray, free: np.ndarray, held: int, source: np.ndarray, target: np.ndarray, both: bool
) -> tuple[int, float]:
    """`optimizer.search.regroup.closest`."""
    far = np.zeros(held)
    for k in range(len(source)):
        _add_distance(far, source[k, 0] - amount[k, :held], source[k])
        if both:
            _add_distance(far, target[k, 0] + amount[k, :held], target[k])
    far[free[:held] != 1] = np.inf
    best = int(np.argmin(far)) if held else -1
    return (best, float(far[best])) if held and far[best] < np.inf else (-1, np.inf)


def _add_distance(far: np.ndarray, load: np.ndarray, need: np.ndarray) -> None:
    _, low, high, scale = need.tolist()
    far += np.where(load > high, (load - high) * scale, np.where(load < low, (low - load) * scale, 0.0))


def fewest(amounts: np.ndarray, excess: np.ndarray) -> float:
    """`optimizer.bounds.fewest`; running sums are in the order of its loops."""
    n = amounts.shape[1]
    weight, best = 1.0 / excess, 0.0
    for turn in range(16):
        need, summed = 0.0, np.zeros(n)
        for k in range(len(excess)):
            need += float(weight[k] * excess[k])
            summed += weight[k] * amounts[k]
        order = np.argsort(-summed, kind="stable")
        have = np.cumsum(summed[order])
        taken = int(np.searchsorted(have, need))
        before = np.concatenate([np.zeros((len(excess), 1)), np.cumsum(amounts[:, order], axis=1)], axis=1)
        reached, part = before[:, taken].copy(), 0.0
        if taken < n:
            part = (need - (float(have[taken - 1]) if taken else 0.0)) / float(summed[order[taken]])
            reached += part * amounts[:, order[taken]]
        best = max(best, taken + part)
        off = 1.0 - reached / excess
        most = float(np.abs(off).max())
        if most <= 0.01:
            break
        lack = off / most * 8.0 / (1.0 + turn)
        weight *= np.where(lack > 0.0, 1.0 + lack, 1.0 / (1.0 - np.minimum(lack, 0.0)))
    return best


def smallest(
    amounts: np.ndarray, sizes: np.ndarray, n: int, low: np.ndarray, high: np.ndarray, floor: float, after: int, roof: float
) -> int:
    """`optimizer.search.substitute.smallest`."""
    size = sizes[:n]
    good = (size < roof) & ((size > floor) | ((size == floor) & (np.arange(n) > after)))
    for k in range(len(low)):
        good &= (amounts[k, :n] >= low[k]) & (amounts[k, :n] <= high[k])
    rows = np.flatnonzero(good)
    return int(rows[np.argmin(size[rows])]) if len(rows) else -1


def carry(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> int:
    """`optimizer.search.commit.carry`."""
    racks = problem.setting[RACK_GOAL] != NO_RACK_GOAL
    old_lead, lead = int(state.lead[p]), int(lead)
    excess = -rack_units(problem, state, p, -1.0) if racks else 0
    slots = state.replicas.shape[1]
    for s, (old, new) in enumerate(zip(state.replicas[p].tolist(), replicas[:slots].tolist(), strict=True)):
        if old < 0 or (old == new and (s == old_lead) == (s == lead)):
            continue
        state.load[old] -= problem.vector[p, LEADING if s == old_lead else FOLLOWING]
        state.load[new] += problem.vector[p, LEADING if s == lead else FOLLOWING]
    state.replicas[p] = replicas[:slots]
    state.lead[p] = lead
    return excess + rack_units(problem, state, p, 1.0) if racks else excess


def promises(
    problem: Problem, state: State, shelf: Shelf, led: np.ndarray, v: int, over: bool, under: bool, slopes: np.ndarray,
    mine: np.ndarray, bounds: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.leadership.promises`."""
    n = int(state.hosts[v])
    leads = (state.mark[v, :n] & LED) != 0
    rows = state.hosted[v, :n] // state.replicas.shape[1]
    both = problem.compact[rows]
    chosen = (both[:, LEADING, state.load.shape[1]] != 0.0) & np.where(leads, over, under)
    topics = problem.topic_goal[problem.topic_goal[:, COUNTS_LEADERS] == 1, TOPIC_ROW] if len(problem.topic_goal) else []
    total = np.where(chosen, 0.0, -np.inf)
    mine[:n] = 2.0 * problem.force[topics, STRENGTH].sum() if len(topics) else 0.0
    others = np.arange(len(problem.broker)) != v
    for g in led.tolist():
        c = int(problem.goal[g, COLUMN])
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        loads, table = state.load[:, c], problem.table[:, g]
        beyond = np.maximum(loads - table[:, HIGH], 0.0) - np.maximum(table[:, LOW] - loads, 0.0)
        beyond *= table[:, SCALE]
        slope = 2.0 * table[:, SCALE] * (
            w * beyond * (1.0 + 2.0 * STEEP * beyond * beyond) + e * (loads - table[:, MEAN]) * table[:, SCALE]
        )
        slopes[:, g] = slope
        rising, falling = -slope[others].min(), slope[others].max()
        mean, _, _, _, high, low, scale = table[v].tolist()
        load = float(loads[v])
        x = both[:, LEADING, c].astype(np.float64) - both[:, FOLLOWING, c]
        shelf.lead[v, shelf.seat[g], :n] = x
        x = np.where(leads, x, -x)
        now = _cost(load, mean, high, low, scale, w, e)
        out = (np.maximum(load - x - high, 0.0) + np.maximum(low - load + x, 0.0)) * scale
        off = (load - x - mean) * scale
        gain = now - w * out * out * (1.0 + STEEP * out * out) - e * off * off
        theirs = np.where(x > 0.0, rising, -falling) * x
        mine[:n] += gain + 1e-6 * np.abs(gain) + 1e-12 * now
        total += theirs + 1e-6 * np.abs(theirs)
    bounds[:n] = total + mine[:n]


def transfer_gain(
    problem: Problem, state: State, watched: np.ndarray, p: int, giver: int, taker: int, costs: np.ndarray
) -> float:
    """`optimizer.search.leadership.transfer_gain`."""
    from optimizer.search.candidates import topic_burden

    gain = 0.0
    both = problem.compact[p, :2].tolist()
    for g in watched.tolist():
        c = int(problem.goal[g, COLUMN])
        x = both[LEADING][c] - both[FOLLOWING][c]
        if x != 0.0:
            w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
            ma, _, _, _, ha, oa, sa = problem.table[giver, g].tolist()
            mb, _, _, _, hb, ob, sb = problem.table[taker, g].tolist()
            a, b = float(state.load[giver, c]), float(state.load[taker, c])
            gain += (
                float(costs[giver, g]) + float(costs[taker, g])
                - _cost(a - x, ma, ha, oa, sa, w, e) - _cost(b + x, mb, hb, ob, sb, w, e)
            )  # fmt: skip
    if gain > 0.0 and len(problem.topic_goal) > 0:
        gain -= topic_burden(problem, state, p, False, True, giver, taker)
    return gain


def ascending(keys: np.ndarray) -> np.ndarray:
    """`optimizer.search.order.ascending`."""
    return np.argsort(keys, kind="stable").astype(np.int64)
