"""What detectors remember from check to check: hits in a row, hysteresis, averages; and the words they find for it."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from optimizer.detectors import agrees, detect, policy_of
from optimizer.detectors.averages import contents
from tests.unit.optimizer.looks import CPU, IN, REPLICAS, brokers, cluster, counts, goals, run


def test_words_for_people() -> None:
    policy = goals("{kind: above_mean, margin: 0.1, persist: {hits_low: 3}}")
    found = run(policy, [cluster({"network_in": [134, 83, 83]}, moment=m) for m in range(3)])
    assert found[0].sentence() == "Not yet: Broker 1 is 34% above the mean in network_in for 1 check, 3 needed; the margin is 10%."
    assert found[2].sentence() == "Broker 1 is 34% above the mean in network_in for 3 checks in a row; the margin is 10%."
    band = goals("{kind: goal_band, persist: {hits_low: 2}}")
    found = run(band, [cluster({"network_in": [134, 104, 62]}, moment=m) for m in range(2)])
    assert found[1].sentence(most=1) == (
        "Broker 3 is 38% below the mean in network_in for 2 checks in a row; its target range ends at 10%. 1 more."
    )


def test_a_hysteresis_is_told_in_place_of_the_line_that_it_replaces() -> None:
    policy = goals("{kind: above_mean, margin: 0.2, hysteresis: {start: 0.3, stop: 0.1}}")
    loads = ([14.0, 6.0], [11.5, 8.5], [10.5, 9.5])
    found = run(policy, [cluster({"network_in": of}, moment=m) for m, of in enumerate(loads)])
    tail = "the hysteresis starts at 30% and stops at 10%."
    assert [f.fired for f in found] == [True, True, False]
    assert found[0].sentence() == f"Broker 1 is 40% above the mean in network_in; {tail}"
    assert found[1].sentence() == f"Broker 1 is 15% above the mean in network_in; {tail}"


def test_what_is_nearest_is_named_while_nothing_happens() -> None:
    policy = goals("{kind: goal_band}")
    found = detect(policy, cluster({"network_in": [108, 96, 96]}), policy)
    assert found.sentence() == (
        "Nothing is over a line; nearest: broker 1 is 8% above the mean in network_in; its target range ends at 10%."
    )
    assert found.severity == pytest.approx(0.8)


def test_one_check_without_it_starts_the_count_again_per_broker() -> None:
    policy = goals("{kind: above_mean, persist: {hits_low: 2}}")
    loads = [[150, 50, 100], [50, 150, 100], [150, 50, 100], [150, 50, 100]]
    found = run(policy, [cluster({"network_in": load}, moment=m) for m, load in enumerate(loads)])
    assert [f.fired for f in found] == [False, False, False, True]


def test_a_second_look_at_the_same_moment_is_no_second_check() -> None:
    policy = goals("{kind: above_mean, persist: {hits_low: 2}}")
    snapshot = cluster({"network_in": [150, 50]})
    first, second = run(policy, [snapshot, snapshot])
    assert (first.fired, second.fired) == (False, False)
    assert first.memory == second.memory


def test_a_start_counts_only_at_its_own_line_and_then_needs_no_more_checks() -> None:
    policy = goals("{kind: above_mean, persist: {hits_low: 2}, hysteresis: {start: 0.3, stop: 0.1}}")
    shares = [1.35, 1.2, 1.35, 1.35, 1.2, 1.1, 1.2]
    found = run(policy, [cluster({"network_in": [100 * s, 100 * (2 - s)]}, moment=m) for m, s in enumerate(shares)])
    assert [f.fired for f in found] == [False, False, False, True, True, False, False]


def test_acting_does_not_end_a_hysteresis() -> None:
    policy = goals("{kind: cv, hysteresis: {start: 0.3, stop: 0.1}}")
    first = detect(policy, cluster({"network_in": [4, 1]}), policy)
    assert detect(policy, cluster({"network_in": [6, 4]}, moment=1), policy, first.memory.acted()).fired


AVERAGED = "{kind: above_mean, margin: 0.2, history_weight: 0.5}"


def test_an_average_says_so_and_a_second_look_does_not_count_twice() -> None:
    busy, level = (cluster({"network_in": loads}, moment=m) for m, loads in enumerate(([9, 1], [5, 5])))
    first, second, look = run(goals(AVERAGED), [busy, level, level])
    assert [first.fired, second.fired] == [True, True]
    assert second.sentence() == "Broker 1 is 40% above the mean in network_in on average; the margin is 20%."
    assert (look.memory, look.sentence()) == (second.memory, second.sentence())


def test_brokers_whose_replicas_changed_start_again_and_others_keep_their_average() -> None:
    busy = cluster({"network_in": [9, 1, 8, 2]})
    level = cluster({"network_in": [5, 5, 5, 5]}, moment=1)
    replicas = level.replicas.copy()
    replicas[:2] = replicas[1::-1]  # brokers 1 and 2 swap their partitions
    found = run(goals(AVERAGED), [busy, level.with_placement(replicas, replicas[:, 0])])[-1]
    assert brokers(found) == {3}
    made = {a.key: a.load for a in found.memory.averages}
    assert made == pytest.approx({"0.5/1/network_in": 1.0, "0.5/2/network_in": 1.0, "0.5/3/network_in": 1.3, "0.5/4/network_in": 0.7})


def test_a_leadership_that_moved_starts_again_and_a_topic_elsewhere_does_not() -> None:
    def held(*led: tuple[str, list[int], int]) -> np.ndarray:
        partitions = [{"topic": topic, "partition": 0, "replicas": on, "leader": leader} for topic, on, leader in led]
        whole = {"version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
                 "brokers": [{"id": b} for b in (1, 2, 3)], "partitions": partitions}  # fmt: skip
        return contents(build_snapshot(whole, "cluster.json"))

    before = held(("t", [1, 2], 1), ("u", [3], 3))
    assert (before == held(("t", [1, 2], 2), ("u", [3], 3))).tolist() == [False, False, True]
    assert (before == held(("a", [2], 2), ("t", [1, 2], 1), ("u", [3], 3))).tolist() == [True, False, True]


def test_averages_stay_after_acting_and_go_with_the_detector() -> None:
    found = run(goals(AVERAGED), [cluster({"network_in": [9, 1]})])[-1]
    assert found.memory.acted().averages == found.memory.averages != ()
    assert run(goals(AVERAGED.replace("0.5", "0.75")), [cluster({"network_in": [5, 5]}, moment=1)], found.memory)[-1].fired is False


def test_a_detector_with_history_agrees_with_a_plan_that_levels() -> None:
    policy = goals(AVERAGED.replace("0.5", "0.9"), REPLICAS, accept="detector")
    busy = counts([4, 0])
    before = detect(policy, busy, policy)
    level = busy.with_placement(np.array([[0], [0], [1], [1]], np.int32), np.array([0, 0, 1, 1], np.int32))
    assert agrees(policy_of(policy), before, detect(policy, level, policy, before.memory))


def test_shares_of_the_busiest_are_no_history_of_utilization() -> None:
    """Or a cluster whose capacities become known would be balanced for a spread that it never had in this unit."""
    policy = goals("{kind: std, target: 0.1, history_weight: 0.9}", {"kind": "usage_distribution", "resource": "cpu"})
    loads = {"cpu": [90.0, 10.0, 50.0]}
    known = cluster(loads, {"cpu": [10_000.0] * 3}, moment=1)
    before, after = run(policy, [cluster(loads), known])
    (fresh,) = run(policy, [known])
    assert [before.fired, after.fired] == [True, False]
    assert after.severity == fresh.severity


def test_any_and_all() -> None:
    parts = "[{kind: cv, threshold: 0.3}, {kind: absolute, limit: 0.85}]"
    either, both = goals(f"{{any_of: {parts}}}", IN, CPU), goals(f"{{all_of: {parts}}}", IN, CPU)
    uneven = cluster({"network_in": [90, 10], "cpu": [50, 50]}, {"cpu": [100, 100]})
    full = cluster({"network_in": [90, 10], "cpu": [90, 90]}, {"cpu": [100, 100]})
    assert [detect(either, s, either).fired for s in (uneven, full)] == [True, True]
    assert [detect(both, s, both).fired for s in (uneven, full)] == [False, True]
    assert detect(both, uneven, both).sentence().startswith("Not yet: ")


def test_parts_of_one_kind_count_for_themselves() -> None:
    policy = goals("{all_of: [{kind: cv, persist: {hits_low: 2}}, {kind: cv, threshold: 0.2, persist: {hits_low: 3}}]}")
    found = run(policy, [cluster({"network_in": [9, 1]}, moment=m) for m in range(3)])
    assert [f.fired for f in found] == [False, False, True]


def test_another_detector_starts_with_an_empty_memory() -> None:
    old, new = goals("{kind: cv, persist: {hits_low: 2}}"), goals("{kind: cv, threshold: 0.2, persist: {hits_low: 2}}")
    memory = detect(old, cluster({"network_in": [9, 1]}), old).memory
    assert not detect(new, cluster({"network_in": [9, 1]}, moment=1), new, memory).fired


def test_memory_is_plain_data() -> None:
    policy = goals("{kind: above_mean, persist: {hits_low: 2}, hysteresis: {start: 0.3, stop: 0.1}}")
    found = run(policy, [cluster({"network_in": [150, 50]}, moment=m) for m in range(2)])
    document = json.loads(json.dumps(asdict(found[-1].memory)))
    assert document["counts"] == [{"key": "0/1/network_in", "low": 2, "high": 0}]
    assert document["started"] == ["0/1/network_in"]


def test_only_active_brokers_are_judged_and_those_that_leave_are_forgotten() -> None:
    policy = goals("{kind: above_mean, persist: {hits_low: 2}}")
    first = detect(policy, cluster({"network_in": [400, 100, 100]}), policy)
    second = detect(policy, cluster({"network_in": [400, 100, 100]}, moment=1, states={"b1": "draining"}), policy, first.memory)
    assert (second.fired, second.memory.counts) == (False, ())


@pytest.mark.parametrize(
    "kind",
    ["{kind: goal_band}", "{kind: cv, sigma_k: 2}", "{kind: absolute}", "{kind: above_mean, lower_boundary: true}",
     "{kind: minmax}", "{kind: std}", "{kind: pairs}", "{kind: count_spread}", "{kind: count_spread, ratio_of_mean: 0.9}"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("loads", "states"),
    [
        ([5.0], {}), ([0.0, 0.0, 0.0], {}), ([7.0, 7.0, 7.0], {}), ([9.0, 1.0], {"b1": "excluded"}),
        ([9.0, 1.0], {"b1": "dead", "b2": "dead"}),
    ],
)
def test_nothing_to_compare_is_no_reason_to_act(kind: str, loads: list[float], states: dict[str, str]) -> None:
    policy = goals(kind, IN, CPU, {"kind": "rack_aware"})
    found = detect(policy, cluster({"network_in": loads, "cpu": loads}, {"cpu": [100.0] * len(loads)}, states=states), policy)
    assert not found.fired
    assert found.findings == ()
    assert np.isfinite([found.severity, found.burden]).all()
    assert found.sentence()


def test_the_order_of_findings_is_by_severity_then_goals_then_brokers() -> None:
    policy = goals("{kind: goal_band}", IN, {"kind": "usage_distribution", "resource": "disk"})
    found = detect(policy, cluster({"network_in": [150, 50, 100], "disk": [50, 170, 80]}), policy)
    assert [(f.broker, f.subject) for f in found.findings] == [
        (2, "usage_distribution-disk"), (1, "usage_distribution-network_in"), (2, "usage_distribution-network_in"),
        (1, "usage_distribution-disk"), (3, "usage_distribution-disk"),
    ]  # fmt: skip
