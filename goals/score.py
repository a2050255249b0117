"""Broker scores, exactly as docs/contract.md, section 7 states them.

Scalar kernels, shared by the compiled search and by everything that reports; 1 is best, 0 never reached.
Loads and means are in the resource's unit. Source: AutoMQ's usage distribution goals, with the tail measured
in units of the bound (ours, since the literal logarithm has a unit and can rise again).
"""

from __future__ import annotations

import math

from kernels.compiled import inner

TOLERANCE = 1e-9  # of the contract: a broker over an edge by less than this share of it is inside


@inner
def distribution_score(
    load: float, mean: float, bound: float, var: float, absolute: bool, min_load: float
) -> float:
    """Score of a broker whose load should be within `bound` of `mean`.

    Parameters are amounts in the resource's unit: `bound` is B, `var` is V (above B). `absolute` asks for the
    tail in absolute units, which is used only where `var` is above 1. Mean 0 scores 1.
    """
    if mean <= 0.0 or (load < min_load and mean < min_load):
        return 1.0
    deviation = abs(mean - load)
    if deviation <= bound * (1.0 + TOLERANCE):
        return 1.0
    if deviation <= var:
        return 1.0 - 0.9 * (deviation - bound) / (var - bound)
    if absolute and var > 1.0:
        return 0.1 * math.log(var) / math.log(deviation)
    if bound <= 0.0:
        return 0.1  # a mean so small that its share is 0; what follows tends to this
    return 0.1 * math.log(var / bound) / math.log(deviation / bound)


@inner
def limit_score(load: float, ceiling: float) -> float:
    """Score of a broker whose load should be at most `ceiling` (the same unit)."""
    if load <= ceiling * (1.0 + TOLERANCE):
        return 1.0
    excess = load - ceiling
    if ceiling > 0.0:
        return 1.0 / (1.0 + excess / ceiling)
    return 1.0 / (1.0 + excess)


@inner
def units_score(units: float) -> float:
    """Score of a broker that holds `units` misplaced replicas."""
    return 1.0 / (1.0 + units)
