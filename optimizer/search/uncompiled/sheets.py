"""What a problem says of goals and brokers, as plain Python numbers: an element of a list is read in a fifth of the time of an array's.

Called by the other forms without a compiler, which otherwise would turn the same few rows into numbers at every step.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

from goals.score import TOLERANCE, distribution_score, limit_score, units_score
from optimizer.problem import (
    ABSOLUTE,
    CEILING,
    COLUMN,
    DISTRIBUTION,
    GROUP,
    GROUPS,
    HARD,
    KIND,
    LIMIT,
    MIN_LOAD,
    RACK,
    RACK_OF,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    WEIGHT,
    Problem,
)

Rule = tuple[int, int, int, float, float, float, float, float, float, float]


class Sheet:
    """Of B brokers and G goals. Rows of brokers are made when somebody asks for them."""

    def __init__(self, problem: Problem) -> None:
        self.goal: list[list[int]] = problem.goal.tolist()
        self.force: list[list[float]] = problem.force.tolist()
        self.rack: list[int] = problem.broker[:, RACK_OF].tolist()
        self.state: list[int] = problem.broker[:, STATE].tolist()
        self.hard_limits = [
            (g, goal[COLUMN]) for g, goal in enumerate(self.goal) if goal[KIND] == LIMIT and goal[HARD] == 1
        ]
        self.hard = [goal[HARD] == 1 and goal[KIND] != RACK for goal in self.goal]
        self.racks_goal = [g for g, goal in enumerate(self.goal) if goal[KIND] == RACK]
        self.topics = [(g, goal[COLUMN]) for g, goal in enumerate(self.goal) if goal[KIND] > RACK]
        self.groups = [
            [(g, self.force[g][WEIGHT]) for g, goal in enumerate(self.goal) if goal[HARD] == 0 and goal[GROUP] == group]
            for group in range(int(problem.setting[GROUPS]))
        ]
        self._table = weakref.ref(problem.table)
        self._tables: dict[int, list[list[float]]] = {}
        self._rules: dict[int, list[Rule]] = {}
        self._best = [1.0] * len(self.goal)

    def table(self, b: int) -> list[list[float]]:
        """`Problem.table` of broker `b`."""
        rows = self._tables.get(b)
        if rows is None:
            table = self._table()
            assert table is not None
            rows = self._tables[b] = table[b].tolist()
        return rows

    def rules(self, b: int) -> list[Rule]:
        """What `judge` asks of broker `b`, by goal: kind, goal, column, the load (or distance from the mean) up to which it scores 1, and
        what `cost_of` asks for. A limit costs nothing there, either."""
        rules = self._rules.get(b)
        if rules is not None:
            return rules
        rules = self._rules[b] = []
        for g, (goal, force, (mean, bound, _, ceiling, high, low, scale)) in enumerate(
            zip(self.goal, self.force, self.table(b), strict=True)
        ):
            kind, edge = goal[KIND], math.inf
            if kind == LIMIT:
                free = low == -math.inf and (force[SPREAD] == 0.0 or scale == 0.0)
                edge = min(high, ceiling) if free else -math.inf
            elif kind == DISTRIBUTION and mean > 0.0:
                edge = bound * (1.0 + TOLERANCE) if mean >= force[MIN_LOAD] else -1.0
            if kind == LIMIT or (kind != RACK and self.state[b] == 0):
                rules.append((kind, g, goal[COLUMN], edge, mean, high, low, scale, force[STRENGTH], force[SPREAD]))
        return rules

    def judge(self, b: int, loads: list[float], racks: float, units: list[float]) -> tuple[float, list[float]]:
        """Part of the potential, and scores by goal, of broker `b` with these loads, replicas in over-full racks, and misplaced ones by
        topic goal."""
        scores = self._best.copy()
        cost = 0.0
        for kind, g, c, edge, mean, high, low, scale, strength, spread in self._rules.get(b) or self.rules(b):
            if kind == DISTRIBUTION:
                load = loads[c]
                away = load - mean
                if away > edge or -away > edge:
                    _, bound, var, _, _, _, _ = self.table(b)[g]
                    scores[g] = distribution_score(
                        load, mean, bound, var, self.goal[g][ABSOLUTE] == 1, self.force[g][MIN_LOAD]
                    )
                away *= scale
                over = load - high if load > high else low - load if load < low else 0.0
                if over > 0.0:
                    over *= scale
                    over *= over
                    cost += strength * over * (1.0 + STEEP * over) + spread * away * away
                else:
                    cost += spread * away * away
            elif kind == LIMIT:
                load = loads[c]
                if load > edge:
                    scores[g] = limit_score(load, self.table(b)[g][CEILING])
                    cost += cost_of(load, mean, high, low, scale, strength, spread)
            else:
                cost += strength * units[c]
        if racks != 0.0:
            for g in self.racks_goal:
                scores[g] = units_score(racks)
        for g, k in self.topics if units else ():
            scores[g] = units_score(units[k])
        return cost, scores

    def cost(self, b: int, loads: list[float], units: list[float]) -> float:
        """The part of the potential of `judge`."""
        cost = 0.0
        for kind, _, c, edge, mean, high, low, scale, strength, spread in self._rules.get(b) or self.rules(b):
            if kind == DISTRIBUTION:
                load = loads[c]
                away = (load - mean) * scale
                over = load - high if load > high else low - load if load < low else 0.0
                if over > 0.0:
                    over *= scale
                    over *= over
                    cost += strength * over * (1.0 + STEEP * over) + spread * away * away
                else:
                    cost += spread * away * away
            elif kind == LIMIT:
                if loads[c] > edge:
                    cost += cost_of(loads[c], mean, high, low, scale, strength, spread)
            else:
                cost += strength * units[c]
        return cost


def cost_of(load: float, mean: float, high: float, low: float, scale: float, strength: float, spread: float) -> float:
    """`optimizer.search.broker_scores.linear_cost` of one broker's row of a goal."""
    over, under = load - high, low - load
    beyond = over if over > 0.0 else (under if under > 0.0 else 0.0)
    beyond *= scale
    off = (load - mean) * scale
    square = beyond * beyond
    return strength * square * (1.0 + STEEP * square) + spread * off * off


def sheet_of(problem: Problem) -> Sheet:
    """The sheet of a problem, whose arrays nobody may change; the last few are kept as long as these very arrays are alive."""
    global _recent
    for goal, force, table, broker, sheet in _recent:
        if table() is problem.table and force() is problem.force and goal() is problem.goal and broker() is problem.broker:
            return sheet
    sheet, at = Sheet(problem), weakref.ref
    made = at(problem.goal), at(problem.force), at(problem.table), at(problem.broker), sheet
    _recent = (made, *(one for one in _recent[: MOST_KEPT - 1] if one[2]() is not None))
    return sheet


MOST_KEPT = 4  # a search goes back and forth between a few problems
_recent: tuple[tuple[Any, Any, Any, Any, Sheet], ...] = ()  # weak references to arrays, and what was made of them
