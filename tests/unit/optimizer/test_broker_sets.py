"""Broker sets: a tenant's topics on its own brokers, and what an operator reads where that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from optimizer.detectors import detect
from optimizer.explain import explain_partition
from optimizer.explain_broker import explain_broker
from optimizer.options import AddedBroker, PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.policies.assign import InfeasibleError, NewTopic, assign
from optimizer.report import to_json
from tests.oracle.replay import check

Document = dict[str, Any]
RACK: Document = {"kind": "rack_aware"}
REPLICAS: Document = {"kind": "usage_distribution", "resource": "replicas"}
LEADERS: Document = {"kind": "usage_distribution", "resource": "leaders"}
OWN: Document = {"name": "own", "brokers": [1, 2, 3], "topics": ["a*"]}


def snapshot_of(lists: dict[str, list[list[int]]], brokers: int = 6, racks: int = 3, **states: str) -> Document:
    """Topic -> replica lists; brokers 1 to `brokers` in racks in turn, in the states of `b3="dead"` and the like."""
    return {
        "version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": b, "rack": f"r{b % racks}", "state": states.get(f"b{b}", "active")} for b in range(1, brokers + 1)],
        "partitions": [
            {"topic": topic, "partition": n, "replicas": on, "leader": on[0], "leader_load": {"disk": 1e9, "network_in": 1e6}}
            for topic, rows in lists.items() for n, on in enumerate(rows)
        ],
    }  # fmt: skip


def goals_of(*goals: Document, sets: list[Document], **more: Any) -> Document:
    return {"version": 1, "goals": list(goals), "constraints": {"broker_sets": sets, **more}}


def planned(snapshot: Document, goals: Document, **options: Any) -> Plan:
    """The plan, which the oracle has replayed."""
    made = plan(build_snapshot(snapshot), parse_goals(json.dumps(goals), "goals.yaml"), PlanOptions(**options))
    names = ("max_moves", "remove_brokers", "add_brokers", "replication_factor")
    given = {name: options[name] for name in names if name in options}
    if "add_brokers" in given:
        given["add_brokers"] = [(b.id, b.rack) for b in given["add_brokers"]]
    assert check(snapshot, goals, json.loads(to_json(made)), options=given) == []
    return made


def placed(snapshot: Document, made: Plan) -> dict[tuple[str, int], tuple[int, ...]]:
    found = {(p["topic"], p["partition"]): tuple(p["replicas"]) for p in snapshot["partitions"]}
    return found | {(c.topic, c.partition): tuple(c.replicas_after) for c in made.proposals}


def on_brokers(snapshot: Document, made: Plan, topic: str) -> set[int]:
    return {b for (name, _), on in placed(snapshot, made).items() if name == topic for b in on}


ELSEWHERE = {"a1": [[4, 5], [5, 6], [1, 4]], "b": [[1, 2], [2, 4], [5, 6], [6, 1]]}


def test_topics_come_to_their_set_and_all_others_leave_it() -> None:
    snapshot = snapshot_of(ELSEWHERE)
    made = planned(snapshot, goals_of(RACK, REPLICAS, sets=[OWN]))
    assert on_brokers(snapshot, made, "a1") <= {1, 2, 3}
    assert on_brokers(snapshot, made, "b") <= {4, 5, 6}
    assert made.summary.replica_moves == made.lower_bounds.replica_moves == 9
    assert all("broker_set" in action.repairs for action in made.actions if action.type == "move")
    assert any(f"would bring a1-{n} to the broker set own" in action.reason for action in made.actions for n in range(3))
    assert "broker set own (1, 2, 3): 3 partitions; 5 replicas outside would come to it, 0 would stay" in made.notes
    assert not any("would still hold" in (b.why or "") for b in made.brokers)


def test_a_cluster_whose_sets_are_kept_needs_no_plan() -> None:
    snapshot = snapshot_of({"a1": [[1, 2], [2, 3], [3, 1]], "b": [[4, 5], [5, 6], [6, 4]]})
    assert not planned(snapshot, goals_of(RACK, REPLICAS, LEADERS, sets=[OWN])).actions


def test_each_set_is_level_by_itself() -> None:
    """Three brokers with much and three with little are what the operator asked for, and no broker is outside its range for it."""
    snapshot = snapshot_of({"a1": [[1, 2], [1, 2], [1, 2], [1, 3], [1, 2], [1, 2]], "b": [[4, 5], [5, 6], [6, 4]]})
    made = planned(snapshot, goals_of(REPLICAS, LEADERS, sets=[OWN]))
    assert {b.id: b.after["replicas"] for b in made.brokers} == {1: 4, 2: 4, 3: 4, 4: 2, 5: 2, 6: 2}
    assert all(goal.status == "satisfied" for goal in made.goals)
    assert all(set(c.replicas_after) <= {1, 2, 3} for c in made.proposals)


def test_a_dead_broker_is_emptied_within_its_set_only() -> None:
    snapshot = snapshot_of({"a1": [[1, 3], [3, 1], [3, 2]], "b": [[4, 5]]}, b3="dead")
    made = planned(snapshot, goals_of(REPLICAS, sets=[OWN]))
    assert on_brokers(snapshot, made, "a1") == {1, 2}
    full = snapshot_of({"a1": [[1, 2, 3]], "b": [[4, 5]]}, b3="dead")
    left = planned(full, goals_of(REPLICAS, sets=[OWN]))
    assert not left.proposals
    assert left.cannot_be_emptied == (3,)
    (why,) = [b.why for b in left.brokers if b.id == 3]
    assert "2 are eligible, those of broker set own; add 1" in str(why)
    assert any("broker set own: a1-0 has 3 replicas and the set 2 active brokers; add 1 to it" in note for note in left.notes)


def test_a_replica_that_its_set_has_no_room_for_stays_and_the_goal_is_named() -> None:
    snapshot = snapshot_of({"a1": [[1, 2], [2, 3], [3, 1], [4, 5]], "b": [[4, 6], [5, 6]]})
    made = planned(snapshot, goals_of({"kind": "count_limit", "resource": "replicas", "max": 2}, sets=[OWN]))
    assert not made.proposals
    whys = {b.id: b.why for b in made.brokers}
    assert whys[4] == (
        "would still hold 1 replica of broker set own: a1-3: no broker of its set would take it that count_limit-replicas allows; add one "
        "with room to the set"
    )
    text = explain_partition(build_snapshot(snapshot), parse_goals(json.dumps(goals_of(
        {"kind": "count_limit", "resource": "replicas", "max": 2}, sets=[OWN])), "g"), PlanOptions(), "a1", 3)  # fmt: skip
    assert "It belongs on the broker set own: 1, 2, 3." in text
    goals = parse_goals(json.dumps(goals_of(REPLICAS, sets=[OWN])), "g")
    assert "It is of the broker set own, for topics a1." in explain_broker(build_snapshot(snapshot), goals, PlanOptions(), 2)
    assert "It is of the brokers of no set, for topics b." in explain_broker(build_snapshot(snapshot), goals, PlanOptions(), 5)
    assert "Its replica on broker 4 would have to come to its broker set. That broker would still hold 1 replica" in text


def test_a_set_with_fewer_brokers_than_replicas_says_how_many_to_add() -> None:
    snapshot = snapshot_of({"a1": [[1, 2, 4]], "b": [[4, 5]]})
    made = planned(snapshot, goals_of(LEADERS, sets=[{**OWN, "brokers": [1, 2]}]))
    assert not made.summary.replica_moves
    (why,) = [b.why for b in made.brokers if b.id == 4]
    assert "a1-0: broker set own has 2 active brokers, and each holds a replica of it; add a broker to the set" in str(why)


def test_moves_to_another_set_are_not_told_as_moves_that_would_help() -> None:
    snapshot = snapshot_of({"a1": [[1], [1], [1], [2], [2]], "b": [[3], [4], [5], [6]]})
    made = planned(snapshot, goals_of({"kind": "usage_distribution", "resource": "disk"}, sets=[{**OWN, "brokers": [1, 2]}]))
    (why,) = [str(b.why) for b in made.brokers if b.id == 1]
    assert "no acceptable action was found" in why
    assert "rack rule" not in why


def test_where_a_set_has_no_room_brokers_of_it_are_the_remedy() -> None:
    snapshot = snapshot_of({"a1": [[1, 2], [1, 2], [1, 2]], "b": [[3], [4], [5], [6]]})
    for partition in snapshot["partitions"][:3]:
        partition["leader_load"]["network_out"] = 1e6
    made = planned(snapshot, goals_of({"kind": "usage_distribution", "resource": "network_out"}, sets=[{**OWN, "brokers": [1, 2]}]))
    assert "brokers of its set with room for them" in {b.id: str(b.why) for b in made.brokers}[1]


def test_racks_are_those_of_the_set() -> None:
    """A set in two racks of three cannot have a replica in each: two share one, and the hard goal on racks does not keep them out."""
    snapshot = snapshot_of({"a1": [[4, 5, 6], [6, 4, 5]], "b": [[5, 6]]}, brokers=9)
    made = planned(snapshot, goals_of(RACK, REPLICAS, sets=[{**OWN, "brokers": [1, 2, 7, 8]}]))  # racks 1 and 2
    assert on_brokers(snapshot, made, "a1") <= {1, 2, 7, 8}
    assert [goal.status for goal in made.goals if goal.kind == "rack_aware"] == ["satisfied"]
    assert any("its brokers are in 2 racks of 3, so up to 2 replicas of a partition share one" in note for note in made.notes)


def test_topics_of_no_set_have_the_brokers_of_none_or_the_set_that_takes_the_rest() -> None:
    lists = {"a1": [[1, 2]], "b": [[1, 2], [3, 4]]}
    free = planned(snapshot_of(lists), goals_of(REPLICAS, sets=[OWN]))
    assert on_brokers(snapshot_of(lists), free, "b") <= {4, 5, 6}
    rest = planned(snapshot_of(lists), goals_of(REPLICAS, sets=[OWN, {"name": "rest", "brokers": [5, 6]}]))
    assert on_brokers(snapshot_of(lists), rest, "b") == {5, 6}
    assert any("brokers 4 are in no set and get no replicas" in note for note in rest.notes)


def test_topics_of_no_set_stay_where_every_broker_is_in_one_but_are_repaired() -> None:
    """A new topic is not lost with its broker only because the goals file does not know it."""
    sets = [OWN, {"name": "two", "brokers": [4, 5, 6], "topics": ["b"]}]
    snapshot = snapshot_of({"a1": [[1, 2]], "new": [[4, 5], [4, 6], [4, 5]]}, b4="dead")
    made = planned(snapshot, goals_of(REPLICAS, sets=sets))
    assert 4 not in on_brokers(snapshot, made, "new")
    assert all(a.repairs == ("dead_broker",) for a in made.actions)
    assert any("every broker is in a set and new in none, so only repairs would move them" in note for note in made.notes)
    assert any("3 partitions of topics that are excluded or in no broker set would change (new)" in note for note in made.notes)
    quiet = snapshot_of({"a1": [[1, 2]], "new": [[4, 5], [4, 6], [4, 5]]})
    assert not planned(quiet, goals_of(REPLICAS, sets=sets)).actions
    goals = parse_goals(json.dumps(goals_of(REPLICAS, sets=sets)), "g")
    assert "of no broker set and every broker is of one" in explain_partition(build_snapshot(quiet), goals, PlanOptions(), "new", 0)


def test_excluded_topics_come_to_their_set_by_other_repairs_alone_and_the_plan_says_so() -> None:
    snapshot = snapshot_of({"a1": [[4, 5]], "b": [[5, 6]]})
    made = planned(snapshot, goals_of(REPLICAS, sets=[OWN], exclude_topics=["a*"]))
    assert not made.proposals
    assert any("2 would stay, 2 of them of topics that only repairs move" in note for note in made.notes)


def test_a_topic_of_two_sets_is_in_the_first_and_the_plan_says_so() -> None:
    snapshot = snapshot_of({"a1": [[1, 4]], "b": [[4, 5]]})
    made = planned(snapshot, goals_of(REPLICAS, sets=[OWN, {"name": "other", "brokers": [4, 5], "topics": ["a1", "b"]}]))
    assert on_brokers(snapshot, made, "a1") <= {1, 2, 3}
    assert "constraints.broker_sets: a1 match several sets; the first one holds" in made.notes


def test_a_set_with_a_broker_that_is_not_there_is_refused() -> None:
    goals = parse_goals(json.dumps(goals_of(REPLICAS, sets=[{**OWN, "brokers": [1, 99]}])), "goals.yaml")
    with pytest.raises(ConfigurationError, match=r"constraints.broker_sets\[0\].brokers: no broker 99"):
        plan(build_snapshot(snapshot_of({"a1": [[1, 2]]})), goals)
    assert plan(build_snapshot(snapshot_of({"a1": [[1, 2]]})), goals, PlanOptions(add_brokers=(AddedBroker(99, None),)))


def test_topics_come_to_their_set_though_a_soft_rack_goal_is_worse_off() -> None:
    """Three of the four brokers of the set are in one rack, where two replicas are as many as the goal wants."""
    snapshot = snapshot_of({"a": [[1, 2, 3, 5]]}, brokers=7)
    own = {"name": "own", "brokers": [1, 2, 4, 7], "topics": ["a"]}
    made = planned(snapshot, goals_of({**RACK, "hard": False}, sets=[own]))
    assert set(placed(snapshot, made)["a", 0]) == {1, 2, 4, 7}


def test_a_budget_goes_to_replicas_outside_their_set_first() -> None:
    snapshot = snapshot_of({"a1": [[4, 5], [1, 2], [1, 2], [1, 2]], "b": [[4, 5], [4, 5], [4, 5], [4, 5]]})
    made = planned(snapshot, goals_of(REPLICAS, LEADERS, sets=[OWN]), max_moves=2)
    assert made.summary.replica_moves == 2
    assert on_brokers(snapshot, made, "a1") <= {1, 2, 3}


def test_replicas_that_belong_on_brokers_of_no_set_are_of_topics_of_no_set() -> None:
    made = planned(snapshot_of({"a1": [[1, 2]], "b": [[4, 3], [4, 5]]}), goals_of(REPLICAS, sets=[OWN]), max_moves=0)
    assert "would still hold 1 replica of topics of no set: the budget" in str(next(b.why for b in made.brokers if b.id == 3))


def test_the_detector_asks_for_a_plan_where_a_replica_stands_outside_its_set() -> None:
    goals = parse_goals(json.dumps(goals_of(REPLICAS, sets=[OWN])), "goals.yaml")
    assert detect(goals, build_snapshot(snapshot_of({"a1": [[1, 4]], "b": [[5, 6]]})), goals).unrepaired == 1
    assert detect(goals, build_snapshot(snapshot_of({"a1": [[1, 2]], "b": [[5, 6]]})), goals).unrepaired == 0


def test_new_partitions_and_more_replicas_are_placed_in_the_set() -> None:
    snapshot, document = snapshot_of({"a1": [[1], [2], [3]], "b": [[4], [5]]}), goals_of(RACK, REPLICAS, sets=[OWN])
    goals = parse_goals(json.dumps(document), "goals.yaml")
    lists = assign(build_snapshot(snapshot), goals, NewTopic("a-new", 6, 2)).replicas
    assert {b for row in lists for b in row} <= {1, 2, 3}
    with pytest.raises(InfeasibleError, match=r"constraints\.broker_sets .*; add a broker to its set, or loosen"):
        assign(build_snapshot(snapshot), goals, NewTopic("a-new", 1, 4))
    made = planned(snapshot, document, replication_factor=(("a1", 2), ("b", 2)))
    assert on_brokers(snapshot, made, "a1") <= {1, 2, 3}
    assert on_brokers(snapshot, made, "b") <= {4, 5, 6}
    most = planned(snapshot, document, replication_factor=(("a1", 4),))
    assert any("constraints.broker_sets; add a broker to its set" in str(one) for one in most.skipped)
    fewer = planned(snapshot_of({"a1": [[1, 2], [2, 3]]}), document, replication_factor=(("a1", 1),))
    assert [len(c.replicas_after) for c in fewer.proposals] == [1, 1]


def test_topics_of_no_set_get_more_replicas_where_every_broker_is_in_one() -> None:
    snapshot = snapshot_of({"a1": [[1], [2], [3]], "new": [[4], [5]]})
    document = goals_of(REPLICAS, sets=[OWN, {"name": "two", "brokers": [4, 5, 6], "topics": ["b"]}])
    made = planned(snapshot, document, replication_factor=(("new", 2),))
    assert [len(c.replicas_after) for c in made.proposals] == [2, 2]


@pytest.mark.parametrize("policy", ["{amount: {kind: one}}", "{amount: {kind: to_target_counts}}", "{preset: danube-balanced}"])
def test_no_policy_moves_a_replica_out_of_its_set(policy: str) -> None:
    snapshot = snapshot_of({"a1": [[1, 2], [1, 2], [1, 3], [1, 2], [2, 1], [1, 2]], "b": [[4, 5]]})
    text = f"version: 1\ngoals: [{{kind: usage_distribution, resource: replicas}}]\nconstraints: {json.dumps({'broker_sets': [OWN]})}\n"
    made = plan(build_snapshot(snapshot), parse_goals(f"{text}policy: {policy}\n", "goals.yaml"))
    assert on_brokers(snapshot, made, "a1") <= {1, 2, 3}
    assert on_brokers(snapshot, made, "b") <= {4, 5, 6}
