"""Policies end to end: what an operator who comes from another balancer gets from its preset."""

from __future__ import annotations

import re

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from goals.policy import Placement
from goals.policy_presets import POLICY_PRESETS
from optimizer.explain import explain_partition
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.policies.assign import NewTopic, assign
from tests.unit.optimizer.policies.plain import MB, cluster, goals_with, loads_after

PLANNING = sorted(name for name, parts in POLICY_PRESETS.items() if "amount" in parts)  # the others leave plans to the search
PIPELINES = [name for name in PLANNING if name != "wix-minimal"]


def test_counts_of_6_0_6_end_level_and_not_just_below_the_line() -> None:
    """DAN-F1: the original stops at 4, 3, 5 with the cluster still above its line."""
    snapshot = cluster([[MB] * 6, [], [MB] * 6])
    policy = "{preset: danube-aggressive, score: {kind: count}}"
    assert loads_after(snapshot, plan(snapshot, goals_with(policy)), "replicas").tolist() == [4, 4, 4]


def test_a_scaled_out_cluster_gets_level_though_more_than_half_are_loaded() -> None:
    """DAN-I4: 100, 100, 100, 0, 0. By the published rule nothing is overloaded, so nothing ever moves."""
    snapshot = cluster([[MB] * 10] * 3 + [[], []])
    made = plan(snapshot, goals_with("{preset: danube-balanced, guards: {moves: 100}}"))
    counts = loads_after(snapshot, made, "replicas")
    assert counts.std() / counts.mean() <= 0.15
    assert made.summary.replica_moves == 10  # at 15 %, where the detector stops


@pytest.mark.parametrize("preset", PIPELINES)
def test_every_preset_relieves_the_hot_broker_and_says_what_each_stage_did(preset: str) -> None:
    loads = [[6 * MB] * 10 + [9 * MB] * 4, [2 * MB] * 10, [2 * MB] * 8, [MB] * 8]
    snapshot = cluster(loads)
    made = plan(snapshot, goals_with(f"{{preset: {preset}}}"))
    assert made.summary.replica_moves > 0
    before, after = snapshot.broker_load("network_in"), loads_after(snapshot, made)
    assert after.max() < before.max()
    assert after.sum() == pytest.approx(before.sum())
    notes = [note for note in made.notes if note.startswith("policy: ")]
    assert notes[0].startswith("policy: detector: ")
    assert any("amount" in note for note in notes)
    assert "placement" in made.actions[0].reason
    assert plan(snapshot, goals_with(f"{{preset: {preset}}}")).plan_id == made.plan_id


@pytest.mark.parametrize("preset", sorted(POLICY_PRESETS))
def test_a_level_cluster_is_left_alone(preset: str) -> None:
    snapshot = cluster([[2 * MB] * 5] * 4)
    assert not plan(snapshot, goals_with(f"{{preset: {preset}}}")).actions


@pytest.mark.parametrize("preset", PLANNING)
def test_a_removed_broker_is_emptied(preset: str) -> None:
    snapshot = cluster([[2 * MB] * 5] * 4)
    made = plan(snapshot, goals_with(f"{{preset: {preset}, guards: {{moves: 2}}}}"), PlanOptions(remove_brokers=(2,)))
    assert loads_after(snapshot, made, "replicas")[2] == 0


@pytest.mark.parametrize("preset", PIPELINES)
def test_too_few_brokers_are_not_balanced_but_what_leaves_one_is_moved(preset: str) -> None:
    snapshot = cluster([[2 * MB] * 5, [2 * MB] * 45, [], []])
    goals = goals_with(f"{{preset: {preset}, guards: {{min_brokers: 4}}}}")
    assert plan(snapshot, goals).actions
    made = plan(snapshot, goals, PlanOptions(remove_brokers=(0,)))
    assert {c.replicas_before for c in made.proposals} == {(0,)}
    assert made.summary.replica_moves == 5
    assert any("guard min_brokers: 3 active brokers, 4 must be there" in note for note in made.notes)


def test_a_filter_leaves_topics_alone_and_a_guard_ends_the_plan() -> None:
    snapshot = cluster([[MB] * 20, []])
    policy = "{amount: {kind: one}, accept: detector, filters: {exclude: ['t[0-3]']}, guards: {moves: 3}}"
    made = plan(snapshot, goals_with(policy))
    assert {c.topic for c in made.proposals} <= {"t4", "t5", "t6"}
    assert made.summary.replica_moves == 3
    assert any("guard moves: 3 moves" in note for note in made.notes)


