"""The oracle's scores against numbers worked out by hand; G2 to G4 are AutoMQ's own cases
(reference/automq.md, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.oracle.cluster import Cluster
from tests.oracle.goal_files import constraints_of, goals_of, size
from tests.oracle.judge import Judge, distribution_score, limit_score

MIB = 1024.0**2


def snapshot(
    brokers: Sequence[Mapping[str, Any]],
    partitions: Sequence[tuple[list[int], Mapping[str, float]]],
    **more: Any,
) -> dict[str, Any]:
    """Partitions t-0, t-1 …, each led by its first replica."""
    return {
        "version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": brokers,
        "partitions": [
            {"topic": "t", "partition": n, "replicas": replicas, "leader": replicas[0], "leader_load": load}
            for n, (replicas, load) in enumerate(partitions)
        ],
        **more,
    }  # fmt: skip


def judge_of(
    document: dict[str, Any], *goals: dict[str, Any], constraints: dict[str, Any] | None = None
) -> Judge:
    parsed = {"goals": list(goals), "constraints": constraints or {}}
    return Judge(Cluster(document, constraints_of(parsed), {}), goals_of(parsed))


def network_in(**more: Any) -> dict[str, Any]:
    return {"kind": "usage_distribution", "resource": "network_in", **more}


def moved(judge: Judge, key: tuple[str, int], replicas: list[int]) -> float:
    """The action score, in the judge's first goal, of putting a partition elsewhere; taken back at once."""
    goal, c = judge.goals[0], judge.cluster
    was = (c.replicas[key], c.leader[key])
    touched = [b for b in sorted({*was[0]} ^ {*replicas}) if c.brokers[b].state == "active"]
    before = {b: judge.score(goal, b) for b in touched}
    c.change(key, replicas, replicas[0])
    after = {b: judge.score(goal, b) for b in touched}
    c.change(key, *was)
    return judge.action_score(goal, before, after)


@pytest.fixture
def g2() -> Judge:
    """Brokers 0 to 3 at 600, 900, 0 and 500 MiB/s; broker 3 takes no part."""
    document = snapshot(
        [{"id": 0}, {"id": 1}, {"id": 2}, {"id": 3, "state": "excluded"}],
        [
            ([b], {"network_in": load * MIB})
            for b, load in ((0, 50), (1, 50), (3, 20), (0, 550), (1, 850), (3, 480))
        ],
    )
    return judge_of(document, network_in(bound=0.15, var="50MiB", tail="absolute"))


def test_g2_broker_scores(g2: Judge) -> None:
    assert g2.means["usage_distribution-network_in"] == {b: pytest.approx(500 * MIB) for b in (0, 1, 2)}
    scores = [g2.score(g2.goals[0], b) for b in (0, 1, 2)]
    assert scores == pytest.approx([0.55, 0.094141599183, 0.093095301752], abs=1e-12)


def test_g3_action_scores(g2: Judge) -> None:
    assert moved(g2, ("t", 0), [2]) == pytest.approx(0.500245555655, abs=1e-12)
    assert moved(g2, ("t", 1), [2]) == pytest.approx(0.500245555655, abs=1e-12)
    assert moved(g2, ("t", 0), [1]) == pytest.approx(0.499722406940, abs=1e-12)
    assert moved(g2, ("t", 0), [3]) == pytest.approx(0.725, abs=1e-12)
    assert moved(g2, ("t", 2), [0]) == pytest.approx(0.32, abs=1e-12)


def test_g4_action_scores() -> None:
    document = snapshot(
        [{"id": b} for b in range(3)], [([b], {"network_in": 40 * MIB}) for b in (0, 1, 1, 2, 2, 2)]
    )
    judge = judge_of(document, network_in(bound=0.2, var="100MiB", tail="absolute"))
    assert [judge.score(judge.goals[0], b) for b in range(3)] == pytest.approx([0.784, 1.0, 0.784])
    wanted = {(0, 1): 0.320, (0, 2): 0.320, (2, 0): 0.5, (2, 2): 0.320, (4, 0): 0.608, (4, 1): 0.5}
    assert {k: round(moved(judge, ("t", k[0]), [k[1]]), 9) for k in wanted} == wanted


@pytest.mark.parametrize(
    ("load", "score"),
    [(100, 1.0), (110, 1.0), (90, 1.0), (135, 0.55), (65, 0.55), (160, 0.1), (40, 0.1),
     (190, 0.1 * 1.791759469228055 / 2.1972245773362196), (0, 0.1 * 1.791759469228055 / 2.302585092994046)],
)  # fmt: skip
def test_the_curve_of_a_band_of_ten_percent(load: float, score: float) -> None:
    goal = goals_of({"goals": [network_in()]})[0]
    assert distribution_score(load, 100, goal) == pytest.approx(score, abs=1e-12)


def test_small_loads_are_fine_only_when_the_mean_is_small_too() -> None:
    goal = goals_of({"goals": [network_in(min_load="1MiB")]})[0]
    assert distribution_score(0, MIB - 1, goal) == 1.0
    assert distribution_score(0, MIB, goal) < 0.1
    assert distribution_score(MIB, MIB / 2, goal) < 0.1
    assert distribution_score(5, 0, goal) == 1.0


def test_limits_fall_with_the_share_above_them() -> None:
    assert [limit_score(80, 80), limit_score(120, 80), limit_score(160, 80)] == pytest.approx([1, 2 / 3, 0.5])
    assert limit_score(3, 0) == 0.25


