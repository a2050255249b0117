"""Small clusters in which an operator knows what the plan should be; G5 to G7 are AutoMQ's own cases."""

from __future__ import annotations

from typing import Any

import pytest

from optimizer.options import AddedBroker
from tests.unit.optimizer.scenarios import (
    DISK,
    FULL,
    IN,
    LEADERS,
    MIB,
    OUT,
    RACK,
    REPLICAS,
    Document,
    cluster,
    loads,
    placed,
    planned,
    told,
    why,
)

# AutoMQ's cases


def test_g5_one_partition_too_many_is_moved_to_the_broker_that_has_one_too_few() -> None:
    snapshot = cluster([0, 1, 2], [([b], {"network_in": 40 * MIB}) for b in (0, 1, 1, 2, 2, 2)])
    result = planned(snapshot, {**IN, "bound": 0.2, "var": "100MiB", "tail": "absolute"})
    (action,) = result.actions
    (change,) = action.changes
    assert (action.type, change.replicas_before, change.replicas_after) == ("move", (2,), (0,))
    assert change.partition in (3, 4, 5)
    assert action.score == pytest.approx(0.608)
    assert loads(result, "network_in") == dict.fromkeys((0, 1, 2), 80 * MIB)


@pytest.mark.parametrize("full", [0, 1], ids=["g6", "g7"])
def test_g6_and_g7_a_full_and_an_empty_broker_meet_in_the_middle_with_two_moves(full: int) -> None:
    empty = 1 - full
    sizes = [10, 20, 15, 5, 5, 10, 15]
    snapshot = cluster(
        [0, 1], [([full], {"network_in": s}) for s in sizes] + [([empty], {"network_in": 5})] * 2
    )
    result = planned(snapshot, {**IN, "bound": 0.2, "var": "100MiB", "tail": "absolute"}, OUT)
    assert all(36 <= load <= 54 for load in loads(result, "network_in").values())
    assert result.summary.replica_moves <= 2


# Brokers that come, go and stay


def test_a_new_broker_gets_its_share() -> None:
    snapshot = cluster([1, 2, 3, 4], [([1 + n % 3], {"network_in": 10.0}) for n in range(24)])
    result = planned(snapshot, IN, REPLICAS)
    assert loads(result, "replicas") == {1: 6, 2: 6, 3: 6, 4: 6}
    assert result.summary.replica_moves == result.lower_bounds.replica_moves == 6


def test_a_draining_broker_hosts_nothing_in_the_end() -> None:
    snapshot = cluster(
        [1, 2, 3, {"id": 4, "state": "draining"}],
        [([1 + n % 4, 1 + (n + 1) % 4], {"network_in": 10.0, "disk": 1e9}) for n in range(12)],
    )
    result = planned(snapshot, IN, REPLICAS, LEADERS)
    assert loads(result, "replicas")[4] == 0
    assert all(len(set(replicas)) == 2 for replicas in placed(snapshot, result).values())


def test_replicas_of_a_dead_broker_are_replaced_before_anything_else_moves() -> None:
    partitions = [([4, 1], {"network_in": 1.0, "disk": 1e9})] * 3 + [
        ([1, 2], {"network_in": 50.0, "disk": 1e6})
    ] * 6
    snapshot = cluster([1, 2, 3, {"id": 4, "state": "dead"}], partitions)
    for entry in snapshot["partitions"][:3]:
        entry["leader"] = 1
    result = planned(snapshot, IN)
    assert loads(result, "replicas")[4] == 0
    leaves_dead = [
        any(4 in c.replicas_before and 4 not in c.replicas_after for c in a.changes) for a in result.actions
    ]
    assert leaves_dead == sorted(leaves_dead, reverse=True)
    assert all(action.repairs for action, leaves in zip(result.actions, leaves_dead, strict=True) if leaves)


def test_an_excluded_broker_is_frozen_and_not_drained() -> None:
    snapshot = cluster([1, 2, 3], [([1], {"network_in": 10.0})] * 8 + [([3], {"network_in": 10.0})] * 8)
    result = planned(snapshot, IN, constraints={"exclude_brokers": [3]})
    assert loads(result, "network_in") == {1: 40, 2: 40, 3: 80}


def test_a_partition_without_a_leader_gets_one() -> None:
    snapshot = cluster([1, 2, 3], [([1, 2], {"network_out": 9.0})])
    snapshot["partitions"][0]["leader"] = None
    result = planned(snapshot, OUT)
    (proposal,) = result.proposals
    assert proposal.leader_after is not None
    assert proposal.leader_after == proposal.replicas_after[0]
    assert result.actions[0].repairs


