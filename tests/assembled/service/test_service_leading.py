"""Only the instance beside the active controller decides, and every other one says why it does not."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.options import PlanOptions, Watch
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.assembled.service.beside import NODE, OTHER, Service, World, said
from trimtab.http.glance import glance
from trimtab.service.views import Refused


def test_only_the_instance_beside_the_active_controller_decides(world: World) -> None:
    services = {node: Service(world, node=node) for node in (NODE, OTHER)}
    for _ in range(12):
        world.pass_time(5)
        states = {node: service.turns() for node, service in services.items()}
    assert states[NODE].plan is not None
    assert states[OTHER].plan is None
    assert f"Node {NODE} is the active controller (epoch 1); this instance stands beside node {OTHER}" in said(states[OTHER])
    assert states[OTHER].ready, "its model is warm all the same"
    assert services[OTHER].rows("SELECT COUNT(*) FROM decision") == [(0,)]
    with pytest.raises(Refused, match="is the active controller"):
        services[OTHER].balancer.plan_now("anna")
    world.elect(OTHER)
    for _ in range(2):
        world.pass_time(5)
        states = {node: service.turns() for node, service in services.items()}
    assert states[OTHER].plan is not None, "at once, not an interval later"
    assert "this instance stands beside node 100" in said(states[NODE])
    rows = sorted(
        row for service in services.values()
        for row in service.rows("SELECT began, ended, controller, controller_epoch FROM decision WHERE verdict != 'refused'")
    )  # fmt: skip
    for (_, ended, one, epoch), (began, _, other, next_epoch) in pairwise(rows):
        assert ended <= began
        assert epoch <= next_epoch
        assert (one == other) == (epoch == next_epoch)
    for service in services.values():
        service.stop()


def test_of_two_instances_with_the_same_node_one_decides_and_the_other_says_why_not(world: World) -> None:
    """A copied configuration file: both stand, as they think, beside the active controller."""
    first, second = Service(world), Service(world, folder="copied")
    for _ in range(12):
        world.pass_time(5)
        leads, shared = first.turns(), second.turns()
    assert leads.plan is not None
    assert (shared.plan, shared.leadership.leads, shared.ready, shared.healthy) == (None, False, False, True)
    assert second.rows("SELECT COUNT(*) FROM decision") == [(0,)]
    why = "Another instance on this machine stands beside node 100 of this cluster already, so this one decides nothing"
    assert why in said(shared)
    assert why in shared.why_not_ready[0]
    assert why in glance(shared).sentence
    with pytest.raises(Refused, match="Another instance"):
        second.balancer.plan_now("anna")
    first.stop()
    state = second.run(10)
    assert state.plan is not None, "it takes the place of one that ended"
    assert state.ready
    second.stop()


def test_leadership_that_goes_while_planning_makes_the_verdict_refused(world: World) -> None:
    def planner(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, watch: Watch) -> Plan:
        world.elect(OTHER)
        return plan(snapshot, goals, options, watch)

    service = Service(world, planner=planner)
    service.run(40)
    ((verdict, reason, text),) = service.rows("SELECT verdict, reason, plan FROM decision ORDER BY id DESC LIMIT 1")
    assert verdict == "refused"
    assert "Leadership went elsewhere while planning. Node 101 is the active controller" in reason
    assert text is None
    assert service.balancer.state().plan is None
    service.stop()


def test_who_cannot_be_asked_does_not_lead(world: World) -> None:
    service = Service(world)
    service.run(40)
    world.away = "none of 3 brokers could describe the metadata quorum"
    before = service.rows("SELECT COUNT(*) FROM decision")
    state = service.run(70)
    assert service.rows("SELECT COUNT(*) FROM decision") == before
    assert "It is not known who the active controller is, so nothing is decided here: none of 3 brokers" in said(state)
    assert state.healthy, "a cluster that is away is no death"
    world.away = None
    assert service.run(10).plan is not None
    assert service.rows("SELECT COUNT(*) FROM decision") > before
    service.stop()
