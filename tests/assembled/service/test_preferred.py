"""After a restart leaders go back to where they belong, without a byte, before a byte is planned; and never where it would disturb."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from goals.waiting import Wait
from optimizer.plan import Plan
from tests.assembled.service.beside import GOALS, LEVEL, Service, World, simulated_executor
from trimtab.http.glance import glance
from trimtab.service.health import BrokerHealth, ClusterHealth, Condition
from trimtab.service.preferred import LASTED_MS, MOST_TRIES, Restoring
from trimtab.service.unwell import Waiting
from trimtab.service.views import StateView
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

NOW = 1_790_000_000_000
AWAY = Condition(
    ClusterHealth(astray=(("orders", 0),), brokers=(BrokerHealth(1, "serving", None, 4, 0, 2, 1),)), since={"astray": NOW - LASTED_MS}
)
LEADERS, SETTLING, DOWN, QUIET = (Waiting(kind, kind) for kind in ("leaders", "settling", "down", "quiet"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def everywhere(folder: Path) -> World:
    """Every broker has a replica of every partition, so that none can be emptied."""
    cluster = SimulatedCluster([BrokerSpec(i) for i in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=5.0)
    assignment = tuple((1, 2, 3) if n % 2 else (2, 1, 3) for n in range(12))
    cluster.create_topic(TopicSpec("orders", assignment, np.full(12, MB), 1.0, np.full(12, 50 * MB), filled=1.0))
    return World(folder, cluster)


def restarted(world: World, service: Service, seconds: float) -> StateView:
    """Broker 2 is restarted; so long after it came back."""
    service.run(45)
    world.cluster.faults.kill(2)
    service.run(45)
    world.cluster.faults.restart(2)
    return service.run(seconds)


def leaders(world: World) -> list[int | None]:
    return [world.cluster.leader(TopicPartition("orders", n)) for n in range(12)]


def planned(service: Service) -> list[tuple[str, str, int, int]]:
    return service.rows("SELECT cause, reason, leadership_changes, replica_moves FROM decision WHERE verdict = 'planned' ORDER BY id")


def test_in_the_mode_auto_the_service_elects_preferred_leaders_while_loads_settle(world: World) -> None:
    goals = f"{LEVEL}policy: {{wait: {{settle: 300}}}}\n"
    service = Service(world, goals=goals, mode="auto", executor=simulated_executor(world))
    state = restarted(world, service, 30)
    assert "6 partitions are not led by the preferred leader, though it is in sync. This service elects it" in " ".join(state.why_nothing)
    assert leaders(world) == [1] * 12
    service.run(40)
    assert leaders(world) == [1 if n % 2 else 2 for n in range(12)]
    assert planned(service) == [
        (
            "leaders are not the preferred ones",
            "6 partitions are given back to their preferred leaders, which copies nothing and comes before any move.", 6, 0,
        )
    ]  # fmt: skip
    service.stop()


def test_the_policy_may_leave_that_to_kafka(world: World) -> None:
    goals = f"{LEVEL}policy: {{wait: {{settle: 5, leaders: 300, elect: false}}}}\n"
    service = Service(world, goals=goals, mode="auto", executor=simulated_executor(world))
    state = restarted(world, service, 90)
    assert (leaders(world), planned(service)) == ([1] * 12, [])
    assert "The first thing to do, which copies nothing: kafka-leader-election.sh --election-type preferred" in " ".join(state.why_nothing)
    service.stop()


def test_a_plan_of_preferred_leaders_waits_for_approval_before_any_other(world: World) -> None:
    goals = f"{GOALS}policy: {{wait: {{settle: 5, leaders: 60}}}}\n"
    service = Service(world, goals=goals, mode="approve", executor=simulated_executor(world))
    state = restarted(world, service, 30)
    assert "The first thing to do" in " ".join(state.why_nothing)
    service.run(60)
    plan = service.balancer.state().plan
    assert plan is not None
    assert (plan.state, plan.restores, plan.leadership_changes, plan.replica_moves) == ("proposed", True, 6, 0), "broker 3 is empty: later"
    service.balancer.approve(plan.plan_id, "anna")
    service.run(30)
    assert set(leaders(world)) == {1, 2}
    service.run(60)
    state = service.balancer.state()
    assert state.plan is not None
    assert (state.plan.restores, state.plan.replica_moves > 0) == (False, True)
    service.stop()


def test_a_person_who_asks_gets_preferred_leaders_at_once_and_reads_what_the_plan_does(world: World) -> None:
    service = Service(world, goals=f"{GOALS}policy: {{wait: {{settle: 5, leaders: 600}}}}\n")
    restarted(world, service, 30)
    service.balancer.plan_now("anna")
    state = service.turns("planner")
    assert state.plan is not None
    assert state.plan.restores
    assert "would restore preferred leaders, which copies nothing (dry run" in glance(state).sentence + glance(state).balance
    service.stop()


TRIED = "SELECT COUNT(*) FROM decision WHERE reason LIKE 'No preferred leader can be restored: their brokers are draining, excluded%'"


@pytest.mark.parametrize("constraints", ["freeze_topics: [orders]", "exclude_topics: ['o*']", "include_topics: [payments]"])
def test_leaders_of_topics_that_may_not_change_are_not_waited_for_and_not_tried(world: World, constraints: str) -> None:
    goals = f"{LEVEL}policy: {{wait: {{settle: 5, leaders: 60}}}}\nconstraints: {{{constraints}}}\n"
    service = Service(world, goals=goals, mode="auto", executor=simulated_executor(world))
    state = restarted(world, service, 55)
    assert service.rows(TRIED) == [(0,)]
    assert planned(service) == []
    assert (state.cluster.not_preferred, "not_preferred" in state.cluster.since_ms) == (6, True), "it is told all the same"
    assert state.cluster.waits == ()
    assert "preferred" not in " ".join(state.why_nothing)
    service.goals.write_text(f"{LEVEL}policy: {{wait: {{settle: 5, leaders: 60}}}}\n")
    service.balancer.reload_goals()
    service.run(60)
    assert [row[2] for row in planned(service)] == [6], "as soon as they may change"
    service.stop()


def test_leaders_that_cannot_go_back_are_given_up_after_a_few_attempts_until_goals_let_them(world: World) -> None:
    """Trying again and again, every ten minutes for months, was all that the service did."""
    wait = "policy: {wait: {settle: 5, leaders: 60}}\n"
    service = Service(world, goals=f"{LEVEL}{wait}constraints: {{exclude_brokers: [2]}}\n", mode="auto", executor=simulated_executor(world))
    restarted(world, service, 1200)
    assert service.rows(TRIED) == [(3,)]
    service.goals.write_text(f"{LEVEL}{wait}")
    service.balancer.reload_goals()
    service.run(60)
    assert [row[2] for row in planned(service)] == [6]
    service.stop()


def test_a_broker_that_cannot_be_drained_is_not_planned_for_again_and_again_while_leaders_are_away(tmp_path: Path) -> None:
    """What was lost is repaired first; where that cannot be, each turn planned it once more."""
    world = everywhere(tmp_path)
    service = Service(world, goals=f"{LEVEL}policy: {{wait: {{settle: 5}}}}\n", mode="auto", executor=simulated_executor(world))
    service.run(45)
    service.balancer.drain(3, True, "anna")
    restarted(world, service, 300)
    called = "SELECT COUNT(*) FROM decision WHERE cause LIKE '%leaders are not the preferred ones%'"
    assert service.rows(called) == [(1,)]
    assert leaders(world) == [1 if n % 2 else 2 for n in range(12)], "nothing else can be done, so they go back"
    (planned_then,) = planned(service)
    assert planned_then[1:] == (
        "6 partitions are given back to their preferred leaders, which copies nothing and comes before any move.", 6, 0,
    )  # fmt: skip
    service.stop()


def test_planning_that_fails_is_not_tried_each_turn_while_leaders_are_away(tmp_path: Path) -> None:
    def failing(*_: object) -> Plan:
        raise RuntimeError("no plan")

    world = everywhere(tmp_path)
    goals = f"{LEVEL}policy: {{wait: {{settle: 5}}}}\n"
    service = Service(world, goals=goals, mode="auto", planner=failing, executor=simulated_executor(world))
    service.run(45)
    service.balancer.drain(3, True, "anna")
    restarted(world, service, 120)
    called = "SELECT COUNT(*) FROM decision WHERE cause LIKE '%leaders are not the preferred ones%'"
    assert service.rows(called) == [(1,)]
    service.stop()


@pytest.mark.parametrize(
    ("found", "alone", "policy", "elects"),
    [
        ([], True, Wait(), True),
        ([LEADERS, SETTLING], True, Wait(), True),
        ([LEADERS], False, Wait(), False),
        ([LEADERS], True, Wait(elect=False), False),
        ([LEADERS], True, Wait(leaders=0), False),
        ([LEADERS, DOWN], True, Wait(), False),
        ([LEADERS, QUIET], True, Wait(), False),
    ],
)
def test_when_preferred_leaders_are_elected_unasked(found: list[Waiting], alone: bool, policy: Wait, elects: bool) -> None:
    assert Restoring(lambda: AWAY, alone=alone).at_once(policy, found, NOW) is elects


def test_leaders_that_are_away_for_a_moment_are_left_alone_and_no_attempt_is_repeated_soon() -> None:
    restoring = Restoring(lambda: AWAY, alone=True)
    assert not restoring.at_once(Wait(), [], NOW - 1)
    assert restoring.at_once(Wait(leaders=5), [], NOW - LASTED_MS + 5_000), "no longer than Kafka is given"
    restoring.tried(NOW)
    assert not restoring.at_once(Wait(), [], NOW + 599_999)
    assert not restoring.first(Wait(), NOW + 599_999), "balance goes on meanwhile"
    assert restoring.at_once(Wait(), [], NOW + 600_000)


def test_attempts_end_that_bring_nothing_and_start_again_where_there_is_hope() -> None:
    now = [AWAY]
    restoring, policy = Restoring(lambda: now[0], alone=True), Wait(leaders=1)
    tries = 0
    for ms in range(NOW, NOW + 20_000, 1000):
        if restoring.first(policy, ms):
            restoring.tried(ms)
            tries += 1
    assert tries == MOST_TRIES
    now[0] = replace(AWAY, health=replace(AWAY.health, astray=(("orders", 0), ("orders", 1))))
    assert restoring.first(policy, NOW + 30_000), "more are away"
    restoring.tried(NOW + 30_000)
    now[0] = AWAY
    assert restoring.first(policy, NOW + 40_000), "some came back, so trying helps"
    for ms in range(NOW + 40_000, NOW + 60_000, 1000):
        restoring.tried(ms)
    assert not restoring.first(policy, NOW + 70_000)
    restoring.again()
    assert restoring.first(policy, NOW + 70_000)
