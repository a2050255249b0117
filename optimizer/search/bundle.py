"""Changes that are acceptable only together, made one action.

Called by `sequence` when no waiting change is acceptable by itself.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, part, whole
from optimizer.problem import Problem
from optimizer.search.evaluate import acceptable, evaluate
from optimizer.search.ledger import LEAST_STEP, Budget, Log, has_room, publish, within_budget
from optimizer.search.pending import differs, helps_someone, load_change, note_change
from optimizer.search.state import MAX_CHANGES, State

BUNDLE_LOOKS = 16
VAIN_LOOKS, VAIN_LOOKS_EACH = 1_000, 2  # in a row without a bundle, after which there is none: so many, and for each change waiting


@part
def bundle(
    problem: Problem, state: State, budget: Budget, log: Log, left: np.ndarray, count: int,
    to: np.ndarray, to_lead: np.ndarray, by_potential: bool,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray, seen: np.ndarray,
) -> int:  # fmt: skip
    """Make exchanges of changes that are acceptable only together; used ones become -1 in `left`. Returns how many actions."""
    slots = state.replicas.shape[1]
    brokers = len(problem.broker)
    leaving, left_from = by_broker(state, left, count, to, to_lead, brokers, True)
    coming, come_to = by_broker(state, left, count, to, to_lead, brokers, False)
    done = 0
    zero, one = whole(0), whole(1)
    members = np.zeros(MAX_CHANGES, np.int64)
    vain, most = 0, VAIN_LOOKS + VAIN_LOOKS_EACH * count
    for first in range(count):
        if left[first] < 0 or vain > most:
            continue
        if not helps_someone(problem, state, left[first], to, to_lead):
            continue
        members[0] = first
        load_change(state, partitions, replicas, leads, zero, left[first], to, to_lead)
        size = one
        accepted = False
        while size < MAX_CHANGES:
            best, best_key = -1, -np.inf
            best_accepted = False
            looks = 0
            for m in range(size):
                p = left[members[m]]
                for s in range(slots):
                    if state.replicas[p, s] < 0 or not differs(state, p, s, to, to_lead):
                        continue
                    for way in range(4):  # first what makes up for it: comes where it leaves, leaves where it comes to
                        b = state.replicas[p, s] if way == 0 or way == 2 else to[p, s]
                        theirs, starts = (coming, come_to) if way == 0 or way == 3 else (leaving, left_from)
                        for j in range(starts[b], starts[b + 1]):
                            if looks >= BUNDLE_LOOKS:
                                break
                            other = theirs[j]
                            if left[other] < 0 or (other <= first and size == 1):
                                continue
                            known = False
                            for q in range(size):
                                if members[q] == other:
                                    known = True
                            if known:
                                continue
                            looks += 1
                            vain += 1
                            load_change(state, partitions, replicas, leads, size, left[other], to, to_lead)
                            verdict = evaluate(problem, state, size + 1, partitions, replicas, leads, scores)
                            good = acceptable(verdict, by_potential, LEAST_STEP)
                            key = verdict.gain + (verdict.score - 0.5 if not by_potential else 0.0)
                            if not verdict.allowed:
                                key -= 1e6
                            if (good and not best_accepted) or (good == best_accepted and key > best_key):
                                best, best_key, best_accepted = other, key, good
            if best < 0:
                break
            members[size] = best
            load_change(state, partitions, replicas, leads, size, left[best], to, to_lead)
            size += 1
            if best_accepted:
                accepted = True
                break
        if not accepted:
            continue
        if not has_room(state, size, partitions, replicas):
            continue
        if not within_budget(problem, state, budget, size, partitions, replicas, leads):
            continue
        for m in range(size):
            note_change(problem, state, left[members[m]], to, to_lead, seen, log.used[0] + 1)
        publish(problem, state, budget, log, size, partitions, replicas, leads, whole(0))
        for m in range(size):
            left[members[m]] = -1
        done += 1
        vain = 0
    return done


@inner
def by_broker(
    state: State, left: np.ndarray, count: int, to: np.ndarray, to_lead: np.ndarray, brokers: int, leaving: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The waiting changes that take a replica or the leadership from a broker, or else give it one: those of broker b stand in the first
    array (int64) from the b-th entry of the second (int64 [B + 1]) on."""
    starts = np.zeros(brokers + 1, np.int64)
    for turn in range(2):
        fill = starts.copy()
        changes = np.zeros(starts[brokers], np.int64)
        for i in range(count):
            p = left[i]
            for s in range(to.shape[1]):
                old, new = state.replicas[p, s], to[p, s]
                if old < 0 or not differs(state, p, s, to, to_lead):
                    continue
                if old == new and (state.lead[p] == s) != leaving:
                    continue
                b = old if leaving else new
                if turn == 0:
                    starts[b + 1] += 1
                else:
                    changes[fill[b]] = i
                    fill[b] += 1
        for b in range(brokers if turn == 0 else 0):
            starts[b + 1] += starts[b]
    return changes, starts
