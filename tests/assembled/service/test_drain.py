"""The life of a broker that is emptied: draining, drained, shut down, and used again. It is said, and a drained broker that is down is no
trouble of the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assembled.service.beside import GOALS, Service, World, said, simulated_executor
from trimtab.http.glance import GlanceView, glance
from trimtab.service.views import Refused
from trimtab.simulator.spec import TopicPartition

POLICY = GOALS + "policy: {preset: danube-balanced}\n"
CAN_GO = "Broker 3 is drained: it hosts no replica and can be shut down. It gets none before it is activated."


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def serving(world: World) -> Service:
    return Service(world, goals=POLICY, mode="auto", executor=simulated_executor(world))


def on(world: World, broker: int) -> int:
    return sum(broker in world.cluster.replicas(TopicPartition("orders", n)) for n in range(12))


def stands(service: Service) -> tuple[bool, GlanceView]:
    """Whether broker 3 is drained, and the first thing on the page."""
    state = service.balancer.state()
    return next(b.drained for b in state.brokers if b.id == 3), glance(state)


def drained(world: World) -> Service:
    service = serving(world)
    service.run(140)
    assert on(world, 3) > 0
    service.balancer.drain(3, True, "anna")
    service.turns("look")
    assert not stands(service)[0]
    service.run(120)
    assert on(world, 3) == 0
    return service


def test_a_drained_broker_is_said_to_be_so_gets_nothing_over_a_restart_and_is_used_again_once_activated(world: World) -> None:
    service = drained(world)
    found, seen = stands(service)
    assert (found, seen.tone, seen.facts) == (True, "good", (CAN_GO,))
    service.stop()
    again = serving(world)
    again.run(200)
    assert on(world, 3) == 0
    assert stands(again)[0]
    again.balancer.drain(3, False, "anna")
    again.run(60)
    assert on(world, 3) > 0
    found, seen = stands(again)
    assert (found, seen.facts) == (False, ())
    again.stop()


def test_the_last_active_broker_is_not_drained(world: World) -> None:
    service = serving(world)
    service.run(10)
    service.balancer.drain(3, True, "anna")
    service.balancer.drain(2, True, "anna")
    with pytest.raises(Refused, match="No other active broker would be left"):
        service.balancer.drain(1, True, "anna")
    service.balancer.drain(2, False, "anna")
    service.balancer.drain(1, True, "anna")
    service.stop()


def test_a_drained_broker_that_is_shut_down_is_no_trouble(world: World) -> None:
    service = drained(world)
    world.cluster.faults.kill(3)
    for seconds in (30, 120):  # down, and longer than a broker takes that restarts
        state = service.run(seconds)
        assert "Balance waits" not in said(state)
        assert [(b.id, b.life) for b in state.cluster.down] == [(3, "drained")]
        found, seen = stands(service)
        assert (found, seen.label, seen.tone) == (True, "Level", "good")
        assert seen.facts == ("Broker 3 is drained and down: unregister it, or start and activate it to use it again.",)
    service.balancer.drain(3, False, "anna")
    service.run(10)
    assert stands(service)[1].label == "Broker dead", "it is to be used, and is not there"
    service.stop()
