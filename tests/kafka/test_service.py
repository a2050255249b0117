"""Services beside a real cluster's controllers: what reporters measure becomes a plan, and one instance at a time decides."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest
from kafka import TopicPartition

from tests.kafka.cluster import KafkaCluster
from tests.kafka.services import HORIZON, INTERVAL, Embedded, Process, Reporters, Row, audit
from tests.kafka.traffic import Traffic, administering, create_topic
from tests.kafka.watched import PATIENCE
from trimtab.http.glance import glance
from trimtab.service.views import Leadership

PAIRS = [[1, 2], [2, 3], [3, 4], [4, 1]]
LEVEL = list(islice(cycle(PAIRS), 8))
PER_TICK, SIZE = 4, 2000
RESTARTS = {"short": 10, "long": HORIZON, "stale_after": 15, "dead_after": 300}  # a broker may take long to come back


@dataclass
class Scene:
    kafka: KafkaCluster
    traffic: Traffic
    embedded: dict[int, Embedded]
    process: Process

    def rows(self) -> list[Row]:
        services: list[Embedded | Process] = [*self.embedded.values(), self.process]
        return [row for service in services for row in service.decisions()]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Four brokers under even traffic, three controllers with a service beside each: two in this process, of which one polls instead of
    reading the log, and one in its own."""
    folder = tmp_path_factory.mktemp("services")
    with KafkaCluster(controllers=3) as kafka:
        with administering(kafka) as admin:
            create_topic(admin, "flows", LEVEL)
        load = {("flows", n): PER_TICK for n in range(len(LEVEL))}
        with Traffic(kafka.bootstrap, load, size=SIZE) as traffic, Reporters(kafka):
            keys: dict[str, Any] = {"model": RESTARTS}
            process = Process(kafka, 102, folder / "102", **keys)
            embedded = {
                100: Embedded(kafka, 100, folder / "100", **keys),
                101: Embedded(kafka, 101, folder / "101", kraft_log=None, **keys),
            }  # fmt: skip
            yield Scene(kafka, traffic, embedded, process)
            for service in embedded.values():
                service.stop()
            process.end(signal.SIGKILL)


def leader(scene: Scene) -> int:
    """The active controller, as the services see it."""
    one = scene.embedded[100]
    assert one.until(lambda: one.balancer.state().leadership.controller is not None)
    found = one.balancer.state().leadership.controller
    assert found is not None
    return found


def decided(scene: Scene, node: int, verdict: str, since: str, seconds: float) -> float:
    """Seconds until the instance beside a node came to a verdict after a time."""
    begun = time.monotonic()
    watcher = scene.embedded.get(node, scene.embedded[100])
    where: Embedded | Process = scene.embedded.get(node) or scene.process
    came = watcher.until(lambda: any(r.verdict == verdict and r.began > since for r in where.decisions()), seconds)
    assert came, (node, where.decisions(), scene.embedded[100].balancer.state().why_nothing, scene.process.said)
    return time.monotonic() - begun


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())


def test_loads_in_the_model_are_what_is_produced(scene: Scene) -> None:
    one = scene.embedded[100]
    assert one.until(lambda: one.balancer.state().model.windows_reached["long"] >= 0.99), one.balancer.state()
    end = time.monotonic()
    snapshot = json.loads(one.balancer.snapshot_text())
    spans = [  # the mean is over six windows, the newest of them not full; and what is newer than the newest reports is not in it
        (end - late - length, end - late) for late in np.arange(0.0, 3.1, 0.5) for length in np.linspace(5 / 6 * HORIZON, HORIZON, 6)
    ]
    truths = [scene.traffic.rate(("flows", 0), span) for span in spans]
    loads = {p["partition"]: p for p in snapshot["partitions"] if p["topic"] == "flows"}
    assert len(loads) == len(LEVEL)
    for partition in loads.values():
        assert 0.95 * min(truths) <= partition["leader_load"]["network_in"] <= 1.05 * max(truths)
    state = one.balancer.state()
    assert (state.model.decode_errors, state.model.lost, state.healthy) == (0, 0, True)
    assert state.model.counts["repeated"] == 0
    assert {b.id: b.voice for b in state.brokers} == dict.fromkeys((1, 2, 3, 4), "fresh")


def test_a_skew_made_by_hand_is_planned_within_two_intervals(scene: Scene) -> None:
    node = leader(scene)
    decided(scene, node, "nothing", "", PATIENCE)
    assert not [r for r in scene.rows() if r.verdict == "planned"], "it was level before"
    since = now()
    with administering(scene.kafka) as admin:
        admin.alter_partition_reassignments({TopicPartition("flows", n): [1, 2] for n in (1, 2, 3, 5)})
    assert decided(scene, node, "planned", since, 2 * INTERVAL) <= 2 * INTERVAL
    for other in {100, 101} - {node}:
        state = scene.embedded[other].balancer.state()
        assert f"Node {node} is the active controller" in state.why_nothing[0]
        assert state.ready, "its model is warm"
        assert state.plan is None


