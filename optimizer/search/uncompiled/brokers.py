"""One broker without a compiler: what its loads cost, what it would gain or give, what its scores come to."""

from __future__ import annotations

import numpy as np

from goals.score import TOLERANCE
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    COUNTS_LEADERS,
    HARD,
    HIGH,
    KIND,
    LEADING,
    LIMIT,
    LOW,
    MIN_LOAD,
    SCALE,
    SPREAD,
    STATE,
    STRENGTH,
    TOPIC_ROW,
    Problem,
)
from optimizer.search.state import RACKS, State
from optimizer.search.uncompiled.sheets import Sheet, cost_of, sheet_of


def linear_cost(problem: Problem, b: int, g: int, load: float) -> float:
    """`optimizer.search.broker_scores.linear_cost`."""
    sheet = sheet_of(problem)
    mean, _, _, _, high, low, scale = sheet.table(b)[g]
    force = sheet.force[g]
    return cost_of(float(load), mean, high, low, scale, force[STRENGTH], force[SPREAD])


def assess(problem: Problem, state: State, b: int, score: np.ndarray) -> float:
    """`optimizer.search.broker_scores.assess`."""
    units = state.units[:RACKS, b].tolist() if len(problem.topic_goal) else []
    cost, scores = sheet_of(problem).judge(int(b), state.load[b].tolist(), float(state.units[RACKS, b]), units)
    score[: len(scores)] = scores
    return cost


def is_low(problem: Problem, state: State, b: int) -> bool:
    """`optimizer.search.stars.is_low`."""
    sheet, scores = sheet_of(problem), state.score[b].tolist()
    if sheet.state[b] != 0 or min(scores[:-1], default=1.0) >= 1.0:
        return False
    loads, table = state.load[b].tolist(), sheet.table(int(b))
    for g, goal in enumerate(sheet.goal):
        if scores[g] < 1.0 and goal[KIND] <= LIMIT and not table[g][LOW] <= loads[goal[COLUMN]] <= table[g][HIGH]:
            return True
    return False


def leans(problem: Problem, state: State, watched: np.ndarray, b: int) -> tuple[bool, bool]:
    """`optimizer.search.partners.leans`."""
    sheet, loads = sheet_of(problem), state.load[b].tolist()
    table, over, under = sheet.table(int(b)), False, False
    for g in watched.tolist():
        if table[g][SCALE] > 0.0:
            load = loads[sheet.goal[g][COLUMN]]
            over, under = over or load > table[g][HIGH], under or load < table[g][LOW]
    return over, under


def watched_goals(problem: Problem, state: State, watched: np.ndarray) -> int:
    """`optimizer.search.candidates.watched_goals`."""
    eligible, count = problem.broker[:, STATE] == 0, 0
    for g, goal in enumerate(sheet_of(problem).goal):
        if goal[KIND] > LIMIT:
            continue
        full = goal[KIND] == LIMIT and goal[HARD] == 1
        if not full or (state.load[:, goal[COLUMN]] > problem.table[:, g, CEILING])[eligible].any():
            watched[count] = g
            count += 1
    return count


def cost_of_gaining(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    """`optimizer.search.costs.cost_of_gaining`; roles below 0 are no replica."""
    cost = _cost_on_loads(problem, state, b, p, held, role)
    if len(problem.topic_goal):
        cost = _cost_of_topics(problem, state, b, p, held, role, cost)
    return cost


def _cost_on_loads(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> float:
    cost = 0.0
    sheet, loads, vectors = sheet_of(problem), state.load[b].tolist(), problem.vector[p].tolist()
    for g, (goal, row) in enumerate(zip(sheet.goal, sheet.table(b), strict=True)):
        mean, _, _, _, high, low, scale = row
        if goal[KIND] <= LIMIT and scale > 0.0:
            c = goal[COLUMN]
            load = after = loads[c]
            if role >= 0:
                after += vectors[role][c]
            if held >= 0:
                after -= vectors[held][c]
            if after != load:
                strength, spread = sheet.force[g][STRENGTH], sheet.force[g][SPREAD]
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
            rise = topic_rise(problem, state, k, problem.topic[p], b, by)
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
    sheet = sheet_of(problem)
    if sheet.state[b] != 0:
        return False
    loads, scores = state.load[b].tolist(), state.score[b].tolist()
    come = problem.vector[p, role].tolist() if role >= 0 else None
    gone = problem.vector[p, held].tolist() if held >= 0 else None
    for kind, g, c, edge, mean, _, _, _, _, _ in sheet.rules(int(b)):
        if kind > LIMIT or scores[g] < 1.0:
            continue
        load = loads[c]
        if come is not None:
            load += come[c]
        if gone is not None:
            load -= gone[c]
        if kind == LIMIT:
            if load > edge and load > sheet.table(b)[g][CEILING]:
                return True
        elif (load - mean > edge or mean - load > edge) and mean > 0.0:
            bound, least = sheet.table(b)[g][BOUND], sheet.force[g][MIN_LOAD]
            if abs(load - mean) > bound * (1.0 + TOLERANCE) and load > least:
                return True
    return False


def combine(problem: Problem, scores: np.ndarray) -> tuple[bool, float]:
    """`optimizer.search.evaluate.combine`."""
    return combined(sheet_of(problem), scores.tolist())


def combined(sheet: Sheet, scores: list[float]) -> tuple[bool, float]:
    """As `combine`."""
    total, weights = 0.0, 0.0
    one_above, none_below = False, True
    for group in sheet.groups:
        part, weight = 0.0, 0.0
        for g, force in group:
            part += force * scores[g]
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