def test_units_of_a_topic_move_together() -> None:
    snapshot = cluster([[MB] * 21, [], []])
    made = plan(snapshot, goals_with("{amount: {kind: one}, unit: topic, accept: detector}"))
    where: dict[str, set[int]] = {}
    for c in made.proposals:
        where.setdefault(c.topic, set()).update(c.replicas_after)
    assert made.proposals
    assert all(len(brokers) == 1 for brokers in where.values())


def test_a_swap_is_found_where_every_unit_is_too_heavy_alone() -> None:
    snapshot = cluster([[50 * MB, 40 * MB], [20 * MB]], capacity=100 * MB)
    made = plan(snapshot, goals_with(
        "{detector: {kind: std, target: 0.1}, score: {kind: throughput}, amount: {kind: half_gap}, order: swap_if_too_big, "
        "placement: {kind: paired}, accept: detector}"))  # fmt: skip
    assert [a.type for a in made.actions] == ["swap"]
    assert sorted(loads_after(snapshot, made).tolist()) in ([40 * MB, 70 * MB], [50 * MB, 60 * MB])


def test_a_swap_takes_as_many_units_back_as_level_the_pair() -> None:
    """One of them alone would leave the other broker as full as this one was."""
    snapshot = cluster([[60 * MB, 60 * MB], [10 * MB] * 6], capacity=200 * MB)
    made = plan(snapshot, goals_with(
        "{detector: {kind: std, target: 0.1}, score: {kind: throughput}, amount: {kind: half_gap}, order: swap_if_too_big, "
        "placement: {kind: paired}, accept: detector}"))  # fmt: skip
    assert [len(a.changes) for a in made.actions] == [4]
    assert loads_after(snapshot, made).tolist() == [90 * MB, 90 * MB]


def test_no_move_breaks_a_hard_goal() -> None:
    """The new broker is small: what would overfill it stays, and the plan says so."""
    snapshot = cluster([[30 * MB] * 4, []])
    goals = parse_goals(
        "version: 1\ngoals:\n - {kind: count_limit, resource: replicas, max: 1}\n - {kind: usage_distribution, resource: network_in}\n"
        "policy: {amount: {kind: one}, accept: detector}\n", "g")  # fmt: skip
    made = plan(snapshot, goals)
    assert loads_after(snapshot, made, "replicas").tolist() == [3, 1]
    assert any("hard goal count_limit-replicas would get worse" in note for note in made.notes)


@pytest.mark.parametrize("kind", ["leader_deficit", "least_rate"])
def test_a_placement_sees_what_the_plan_has_moved_already(kind: str) -> None:
    """By the cluster as it was at the start, one broker would get all of it."""
    snapshot = cluster([[MB] * 6, [], []])
    goals = goals_with(f"{{amount: {{kind: one}}, placement: {{kind: {kind}}}}}")
    assert loads_after(snapshot, plan(snapshot, goals, PlanOptions(remove_brokers=(0,)))).tolist() == [0.0, 3 * MB, 3 * MB]


@pytest.mark.parametrize("kind", ["weighted_by_headroom", "least_rate"])
def test_the_limit_of_a_placement_is_utilization_whatever_ranks_brokers(kind: str) -> None:
    """The broker with most partitions has room, the one with fewest none."""
    snapshot = cluster([[MB] * 6, [MB] * 3, [90 * MB]])
    for seed in range(20):
        goals = goals_with(f"{{amount: {{kind: one}}, score: {{kind: count}}, placement: {{kind: {kind}}}}}")
        made = plan(snapshot, goals, PlanOptions(remove_brokers=(1,), seed=seed))
        assert {c.replicas_after for c in made.proposals if c.replicas_before == (1,)} == {(0,)}


