"""A plan that did not help makes the service wait longer before the next one, also after a restart; one that helped ends that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.options import PlanOptions, Watch
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.assembled.service.beside import GOALS, Service, World, said, simulated_executor
from trimtab.service.planning import Planner
from trimtab.service.views import Refused
from trimtab.simulator.collector import SimulatedReporter
from trimtab.simulator.spec import BrokerSpec

LIMITS = {"cooldown": 60}
STRICT = GOALS.replace("network_in", "network_in, bound: 0.05")


def half_hearted(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, watch: Watch | None = None, **more: Any) -> Plan:
    """Promises what the whole plan would do, and does a move of it: as if the load had gone elsewhere meanwhile."""
    made = plan(snapshot, goals, options, watch, **more)
    return replace(made, proposals=tuple(made.proposals[:1]))


def serving(world: World, planner: Planner) -> Service:
    return Service(world, executor=simulated_executor(world), mode="auto", planner=planner, limits=LIMITS, goals=STRICT)


def noted(service: Service) -> list[str]:
    return [detail for (detail,) in service.rows("SELECT detail FROM outcome WHERE who = 'aftermath' ORDER BY id")]


def plans(service: Service) -> int:
    found: int = service.rows("SELECT COUNT(*) FROM outcome WHERE kind = 'started'")[0][0]
    return found


def test_after_each_plan_that_did_not_help_the_wait_is_twice_as_long_until_one_helps(world: World) -> None:
    """Moves are made of loads that do not last: each costs producers something, and none gains anything."""
    service = serving(world, half_hearted)
    service.run(150)
    assert plans(service) == 1
    assert "the last plan did not help (3 brokers outside a target range before, 0 predicted, 3 now)" in said(service.balancer.state())
    assert "network_in: at most" in noted(service)[0]
    service.run(130)
    assert plans(service) == 2, "twice the cooldown is over"
    service.run(150)
    assert "the last 2 plans did not help" in said(service.balancer.state())
    assert plans(service) == 2
    service.stop()
    again = serving(world, plan)
    again.run(60)
    assert plans(again) == 2
    assert "the last 2 plans did not help" in said(again.balancer.state()), "a restart knows it"
    assert not again.rows("SELECT detail FROM outcome WHERE kind = 'failed'"), "plans that ended well were not killed"
    again.balancer.plan_now("anna")
    again.run(120)
    assert plans(again) == 3, "who asks does not wait"
    again.run(100)
    assert noted(again)[-1].startswith("helped (3 brokers outside a target range before, 0 predicted, 0 now)")
    assert "did not help" not in said(again.balancer.state())
    again.stop()


def test_a_plan_is_not_judged_by_brokers_that_came_after_it(world: World) -> None:
    """Who scaled out a minute after a plan waited for the new brokers' share, as that plan had not helped."""
    service = serving(world, plan)
    for _ in range(30):
        service.run(5)
        if service.rows("SELECT COUNT(*) FROM outcome WHERE kind = 'done'") == [(1,)]:
            break
    world.cluster.add_broker(BrokerSpec(4))
    world.reporters[4] = SimulatedReporter(world.cluster, 4, world.topic)
    service.run(150)
    assert not any("did not help" in detail for detail in noted(service))
    assert plans(service) == 2
    service.stop()


def test_a_plan_that_a_person_approves_counts_too_and_a_dry_run_learns_nothing(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="approve", planner=half_hearted, limits=LIMITS, goals=STRICT)
    first = service.run(40).plan
    assert first is not None
    service.balancer.approve(first.plan_id, "anna")
    service.run(130)
    assert "the last plan did not help" in said(service.balancer.state())
    with pytest.raises(Refused):
        service.balancer.approve(first.plan_id, "anna")
    service.stop()
