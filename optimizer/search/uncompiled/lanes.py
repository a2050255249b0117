"""Many stars at a time without a compiler: each pours in a lane of its own, and one step weighs the candidates of all lanes at once.

The form of `optimizer.search.stars.solve_all` where stars wait for each other, which have no broker in common: what a star does depends on
nothing that another does, so they may go on side by side. Not for topic goals, with which there is one star at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optimizer.problem import (
    CEILING,
    COLUMN,
    FOLLOWING,
    HARD_RACK,
    HIGH,
    LEADING,
    LOW,
    MEAN,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    SCALE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    Problem,
)
from optimizer.search.state import COST, State
from optimizer.search.uncompiled.brokers import assess
from optimizer.search.uncompiled.choices import keep_best
from optimizer.search.uncompiled.lists import gather
from optimizer.search.uncompiled.partitions import may_host
from optimizer.search.uncompiled.sheets import sheet_of

if TYPE_CHECKING:
    from optimizer.search.batch import Batch, Room
    from optimizer.search.shelf import Shelf

NEAR = 128  # candidates that are weighed after every move of a lane
FEW = 32  # where one or two more may go


class Pool(NamedTuple):
    """What may go from one broker to another: k candidates, by place in the list of the first."""

    amounts: np.ndarray  # float64 [G, k], loads as they are weighed
    factors: np.ndarray  # float64 [k], 0 once gone
    entries: np.ndarray  # int64 [k]
    places: np.ndarray  # int64 [k]


def solve_all(
    problem: Problem, state: State, shelf: Shelf, watched: np.ndarray, thrifty: bool, coarse: bool, batch: Batch, first: int, step: int,
    room: Room, stale: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.stars.solve_all`."""
    from optimizer.search.stars import solve

    stars = range(int(first), int(batch.used[0]), int(step))
    if len(batch.centre) == 1 or len(problem.topic_goal):
        for i in stars:
            solve(problem, state, shelf, watched, thrifty, coarse, batch, i, room, stale)
    elif len(stars):
        Lanes(problem, state, shelf, watched, thrifty, coarse, batch, room, list(stars)).run()


@dataclass
class Lane:
    """A star at work: what it pours next, what may go, and which of that is laid out."""

    star: int
    course: Iterator[tuple[int, int]]
    source: int = -1
    target: int = -1
    pool: Pool | None = None
    near: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


