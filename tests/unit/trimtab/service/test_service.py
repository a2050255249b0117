"""The service decides only where it leads and knows enough, writes down what it decides first, and always says why nothing happens."""

from __future__ import annotations

import sqlite3
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from cluster_model.metadata.follower import Update
from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.options import PlanOptions, Watch
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.unit.trimtab.service.beside import (
    LEVEL,
    NODE,
    OTHER,
    Service,
    SimulatedFollower,
    World,
    simulated_executor,
)
from trimtab.execution.ledger import MemoryDocuments
from trimtab.http.glance import glance
from trimtab.service.views import Refused, StateView
from trimtab.simulator.executor import SimulatedExecutor
from trimtab.simulator.spec import MB, TopicPartition


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def said(state: StateView) -> str:
    return " ".join(state.why_nothing)


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
    world.cluster.alter_partition_reassignments({TopicPartition(change.topic, change.partition): (3, 1)})
    world.pass_time(20)
    service.turns("metadata")
    with pytest.raises(Refused, match=rf"The cluster is not as it was .* replicas of orders-{change.partition} are \[3, 1\] now"):
        service.balancer.approve(plan.plan_id, "anna")
    state = service.run(10)
    assert state.plan is not None
    assert state.plan.plan_id != plan.plan_id, "another one is there in its place"
    service.stop()


def test_auto_mode_needs_nobody_and_no_executor_is_said(world: World) -> None:
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
    assert "let go of, what was in progress goes on by itself" in state.plan.note
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


