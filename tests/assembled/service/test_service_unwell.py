"""A service beside a cluster that is not well: it waits with balance, says why, and repairs what is lost."""

from __future__ import annotations

import logging
import sqlite3

import pytest

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.options import PlanOptions, Watch
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.assembled.service.beside import GOALS, LEVEL, NODE, Service, World, said, simulated_executor
from trimtab.http.glance import glance
from trimtab.service.views import Refused
from trimtab.simulator.spec import TopicPartition

PATIENT = f"{GOALS}policy: {{wait: {{settle: 20, leaders: 30}}}}\n"


def hosts(world: World, broker: int) -> int:
    return sum(broker in world.cluster.replicas(TopicPartition("orders", n)) for n in range(12))


def test_a_restart_moves_no_byte_and_balance_goes_on_when_loads_have_settled(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="approve", goals=PATIENT)
    before = service.run(40).plan
    assert before is not None
    world.cluster.faults.kill(2)
    state = service.run(55)
    assert "Balance waits: broker 2 has been down for" in said(state)
    assert state.plan is not None
    assert state.plan.state == "superseded", "it was made for another cluster"
    with pytest.raises(Refused, match="superseded"):
        service.balancer.approve(before.plan_id, "anna")
    service.balancer.plan_now("anna")
    service.turns("planner")
    (cause, verdict, reason) = service.rows("SELECT cause, verdict, reason FROM decision ORDER BY id DESC LIMIT 1")[0]
    assert (cause, verdict) == ("asked by anna", "refused")
    assert "Balance waits: broker 2 has been down" in reason
    world.cluster.faults.restart(2)
    state = service.run(15)
    assert "loads settle for" in said(state) or "catches up" in said(state)
    planned = "SELECT COUNT(*) FROM decision WHERE verdict = 'planned'"
    assert service.rows(planned) == [(1,)]
    state = service.run(80)
    assert service.rows(planned) > [(1,)]
    assert ("balance waits no longer",) in service.rows("SELECT cause FROM decision")
    assert state.plan is not None
    assert state.plan.state == "proposed"
    service.stop()


def test_a_lost_broker_is_repaired_and_nothing_else_moves_until_replicas_are_in_sync(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="auto", goals=LEVEL)
    service.run(45)
    service.goals.write_text(GOALS)
    world.cluster.faults.kill(2)
    service.balancer.reload_goals()
    state = service.run(40)
    assert "Balance waits" in said(state)
    assert service.rows("SELECT COUNT(*) FROM decision WHERE verdict = 'planned'") == [(0,)], "broker 3 is empty, and stays so for now"
    shown = glance(service.run(45))
    assert (shown.tone, shown.label) == ("bad", "Broker dead")
    assert shown.sentence.startswith("Broker 2 is dead"), "it comes before how balanced the others are"
    planned = "SELECT cause, reason, replica_moves FROM decision WHERE verdict = 'planned' ORDER BY id LIMIT 1"
    ((cause, reason, moves),) = service.rows(planned)
    assert cause == "broker 2 lost"
    assert "Only what was lost is repaired. Balance waits: 12 partitions are under-replicated" in reason
    assert moves == 12
    service.run(60)
    assert hosts(world, 2) == 0
    service.stop()


def test_quiet_hours_and_limits_of_the_policy_are_of_the_goals_file(world: World) -> None:
    service = Service(world, goals=f"{GOALS}policy: {{wait: {{quiet_hours: ['00:00-24:00']}}}}\n")
    state = service.run(40)
    assert state.plan is None
    assert "Balance waits: these are quiet hours (00:00-24:00), until 00:00:00 UTC." in said(state)
    service.run(150)
    assert service.rows("SELECT COUNT(*) FROM decision WHERE verdict = 'refused' AND reason LIKE '%quiet%'") == [(1,)], "said once"
    service.balancer.plan_now("anna")
    assert service.turns("planner").plan is not None, "who asks means it"
    service.goals.write_text(GOALS)
    service.balancer.reload_goals()
    service.run(20)
    assert ("balance waits no longer",) in service.rows("SELECT cause FROM decision") or (
        "goals reloaded, balance waits no longer",) in service.rows("SELECT cause FROM decision")
    service.stop()


def test_a_plan_for_balance_is_not_approved_while_the_cluster_is_unwell(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="approve", goals=PATIENT)
    plan = service.run(40).plan
    assert plan is not None
    world.cluster.faults.kill(3)
    for _ in range(3):
        world.pass_time(5)
        service.turns("metadata", "samples")
    with pytest.raises(Refused, match=r"Balance waits: broker 3 has been down for .* when the cluster is well"):
        service.balancer.approve(plan.plan_id, "anna")
    service.stop()


