"""`trimtab execute --dry-run` tells the steps that the execution then takes, and takes none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from metrics_reporter.reporter import Clock
from trimtab.commands.execution_text import write_dry_run
from trimtab.execution.documents import Settings
from trimtab.execution.dry_run import DryRun, Elected, Moved, Throttled, dry_run
from trimtab.execution.engine import Execution
from trimtab.execution.ledger import MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.pacing import AUTO
from trimtab.execution.port import Answers, Resource
from trimtab.execution.state import Limits, Partition, Task
from trimtab.execution.throttle import LEADER_RATE
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

COUNT = 7


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    made.create_topic(TopicSpec("t", ((1, 2),) * COUNT, np.zeros(COUNT), 1.0, np.full(COUNT, 100 * MB), filled=1.0))
    return made


def order_for(cluster: SimulatedCluster, batches: tuple[int, ...] = (0,) * COUNT) -> Order:
    """Broker 1 is emptied to broker 3, which leads then; of partition 0 the leader changes only."""
    tasks = [Task(Partition("t", 0), (1, 2), (2, 1), 1, 2, batch=batches[0])]
    tasks += [Task(Partition("t", n), (1, 2), (3, 2), 1, 3, batch=batches[n]) for n in range(1, COUNT)]
    return Order("sha256:x", cluster.cluster_id, tuple(tasks), racks=False, batch_pause=3600.0 if any(batches) else 0.0)


SETTINGS = Settings(throttle=round(20 * MB), limits=Limits(into=2, out_of=2, reserve=0.0))


def state_of(cluster: SimulatedCluster) -> object:
    port = SimulatedPort(cluster)
    return port.look((), (1, 2, 3)), deepcopy(cluster.configs), cluster.throttle, cluster.now_ms


def moves(made: DryRun) -> list[list[int]]:
    return [[t.name.number for t in s.tasks] for s in made.steps if isinstance(s, Moved)]


def test_it_changes_nothing_and_tells_every_step(cluster: SimulatedCluster) -> None:
    before = state_of(cluster)
    made = dry_run(order_for(cluster), SETTINGS, SimulatedPort(cluster), {})
    assert state_of(cluster) == before
    first, *_, last = made.steps
    assert isinstance(first, Throttled)
    assert first.changes[Resource("broker", "3")][LEADER_RATE] == str(20_000_000)
    assert isinstance(last, Throttled)
    assert last.off
    assert {k: set(of.values()) for k, of in last.changes.items()} == {k: {None} for k in first.changes}
    assert sorted(n for step in moves(made) for n in step) == list(range(COUNT))
    elected = [t.name.number for s in made.steps if isinstance(s, Elected) for t in s.tasks]
    assert sorted(elected) == [0], "a leader whose broker stays a replica is elected; one that goes is followed at once"
    assert (made.unchanged, made.left, made.waits) == ((), [], "")


def test_a_throttle_that_was_there_before_comes_back(cluster: SimulatedCluster) -> None:
    mine = Resource("broker", "3")
    SimulatedPort(cluster).set_configs({mine: {LEADER_RATE: "5000000"}})
    steps = [s for s in dry_run(order_for(cluster), SETTINGS, SimulatedPort(cluster), {}).steps if isinstance(s, Throttled)]
    assert [(s.off, s.changes[mine][LEADER_RATE]) for s in steps] == [(False, "20000000"), (True, "5000000")]


def test_the_steps_are_those_of_the_execution(cluster: SimulatedCluster) -> None:
    """Its limits hold on paper, too: no more copies at once into a broker than it makes."""
    order = order_for(cluster)
    made = dry_run(order, SETTINGS, SimulatedPort(cluster), {})
    assert max(sum(n > 0 for n in step) for step in moves(made)) == 2

    asked: list[list[int]] = []

    class Noting(SimulatedPort):
        def reassign(self, targets: Mapping[Partition, tuple[int, ...] | None]) -> Answers:
            asked.append([n.number for n in targets])
            return super().reassign(targets)

    clock = Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)
    execution = Execution(Noting(cluster), MemoryLedger(), clock, instance="here")
    execution.begin(order, SETTINGS)
    for _ in range(200):
        if execution.turn().over:
            break
        cluster.step(1)
    assert cluster.replicas(TopicPartition("t", 1)) == (3, 2)
    assert [n for step in asked for n in step] == [n for step in moves(made) for n in step]
    assert asked[0] == moves(made)[0]


def test_a_plan_with_batches_is_told_batch_by_batch(cluster: SimulatedCluster) -> None:
    made = dry_run(order_for(cluster, (1, 1, 1, 1, 2, 2, 3)), SETTINGS, SimulatedPort(cluster), {})
    of = [s.batch for s in made.steps if isinstance(s, Moved)]
    assert of == sorted(of)
    assert set(of) == {1, 2, 3}


def test_what_would_not_be_changed_and_what_would_wait_is_told(
    cluster: SimulatedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    order = order_for(cluster)
    gone = replace(order, tasks=(*order.tasks[:2], Task(Partition("t", 2), (2, 1), (3, 1), 2, 3), Task(Partition("no", 0), (1,), (2,))))
    write_dry_run(dry_run(gone, SETTINGS, SimulatedPort(cluster), {}), "text", None)
    told = capsys.readouterr().out
    assert "2 partitions would not be changed as planned:" in told
    assert "t-2: its replicas are [1, 2], not [2, 1] as the plan was made for" in told
    assert "no-0: there is no such partition any more" in told
    cluster.alter_partition_reassignments({TopicPartition("t", 1): (2, 3)})
    write_dry_run(dry_run(replace(order, tasks=order.tasks[1:2]), SETTINGS, SimulatedPort(cluster), {}), "text", None)
    told = capsys.readouterr().out
    assert "1 partition would wait, as the cluster is now: another tool reassigns t-1 to [2, 3]" in told


def test_text_and_json_name_the_steps(cluster: SimulatedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = replace(SETTINGS, throttle=AUTO, windows=("22:00-06:00",))
    made = dry_run(order_for(cluster), settings, SimulatedPort(cluster), {})
    write_dry_run(made, "text", None)
    told = capsys.readouterr().out
    assert "dry run of plan sha256:x: nothing is changed" in told
    assert "  1. set throttles of 10 MB/s: brokers 1, 2, 3; topics t\n" in told
    assert "t-1: [1, 2] → [3, 2], 100 MB\n" in told
    assert "elect the preferred leader of 1 partition\n       t-0: leader 2\n" in told
    assert "restore the throttles from before: brokers 1, 2, 3; topics t\n" in told
    assert "steps start only within 22:00-06:00, UTC" in told
    out = tmp_path / "steps.json"
    write_dry_run(made, "json", out)
    document = json.loads(out.read_text())
    assert document["dry_run"] is True
    types = [s["type"] for s in document["steps"]]
    assert types[0] == "throttles"
    assert {"reassignments", "elections", "throttles_off"} <= set(types)
    assert {(p["topic"], p["partition"]) for s in document["steps"] if s["type"] == "reassignments" for p in s["partitions"]} == {
        ("t", n) for n in range(COUNT)
    }
