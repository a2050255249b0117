"""Several changes that are acceptable together, found by a small annealing.

Called by `polish` for brokers that no single step helps.
"""

from __future__ import annotations

import math

import numpy as np

from kernels.compiled import inner, part, whole
from optimizer.problem import MOVABLE, STATE, UNIT_WEIGHT, Problem
from optimizer.search.broker_scores import assess
from optimizer.search.chance import scramble
from optimizer.search.commit import shift
from optimizer.search.evaluate import acceptable, evaluate
from optimizer.search.ledger import LEAST_STEP, Budget, has_room, within_budget
from optimizer.search.state import COST, MAX_CHANGES, State
from optimizer.search.steps import helps
from optimizer.search.swaps import may_swap

LEAST_SHARE = 0.01  # of the potential of a broker, what a step for it has to bring
KEPT = 6  # placements
BYTES_PRICE = 2e-6  # of the potential, for one more replica of typical size in an exchange


@part
def exchange(
    problem: Problem, state: State, budget: Budget, v: int, around: np.ndarray, members: int, steps: int,
    random: np.ndarray, by_potential: bool, typical: float, warmth: float,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> int:  # fmt: skip
    """Look for several changes among brokers `around` (first is `v`) that are acceptable together.

    Judges the best that were found by `wander`. Leaves them in the change arrays and returns how many, 0 if none. The state is as
    before.
    """
    slots = state.replicas.shape[1]
    found_n = np.zeros(KEPT, np.int64)
    found_p = np.zeros((KEPT, MAX_CHANGES), np.int64)
    found_r = np.zeros((KEPT, MAX_CHANGES, slots), np.int64)
    found_l = np.zeros((KEPT, MAX_CHANGES), np.int64)
    least = max(LEAST_STEP, LEAST_SHARE * state.score[v, COST])
    stored = wander(
        problem, state, around, members, steps, random, typical, warmth, least, found_n, found_p, found_r, found_l
    )
    for back in range(min(stored, KEPT)):
        slot = (stored - 1 - back) % KEPT
        n = found_n[slot]
        for i in range(n):
            partitions[i] = found_p[slot, i]
            leads[i] = realign(state, found_p[slot, i], found_r[slot, i], found_l[slot, i], replicas[i])
        verdict = evaluate(problem, state, n, partitions, replicas, leads, scores)
        if not helps(state, v, scores) or not acceptable(verdict, by_potential, least):
            continue
        n = drop_idle(problem, state, n, verdict.gain, by_potential, partitions, replicas, leads, scores)
        if has_room(state, n, partitions, replicas) and within_budget(
            problem, state, budget, n, partitions, replicas, leads
        ):
            return n
    return 0


@inner
def wander(
    problem: Problem, state: State, around: np.ndarray, members: int, steps: int, random: np.ndarray, typical: float, warmth: float,
    least: float, found_n: np.ndarray, found_p: np.ndarray, found_r: np.ndarray, found_l: np.ndarray,
) -> int:  # fmt: skip
    """Anneal among brokers `around` on the potential, with at most `MAX_CHANGES` partitions away from where they stand.

    Each placement that is better than all before it, by more than `least`, is written over the oldest of `KEPT`: how many changes
    (`found_n` int64 [n]), their partitions (`found_p` int64 [n, m]), lists (`found_r` int64 [n, m, R]) and leaders (`found_l` int64
    [n, m]). Returns how many there were. The state is as before.
    """
    slots = state.replicas.shape[1]
    base = np.zeros((MAX_CHANGES, slots), np.int64)
    base_lead = np.zeros(MAX_CHANGES, np.int64)
    moved = np.zeros(MAX_CHANGES, np.int64)
    size = 0
    stored = 0
    row, was = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    affected = np.zeros(2 * slots + 2, np.int64)
    total, best = 0.0, -least
    start = 0.0
    for i in range(members):
        start += state.score[around[i], COST]
    hot = max(warmth * start / members, 1e-7)
    for step in range(steps):
        heat = hot * (1.0 - step / steps) ** 2 + 1e-12
        b = around[0] if draw(random, whole(3)) == 0 else around[draw(random, members)]
        if state.hosts[b] == 0:
            continue
        if size > 0 and draw(random, whole(3)) == 0:
            p = moved[draw(random, size)]
            s = draw(random, slots)
            if state.replicas[p, s] < 0:
                continue
        else:
            entry = whole(state.hosted[b, draw(random, state.hosts[b])])
            p, s = entry // slots, entry % slots
        if problem.partition[p, MOVABLE] == 0 or problem.broker[state.replicas[p, s], STATE] == 3:
            continue
        at = -1
        for i in range(size):
            if moved[i] == p:
                at = i
        if at < 0 and size == MAX_CHANGES:
            continue
        old_lead = state.lead[p]
        lead = old_lead
        for o in range(slots):
            was[o] = state.replicas[p, o]
            row[o] = was[o]
        kind = draw(random, whole(4))
        if kind == 0 and slots > 1:
            o = draw(random, slots)
            if (
                row[o] < 0
                or o == lead
                or lead < 0
                or problem.broker[row[o], STATE] != 0
                or problem.broker[row[lead], STATE] == 3
            ):
                continue
            lead = o
        else:
            target = around[draw(random, members)]
            if not may_swap(problem, state, p, s, target) or problem.broker[target, STATE] != 0:
                continue
            row[s] = target
            if kind == 1 and lead >= 0 and problem.broker[row[lead], STATE] != 3 and lead != s and slots > 1:
                if problem.broker[was[lead], STATE] != 3:
                    lead = s
        n = 0
        for o in range(slots):
            if was[o] >= 0 and (was[o] != row[o] or (o == old_lead) != (o == lead)):
                affected[n] = was[o]
                n += 1
                if was[o] != row[o]:
                    affected[n] = row[o]
                    n += 1
        if n == 0:
            continue
        before = 0.0
        for i in range(n):
            before += state.score[affected[i], COST]
        rise = shift(problem, state, p, row, lead)
        delta = UNIT_WEIGHT * rise - before
        for i in range(n):
            state.score[affected[i], COST] = assess(problem, state, affected[i], state.fresh[0])
            delta += state.score[affected[i], COST]
        for o in range(slots):
            home = base[at, o] if at >= 0 else was[o]
            if row[o] != home:
                delta += BYTES_PRICE * (problem.cost[p] / typical)
            if was[o] != home:
                delta -= BYTES_PRICE * (problem.cost[p] / typical)
        if delta > 0.0 and (draw(random, whole(1 << 30)) + 1) / (1 << 30) >= math.exp(-delta / heat):
            shift(problem, state, p, was, old_lead)
            for i in range(n):
                state.score[affected[i], COST] = assess(problem, state, affected[i], state.fresh[0])
            continue
        total += delta
        if at < 0:
            at = size
            moved[at] = p
            base_lead[at] = old_lead
            for o in range(slots):
                base[at, o] = was[o]
            size += 1
        same = state.lead[p] == base_lead[at]
        for o in range(slots):
            if row[o] != base[at, o]:
                same = False
        if same:
            size -= 1
            moved[at] = moved[size]
            base_lead[at] = base_lead[size]
            for o in range(slots):
                base[at, o] = base[size, o]
        if total < best and size > 0:
            best = total
            slot = stored % KEPT
            stored += 1
            found_n[slot] = size
            for i in range(size):
                found_p[slot, i] = moved[i]
                found_l[slot, i] = state.lead[moved[i]]
                for o in range(slots):
                    found_r[slot, i, o] = state.replicas[moved[i], o]
    for i in range(size):
        shift(problem, state, moved[i], base[i], base_lead[i])
    for b in range(len(problem.broker)):
        state.score[b, COST] = assess(problem, state, b, state.score[b])
    return stored


@inner
def realign(state: State, p: int, row: np.ndarray, lead: int, out: np.ndarray) -> int:
    """`row` into `out` with every broker that `p` has already in its present slot; returns the leader's slot there."""
    slots = state.replicas.shape[1]
    for s in range(slots):
        out[s] = -2
        for o in range(slots):
            if row[o] == state.replicas[p, s]:
                out[s] = row[o]
    for o in range(slots):
        known = False
        for s in range(slots):
            if out[s] == row[o]:
                known = True
        if not known:
            for s in range(slots):
                if out[s] == -2:
                    out[s] = row[o]
                    break
    leader = whole(-1)
    for s in range(slots):
        if lead >= 0 and out[s] == row[lead]:
            leader = s
    return leader


@part
def drop_idle(
    problem: Problem, state: State, n: int, gain: float, by_potential: bool,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> int:  # fmt: skip
    """Leave out changes without which the action is as good; returns how many stay."""
    slots = replicas.shape[1]
    held = np.zeros(slots, np.int64)
    i = 0
    while i < n and n > 1:
        p, lead = partitions[i], leads[i]
        for o in range(slots):
            held[o] = replicas[i, o]
        last = n - 1
        partitions[i], leads[i] = partitions[last], leads[last]
        for o in range(slots):
            replicas[i, o] = replicas[last, o]
        verdict = evaluate(problem, state, last, partitions, replicas, leads, scores)
        if acceptable(verdict, by_potential, LEAST_STEP) and verdict.gain >= gain - 1e-9:
            n = last
            continue
        partitions[last], leads[last] = partitions[i], leads[i]
        for o in range(slots):
            replicas[last, o] = replicas[i, o]
        partitions[i], leads[i] = p, lead
        for o in range(slots):
            replicas[i, o] = held[o]
        i += 1
    return n


@inner
def draw(random: np.ndarray, below: int) -> int:
    """The next integer in [0, below)."""
    random[0] += 1
    return scramble(random[0]) % below