def test_why_balance_waited_is_kept_with_the_decision(world: World) -> None:
    service = Service(world, goals=PATIENT)
    service.run(40)
    world.cluster.alter_partition_reassignments({TopicPartition("orders", 0): (3, 1)})
    world.cluster.faults.stall(TopicPartition("orders", 0), 3)
    service.run(70)
    with sqlite3.connect(service.folder / "history" / "decisions.db") as db:
        reasons = [reason for (reason,) in db.execute("SELECT reason FROM decision WHERE verdict = 'refused'")]
    assert "Balance waits: 1 reassignment is in progress that this service did not start." in reasons
    service.stop()


def test_leaderships_come_before_moves_where_nothing_restores_preferred_leaders(world: World) -> None:
    goals = f"{GOALS}  - {{kind: usage_distribution, resource: leaders, bound: 0.3}}\npolicy: {{wait: {{settle: 5, leaders: 30}}}}\n"
    service = Service(world, goals=goals)
    service.run(40)
    world.cluster.faults.kill(2)
    service.run(40)
    world.cluster.faults.restart(2)
    state = service.run(25)
    assert "6 partitions are not led by the preferred leader, though it is in sync" in said(state)
    service.run(40)
    ((leaderships, moves),) = service.rows(
        "SELECT leadership_changes, replica_moves FROM decision WHERE verdict = 'planned' AND cause LIKE '%no longer%'"
    )
    assert (leaderships > 0, moves) == (True, 0), "broker 3 is empty, and moves to it come later"
    service.stop()


def test_broken_hard_limits_are_mended_while_replicas_are_out_of_sync_and_nothing_else(world: World) -> None:
    hard = f"{GOALS}  - {{kind: count_limit, resource: replicas, max: 11}}\npolicy: {{wait: {{settle: 5}}}}\n"
    service = Service(world, goals=LEVEL)
    service.run(45)
    world.cluster.faults.stall(TopicPartition("orders", 1), 2)
    service.run(40)
    service.goals.write_text(hard)
    service.balancer.reload_goals()
    service.run(20)
    ((reason, moves),) = service.rows("SELECT reason, replica_moves FROM decision WHERE verdict = 'planned'")
    assert "Only repairs are planned. Balance waits: 1 partition is under-replicated" in reason
    assert moves == 2, "one from each broker; balance would move eight"
    service.stop()


@pytest.mark.parametrize("decides", [True, False])
def test_a_disk_without_room_is_told_where_nothing_is_decided_too(world: World, decides: bool) -> None:
    """A standby was healthy and ready until it took over and could write nothing; and who decides once an hour notices at once."""
    service = Service(world, interval=3600)
    assert service.run(40).plan is not None
    if not decides:
        world.elect(NODE + 1)
    room = service.folder / "history" / ".room"
    assert service.run(10).healthy
    assert not room.exists()
    room.mkdir()  # where the file should find room
    state = service.run(15)
    assert (state.healthy, state.ready, state.leadership.leads) == (False, False, decides)
    why = "there is no room for another decision: Is a directory"
    assert "no decision is made while none can be recorded" in state.why_unhealthy[0]
    assert why in state.why_unhealthy[0] + said(state)
    assert why in state.why_not_ready[0]
    assert state.plan is not None
    assert state.plan.state == "superseded"
    room.rmdir()
    state = service.run(15)
    assert (state.healthy, state.ready) == (True, True)
    service.stop()


def test_a_full_disk_is_an_illness_takes_few_plans_and_shows_no_old_one_as_current(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    made: list[int] = []

    def planner(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, watch: Watch) -> Plan:
        made.append(world.cluster.now_ms)
        return plan(snapshot, goals, options, watch)

    service = Service(world, planner=planner)
    before = service.run(40).plan
    assert before is not None
    with sqlite3.connect(service.folder / "history" / "decisions.db") as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON decision BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    service.balancer.plan_now("anna")
    caplog.clear()
    made.clear()
    states = [service.run(5) for _ in range(60)]
    assert {(s.healthy, s.ready) for s in states} == {(False, False)}, "it flapped before"
    assert "no decision is made while none can be recorded" in states[-1].why_unhealthy[0]
    assert "disk is full" in said(states[-1])
    assert states[-1].plan is not None
    assert (states[-1].plan.state, states[-1].plan.note) == ("superseded", "a newer decision could not be recorded")
    assert len(made) <= 7, "each attempt costs a plan"
    assert not any("goes on again" in m for m in caplog.messages)
    assert states[-1].considered_ms is not None
    assert states[-1].now_ms - states[-1].considered_ms > 290_000, "an alert rests on it"
    with sqlite3.connect(service.folder / "history" / "decisions.db") as db:
        db.execute("DROP TRIGGER full")
    for _ in range(70):
        state = service.run(5)
        if state.healthy:
            break
    assert (state.healthy, state.ready) == (True, True)
    assert state.plan is not None
    assert state.plan.state == "proposed"
    assert any("goes on again" in m for m in caplog.messages)
    service.stop()
