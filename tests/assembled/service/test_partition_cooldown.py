"""A partition that was moved is not moved again before its loads can be trusted: to and fro would cost bytes and level nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assembled.service.beside import GOALS, LEVEL, NODE, OTHER, Service, World, simulated_executor
from trimtab.execution.ledger import MemoryDocuments
from trimtab.simulator.collector import SimulatedReporter
from trimtab.simulator.spec import BrokerSpec, TopicPartition

MINUTES = "policy: {partition_cooldown: 10m}\n"
ALL = range(12)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def placed(world: World) -> dict[int, tuple[int, ...]]:
    return {n: world.cluster.replicas(TopicPartition("orders", n)) for n in ALL}


def moved(before: dict[int, tuple[int, ...]], after: dict[int, tuple[int, ...]]) -> set[int]:
    return {n for n in ALL if set(before[n]) != set(after[n])}


def on(world: World, broker: int) -> int:
    return sum(broker in hosts for hosts in placed(world).values())


def levelled(world: World, goals: str = GOALS + MINUTES) -> tuple[Service, set[int]]:
    """A service that has carried a plan out, and the partitions that it moved: all that are on broker 3 now."""
    before = placed(world)
    service = Service(world, goals=goals, mode="auto", executor=simulated_executor(world))
    service.run(90)
    done = moved(before, placed(world))
    assert len(done) == 8
    assert {n for n, hosts in placed(world).items() if 3 in hosts} == done
    return service, done


def grown(world: World) -> None:
    """An empty broker comes, to which each of the others should give two replicas."""
    world.cluster.add_broker(BrokerSpec(4))
    world.reporters[4] = SimulatedReporter(world.cluster, 4, world.topic)
    world.pass_time(5)


def test_what_was_moved_rests_over_a_restart_until_its_cooldown_is_over(world: World) -> None:
    service, rests = levelled(world)
    kept = service.rows("SELECT topic, partition FROM moved ORDER BY 2")
    assert kept == [("orders", n) for n in sorted(rests)]
    service.stop()
    grown(world)
    again = Service(world, mode="auto", executor=simulated_executor(world))
    before = placed(world)
    again.run(300)
    found = moved(before, placed(world))
    assert found, "the others are moved"
    assert not found & rests
    assert on(world, 3) == 8
    reasons = " ".join(reason for (reason,) in again.rows("SELECT reason FROM decision WHERE plan_id IS NOT NULL"))
    assert "Left alone: 8 partitions that were moved within the last 10 min (policy.partition_cooldown)." in reasons
    again.run(500)
    assert on(world, 3) < 8
    again.stop()


def test_nothing_rests_where_the_policy_says_so(world: World) -> None:
    service, _ = levelled(world, f"{GOALS}policy: {{partition_cooldown: 0}}\n")
    grown(world)
    service.run(200)
    assert on(world, 3) == 6
    service.stop()


def test_repairs_do_not_wait_for_a_cooldown(world: World) -> None:
    service, _ = levelled(world)
    grown(world)
    service.balancer.drain(3, True, "anna")
    service.run(200)
    assert on(world, 3) == 0
    service.stop()


def test_a_broken_hard_limit_is_repaired_with_partitions_that_rest(world: World) -> None:
    service, _ = levelled(world)
    grown(world)
    service.goals.write_text(f"{LEVEL}  - {{kind: count_limit, resource: replicas, max: 7}}\n{MINUTES}")
    service.balancer.reload_goals()
    service.run(120)
    assert max(on(world, broker) for broker in (1, 2, 3, 4)) <= 7
    service.stop()


def test_another_instance_that_takes_over_knows_it_from_the_clusters_record(world: World) -> None:
    record = MemoryDocuments()
    services = {
        node: Service(
            world, node=node, goals=GOALS + MINUTES, mode="auto", executor=simulated_executor(world, record, f"instance {node}"),
        )
        for node in (NODE, OTHER)
    }  # fmt: skip
    before = placed(world)
    for _ in range(18):
        world.pass_time(5)
        for service in services.values():
            service.turns()
    rests = moved(before, placed(world))
    assert len(rests) == 8
    world.elect(OTHER)
    grown(world)
    before = placed(world)
    for _ in range(40):
        world.pass_time(5)
        for service in services.values():
            service.turns()
    assert services[OTHER].rows("SELECT COUNT(*) FROM moved") > [(7,)]
    found = moved(before, placed(world))
    assert found
    assert not found & rests
    for service in services.values():
        service.stop()