class Lanes:
    """S lanes with `NEAR` candidates each, G goals that are watched, C columns."""

    def __init__(
        self, problem: Problem, state: State, shelf: Shelf, watched: np.ndarray, thrifty: bool, coarse: bool, batch: Batch, room: Room,
        stars: list[int],
    ) -> None:  # fmt: skip
        self._problem, self._state, self._shelf, self._watched, self._batch, self._room = problem, state, shelf, watched, batch, room
        self._thrifty, self._coarse = thrifty, coarse
        goals, lanes, columns = len(watched), len(stars), state.load.shape[1]
        self._columns = problem.goal[watched, COLUMN]
        table = problem.table[:, watched]
        self._sides = np.ascontiguousarray(table[:, :, [MEAN, HIGH, LOW, SCALE]].transpose(2, 1, 0))  # [4, G, B]
        force = problem.force[watched]
        self._strength, self._spread = (np.ascontiguousarray(force[:, which])[:, None, None] for which in (STRENGTH, SPREAD))
        self._odd = bool((table[:, :, LOW] > table[:, :, HIGH]).any())
        hard = sheet_of(problem).hard_limits
        self._limited = np.array([c for _, c in hard], np.int64)
        self._ceilings = problem.table[:, [g for g, _ in hard], CEILING]
        self._limits = np.zeros((lanes, len(hard)))
        self._tables = np.zeros((4, 2, goals, lanes, 1))
        self._rooms = np.empty((3, 2, goals, lanes, NEAR))
        self._wide = np.empty((3, 2, goals, 1, state.hosted.shape[1]))
        self._amounts, self._loads = np.zeros((goals, lanes, NEAR)), np.zeros((2, lanes, columns))
        self._exact, self._factors = np.zeros((lanes, NEAR, columns)), np.zeros((lanes, NEAR))
        self._entries, self._places = np.zeros((lanes, NEAR), np.int64), np.zeros((lanes, NEAR), np.int64)
        self._beyond, self._fresh = np.zeros(lanes), np.zeros(lanes, np.bool_)
        self._left, self._star, self._target = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        self._waiting, self._lanes = stars, list[Lane]()

    def run(self) -> None:
        """Let all stars pour."""
        for i in self._waiting:
            last = len(self._lanes)
            self._star[last] = i
            self._lanes.append(Lane(i, self._course(i)))
            if not self._next(last):
                self._close(last)
        while self._lanes:
            self._step()

    def _course(self, i: int) -> Iterator[tuple[int, int]]:
        """Source and target of each pour of star `i`, as `optimizer.search.stars.solve` has them; loads are as they were after the last."""
        from optimizer.search.partners import leans
        from optimizer.search.stars import is_low

        problem, state, batch, watched = self._problem, self._state, self._batch, self._watched
        v = int(batch.centre[i])
        partners = batch.partner[i, : batch.partners[i]].tolist()
        members = [v, *partners]
        before = state.load[members]
        batch.moves[i] = 0
        for u in partners:
            over, under = leans(problem, state, watched, v)
            over2, under2 = leans(problem, state, watched, u)
            if over or under2:
                yield v, u
            if under or over2:
                yield u, v
            state.score[v, COST] = assess(problem, state, v, state.score[v])
            if not is_low(problem, state, v):
                break
        state.load[members] = before
        state.score[v, COST] = assess(problem, state, v, state.score[v])

    def _next(self, lane: int) -> bool:
        """Let the star of a lane begin its next pour; False where there is none."""
        for source, target in self._lanes[lane].course:
            if self._open(lane, source, target):
                return True
        return False

    def _open(self, lane: int, source: int, target: int) -> bool:
        """Lay out what may go from `source` to `target`; False where nothing may."""
        from optimizer.search.candidates import ANYWAY, KEPT
        from optimizer.search.stars import COARSE

        problem, state, batch, room, star = self._problem, self._state, self._batch, self._room, self._star[lane]
        n = gather(problem, state, self._shelf, source, self._thrifty, room.factors)
        factors = room.factors[:n]
        if self._coarse:
            np.divide(factors, 1.0 + COARSE * factors, out=factors, where=factors < ANYWAY)
        for side, b in enumerate((source, target)):
            self._loads[side, lane] = state.load[b]
            self._tables[:, side, :, lane, 0] = self._sides[:, :, b]
        block = self._shelf.vector[source][self._columns, :n].astype(np.float64)
        keys = self._weighed(lane, lane + 1, block[:, None], factors, self._wide)[0]
        sent = int(batch.moves[star])
        if source == batch.centre[star] and sent:
            keys[batch.place[star, :sent][batch.target[star, :sent] != source]] = 0.0  # on their way
        if batch.most[star] == 1 and self._send_best(star, source, target, keys):
            return False
        found = keep_best(keys, n, 0.0, KEPT, room.kept, room.spare)
        kept = room.kept[:found].copy()
        if not found:
            return False
        entries = state.hosted[source, kept].astype(np.int64)
        mine = self._lanes[lane]
        mine.pool, mine.source, mine.target = Pool(block[:, kept], factors[kept], entries, kept), source, target
        self._target[lane], self._left[lane], self._limits[lane] = target, batch.most[star], self._ceilings[target]
        return self._fill(lane, mine.pool, keys[kept])

    def _send_best(self, star: int, source: int, target: int, keys: np.ndarray) -> bool:
        """Propose the one move with the largest of `keys`, lower entry first; False, and nothing, where `FIRST` better ones may not be."""
        from optimizer.search.stars import FIRST

        state, batch, slots = self._state, self._batch, self._state.replicas.shape[1]
        for _ in range(FIRST):
            best = int(keys.argmax())
            if not keys[best] > 0.0:
                return True
            equal = np.flatnonzero(keys == keys[best])
            if len(equal) > 1:
                best = int(equal[state.hosted[source, equal].argmin()])
            entry = int(state.hosted[source, best])
            p, s = entry // slots, entry % slots
            if may_host(self._problem, state, p, s, target):
                vector = self._problem.vector[p, LEADING if state.lead[p] == s else FOLLOWING]
                state.load[source] -= vector
                state.load[target] += vector
                at = int(batch.moves[star])
                batch.entry[star, at], batch.place[star, at], batch.target[star, at] = entry, best, target
                batch.moves[star] = at + 1
                return True
            keys[best] = 0.0
        return False

    def _legal(self, p: np.ndarray, source: int, target: int) -> np.ndarray:
        """bool [n]: whether broker `target` may take the place of `source` in partitions `p`, but for hard limits."""
        problem, state = self._problem, self._state
        if problem.broker[target, STATE] != 0 or state.hosts[target] >= state.hosted.shape[1]:
            return np.zeros(len(p), np.bool_)
        lists = state.replicas[p]
        legal = ~(lists == target).any(axis=1)
        old, new = problem.broker[[source, target], RACK_OF].tolist()
        if problem.setting[RACK_GOAL] == HARD_RACK and old != new:
            racks = np.where(lists >= 0, problem.broker[lists, RACK_OF], -1)
            limit = problem.partition[p, RACK_LIMIT]
            legal &= ((racks == new).sum(axis=1) < limit) | ((racks == old).sum(axis=1) > limit)
        return np.asarray(legal)

    def _fill(self, lane: int, pool: Pool, keys: np.ndarray) -> bool:
        """Lay out the candidates of a lane's pool with the largest `keys`, lower entries first; False where none is above 0."""
        beyond = 0.0
        near = np.flatnonzero(keys > 0.0)
        if not len(near):
            return False
        most = NEAR if self._left[lane] > 2 else FEW
        if len(near) > most:
            order = np.argpartition(keys, len(keys) - most)
            near, beyond = order[-most:], float(keys[order[:-most]].max())
            if beyond == keys[near].max():  # of equal ones, the lower entries
                near = np.lexsort((pool.entries, -keys))[:most]
        near = near[np.argsort(pool.entries[near])]
        mine, state, n = self._lanes[lane], self._state, len(near)
        mine.near, self._beyond[lane], self._fresh[lane] = near, beyond, True
        entries = pool.entries[near]
        p, s = np.divmod(entries, state.replicas.shape[1])
        self._amounts[:, lane, :n] = pool.amounts[:, near]
        self._exact[lane, :n] = self._problem.vector[p, np.where(state.lead[p] == s, LEADING, FOLLOWING)]
        self._factors[lane, :n] = np.where(self._legal(p, mine.source, mine.target), pool.factors[near], 0.0)
        self._factors[lane, n:] = 0.0
        self._entries[lane, :n], self._places[lane, :n] = entries, pool.places[near]
        return True

    def _step(self) -> None:
        """One move of every lane, unless it needs other candidates or has none left."""
        batch, n = self._batch, len(self._lanes)
        keys = self._weighed(0, n, self._amounts[:, :n], self._factors[:n], self._rooms)
        lanes = np.arange(n)
        best = keys.argmax(axis=1)
        top, beyond = keys[lanes, best], self._beyond[:n]
        good = (top > beyond) | (self._fresh[:n] & (top == beyond) & (top > 0.0))
        amount = self._exact[lanes, best]
        lawful = good
        if len(self._limited):
            x = amount[:, self._limited]
            lawful = good & ~((x > 0.0) & (self._loads[1, :n, self._limited].T + x > self._limits[:n])).any(axis=1)
        at, one = np.flatnonzero(good), best[good]
        self._factors[at, one] = 0.0
        if len(at) != np.count_nonzero(lawful):
            at, one = np.flatnonzero(lawful), best[lawful]
            # Those that are refused are out; nothing else has changed for their lanes.
        star = self._star[at]
        self._loads[0, at] -= amount[at]
        self._loads[1, at] += amount[at]
        sent = batch.moves[star]
        batch.entry[star, sent], batch.place[star, sent] = self._entries[at, one], self._places[at, one]
        batch.target[star, sent] = self._target[at]
        batch.moves[star] = sent + 1
        self._left[at] -= 1
        self._fresh[at] = False
        over = ~good
        over[at] |= self._left[at] == 0
        for lane in np.flatnonzero(over)[::-1].tolist():  # the last first, which takes the place of one that ends
            if not (self._left[lane] > 0 and self._again(lane)):
                self._settle(lane)

    def _weighed(self, first: int, last: int, amounts: np.ndarray, factors: np.ndarray, rooms: np.ndarray) -> np.ndarray:
        """float64 [L, n]: what each of `amounts` float64 [G, L, n] gains in the lanes from `first` to before `last`, times its factor; 0
        where that is next to nothing. `rooms` float64 [3, 2, G, L or more, n or more] is scratch."""
        from optimizer.search.candidates import LEAST_GAIN

        mean, high, low, scale = self._tables[:, :, :, first:last]
        after, room, off = rooms[:, :, :, : last - first, : amounts.shape[2]]
        level = self._loads[:, first:last, self._columns].transpose(0, 2, 1)[:, :, :, None]
        now = self._now(level, mean, high, low, scale)
        np.subtract(level[0], amounts, out=after[0])
        np.add(level[1], amounts, out=after[1])
        np.subtract(after, mean, out=off)
        off *= scale
        off *= off
        if self._odd:
            np.add(np.maximum(after - high, 0.0), np.maximum(low - after, 0.0), out=room)
        else:
            np.clip(after, low, high, out=room)
            np.subtract(after, room, out=room)
        room *= scale
        room *= room
        np.multiply(room, STEEP, out=after)
        after += 1.0
        room *= after
        cost, beside = room[0], off[0]
        cost += room[1]
        beside += off[1]
        cost *= self._strength
        beside *= self._spread
        np.subtract(now, cost, out=cost)
        cost -= beside
        keys = cost[0].copy()
        for g in range(1, len(cost)):
            keys += cost[g]
        keys *= keys > LEAST_GAIN
        keys *= factors
        return np.asarray(keys)

    def _now(self, level: np.ndarray, mean: np.ndarray, high: np.ndarray, low: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """float64 [G, S, 1]: what source and target cost together as they stand."""
        over, under = level - high, low - level
        square = np.where(over > 0.0, over, np.where(under > 0.0, under, 0.0))
        square *= scale
        square *= square
        off = (level - mean) * scale
        cost = self._strength * square * (1.0 + STEEP * square) + self._spread * off * off
        return np.asarray(cost[0] + cost[1])

    def _again(self, lane: int) -> bool:
        """Weigh all that are left of a lane's pool; False where none gains anything."""
        pool, near = self._lanes[lane].pool, self._lanes[lane].near
        assert pool is not None
        pool.factors[near] = self._factors[lane, : len(near)]
        keys = self._weighed(lane, lane + 1, pool.amounts[:, None], pool.factors, self._wide)[0]
        return self._fill(lane, pool, keys)

    def _bring(self, lane: int) -> None:
        """Loads of a lane's brokers as they are after what it sent."""
        mine = self._lanes[lane]
        self._state.load[mine.source], self._state.load[mine.target] = self._loads[0, lane], self._loads[1, lane]

    def _settle(self, lane: int) -> None:
        """A lane's pour is over."""
        self._bring(lane)
        if not self._next(lane):
            self._close(lane)

    def _close(self, lane: int) -> None:
        """A lane's star is done: the last lane takes its place."""
        last = len(self._lanes) - 1
        self._lanes[lane] = self._lanes[last]
        self._lanes.pop()
        if lane == last:
            return
        self._tables[:, :, :, lane], self._loads[:, lane] = self._tables[:, :, :, last], self._loads[:, last]
        self._amounts[:, lane] = self._amounts[:, last]
        for rows in (
            self._limits, self._exact, self._factors, self._entries, self._places, self._beyond, self._fresh, self._left, self._star,
            self._target,
        ):  # fmt: skip
            rows[lane] = rows[last]
