"""Corners of the search: clusters in which one step of it alone finds the way.

As in `test_scenarios`, every plan is replayed by the oracle and followed by a second one that must be empty. The clusters are small
enough for kernels that run interpreted (``make coverage``).
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from optimizer.options import AddedBroker, PlanOptions
from optimizer.planner import plan
from tests.oracle.clusters import case_of
from tests.oracle.leftovers import undone
from tests.oracle.runs import deviations, is_budgeted, plan_document
from tests.unit.optimizer.scenarios import DISK, FULL, IN, LEADERS, OUT, RACK, REPLICAS, cluster, loads, placed, planned

Document = dict[str, Any]
TOPICS: Document = {"kind": "topic_distribution", "resource": "replicas"}
TOPIC_LEADERS: Document = {"kind": "topic_distribution", "resource": "leaders"}


def two_topics(many: list[list[int]], few: list[list[int]]) -> Document:
    """Topic a with the lists `many`, topic z with `few`."""
    a, z = cluster([1, 2, 3], [(on, {}) for on in many], "a"), cluster([1, 2, 3], [(on, {}) for on in few], "z")
    return {**a, "partitions": a["partitions"] + z["partitions"]}


def count(snapshot: Document, result: Any, topic: str, broker: int, leading: bool = False) -> int:
    final = {(p["topic"], p["partition"]): (p["replicas"], p["leader"]) for p in snapshot["partitions"]}
    final |= {(c.topic, c.partition): (list(c.replicas_after), c.leader_after) for c in result.proposals}
    return sum(
        (leader == broker) if leading else (broker in on) for (name, _), (on, leader) in final.items() if name == topic
    )


def test_a_broker_at_the_edge_of_a_soft_limit_gets_nothing_where_another_has_room() -> None:
    """The next byte produced there would have broken the goal; and brokers above such a limit came under it ever more slowly."""
    brokers = [{"id": b, "capacity": {"disk": 400.0}} for b in (1, 2)] + [{"id": 3, "state": "draining", "capacity": {"disk": 400.0}}]
    snapshot = cluster(brokers, [([1], {"disk": 396.0}), ([2], {"disk": 80.0}), *[([3], {"disk": 1.0})] * 4])
    result = planned(snapshot, {**FULL, "hard": False})
    assert loads(result, "disk") == {1: 396.0, 2: 84.0, 3: 0.0}


# One topic among many


@pytest.mark.parametrize("goal", [TOPICS, TOPIC_LEADERS], ids=["replicas", "leaders"])
def test_a_small_topic_is_spread_also_where_its_brokers_are_full_of_another(goal: Document) -> None:
    level = [[1 + n % 3] for n in range(78)]
    snapshot = two_topics(level, [[1]] * 6)
    result = planned(snapshot, goal)
    assert all(1 <= count(snapshot, result, "z", b) <= 3 for b in (1, 2, 3))
    assert result.summary.replica_moves <= 4
    assert {c.topic for c in result.proposals} == {"z"}


def test_a_broker_without_any_of_a_topic_gets_some() -> None:
    level = [[1 + n % 3] for n in range(78)]
    snapshot = two_topics(level, [[1 + n % 2] for n in range(12)])  # 6, 6 and 0, where 3 to 5 are within range
    result = planned(snapshot, TOPICS)
    assert all(3 <= count(snapshot, result, "z", b) <= 5 for b in (1, 2, 3))


def test_leaders_of_a_topic_are_spread_without_copying() -> None:
    level = [[1 + n % 3, 1 + (n + 1) % 3] for n in range(78)]
    snapshot = two_topics(level, [[1, 2 + n % 2] for n in range(6)])
    result = planned(snapshot, TOPIC_LEADERS)
    assert all(1 <= count(snapshot, result, "z", b, leading=True) <= 3 for b in (1, 2, 3))
    assert result.summary.replica_moves == 0


# Many replicas, and what stands in the way


def test_the_best_of_many_replicas_moves() -> None:
    """More than a hundred small ones and a few of the size that is missing."""
    partitions = [([1], {"network_in": 1.0})] * 60 + [([1], {"network_in": 8.0})] * 5 + [([2], {"network_in": 1.0})] * 60
    result = planned(cluster([1, 2], partitions), IN)
    assert max(loads(result, "network_in").values()) <= 88
    assert result.summary.replica_moves <= 2


def test_swaps_level_what_counts_forbid_to_move() -> None:
    """Forty replicas each may not move one by one: the limit is what each has."""
    partitions = [([1], {"network_in": 3.0})] * 40 + [([2], {"network_in": 1.0})] * 40
    few = {"kind": "count_limit", "resource": "replicas", "max": 40}
    result = planned(cluster([1, 2], partitions), IN, few)
    assert all(72 <= load <= 88 for load in loads(result, "network_in").values())
    assert {a.type for a in result.actions} == {"swap"}


@pytest.mark.parametrize(
    "partitions",
    [
        [([1], 17), ([1], 20), ([1], 60), ([2], 46), ([2], 43), ([2], 15), ([2], 44)],
        [([3, 2], 13), ([1, 2], 34), ([1, 3], 33), ([3, 1], 13), ([3, 2], 17), ([2, 3], 55), ([3, 2], 10)],
        [([2, 3], 38), ([2, 1], 47), ([2, 1], 30), ([1, 3], 33), ([1, 3], 18), ([1, 3], 30)],
        [([1, 2], 46), ([3, 1], 52), ([1, 3], 26), ([2, 3], 16), ([1, 3], 58), ([1, 3], 39)],
        [([3, 2], 50), ([2, 1], 21), ([2, 1], 28), ([3, 1], 38), ([3, 1], 29)],
    ],
    ids=["two brokers", "seven lists", "leaders too", "six lists", "five lists"],
)
def test_several_changes_at_once_mend_what_single_ones_do_not(partitions: list[tuple[list[int], int]]) -> None:
    brokers = sorted({b for on, _ in partitions for b in on})
    snapshot = cluster(brokers, [(on, {"network_in": size, "network_out": 3.0 * size}) for on, size in partitions])
    result = planned(snapshot, {**IN, "bound": 0.05}, OUT)
    assert {g.status for g in result.goals} == {"satisfied"}


def test_leadership_stays_off_a_broker_whose_limit_it_would_break() -> None:
    brokers = [{"id": b, "capacity": {"network_out": 200.0 if b == 1 else 25.0}} for b in (1, 2, 3)]
    partitions = [([1, 2 + n % 2], {"network_out": 10.0}) for n in range(9)]
    result = planned(cluster(brokers, partitions), {**FULL, "resource": "network_out"}, {**LEADERS, "trivial_change": 0.01})
    assert loads(result, "leaders") == {1: 5, 2: 2, 3: 2}


def test_excluded_brokers_keep_what_they_lead() -> None:
    partitions = [([3, 1], {"network_out": 10.0})] * 4 + [([1, 3], {"network_out": 10.0})] * 2 + [([1, 2], {"network_out": 10.0})] * 6
    snapshot = cluster([1, 2, 3], partitions)
    result = planned(snapshot, OUT, LEADERS, constraints={"exclude_brokers": [3]})
    assert {n for n, on in placed(snapshot, result).items() if on[0] == 3} == {0, 1, 2, 3}
    assert loads(result, "leaders")[1] == loads(result, "leaders")[2] == 4


def test_excluded_topics_stay_where_others_make_room() -> None:
    fixed = cluster([1, 2], [([1], {"network_in": 10.0})] * 3, "__x")
    free = cluster([1, 2], [([1], {"network_in": 10.0})] * 3 + [([2], {"network_in": 5.0})] * 2, "t")
    snapshot = {**fixed, "partitions": fixed["partitions"] + free["partitions"]}
    result = planned(snapshot, IN, constraints={"exclude_topics": ["__*"]})
    assert {c.topic for c in result.proposals} == {"t"}
    assert loads(result, "network_in") in ({1: 30, 2: 40}, {1: 35, 2: 35}, {1: 40, 2: 30})


# Brokers that leave


@pytest.mark.parametrize("goal", [LEADERS, {**IN, "trivial_change": 0.01}], ids=["leaders", "network_in"])
@pytest.mark.parametrize("state", ["draining", "dead"])
def test_leadership_is_handed_over_where_the_replica_has_nowhere_to_go(state: str, goal: Document) -> None:
    """Two brokers for two replicas: the one that leaves can only give its leadership away, whatever the goals say of it."""
    snapshot = cluster([1, {"id": 2, "state": state}], [([2, 1], {"network_in": 5.0})] * 3)
    result = planned(snapshot, goal)
    assert loads(result, "leaders") == {1: 3, 2: 0}
    assert loads(result, "replicas") == {1: 3, 2: 3}


def test_a_crowded_rack_and_a_dead_broker_are_mended_by_one_replica() -> None:
    brokers = [{"id": 1, "rack": "a"}, {"id": 2, "rack": "a", "state": "dead"}, {"id": 3, "rack": "b"}, {"id": 4, "rack": "b"}]
    snapshot = cluster(brokers, [([1, 2], {"network_in": 5.0})] * 4)
    result = planned(snapshot, RACK, IN)
    assert all(1 in on and 2 not in on for on in placed(snapshot, result).values())
    assert result.summary.replica_moves == 4


def test_a_leaderless_partition_off_a_dead_broker_gets_replica_and_leader() -> None:
    snapshot = cluster([1, 2, {"id": 3, "state": "dead"}], [([3, 1], {"network_in": 5.0}), ([2, 3], {"network_in": 5.0})])
    for entry in snapshot["partitions"]:
        entry["leader"] = None
    result = planned(snapshot, REPLICAS, LEADERS)
    assert loads(result, "leaders") == {1: 1, 2: 1, 3: 0}
    assert loads(result, "replicas")[3] == 0


# Changes too small to be worth it


def test_a_broker_that_would_hardly_change_is_left_alone() -> None:
    partitions = [([1], {"network_in": 10.0}) for _ in range(10)] + [([2], {"network_in": 10.0}) for _ in range(8)]
    snapshot = cluster([1, 2], partitions)
    narrow = {**IN, "bound": 0.02, "var": 0.6}
    assert len(planned(snapshot, narrow).actions) == 1
    assert list(planned(snapshot, {**narrow, "trivial_change": 0.2}).actions) == []  # 10 of 90
    assert len(planned(snapshot, {**narrow, "trivial_change": 0.1}).actions) == 1


def test_leadership_too_is_left_alone_where_it_changes_little() -> None:
    snapshot = cluster([1, 2], [([1 + n % 2, 2 - n % 2], {"network_out": 10.0}) for n in range(16)])
    for entry in snapshot["partitions"][1:4:2]:
        entry["replicas"], entry["leader"] = [1, 2], 1  # 100 and 60
    goal = {**OUT, "bound": 0.05}
    assert len(planned(snapshot, goal).actions) == 2
    assert list(planned(snapshot, {**goal, "trivial_change": 0.5}).actions) == []


def test_a_trivial_change_still_empties_a_dead_broker() -> None:
    partitions = [([1], {"network_in": 10.0})] * 10 + [([2], {"network_in": 10.0})] * 9 + [([3, 2], {"network_in": 1.0})]
    snapshot = cluster([1, 2, {"id": 3, "state": "dead"}], partitions)
    snapshot["partitions"][-1]["leader"] = 2
    result = planned(snapshot, {**IN, "trivial_change": 0.5})
    assert loads(result, "replicas")[3] == 0


def test_a_crowded_rack_is_mended_by_however_little_a_broker_changes() -> None:
    """The plan was empty, and said that no broker of another rack can take the replica."""
    brokers = [{"id": b, "rack": "ab"[b % 2]} for b in (1, 2, 3, 4)]
    pairs = [[1, 2], [2, 3], [3, 4], [4, 1]]
    snapshot = cluster(brokers, [([1, 3], {"network_in": 1.0}), *[(on, {"network_in": 10.0}) for on in pairs * 5]])
    result = planned(snapshot, RACK, {**IN, "trivial_change": 0.5})
    assert [(g.name, g.status) for g in result.goals] == [("rack_aware", "satisfied"), ("usage_distribution-network_in", "satisfied")]
    assert result.summary.replica_moves == 1


def test_a_broker_over_a_hard_limit_is_relieved_however_little_others_change() -> None:
    brokers = [{"id": b, "capacity": {"disk": 100.0}} for b in (1, 2)]
    snapshot = cluster(brokers, [([1], {"disk": 1.0, "network_in": 10.0})] * 101 + [([2], {"disk": 1.0, "network_in": 10.0})] * 98)
    result = planned(snapshot, FULL, {**IN, "trivial_change": 0.5})
    assert loads(result, "disk") == {1: 100.0, 2: 99.0}


def test_what_small_changes_are_left_out_for_is_said() -> None:
    """The plan pointed at bounds, weights and acceptance, of which none would have brought an action."""
    partitions = [([1], {"network_in": 10.0}) for _ in range(10)] + [([2], {"network_in": 10.0}) for _ in range(8)]
    result = planned(cluster([1, 2], partitions), {**IN, "bound": 0.02, "trivial_change": 0.2})
    assert "a smaller trivial_change" in str(result.brokers[0].why)


@pytest.mark.parametrize("seed", range(30))
def test_random_clusters_with_trivial_changes_left_out(seed: int) -> None:
    case = case_of(seed + 7_000, most_brokers=5, per_broker=6)
    trivial = [{**g, "trivial_change": 0.02} if g["kind"] == "usage_distribution" else g for g in case.goals["goals"]]
    spread = {"kind": "usage_distribution", "resource": "replicas", "name": "spread", "trivial_change": 0.02}
    case = case.without(goals={**case.goals, "goals": [*trivial, spread]})
    document = plan_document(case)
    assert deviations(case, document) == []
    assert is_budgeted(case) or undone(case.snapshot, case.goals, document, case.options) == []


@pytest.mark.parametrize("seed", [-(2**63), 2**63 - 1])
def test_the_largest_seeds_that_the_command_line_takes_are_searched_with(seed: int) -> None:
    """A second attempt added to them, and what came out was no int64 any more."""
    partitions = [([1], {"network_in": 10.0 + n}) for n in range(5)]
    result = planned(cluster([1, 2, 3], partitions), {**IN, "bound": 0.001}, LEADERS, seed=seed)
    assert any(b.violates for b in result.brokers)  # so that there were several attempts


# Budgets


def test_the_dearest_change_waits_where_bytes_are_few() -> None:
    partitions = [([1], {"network_in": 10.0, "disk": size}) for size in (5e9, 4e9, 3e9, 2e9, 1e9, 1e9)]
    result = planned(cluster([1, 2], partitions), IN, DISK, max_bytes=4_000_000_000)
    assert 0 < result.summary.bytes_to_move <= 4e9


def test_no_more_partitions_change_than_allowed_where_lists_and_leaders_both_should() -> None:
    partitions = [([1, 2], {"network_in": 10.0, "disk": 1e9}) for _ in range(6)] + [([2, 3], {"network_in": 1.0, "disk": 1e9})]
    snapshot = cluster([1, 2, 3, 4], partitions)
    result = planned(snapshot, {**IN, "trivial_change": 0.01}, LEADERS, max_partitions=2)
    assert result.summary.partitions <= 2
    assert result.summary.replica_moves >= 1


# What-ifs that do not fit


def test_every_what_if_that_does_not_fit_is_said_at_once() -> None:
    snapshot = build_snapshot(cluster([{"id": 1, "rack": "a"}, 2], [([1], {"network_in": 1.0})]))
    goals = parse_goals(
        'version: 1\ngoals: [{kind: usage_distribution, resource: network_in}]\nconstraints: {exclude_brokers: [77]}\n', "g"
    )
    options = PlanOptions(
        add_brokers=(AddedBroker(1, "b"), AddedBroker(-4), AddedBroker(5), AddedBroker(5)), remove_brokers=(8,),
        exclude_brokers=(9,), scale_load=(("t", -1.0), ("nothing*", 2.0)),
    )  # fmt: skip
    with pytest.raises(ConfigurationError) as refused:
        plan(snapshot, goals, options)
    text = str(refused.value)
    for said in (
        "has broker 1 in rack a", "found -4", "added twice", "no broker 8", "no broker 9", "no broker 77", "found -1.0 for t",
        "no topic matches 'nothing*'",
    ):  # fmt: skip
        assert said in text


def test_an_imagined_broker_has_a_typical_capacity_and_takes_its_place_among_the_ids() -> None:
    brokers = [{"id": 2, "capacity": {"disk": 100.0}}, {"id": 9, "capacity": {"disk": 400.0}}, {"id": 12, "capacity": {"disk": 400.0}}]
    snapshot = cluster(brokers, [([9], {"disk": 30.0})] * 6 + [([2], {"disk": 20.0}), ([12], {"disk": 20.0})])
    coarse = {**DISK, "trivial_change": 0.01}
    result = planned(snapshot, FULL, coarse, add_brokers=(AddedBroker(5, "r"), AddedBroker(2)))
    assert [b.id for b in result.brokers] == [2, 5, 9, 12]
    assert loads(result, "disk")[5] in (60, 90)  # of 220 a broker of 400 among 1300 should carry 68


def test_a_replica_that_leaves_an_over_full_rack_changes_what_the_others_there_are_worth() -> None:
    """Known verdicts were used again for brokers whose rack score had changed; the plan's own check then refused it all."""
    assert plan_document(case_of(803))["actions"]