def test_a_stop_does_not_wait_for_the_compiler(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One compiler serves all threads: while it works for the planner, whoever reads metadata waits for it, too."""
    asked, done = threading.Semaphore(0), threading.Event()

    def wait_for_the_compiler() -> None:
        asked.release()
        assert done.wait(60)

    def poll(self: SimulatedFollower, now_ms: int) -> Update:
        wait_for_the_compiler()
        return Update((), held="stopped")

    monkeypatch.setattr("trimtab.warmup.warm_up", wait_for_the_compiler)
    monkeypatch.setattr(SimulatedFollower, "poll", poll)
    balancer = Service(world).balancer.start()
    try:
        assert all(asked.acquire(timeout=30) for _ in range(2))
        assert balancer.stop()
        assert {name for name in ("planner", "metadata") if not balancer.workers[name].join(0)} == {"planner", "metadata"}
    finally:
        done.set()
    assert all(worker.join(30) for worker in balancer.workers.values())


def test_a_start_that_compiles_for_long_is_healthy_and_not_ready_and_says_how_far_it_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A liveness probe that ended it would start the compiling again, for ever."""
    asked, done = threading.Event(), threading.Event()

    def wait_for_the_compiler() -> None:
        asked.set()
        assert done.wait(60)

    monkeypatch.setattr("trimtab.warmup.warm_up", wait_for_the_compiler)
    service = Service(world)
    planner = service.balancer.workers["planner"]
    planner.start()
    try:
        assert asked.wait(30)
        world.pass_time(900)
        state = service.turns("metadata", "samples")
        assert (state.healthy, state.ready) == (True, False)
        assert state.why_not_ready == state.why_nothing
        assert said(state).startswith("Starting, for 15 min so far: the planner is compiled or loaded.")
        assert (glance(state).tone, glance(state).label) == ("plain", "Starting")
    finally:
        done.set()
        planner.ask_to_stop()
        assert planner.join(30)
    assert service.balancer.starting is None
    service.stop()


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


def test_an_http_interface_that_ended_by_itself_is_an_illness(world: World) -> None:
    service = Service(world, http={"port": 0})
    with service.balancer as balancer:
        assert balancer.trouble() == ()
        server = balancer._server
        assert server is not None
        server.stop()
        (why,) = balancer.trouble()
        assert why.startswith("the HTTP interface has ended: ")
        assert not balancer.state().healthy


def test_resuming_what_is_not_paused_changes_nothing(world: World) -> None:
    """It made a decision at once, with a cause that never was."""
    service = Service(world)
    service.run(40)
    before = service.rows("SELECT COUNT(*) FROM decision")
    assert not service.balancer.resume("anna")
    service.run(15)
    assert service.rows("SELECT COUNT(*) FROM decision") == before
    service.balancer.pause("anna", "")
    assert service.balancer.resume("anna")
    service.run(15)
    assert service.rows("SELECT COUNT(*) FROM decision WHERE cause = 'resumed by anna'") == [(1,)]
    service.stop()


def test_a_pause_survives_a_restart_and_stops_steps(world: World) -> None:
    service = Service(world, executor=simulated_executor(world), mode="auto")
    service.run(35)
    for _ in range(10):
        service.turns("planner", "executor")
    service.balancer.pause("anna", "black friday")
    before = world.cluster.list_partition_reassignments().keys()
    state = service.turns("executor")
    assert "Paused by anna since" in said(state)
    assert state.plan is not None
    assert "no further step while paused by anna" in state.plan.note
    assert world.cluster.list_partition_reassignments().keys() == before
    service.stop()
    again = Service(world, executor=simulated_executor(world), mode="auto")
    state = again.run(90)
    assert state.paused
    assert "black friday" in said(state)
    assert state.plan is None
    with pytest.raises(Refused, match="Resume first"):
        again.balancer.plan_now("bert")
    again.balancer.resume("anna")
    assert again.run(10).plan is not None
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


def test_a_restart_does_not_say_that_reporters_are_silent_before_it_has_read_what_they_wrote(world: World) -> None:
    service = Service(world)
    state = service.turns("metadata", "planner")
    assert state.why_not_ready == ("Warming up: what the internal topic already has is being read.",)
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


def test_limits_of_an_hour_are_not_forgotten_by_a_restart(world: World) -> None:
    limits = {"moves_per_hour": 5, "cooldown": 5}
    service = Service(world, executor=simulated_executor(world), mode="auto", limits=limits)
    used = "SELECT COUNT(*) FROM decision WHERE reason = 'Not now: 5 changes in the last hour; 5 are allowed.'"
    service.run(60)
    assert service.rows("SELECT SUM(replica_moves) FROM outcome") == [(5,)]
    state = service.run(80)
    assert "Not now: 5 changes in the last hour" in said(state)
    ((before,),) = service.rows(used)
    assert before > 0
    service.stop()
    again = Service(world, executor=simulated_executor(world), mode="auto", limits=limits)
    again.run(20)
    assert again.rows(used) == [(before + 1,)]
    again.stop()


def test_restarts_count_no_sample_twice_and_warm_the_model_at_once(world: World) -> None:
    import pyarrow.dataset as ds

    service = Service(world)
    service.run(100)
    service.stop()
    world.pass_time(20)
    again = Service(world)
    state = again.turns()
    for _ in range(5):
        state = again.turns()
    assert state.ready, state.why_not_ready
    assert state.model.windows_reached["long"] > 0.9, "the topic has what came before the restart"
    again.run(60)
    again.stop()
    table = ds.dataset(again.folder / "history" / "samples", partitioning="hive").to_table()
    rows = list(zip(*(table[c].to_pylist() for c in ("time", "broker", "topic", "partition", "metric")), strict=True))
    assert len(rows) == len(set(rows))
    times = {row[0] for row in rows if row[4] == "network_in" and row[1] == 1}
    assert len(times) == 180 / 5, "and none is missing"


def test_what_it_was_told_and_asked_comes_back(world: World) -> None:
    service = Service(world)
    seen: list[int] = []
    end = service.balancer.watch(lambda: seen.append(1))
    service.run(40)
    assert seen
    end()
    count = len(seen)
    service.run(5)
    assert len(seen) == count
    assert '"cluster_id"' in service.balancer.snapshot_text()
    assert "broker 3" in service.balancer.explain(broker=3).lower()
    assert "orders-1" in service.balancer.explain(partition="orders-1")
    with pytest.raises(Refused, match="orders"):
        service.balancer.explain(partition="orders-99")
    assert "usage_distribution" in service.balancer.goals_text()
    service.balancer.plan_now("anna")
    service.turns("planner")
    assert service.rows("SELECT cause FROM decision ORDER BY id DESC LIMIT 1") == [("asked by anna",)]
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


def test_a_topic_that_goes_away_for_a_while_is_read_on_where_it_was(world: World) -> None:
    service = Service(world)
    service.run(40)
    before = service.balancer.state().model
    service.balancer._feed._topic.close()  # type: ignore[union-attr]
    world.pass_time(10)
    failed = service.turns("samples")
    assert next(w.error for w in failed.workers if w.name == "samples") is not None
    assert failed.healthy
    after = service.run(5).model
    assert after.records == before.records + 3 * (10 + 5) // 5
    assert after.counts["repeated"] == 0
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


def test_a_plan_nobody_approves_in_time_gives_way_to_a_newer_one(world: World) -> None:
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


def test_numbers_that_cannot_be_trusted_are_named_where_they_keep_it_from_acting(world: World) -> None:
    service = Service(world)
    service.run(40)
    world.cluster.faults.lose_reporter(1)
    world.cluster.faults.lose_reporter(2)
    service.goals.write_text(LEVEL.replace("network_in", "network_out"))  # consumers, which followers do not measure
    service.run(40)
    state = service.run(65)
    assert "Reporters of 2 of 3 serving brokers are not heard: 1, 2." in said(state)
    world.cluster.faults.restore_reporter(1)
    state = service.run(30)
    assert state.ready
    service.balancer.plan_now("anna")
    state = service.turns("planner")
    assert "Left alone, because their numbers cannot be trusted: partition orders-" in said(state)
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
    assert "killed in the middle" in decision.outcomes[-1][3]
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


def test_a_pause_and_drains_are_of_the_cluster(world: World) -> None:
    """A failover in the middle of maintenance goes on neither with plans nor with the broker that is being emptied."""
    record = MemoryDocuments()
    first = Service(world, executor=simulated_executor(world, record, "first"), mode="approve")
    second = Service(world, node=OTHER, executor=simulated_executor(world, record, "second"), mode="approve")
    first.run(15)
    second.run(15)
    first.balancer.pause("anna", "maintenance")
    first.balancer.drain(3, True, "anna")
    first.run(5)
    state = second.run(15)
    assert state.paused
    assert {b.id: b.state for b in state.brokers}[3] == "draining"
    second.balancer.resume("ben")
    second.run(5)
    first.run(15)
    assert not first.balancer.state().paused
    first.stop()
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
