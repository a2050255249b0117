"""The fewest changes of leadership that bring every broker's leader count within one of the others: reordering lists, moving no data.

Called by the amount `to_target_counts` after replicas have their places. Exact: a min-cost flow between brokers, whose arcs are
partitions that one leads and another follows. Source: ours; the published rebalance orders the lists that it changes, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BoolArray

Rows = npt.NDArray[np.int64]
FREE, TOUCHED, UNTOUCHED = 0, 1_000_000, 1_000_001  # price of another leader: it changes anyway; its list does; neither
STEPS = (-UNTOUCHED, -TOUCHED, 0, TOUCHED, UNTOUCHED)  # what one change may add to the price of all
NO_WAY = 2**60


@dataclass(frozen=True)
class Led:
    """Who leads what. B brokers, P partitions, R slots.

    Attributes
    ----------
    replicas
        int64 [P, R], broker rows, -1 beyond a list.
    lead
        int64 [P], slot of the leader, -1 none; those without one are left alone.
    movable
        bool [P].
    may_lead
        bool [B].
    price
        int64 [P]: of a leader other than the one in `lead`: `FREE`, `TOUCHED` or `UNTOUCHED`.
    """

    replicas: Rows
    lead: Rows
    movable: BoolArray
    may_lead: BoolArray
    price: Rows

    @property
    def leader(self) -> Rows:
        """int64 [P], broker row, -1 none."""
        return np.where(self.lead >= 0, self.replicas[np.arange(len(self.lead)), np.maximum(self.lead, 0)], -1)


def level_leaders(given: Led) -> Rows:
    """int64 [P]: the leader's slot of every partition, level over the brokers that may lead with the fewest changes."""
    leader, brokers = given.leader, len(given.may_lead)
    counts = np.bincount(leader[leader >= 0], minlength=brokers)
    leads = np.flatnonzero(given.may_lead)
    lead = given.lead.copy()
    if not len(leads):
        return lead
    total = int(counts[leads].sum())
    low, high = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    low[leads], high[leads] = total // len(leads) - counts[leads], -(-total // len(leads)) - counts[leads]
    if (low <= 0).all() and (high >= 0).all():
        return lead
    flow = _Flow(given)
    flow.level(low, high)
    return flow.lead


class _Flow:
    """Leaders on their way to level counts, along cheapest paths of brokers: each gives one partition to the next, so only the ends of a
    path change their counts. As every path is the cheapest there is, what is reached costs least (successive shortest paths).

    O(B^2) for a path, which carries as many leaderships as there are partitions for it, and O(replicas of a broker) for a step of it.
    """

    def __init__(self, given: Led) -> None:
        self.given, self.lead, self.brokers = given, given.lead.copy(), len(given.may_lead)
        self.first = given.leader
        self.leader = self.first.copy()
        usable = np.append(given.may_lead, False)
        self.open = given.movable & usable[self.first]
        p, s = np.nonzero(usable[given.replicas] & (given.replicas >= 0) & self.open[:, None])
        host = given.replicas[p, s]
        order = np.argsort(host, kind="stable")
        self.hosted, self.slot = p[order], s[order]
        self.starts = np.searchsorted(host[order], np.arange(self.brokers + 1))
        self.ways = np.zeros((len(STEPS), self.brokers, self.brokers), np.int64)  # partitions, by step, leader and follower
        self._count(np.flatnonzero(self.open), 1)

    def _count(self, rows: Rows, sign: int) -> None:
        """Add what partitions `rows` offer, as they are led now, or take it away."""
        for s in range(self.given.replicas.shape[1]):
            target = self.given.replicas[rows, s]
            good = np.append(self.given.may_lead, False)[target] & (target >= 0) & (target != self.leader[rows])
            p, t = rows[good], target[good]
            np.add.at(self.ways, (self._step(p, t), self.leader[p], t), sign)

    def _step(self, p: Rows, target: Rows) -> Rows:
        """Index in `STEPS` of giving partitions `p` to `target`."""
        price = self.given.price[p]
        step = np.where(target != self.first[p], price, 0) - np.where(self.leader[p] != self.first[p], price, 0)
        return np.searchsorted(STEPS, step)

    def level(self, low: Rows, high: Rows) -> None:
        """Bring every broker's gain between `low` and `high` (int64 [B]), as far as paths lead there."""
        gained = np.zeros(self.brokers, np.int64)
        for must in ("give", "take"):
            while True:
                spare = np.maximum(gained - (high if must == "give" else low), 0)
                room = np.maximum((high if must == "give" else low) - gained, 0)
                path = self._path(spare > 0, room > 0)
                if path is None:
                    break
                amount = min(int(spare[path[0]]), int(room[path[-1]]))
                amount = self._pass_on(path, amount)
                gained[path[0]] -= amount
                gained[path[-1]] += amount

    def _path(self, sources: BoolArray, sinks: BoolArray) -> list[int] | None:
        """Brokers of the cheapest path; None where there is none."""
        if not sources.any() or not sinks.any():
            return None
        cost = np.full((self.brokers, self.brokers), NO_WAY, np.int64)
        for k in range(len(STEPS) - 1, -1, -1):
            cost[self.ways[k] > 0] = STEPS[k]
        best = np.where(sources, 0, NO_WAY)
        came = np.full(self.brokers, -1, np.int64)
        for _ in range(self.brokers):
            through = np.where((best[:, None] >= NO_WAY) | (cost >= NO_WAY), NO_WAY, best[:, None] + cost)
            giver = through.argmin(axis=0)
            reached = through[giver, np.arange(self.brokers)]
            better = reached < best
            if not better.any():
                break
            best[better], came[better] = reached[better], giver[better]
        ends = np.where(sinks, best, NO_WAY)
        end = int(ends.argmin())
        if ends[end] >= NO_WAY:
            return None
        path = [end]
        while came[path[-1]] >= 0:
            path.append(int(came[path[-1]]))
        return path[::-1]

    def _pass_on(self, path: list[int], amount: int) -> int:
        """Hand leaderships along `path`, as many as every step of it has partitions for at its lowest price; returns how many."""
        steps = []
        for source, target in pairwise(path):
            at = slice(self.starts[target], self.starts[target + 1])
            rows, slots = self.hosted[at], self.slot[at]
            led = self.leader[rows] == source
            rows, slots = rows[led], slots[led]
            step = self._step(rows, np.full(len(rows), target))
            cheap = step == step.min()
            steps.append((target, rows[cheap], slots[cheap]))
            amount = min(amount, int(cheap.sum()))
        for target, rows, slots in steps:
            self._count(rows[:amount], -1)
            self.leader[rows[:amount]], self.lead[rows[:amount]] = target, slots[:amount]
            self._count(rows[:amount], 1)
        return amount
