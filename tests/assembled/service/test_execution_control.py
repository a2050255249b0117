"""What people say to an execution over a service: whichever process carries it out, and nothing that cannot be done is promised."""

from __future__ import annotations

import json

import pytest

from metrics_reporter.reporter import Clock
from tests.assembled.service.beside import OTHER, Service, World, simulated_executor
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.ledger import MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.progress import Standing
from trimtab.execution.state import Limits, Partition, Task
from trimtab.service.views import ExecutionView, Refused
from trimtab.simulator.executor import SimulatedExecutor
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, TopicPartition

SLOW = 2 * MB


def shown(service: Service) -> ExecutionView:
    found = service.balancer.state().execution
    assert found is not None
    return found


def under_way(world: World, record: MemoryDocuments | None = None) -> Service:
    """A service with a plan in progress, one partition at a time."""
    service = Service(world, executor=SimulatedExecutor(world.cluster, throttle=SLOW, concurrency=1, record=record), mode="auto")
    service.run(35)
    for _ in range(5):
        service.turns("planner", "executor")
    return service


def by_a_command(world: World, record: MemoryDocuments) -> Execution:
    """An execution that another process started; it has taken its first steps."""
    tasks = tuple(
        Task(Partition("orders", n), (1, 2) if n % 2 else (2, 1), (3, 2) if n % 2 else (3, 1), None, None) for n in range(4)
    )
    clock = Clock(lambda: world.cluster.now_ms / 1000, lambda: world.cluster.now_ms)
    command = Execution(SimulatedPort(world.cluster), MemoryLedger(record), clock, instance="ops process 7")
    command.begin(
        Order("sha256:by-hand", world.cluster.cluster_id, tasks, racks=False), Settings(limits=Limits(into=1, out_of=1, reserve=0.0))
    )
    command.turn()
    return command


def ended(world: World, command: Execution) -> Standing:
    for _ in range(60):
        found = command.turn()
        if found.over:
            return found
        world.pass_time(5)
    raise AssertionError("it did not end")


def test_a_cancelled_plan_finishes_what_is_in_progress_where_that_is_wanted(world: World) -> None:
    """Taking back a copy that is nearly complete would waste it."""
    service = under_way(world)
    before = shown(service)
    assert (before.here, before.can) == (True, ("pause", "cancel", "rollback"))
    moving = {TopicPartition(p.topic, p.partition): p.replicas for p in before.moving}
    assert moving
    service.balancer.cancel_execution(before.plan_id, "anna", "peak hours", finish=True)
    for _ in range(20):
        world.pass_time(5)
        service.turns("executor")
    plan, after = service.balancer.state().plan, shown(service)
    assert plan is not None
    assert (plan.state, after.state, after.can) == ("cancelled", "cancelled", ("rollback",))
    assert plan.note.startswith("cancelled by anna: peak hours; ")
    assert {n: world.cluster.replicas(n) for n in moving} == moving
    assert after.unchanged > 0
    assert world.cluster.configs == {}
    service.stop()


def test_every_partition_is_told_with_its_rate_and_what_is_left(world: World) -> None:
    service = under_way(world)
    for _ in range(2):
        world.pass_time(5)
        service.turns("executor")
    (moving,) = shown(service).moving
    assert moving.rate is not None
    assert moving.seconds_left == pytest.approx((moving.bytes_total - moving.bytes_copied) / moving.rate)
    document = json.loads(service.balancer.execution_text())
    (detail,) = [d for d in document["details"] if d["stage"] == "moving"]
    assert (detail["topic"], detail["bytes_per_second"]) == (moving.topic, pytest.approx(moving.rate))
    assert len(document["details"]) == shown(service).total
    service.stop()


def test_an_execution_of_a_command_is_shown_and_cancelled_through_the_record(world: World) -> None:
    """The operator on call has the page, and not the terminal in which the execution was started."""
    record = MemoryDocuments()
    command = by_a_command(world, record)
    service = Service(world, executor=simulated_executor(world, record, "service"), mode="approve")
    service.run(10)
    found = shown(service)
    assert (found.plan_id, found.here, found.instance) == ("sha256:by-hand", False, "ops process 7")
    assert "cancel" in found.can
    service.balancer.cancel_execution("sha256:by-hand", "anna", "", finish=False)
    service.turns("executor")
    standing = ended(world, command)
    assert (standing.state, standing.why) == ("cancelled", "cancelled by anna")
    service.run(10)
    assert shown(service).can == ("rollback",)
    service.stop()


def test_what_a_command_did_is_rolled_back_by_the_service(world: World) -> None:
    record = MemoryDocuments()
    names = [TopicPartition("orders", n) for n in range(12)]
    before = [world.cluster.replicas(n) for n in names]
    command = by_a_command(world, record)
    ended(world, command)
    assert [world.cluster.replicas(n) for n in names] != before
    service = Service(world, executor=simulated_executor(world, record, "service"), mode="approve")
    service.run(10)
    service.balancer.rollback_execution("sha256:by-hand", "anna")
    for _ in range(40):
        world.pass_time(5)
        service.turns("executor")
    assert (shown(service).state, shown(service).can) == ("rolled back", ())
    assert [world.cluster.replicas(n) for n in names] == before
    with pytest.raises(Refused, match="rolled back already"):
        service.balancer.rollback_execution("sha256:by-hand", "anna")
    service.stop()


def test_resume_ends_what_a_command_paused(world: World) -> None:
    record = MemoryDocuments()
    command = by_a_command(world, record)
    command.pause("bert")
    service = Service(world, executor=simulated_executor(world, record, "service"), mode="approve")
    service.run(10)
    assert (shown(service).paused, shown(service).can) == ("bert", ("resume", "cancel", "rollback"))
    assert service.balancer.resume("anna")
    service.turns("executor")
    assert command.turn().paused == ""
    service.stop()


def test_nothing_is_promised_that_cannot_be_done(world: World) -> None:
    service = under_way(world)
    plan_id = shown(service).plan_id
    with pytest.raises(Refused, match="The newest execution is that of plan"):
        service.balancer.cancel_execution("sha256:other", "anna", "", finish=False)
    service.balancer.rollback_execution(plan_id, "anna")
    service.turns("executor")
    assert shown(service).can == ("pause",)
    with pytest.raises(Refused, match="being rolled back"):
        service.balancer.cancel_execution(plan_id, "anna", "", finish=False)
    world.elect(OTHER)
    service.turns("executor", "metadata")
    found = service.balancer.state().execution
    assert found is None or found.can == ()
    with pytest.raises(Refused):
        service.balancer.rollback_execution(plan_id, "anna")
    service.stop()
