"""A service must act when its policy says so, not before and not later, and say why in words.

Ids such as DAN-I1 are the rows of docs/detectors.md: numbers published with the systems that these detectors come from.
"""

from __future__ import annotations

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from optimizer.detectors import detect
from optimizer.detectors.rules import outliers, variation
from optimizer.judgement import judge
from optimizer.planner import plan
from tests.unit.optimizer.looks import CPU, IN, REPLICAS, brokers, cluster, counts, goals, run, use

WIX_BEFORE = [
    6353, 6576, 6684, 6636, 6689, 6797, 6863, 6968, 7085, 7220, 6893, 6932, 6969, 7037, 6945, 6776, 6653, 6613, 6603, 6621,
    7286, 7334, 7341, 7285, 7265, 7231, 7142, 7085, 7019, 6947, 6880, 6893, 5706, 5382, 5446, 5408, 5281, 5089, 4821, 4823,
]  # fmt: skip


# --- cv (Danube) ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loads", "cv", "sample", "over", "under"),
    [
        pytest.param([45, 30, 25], 0.2550, 10.4083 / 33.3333, {0}, set(), id="DAN-I1"),
        pytest.param([5, 10, 20], 0.5345, 7.6376 / 11.6667, {2}, {0}, id="DAN-I2"),
        pytest.param([100, 100, 100, 0, 0], 0.8165, 54.7723 / 60, {0, 1, 2}, {3, 4}, id="DAN-I4"),
        pytest.param([6, 0, 6], 0.7071, 3.4641 / 4, {0, 2}, {1}, id="DAN-I6"),
        pytest.param([50, 50, 50, 10], 0.4330, 20 / 40, {0, 1, 2}, {3}, id="DAN-I7"),
        pytest.param([7], 0.0, 0.0, set(), set(), id="DAN-I12"),
        pytest.param([0, 0, 0], 0.0, 0.0, set(), set(), id="DAN-I13"),
    ],
)
def test_variation_and_outliers(loads: list[float], cv: float, sample: float, over: set[int], under: set[int]) -> None:
    values = np.array(loads, dtype=float)
    assert variation(values) == pytest.approx(cv, abs=5e-5)
    assert variation(values, population=False) == pytest.approx(sample, abs=5e-5)
    assert [set(x.tolist()) for x in outliers(values)] == [over, under]


@pytest.mark.parametrize(("pop", "fires"), [("true", False), ("false", True)])
def test_population_or_sample_deviation_decides_the_example(pop: str, fires: bool) -> None:
    """DAN-I1: 25.5 % or 31.2 %."""
    policy = goals(f"{{kind: cv, threshold: 0.3, pop: {pop}}}")
    assert detect(policy, cluster({"network_in": [45, 30, 25]}), policy).fired is fires


@pytest.mark.parametrize("detector", ["{kind: goal_band}", "{kind: cv, threshold: 0.3}"])
def test_what_a_look_judged_already_is_taken_as_it_is(detector: str) -> None:
    policy = goals(detector, IN, REPLICAS)
    snapshot = cluster({"network_in": [45, 30, 25]})
    assert detect(policy, snapshot, policy, None, judge(snapshot, policy)) == detect(policy, snapshot, policy)
    level = judge(cluster({"network_in": [30, 30, 30]}), policy)
    assert not detect(policy, snapshot, policy, None, level).fired


def test_cv_fires_at_its_threshold_already() -> None:
    policy = goals("{kind: cv, threshold: 0.5}")
    assert detect(policy, cluster({"network_in": [1, 3]}), policy).fired


@pytest.mark.parametrize(
    ("loaded", "fires"),
    [(6, (True, True, True)), (11, (False, True, True)), (25, (False, False, True)), (26, (False, False, False))],
)
def test_an_idle_newcomer_hides_in_a_large_cluster(loaded: int, fires: tuple[bool, ...]) -> None:
    """One empty broker beside k equal ones gives 1 / sqrt(k)."""
    snapshot = cluster({"network_in": [100.0] * loaded + [0.0]})
    for threshold, expected in zip((0.4, 0.3, 0.2), fires, strict=True):
        policy = goals(f"{{kind: cv, threshold: {threshold}}}")
        assert detect(policy, snapshot, policy).fired is expected


def test_sigma_k_sees_the_newcomer() -> None:
    policy = goals("{kind: cv, threshold: 0.4, sigma_k: 3}")
    found = detect(policy, cluster({"network_in": [100.0] * 26 + [0.0]}), policy)
    assert (found.fired, brokers(found)) == (True, {27})
    assert "Broker 27 is 100% below the mean in network_in" in found.sentence()


