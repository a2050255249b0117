"""What every port of executions must do, whatever cluster stands behind it: one set of checks for the simulated and the real one.

A check gets a port and a topic of two partitions on brokers 1, 3 and 4, of which broker 2 has no replica.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.execution.port import ClusterPort, Resource
from trimtab.execution.state import Partition
from trimtab.execution.throttle import FOLLOWER_RATE, FOLLOWER_REPLICAS, KEYS

BEFORE, AFTER = (1, 3, 4), (2, 3, 4)
Settle = Callable[[Callable[[], bool]], bool]
"""Lets time pass until something is true; whether it became true."""


def looks(port: ClusterPort, topic: str, settle: Settle) -> None:
    first = Partition(topic, 0)
    seen = port.look([first], {1, 2})
    assert seen.partitions[first].replicas == BEFORE
    assert not seen.partitions[first].reassigning
    assert set(seen.partitions[first].isr) == set(BEFORE)
    assert (seen.brokers[1].alive, seen.brokers[1].rack) == (True, "r1")
    assert (seen.brokers[2].free or 0.0) > 0.0
    assert seen.needed_in_sync(first) == 2
    assert port.sizes([first, Partition(topic, 99)]).keys() == {first}
    assert {n.topic for n in port.look((), topics=[topic, "no-such-topic"]).partitions} == {topic}
    assert port.look((), topics=()).partitions == {}


def moves_and_cancels(port: ClusterPort, topic: str, settle: Settle) -> None:
    """Also: what Kafka leaves after a cancel is in another order, and is mended by a step without a copy."""
    first = Partition(topic, 0)
    slow(port, topic, "0:2")
    answers = port.reassign({first: AFTER, Partition(topic, 99): AFTER})
    assert answers[first] is None
    assert "UNKNOWN_TOPIC_OR_PARTITION" in str(answers[Partition(topic, 99)])
    seen = port.look([first]).partitions[first]
    assert (seen.target, seen.adding, seen.removing) == (AFTER, (2,), (1,))
    assert port.reassign({first: AFTER}) == {first: None}  # asked for again
    assert port.reassign({first: None}) == {first: None}
    assert settle(lambda: not port.look([first]).partitions[first].reassigning)
    assert set(port.look([first]).partitions[first].replicas) == set(BEFORE)
    refused = port.reassign({first: None})[first]
    assert refused is not None
    assert refused.code == "NO_REASSIGNMENT_IN_PROGRESS"
    port.reassign({first: BEFORE})
    assert settle(lambda: port.look([first]).partitions[first].replicas == BEFORE)
    fast(port, topic)


def completes_and_elects(port: ClusterPort, topic: str, settle: Settle) -> None:
    second = Partition(topic, 1)
    port.reassign({second: AFTER})
    assert settle(lambda: port.look([second]).partitions[second].replicas == AFTER)
    assert port.elect([second]) == {second: None}
    assert settle(lambda: port.look([second]).partitions[second].leader == 2)
    assert port.elect([second]) == {second: None}  # it leads already


def configures(port: ClusterPort, topic: str, settle: Settle) -> None:
    resources = [Resource("broker", "2"), Resource("topic", topic)]
    slow(port, topic, "1:2")
    set_now = {resources[0]: {FOLLOWER_RATE: "50000"}, resources[1]: {FOLLOWER_REPLICAS: "1:2"}}
    # A broker tells what it has applied, which may be a moment behind what the controller has written. Broker 77 is not there.
    assert settle(lambda: port.configs([*resources, Resource("broker", "77")], KEYS) == set_now)
    answers = port.set_configs({Resource("broker", "77"): {FOLLOWER_RATE: "1"}})
    assert answers[Resource("broker", "77")] is not None
    fast(port, topic)
    assert settle(lambda: not any(port.configs(resources, KEYS).values()))


def slow(port: ClusterPort, topic: str, replicas: str) -> None:
    changes: dict[Resource, dict[str, str | None]] = {
        Resource("broker", "2"): {FOLLOWER_RATE: "50000"}, Resource("topic", topic): {FOLLOWER_REPLICAS: replicas},
    }  # fmt: skip
    assert set(port.set_configs(changes).values()) == {None}


def fast(port: ClusterPort, topic: str) -> None:
    port.set_configs({Resource("broker", "2"): {FOLLOWER_RATE: None}, Resource("topic", topic): {FOLLOWER_REPLICAS: None}})


CHECKS = (looks, moves_and_cancels, completes_and_elects, configures)
