"""One broker without a compiler: what its loads cost, what it would gain or give, what its scores come to."""

from __future__ import annotations

import numpy as np

from goals.score import TOLERANCE, distribution_score, limit_score, units_score
from optimizer.problem import (
    ABSOLUTE,
    BOUND,
    CEILING,
    COLUMN,
    COUNTS_LEADERS,
    DISTRIBUTION,
    GROUP,
    GROUPS,
    HARD,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MIN_LOAD,
    RACK,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    TOPIC_OF,
    TOPIC_ROW,
    WEIGHT,
    Problem,
)
from optimizer.search.state import RACKS, State


def linear_cost(problem: Problem, b: int, g: int, load: float) -> float:
    """`optimizer.search.broker_scores.linear_cost`."""
    mean, _, _, _, high, low, scale = problem.table[b, g].tolist()
    strength, spread = problem.force[g, [STRENGTH, SPREAD]].tolist()
    return cost_of(float(load), mean, high, low, scale, strength, spread)


def cost_of(
    load: float, mean: float, high: float, low: float, scale: float, strength: float, spread: float
) -> float:
    over, under = load - high, low - load
    beyond = over if over > 0.0 else (under if under > 0.0 else 0.0)
    beyond *= scale
    off = (load - mean) * scale
    square = beyond * beyond
    return strength * square * (1.0 + STEEP * square) + spread * off * off


def assess(problem: Problem, state: State, b: int, score: np.ndarray) -> float:
    """`optimizer.search.broker_scores.assess`."""
    table, loads, units = problem.table[b].tolist(), state.load[b].tolist(), state.units[:, b].tolist()
    eligible = problem.broker[b, STATE] == 0
    cost = 0.0
    scores = []
    for goal, force, (mean, bound, var, ceiling, high, low, scale) in zip(
        problem.goal.tolist(), problem.force.tolist(), table, strict=True
    ):
        kind, column = goal[KIND], goal[COLUMN]
        if kind == DISTRIBUTION:
            if not eligible:
                scores.append(1.0)
                continue
            load = loads[column]
            scores.append(distribution_score(load, mean, bound, var, goal[ABSOLUTE] == 1, force[MIN_LOAD]))
            cost += cost_of(load, mean, high, low, scale, force[STRENGTH], force[SPREAD])
        elif kind == LIMIT:
            load = loads[column]
            scores.append(limit_score(load, ceiling))
            cost += cost_of(load, mean, high, low, scale, force[STRENGTH], force[SPREAD])
        elif kind == RACK:
            scores.append(units_score(units[RACKS]))
        else:
            scores.append(units_score(units[column]))
            if eligible:
                cost += force[STRENGTH] * units[column]
    score[: len(scores)] = scores
    return cost


def cost_of_gaining(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    """`optimizer.search.costs.cost_of_gaining`; roles below 0 are no replica."""
    cost = _cost_on_loads(problem, state, b, p, held, role)
    if len(problem.topic_goal):
        cost = _cost_of_topics(problem, state, b, p, held, role, cost)
    return cost


def _cost_on_loads(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    cost = 0.0
    loads, vectors = state.load[b].tolist(), problem.vector[p].tolist()
    forces = problem.force.tolist()
    for g, (goal, row) in enumerate(zip(problem.goal.tolist(), problem.table[b].tolist(), strict=True)):
        mean, _, _, _, high, low, scale = row
        if goal[KIND] <= LIMIT and scale > 0.0:
            c = goal[COLUMN]
            load = after = loads[c]
            if role >= 0:
                after += vectors[role][c]
            if held >= 0:
                after -= vectors[held][c]
            if after != load:
                strength, spread = forces[g][STRENGTH], forces[g][SPREAD]
                cost += cost_of(after, mean, high, low, scale, strength, spread) - cost_of(
                    load, mean, high, low, scale, strength, spread
                )
    return cost


def _cost_of_topics(
    problem: Problem, state: State, b: int, p: int, held: int, role: int, cost: float
) -> float:
    from optimizer.search.topic_counts import topic_rise

    for k in range(len(problem.topic_goal)):
        if problem.topic_goal[k, COUNTS_LEADERS] == 1:
            by = (1 if role == LEADING else 0) - (1 if held == LEADING else 0)
        else:
            by = (1 if role >= 0 else 0) - (1 if held >= 0 else 0)
        if by != 0:
            rise = topic_rise(problem, state, k, problem.partition[p, TOPIC_OF], b, by)
            cost += float(problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]) * rise
    return cost


def load_cost_of_taking(
    problem: Problem, state: State, felt: np.ndarray, known: np.ndarray, b: int, p: int, role: int
) -> float:
    """`optimizer.search.costs.load_cost_of_taking`."""
    return _cost_on_loads(problem, state, b, p, -1, role)


def cost_of_taking(
    problem: Problem, state: State, felt: np.ndarray, known: np.ndarray, b: int, p: int, role: int
) -> float:
    """`optimizer.search.costs.cost_of_taking`."""
    return cost_of_gaining(problem, state, b, p, -1, role)


def leaves_band(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> bool:
    """`optimizer.search.homeward.leaves_band`; roles below 0 are no replica."""
    if problem.broker[b, STATE] != 0:
        return False
    loads, vectors, scores = state.load[b].tolist(), problem.vector[p].tolist(), state.score[b].tolist()
    forces = problem.force.tolist()
    for g, (goal, row) in enumerate(zip(problem.goal.tolist(), problem.table[b].tolist(), strict=True)):
        if goal[KIND] > LIMIT or scores[g] < 1.0:
            continue
        c = goal[COLUMN]
        load = loads[c]
        if role >= 0:
            load += vectors[role][c]
        if held >= 0:
            load -= vectors[held][c]
        if goal[KIND] == LIMIT:
            if load > row[CEILING]:
                return True
        elif (
            abs(load - row[MEAN]) > row[BOUND] * (1.0 + TOLERANCE)
            and load > forces[g][MIN_LOAD]
            and row[MEAN] > 0.0
        ):
            return True
    return False


def combine(problem: Problem, scores: np.ndarray) -> tuple[bool, float]:
    """`optimizer.search.evaluate.combine`."""
    total, weights = 0.0, 0.0
    one_above, none_below = False, True
    rows = list(zip(problem.goal.tolist(), problem.force[:, WEIGHT].tolist(), scores.tolist(), strict=True))
    for group in range(int(problem.setting[GROUPS])):
        part, weight = 0.0, 0.0
        for goal, force, score in rows:
            if goal[HARD] == 0 and goal[GROUP] == group:
                part += force * score
                weight += force
        if weight > 0.0:
            mean = part / weight
            if mean > 0.5 + 1e-9 + 5e-10:
                one_above = True
            if mean < 0.5 - 1e-9 + 5e-10:
                none_below = False
            total += part
            weights += weight
    if weights <= 0.0:
        return False, 0.5
    return one_above and none_below, total / weights
