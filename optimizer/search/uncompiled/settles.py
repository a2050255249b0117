"""What the stars of a batch propose, carried out without a compiler: all of it at once.

The form of `optimizer.search.stars.settle_all`. Whether a move may be, and still gains anything, depends on the moves before it: which of
them are carried out is guessed, and guessed again until no verdict changes, as in `trains`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import (
    CEILING,
    COLUMN,
    FOLLOWING,
    HARD_RACK,
    LEADING,
    NO_RACK_GOAL,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    STATE,
    Problem,
)
from optimizer.search.state import COST, RACKS, State
from optimizer.search.uncompiled.brokers import assess
from optimizer.search.uncompiled.changes import relist_all
from optimizer.search.uncompiled.lists import crowded
from optimizer.search.uncompiled.panels import costs_of, judged
from optimizer.search.uncompiled.partitions import fits
from optimizer.search.uncompiled.sheets import sheet_of

if TYPE_CHECKING:
    from optimizer.search.batch import Batch

FEW = 8  # brokers, which are assessed one by one


def settle_all(problem: Problem, state: State, watched: np.ndarray, batch: Batch, row: np.ndarray, stale: np.ndarray) -> None:
    """`optimizer.search.stars.settle_all`."""
    from optimizer.search.stars import settle

    stars = int(batch.used[0]) if len(batch.centre) > 1 else 0
    sent = batch.moves[:stars].copy()
    if not sent.any():
        return
    there = np.arange(batch.entry.shape[1]) < sent[:, None]
    moves = Moves(problem, state, batch.entry[:stars][there], batch.target[:stars][there], np.repeat(np.arange(stars), sent))
    if len(problem.topic_goal) or not moves.has_room:
        for i in range(stars):
            batch.moves[i] = settle(problem, state, watched, batch, i, row, stale)
        return
    done = moves.done(watched)
    moves.carry_out(done, stale)
    batch.moves[:stars] = np.bincount(moves.star[done], minlength=stars)


class Moves:
    """Moves of m replicas, in turn: `entry`, `target` and `star` int64 [m]. No entry is there twice, and no broker in two stars."""

    def __init__(self, problem: Problem, state: State, entry: np.ndarray, target: np.ndarray, star: np.ndarray) -> None:
        self._problem, self._state, self.star = problem, state, star
        self._partition, self._slot = np.divmod(entry, state.replicas.shape[1])
        self._lists = state.replicas[self._partition]
        self._target, self._source = target, self._lists[np.arange(len(entry)), self._slot]
        role = np.where(state.lead[self._partition] == self._slot, LEADING, FOLLOWING)
        self._amount = problem.vector[self._partition, role]
        # A row for each broker of a move, in turn, and these by broker.
        self._broker = np.column_stack([self._source, target]).reshape(-1)
        self._delta = np.stack([-self._amount, self._amount], axis=1).reshape(len(self._broker), -1)
        self._order = np.argsort(self._broker, kind="stable")
        ordered = self._broker[self._order]
        self._begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        self._length = np.diff(np.append(self._begins, len(ordered)))
        order = np.argsort(self._partition, kind="stable")
        again = self._partition[order][1:] == self._partition[order][:-1]
        self._shared = np.sort(order[np.append(again, False) | np.append(False, again)])  # moves of partitions that have several

    @property
    def has_room(self) -> bool:
        """Whether lists are long enough whatever is carried out."""
        came = np.bincount(self._target, minlength=len(self._state.hosts))
        return bool((self._state.hosts + came < self._state.hosted.shape[1]).all())

    def done(self, watched: np.ndarray) -> np.ndarray:
        """bool [m]: which are carried out. After one of a star that may not be, those that follow have to gain something."""
        legal, hard = self._legal(), sheet_of(self._problem).hard_limits
        goals, columns = [g for g, _ in hard], [c for _, c in hard]
        x = self._amount[:, columns]
        ceilings = np.where(x > 0.0, self._problem.table[self._target][:, goals, CEILING], np.inf)
        first = np.searchsorted(self.star, self.star)
        done = legal.copy()
        while True:
            source, target = self._loads(done)
            good = legal.copy()
            self._look_again(done, good)
            good &= ~(target[:, columns] + x > ceilings).any(axis=1)
            failed = np.append(0, np.cumsum(~done))
            unsure = np.flatnonzero((failed[:-1] > failed[first]) & good)
            if len(unsure):
                good[unsure] = self._gains(watched, unsure, source, target)
            if (good == done).all():
                return done
            done = good

    def _legal(self) -> np.ndarray:
        """bool [m]: whether each may be by itself, but for hard limits."""
        problem = self._problem
        legal = ~(self._lists == self._target[:, None]).any(axis=1) & (problem.broker[self._target, STATE] == 0)
        if problem.setting[RACK_GOAL] == HARD_RACK:
            racks = np.where(self._lists >= 0, problem.broker[self._lists, RACK_OF], -1)
            old, new = problem.broker[self._source, RACK_OF], problem.broker[self._target, RACK_OF]
            limit = problem.partition[self._partition, RACK_LIMIT]
            came, left = (racks == new[:, None]).sum(axis=1), (racks == old[:, None]).sum(axis=1)
            legal &= (old == new) | (came < limit) | (left > limit)
        return np.asarray(legal)

    def _look_again(self, done: np.ndarray, good: np.ndarray) -> None:
        """Put right what `good` bool [m] says of moves of partitions that have several, when those that are `done` come before."""
        sheet = sheet_of(self._problem)
        lists: dict[int, list[int]] = {}
        for j in self._shared.tolist():
            p, s, target = int(self._partition[j]), int(self._slot[j]), int(self._target[j])
            now = lists.setdefault(p, self._lists[j].tolist())
            good[j] = sheet.state[target] == 0 and target not in now and fits(self._problem, sheet, p, now, s, target)
            if done[j]:
                now[s] = target

    def _loads(self, done: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """float64 [m, C]: loads of source and target of each at its turn, if the moves `done` bool [m] are carried out."""
        made = np.where(np.repeat(done, 2)[:, None], self._delta, 0.0)[self._order]
        summed = np.cumsum(made, axis=0)
        before = summed - made  # loads lie on a grid on which this is exact
        before -= np.repeat(before[self._begins], self._length, axis=0)
        loads = self._state.load[self._broker]
        loads[self._order] += before
        return loads[::2], loads[1::2]

    def _gains(self, watched: np.ndarray, rows: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """bool [n]: whether the potential falls with each of `rows` int64 [n]: `optimizer.search.stars.still_gains`."""
        from optimizer.search.candidates import LEAST_GAIN

        problem, gain = self._problem, np.zeros(len(rows))
        giver, taker = self._source[rows], self._target[rows]
        for g in watched.tolist():
            c, force, table = problem.goal[g, COLUMN], problem.force[g].tolist(), problem.table[:, g]
            x, a, b = self._amount[rows, c], source[rows, c], target[rows, c]
            mine, theirs = table[giver], table[taker]
            gain += (
                costs_of(a, mine, force) + costs_of(b, theirs, force) - costs_of(a - x, mine, force) - costs_of(b + x, theirs, force)
            )
        return np.asarray(gain > LEAST_GAIN)

    def carry_out(self, done: np.ndarray, stale: np.ndarray) -> None:
        """`optimizer.search.commit.put` each of the moves `done` bool [m]; brokers that hold the partitions are `stale` after it."""
        problem, state = self._problem, self._state
        p, s, source, target = (x[done] for x in (self._partition, self._slot, self._source, self._target))
        lists = self._lists[done]
        stale[lists[lists >= 0]] = 1
        stale[target] = 1
        used = int(state.trail[0])
        room = state.trail[1 + used : 1 + used + len(p)]
        room[:] = p[: len(room)]
        state.trail[0] = used + len(p)
        np.add.at(state.load, self._broker[np.repeat(done, 2)], self._delta[np.repeat(done, 2)])
        relist_all(state, p, s, source, target)
        state.dirty[source] = state.dirty[target] = 1
        rows = np.unique(p)
        if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
            self._count_crowds(rows, -1.0)
        state.replicas[p, s] = target
        if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
            self._count_crowds(rows, 1.0)

    def _count_crowds(self, rows: np.ndarray, sign: float) -> None:
        """Replicas of partitions `rows` in over-full racks, at the brokers that hold them."""
        lists = self._state.replicas[rows]
        full = lists[crowded(self._problem, rows, lists)]
        if len(full):
            self._state.units[RACKS] += sign * np.bincount(full, minlength=len(self._state.hosts))


def assess_stale(problem: Problem, state: State, stale: np.ndarray) -> None:
    """`optimizer.search.stars.assess_stale`."""
    brokers = np.flatnonzero(stale == 1)
    stale[brokers] = 0
    if len(problem.topic_goal) or len(brokers) < FEW:
        for b in brokers.tolist():
            state.score[b, COST] = assess(problem, state, b, state.score[b])
    else:
        state.score[brokers] = judged(problem, state, brokers, state.load[brokers])
