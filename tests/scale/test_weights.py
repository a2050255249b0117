"""Weights say what matters more: a factor on all of them changes nothing."""

from __future__ import annotations

import json

import pytest

from goals.document import parse_goals
from optimizer.plan import Action
from optimizer.planner import plan
from tests.clusters.goals import goals_text
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


@pytest.mark.parametrize("scenario", ["b", "c", "d"])
@pytest.mark.parametrize("variant", ["heavy", "everything"])
@pytest.mark.parametrize("seed", range(2))
def test_it_changes_no_action_of_a_small_cluster_either(scenario: Scenario, variant: str, seed: int) -> None:
    """Of goals of all kinds, and partitions of all sizes."""
    document = json.loads(goals_text(variant, 0.10))
    snapshot, as_given = cluster(12, 500, scenario, seed, variant), parse_goals(json.dumps(document), "test")
    for goal in document["goals"]:
        if not goal.get("hard"):
            goal["weight"] = 8.0 * goal.get("weight", 1.0)
    weighted = parse_goals(json.dumps(document), "test")
    assert [a.changes for a in plan(snapshot, weighted).actions] == [a.changes for a in plan(snapshot, as_given).actions]
