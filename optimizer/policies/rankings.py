"""Scores of brokers by which policies rank them; smaller is less loaded. Pure arithmetic on columns, one row a broker.

Called by `profiles`, and by tests with the numbers of the systems' own examples. Source: the public documents and sources of Danube's
load manager (topic load, `balanced`, `weighted_load`) and of Apache Pulsar (weighted maximum). Floats are kept: Danube cuts its scores to
integers, so that an idle broker cannot be told from an empty one.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import FloatArray

MEGA = 1e6  # bytes/s in the weighted formulas
BACKLOG = 10_000.0  # messages that weigh one
BOTTLENECK = 0.7  # of capacity (or of the busiest): from here the resource decides the formula
LEAST_WHOLE = 1.0
# Which resource is looked at first, and what counts then: weight of each part.
FORMULAS: tuple[tuple[str, dict[str, float]], ...] = (
    ("cpu", {"cpu": 0.5, "memory": 0.2, "throughput": 0.15, "topics": 0.15}),
    ("memory", {"memory": 0.5, "cpu": 0.2, "throughput": 0.15, "topics": 0.15}),
    ("throughput", {"throughput": 0.5, "network": 0.2, "cpu": 0.15, "memory": 0.15}),
    ("network", {"network": 0.5, "throughput": 0.2, "cpu": 0.15, "memory": 0.15}),
    ("disk", {"disk": 0.5, "network": 0.2, "cpu": 0.15, "memory": 0.15}),
    ("topics", {"topics": 0.5, "cpu": 0.2, "memory": 0.2, "throughput": 0.1}),
)
EVEN = {"topics": 0.25, "cpu": 0.25, "memory": 0.25, "throughput": 0.15, "network": 0.10}


def topic_load(topics: FloatArray, megabytes: FloatArray, connections: FloatArray, backlog: FloatArray) -> FloatArray:
    """float64 [n]: weighted load of all topics of a broker; 0 without topics. `megabytes` per second, `backlog` in messages."""
    load = 0.2 * topics + 0.3 * megabytes + 0.3 * connections + 0.2 * backlog / BACKLOG
    return np.asarray(np.where(topics > 0, load, 0.0))


def balanced(topics: FloatArray, load: FloatArray, cpu: FloatArray, memory: FloatArray) -> FloatArray:
    """float64 [n]: topic load, and cpu and memory in percent, weighed together; counts of topics where neither is reported."""
    if not (cpu > 0).any() and not (memory > 0).any():
        return np.asarray(topics, np.float64)
    return np.asarray(0.3 * load + 0.35 * cpu + 0.35 * memory)


def weighted_load(parts: dict[str, FloatArray], whole: dict[str, FloatArray] | None = None) -> FloatArray:
    """float64 [n], in percent: the formula of each broker's narrowest resource, or the even one where none is above 70%.

    `parts` has a column for each resource of `FORMULAS`; `whole` the capacity of those that have one. A resource without is taken by the
    busiest broker, and decides no formula then: the busiest is always at 100% of itself.
    """
    whole = whole or {}
    share = {}
    for name, values in parts.items():
        most = whole[name] if name in whole else np.full(len(values), max(float(values.max(initial=0.0)), LEAST_WHOLE))
        share[name] = np.divide(values, most, out=np.zeros(len(values)), where=most > 0)
    narrow = {name: use for name, use in share.items() if name in whole} if whole else share
    top = np.max(np.stack(list(narrow.values())), axis=0)
    result = _formula(EVEN, share)
    taken = top <= BOTTLENECK
    for name, formula in FORMULAS:
        if name in narrow:
            mine = ~taken & (narrow[name] >= top)
            result = np.where(mine, _formula(formula, share), result)
            taken |= mine
    return np.asarray(100.0 * result)


def _formula(weights: dict[str, float], share: dict[str, FloatArray]) -> FloatArray:
    known = {name: weight for name, weight in weights.items() if name in share}
    return np.asarray(sum(weight * share[name] for name, weight in known.items()))


def weighted_max(shares: FloatArray, weights: FloatArray) -> FloatArray:
    """float64 [n]: the largest of weighted utilizations float64 [n, resources], 0 where there is none."""
    return np.asarray((np.nan_to_num(shares) * weights).max(axis=1, initial=0.0))


def candidates_within(scores: FloatArray, share: float = 0.10) -> list[int]:
    """Rows whose score is within `share` of the lowest, by score and then by row; of low scores only the lowest."""
    low = float(scores.min())
    limit = low * (1.0 + share)
    return sorted(np.flatnonzero(scores <= limit + 1e-9).tolist(), key=lambda row: (scores[row], row))


def next_in_turn(candidates: list[int], last: int | None) -> int:
    """The candidate after the `last` one picked, in their order; the first where that is not among them."""
    if last is None or last not in candidates:
        return candidates[0]
    return candidates[(candidates.index(last) + 1) % len(candidates)]