def test_a_floor_keeps_an_idle_cluster_quiet() -> None:
    for floor, fires in ((21, False), (20, True)):
        policy = goals(f"{{kind: cv, floor: {floor}}}")
        assert detect(policy, cluster({"network_in": [0, 40]}), policy).fired is fires


def test_hysteresis_goes_on_to_the_end() -> None:
    """DAN-F1: without it the sequence sticks at 4, 3, 5, one move from level."""
    steps = [[6, 0, 6], [5, 1, 6], [5, 2, 5], [4, 3, 5], [4, 4, 4], [4, 3, 5]]
    policy = goals("{kind: cv, threshold: 0.3, hysteresis: {start: 0.3, stop: 0.1}}", REPLICAS)
    found = run(policy, [counts(step, moment) for moment, step in enumerate(steps)])
    assert [f.fired for f in found] == [True, True, True, True, False, False]
    plain = goals("{kind: cv, threshold: 0.3}", REPLICAS)
    assert [f.fired for f in run(plain, [counts(step, m) for m, step in enumerate(steps)])] == [True, True, True, False, False, False]


# --- utilization (Pulsar) ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("percent", "fires"), [(99.9, True), (85.0, True), (84.9, False)])
def test_overload(percent: float, fires: bool) -> None:
    """PUL-O3 and the line itself."""
    policy = goals("{kind: absolute, limit: 0.85}", CPU)
    found = detect(policy, use(percent, 10.0), policy)
    assert (found.fired, brokers(found)) == (fires, {1} if fires else set())


def test_what_is_over_a_limit_reads_as_over_it() -> None:
    limit = goals("{kind: absolute, limit: 0.85}", CPU)
    assert detect(limit, use(85.04, 10.0), limit).sentence().startswith(
        "Broker 1 is at 85.04% of its capacity in cpu; the limit is 85.00%"
    )
    capacity = goals("{kind: goal_band}", {"kind": "capacity", "resource": "cpu", "limit": 0.85})
    assert "broker 1 has 85.04 cores of cpu, above its limit of 85 cores" in detect(capacity, use(85.04, 10.0), capacity).sentence().lower()
    band = goals("{kind: goal_band}", {**IN, "bound": 0.2})
    told = detect(band, cluster({"network_in": [1.2004e8, 0.7996e8]}), band).sentence()
    assert "20.04% above the mean in network_in; its target range ends at 20.00%" in told


def test_overload_needs_a_capacity_and_says_so() -> None:
    policy = goals("{kind: absolute}", IN)
    found = detect(policy, cluster({"network_in": [1e9, 1]}), policy)
    assert not found.fired
    assert found.sentence() == "Absolute has nothing to judge; it needs a capacity, on some active broker, for a resource of the goals."


def test_a_broker_without_capacity_does_not_hide_the_others() -> None:
    snapshot = cluster({"cpu": [90.0, 90.0]}, {"cpu": [100.0, 100.0]})
    snapshot.capacity["cpu"].flags.writeable = True
    snapshot.capacity["cpu"][1] = np.nan
    policy = goals("{kind: absolute}", CPU)
    assert brokers(detect(policy, snapshot, policy)) == {1}


def test_above_the_mean() -> None:
    """PUL-T1: 40, 10, 10 and a margin of 10."""
    policy = goals("{kind: above_mean, margin: 0.1}")
    found = detect(policy, cluster({"network_in": [40, 10, 10]}), policy)
    assert (found.fired, brokers(found)) == (True, {1})
    assert found.findings[0].value == pytest.approx(1.0)
    both = goals("{kind: above_mean, margin: 0.1, lower_boundary: true}")
    assert brokers(detect(both, cluster({"network_in": [40, 10, 10]}), both)) == {1, 2, 3}


def test_at_the_margin_is_above() -> None:
    policy = goals("{kind: above_mean, margin: 0.1}")
    assert brokers(detect(policy, cluster({"network_in": [110, 95, 95]}), policy)) == {1}


def test_above_the_mean_compares_shares_of_capacity() -> None:
    policy = goals("{kind: above_mean, margin: 0.1}")
    even = cluster({"network_in": [30, 10, 10]}, {"network_in": [300, 100, 100]})
    assert not detect(policy, even, policy).fired


