"""A minimum of leaders or replicas of each of some topics on every broker: a topic that all clients write to has a leader everywhere."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from cluster_model.build import build_snapshot
from goals.document import parse_goals
from optimizer.detectors import detect
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.report import to_json
from tests.oracle.replay import check
from tests.unit.optimizer.test_broker_sets import snapshot_of

Document = dict[str, Any]
LEADERS: Document = {"kind": "topic_minimum", "resource": "leaders", "topics": ["a*"], "min": 1}
SPREAD: Document = {"kind": "usage_distribution", "resource": "replicas", "bound": 0.5}


def planned(snapshot: Document, *goals: Document, constraints: Document | None = None, **options: Any) -> Plan:
    """The plan, which the oracle has replayed."""
    document = {"version": 1, "goals": list(goals), "constraints": constraints or {}}
    made = plan(build_snapshot(snapshot), parse_goals(json.dumps(document), "goals.yaml"), PlanOptions(**options))
    assert check(snapshot, document, json.loads(to_json(made)), options={k: list(v) for k, v in options.items()}) == []
    return made


def held(snapshot: Document, made: Plan, topic: str, leaders: bool) -> Counter[int]:
    """How many replicas of a topic brokers have after the plan, or how many they lead."""
    after = {(p["topic"], p["partition"]): (p["replicas"], p["leader"]) for p in snapshot["partitions"]}
    after |= {(c.topic, c.partition): (list(c.replicas_after), c.leader_after) for c in made.proposals}
    of = [found for (name, _), found in after.items() if name == topic]
    return Counter(b for on, leader in of for b in ([leader] if leaders else on))


def test_a_pattern_that_matches_no_topic_is_noted_as_the_goal_would_count_as_satisfied() -> None:
    made = planned(snapshot_of({"a1": [[1, 2]] * 6}), {**LEADERS, "topics": ["a*", "ordres", "__x"], "hard": True}, SPREAD)
    assert [note for note in made.notes if "no topic matches" in note] == ["goal topic_minimum-leaders: no topic matches 'ordres'"]


@pytest.mark.parametrize("hard", [True, False])
def test_every_broker_leads_the_topics_that_are_named_and_no_other_is_touched(hard: bool) -> None:
    lists = {"a1": [[1, 2], [1, 3], [1, 2], [2, 1]], "a2": [[3, 4]] * 6, "b": [[1, 2]] * 4}
    snapshot = snapshot_of(lists, brokers=4)
    made = planned(snapshot, {**LEADERS, "hard": hard})
    for topic in ("a1", "a2"):
        assert set(held(snapshot, made, topic, True)) == {1, 2, 3, 4}
    assert {c.topic for c in made.proposals} <= {"a1", "a2"}
    assert [goal.status for goal in made.goals] == ["satisfied"]
    assert made.lower_bounds.replica_moves <= made.summary.replica_moves


def test_leaders_are_handed_over_where_that_is_enough() -> None:
    snapshot = snapshot_of({"a1": [[1, 2, 3], [1, 3, 2], [1, 2, 3]]}, brokers=3)
    made = planned(snapshot, {**LEADERS, "hard": True})
    assert made.summary.replica_moves == 0
    assert held(snapshot, made, "a1", True) == Counter({1: 1, 2: 1, 3: 1})
    assert all("topic_minimum-leaders" in action.repairs for action in made.actions)


def test_more_than_the_minimum_never_counts() -> None:
    """A broker that leads nearly all of a topic is another goal's business."""
    snapshot = snapshot_of({"a1": [[1, 2]] * 9 + [[2, 1]]}, brokers=2)
    assert not planned(snapshot, LEADERS).actions
    assert planned(snapshot, {**LEADERS, "min": 2}).summary.leadership_changes == 1


def test_without_a_number_it_is_as_many_as_there_are_for_each() -> None:
    snapshot = snapshot_of({"a1": [[1, 2]] * 7}, brokers=3)
    made = planned(snapshot, {"kind": "topic_minimum", "resource": "leaders", "topics": ["a1"]})
    assert min(held(snapshot, made, "a1", True)[b] for b in (1, 2, 3)) == 2
    replicas = planned(snapshot, {"kind": "topic_minimum", "resource": "replicas", "topics": ["a1"]})
    assert min(held(snapshot, replicas, "a1", False)[b] for b in (1, 2, 3)) == 4


def test_a_minimum_holds_while_loads_are_levelled() -> None:
    """What is given is never taken again for balance: the goal is hard."""
    lists = {"a1": [[b, b % 6 + 1] for b in range(1, 7)], "b": [[1, 2]] * 20}
    snapshot = snapshot_of(lists)
    made = planned(snapshot, {**LEADERS, "hard": True}, {"kind": "usage_distribution", "resource": "leaders"}, SPREAD)
    assert made.actions
    assert set(held(snapshot, made, "a1", True)) == set(range(1, 7))
    for action in made.actions:
        scores = action.goal_scores["topic_minimum-leaders"]
        assert all(scores.after[b] >= scores.before[b] for b in scores.before)


def test_a_topic_with_too_few_partitions_is_infeasible_with_the_number() -> None:
    snapshot = snapshot_of({"a1": [[1, 2], [2, 3]]}, brokers=4)
    made = planned(snapshot, {**LEADERS, "hard": True})
    (goal,) = made.goals
    assert goal.status == "infeasible"
    assert "topic a1 has 2 leaders and its brokers need 4 together; more partitions, or a lower minimum, would help" in goal.explanation


def test_dead_draining_and_excluded_brokers_need_nothing() -> None:
    lists = {"a1": [[1, 2], [2, 1], [1, 2]]}
    snapshot = snapshot_of(lists, brokers=6, b4="dead", b5="draining", b6="excluded")
    made = planned(snapshot, {**LEADERS, "hard": True})
    assert set(held(snapshot, made, "a1", True)) == {1, 2, 3}
    assert [goal.status for goal in made.goals] == ["satisfied"]


def test_with_broker_sets_the_brokers_of_the_set_are_asked() -> None:
    snapshot = snapshot_of({"a1": [[1, 2], [1, 2], [1, 3]], "b": [[4, 5], [5, 6]]})
    own = {"broker_sets": [{"name": "own", "brokers": [1, 2, 3], "topics": ["a*"]}]}
    made = planned(snapshot, {**LEADERS, "hard": True}, constraints=own)
    assert set(held(snapshot, made, "a1", True)) == {1, 2, 3}
    assert [goal.status for goal in made.goals] == ["satisfied"]


def test_the_detector_says_what_a_broker_lacks() -> None:
    document = {"version": 1, "goals": [LEADERS]}
    goals = parse_goals(json.dumps(document), "goals.yaml")
    found = detect(goals, build_snapshot(snapshot_of({"a1": [[1, 2], [1, 2]]}, brokers=2)), goals)
    assert found.fired
    assert "Broker 2 holds 1 leader fewer than the minimum of topics" in found.sentence()