def test_a_partition_whose_replicas_are_all_dead_stays_and_is_reported() -> None:
    snapshot = cluster(
        [1, 2, {"id": 3, "state": "dead"}], [([3], {"network_in": 5.0}), ([1], {"network_in": 5.0})]
    )
    snapshot["partitions"][0]["leader"] = None
    result = planned(snapshot, REPLICAS, RACK)
    assert placed(snapshot, result)[0] == (3,)
    assert "offline" in told(result) or "no live replica" in told(result)


def test_a_frozen_topic_stays_even_on_a_dead_broker_and_that_is_said() -> None:
    snapshot = cluster(
        [1, 2, {"id": 3, "state": "dead"}], [([3, 1], {"network_in": 5.0})], topic="__internal"
    )
    snapshot["partitions"][0]["leader"] = 1
    result = planned(snapshot, IN, constraints={"freeze_topics": ["__*"]})
    assert list(result.actions) == []
    assert "__internal" in told(result) or "excluded" in told(result)


# Hard goals


def test_two_replicas_in_one_rack_are_parted() -> None:
    brokers = [{"id": b, "rack": "ab"[b % 2]} for b in (1, 2, 3, 4)]
    snapshot = cluster(brokers, [([1, 3], {"network_in": 1.0}), ([2, 3], {"network_in": 1.0})])
    result = planned(snapshot, RACK)
    assert {b % 2 for b in placed(snapshot, result)[0]} == {0, 1}
    assert result.actions[0].repairs == ("rack_aware",)
    assert result.hard_violations_left == 0


def test_a_full_disk_is_relieved_though_the_rest_is_level() -> None:
    brokers = [{"id": b, "capacity": {"disk": 100.0}} for b in (1, 2)]
    partitions = [
        ([b], {"disk": disk, "network_in": 1.0}) for b, disk in ((1, 60.0), (1, 60.0), (2, 10.0), (2, 10.0))
    ]
    result = planned(cluster(brokers, partitions), IN, FULL)
    assert result.actions[0].repairs == ("capacity-disk",)
    assert max(loads(result, "disk").values()) <= 100


def test_a_limit_that_cannot_be_met_is_approached_and_what_is_missing_is_said() -> None:
    brokers = [{"id": b, "capacity": {"disk": 100.0}} for b in (1, 2)]
    result = planned(cluster(brokers, [([1], {"disk": 50.0})] * 6), FULL)
    assert sorted(loads(result, "disk").values()) == [150, 150] or sum(
        max(0.0, load - 100) for load in loads(result, "disk").values()
    ) == pytest.approx(100)
    goal = result.goals[0]
    assert goal.status == "infeasible"
    assert result.infeasible
    assert "100" in goal.explanation


@pytest.mark.parametrize("room", [[5e9, 1e9, 5e9, 1e9], [1e9, 1e9, 1e9, 1e9]])
def test_a_limit_that_cannot_be_met_hides_nothing_that_would_help_elsewhere(room: list[float]) -> None:
    brokers = [{"id": b, "rack": f"r{b % 2}", "capacity": {"disk": most}} for b, most in enumerate(room, 1)]
    load = {"network_in": 1e6, "network_out": 1e6, "disk": 1e9}
    result = planned(cluster(brokers, [([1, 2], load)] * 6), RACK, {**FULL, "limit": 0.8}, IN, OUT, DISK, LEADERS)
    assert result.infeasible
    assert result.actions
    leaders = loads(result, "leaders")
    assert max(leaders.values()) <= 3  # 6 on broker 1 before


def test_of_a_budget_dead_replicas_get_their_part_first() -> None:
    partitions = [([4, 1], {"network_in": 1.0, "disk": 1e9})] * 6 + [([1, 2], {"network_in": 30.0, "disk": 1e6})] * 12
    snapshot = cluster([1, 2, 3, {"id": 4, "state": "dead"}], partitions)
    for entry in snapshot["partitions"][:6]:
        entry["leader"] = 1
    for most in (3, 6):
        result = planned(snapshot, IN, REPLICAS, max_moves=most)
        assert result.summary.replica_moves == most
        assert loads(result, "replicas")[4] == 6 - most


