"""Annealing of a few changes without a compiler: `optimizer.search.exchange.wander`, step by step with plain numbers."""

from __future__ import annotations

import math

import numpy as np

from optimizer.problem import MOVABLE, UNIT_WEIGHT, Problem
from optimizer.search.state import COST, MAX_CHANGES, State
from optimizer.search.uncompiled.scenes import Dice, Scene

MOST_DRAWN = 8  # numbers, in one step

Stand = tuple[list[int], int]  # brokers and leading slot of a partition


def wander(
    problem: Problem, state: State, around: np.ndarray, members: int, steps: int, random: np.ndarray, typical: float, warmth: float,
    least: float, found_n: np.ndarray, found_p: np.ndarray, found_r: np.ndarray, found_l: np.ndarray,
) -> int:  # fmt: skip
    """`optimizer.search.exchange.wander`."""
    from optimizer.search.exchange import BYTES_PRICE, KEPT

    walk = Walk(problem, state, around[:members].tolist(), Dice(random, MOST_DRAWN * int(steps)))
    scene, base, roll, exp = walk.scene, walk.base, walk.dice.roll, math.exp
    start = 0.0
    for cost in state.score[around[:members], COST].tolist():
        start += cost
    steps, typical, hot = int(steps), float(typical), max(float(warmth) * start / int(members), 1e-7)
    total, best, stored, price = 0.0, -float(least), 0, BYTES_PRICE
    for step in range(steps):
        proposed = walk.propose()
        if proposed is None:
            continue
        p, row, lead = proposed
        stood = scene.stand(p)
        was = stood[0]
        touched = scene.touched(p, row, lead)
        if not touched:
            continue
        loads, costs = [scene.loads[b] for b in touched], [scene.cost[b] for b in touched]
        before = 0.0
        for cost in costs:
            before += cost
        rise = scene.shift(p, row, lead)
        delta = UNIT_WEIGHT * rise - before
        for b in touched:
            delta += scene.assess(b)
        if row is not was or p in base:
            fare = price * (float(problem.size[p]) / typical + 0.2)
            for now, old, home in zip(row, was, base.get(p, stood)[0], strict=True):
                if now != home:
                    delta += fare
                if old != home:
                    delta -= fare
        cool = 1.0 - step / steps
        if delta > 0.0 and (roll() % (1 << 30) + 1) / (1 << 30) >= exp(-delta / (hot * (cool * cool) + 1e-12)):
            scene.undo(p, stood, rise, touched, loads, costs)
            continue
        total += delta
        walk.note(p, stood)
        if total < best and walk.moved:
            best, slot, n = total, stored % KEPT, len(walk.moved)
            stored += 1
            found_n[slot], found_p[slot, :n] = n, walk.moved
            stands = [scene.stand(q) for q in walk.moved]
            found_r[slot, :n], found_l[slot, :n] = [rows for rows, _ in stands], [leader for _, leader in stands]
    walk.dice.stop()
    return stored


class Walk:
    """Changes among the brokers `group`, proposed by chance, with at most `MAX_CHANGES` partitions away from where they stood."""

    def __init__(self, problem: Problem, state: State, group: list[int], dice: Dice) -> None:
        self._group, self._slots = group, state.replicas.shape[1]
        self._movable = problem.partition[:, MOVABLE].astype(np.uint8).tobytes()
        self._lists = [state.hosted[b, :n].tolist() for b, n in zip(group, state.hosts[group].tolist(), strict=True)]
        self.scene, self.dice = Scene(problem, state), dice
        self._state = self.scene.sheet.state
        self.moved: list[int] = []
        self.base: dict[int, Stand] = {}  # where they stood

    def propose(self) -> tuple[int, list[int], int] | None:
        """A partition, and brokers and leading slot to which it might come; None if that may not be."""
        roll, group, slots, state = self.dice.roll, self._group, self._slots, self._state
        entries = self._lists[0 if roll() % 3 == 0 else roll() % len(group)]
        if not entries:
            return None
        if self.moved and roll() % 3 == 0:
            p = self.moved[roll() % len(self.moved)]
            s = roll() % slots
        else:
            p, s = divmod(entries[roll() % len(entries)], slots)
        was, led = self.scene.stand(p)
        if was[s] < 0 or self._movable[p] == 0 or state[was[s]] == 3 or (p not in self.base and len(self.moved) == MAX_CHANGES):
            return None
        kind = roll() % 4
        if kind == 0 and slots > 1:
            o = roll() % slots
            if was[o] < 0 or o == led or led < 0 or state[was[o]] != 0 or state[was[led]] == 3:
                return None
            return p, was, o
        target = group[roll() % len(group)]
        if state[target] != 0 or not self.scene.may_swap(p, s, target):
            return None
        row, lead = was.copy(), led
        row[s] = target
        if kind == 1 and slots > 1 and led >= 0 and led != s and state[was[led]] != 3:
            lead = s
        return p, row, lead

    def note(self, p: int, stood: Stand) -> None:
        """`p`, which stood there, has come to elsewhere."""
        if p not in self.base:
            self.base[p] = stood
            self.moved.append(p)
        if self.scene.stand(p) == self.base[p]:
            del self.base[p]
            last = self.moved.pop()
            if last != p:
                self.moved[self.moved.index(p)] = last
