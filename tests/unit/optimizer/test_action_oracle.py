"""Every move and leadership change on small clusters, and pairs of them, judged by the planner and by the oracle alike.

The oracle (tests/oracle) is written from docs/contract.md, section 7 in plain Python. Where the two differ, an operator would be
shown scores that cannot be replayed, or a plan that its own definition refuses.
"""

from __future__ import annotations

import pytest

from tests.unit.optimizer.actions import Change, Document, Trial, partition, usage

RACK: Document = {"kind": "rack_aware", "name": "racks"}


def mixed() -> tuple[list[Document], list[Document]]:
    """Seven brokers in three racks and none, one each draining, dead and excluded; lists of one to three replicas."""
    brokers = [
        {"id": 1, "rack": "a", "capacity": {"disk": 400.0, "network_in": 100.0, "replicas": 3.0}},
        {"id": 2, "rack": "a", "capacity": {"disk": 900.0, "network_in": 200.0, "replicas": 3.0}},
        {"id": 3, "rack": "b", "capacity": {"network_in": 200.0, "replicas": 9.0}},
        {"id": 4, "capacity": {"disk": 300.0, "network_in": 100.0, "replicas": 6.0}},
        {"id": 5, "rack": "b", "state": "draining", "capacity": {"disk": 100.0}},
        {"id": 6, "rack": "c", "state": "dead"},
        {"id": 7, "rack": "a", "state": "excluded"},
    ]
    partitions = [
        partition([1, 2], topic="a", network_in=30.0, network_out=90.0, disk=70.0, cpu=2.0,
                  follower={"network_in": 20.0, "disk": 70.0, "cpu": 0.5}),
        partition([2, 5, 3], topic="a", network_in=11.0, network_out=7.0, disk=130.0),
        partition([4], None, topic="a", network_in=3.0, network_out=1.0, disk=20.0),
        partition([6, 1], topic="b", network_in=41.0, network_out=20.0, disk=90.0, cpu=1.0),
        partition([6, 4, 7], 4, topic="b", network_in=8.0, network_out=64.0, disk=10.0),
        partition([7, 3], topic="b", network_in=5.0, network_out=5.0, disk=220.0, cpu=0.25, follower={"disk": 220.0}),
        partition([3, 1], 1, topic="c", network_in=25.0, network_out=0.0, disk=33.0),
    ]  # fmt: skip
    return brokers, partitions


SOFT: list[Document] = [
    usage("network_in", weight=2.0, group="network"),
    usage("network_out", tail="absolute", var="2B", group="network", bound=0.2),
    usage("cpu", weight=0.5, min_load=0.4),
    usage("leaders", weight=3.0, bound=0.3),
    {"kind": "topic_distribution", "resource": "replicas", "name": "topics", "bound": 0.05, "weight": 1.5},
    {"kind": "topic_distribution", "resource": "leaders", "name": "topic-leaders", "bound": 0.3, "min_gap": 1},
    {"kind": "capacity", "resource": "disk", "limit": 0.5, "name": "disk", "hard": False, "weight": 0.7},
    {"kind": "count_limit", "resource": "leaders", "max": 2, "name": "few-leaders", "hard": False},
    {**RACK, "hard": False, "weight": 1.25},
]


HARD: list[Document] = [
    {"kind": "capacity", "resource": "disk", "limit": 0.5, "name": "disk"},
    {"kind": "count_limit", "resource": "leader_network_in", "max": 40.0, "name": "leading"},
    usage("potential_network_out", hard=True, bound=0.3, var=0.9),
    {"kind": "topic_distribution", "resource": "leaders", "name": "topic-leaders", "hard": True},
    RACK,
    usage("replicas", group="counts"),
    usage("leaders", group="leaders", weight=2.0),
]


def forced() -> tuple[list[Document], list[Document]]:
    """As many replicas as racks everywhere: means are the racks' own."""
    brokers = [{"id": b, "rack": "ab"[b % 2], "capacity": {"disk": 100.0 * b}} for b in range(1, 6)]
    partitions = [
        partition([1 + n % 5, 1 + (n + 1) % 5], disk=3.0 + n * n, network_in=7.0 * n, topic="xy"[n % 2])
        for n in range(9)
    ]
    return brokers, partitions


FORCED: list[Document] = [RACK, usage("disk"), usage("network_in", hard=True), usage("leaders")]


def assert_agreed(trial: Trial, *changes: Change) -> None:
    found, right = trial.judge(*changes), trial.expected(*changes)
    assert found.goals == pytest.approx(right.goals, abs=1e-9)
    assert found.score == pytest.approx(right.score, abs=1e-9)
    for name, brokers in right.before.items():
        assert found.before[name] == pytest.approx(brokers, abs=1e-9)
        assert found.after[name] == pytest.approx(right.after[name], abs=1e-9)
    assert (found.repairs, found.allowed, found.breaks, found.better) == (right.repairs, right.allowed, right.breaks, right.better)
    assert found.touches_low == right.touches_low
    assert found.gain == pytest.approx(right.gain, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("cluster", "goals", "every"),
    [(mixed(), SOFT, 5), (mixed(), HARD, 7), (forced(), FORCED, 11)],
    ids=["soft goals", "hard goals", "racks that force their share"],
)
def test_planner_and_oracle_agree_on_every_action(
    cluster: tuple[list[Document], list[Document]], goals: list[Document], every: int
) -> None:
    trial = Trial(*cluster, *goals)
    verdicts = set()
    for change in trial.moves():
        assert_agreed(trial, change)
        found = trial.judge(change)
        verdicts.add((found.allowed, found.better, bool(found.repairs)))
    for pair in trial.pairs(every):
        assert_agreed(trial, *pair)
    assert len(verdicts) > 2