def test_a_list_that_changes_is_led_by_its_first_replica_so_that_an_election_changes_nothing() -> None:
    snapshot = cluster([1, 2, 3, 4], [([1, 2, 3], {"network_in": 1.0, "disk": 1e9})] * 12)
    for entry in snapshot["partitions"]:
        entry["leader"] = 2
    result = planned(snapshot, REPLICAS, LEADERS)
    assert result.summary.replica_moves >= 6
    for change in result.proposals:
        if set(change.replicas_after) != set(change.replicas_before):
            assert change.replicas_after[0] == change.leader_after


def test_the_rack_rule_is_never_given_up_for_balance() -> None:
    brokers = [{"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}, {"id": 3, "rack": "b"}]
    snapshot = cluster(brokers, [([1, 2 + n % 2], {"network_in": 10.0}) for n in range(8)])
    result = planned(snapshot, RACK, IN)
    assert all(1 in replicas for replicas in placed(snapshot, result).values())


def test_where_racks_force_each_share_brokers_are_compared_within_their_rack() -> None:
    brokers = [{"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}, {"id": 3, "rack": "b"}]
    snapshot = cluster(brokers, [([1, 2 + n % 2], {"network_in": 10.0}) for n in range(8)])
    result = planned(snapshot, RACK, IN)
    assert list(result.actions) == []
    assert result.goals[1].status == "satisfied"


# What cannot or need not be done


def test_a_broker_with_one_partition_that_is_too_large_says_so_and_nothing_is_shuffled() -> None:
    partitions = [([1], {"network_in": 100.0})] + [([2 + n % 2], {"network_in": 5.0}) for n in range(8)]
    result = planned(cluster([1, 2, 3], partitions), IN)
    assert list(result.actions) == []
    assert "irreducible" in why(result, 1)


@pytest.mark.parametrize(
    ("brokers", "partitions"),
    [([1], [([1], {"network_in": 5.0})]), ([1, 2], []), ([1, 2], [([1], {"network_in": 0.0})]),
     ([{"id": 1, "state": "draining"}], [([1], {"network_in": 5.0})])],
    ids=["one broker", "no partitions", "no load", "no active broker"],
)  # fmt: skip
def test_where_there_is_nothing_to_balance_the_plan_is_empty(
    brokers: list[Any], partitions: list[Any]
) -> None:
    assert list(planned(cluster(brokers, partitions), IN, RACK).actions) == []


def test_a_goal_on_an_unreported_resource_is_skipped_and_not_called_satisfied() -> None:
    result = planned(cluster([1, 2], [([1], {"network_in": 5.0})] * 4), {"kind": "usage_distribution",
                     "resource": "cpu", "weight": 100.0}, IN)  # fmt: skip
    assert result.goals[0].status == "skipped"
    assert result.goals[0].before is None
    assert loads(result, "network_in") == {1: 10, 2: 10}


def test_small_loads_are_left_alone() -> None:
    snapshot = cluster([1, 2], [([1], {"network_in": 1000.0})] * 4)
    assert list(planned(snapshot, {**IN, "min_load": "1MiB"}).actions) == []
    assert len(planned(snapshot, {**IN, "min_load": 1000}).actions) == 2


# How it is done


def test_leadership_moves_where_that_is_enough_since_it_copies_nothing() -> None:
    snapshot = cluster([1, 2, 3], [([1, 2 + n % 2], {"network_out": 10.0, "disk": 1e12}) for n in range(9)])
    result = planned(snapshot, OUT)
    assert result.summary.bytes_to_move == 0
    assert {a.type for a in result.actions} == {"leadership"}
    assert loads(result, "network_out") == {1: 30, 2: 30, 3: 30}


def test_a_swap_is_found_where_no_single_move_helps() -> None:
    snapshot = cluster([1, 2], [([1], {"network_in": 60.0}), ([1], {"network_in": 60.0}),
                                ([2], {"network_in": 40.0}), ([2], {"network_in": 40.0})])  # fmt: skip
    result = planned(snapshot, IN)
    assert [a.type for a in result.actions] == ["swap"]
    assert loads(result, "network_in") == {1: 100, 2: 100}


def test_of_two_ways_the_one_that_copies_less_is_taken() -> None:
    partitions = [([1], {"network_in": 10.0, "disk": size}) for size in (1e12, 1e9, 1e12, 1e9)]
    result = planned(cluster([1, 2], partitions), IN)
    assert result.summary.bytes_to_move == 2e9


def test_larger_brokers_carry_more() -> None:
    brokers = [{"id": 1, "capacity": {"network_in": 100.0}}, {"id": 2, "capacity": {"network_in": 300.0}}]
    result = planned(cluster(brokers, [([1 + n % 2], {"network_in": 10.0}) for n in range(16)]), IN)
    assert loads(result, "network_in") == {1: 40, 2: 120}


def test_nothing_is_copied_where_storage_is_shared() -> None:
    snapshot = cluster([1, 2], [([1], {"network_in": 10.0, "disk": 1e12})] * 4, storage="shared")
    result = planned(snapshot, IN)
    assert result.summary.replica_moves == 2
    assert result.summary.bytes_to_move == 0


def test_one_group_of_goals_does_not_pay_for_another() -> None:
    # Bytes in and disk cannot both be level; together the heavier goal wins, as two groups none may lose.
    partitions = [([1], {"network_in": 50.0, "disk": 50.0})] * 2 + [([2], {"network_in": 0.0, "disk": 100.0})]
    snapshot = cluster([1, 2], partitions)
    heavy = {**IN, "weight": 100.0}
    assert len(planned(snapshot, heavy, DISK).actions) == 1
    assert list(planned(snapshot, {**heavy, "group": "network"}, {**DISK, "group": "space"}).actions) == []


def test_a_topic_is_spread_over_the_brokers() -> None:
    snapshot = cluster([1, 2, 3], [([1], {})] * 6)
    result = planned(snapshot, {"kind": "topic_distribution", "resource": "replicas"})
    assert all(1 <= count <= 3 for count in loads(result, "replicas").values())


# Budgets and what-ifs


def test_with_one_move_allowed_the_one_that_matters_most_is_made() -> None:
    partitions = [([1], {"network_in": s, "disk": 1e9}) for s in (1.0, 1.0, 50.0, 1.0, 47.0)]
    result = planned(cluster([1, 2], partitions), IN, max_moves=1)
    (proposal,) = result.proposals
    assert proposal.partition in (2, 4)


def test_a_budget_of_bytes_buys_balance_where_it_is_cheap() -> None:
    partitions = [([1], {"network_in": 10.0, "disk": size}) for size in (9e9, 9e9, 9e9, 1e9, 1e9, 1e9)]
    result = planned(cluster([1, 2], partitions), IN, max_bytes=3_000_000_000)
    assert loads(result, "network_in") == {1: 30, 2: 30}


def test_with_no_budget_nothing_moves() -> None:
    snapshot = cluster([1, 2], [([1], {"network_in": 10.0, "disk": 1e9})] * 4)
    for budget in ("max_moves", "max_partitions", "max_bytes"):
        options: Document = {budget: 0}
        assert list(planned(snapshot, IN, **options).proposals) == []


def test_what_if_a_broker_is_added_or_removed_or_a_topic_grows() -> None:
    snapshot = cluster([1, 2], [([1 + n % 2], {"network_in": 10.0}) for n in range(12)])
    assert loads(planned(snapshot, IN, add_brokers=(AddedBroker(3),)), "network_in") == {1: 40, 2: 40, 3: 40}
    assert loads(planned(snapshot, IN, remove_brokers=(2,)), "network_in") == {1: 120, 2: 0}
    assert list(planned(snapshot, IN, scale_load=(("t", 5.0),)).actions) == []


def test_acceptance_by_potential_is_said_in_the_plan() -> None:
    snapshot = cluster([1, 2], [([1], {"network_in": 10.0})] * 4)
    result = planned(snapshot, IN, acceptance="potential")
    assert result.options["acceptance"] == "potential"
    assert loads(result, "network_in") == {1: 20, 2: 20}


def test_every_action_says_which_goal_asked_for_it() -> None:
    result = planned(cluster([1, 2], [([1], {"network_in": 10.0})] * 4), {**IN, "name": "bytes in"}, REPLICAS)
    assert len(result.actions) == 2
    assert all("bytes in" in a.reason or "replicas" in a.reason for a in result.actions)


def test_conflicts_in_racks_of_brokers_that_are_gone_are_told_though_no_active_broker_is_in_one() -> None:
    """Brokers 3 (excluded) and 4 (dead) stand in rack c together; their replicas are repaired, yet no broker is judged for them."""
    brokers = [
        {"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}, {"id": 3, "rack": "c", "state": "excluded"},
        {"id": 4, "rack": "c", "state": "dead"},
    ]  # fmt: skip
    result = planned(cluster(brokers, [([3, 4], {}), ([3, 4], {}), ([1, 2], {})]), RACK, REPLICAS)
    assert any("rack_aware" in a.repairs for a in result.actions)
    told = next(g.explanation for g in result.goals if g.name == "rack_aware")
    assert told == (
        "every active broker meets the goal already; "
        "4 replicas in over-full racks on brokers that are not active would be ended"
    )
