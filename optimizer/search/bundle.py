"""Bundles: changes that are acceptable only together become one action.

Called by `sequence` when no waiting change is acceptable by itself, and first for changes that found no turn before.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, part, whole
from optimizer.parameters import BUNDLE_LOOKS, LEAST_STEP, VAIN_LOOKS, VAIN_LOOKS_EACH
from optimizer.placement.evaluate import acceptable, evaluate, shares_racks
from optimizer.placement.log import Budget, Log, has_room, is_full, publish, within_budget
from optimizer.placement.potential import scores_low
from optimizer.placement.state import LEAD, MAX_CHANGES, PARTITION, State, is_active
from optimizer.problem import Problem


# wide: lists and leaders of the target, budget and log of the plan, each with another owner
# long: the choice of the next member uses most variables of the loop around it
@part
def bundle(
    problem: Problem, state: State, budget: Budget, log: Log, left: np.ndarray, to: np.ndarray, to_lead: np.ndarray, by_potential: bool,
    seen: np.ndarray, seeds: int,
) -> int:  # fmt: skip
    """Publish exchanges of changes that are acceptable only together, each with one of the first `seeds` of `left`; returns how many.
    Published changes become -1 in `left`. If all are seeds, a change acceptable alone is published too, even if the potential rises."""
    slots = state.replicas.shape[1]
    brokers, count = len(problem.broker), len(left)
    leaving, left_from = by_broker(state, left, count, to, to_lead, brokers, True)
    coming, come_to = by_broker(state, left, count, to, to_lead, brokers, False)
    done = 0
    zero, one = whole(0), whole(1)
    members = np.zeros(MAX_CHANGES, np.int64)
    vain, most = 0, VAIN_LOOKS + VAIN_LOOKS_EACH * count
    for first in range(seeds):
        if left[first] < 0 or vain > most:
            continue
        if not touches_outside(problem, state, left[first], to, to_lead):
            continue
        members[0] = first
        load_change(state, zero, left[first], to, to_lead)
        size = one
        accepted = seeds == count and acceptable(evaluate(problem, state, one), by_potential, LEAST_STEP)
        while size < MAX_CHANGES and not accepted:
            best, best_key = -1, -np.inf
            best_accepted = False
            looks = 0
            for m in range(size):
                p = left[members[m]]
                for s in range(slots):
                    if state.replicas[p, s] < 0 or not differs(state, p, s, to, to_lead):
                        continue
                    for way in range(4):  # first changes that compensate: to the broker it leaves, off the broker it goes to
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
                            load_change(state, size, left[other], to, to_lead)
                            verdict = evaluate(problem, state, size + 1)
                            good = acceptable(verdict, by_potential, LEAST_STEP)
                            key = verdict.gain + (verdict.score - 0.5 if not by_potential else 0.0)
                            if not verdict.allowed:
                                key -= 1e6 * (1 + verdict.breaks)
                            if (good and not best_accepted) or (good == best_accepted and key > best_key):
                                best, best_key, best_accepted = other, key, good
            if best < 0:
                break
            members[size] = best
            load_change(state, size, left[best], to, to_lead)
            size += 1
            accepted = best_accepted
        if not accepted:
            continue
        if not has_room(state, size) or is_full(log, size):
            continue
        if not within_budget(problem, state, budget, size):
            continue
        for m in range(size):
            note_change(problem, state, left[members[m]], to, to_lead, seen, log.used[0] + 1)
        publish(problem, state, budget, log, size, whole(0))
        for m in range(size):
            left[members[m]] = -1
        done += 1
        vain = 0
    return done


@inner
def by_broker(
    state: State, left: np.ndarray, count: int, to: np.ndarray, to_lead: np.ndarray, brokers: int, leaving: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The waiting changes that take a replica or leadership from each broker (`leaving`), or that give it one. The first array (int64)
    holds indices of `left`; those of broker b start at entry b of the second (int64 [B + 1])."""
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


@inner
def last_change(state: State, p: int, to: np.ndarray, to_lead: np.ndarray, seen: np.ndarray) -> int:
    """Number of the last action that changed a broker that the change of `p` to its target touches; `seen` int64 [B] has it by broker."""
    last = 0
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and differs(state, p, s, to, to_lead):
            last = max(last, seen[old], seen[to[p, s]])
    return last


@inner
def note_change(problem: Problem, state: State, p: int, to: np.ndarray, to_lead: np.ndarray, seen: np.ndarray, now: int) -> None:
    """Note in `seen` that action `now` changes every broker that the change of `p` to its target touches, or whose rack score it may."""
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and (shares_racks(problem, state, old) or differs(state, p, s, to, to_lead)):
            seen[old], seen[to[p, s]] = now, now


@inner
def load_change(state: State, at: int, p: int, to: np.ndarray, to_lead: np.ndarray) -> None:
    """Write the change of `p` to its target into `state.change`, as change `at` of an action."""
    for s in range(to.shape[1]):
        state.change[at, s] = to[p, s]
    state.change[at, PARTITION], state.change[at, LEAD] = p, to_lead[p]


@inner
def moved_slots(state: State, p: int, to: np.ndarray) -> int:
    """How many replicas of `p` are not yet on the brokers that `to` gives them."""
    moved = 0
    for s in range(to.shape[1]):
        if state.replicas[p, s] != to[p, s]:
            moved += 1
    return moved


@inner
def touches_outside(problem: Problem, state: State, p: int, to: np.ndarray, to_lead: np.ndarray) -> bool:
    """Whether the change of `p` touches a broker that is outside a goal or not active; others are acceptable only if they repair."""
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and differs(state, p, s, to, to_lead):
            if not is_active(problem, old):
                return True
            if scores_low(problem, state, old) or scores_low(problem, state, to[p, s]):
                return True
    return False


@inner
def differs(state: State, p: int, s: int, to: np.ndarray, to_lead: np.ndarray) -> bool:
    """Whether slot `s` of `p` changes broker or role on the way to the target."""
    return bool(state.replicas[p, s] != to[p, s] or (state.lead[p] == s) != (to_lead[p] == s))
