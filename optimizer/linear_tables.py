"""What each broker should carry: mean, band, ceiling, and where the potential rises, for every goal on loads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import FloatArray, Snapshot
from goals.model import Goal, Limit, UsageDistribution
from optimizer.problem import BOUND, CEILING, CENTERING, HARD_WEIGHT, HIGH, HINGE, LEAST_MEASURE, LOW, MEAN, MISSED, SCALE, VAR
from optimizer.shares import Shares, broker_means


class Linear(NamedTuple):
    """What goals on loads contribute: the columns of `Problem.table`, `goal` and `force` that are theirs."""

    table: np.ndarray
    absolute: np.ndarray
    min_load: np.ndarray
    strength: np.ndarray
    spread: np.ndarray


def linear_tables(
    snapshot: Snapshot, goals: list[Goal], columns: list[str], shares: Shares, eligible: np.ndarray, notes: list[str]
) -> Linear:
    table = np.zeros((snapshot.broker_count, len(goals), MISSED + 1))
    table[:, :, VAR] = 1.0
    table[:, :, CEILING] = table[:, :, HIGH] = np.inf
    table[:, :, LOW] = -np.inf
    absolute = np.zeros(len(goals), np.int64)
    min_load, strength, spread = np.zeros(len(goals)), np.zeros(len(goals)), np.zeros(len(goals))
    unit = float(np.mean([goal.weight for goal in goals if not goal.hard] or [1.0])) or 1.0  # a factor on all weights changes nothing
    for g, goal in enumerate(goals):
        strength[g] = HARD_WEIGHT if goal.hard else goal.weight / unit
        if isinstance(goal, UsageDistribution):
            c = columns.index(goal.resource)
            level = broker_means(snapshot, goal.resource, shares.by_column[c], eligible)
            bound = goal.bound * level
            table[:, g, MEAN] = level
            table[:, g, BOUND] = bound
            table[:, g, VAR] = goal.var * level if goal.var_is_share else bound + goal.var
            absolute[g] = goal.tail == "absolute"
            min_load[g] = goal.min_load
            spread[g] = CENTERING * strength[g]
            live = eligible & (level > 0)
            table[live, g, SCALE] = 1.0 / np.maximum(level[live], LEAST_MEASURE * level.sum() / max(int(eligible.sum()), 1))
            table[live, g, HIGH] = level[live] + HINGE * bound[live]
            table[live, g, LOW] = level[live] - HINGE * bound[live]
            small = live & (level < goal.min_load)
            table[small, g, HIGH] = np.maximum(table[small, g, HIGH], goal.min_load * (1 - 1e-9))
            table[small, g, LOW] = -np.inf
        elif isinstance(goal, Limit):
            limit = _ceilings(snapshot, goal, notes)
            table[:, g, CEILING] = limit
            # As at the edge of a band: where the potential started to rise at the limit itself, brokers came under it ever more slowly.
            table[:, g, HIGH] = limit if goal.hard else HINGE * limit
            counts = np.isfinite(limit) & eligible
            typical = float(shares.totals[columns.index(goal.resource)]) / max(int(eligible.sum()), 1)
            least = max(LEAST_MEASURE * typical, goal.least)
            table[counts, g, SCALE] = 1.0 / np.maximum(limit[counts], least)
    for g, goal in enumerate(goals):
        if goal.hard and isinstance(goal, Limit):
            tighter = np.all(table[eligible, :, HIGH] <= table[eligible, g, CEILING, None], axis=0)
            strength[g] = max((strength[o] for o in _tighter(goals, goal.resource, tighter)), default=HARD_WEIGHT)
    return Linear(table, absolute, min_load, strength, spread)


def _tighter(goals: list[Goal], resource: str, tighter: np.ndarray) -> list[int]:
    """The soft goals on a resource that are `tighter` (bool [G]) than a hard limit on it: no broker beyond the limit meets them.

    Beside these, a limit of full weight would alone decide which replicas leave such a broker, and its other loads would have to be
    levelled by further moves.
    """
    return [
        at for at, goal in enumerate(goals)
        if tighter[at] and isinstance(goal, UsageDistribution | Limit) and not goal.hard and goal.resource == resource
    ]  # fmt: skip


def _ceilings(snapshot: Snapshot, goal: Limit, notes: list[str]) -> FloatArray:
    most = goal.ceilings(snapshot.capacity, snapshot.broker_count)
    without = snapshot.broker_ids[np.isnan(most)]
    if len(without):
        some = ", ".join(str(b) for b in without[:10]) + (" …" if len(without) > 10 else "")
        notes.append(f"goal {goal.name}: left out are brokers without a {goal.resource} capacity: {some}")
    return np.where(np.isnan(most), np.inf, most)
