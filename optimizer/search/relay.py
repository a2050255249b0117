"""The last brokers out of band: what one has too much, or too little, is handed from broker to broker until one can take it.

`balance` stops where no single step and no swap lowers the potential. From there the broker that is worst off makes its best
trade with another even where that puts the other out of band, which then trades in turn; partitions that just moved rest for a
while, and the best placement on the way is kept. Called by `rounds` on a target; of no cost where nobody is out of band, or where
brokers hold many replicas.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, kernel, whole
from optimizer.problem import COLUMN, DISTRIBUTION, HIGH, KIND, LIMIT, RACK, SCALE, SIZE, STATE, Problem
from optimizer.search.broker_scores import is_out
from optimizer.search.chance import scramble
from optimizer.search.commit import commit
from optimizer.search.offers import OFFERED, TERMS, best_leadership, best_pair, offer
from optimizer.search.order import ascending
from optimizer.search.partners import rank_partners
from optimizer.search.shelf import new_shelf
from optimizer.search.standing import standing_of
from optimizer.search.state import COST, Rows, State

PARTNERS, STRANGERS = 8, 2  # brokers with which the worst may trade, and how many of them are any
REST = 6  # trades for which a partition that moved stays where it is
PATIENCE = 60  # trades without a better placement, after which a broker is given up
LEAST_FALL = 0.5  # of the potential of a broker, for trades that bring nobody into band
PASSES = 3
MOST_LOOKS = 300_000  # at replicas: on average a trade looks at those of a broker and at so many more, again for each goal on topics
EACH_TRADE = 100
LAST = 0.1  # of the brokers; where more are out of band, they mostly have to be
MOST_HELD = 200  # replicas of a typical broker; with more, single steps are fine enough, and trades mostly search in vain


def relay(problem: Problem, state: State, seed: int) -> int:
    """Bring brokers of `state` into band, or nearer to it, by trades; the potential does not rise. Returns how many came into band.

    Notes
    -----
    Each trade takes O(`PARTNERS` (n + `OFFERED`^2) G + B G) for n replicas on a broker.
    """
    eligible = problem.broker[:, STATE] == 0
    low = standing_of(problem, state).low
    if eligible.sum() < 2 or not low or low > LAST * eligible.sum():
        return 0
    typical = int(state.hosts[eligible].sum()) // int(eligible.sum())
    if typical > MOST_HELD:
        return 0
    most = MOST_LOOKS // ((typical + EACH_TRADE) * (1 + len(problem.topic_goal)))
    return hand_on(problem, state, decisive_goals(problem, state), seed, most)


def decisive_goals(problem: Problem, state: State) -> Rows:
    """int64: goals on loads, without limits that nobody breaks and that lie beyond every band on the same load."""
    eligible = problem.broker[:, STATE] == 0
    table, kind = problem.table[eligible], problem.goal[:, KIND]
    counts = (kind <= LIMIT) & (table[:, :, SCALE] > 0.0).any(axis=0)
    for g in np.flatnonzero(counts & (kind == LIMIT)).tolist():
        column = problem.goal[g, COLUMN]
        high = table[:, g, HIGH]
        if (state.load[eligible, column] > high).any():
            continue
        for band in np.flatnonzero(counts & (kind == DISTRIBUTION) & (problem.goal[:, COLUMN] == column)).tolist():
            if (high >= table[:, band, HIGH]).all() and (table[:, band, SCALE] > 0.0).all():
                counts[g] = False
    return np.flatnonzero(counts)


@inner
def is_astray(problem: Problem, state: State, b: int) -> bool:
    """Whether an eligible broker is out of a goal that trades can help."""
    if problem.broker[b, STATE] != 0:
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] != RACK and is_out(problem, state, b, g):
            return True
    return False


@kernel
def hand_on(problem: Problem, state: State, goals: np.ndarray, seed: int, most: int) -> int:
    """See `relay`; `goals` int64 are those on loads that count, `most` how many trades may be made."""
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    columns, room = problem.vector.shape[2], max(state.hosted.shape[1] + 1, 256)
    shelf = new_shelf(problem, state, np.zeros(0, np.int64))
    factors, gains, spare = np.zeros(room), np.zeros(room), np.zeros(room)
    kept = np.zeros(OFFERED, np.int64)
    x, y = np.zeros((columns, OFFERED + 1)), np.zeros((columns, OFFERED + 1))
    given, got, costs = np.zeros((TERMS, OFFERED + 1)), np.zeros((TERMS, OFFERED + 1)), np.zeros(OFFERED + 1)
    mine, theirs = np.zeros(OFFERED, np.int64), np.zeros(OFFERED, np.int64)
    partners, worth = np.zeros(PARTNERS, np.int64), np.zeros(brokers)
    rests = np.zeros(len(state.lead), np.int64)
    out, aside = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    journal, lists = np.zeros(2 * most + 2, np.int64), np.zeros((2 * most + 2, slots), np.int64)
    leads, row = np.zeros(2 * most + 2, np.int64), np.zeros(slots, np.int64)
    eligible = np.zeros(brokers, np.int64)
    count, low, trades, typical = 0, 0, whole(0), 0.0
    total = 0.0
    for p in range(len(problem.haul)):
        typical += problem.haul[p, SIZE] / len(problem.haul)
    typical = typical if typical > 0.0 else 1.0
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible[count] = b
            count += 1
            total += state.score[b, COST]
        if is_astray(problem, state, b):
            out[b] = 1
            low += 1
    first = low
    for _ in range(PASSES):
        before = low
        order = ascending(state.score[:, COST])
        for at in range(brokers):
            start = order[at]
            if out[start] == 0 or trades >= most:
                continue
            for b in range(brokers):
                aside[b] = out[b]
            aside[start] = 0
            low_then, total_then = low, total
            enough = total - LEAST_FALL * state.score[start, COST]
            best_low, best_total = low, total
            written, good, since = 0, 0, 0
            while since <= PATIENCE and trades < most:
                v = whole(-1)
                for b in range(brokers):
                    if out[b] == 1 and aside[b] == 0 and (v < 0 or state.score[b, COST] > state.score[v, COST]):
                        v = whole(b)
                if v < 0:
                    break
                trades += 1
                since += 1
                turn = trades
                found = rank_partners(
                    problem, state, goals, v, whole(PARTNERS - STRANGERS), seed * 7919 + turn, partners, worth
                )
                for k in range(STRANGERS):
                    u = eligible[scramble(seed * 7919 + turn * 2 + k) % count]
                    known = u == v
                    for o in range(found):
                        if partners[o] == u:
                            known = True
                    if not known:
                        partners[found] = u
                        found += 1
                best_p, best_o, best = best_leadership(problem, state, v, turn, rests)
                best_u, best_x, best_y = whole(-1), whole(-1), whole(-1)
                for k in range(found):
                    u = partners[k]
                    n = offer(
                        problem, state, shelf, goals, v, u, turn, rests, typical, factors, gains, kept, spare, x, given, mine,
                    )
                    m = offer(
                        problem, state, shelf, goals, u, v, turn, rests, typical, factors, gains, kept, spare, y, got, theirs,
                    )
                    i, j, rise = best_pair(
                        problem, state, goals, v, u, x, n, y, m, mine, theirs, given, got, costs
                    )
                    if rise < best:
                        best, best_u = rise, whole(u)
                        best_x = mine[i] if i < n else whole(-1)
                        best_y = theirs[j] if j < m else whole(-1)
                if best == np.inf:
                    break
                for change in range(2):
                    if best_u >= 0:
                        entry, target = (best_x, best_u) if change == 0 else (best_y, v)
                        if entry < 0:
                            continue
                        p, s = entry // slots, entry % slots
                        b, u = state.replicas[p, s], target
                        lead = state.lead[p]
                    else:
                        if change == 1:
                            continue
                        p, s = best_p, best_o
                        b, u = state.replicas[p, state.lead[p]], state.replicas[p, s]
                        lead = s
                    journal[written], leads[written] = p, state.lead[p]
                    for o in range(slots):
                        lists[written, o] = state.replicas[p, o]
                        row[o] = state.replicas[p, o]
                    written += 1
                    if best_u >= 0:
                        row[s] = u
                    rests[p] = turn + REST
                    total -= state.score[b, COST] + state.score[u, COST]
                    low -= out[b] + out[u]
                    commit(problem, state, p, row, lead)
                    out[b], out[u] = whole(is_astray(problem, state, b)), whole(is_astray(problem, state, u))
                    total += state.score[b, COST] + state.score[u, COST]
                    low += out[b] + out[u]
                if total <= total_then and (low < best_low or (low == best_low and total < best_total)):
                    best_low, best_total, since, good = low, total, 0, written
            if best_low == low_then and best_total > enough:
                good = 0
            for back in range(written - good):
                i = written - 1 - back
                p = journal[i]
                for o in range(slots):
                    out[state.replicas[p, o]] = 0
                commit(problem, state, p, lists[i], leads[i])
            if written > good:
                low, total = 0, 0.0
                for b in range(brokers):
                    out[b] = whole(is_astray(problem, state, b))
                    low += out[b]
                    total += state.score[b, COST] if problem.broker[b, STATE] == 0 else 0.0
        if low == 0 or low == before or trades >= most:
            break
    return int(first - low)