@pytest.mark.parametrize(
    ("loads", "fires", "subject"),
    [
        pytest.param({"produce_rate": [50e3, 30e3]}, True, "request rate", id="PUL-U4"),
        pytest.param({"produce_rate": [45e3, 30e3]}, False, None, id="50 percent is not above 50"),
        pytest.param({"network_in": [450e6, 100e6]}, True, "throughput", id="PUL-U5"),
        pytest.param({"network_in": [400e6, 100e6]}, False, None, id="4 is not above 4"),
        pytest.param({"produce_rate": [50e3, 30e3], "network_in": [450e6, 100e6]}, True, "request rate", id="rate first"),
        pytest.param({"produce_rate": [30e3, 30e3], "network_in": [450e6, 100e6]}, True, "throughput", id="then throughput"),
        pytest.param({"network_in": [20 * 2**21, 0]}, True, "throughput", id="PUL-U1, against an empty broker"),
        pytest.param({"network_in": [3.0, 0]}, False, None, id="a minimum of nothing counts as 1"),
        pytest.param({"network_in": [0.0, 0]}, False, None, id="nothing at all"),
    ],
)
def test_uniform(loads: dict[str, list[float]], fires: bool, subject: str | None) -> None:
    policy = goals("{kind: minmax}")
    found = detect(policy, cluster(loads), policy)
    assert found.fired is fires
    assert [f.subject for f in found.findings] == ([subject] if subject else [])


@pytest.mark.parametrize(
    ("loads", "std", "fires", "why"),
    [
        pytest.param([2, 4, 6, 80, 90], 0.3982762860, True, {"utilization", "overloaded", "underloaded"}, id="PUL base"),
        pytest.param([2, 4, 6, 55, 65], 0.2764489, True, {"utilization", "underloaded"}, id="PUL-X3"),
        pytest.param([2, 3, 6, 55, 65], 0.2780935, True, {"utilization", "underloaded"}, id="PUL-X5"),
        pytest.param([10, 20, 30], 0.0816497, False, set(), id="PUL-X12"),
    ],
)
def test_transfer(loads: list[float], std: float, fires: bool, why: set[str]) -> None:
    policy = goals("{kind: std, target: 0.25}", CPU)
    found = detect(policy, use(*loads, throughput=[50.0] * len(loads)), policy)
    assert found.fired is fires
    assert {f.subject for f in found.findings} == why
    values = [f.value for f in (*found.findings, found.nearest) if f is not None and f.subject == "utilization"]
    assert not values or values == pytest.approx([std], abs=5e-8)


def test_transfer_sees_an_idle_broker_by_its_place_and_by_its_traffic() -> None:
    """PUL-X5: 3 % is below 26.2 % x 0.125; PUL-X4: 4 % is not, but 10 bytes/s beside the busiest broker's are next to nothing."""
    policy = goals("{kind: std, target: 0.25}", CPU)
    idle = detect(policy, use(2, 3, 6, 55, 65, throughput=[50.0] * 5), policy)
    assert {f.broker for f in idle.findings if f.subject == "underloaded"} == {1, 2}
    quiet = detect(policy, use(2, 4, 6, 55, 65, throughput=[3e6, 10.0, 6e6, 8e6, 9e6]), policy)
    assert {f.broker for f in quiet.findings if f.subject == "without traffic"} == {2}


def test_one_extreme_broker_in_a_large_cluster_is_seen_only_as_an_outlier() -> None:
    """PUL-X19, X20: the deviation is far below its target."""
    snapshot = use(*[20.0] * 99, 100.0)
    with_outliers, without = goals("{kind: std}", CPU), goals("{kind: std, outliers: false}", CPU)
    found = detect(with_outliers, snapshot, with_outliers)
    assert (found.fired, brokers(found)) == (True, {100})
    assert not detect(without, snapshot, without).fired


def test_transfer_acts_on_the_fourth_check_and_counts_again_after_acting() -> None:
    policy = goals("{kind: std, persist: {hits_low: 4}}", CPU)
    found = run(policy, [use(2, 4, 6, 80, 90, moment=m) for m in range(4)])
    assert [f.fired for f in found] == [False, False, False, True]
    after = run(policy, [use(2, 4, 6, 80, 90, moment=10 + m) for m in range(4)], found[-1].memory.acted())
    assert [f.fired for f in after] == [False, False, False, True]


def test_pairs() -> None:
    """PUL-A5: 20 with 80, 30 with 70, both high hits; 52 alone."""
    policy = goals("{kind: pairs, persist: {hits_low: 8, hits_high: 2}}", CPU)
    first, second = run(policy, [use(20, 30, 52, 70, 80, moment=m) for m in range(2)])
    assert (first.fired, second.fired) == (False, True)
    assert {(f.broker, round(f.value)) for f in second.findings} == {(1, 60), (5, 60), (2, 40), (4, 40)}


