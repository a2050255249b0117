"""Throttles name exactly the replicas that move, and leave everything as it was, whatever others did meanwhile."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.execution.port import Resource
from trimtab.execution.state import Partition, Task
from trimtab.execution.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Setting,
    hours,
    joined,
    settings,
    to_restore,
    to_set,
)
from trimtab.execution.throttling import missing, needed, restore, stand
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import BrokerSpec, TopicSpec
from trimtab.simulator.traffic import Traffic

TOPIC = Resource("topic", "t")
TASKS = [
    Task(Partition("t", 0), (1, 2), (3, 2), 1, 3, size=100.0),
    Task(Partition("t", 1), (1, 2), (2, 1), 1, 2, size=100.0),  # copies nothing
]


def test_exactly_what_copies_is_named() -> None:
    made = to_set(settings(TASKS, 500, {}))
    assert made[TOPIC] == {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"}
    assert {r.name for r in made if r.kind == "broker"} == {"1", "2", "3"}
    assert made[Resource("broker", "3")] == {LEADER_RATE: "500", FOLLOWER_RATE: "500"}


def test_what_stood_there_is_kept_and_comes_back() -> None:
    found = {TOPIC: {LEADER_REPLICAS: "7:9", FOLLOWER_REPLICAS: "*"}, Resource("broker", "1"): {LEADER_RATE: "9"}}
    made = settings(TASKS, 500, found)
    assert to_set(made)[TOPIC] == {LEADER_REPLICAS: "7:9,0:1,0:2"}, "a list of all replicas stays"
    stands = {r: {k: v for k, v in of.items() if v is not None} for r, of in to_set(made).items()}
    back = to_restore(made, stands)
    assert back[TOPIC] == {LEADER_REPLICAS: "7:9"}
    assert back[Resource("broker", "1")] == {LEADER_RATE: "9", FOLLOWER_RATE: None}


@pytest.mark.parametrize(
    ("now", "wanted"),
    [("0:1,0:2,5:5", "5:5"), ("5:5", None), ("*", None), (None, None)],
)
def test_what_another_tool_set_meanwhile_stays_less_what_is_ours(now: str | None, wanted: str | None) -> None:
    own = [Setting(TOPIC, LEADER_REPLICAS, None, "0:1,0:2")]
    changes = to_restore(own, {TOPIC: {} if now is None else {LEADER_REPLICAS: now}})
    assert changes == ({} if wanted is None else {TOPIC: {LEADER_REPLICAS: wanted}})


def test_a_rate_that_another_tool_set_stays_and_each_of_ours_goes() -> None:
    broker = Resource("broker", "1")
    first, second = Setting(broker, LEADER_RATE, None, "500"), Setting(broker, LEADER_RATE, None, "900")
    both = joined(first, second)
    assert to_set([both]) == {broker: {LEADER_RATE: "900"}}
    for standing, changes in (("500", {broker: {LEADER_RATE: None}}), ("900", {broker: {LEADER_RATE: None}}), ("7", {})):
        assert to_restore([both], {broker: {LEADER_RATE: standing}}) == changes


def test_hours_are_of_the_busier_way_of_each_broker() -> None:
    tasks = [Task(Partition("t", n), (1, 2), (3, 2), 1, 3, size=3600.0) for n in range(4)]
    assert hours(tasks, 1.0) == {1: 4.0, 3: 4.0}


def test_of_a_broker_that_is_down_nothing_is_assumed() -> None:
    """What stands there is read once it is back, and comes back afterwards."""
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0))
    cluster.create_topic(TopicSpec("t", ((1, 2),) * 2, np.zeros(2), 1.0, np.full(2, 1e6)))
    port, broker = SimulatedPort(cluster), Resource("broker", "2")
    port.set_configs({broker: {LEADER_RATE: "77"}})
    cluster.faults.kill(2)
    found, wanted = needed(port, TASKS, 500, [])
    assert broker not in {s.resource for s in wanted}
    assert stand(port, missing(wanted, found)) == ""
    cluster.faults.restart(2)
    found, wanted = needed(port, TASKS, 500, wanted)
    assert stand(port, missing(wanted, found)) == ""
    assert cluster.configs[broker][LEADER_RATE] == "500"
    assert restore(port, wanted, port.look(())) == []
    assert cluster.configs == {broker: {LEADER_RATE: "77"}}
