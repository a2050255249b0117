"""A caller that makes thousands of plans may ask for fewer seeds of each; the plan says that it did."""

from __future__ import annotations

import json

import numpy as np

from cluster_model.build import build_snapshot
from goals.document import load_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.report import to_json
from tests.unit.optimizer.test_scenarios import cluster


def test_fewer_seeds_are_tried_and_the_plan_says_so() -> None:
    """Replays of the backtest would take three times as long with the six seeds of a small cluster."""
    r = np.random.default_rng(0)
    sizes = r.pareto(1.5, (2, 30)) + 0.1
    partitions = [([1 + n % 7], {"disk": float(sizes[0, n]), "network_in": float(sizes[1, n])}) for n in range(30)]
    snapshot, goals, looks = build_snapshot(cluster(list(range(1, 8)), partitions)), load_goals(None, "default"), [0, 0]

    def counting(n: int, low: int) -> bool:
        looks[n] += 1
        return True

    usual = plan(snapshot, goals, PlanOptions(), lambda low: counting(0, low))
    quick = plan(snapshot, goals, PlanOptions(restarts=1), lambda low: counting(1, low))
    all_six = plan(snapshot, goals, PlanOptions(restarts=6))
    assert looks[1] < 0.5 * looks[0]
    assert list(all_six.actions) == list(usual.actions)
    assert json.loads(to_json(quick))["options"]["restarts"] == 1
    assert "restarts" not in json.loads(to_json(usual))["options"]
