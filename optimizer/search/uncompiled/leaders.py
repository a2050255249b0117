"""Transfers of leadership without a compiler: `optimizer.search.leadership.find_all`, with what all brokers of a batch promise at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    HIGH,
    LEADING,
    LOW,
    MEAN,
    SCALE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    Problem,
)
from optimizer.search.state import LED, State
from optimizer.search.uncompiled.choices import cut_of
from optimizer.search.uncompiled.lists import fetch
from optimizer.search.uncompiled.sheets import cost_of, sheet_of
from optimizer.search.uncompiled.sides import promises

if TYPE_CHECKING:
    from optimizer.search.batch import Batch, Room
    from optimizer.search.shelf import Shelf


class Seeker:
    """The broker of a star, what each of its n replicas promises, and the transfers found so far."""

    def __init__(
        self, problem: Problem, state: State, shelf: Shelf, led: np.ndarray, batch: Batch, star: int, room: Room
    ) -> None:
        from optimizer.search.batch import LEADERSHIPS
        from optimizer.search.candidates import LEAST_GAIN
        from optimizer.search.leadership import LOOKED_AT
        from optimizer.search.partners import leans

        self.broker, n = int(batch.centre[star]), int(state.hosts[batch.centre[star]])
        self.gains, self.entries, self.found, self._last = batch.gain[star], batch.leader[star], 0, LEADERSHIPS - 1
        over, under = leans(problem, state, led, self.broker)
        fetch(problem, state, shelf, self.broker)
        promises(problem, state, shelf, led, self.broker, over, under, room.steep, room.factors, room.gains)
        self.mine, self.bounds = room.factors[:n].copy(), room.gains[:n].copy()
        few = np.count_nonzero(self.bounds > LEAST_GAIN) <= LOOKED_AT
        self.floor = LEAST_GAIN if few else cut_of(self.bounds, n, LEAST_GAIN, LOOKED_AT, room.spare)
        self.ceiling = np.inf

    @property
    def least(self) -> float:
        """What a transfer has to promise."""
        return float(self.gains[self._last]) if self.found > self._last else -np.inf

    def rows(self) -> np.ndarray:
        """Those that promise most, then others that may still be among the best."""
        return np.flatnonzero((self.bounds >= self.floor) & (self.bounds < self.ceiling) & (self.bounds >= self.least))

    def goes_on(self) -> bool:
        """Whether there are others."""
        from optimizer.search.candidates import LEAST_GAIN

        if self.floor <= LEAST_GAIN or self.least > self.floor:
            return False
        self.floor, self.ceiling = LEAST_GAIN, self.floor
        return True


def find_all(
    problem: Problem, state: State, shelf: Shelf, led: np.ndarray, batch: Batch, first: int, step: int, room: Room
) -> None:  # fmt: skip
    """`optimizer.search.leadership.find_all`."""
    from optimizer.search.candidates import LEAST_GAIN, topic_burden
    from optimizer.search.leadership import insert

    stars, topics = range(int(first), int(batch.used[0]), int(step)), len(problem.topic_goal) > 0
    every = [Seeker(problem, state, shelf, led, batch, star, room) for star in stars]
    seekers = every
    while seekers:
        for which, bound, most, gain, p, giver, taker, entry in _pairs(problem, state, shelf, led, seekers, room.slopes):
            seeker = seekers[which]
            if bound < seeker.least or most < seeker.least:
                continue
            if topics:
                gain -= topic_burden(problem, state, p, False, True, giver, taker)
            if gain > LEAST_GAIN:
                seeker.found = insert(seeker.gains, seeker.entries, seeker.found, gain, entry)
        seekers = [seeker for seeker in seekers if seeker.goes_on()]
    for star, seeker in zip(stars, every, strict=True):
        batch.moves[star] = seeker.found


def _pairs(
    problem: Problem, state: State, shelf: Shelf, led: np.ndarray, seekers: list[Seeker], slopes: np.ndarray
) -> list[tuple[int, float, float, float, int, int, int, int]]:  # fmt: skip
    """Transfers from or to the brokers of `seekers`, of the rows of each, that promise enough and gain anything, in the order of lists:
    which seeker, bound, promise, gain (without topics), partition, giver, taker, entry that is to lead."""
    from optimizer.search.candidates import LEAST_GAIN

    slots, each = state.replicas.shape[1], [seeker.rows() for seeker in seekers]
    lengths = [len(rows) for rows in each]
    rows, which = np.concatenate(each), np.repeat(np.arange(len(seekers)), lengths)
    v, least = (np.repeat(values, lengths) for values in ([x.broker for x in seekers], [x.least for x in seekers]))
    bound, mine = (np.concatenate([values[r] for values, r in zip(x, each, strict=True)])
                   for x in ([x.bounds for x in seekers], [x.mine for x in seekers]))  # fmt: skip
    entry = state.hosted[v, rows].astype(np.int64)
    p, s = np.divmod(entry, slots)
    lists, lead = state.replicas[p], state.lead[p]
    leads = (state.mark[v, rows] & LED) != 0
    others = np.where(leads[:, None], lists, -1)
    others[np.arange(len(rows)), s] = -1
    others[(others >= 0) & (problem.broker[others, STATE] != 0)] = -1
    back = np.flatnonzero(~leads & (lead >= 0))
    leaders = lists[back, lead[back]]
    others[back, 0] = np.where(problem.broker[leaders, STATE] == 3, -1, leaders)  # the only one, whatever its slot
    others[lead < 0] = -1
    i, o = np.nonzero(others >= 0)
    u, sign = others[i, o], np.where(leads[i], -1.0, 1.0)
    most = mine[i]
    for g in led.tolist():
        theirs = sign * slopes[u, g] * shelf.lead[v[i], shelf.seat[g], rows[i]]
        most += theirs + 1e-6 * np.abs(theirs)
    good = np.flatnonzero((most >= least[i]) & (most > LEAST_GAIN))
    i, o, u, most = i[good], o[good], u[good], most[good]
    gives = leads[i]
    giver, taker = np.where(gives, v[i], u), np.where(gives, u, v[i])
    gain = transfer_gains(problem, state, led, p[i], giver, taker)
    gaining = np.flatnonzero(gain > LEAST_GAIN)
    i, o, most, gain, giver, taker = i[gaining], o[gaining], most[gaining], gain[gaining], giver[gaining], taker[gaining]
    to_lead = np.where(leads[i], p[i] * slots + o, entry[i])
    columns = (which[i], bound[i], most, gain, p[i], giver, taker, to_lead)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def transfer_gains(
    problem: Problem, state: State, led: np.ndarray, p: np.ndarray, giver: np.ndarray, taker: np.ndarray
) -> np.ndarray:
    """`optimizer.search.leadership.transfer_gain` of many, float64 [n], without topics."""
    columns = problem.goal[led, COLUMN]
    both = problem.vector[p][:, :, columns].astype(np.float32)
    x = both[:, LEADING].astype(np.float64) - both[:, FOLLOWING]
    force = problem.force[led]
    strength, spread = force[:, STRENGTH], force[:, SPREAD]
    cost = []
    for brokers, after in ((giver, -x), (taker, x)):
        table = problem.table[brokers[:, None], led]
        mean, high, low, scale = (table[:, :, which] for which in (MEAN, HIGH, LOW, SCALE))
        now = state.load[brokers][:, columns]
        for load in (now, now + after):
            over, under = load - high, low - load
            beyond = np.where(over > 0.0, over, np.where(under > 0.0, under, 0.0)) * scale
            beyond *= beyond
            off = (load - mean) * scale
            cost.append(strength * beyond * (1.0 + STEEP * beyond) + spread * off * off)
    term = cost[0] + cost[2]
    term -= cost[1]
    term -= cost[3]
    term = np.where(x != 0.0, term, 0.0)
    gain = np.zeros(len(p))
    for k in range(len(led)):
        gain += term[:, k]
    return gain


def appraise(problem: Problem, state: State, led: np.ndarray, b: int, costs: np.ndarray) -> None:
    """`optimizer.search.leadership.appraise`."""
    if costs[b, -1] != 0.0:
        return
    sheet, loads = sheet_of(problem), state.load[b].tolist()
    table = sheet.table(int(b))
    for g in led.tolist():
        mean, _, _, _, high, low, scale = table[g]
        force = sheet.force[g]
        costs[b, g] = cost_of(loads[sheet.goal[g][COLUMN]], mean, high, low, scale, force[STRENGTH], force[SPREAD])
    costs[b, -1] = 1.0
