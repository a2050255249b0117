"""Load beyond what all brokers may carry: the plan says that only more brokers or capacity help."""

from __future__ import annotations

import numpy as np

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.level import heated, level_cluster


def test_where_brokers_hold_more_than_all_may_the_plan_asks_for_capacity() -> None:
    level = level_cluster("100x50k")
    hot = heated(level, np.arange(level.partition_count), 4.0)

    found = plan(hot, parse_goals(goals_text("even", 0.10), "test"), PlanOptions())
    assert all(b.violates for b in found.brokers)
    assert any("add brokers or capacity" in g.explanation for g in found.goals)
