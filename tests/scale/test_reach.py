"""Limits that excluded topics break: a search for the impossible would take an operator minutes."""

from __future__ import annotations

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster as random_cluster


def test_a_cluster_in_which_excluded_topics_break_limits_is_planned_in_few_steps() -> None:
    lows: list[int] = []

    def watch(low: int) -> bool:
        lows.append(low)
        return True

    snapshot = random_cluster(30, 6_000, "b", 0, "excluded")
    result = plan(snapshot, parse_goals(goals_text("excluded", 0.10), "benchmark"), PlanOptions(), watch)
    assert result.hard_violations_left == 3  # by excluded topics alone, on one broker
    assert lows[-1] == 0
    assert len(lows) <= 5
