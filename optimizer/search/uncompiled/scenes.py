"""A few brokers and partitions among which something is tried, as plain numbers: what is tried stays off the state.

Called by `wander` and `verdicts`. What brokers and partitions are is looked up in the state when somebody asks first, and kept up from
then on; loads lie on a grid on which sums are exact, so what is undone is as it was.
"""

from __future__ import annotations

from operator import length_hint

import numpy as np

from optimizer.problem import (
    COUNTS_LEADERS,
    FOLLOWING,
    HARD_RACK,
    LEADING,
    NO_RACK_GOAL,
    RACK_GOAL,
    Problem,
)
from optimizer.search.state import COST, RACKS, State
from optimizer.search.uncompiled.changes import crowd_of
from optimizer.search.uncompiled.choices import scrambled
from optimizer.search.uncompiled.partitions import fits
from optimizer.search.uncompiled.sheets import sheet_of


class Dice:
    """Numbers for `optimizer.search.exchange.draw`, all that may be asked for at once: ``roll() % below`` is the next in [0, below)."""

    def __init__(self, random: np.ndarray, most: int) -> None:
        self._random, self._most = random, most
        self._numbers = iter(scrambled(random[0] + 1 + np.arange(most)).tolist())
        self.roll = self._numbers.__next__

    def stop(self) -> None:
        """Let `random` int64 [1] say how many were drawn."""
        self._random[0] += self._most - length_hint(self._numbers)


class Scene:
    """Lists and leaders of partitions, loads, costs and misplaced replicas of brokers, after what was tried."""

    def __init__(self, problem: Problem, state: State) -> None:
        self._problem, self._state, self.sheet = problem, state, sheet_of(problem)
        self._racks = problem.setting[RACK_GOAL] != NO_RACK_GOAL
        self._hard_racks = problem.setting[RACK_GOAL] == HARD_RACK
        self._topics = [goal[COUNTS_LEADERS] == 1 for goal in problem.topic_goal.tolist()]
        self._lists: dict[int, tuple[list[int], int]] = {}
        self._vectors: dict[int, list[list[float]]] = {}
        self.loads: dict[int, list[float]] = {}
        self._excess: dict[int, int] = {}
        self._units: dict[int, list[float]] = {}
        self._counts: dict[tuple[int, int, int], int] = {}
        self._bands: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.cost: dict[int, float] = {}

    def stand(self, p: int) -> tuple[list[int], int]:
        """Brokers of partition `p`, which nobody may change, and the slot that leads."""
        known = self._lists.get(p)
        if known is None:
            known = self._lists[p] = self._state.replicas[p].tolist(), int(self._state.lead[p])
            self._vectors[p] = self._problem.vector[p].tolist()
        return known

    def may_swap(self, p: int, s: int, target: int) -> bool:
        """`optimizer.search.swaps.may_swap`."""
        brokers = self._lists[p][0]
        return target not in brokers and (not self._hard_racks or fits(self._problem, self.sheet, p, brokers, s, target))

    def touched(self, p: int, new: list[int], lead: int) -> list[int]:
        """Brokers that feel it when `p` comes to `new`, led by slot `lead`; what they cost is known after it."""
        old, was = self.stand(p)
        touched = []
        for s, b in enumerate(old):
            u = new[s]
            if b < 0 or (b == u and (s == was) == (s == lead)):
                continue
            touched.append(b)
            if b != u:
                touched.append(u)
        for b in touched:
            if b not in self.loads:
                self.standing(b)
                self.cost[b] = float(self._state.score[b, COST])
        return touched

    def standing(self, b: int) -> tuple[list[float], list[float]]:
        """Loads of broker `b`, and misplaced replicas by topic goal."""
        if b not in self.loads:
            self.loads[b] = self._state.load[b].tolist()
            self._units[b] = self._state.units[:RACKS, b].tolist() if self._topics else []
        return self.loads[b], self._units[b]

    def shift(self, p: int, new: list[int], lead: int) -> int:
        """`optimizer.search.commit.shift`, for brokers that `touched` told."""
        old = self._lists[p][0]
        self.carry(p, new, lead)
        if not self._racks or old == new:
            return 0
        before = self._excess.get(p)
        if before is None:
            before = crowd_of(self.sheet, self._problem, p, old)[0]
        after = self._excess[p] = crowd_of(self.sheet, self._problem, p, new)[0]
        return after - before

    def carry(self, p: int, new: list[int], lead: int) -> None:
        """As `shift`, but for racks."""
        old, was = self._lists[p]
        for k, leaders in enumerate(self._topics):
            self._recount(k, leaders, p, new, lead)
        loads, (leading, following) = self.loads, (self._vectors[p][LEADING], self._vectors[p][FOLLOWING])
        for s, b in enumerate(old):
            u = new[s]
            if b < 0 or (b == u and (s == was) == (s == lead)):
                continue
            gone, come = leading if s == was else following, leading if s == lead else following
            if b == u:
                loads[b] = [x - y + z for x, y, z in zip(loads[b], gone, come)]  # noqa: B905 (as long as each other)
            else:
                loads[b] = [x - y for x, y in zip(loads[b], gone)]  # noqa: B905
                loads[u] = [x + y for x, y in zip(loads[u], come)]  # noqa: B905
        self._lists[p] = new, lead

    def undo(
        self, p: int, stood: tuple[list[int], int], rise: int, touched: list[int], loads: list[list[float]], costs: list[float]
    ) -> None:
        """As before the last `shift`, of `p`, which `stood` there; the excess rose by `rise`, and `touched` had these loads and costs."""
        for k, leaders in enumerate(self._topics):
            self._recount(k, leaders, p, *stood)
        if p in self._excess:
            self._excess[p] -= rise
        self._lists[p] = stood
        self.loads.update(zip(touched, loads, strict=True))
        self.cost.update(zip(touched, costs, strict=True))

    def assess(self, b: int) -> float:
        """What broker `b` costs."""
        cost = self.cost[b] = self.sheet.cost(b, self.loads[b], self._units[b])
        return cost

    def _recount(self, k: int, leaders: bool, p: int, new: list[int], lead: int) -> None:
        """`optimizer.search.topic_counts.recount`."""
        old, was = self._lists[p]
        if leaders:
            giver, taker = old[was] if was >= 0 else -1, new[lead] if lead >= 0 else -1
            if giver != taker:
                if giver >= 0:
                    self._count(k, p, giver, -1)
                if taker >= 0:
                    self._count(k, p, taker, 1)
            return
        for b, u in zip(old, new, strict=True):
            if b < 0 or b == u:
                continue
            if b not in new:
                self._count(k, p, b, -1)
            if u not in old:
                self._count(k, p, u, 1)

    def _count(self, k: int, p: int, b: int, by: int) -> None:
        from optimizer.search.topic_counts import topic_band, topic_holds

        t = int(self._problem.topic[p])
        key = k, t, b
        count = self._counts.get(key)
        if count is None:
            count = topic_holds(self._problem, self._state, k, t, b)
            low, high = topic_band(self._problem, k, t, b)
            self._bands[key] = int(low), int(high)
        self._counts[key] = count + by
        if self.sheet.state[b] == 0:
            low, high = self._bands[key]
            self._units[b][k] += float(max(low - count - by, 0, count + by - high) - max(low - count, 0, count - high))
