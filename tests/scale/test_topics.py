"""Topic goals on clusters of many topics: the last replicas find their places, in hardly more moves than must be."""

from __future__ import annotations

from typing import Any

import pytest

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


def out(found: Plan) -> dict[str, int]:
    return {g.name: g.after.violations for g in found.goals if g.after is not None and g.after.violations}


@pytest.mark.parametrize("acceptance", ["score", "potential"])
def test_new_brokers_are_filled_by_what_full_topics_leave_them(acceptance: Any) -> None:
    """Four new brokers among forty may hold few of the largest topics: with one replica too many of them, they stayed outside."""
    snapshot = cluster(40, 20_000, "a", 4, "topics-wide")
    found = plan(snapshot, parse_goals(goals_text("topics-wide", 0.10), "test"), PlanOptions(acceptance=acceptance))
    assert out(found) == {}
    assert found.summary.replica_moves <= 1.02 * found.lower_bounds.replica_moves


def test_the_last_topics_are_spread_where_that_takes_brokers_off_the_middle_of_a_band() -> None:
    """What was left of a topic had a place, and no broker would have left a band: it was kept from it by the preference for the middle."""
    snapshot = cluster(60, 30_000, "b", 5, "topics")
    found = plan(snapshot, parse_goals(goals_text("topics", 0.10), "test"), PlanOptions())
    assert out(found) == {}
