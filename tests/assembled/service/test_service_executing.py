"""The executed plan is the approved plan, every step is written down first, and what ends an execution leaves nothing behind."""

from __future__ import annotations

import pytest

from tests.assembled.service.beside import GOALS, OTHER, Service, World, said, simulated_executor
from trimtab.execution.ledger import MemoryDocuments
from trimtab.http.glance import glance
from trimtab.service.views import Refused
from trimtab.simulator.executor import SimulatedExecutor
from trimtab.simulator.spec import MB, TopicPartition


def test_an_approved_plan_is_carried_out_and_every_step_was_written_down_first(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="approve")
    state = service.run(40)
    plan = state.plan
    assert plan is not None
    assert "waits for approval" in said(state)
    with pytest.raises(Refused, match="no plan sha256:other"):
        service.balancer.approve("sha256:other", "anna")
    waiting = service.run(130)
    assert waiting.plan is not None
    assert waiting.plan.plan_id == plan.plan_id, "an interval does not take a plan away that somebody reads"
    assert service.balancer.approve(plan.plan_id, "anna").state == "approved"
    with pytest.raises(Refused, match="approved already"):
        service.balancer.approve(plan.plan_id, "bert")
    service.turns("executor")
    running = service.balancer.state()
    assert running.plan is not None
    assert running.plan.state == "running"
    assert running.why_nothing == ()
    done = service.run(60)
    assert done.plan is not None
    assert (done.plan.state, done.plan.progress) == ("done", 1.0)
    hosts = [b for n in range(12) for b in world.cluster.replicas(TopicPartition("orders", n))]
    assert {b: hosts.count(b) for b in (1, 2, 3)} == {1: 8, 2: 8, 3: 8}
    story = service.rows("SELECT kind, who, replica_moves > 0 FROM outcome ORDER BY id")
    assert story == [("approved", "anna", 0), ("started", "anna", 0), ("done", "executor", 1)]
    later = service.run(70)
    assert "there was nothing to do" in said(later)
    service.stop()


def test_a_plan_that_no_longer_fits_the_cluster_cannot_be_approved(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="approve")
    plan = service.run(40).plan
    assert plan is not None
    change = service.balancer._desk.current.plan.proposals[0]  # type: ignore[union-attr]
    leader = change.replicas_before[0]  # which stays the preferred one, so that there is nothing to wait for
    other = next(broker for broker in (1, 2, 3) if broker not in change.replicas_before)
    world.cluster.alter_partition_reassignments({TopicPartition(change.topic, change.partition): (leader, other)})
    world.pass_time(20)
    service.turns("metadata")
    told = rf"The cluster is not as it was .* replicas of {change.topic}-{change.partition} are \[{leader}, {other}\] now"
    with pytest.raises(Refused, match=told):
        service.balancer.approve(plan.plan_id, "anna")
    state = service.run(10)
    assert state.plan is not None
    assert state.plan.plan_id != plan.plan_id, "another one is there in its place"
    service.stop()


def test_auto_mode_needs_no_approval_and_no_executor_is_said(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="auto")
    done = service.run(150)
    assert done.plan is not None
    assert done.plan.state == "done", done.plan
    assert service.rows("SELECT kind, who FROM outcome ORDER BY id LIMIT 2") == [("approved", "auto"), ("started", "auto")]
    service.stop()


def test_without_an_executor_every_place_says_so(world: World) -> None:
    service = Service(world, mode="auto")
    state = service.run(40)
    assert state.plan is not None
    assert state.plan.state == "proposed"
    assert "no executor for this cluster in this release" in state.plan.note
    assert "cannot be carried out: there is no executor" in said(state)
    assert "cannot be carried out: there is no executor" in glance(state).sentence
    with pytest.raises(Refused, match="no executor"):
        service.balancer.approve(state.plan.plan_id, "anna")
    service.stop()


def test_leadership_lost_in_the_middle_lets_go_and_touches_nothing(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="auto")
    service.run(35)
    for _ in range(10):
        service.turns("planner", "executor")
    moving = world.cluster.list_partition_reassignments().keys()
    assert moving
    world.elect(OTHER)
    service.turns("executor")
    state = service.balancer.state()
    assert state.plan is not None
    assert state.plan.state == "cancelled"
    assert "released, steps in progress continue in the cluster" in state.plan.note
    assert world.cluster.list_partition_reassignments().keys() == moving
    service.stop()


def test_a_stop_takes_back_what_is_in_progress(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="auto")
    service.run(35)
    for _ in range(10):
        service.turns("planner", "executor")
    assert world.cluster.list_partition_reassignments()
    service.stop()
    assert not world.cluster.list_partition_reassignments()
    assert world.cluster.throttle is None
    assert service.rows("SELECT kind, detail FROM outcome ORDER BY id DESC LIMIT 1") == [
        ("cancelled", "the service was stopped; what was in progress was taken back")
    ]


def test_a_person_can_stop_a_plan_that_runs(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="auto")
    service.run(35)
    for _ in range(10):
        state = service.turns("planner", "executor")
    assert state.plan is not None
    service.balancer.reject(state.plan.plan_id, "anna", "too busy now")
    service.turns("executor")
    stopped = service.balancer.state().plan
    assert stopped is not None
    assert (stopped.state, stopped.note) == ("cancelled", "stopped by anna: too busy now")
    assert not world.cluster.list_partition_reassignments()
    service.stop()


