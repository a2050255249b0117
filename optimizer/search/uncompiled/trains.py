"""Many actions one after the other, judged at once without a compiler.

Loads lie on a grid on which sums are exact in any order, so what a broker carries when the turn of an action comes is a running sum over
the actions before it, and all of them are judged by a few passes over arrays. Where it depends on the verdicts which actions come
before, they are guessed, and guessed again until no verdict changes: the first that is wrong is right after it.
Called by `sequence` and `record`. Not for topic goals, nor where racks are over-full: there is more than loads that runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from goals.score import TOLERANCE
from optimizer.problem import (
    FOLLOWING,
    GROUP,
    GROUPS,
    HARD,
    KIND,
    LEADING,
    LIMIT,
    NO_RACK_GOAL,
    RACK,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    STATE,
    WEIGHT,
    Problem,
)
from optimizer.search.state import COST, RACKS, State
from optimizer.search.uncompiled.panels import judged


class Verdicts(NamedTuple):
    """As `optimizer.search.evaluate.Verdict`, of A actions; `before` and `after` float64 [N, G + 1] are scores and costs of each broker
    that each touches."""

    allowed: np.ndarray
    better: np.ndarray
    score: np.ndarray
    repairs: np.ndarray
    gain: np.ndarray
    touches_low: np.ndarray
    goal_score: np.ndarray  # float64 [A, G]
    before: np.ndarray
    after: np.ndarray

    def acceptable(self, by_potential: bool, least_gain: float) -> np.ndarray:
        """`optimizer.search.evaluate.acceptable`."""
        enough = (self.gain > least_gain) & (self.touches_low if by_potential else self.better)
        return np.asarray(self.allowed & ((self.repairs != 0) | enough))


def is_simple(problem: Problem, state: State) -> bool:
    """Whether actions may be judged by the loads of brokers alone, as long as they do not crowd racks."""
    return not len(problem.topic_goal) and not (
        problem.setting[RACK_GOAL] != NO_RACK_GOAL and state.units[RACKS].any()
    )


class Train:
    """Changes from where `state` stands, m of them, in A actions: `action` int64 [m] ascending (every action has some), `partition`
    int64 [m], `new` int64 [m, R], `lead` int64 [m]. Nothing is changed."""

    def __init__(
        self, problem: Problem, state: State, action: np.ndarray, partition: np.ndarray, new: np.ndarray, lead: np.ndarray
    ) -> None:
        self._problem, self._state = problem, state
        self.count = int(action[-1]) + 1 if len(action) else 0
        self.change_action, self.partition, self.new, self.lead = action, partition, new, lead
        self.old, self.was = _before(state, partition, new, lead)
        slots = new.shape[1]
        spot = np.arange(slots)
        leads, led = lead[:, None] == spot, self.was[:, None] == spot
        moves = self.old != new
        i, s = np.nonzero((self.old >= 0) & (moves | (leads != led)))
        vector = problem.vector[partition[i]]
        every = np.arange(len(i))
        away = vector[every, np.where(led[i, s], LEADING, FOLLOWING)]
        come = vector[every, np.where(leads[i, s], LEADING, FOLLOWING)]
        broker = np.column_stack([self.old[i, s], new[i, s]]).reshape(-1)
        touch = np.repeat(action[i], 2) * len(problem.broker) + broker
        amount = np.stack([-away, come], axis=1).reshape(len(broker), -1)
        # A row for each broker that an action touches, in the order in which it does.
        key, first, row = np.unique(touch, return_index=True, return_inverse=True)
        by_touch = np.argsort(first, kind="stable")
        self.delta = np.empty((len(key), amount.shape[1]))
        for c in range(amount.shape[1]):
            self.delta[:, c] = np.bincount(row, weights=amount[:, c], minlength=len(key))
        self.delta = self.delta[by_touch]
        key = key[by_touch]
        self.action, self.broker = key // len(problem.broker), key % len(problem.broker)
        self.first = np.searchsorted(self.action, np.arange(self.count + 1))
        self.by_broker = np.argsort(self.broker, kind="stable")
        self._loads, self._after = np.full(self.delta.shape, np.nan), np.empty((len(key), len(problem.goal) + 1))
        self._repairs = self._mended(action, leads, led, moves)

    @property
    def is_plain(self) -> bool:
        """Whether every action touches somebody, and none leaves more replicas of a partition in a rack than may be there."""
        if (self.first[1:] == self.first[:-1]).any():
            return False
        if self._problem.setting[RACK_GOAL] == NO_RACK_GOAL:
            return True
        racks = np.append(self._problem.broker[:, RACK_OF], -1)[self.new]
        same = np.zeros(self.new.shape, np.int64)
        for s in range(self.new.shape[1]):
            same += racks == racks[:, s : s + 1]
        return not ((same > self._problem.partition[self.partition, RACK_LIMIT, None]) & (self.new >= 0)).any()

    def _mended(self, action: np.ndarray, leads: np.ndarray, led: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """int64 [A]: what actions repair beside hard goals, as bits."""
        from optimizer.search.evaluate import REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS

        states = np.append(self._problem.broker[:, STATE], 0)[self.old]
        freed = (self.old >= 0) & (moves | (led & ~leads))
        bits = np.where((freed & (states == 2)).any(axis=1), 1 << REPAIRS_DEAD, 0)
        bits |= np.where((freed & (states == 1)).any(axis=1), 1 << REPAIRS_DRAINING, 0)
        bits |= np.where((self.was < 0) & (self.lead >= 0), 1 << REPAIRS_LEADERLESS, 0)
        repairs = np.zeros(self.count, np.int64)
        np.bitwise_or.at(repairs, action, bits)
        return repairs

    def _turns(self, done: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """float64 [N, C]: loads after each action of the brokers it touches, if the actions `done` bool [A] are carried out (None: each
        by itself); and int64 [N], the row after which the broker stands as the action finds it, -1 for where the state stands."""
        start = self._state.load[self.broker]
        if done is None:
            return start + self.delta, np.full(len(start), -1)
        made = done[self.action][self.by_broker]
        delta = self.delta[self.by_broker]
        summed = np.cumsum(np.where(made[:, None], delta, 0.0), axis=0)
        broker = self.broker[self.by_broker]
        begins = np.flatnonzero(np.append(True, broker[1:] != broker[:-1]))
        length = np.diff(np.append(begins, len(broker)))
        before = np.vstack([np.zeros(delta.shape[1]), summed[begins[1:] - 1]])
        ran = summed + np.where(made[:, None], 0.0, delta) - np.repeat(before, length, axis=0)
        last = np.append(-1, np.maximum.accumulate(np.where(made, np.arange(len(made)), -1))[:-1])
        last[last < np.repeat(begins, length)] = -1
        after, earlier = np.empty_like(ran), np.empty(len(ran), np.int64)
        after[self.by_broker] = ran
        earlier[self.by_broker] = np.where(last < 0, -1, self.by_broker[last])
        return after + start, earlier

    def verdicts(self, done: np.ndarray | None) -> Verdicts:
        """Of each action at its turn; see `_turns`."""
        problem, goals = self._problem, self._problem.goal
        loads, earlier = self._turns(done)
        stale = (loads != self._loads).any(axis=1)
        self._loads = loads
        self._after[stale] = judged(problem, self._state, self.broker[stale], loads[stale])
        after = self._after.copy()
        before = np.where((earlier < 0)[:, None], self._state.score[self.broker], after[earlier])
        starts, most = self.first[:-1], int(np.diff(self.first).max(initial=0))
        fall, gain = before[:, COST] - after[:, COST], np.zeros(self.count)
        for k in range(most):  # in the order of touch, as sums are rounded
            there = np.flatnonzero(starts + k < self.first[1:])
            gain[there] += fall[starts[there] + k]
        eligible = problem.broker[self.broker, STATE] == 0
        low = np.where(eligible[:, None], before[:, :-1], 2.0)
        high = np.where(eligible[:, None], after[:, :-1], 2.0)
        touches_low = np.logical_or.reduceat((low < 1.0).any(axis=1), starts)
        allowed, repairs = np.ones(self.count, np.bool_), self._repairs.copy()
        scores = np.full((self.count, len(goals)), 0.5)
        for g in range(len(goals)):
            was, now = low[:, g], high[:, g]
            if (was == now).all():
                continue
            least, then_least = np.minimum.reduceat(was, starts), np.minimum.reduceat(now, starts)
            scores[:, g] = np.where(least > 1.5, 0.5, (then_least - least + 1.0) / 2.0)
            if goals[g, HARD] == 1 and goals[g, KIND] != RACK:
                if goals[g, KIND] == LIMIT:  # the excess as a share of the limit, falling as a score does
                    was, now = 1.0 - 1.0 / was, 1.0 - 1.0 / now
                worse = now < was - 1e-12
                allowed &= ~np.logical_or.reduceat(worse & eligible, starts)
                mends = np.logical_or.reduceat((now > was + TOLERANCE) & ~worse & eligible, starts)
                repairs |= np.where(mends, 1 << g, 0)
        better, score = _combined(problem, scores)
        return Verdicts(allowed, better, score, repairs, gain, touches_low, scores, before, after)


def _before(
    state: State, partition: np.ndarray, new: np.ndarray, lead: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lists and leaders before each change: what `state` has, or the change of the same partition before it."""
    old, was = state.replicas[partition], state.lead[partition]
    order = np.argsort(partition, kind="stable")
    again = np.flatnonzero(partition[order][1:] == partition[order][:-1])
    old[order[again + 1]], was[order[again + 1]] = new[order[again]], lead[order[again]]
    return old, was


def _combined(problem: Problem, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`optimizer.search.evaluate.combine` of float64 [A, G]."""
    count = len(scores)
    total, weights = np.zeros(count), 0.0
    above, below = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    for group in range(int(problem.setting[GROUPS])):
        part, weight = np.zeros(count), 0.0
        for g in np.flatnonzero((problem.goal[:, HARD] == 0) & (problem.goal[:, GROUP] == group)).tolist():
            part += problem.force[g, WEIGHT] * scores[:, g]
            weight += float(problem.force[g, WEIGHT])
        if weight > 0.0:
            mean = part / weight
            above |= mean > 0.5 + 1e-9 + 5e-10
            below |= mean < 0.5 - 1e-9 + 5e-10
            total += part
            weights += weight
    if weights <= 0.0:
        return np.zeros(count, np.bool_), np.full(count, 0.5)
    return above & ~below, total / weights
