"""A hard goal counts more than any soft ones, however little it is missed by and however far these are missed."""

from __future__ import annotations

import json
from random import Random

import pytest

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import Scenario, cluster
from tests.unit.optimizer.scenarios import DISK, IN, RACK, REPLICAS, loads, placed, planned, told
from tests.unit.optimizer.scenarios import cluster as cluster_of
from tests.unit.optimizer.test_worth import carried_out

HARD_IN = {**IN, "bound": 0.05, "hard": True}


@pytest.mark.parametrize("small", [4.0, 6.0])
def test_a_hard_range_is_met_though_a_soft_goal_is_missed_by_more(small: float) -> None:
    """Broker 4 was left 7.5% above a hard range of 5%: a soft goal wanted more replicas there, however small."""
    light = [([b], {"network_in": 99.0 / 15}) for b in (1, 2, 3) for _ in range(15)]
    heavy = [([4], {"network_in": load}) for load in (97.0, small, small)]
    result = planned(cluster_of([1, 2, 3, 4], light + heavy), HARD_IN, REPLICAS)
    mean = sum(loads(result, "network_in").values()) / 4
    assert all(abs(load - mean) <= 0.05 * mean for load in loads(result, "network_in").values())


@pytest.mark.parametrize("seed", range(6))
def test_no_move_crowds_a_rack_for_another_soft_goal(seed: int) -> None:
    """From clean racks 6 of 75 partitions came to have both replicas in one, in a plan that copied more than with the goal hard."""
    random = Random(seed)
    brokers = [{"id": b, "rack": "ab"[b % 2]} for b in range(1, 7)]
    pairs = [(1, 2), (1, 4), (3, 2), (5, 6), (1, 6)]
    drawn = [{"network_in": random.lognormvariate(0, 1), "disk": round(1e6 * random.lognormvariate(0, 1))} for _ in range(60)]
    rows = [(list(random.choice(pairs)), load) for load in drawn]
    snapshot = cluster_of(brokers, rows)
    result = planned(snapshot, {**RACK, "hard": False}, IN, DISK, REPLICAS)
    assert result.summary.replica_moves > 0
    assert all(sum(b % 2 for b in replicas) == 1 for replicas in placed(snapshot, result).values())


@pytest.mark.parametrize("scenario", ["b", "d"])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_what_is_free_is_done_within_any_budget(scenario: Scenario, share: float) -> None:
    """A budget of 4 moves left 73 misses of soft goals, one of 0 moves 39: it went to hard goals, without the free transfers. Some
    budgets leave a few transfers, which end next to no miss."""
    snapshot = cluster(24, 1200, scenario, 4701, "capacities")
    document = json.loads(goals_text("capacities", 0.1))
    document["goals"].append({"kind": "usage_distribution", "resource": "network_out", "bound": 0.05, "hard": True, "name": "hard"})
    goals = parse_goals(json.dumps(document), "test")
    most = max(int(share * plan(snapshot, goals, PlanOptions()).summary.replica_moves), 1)
    made = plan(snapshot, goals, PlanOptions(max_moves=most))
    assert made.summary.replica_moves <= most
    more = plan(carried_out(snapshot, made), goals, PlanOptions(max_moves=0))
    left, least = (sum(goal.after.violations for goal in each.goals if goal.after) for each in (made, more))
    assert left - least <= 3


@pytest.mark.parametrize(
    ("frozen", "excluded", "words"),
    [
        (["t"], [], "of a frozen topic (constraints.freeze_topics) with too many replicas in a rack; take it off that list"),
        ([], ["t"], "of an excluded topic with too many replicas in a rack; include it"),
    ],
)
def test_a_frozen_topic_is_not_called_excluded(frozen: list[str], excluded: list[str], words: str) -> None:
    """"Include it" was said of a topic that nothing excludes. Of an excluded one with a hard goal on racks a repair would move it."""
    brokers = [{"id": b, "rack": rack} for b, rack in enumerate("aab", start=1)]
    snapshot = cluster_of(brokers, [([1, 2], {"network_in": 1.0})])
    result = planned(snapshot, {**RACK, "hard": False}, constraints={"freeze_topics": frozen, "exclude_topics": excluded})
    assert words in told(result)
