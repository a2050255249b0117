"""Many small replicas of which one larger would do: an operator should see hardly more moves than must be."""

from __future__ import annotations

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


def test_hardly_more_replicas_move_than_must() -> None:
    snapshot = cluster(40, 20_000, "b", 0, "rf1")
    made = plan(snapshot, parse_goals(goals_text("rf1", 0.1), "goals"), PlanOptions(acceptance="potential"))
    assert made.summary.replica_moves <= 1.005 * made.lower_bounds.replica_moves
