"""A start, a stop and a restart lose nothing: pauses, drains, limits, samples and what operators asked for."""

from __future__ import annotations

import threading

import pytest

from cluster_model.metadata.follower import Update
from tests.assembled.service.beside import OTHER, Service, SimulatedFollower, World, said, simulated_executor
from trimtab.execution.ledger import MemoryDocuments
from trimtab.http.glance import glance
from trimtab.service.views import Refused


def test_a_stop_does_not_wait_for_the_compiler(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One compiler serves all threads: while it works for the planner, the reader of metadata waits for it, too."""
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
        assert said(state).startswith("Starting, for 15 min so far: the planner is being compiled or loaded.")
        assert (glance(state).tone, glance(state).label) == ("plain", "Starting")
    finally:
        done.set()
        planner.ask_to_stop()
        assert planner.join(30)
    assert service.balancer.starting is None
    service.stop()


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


def test_a_restart_does_not_say_that_reporters_are_silent_before_it_has_read_what_they_wrote(world: World) -> None:
    service = Service(world)
    state = service.turns("metadata", "planner")
    assert state.why_not_ready == ("Warming up: what the internal topic already has is being read.",)
    service.stop()


def test_limits_of_an_hour_are_not_forgotten_by_a_restart(world: World) -> None:
    limits = {"moves_per_hour": 5, "cooldown": 5}
    service = Service(world, executor=simulated_executor(world), mode="auto", limits=limits)
    used = "SELECT COUNT(*) FROM decision WHERE reason LIKE 'Not now: 5 changes in the last hour; 5 are allowed, the next at %'"
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