def test_pairs_count_low_hits_and_jitter_clears_them() -> None:
    """PUL-A4: 20 points seven times, 10 once, 20 eight times: only the 16th check acts."""
    gaps = [20] * 7 + [10] + [20] * 8
    policy = goals("{kind: pairs, persist: {hits_low: 8, hits_high: 2}}", CPU)
    found = run(policy, [use(40, 40 + gap, moment=m) for m, gap in enumerate(gaps)])
    assert [m for m, f in enumerate(found, 1) if f.fired] == [16]
    lenient = goals("{kind: pairs, persist: {hits_low: 8, hits_high: 2, clear_on_miss: false}}", CPU)
    found = run(lenient, [use(40, 40 + gap, moment=m) for m, gap in enumerate(gaps)])
    assert [m for m, f in enumerate(found, 1) if f.fired] == list(range(9, 17))


def test_a_low_hit_between_two_high_ones_is_a_miss_of_the_high_line() -> None:
    policy = goals("{kind: pairs, persist: {hits_low: 8, hits_high: 2}}", CPU)
    found = run(policy, [use(20, 20 + gap, moment=m) for m, gap in enumerate([50, 20, 50, 50])])
    assert [f.fired for f in found] == [False, False, False, True]


# --- counts (Wix) -----------------------------------------------------------------------------------------------------


def test_the_published_counts() -> None:
    """Half of the mean, the article's own default, flags none of the brokers it means to fill; 0.9 flags exactly those."""
    snapshot = counts(WIX_BEFORE)
    half, nine = goals("{kind: count_spread, ratio_of_mean: 0.5}"), goals("{kind: count_spread, ratio_of_mean: 0.9}")
    assert not detect(half, snapshot, half).fired
    assert brokers(detect(nine, snapshot, nine)) == set(range(32, 40))


@pytest.mark.parametrize(("numbers", "fires"), [([10, 10, 10, 9], False), ([4, 4, 4, 5], False), ([4, 4, 6], True)])
def test_a_spread_of_one_is_as_good_as_it_gets(numbers: list[int], fires: bool) -> None:
    """WIX-N6."""
    policy = goals("{kind: count_spread}")
    assert detect(policy, counts(numbers), policy).fired is fires


# --- goals ------------------------------------------------------------------------------------------------------------


def test_goal_band_fires_exactly_where_a_plan_sees_a_violation() -> None:
    for loads in ([110, 95, 95], [111, 95, 94], [10, 10, 10]):
        policy = goals("{kind: goal_band}")
        snapshot = cluster({"network_in": loads})
        before = plan(snapshot, policy).goals[0].before
        assert before is not None
        assert len(detect(policy, snapshot, policy).findings) == before.violations


def test_goal_band_judges_every_kind_of_goal() -> None:
    policy = goals(
        "{kind: goal_band}", {"kind": "rack_aware"}, {"kind": "capacity", "resource": "disk", "limit": 0.5},
        {"kind": "count_limit", "resource": "replicas", "max": 3}, {"kind": "topic_distribution", "resource": "replicas"},
        {"kind": "capacity", "resource": "cpu", "limit": 0.5},
    )  # fmt: skip
    snapshot = build_snapshot(
        {"version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
         "brokers": [{"id": b, "rack": "a" if b < 3 else "b", "capacity": {"disk": 100}} for b in (1, 2, 3)],
         "partitions": [
             {"topic": "t", "partition": n, "replicas": [1, 2], "leader": 1, "leader_load": {"disk": 20.0}} for n in range(4)
         ]}, "cluster.json",
    )  # fmt: skip
    found = detect(policy, snapshot, policy)
    assert {f.text for f in found.findings} == {
        "broker 1 holds 4 replicas in over-full racks", "broker 2 holds 4 replicas in over-full racks",
        "broker 1 has 80 B of disk, above its limit of 50 B", "broker 2 has 80 B of disk, above its limit of 50 B",
        "broker 1 has 4 replicas, above its limit of 3", "broker 2 has 4 replicas, above its limit of 3",
        "broker 1 holds 1 replica outside its topics' target ranges", "broker 2 holds 1 replica outside its topics' target ranges",
        "broker 3 holds 2 replicas outside its topics' target ranges",
    }  # fmt: skip


def test_goal_band_with_a_deviation_of_its_own_and_a_floor() -> None:
    snapshot = cluster({"network_in": [130, 85, 85]})
    for more, found in ((", deviation: 0.3", set()), (", deviation: 0.29", {1}), (", floor: 200", set()), (", floor: 120", {1})):
        policy = goals("{kind: goal_band" + more + "}", {**IN, "bound": 0.2})
        assert brokers(detect(policy, snapshot, policy)) == found


def test_a_floor_in_bytes_says_nothing_of_counts() -> None:
    policy = goals("{kind: goal_band, floor: 1000000}", REPLICAS)
    assert detect(policy, counts([9, 1]), policy).fired
