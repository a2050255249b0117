"""A slow broker gets no replicas and gives up leadership, and the reason is shown; afterwards it takes part again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assembled.service.beside import Service, World, simulated_executor
from trimtab.http.glance import glance
from trimtab.simulator.spec import TopicPartition

GOALS = """
version: 1
goals:
  - {kind: usage_distribution, resource: network_in}
policy:
  slow_brokers: {hits: 2, hold: 120s}
"""
ALL = range(12)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def leads(world: World, broker: int) -> int:
    return sum(world.cluster.leader(TopicPartition("orders", n)) == broker for n in ALL)


def hosts(world: World, broker: int) -> int:
    return sum(broker in world.cluster.replicas(TopicPartition("orders", n)) for n in ALL)


def make_slow(world: World, broker: int, ms: float | None) -> None:
    for b in world.cluster.broker_ids:
        world.cluster.faults.latencies[b] = {"produce_latency_ms": 12.0}
    if ms is not None:
        world.cluster.faults.latencies[broker] = {"produce_latency_ms": ms}


def test_a_slow_broker_gives_up_its_leaderships_and_gets_no_replicas_until_it_is_well(world: World) -> None:
    make_slow(world, 3, 4_000.0)
    service = Service(world, goals=GOALS, mode="auto", executor=simulated_executor(world))
    state = service.run(100)
    assert hosts(world, 3) == 0, "without the slow broker the other two are level"
    assert [b.id for b in state.brokers if b.slow] == [3]
    assert "produce requests take 4 s there" in str([b.slow for b in state.brokers])
    make_slow(world, 3, None)
    service.run(100)
    assert hosts(world, 3) == 0, "it is held for a while"
    service.run(200)
    assert hosts(world, 3) == 8
    make_slow(world, 3, 4_000.0)
    assert leads(world, 3) > 0
    service.run(60)
    assert leads(world, 3) == 0
    assert hosts(world, 3) == 8, "it is not evacuated"
    reasons = [r for (r,) in service.rows("SELECT reason FROM decision WHERE plan_id IS NOT NULL ORDER BY id")]
    assert "would leave slow brokers, and no byte is copied." in reasons[-1]
    assert "Broker 3 is slow and gets no replicas: produce requests take 4 s there" in reasons[-1]
    plans = [p for (p,) in service.rows("SELECT plan FROM decision WHERE plan_id IS NOT NULL ORDER BY id")]
    assert plans
    service.stop()


def test_leaderships_stay_where_the_policy_says_so(world: World) -> None:
    service = Service(world, goals=GOALS.replace("hits: 2", "hits: 2, leaders: false"), mode="auto", executor=simulated_executor(world))
    service.run(120)
    make_slow(world, 1, 4_000.0)
    before = leads(world, 1)
    assert before > 0
    service.run(120)
    assert leads(world, 1) == before
    assert any(b.slow for b in service.balancer.state().brokers)
    service.stop()


def test_an_excluded_broker_keeps_its_leaderships_slow_or_not(world: World) -> None:
    make_slow(world, 1, 4_000.0)
    excluded = GOALS.replace("policy:", "constraints: {exclude_brokers: [1]}\npolicy:")
    service = Service(world, goals=excluded, mode="auto", executor=simulated_executor(world))
    before = leads(world, 1)
    assert before > 0
    state = service.run(100)
    assert leads(world, 1) == before
    assert not any(b.slow for b in state.brokers)
    service.stop()


def test_a_dry_run_says_what_would_leave(world: World) -> None:
    make_slow(world, 1, 4_000.0)
    service = Service(world, goals=GOALS)
    state = service.run(100)
    assert state.plan is not None
    assert state.plan.demotes
    assert "a plan of 6 leadership changes would take leaderships off slow brokers, which copies nothing" in glance(state).sentence
    why = "produce requests take 4 s there (99th percentile of its own part); the limit is 1 s"
    assert glance(state).facts == (f"Broker 1 is slow and gets no replicas: {why}.",)
    service.stop()
