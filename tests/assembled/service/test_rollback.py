"""Rolling a plan back on request: everything comes back, nothing is lost on the way, and a refusal says why."""

from __future__ import annotations

import pytest

from cluster_model.errors import ExternalError
from tests.assembled.service.beside import Service, World, simulated_executor
from trimtab.service.views import PlanView, Refused
from trimtab.simulator.spec import TopicPartition


def test_a_plan_that_is_done_can_be_rolled_back(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="approve")
    plan = service.run(40).plan
    assert plan is not None
    names = [TopicPartition("orders", n) for n in range(12)]
    before = [world.cluster.replicas(n) for n in names]
    with pytest.raises(Refused, match="nothing of it was carried out"):
        service.balancer.rollback(plan.plan_id, "anna")
    service.balancer.approve(plan.plan_id, "anna")
    assert service.run(40).plan.state == "done"  # type: ignore[union-attr]
    assert [world.cluster.replicas(n) for n in names] != before
    service.balancer.rollback(plan.plan_id, "bert")
    for _ in range(12):
        world.pass_time(5)
        service.turns("executor")
    back = service.balancer.state().plan
    assert back is not None
    assert (back.state, back.note) == ("cancelled", "rolled back by bert; 0 partitions stay as planned")
    assert service.rows("SELECT kind FROM outcome ORDER BY id DESC LIMIT 1") == [("rolled_back",)]
    assert [world.cluster.replicas(n) for n in names] == before
    assert world.cluster.configs == {}
    service.stop()


def rolled_back_after(world: World, service: Service) -> PlanView:
    """The plan in hand once it was approved, carried out, and asked to be rolled back."""
    plan = service.run(40).plan
    assert plan is not None
    service.balancer.approve(plan.plan_id, "anna")
    assert service.run(40).plan.state == "done"  # type: ignore[union-attr]
    service.balancer.rollback(plan.plan_id, "bert")
    for _ in range(12):
        world.pass_time(5)
        service.turns("executor")
    back = service.balancer.state().plan
    assert back is not None
    service.stop()
    return back


def test_a_rollback_that_nothing_answers_is_asked_for_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = simulated_executor(world)
    answers, roll_back = [ExternalError("the cluster is away", retriable=True)], executor.rollback

    def away_once(plan_id: str, who: str) -> int:
        if answers:
            raise answers.pop()
        return roll_back(plan_id, who)

    monkeypatch.setattr(executor, "rollback", away_once)
    back = rolled_back_after(world, Service(world, executor=executor, mode="approve"))
    assert (back.state, back.note) == ("cancelled", "rolled back by bert; 0 partitions stay as planned")


def test_a_rollback_that_is_refused_says_why(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = simulated_executor(world)

    def refused(plan_id: str, who: str) -> int:
        raise ExternalError("plan y was carried out since")

    monkeypatch.setattr(executor, "rollback", refused)
    back = rolled_back_after(world, Service(world, executor=executor, mode="approve"))
    assert (back.state, back.note) == ("done", "not rolled back: plan y was carried out since")