def test_sizes() -> None:
    assert [size("1MiB"), size("500MB"), size("10 GiB"), size(7), size("1.5kB")] == [
        MIB,
        5e8,
        10 * 2**30,
        7,
        1500,
    ]


def test_means_follow_capacity_only_where_all_have_one_and_they_differ() -> None:
    loads = [([1], {"disk": 60.0}), ([2], {"disk": 30.0})]
    disk = {"kind": "usage_distribution", "resource": "disk"}

    def means(*capacity: float | None) -> dict[int, float]:
        brokers = [
            {"id": i + 1, "capacity": {} if c is None else {"disk": c}} for i, c in enumerate(capacity)
        ]
        return judge_of(snapshot(brokers, loads), disk).means["usage_distribution-disk"]

    assert means(1, 2) == pytest.approx({1: 30, 2: 60})
    assert means(1, 1) == pytest.approx({1: 45, 2: 45})
    assert means(1, None) == pytest.approx({1: 45, 2: 45})


def test_load_of_dead_brokers_is_shared_and_of_excluded_ones_is_not() -> None:
    loads = [([b], {"network_in": 10.0}) for b in (1, 2, 3, 4, 4)]
    brokers: list[dict[str, Any]] = [
        {"id": 1},
        {"id": 2},
        {"id": 3, "state": "dead"},
        {"id": 4, "state": "excluded"},
    ]
    means = judge_of(snapshot(brokers, loads), network_in()).means["usage_distribution-network_in"]
    assert means == pytest.approx({1: 15, 2: 15})


def test_a_partition_that_no_one_can_lead_counts_followers_only() -> None:
    document = snapshot(
        [{"id": 1}, {"id": 2, "state": "dead"}, {"id": 3, "state": "dead"}],
        [([1, 2], {"network_out": 8.0}), ([2, 3], {"network_out": 100.0})],
    )
    for entry in document["partitions"]:
        entry["leader"] = None
    goal = {"kind": "usage_distribution", "resource": "network_out"}
    assert judge_of(document, goal).means["usage_distribution-network_out"] == {1: 8.0}


def test_mean_per_rack_only_where_the_rack_rule_forces_it() -> None:
    brokers = [{"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}, {"id": 3, "rack": "b"}]
    loads = [
        ([1, 2], {"network_in": 10.0, "network_out": 10.0}),
        ([3, 1], {"network_in": 20.0, "network_out": 1.0}),
    ]
    goals = [network_in(name="in"), {"kind": "usage_distribution", "resource": "network_out", "name": "out"}]
    forced = judge_of(snapshot(brokers, loads), {"kind": "rack_aware"}, *goals)
    assert forced.means["in"] == pytest.approx({1: 30, 2: 15, 3: 15})
    assert forced.means["out"] == pytest.approx({1: 11 / 3, 2: 11 / 3, 3: 11 / 3})
    free = judge_of(snapshot(brokers, loads), {"kind": "rack_aware", "hard": False}, *goals)
    assert free.means["in"] == pytest.approx({1: 20, 2: 20, 3: 20})
    rackless = judge_of(snapshot([*brokers[:2], {"id": 3}], loads), {"kind": "rack_aware"}, *goals)
    assert rackless.means["in"] == pytest.approx({1: 20, 2: 20, 3: 20})


def test_replicas_in_overfull_racks() -> None:
    brokers: list[dict[str, Any]] = [
        {"id": 1, "rack": "a"},
        {"id": 2, "rack": "a"},
        {"id": 3, "rack": "b"},
        {"id": 4},
    ]
    judge = judge_of(
        snapshot(brokers, [([1, 2, 3], {}), ([1, 3, 4], {}), ([2, 1], {})]), {"kind": "rack_aware"}
    )
    assert judge.racks == 3
    assert [judge.rack_excess(("t", n)) for n in range(3)] == [1, 0, 1]
    assert [judge.score(judge.goals[0], b) for b in (1, 2, 3, 4)] == pytest.approx([1 / 3, 1 / 3, 1, 1])


def test_units_of_topics_outside_their_band() -> None:
    brokers = [{"id": 1}, {"id": 2}, {"id": 3}]
    judge = judge_of(
        snapshot(brokers, [([1], {})] * 5 + [([2], {})]),
        {"kind": "topic_distribution", "resource": "replicas"},
    )
    # 6 replicas on 3 brokers: 1 to 3 each.
    assert [judge.score(judge.goals[0], b) for b in (1, 2, 3)] == pytest.approx([1 / 3, 1, 1 / 2])


def test_groups_each_have_their_say() -> None:
    judge = judge_of(
        snapshot([{"id": 1}], [([1], {"network_in": 1.0})]),
        network_in(name="a", weight=3.0, group="x"), network_in(name="b", group="x"), network_in(name="c"),
        {"kind": "usage_distribution", "resource": "replicas", "name": "hard", "hard": True},
        {"kind": "usage_distribution", "resource": "cpu", "name": "unknown"},
    )  # fmt: skip
    assert [g["name"] for g in judge.skipped] == ["unknown"]
    score, groups = judge.combined({"a": 0.6, "b": 0.4, "c": 0.5, "hard": 0.0})
    assert [score, *sorted(groups)] == pytest.approx([0.54, 0.5, 0.55])