@pytest.mark.parametrize("kraft_log", [True, False])
def test_a_second_instance_for_a_node_decides_nothing_and_says_why(scene: Scene, tmp_path: Path, kraft_log: bool) -> None:
    node = next(n for n in scene.embedded)
    keys: dict[str, Any] = {} if kraft_log else {"kraft_log": None}
    copied = Embedded(scene.kafka, node, tmp_path / "copied", instance="copied", **keys)
    try:
        assert copied.until(lambda: copied.balancer.state().leadership.shared is not None), copied.balancer.state()
        state = copied.balancer.state()
        why = f"Another instance on this machine stands beside node {node} of this cluster already, so this one decides nothing"
        assert state.why_not_ready[0].startswith(why) or not state.model.brokers
        assert not state.leadership.leads
        assert copied.decisions() == []
        assert scene.embedded[node].balancer.state().leadership.shared is None
    finally:
        assert copied.stop()


def test_when_the_active_controller_is_killed_another_instance_plans_within_an_interval(scene: Scene) -> None:
    before, since = leader(scene), now()
    scene.kafka.kill_broker(before)
    one = scene.embedded[next(n for n in (100, 101) if n != before)]

    def known() -> Leadership:
        return one.balancer.state().leadership

    assert one.until(lambda: known().controller not in (None, before) and known().error is None), known()
    after = known().controller
    assert after is not None
    took = decided(scene, after, "planned", since, INTERVAL + 5)
    assert took <= INTERVAL
    assert audit(scene.rows()) == []
    assert {r.controller for r in scene.rows() if r.verdict == "planned"} == {before, after}
    scene.kafka.start_broker(before)


def test_a_restart_of_a_broker_plans_no_byte_and_says_what_balance_waits_for(scene: Scene) -> None:
    """137 to 280 MB were planned over the brokers that were left."""
    node, since = leader(scene), now()
    where: Embedded | Process = scene.embedded.get(node) or scene.process
    one = scene.embedded[100]

    def first(since: str, true: Callable[[Row], bool]) -> Row | None:
        return next((row for row in sorted(where.decisions()) if row.began > since and true(row)), None)

    scene.kafka.stop_broker(4)
    assert one.until(lambda: {"down", "under_replicated"} <= {*one.balancer.state().cluster.waits}), one.balancer.state().cluster
    shown = glance(one.balancer.state())
    assert (shown.label, shown.tone) == ("Cluster unwell", "some")
    assert "broker 4 is" in shown.sentence.lower()
    assert one.until(lambda: first(since, lambda row: "Balance waits: " in row.reason)), where.decisions()
    scene.kafka.start_broker(4)
    assert one.until(lambda: first(since, lambda row: "balance waits no longer" in row.cause)), (where.decisions(), one.balancer.state())
    begun = first(since, lambda row: "Balance waits: " in row.reason)
    over = first(since, lambda row: "balance waits no longer" in row.cause)
    assert begun is not None
    assert over is not None
    assert not [row for row in where.decisions() if begun.began < row.began < over.began and row.verdict == "planned"]


def test_a_process_reloads_on_sighup_and_ends_cleanly_on_sigterm(scene: Scene) -> None:
    process = scene.process
    (process.folder / "goals.yaml").write_text("version: 1\ngoals: [{kind: usage_distribution, resource: netwrk_in}]\n")
    process.send(signal.SIGHUP)
    assert process.hears("the old goals stay in force"), process.said
    begun = time.monotonic()
    assert process.end(signal.SIGTERM) == 0, process.said
    assert time.monotonic() - begun < 8
    assert process.said[-1].endswith("Z stopped")
    table = ds.dataset(process.folder / "history" / "samples", partitioning="hive").to_table()
    rows = list(zip(*(table[c].to_pylist() for c in ("time", "broker", "topic", "partition", "metric")), strict=True))
    assert len(rows) == len(set(rows)) > 1000
    again = Process(scene.kafka, process.node, process.folder)
    try:
        assert again.hears("ready: enough is known to decide"), again.said
    finally:
        assert again.end(signal.SIGTERM) == 0, again.said
    table = ds.dataset(process.folder / "history" / "samples", partitioning="hive").to_table()
    rows = list(zip(*(table[c].to_pylist() for c in ("time", "broker", "topic", "partition", "metric")), strict=True))
    assert len(rows) == len(set(rows)), "a restart counts nothing twice"


def test_everything_ends_in_time(scene: Scene) -> None:
    for service in scene.embedded.values():
        begun = time.monotonic()
        assert service.stop()
        assert time.monotonic() - begun < 8
