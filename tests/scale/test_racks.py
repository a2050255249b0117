"""Crowded racks of a whole cluster: one too many moves for each replica that leaves the wrong broker."""

from __future__ import annotations

from goals.document import load_goals
from optimizer.planner import plan
from tests.clusters.cruise_control import GOALS_FILE, cruise_control_cluster


def test_crowded_racks_cost_hardly_a_move_more_where_brokers_have_to_give_anyway() -> None:
    snapshot = cruise_control_cluster(20, 10, 500, 9000)
    result = plan(snapshot, load_goals(GOALS_FILE))
    assert all(goal.status == "satisfied" for goal in result.goals)
    assert result.summary.replica_moves <= 1.035 * result.lower_bounds.replica_moves
