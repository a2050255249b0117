"""Many small replicas of which one larger would do: an operator should see hardly more moves than must be."""

from __future__ import annotations

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


def test_hardly_more_replicas_move_than_must() -> None:
    goals, options = parse_goals(goals_text("rf1", 0.1), "goals"), PlanOptions(acceptance="potential")
    made = [plan(cluster(40, 20_000, "b", seed, "rf1"), goals, options) for seed in range(3)]
    assert sum(each.summary.replica_moves for each in made) <= 1.015 * sum(each.lower_bounds.replica_moves for each in made)
