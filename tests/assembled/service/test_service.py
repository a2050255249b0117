"""The service plans where it knows enough, writes down what it decides first, and always says why nothing happens."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.options import PlanOptions, Watch
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.assembled.service.beside import GOALS, LEVEL, Service, World, said, simulated_executor
from trimtab.service.views import Refused
from trimtab.simulator.spec import MB, TopicSpec


def test_it_plans_as_soon_as_enough_is_known_and_then_every_interval(world: World) -> None:
    service = Service(world)
    first = service.turns()
    assert not first.ready
    assert "not loaded yet" in said(first) or "Warming up" in said(first)
    warming = service.run(10)
    assert (warming.ready, warming.healthy, warming.plan) == (False, True, None)
    assert "Warming up: samples cover 1" in said(warming)
    assert "of the 30 s that are needed (horizon 60 s)" in said(warming)
    state = service.run(30)
    assert state.ready
    assert state.plan is not None
    assert state.plan.state == "proposed"
    assert "only shown, because the mode is dry-run; nor could it be carried out: there is no executor" in said(state)
    assert "set mode" not in said(state), "another mode would carry nothing out either"
    with pytest.raises(Refused, match=r"The mode is dry-run: plans are only shown\. Instead apply the plan with Kafka's own tools"):
        service.balancer.approve(state.plan.plan_id, "anna")
    assert [g.violations for g in state.goals] == [3]
    assert [g.bound for g in state.goals] == [0.1]
    assert {b.id: b.voice for b in state.brokers} == {1: "fresh", 2: "fresh", 3: "fresh"}
    assert state.brokers[2].share_of_mean["network_in"] == 0.0
    before = service.rows("SELECT COUNT(*) FROM decision WHERE verdict = 'planned'")
    service.run(65)
    after = service.rows("SELECT COUNT(*) FROM decision WHERE verdict = 'planned'")
    assert after[0][0] == before[0][0] + 1
    refused = service.rows("SELECT cause, reason FROM decision WHERE verdict = 'refused'")
    assert len(refused) == 1, "a refusal is written once, not every time it is still so"
    assert "Warming up" in refused[0][1]
    service.stop()


@pytest.mark.parametrize(
    ("configured", "policy", "seconds"), [(None, "{interval: 30s}", 30), (60, "{interval: 30s}", 60), (None, "{}", 300)]
)
def test_it_decides_as_often_as_its_configuration_says_else_the_policy(
    world: World, configured: float | None, policy: str, seconds: int
) -> None:
    service = Service(world, goals=f"{GOALS}policy: {policy}\n", interval=configured)
    service.run(700)
    regular = service.rows("SELECT COUNT(*) FROM decision WHERE cause = 'interval'")[0][0]
    service.stop()
    assert 600 // (seconds + 5) - 1 <= regular <= 700 // seconds


def test_the_plan_can_be_read_in_every_form_also_when_it_is_old(world: World) -> None:
    service = Service(world)
    state = service.run(40)
    assert state.plan is not None
    face, id = service.balancer, state.plan.plan_id
    assert id in face.plan_text(None, "json")
    assert face.plan_text(id, "reassignment").startswith('{"version":1')
    assert face.plan_text(id, "election").startswith('{"partitions":[')
    assert all(face.plan_text(id, form) for form in ("text", "markdown", "html"))
    with pytest.raises(Refused, match="There is no plan sha256:x") as refused:
        face.plan_text("sha256:x", "json")
    assert refused.value.missing
    service.stop()
    again = Service(world)
    again.turns()
    assert id in again.balancer.plan_text(id, "json")
    with pytest.raises(Refused, match="only the JSON is kept"):
        again.balancer.plan_text(id, "html")
    decision = next(d for d in again.balancer.decisions(5) if d.verdict == "planned")
    assert (decision.plan_id, decision.cause) == (id, "ready")
    again.stop()


def test_a_plan_that_is_asked_for_before_a_cluster_answers_is_no_broken_history(world: World) -> None:
    service = Service(world)
    with pytest.raises(Refused, match="no cluster has answered yet") as refused:
        service.balancer.plan_text("sha256:x", "json")
    assert refused.value.what_to_do == "Try again when it answers."
    service.stop()


def test_a_dry_run_does_not_fill_the_disk_with_plans(world: World) -> None:
    history = {"folder": str(world.folder / "node-100" / "history"), "keep_plan_bytes": 1}
    service = Service(world, history=history)
    service.run(170)
    planned = "SELECT COUNT(*), COUNT(plan) FROM decision WHERE verdict = 'planned'"
    ((decisions, plans),) = service.rows(planned)
    assert decisions == plans > 1
    service.stop()
    again = Service(world, history=history)
    again.run(30)
    ((decisions, plans),) = again.rows(planned)
    assert plans <= 2 < decisions, "old ones go once an hour, and at the start"
    again.stop()


def test_changed_goals_are_taken_and_wrong_ones_are_not(world: World) -> None:
    service = Service(world)
    before = service.run(40)
    service.goals.write_text("version: 1\ngoals:\n  - {kind: usage_distribution, resource: netwrk_in, bond: 3}\n")
    state = service.turns("goals")
    state = service.turns("goals")
    assert state.goals_digest == before.goals_digest
    assert state.goals_error is not None
    assert "2 problems" in state.goals_error
    assert "did you mean 'network_in'" in state.goals_error
    service.goals.write_text(LEVEL)
    service.balancer.reload_goals()
    state = service.turns("goals")
    assert state.goals_error is None
    assert state.goals_digest != before.goals_digest
    state = service.run(10)
    (cause, verdict) = service.rows("SELECT cause, verdict FROM decision ORDER BY id DESC LIMIT 1")[0]
    assert (cause, verdict) == ("goals reloaded", "nothing")
    assert "there was nothing to do" in said(state)
    service.stop()


def test_events_make_one_decision_and_say_so(world: World) -> None:
    service = Service(world, goals=LEVEL)
    service.run(45)
    service.balancer.drain(3, True, "anna")
    service.balancer.drain(2, True, "anna")
    service.balancer.drain(2, False, "anna")
    service.run(15)
    (cause,) = service.rows("SELECT cause FROM decision ORDER BY id DESC LIMIT 1")[0]
    assert cause == "drain of broker 3 asked by anna, drain of broker 2 asked by anna, no drain of broker 2 asked by anna"
    with pytest.raises(Refused, match="no broker 9; registered are 1, 2, 3") as refused:
        service.balancer.drain(9, True, "anna")
    assert refused.value.missing
    service.stop()


def test_a_lost_broker_is_planned_away_and_told_before_that(world: World) -> None:
    service = Service(world, goals=LEVEL)
    service.run(45)
    world.cluster.faults.kill(2)
    state = service.run(30)
    assert "broker 2 has been down for" in said(state)
    state = service.run(60)
    assert state.plan is not None
    assert service.rows("SELECT verdict FROM decision WHERE cause = 'broker 2 lost'") == [("planned",)]
    service.stop()


def test_metadata_that_lags_and_reporters_that_are_silent_hold_planning(world: World) -> None:
    service = Service(world)
    service.run(40)
    world.held = "this replica lags"
    state = service.run(20)
    assert not state.ready
    assert "The metadata may be older than the cluster: this replica lags." in said(state) or state.plan is not None
    assert state.why_not_ready == ("The metadata may be older than the cluster: this replica lags.",)
    world.held = None
    world.cluster.faults.lost_reporters.update((1, 2, 3))
    state = service.run(60)
    assert state.why_not_ready[0].startswith("No reporter has been heard for")
    service.stop()


def test_a_topic_that_cannot_be_read_is_said_instead_of_blaming_reporters(world: World) -> None:
    world.unread = "there is no topic; is a reporter running?"
    service = Service(world)
    assert service.run(20).why_not_ready == ("Samples cannot be read: there is no topic; is a reporter running?",)
    world.unread = None
    service.turns("samples")
    state = service.run(20)
    assert state.ready
    service.stop()


def test_an_unreachable_cluster_is_told_in_a_sentence_that_ends_once(world: World) -> None:
    service = Service(world)
    service.run(40)
    world.away = "no broker answers. Check that they are up."
    assert said(service.run(40)).endswith("so nothing is decided here: no broker answers. Check that they are up.")
    service.stop()


def test_a_plan_that_is_only_shown_hides_neither_a_lost_broker_nor_silence(world: World) -> None:
    service = Service(world)
    state = service.run(40)
    assert state.plan is not None
    assert "is only shown" in said(state)
    world.cluster.faults.lost_reporters.update((1, 2, 3))
    state = service.run(60)
    assert "is only shown" in said(state)
    assert "No reporter has been heard for" in said(state)
    service.stop()


def test_a_decision_that_could_not_be_written_down_was_not_made(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="auto")
    service.run(25)
    world.pass_time(10)
    service.turns("metadata", "samples")
    with sqlite3.connect(service.folder / "history" / "decisions.db") as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON decision BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    state = service.turns("planner", "executor")
    assert state.plan is None, "so nothing is done about it"
    assert not world.cluster.list_partition_reassignments()
    worker = next(w for w in state.workers if w.name == "planner")
    assert worker.error is not None
    assert "disk full" in worker.error
    with sqlite3.connect(service.folder / "history" / "decisions.db") as db:
        db.execute("DROP TRIGGER full")
    state = service.run(15)
    assert state.plan is not None
    assert service.rows("SELECT cause FROM decision WHERE verdict = 'planned'") == [("ready",)], "the cause was kept"
    service.stop()


def test_numbers_that_cannot_be_trusted_are_named_where_they_keep_it_from_acting(world: World) -> None:
    world.cluster.create_topic(TopicSpec("alone", ((2, 1),), np.full(1, MB), 1.0, np.full(1, 50 * MB), filled=1.0))
    service = Service(world)
    service.run(40)
    world.cluster.faults.lose_reporter(1)
    world.cluster.faults.lose_reporter(2)
    service.goals.write_text(LEVEL.replace("network_in", "network_out"))  # consumers are seen by leaders alone
    service.run(40)
    state = service.run(65)
    assert "Reporters of 2 of 3 serving brokers are not heard: 1, 2." in said(state)
    world.cluster.faults.restore_reporter(1)
    state = service.run(30)
    assert state.ready
    service.balancer.plan_now("anna")
    state = service.turns("planner")
    assert "Left alone, because their numbers cannot be trusted: partition alone-0" in said(state)
    assert "older than 30 s" in said(state)
    service.stop()


def test_a_bug_in_planning_is_told_and_makes_it_unhealthy_until_a_plan_is_made(world: World) -> None:
    broken = [True]

    def planner(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, watch: Watch) -> Plan:
        if broken:
            raise IndexError("index 7 is out of bounds")
        return plan(snapshot, goals, options, watch)

    service = Service(world, planner=planner)
    state = service.run(40)
    assert not state.healthy
    assert "Planning failed, IndexError: index 7 is out of bounds" in state.why_unhealthy[0]
    assert "Something is broken here" in said(state)
    assert service.rows("SELECT verdict FROM decision ORDER BY id DESC LIMIT 1") == [("failed",)]
    broken.clear()
    service.balancer.plan_now("anna")
    service.turns("planner")
    state = service.balancer.state()
    assert state.healthy
    assert state.plan is not None
    service.stop()
