"""Relocate: moves between a broker outside its target range and its partners, which together are a *star*.

Called by `balance`. The placement does not change while stars make their proposals. A star writes only the rows of its own brokers: their
sums, which are restored at the end, and their vectors in the cache. So stars without a common broker can be solved side by side. The
proposed moves are committed later, one after the other. Each is checked again then, because two stars may have moved replicas of the same
partition.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner, whole
from kernels.lanes import either, lanes
from optimizer.parameters import KEPT, LEAST_GAIN, PATIENT, SOON
from optimizer.placement.commit import put, write_row
from optimizer.placement.feasible import may_host
from optimizer.placement.potential import NOTHING, assess, is_low, rise_by_loads
from optimizer.placement.state import COST, State
from optimizer.problem import COUNTS_LEADERS, FOLLOWING, LEADING, Problem
from optimizer.search.batch import Batch, Room
from optimizer.search.candidates import best_key, copy_kept, gather, keep_best, lacks_replicas, scan, topic_burden
from optimizer.search.partners import leans
from optimizer.search.vector_cache import VectorCache


@inner
def propose_stars(problem: Problem, state: State, cache: VectorCache, batch: Batch, first: int, step: int, room: Room) -> None:
    """`propose` for star `first` of a batch and every `step`-th after it."""
    for i in range(first, batch.used[0], step):
        propose(problem, state, cache, batch, i, room)


@inner
def propose(problem: Problem, state: State, cache: VectorCache, batch: Batch, i: int, room: Room) -> None:
    """Propose moves between the centre of star `i` and its partners, best partner first, until the centre is within its range.

    In a batch with room for one star, moves are committed at once, so that a replica that came may go back.
    """
    v, done, watched = batch.centre[i], 0, batch.goal[: batch.goal[-1]]
    single = len(batch.centre) == 1
    batch.moves[i] = 0
    for k in range(batch.partners[i]):
        u = batch.partner[i, k]
        over, under = leans(problem, state, watched, v)
        over2, under2 = leans(problem, state, watched, u)
        for gives in range(2):  # first replicas that leave the centre
            if (over or under2) if gives == 0 else (under or over2):
                propose_moves(problem, state, cache, v if gives == 0 else u, u if gives == 0 else v, batch, i, room)
                if single:
                    withdraw(problem, state, batch, i)
                    done += carry_out_star(problem, state, batch, i)
                    batch.moves[i] = 0
        state.score[v, COST] = assess(problem, state, v, state.score[v])
        if not is_low(problem, state, v):
            break
    withdraw(problem, state, batch, i)
    state.score[v, COST] = assess(problem, state, v, state.score[v])
    if single:
        batch.moves[i] = done


@inner
def withdraw(problem: Problem, state: State, batch: Batch, i: int) -> None:
    """Restore the sums from before the proposals of star `i`."""
    slots = state.replicas.shape[1]
    for m in range(batch.moves[i]):
        p, s = batch.entry[i, m] // slots, batch.entry[i, m] % slots
        shift_sums(problem, state, p, s, batch.target[i, m], state.replicas[p, s])


@inner
def propose_moves(
    problem: Problem, state: State, cache: VectorCache, source: int, target: int, batch: Batch, star: int, room: Room
) -> None:
    """Propose moves from `source` to `target`, those with the best gain for their cost first.

    If the star is patient, a move waits if it gains less than `PATIENT` times a refused move: another partner may take that replica.
    """
    found = candidates(problem, state, cache, source, target, batch, star, room)
    if found == 0:
        return
    watched, slots, topics = batch.goal[: batch.goal[-1]], state.replicas.shape[1], len(room.burdens) > 0
    small, entries, burdens, keys = room.small, room.entries, room.burdens, room.gains
    factor, moved, least = small.shape[0] - 1, 0, 0.0
    scan(problem, state, watched, source, target, found, small, keys)
    while moved < batch.most[star] and found > 0:
        best = best_key(keys, small[factor], found, LEAST_GAIN, room.spare)
        if best < 0 or keys[best] * small[factor, best] < least:
            return
        p, s = entries[best] // slots, entries[best] % slots
        if topics:  # looked up only for the best; moves of the same topic change it
            burden = topic_burden(problem, state, p, True, state.lead[p] == s, source, target)
            if burden != burdens[best]:
                keys[best] += burdens[best] - burden
                burdens[best] = burden
                continue
        legal = may_host(problem, state, p, s, target)
        if legal:
            shift_sums(problem, state, p, s, source, target)
            at = batch.moves[star]
            batch.entry[star, at], batch.place[star, at], batch.target[star, at] = entries[best], room.kept[best], target
            batch.moves[star] = at + 1
            moved += 1
        elif batch.patient[star] == 1:
            least = max(least, PATIENT * keys[best] * small[factor, best])
        found -= 1
        drop_candidate(best, found, room)
        if legal and moved < batch.most[star]:
            scan(problem, state, watched, source, target, found, small, keys)
            for i in lanes(found if topics else whole(0)):
                keys[i] -= burdens[i]


@inner
def candidates(problem: Problem, state: State, cache: VectorCache, source: int, target: int, batch: Batch, star: int, room: Room) -> int:
    """Write the replicas of `source` that gain most on `target` for their cost into `room`, side by side; returns how many."""
    block, keys, watched = cache.vector[source], room.gains, batch.goal[: batch.goal[-1]]
    due = lacks_replicas(problem, state, watched, target)
    n = gather(problem, state, cache, source, due, room.factors)
    scan(problem, state, watched, source, target, n, block, keys)
    for i in lanes(n):
        keys[i] = either(keys[i] > LEAST_GAIN, keys[i] * room.factors[i], 0.0)
    for m in range(batch.moves[star] if source == batch.centre[star] else 0):
        if batch.target[star, m] != source:  # it is already proposed to leave
            keys[batch.place[star, m]] = 0.0
    found = keep_best(keys, n, 0.0, whole(KEPT), room.kept, room.spare)
    copy_kept(block, room.factors, room.kept, found, room.small)
    for i in lanes(found):
        room.entries[i] = state.hosted[source, room.kept[i]]
        if len(room.burdens) > 0:
            room.burdens[i] = 0.0  # not looked up yet
    return int(found)


@inner
def drop_candidate(best: int, last: int, room: Room) -> None:
    """Overwrite the candidate at `best` with the one at `last`."""
    room.entries[best], room.gains[best], room.kept[best] = room.entries[last], room.gains[last], room.kept[last]
    if len(room.burdens) > 0:
        room.burdens[best] = room.burdens[last]
    for c in range(room.small.shape[0]):
        room.small[c, best] = room.small[c, last]


@inner
def shift_sums(problem: Problem, state: State, p: int, s: int, source: int, target: int) -> None:
    """Change the sums as if slot `s` of `p` went from `source` to `target`. Going back is exact, because loads lie on a grid."""
    leads = state.lead[p] == s
    role = LEADING if leads else FOLLOWING
    for c in range(state.load.shape[1]):
        state.load[source, c] -= problem.vector[p, role, c]
        state.load[target, c] += problem.vector[p, role, c]
    column = problem.topic_counted[problem.topic[p]] if len(problem.topic_goal) > 0 else -1
    for k in range(len(problem.topic_goal) if column >= 0 else 0):
        if leads or problem.topic_goal[k, COUNTS_LEADERS] == 0:
            state.topic_count[column, source, k] = int(state.topic_count[column, source, k]) - 1
            state.topic_count[column, target, k] = int(state.topic_count[column, target, k]) + 1


@inner
def carry_out_all(problem: Problem, state: State, batch: Batch) -> None:
    """`carry_out_star` for all stars of a batch with room for several; then `batch.moves` holds how many moves each carried out."""
    for i in range(batch.used[0] if len(batch.centre) > 1 else 0):
        batch.moves[i] = carry_out_star(problem, state, batch, i)


@inner
def assess_stale(problem: Problem, state: State, stale: np.ndarray) -> None:
    """Assess the brokers that are marked in `stale` uint8 [B], and clear the marks."""
    for b in range(len(stale)):
        if stale[b] == 1:
            state.score[b, COST] = assess(problem, state, b, state.score[b])
            stale[b] = 0


@inner
def carry_out_star(problem: Problem, state: State, batch: Batch, i: int) -> int:
    """Commit the moves that star `i` proposed and that are still allowed; returns how many.

    Brokers to assess afterwards are marked in `batch.stale`: many moves touch the same broker, which is assessed once for all of them.
    After a refused move, and with topic goals always, a later move may gain nothing, so its gain is checked again.
    """
    slots, stale, done = state.replicas.shape[1], batch.stale, 0
    sure = len(problem.topic_goal) == 0
    for m in range(batch.moves[i]):
        p, s, target = batch.entry[i, m] // slots, batch.entry[i, m] % slots, batch.target[i, m]
        if m + SOON < batch.moves[i]:
            q = batch.entry[i, m + SOON] // slots
            ahead(state.replicas, q)
            ahead(state.lead, q)
            ahead(state.place, q)
            ahead(state.home, q)
            ahead(problem.vector[q], LEADING)
            ahead(problem.vector[q], FOLLOWING)
        if not may_host(problem, state, p, s, target) or not (sure or still_gains(problem, state, p, s, target)):
            sure = False
            continue
        for o in range(slots):
            if state.replicas[p, o] >= 0:
                stale[state.replicas[p, o]] = 1
        stale[target] = 1
        write_row(state, p, s, target)
        put(problem, state, p, state.row, state.lead[p])
        done += 1
    return done


@inner
def still_gains(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """Whether the potential falls by more than `LEAST_GAIN` if slot `s` of `p` goes to `target`."""
    source, role = state.replicas[p, s], whole(LEADING if state.lead[p] == s else FOLLOWING)
    gain = -rise_by_loads(problem, state, source, p, whole(NOTHING), p, role)
    gain -= rise_by_loads(problem, state, target, p, role, p, whole(NOTHING))
    if gain > LEAST_GAIN and len(problem.topic_goal) > 0:
        gain -= topic_burden(problem, state, p, True, role == LEADING, source, target)
    return gain > LEAST_GAIN
