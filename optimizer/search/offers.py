"""The best trade between two brokers, better or not: a replica for one of the other, a replica for nothing, or a leadership.

Called by `relay`. Judges by the potential alone.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, inner_as, whole
from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    HIGH,
    LEADING,
    LOW,
    MEAN,
    MOVABLE,
    SCALE,
    SIZE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    TOPIC_OF,
    Problem,
)
from optimizer.search.candidates import gather, keep_best, scan, topic_burden
from optimizer.search.chance import scramble
from optimizer.search.costs import cost_of_gaining
from optimizer.search.exchange import BYTES_PRICE
from optimizer.search.shelf import Shelf
from optimizer.search.state import LED, State
from optimizer.search.swaps import may_swap

OFFERED = 48  # replicas of a broker that are looked at for one other
LEADERSHIPS_LOOKED = 128
TERMS, PRICE, BURDEN = 2, 0, 1  # what a trade costs beside loads: a small price for bytes, and what topics feel


@inner
def offer(
    problem: Problem, state: State, shelf: Shelf, goals: np.ndarray, source: int, target: int, turn: int, rests: np.ndarray,
    typical: float, factors: np.ndarray, gains: np.ndarray, kept: np.ndarray, spare: np.ndarray, out: np.ndarray,
    terms: np.ndarray, entries: np.ndarray,
) -> int:  # fmt: skip
    """Replicas of `source` that `target` may take: half those that do best there, half any. Returns how many.

    Their vectors go into `out` float64 [C, n + 1], the last of which is nothing; what else they cost into `terms` [2, n + 1], and
    entries into `entries` int64 [n]. Partitions whose `rests` int64 [P] is above `turn` stay.
    """
    slots, block = state.replicas.shape[1], shelf.vector[source]
    n = gather(problem, state, shelf, source, False, factors)
    scan(problem, state, goals, source, target, n, block, gains)
    pressed = False
    for k in range(len(problem.topic_goal)):
        if state.units[k, source] > 0.0 or state.units[k, target] > 0.0:
            pressed = True
    for i in range(n):
        p = state.hosted[source, i] // slots
        if factors[i] == 0.0 or rests[p] > turn:
            gains[i] = -np.inf
        elif pressed:
            gains[i] -= topic_burden(problem, state, p, True, (state.mark[source, i] & LED) != 0, source, target)
    some = whole(OFFERED if n <= OFFERED else OFFERED // 2)
    found = keep_best(gains, n, -np.inf, some, kept, spare)
    taken = put_offers(problem, state, source, target, whole(0), found, kept, typical, block, out, terms, entries)
    if found < n and found == some:
        for i in range(found):
            gains[kept[i]] = -np.inf
        for i in range(n):
            if gains[i] > -np.inf:
                gains[i] = float(scramble(state.hosted[source, i] + turn * state.replicas.size) & 0xFFFFFFFF)
        found = keep_best(gains, n, -np.inf, some, kept, spare)
        taken = put_offers(problem, state, source, target, taken, found, kept, typical, block, out, terms, entries)
    for c in range(len(out)):
        out[c, taken] = 0.0
    terms[PRICE, taken], terms[BURDEN, taken] = 0.0, 0.0
    return int(taken)


@inner
def put_offers(
    problem: Problem, state: State, source: int, target: int, taken: int, found: int, kept: np.ndarray, typical: float,
    block: np.ndarray, out: np.ndarray, terms: np.ndarray, entries: np.ndarray,
) -> int:  # fmt: skip
    """Add the `found` replicas that `kept` names, as far as `target` may take them, to the `taken` offers; returns how many there are."""
    slots = state.replicas.shape[1]
    for i in range(found):
        entry = whole(state.hosted[source, kept[i]])
        p, s = entry // slots, entry % slots
        if may_swap(problem, state, p, s, target):
            for c in range(len(out)):
                out[c, taken] = block[c, kept[i]]
            entries[taken] = entry
            terms[PRICE, taken] = BYTES_PRICE * (problem.haul[p, SIZE] / typical + 0.2)
            terms[BURDEN, taken] = 0.0
            if len(problem.topic_goal) > 0:
                terms[BURDEN, taken] = topic_burden(problem, state, p, True, state.lead[p] == s, source, target)
            taken += 1
    return taken


def best_pair_by_numpy(
    problem: Problem, state: State, goals: np.ndarray, v: int, u: int, x: np.ndarray, n: int, y: np.ndarray, m: int,
    mine: np.ndarray, theirs: np.ndarray, given: np.ndarray, got: np.ndarray, costs: np.ndarray,
) -> tuple[int, int, float]:  # fmt: skip
    """`best_pair` without a compiler."""
    n, m, slots = int(n), int(m), state.replicas.shape[1]
    burden = given[BURDEN, : n + 1, None] + got[BURDEN, None, : m + 1]
    if n and m and len(problem.topic_goal):
        topic = problem.partition[:, TOPIC_OF]
        burden[:n, :m][topic[mine[:n] // slots][:, None] == topic[theirs[:m] // slots][None, :]] = 0.0
    total = given[PRICE, : n + 1, None] + got[PRICE, None, : m + 1] + burden
    now = 0.0
    for g in goals.tolist():
        c = int(problem.goal[g, COLUMN])
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        change = x[c, : n + 1, None] - y[c, None, : m + 1]
        parts = []
        for b, sign in ((v, -1.0), (u, 1.0)):
            load, (high, low, mean, scale) = float(state.load[b, c]), problem.table[b, g, [HIGH, LOW, MEAN, SCALE]].tolist()
            before = max(load - high, low - load, 0.0) * scale
            before *= before
            away = (load - mean) * scale
            after = load + sign * change
            beyond = np.maximum(np.maximum(after - high, low - after), 0.0) * scale
            beyond *= beyond
            off = (after - mean) * scale
            parts.append((beyond * (1.0 + STEEP * beyond), off * off, before * (1.0 + STEEP * before), away * away))
        (a, b2, c2, d2), (e2, f2, g2, h2) = parts
        total += w * (a + e2) + e * (b2 + f2)
        now += w * (c2 + g2) + e * (d2 + h2)
    total[n, m] = np.inf
    at = int(np.argmin(total))
    i, j = divmod(at, m + 1)
    return i, j, float(total[i, j] - now)


@inner_as(best_pair_by_numpy)
def best_pair(
    problem: Problem, state: State, goals: np.ndarray, v: int, u: int, x: np.ndarray, n: int, y: np.ndarray, m: int,
    mine: np.ndarray, theirs: np.ndarray, given: np.ndarray, got: np.ndarray, costs: np.ndarray,
) -> tuple[int, int, float]:  # fmt: skip
    """Which of `n` offers of `v` (`n` itself: none) for which of `m` of `u` is best, and by how much the potential rises.

    `x`, `mine` and `given` are what `offer` says of those of `v`; `y`, `theirs` and `got` of those of `u`. `costs` is room.
    """
    slots = state.replicas.shape[1]
    best_i, best_j, best = whole(n), whole(m), np.inf
    now = 0.0
    for i in range(n + 1):
        for j in range(m + 1):
            burden = given[BURDEN, i] + got[BURDEN, j]
            if len(problem.topic_goal) > 0 and i < n and j < m:
                if problem.partition[mine[i] // slots, TOPIC_OF] == problem.partition[theirs[j] // slots, TOPIC_OF]:
                    burden = 0.0
            costs[j] = given[PRICE, i] + got[PRICE, j] + burden
        for g in goals:
            c = problem.goal[g, COLUMN]
            w, e = problem.force[g, STRENGTH], problem.force[g, SPREAD]
            lv, hv, ov, mv, sv = (
                state.load[v, c], problem.table[v, g, HIGH], problem.table[v, g, LOW], problem.table[v, g, MEAN],
                problem.table[v, g, SCALE],
            )  # fmt: skip
            lu, hu, ou, mu, su = (
                state.load[u, c], problem.table[u, g, HIGH], problem.table[u, g, LOW], problem.table[u, g, MEAN],
                problem.table[u, g, SCALE],
            )  # fmt: skip
            if i == 0:
                before, before2 = max(max(lv - hv, ov - lv), 0.0) * sv, max(max(lu - hu, ou - lu), 0.0) * su
                before *= before
                before2 *= before2
                away, away2 = (lv - mv) * sv, (lu - mu) * su
                now += w * (before * (1.0 + STEEP * before) + before2 * (1.0 + STEEP * before2)) + e * (away * away + away2 * away2)
            part = x[c, i]
            column = y[c]
            for j in range(m + 1):
                d = part - column[j]
                a, b = lv - d, lu + d
                over, under = a - hv, ov - a
                over = over if over > 0.0 else 0.0
                under = under if under > 0.0 else 0.0
                beyond, off = (over + under) * sv, (a - mv) * sv
                over, under = b - hu, ou - b
                over = over if over > 0.0 else 0.0
                under = under if under > 0.0 else 0.0
                beyond2, off2 = (over + under) * su, (b - mu) * su
                beyond *= beyond
                beyond2 *= beyond2
                cost = beyond * (1.0 + STEEP * beyond) + beyond2 * (1.0 + STEEP * beyond2)
                costs[j] += w * cost + e * (off * off + off2 * off2)
        for j in range(m + 1):
            if costs[j] < best and (i < n or j < m):
                best_i, best_j, best = whole(i), whole(j), costs[j]
    return best_i, best_j, best - now


@inner
def best_leadership(problem: Problem, state: State, v: int, turn: int, rests: np.ndarray) -> tuple[int, int, float]:
    """The transfer of leadership from or to `v` that lowers the potential most, or raises it least.

    Partition (-1: none), the slot that is to lead it, and by how much the potential rises.
    """
    slots = state.replicas.shape[1]
    best_p, best_o, best = whole(-1), whole(-1), np.inf
    n = state.hosts[v]
    start = scramble(turn * 8191 + v) % n if n > LEADERSHIPS_LOOKED else 0
    for i in range(min(n, LEADERSHIPS_LOOKED)):
        entry = whole(state.hosted[v, (start + i) % n])
        p, s = entry // slots, entry % slots
        if problem.partition[p, MOVABLE] == 0 or state.lead[p] < 0 or rests[p] > turn:
            continue
        leads = state.lead[p] == s
        held = whole(LEADING if leads else FOLLOWING)
        role = whole(FOLLOWING if leads else LEADING)
        mine = np.inf
        for o in range(slots):
            u = state.replicas[p, o]
            if u < 0 or o == s or problem.broker[u, STATE] != 0 or (not leads and o != state.lead[p]):
                continue
            if mine == np.inf:
                mine = cost_of_gaining(problem, state, v, p, held, role)
            rise = mine + cost_of_gaining(problem, state, u, p, role, held)
            if rise < best:
                best_p, best_o, best = whole(p), whole(o if leads else s), rise
    return best_p, best_o, best
