"""Weights say what matters more: a factor on all of them changes nothing, where no step gains next to nothing."""

from __future__ import annotations

import json

import pytest

from goals.document import parse_goals
from optimizer.plan import Action
from optimizer.planner import plan
from tests.clusters.synthetic import Scenario, cluster

LOADS = ("network_in", "network_out", "disk", "cpu")


def actions(scenario: Scenario, seed: int, weight: float) -> list[tuple[object, ...]]:
    goals = [{"kind": "usage_distribution", "resource": load, "weight": weight} for load in LOADS]
    document = parse_goals(json.dumps({"version": 1, "goals": goals}), "test")
    made: tuple[Action, ...] = tuple(plan(cluster(60, 3600, scenario, seed, "even"), document).actions)
    return [a.changes for a in made]


@pytest.mark.parametrize("scenario", ["b", "d"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("factor", [8.0, 1024.0])
def test_a_factor_on_all_weights_changes_no_action(scenario: Scenario, seed: int, factor: float) -> None:
    as_given = actions(scenario, seed, 1.0)
    assert as_given
    assert actions(scenario, seed, factor) == as_given
