"""Hard limits that leave little room are met where a placement meets them."""

from __future__ import annotations

import json

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.planted import planted

CLUSTERS = 110
MISSED = 1  # 3 without further restarts


def test_of_small_clusters() -> None:
    """Of clusters of three to six brokers; an order of acceptable actions is not known for each, so one may be missed."""
    missed = []
    for seed in range(CLUSTERS):
        case = planted(seed)
        left = plan(case.snapshot, parse_goals(json.dumps(case.goals), "goals.yaml"), PlanOptions(threads=1)).hard_violations_left
        missed += [seed] if left else []
    assert len(missed) <= MISSED, missed