def test_without_capacities_the_least_rate_is_that_of_all_brokers() -> None:
    """Beside a level load each broker has nearly as much as the busiest; as utilization that was above every limit, and no rate counted."""
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "shared",
        "brokers": [{"id": b} for b in range(3)],
        "partitions": [
            {"topic": "t", "partition": b, "replicas": [b], "leader": b, "leader_load": {"produce_rate": rate, "cpu": cpu}}
            for b, (rate, cpu) in enumerate([(400.0, 10.0), (200.0, 10.5), (300.0, 9.9)])
        ],
    }  # fmt: skip
    goals = parse_goals("version: 1\ngoals: [{kind: usage_distribution, resource: cpu}]\n", "g")
    assert assign(build_snapshot(document), goals, NewTopic("new", 1, 1), Placement(kind="least_rate")).replicas == ((1,),)


def test_chance_comes_from_the_seed() -> None:
    snapshot = cluster([[4 * MB] * 20] + [[MB]] * 8)
    policy = "{preset: pulsar-threshold}"
    plans = {plan(snapshot, goals_with(policy), PlanOptions(seed=s)).plan_id for s in (1, 1, 2, 3)}
    assert 2 <= len(plans) <= 3


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("{preset: danube}", "expected preset to be one of danube-conservative"),
        ("{placement: {kind: least}}", "expected amount beside placement"),
        ("{amount: {kind: one}, placement: {kind: paired}}", "expected a detector that pairs brokers"),
        ("{amount: {kind: to_target_counts}, placement: {kind: least}}", "expected placement leader_deficit or none"),
        ("{amount: {kind: to_target_counts}, unit: topic}", "expected unit partition"),
        ("{amount: {kind: one}, split: {}}", "split is of groups: expected unit group beside it, found partition"),
        ("{amount: {kind: one}, unit: group, split: {positions: [ff]}}", "expected positions with algorithm specified_positions_divide"),
        ("{amount: {kind: one}, tolerance: 0.1}", "tolerance goes with amount to_target_counts"),
        ("{amount: {kind: one}, placement: {kind: leest}}", "policy.placement.kind: expected"),
        ("{amount: {kind: one}, filters: {exclud: [a]}}", "did you mean 'exclude'?"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(policy: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        goals_with(policy)
    assert message in str(refused.value)


def test_a_plan_ends_as_soon_as_the_detector_is_content() -> None:
    """Operators pay for every move beyond the line that made the policy act."""
    snapshot = cluster([[5 * MB] * 20, [4 * MB] * 10, [4 * MB] * 10])
    made = plan(snapshot, goals_with("{detector: {kind: absolute, limit: 0.85}, amount: {kind: one}, order: heaviest, accept: detector}"))
    assert made.summary.replica_moves == 4
    assert loads_after(snapshot, made).max() == 80 * MB
    assert any("the detector is satisfied" in note for note in made.notes)


def test_a_broker_gives_the_whole_amount_even_if_the_detector_is_content_before() -> None:
    """Else `margin` would do nothing, and the broker would be over the line again at the next measurement."""
    snapshot = cluster([[5 * MB] * 18, [], []])
    relieved = plan(snapshot, goals_with("{preset: pulsar-overload, detector: {kind: absolute, limit: 0.87}}"))
    assert loads_after(snapshot, relieved)[0] == 80 * MB, "8 of the 90 MB/s, where one unit of 5 leads below the line"


def test_a_fraction_is_of_the_gap_to_the_idlest_where_the_detector_pairs_no_brokers() -> None:
    snapshot = cluster([[5 * MB] * 20, [5 * MB] * 10, [5 * MB] * 4])
    policy = "{amount: {kind: fraction, ratio: 0.5}, order: best_fit, accept: detector, guards: {cycles: 1}}"
    assert loads_after(snapshot, plan(snapshot, goals_with(policy)))[0] == 60 * MB


def test_a_guard_ends_a_plan_after_so_many_cycles_and_repairs_are_none() -> None:
    snapshot = cluster([[5 * MB] * 18, [5 * MB] * 2, [5 * MB] * 2, []])
    policy = "{preset: pulsar-transfer, detector: {kind: std, target: 0.05}, guards: {brokers_per_cycle: 1, cycles: %s}}"
    one, all_of = (plan(snapshot, goals_with(policy % cycles)) for cycles in (1, "null"))
    assert {c.replicas_after for c in one.proposals} == {(3,)}
    assert one.summary.replica_moves < all_of.summary.replica_moves
    assert any("guard cycles: 1, which is the limit of one plan" in note for note in one.notes)
    emptied = plan(snapshot, goals_with(policy % 1), PlanOptions(remove_brokers=(1,)))
    assert loads_after(snapshot, emptied, "replicas")[1] == 0
    assert {c.replicas_before for c in emptied.proposals} == {(0,), (1,)}, "and one cycle for balance is left"


def test_what_a_policy_leaves_is_not_said_to_be_impossible() -> None:
    """One move a plan leaves a broker above its limit that the search brings below it."""
    brokers = [{"id": b, "capacity": {"disk": 100.0}} for b in (1, 2)]
    partitions = [{"topic": "t", "partition": n, "replicas": [1], "leader": 1, "leader_load": {"disk": 10.0}} for n in range(10)]
    snapshot = build_snapshot({"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
                               "brokers": brokers, "partitions": partitions})  # fmt: skip
    text = "version: 1\ngoals: [{kind: capacity, resource: disk, limit: 0.8}]\npolicy: {amount: {kind: one}, guards: {moves: 1}}"
    made = plan(snapshot, parse_goals(text, "g"))
    (limit,) = made.goals
    assert (len(made.actions), limit.status) == (1, "violated")
    assert limit.explanation.endswith("the policy moves nothing more; a plan by the search may fix it")
    stays = next(n for n in range(10) if n not in {c.partition for c in made.proposals})
    told = explain_partition(snapshot, parse_goals(text, "g"), PlanOptions(), "t", stays)
    assert "but the policy moves nothing more; a plan by the search may make it" in told
    assert plan(snapshot, parse_goals(text.partition("policy")[0], "g")).goals[0].status == "satisfied"


def test_a_policy_never_claims_that_a_goal_is_infeasible() -> None:
    """It looks at some moves only; an operator would buy brokers for nothing."""
    snapshot = cluster([[90 * MB], [90 * MB]])
    text = "version: 1\ngoals:\n - {kind: capacity, resource: network_in, limit: 0.8}\n - {kind: usage_distribution, resource: replicas}\n"
    assert plan(snapshot, parse_goals(text, "g")).infeasible
    made = plan(snapshot, parse_goals(text + "policy: {amount: {kind: one}, accept: detector}\n", "g"))
    assert [g.status for g in made.goals] == ["violated", "satisfied"]
    assert any("not by the search" in note for note in made.notes)


@pytest.mark.parametrize("preset", ["wix-minimal", "danube-balanced"])
def test_moves_per_hour_bound_a_plan_too(preset: str) -> None:
    snapshot = cluster([[MB] * 20, [], []])
    made = plan(snapshot, goals_with(f"{{preset: {preset}, guards: {{moves_per_hour: 3}}}}"))
    assert made.summary.replica_moves == 3


def test_where_partitions_rest_that_is_the_reason_and_no_search_is_advised() -> None:
    snapshot = cluster([[8 * MB] * 9, [MB], [MB]])
    rows = zip(snapshot.partition_topic.tolist(), snapshot.partition_number.tolist(), strict=True)
    rests = tuple((snapshot.topics[t], n) for t, n in rows)
    made = plan(snapshot, goals_with("{preset: danube-balanced}"), PlanOptions(resting=rests))
    assert not made.actions
    why = next(b.why for b in made.brokers if b.id == 0)
    assert "the policy moves nothing more now: partitions are left alone that were moved lately" in str(why)
    assert "search" not in str(why)


def test_a_replica_that_is_passed_over_cycle_after_cycle_is_counted_once() -> None:
    """The dry run told 12,158 of a cluster with 3,240 replicas."""
    snapshot = cluster([[8 * MB] * 9 + [MB], [], []])
    policy = "{detector: {kind: cv, threshold: 0.02}, amount: {kind: one}, order: lightest, accept: score, filters: {exclude: [t0]}}"
    notes = plan(snapshot, goals_with(policy)).notes
    assert "policy: filter topics: excluded or frozen: 2 replicas passed over" in notes
    counts = [int(found[1]) for note in notes if (found := re.search(r": (\d+) replicas? passed over", note))]
    assert max(counts) <= snapshot.replica_count


def test_what_is_too_little_to_move_is_told_with_the_size_of_the_filter() -> None:
    policy = "{preset: pulsar-threshold, filters: {min_throughput: 200MB}}"
    notes = plan(cluster([[8 * MB] * 9, [MB], [MB]]), goals_with(policy)).notes
    assert "policy: filter min: less than 200 MB/s to move: 9 replicas passed over" in notes
