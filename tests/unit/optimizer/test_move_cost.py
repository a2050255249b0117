"""What a replica move costs besides its bytes: few large moves where it is much, small ones where bytes alone count."""

from __future__ import annotations

import numpy as np

from goals.document import parse_goals
from optimizer.columns import MOVE_COST, cost_of_moves
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


def test_a_move_costs_its_bytes_and_what_is_asked_besides() -> None:
    size = np.array([1.0, 3.0])
    assert cost_of_moves(size, 10).tolist() == [11.0, 13.0]
    assert cost_of_moves(size, 0).tolist() == [1.0, 3.0]
    assert cost_of_moves(size, None).tolist() == [1.0 + 2.0 * MOVE_COST, 3.0 + 2.0 * MOVE_COST]


def test_where_nothing_is_copied_every_move_costs_one() -> None:
    assert cost_of_moves(np.zeros(3), None).tolist() == [1.0, 1.0, 1.0]
    assert cost_of_moves(np.zeros(3), 500).tolist() == [1.0, 1.0, 1.0]


def test_bytes_alone_need_fewer_bytes_and_dear_moves_are_fewer() -> None:
    """Over a few clusters: a search is no proof, so one of them may differ."""
    goals = parse_goals(goals_text("even", 0.10), "test")
    snapshots = [cluster(20, 1_000, scenario, seed) for scenario in ("a", "b") for seed in range(6)]
    cheap, dear = ([plan(each, goals, PlanOptions(move_cost=cost)).summary for each in snapshots] for cost in (0, 10**15))
    assert sum(x.bytes_to_move for x in cheap) < 0.98 * sum(x.bytes_to_move for x in dear)
    assert sum(x.replica_moves for x in dear) < sum(x.replica_moves for x in cheap)


def test_the_plan_says_what_a_move_was_to_cost() -> None:
    snapshot = cluster(10, 1_000, "a", 7)
    made = plan(snapshot, parse_goals(goals_text("even", 0.10), "test"), PlanOptions(move_cost=5))
    assert made.options["move_cost"] == 5
