"""Changes put in an order of acceptable actions without a compiler: `optimizer.search.sequence`, a whole turn at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import Problem
from optimizer.search.state import State
from optimizer.search.thrift import thrift_of
from optimizer.search.uncompiled.replays import carry_out
from optimizer.search.uncompiled.trains import Train, Verdicts, is_simple

if TYPE_CHECKING:
    from optimizer.search.ledger import Budget, Log

GUESSES = 12  # of what is acceptable; what is sure by then is carried out


def in_order(
    problem: Problem, state: State, budget: Budget, log: Log, pending: np.ndarray, to: np.ndarray, to_lead: np.ndarray, by_potential: bool,
) -> np.ndarray:  # fmt: skip
    """Carry out the changes `pending` (int64) that are acceptable by themselves, turn by turn as `optimizer.search.sequence.in_turn`
    does; returns those left, in the order of the last turn: all, where they have to be judged one by one."""
    from optimizer.search.ledger import is_limited

    left = pending.copy()
    if is_limited(budget) or not is_simple(problem, state):
        return left
    while len(left):
        train = Train(problem, state, np.arange(len(left)), left, to[left], to_lead[left])
        if not train.is_plain or not _has_room(state, train):
            return left
        verdicts = train.verdicts(None)
        left = left[np.argsort(-_keys(problem, train, verdicts), kind="stable")]
        kept = _turn(problem, state, log, left, to, to_lead, by_potential)
        if len(kept) == len(left):
            return kept
        left = kept
    return left


def _turn(
    problem: Problem, state: State, log: Log, waiting: np.ndarray, to: np.ndarray, to_lead: np.ndarray, by_potential: bool,
) -> np.ndarray:  # fmt: skip
    """One turn over the changes `waiting`; returns those that were not acceptable at theirs."""
    from optimizer.search.ledger import LEAST_STEP

    kept = []
    while len(waiting):
        train = Train(problem, state, np.arange(len(waiting)), waiting, to[waiting], to_lead[waiting])
        done = np.ones(len(waiting), np.bool_)
        sure = 0
        for _ in range(GUESSES):
            verdicts = train.verdicts(done)
            good = verdicts.acceptable(by_potential, LEAST_STEP)
            wrong = np.flatnonzero(good != done)
            sure = int(wrong[0]) + 1 if len(wrong) else len(waiting)
            done = good
            if sure == len(waiting):
                break
        done[sure:] = False
        carry_out(state, train, verdicts, done)
        _write(log, train, np.flatnonzero(done))
        kept.append(waiting[:sure][~done[:sure]])
        waiting = waiting[sure:]
    return np.concatenate(kept)


def _keys(problem: Problem, train: Train, verdicts: Verdicts) -> np.ndarray:
    """`optimizer.search.sequence.key_of` of each change."""
    from optimizer.search.evaluate import REPAIRS_DEAD

    moved = (train.old != train.new).sum(axis=1)
    thrift = thrift_of(problem, train.partition)
    worth = np.where(moved > 0, verdicts.gain * (thrift * thrift) / np.maximum(moved, 1), verdicts.gain * 10.0)
    urgent = np.where((verdicts.repairs >> REPAIRS_DEAD) & 1, 1e12, 1e9)
    return np.asarray(np.where(verdicts.repairs != 0, urgent + np.maximum(worth, 0.0), worth))


def _has_room(state: State, train: Train) -> bool:
    """Whether lists are long enough whatever is carried out first."""
    came = np.bincount(train.new[(train.new != train.old) & (train.new >= 0)], minlength=len(state.hosts))
    return bool((state.hosts + came < state.hosted.shape[1]).all())


def _write(log: Log, train: Train, done: np.ndarray) -> None:
    """Write actions of one change each into the log."""
    p, new, lead = train.partition[done], train.new[done], train.lead[done]
    actions, at = log.used.tolist()
    log.partition[at : at + len(p)], log.replicas[at : at + len(p)], log.lead[at : at + len(p)] = p, new, lead
    log.first[actions + 1 : actions + 1 + len(p)] = at + 1 + np.arange(len(p))
    log.used[:] = actions + len(p), at + len(p)