def test_approvals_in_dry_run_and_rejections_say_what_they_are(world: World) -> None:
    service = Service(world, executor=simulated_executor(world))
    plan = service.run(40).plan
    assert plan is not None
    with pytest.raises(Refused, match="dry-run"):
        service.balancer.approve(plan.plan_id, "anna")
    assert service.balancer.reject(plan.plan_id, "anna", "not on a friday").state == "rejected"
    with pytest.raises(Refused, match="rejected already: not on a friday"):
        service.balancer.reject(plan.plan_id, "anna", "")
    assert "is rejected: not on a friday" in said(service.balancer.state())
    assert service.rows("SELECT kind, who, detail FROM outcome") == [("rejected", "anna", "not on a friday")]
    service.stop()


def test_a_plan_without_approval_in_time_gives_way_to_a_newer_one(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="approve", approval_valid=60)
    first = service.run(40).plan
    second = service.run(70).plan
    assert first is not None
    assert second is not None
    assert first.plan_id != second.plan_id
    assert service.rows("SELECT cause FROM decision ORDER BY id DESC LIMIT 1") == [("the plan was not approved within 60 s",)]
    with pytest.raises(Refused, match="superseded by"):
        service.balancer.approve(first.plan_id, "anna")
    service.stop()


def test_a_kill_in_the_middle_is_told_of_by_the_next_run(world: World) -> None:
    history = {"samples": False, "folder": str(world.folder / "kept")}
    service = Service(world, executor=simulated_executor(world), mode="auto", history=history)
    service.run(35)
    for _ in range(10):
        state = service.turns("planner", "executor")
    assert state.plan is not None
    assert state.plan.state == "running"
    again = Service(world, executor=simulated_executor(world), mode="auto", history=history)
    again.turns()
    (decision,) = [d for d in again.balancer.decisions(9) if d.plan_id == state.plan.plan_id]
    assert [kind for _, kind, _, _ in decision.outcomes] == ["approved", "started", "failed"]
    assert "killed during the execution" in decision.outcomes[-1][3]
    again.stop()


def test_what_an_instance_that_was_killed_left_is_carried_on_by_the_next(world: World) -> None:
    """The record in the cluster tells the next leader of the plan; until it is over, that one makes none of its own."""
    record = MemoryDocuments()
    first = Service(world, executor=simulated_executor(world, record, "first"), mode="auto")
    first.run(35)
    for _ in range(10):
        first.turns("planner", "executor")
    assert world.cluster.list_partition_reassignments()
    world.elect(OTHER)  # and the first is never heard of again
    second = Service(world, node=OTHER, executor=simulated_executor(world, record, "second"), mode="auto")
    state = second.run(15)
    assert "first carries out plan" in said(state)
    assert state.plan is None
    second.run(90)
    hosts = [b for n in range(12) for b in world.cluster.replicas(TopicPartition("orders", n))]
    assert {b: hosts.count(b) for b in (1, 2, 3)} == {1: 8, 2: 8, 3: 8}
    assert world.cluster.configs == {}
    assert second.rows("SELECT COUNT(*) FROM decision WHERE verdict = 'planned'") == [(0,)]
    second.stop()


def test_while_the_model_is_stale_no_further_step_is_taken(world: World) -> None:
    """What is in progress goes on; the rest waits until reporters are heard again."""
    executor = SimulatedExecutor(world.cluster, throttle=8 * MB, concurrency=1)
    service = Service(world, executor=executor, mode="auto")
    service.run(35)
    for _ in range(3):
        service.turns("planner", "executor")
    world.cluster.faults.lost_reporters.update((1, 2, 3))
    state = service.run(75)
    assert state.plan is not None
    assert state.plan.state == "running"
    assert not world.cluster.list_partition_reassignments()
    assert state.plan.note.startswith("being carried out, waits: ")
    world.cluster.faults.lost_reporters.clear()
    for _ in range(12):
        service.run(5)
        if world.cluster.list_partition_reassignments():
            break
    assert world.cluster.list_partition_reassignments()
    service.stop()


def test_a_plan_is_carried_out_in_the_batches_of_its_policy_and_the_page_shows_which(world: World) -> None:
    batch = "{moves_per_broker: 4, topic_share: 1, sources_per_target: 9, batches: 9, pause: 20s}"
    service = Service(world, goals=f"{GOALS}policy: {{batch: {batch}}}\n", executor=simulated_executor(world), mode="auto")
    shown: list[tuple[int, int]] = []
    done: list[int] = []
    for _ in range(60):
        state = service.run(5)
        if state.execution is not None:
            shown.append((state.execution.batch, state.execution.batches))
            done.append(state.execution.final)
        if state.plan is not None and state.plan.state == "done":
            break
    assert state.plan is not None
    assert (state.plan.state, state.plan.progress) == ("done", 1.0)
    assert [batch for batch, _ in dict.fromkeys(shown)] == list(range(1, shown[0][1] + 1))
    assert shown[0][1] > 1
    assert done == sorted(done)
    service.stop()
