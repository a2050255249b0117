"""Executions of services in the mode auto that are disturbed at several moments: the part of `tests.kafka.chaos` with a service beside each
of three controllers. After each case: no acknowledged record is lost or out of order, the plan is carried out by whichever service leads
then, no two decided at once, and no throttle is left.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.kafka.cluster import KafkaCluster
from tests.kafka.executions import Verified, looking, placed, throttles, until
from tests.kafka.services import Process, Reporters, audit
from tests.kafka.traffic import administering, create_topic, fill
from trimtab.capture.client import client_settings
from trimtab.execution.documents import Header, header_of, tasks_of
from trimtab.execution.ledger import Documents
from trimtab.execution.shared import SharedRecord
from trimtab.execution.state import Partition, Stage

COUNT, KILOBYTES = 8, 1_500
BEFORE = (1, 3, 4)
PATIENCE = 300.0
GOALS = """
version: 1
goals:
  - {{kind: usage_distribution, resource: replicas}}
constraints: {{exclude_topics: [{others}]}}
policy: {{wait: {{settle: 3s, leaders: 1s}}}}
"""


@dataclass
class Scene:
    cluster: KafkaCluster
    folder: Path
    topic: str
    services: dict[int, Process]

    def serve(self, node: int) -> None:
        place = self.folder / str(node)
        place.mkdir(exist_ok=True)
        with looking(self.cluster) as port:
            others = sorted({n.topic for n in port.look(()).partitions} - {self.topic} | {"__*"})
        (place / "own.yaml").write_text(GOALS.format(others=", ".join(map(json.dumps, others))))
        execution = {"throttle": "1MB", "concurrency": 2, "reserve": 1}
        self.services[node] = Process(
            self.cluster, node, place, mode="auto", goals="own.yaml", execution=execution, limits={"cooldown": 3600}
        )

    @property
    def leading(self) -> int:
        """The node whose service carries the plan out."""
        return next(n for n, s in self.services.items() if any("is being carried out" in line for line in s.said))

    def documents(self) -> Documents:
        """What the cluster's record tells of executions."""
        record = SharedRecord(self.cluster.bootstrap, client_settings(None).options, self.cluster.cluster_id)
        try:
            return record.read()
        finally:
            record.close()

    def header(self) -> Header | None:
        return header_of(self.documents())


def _controller_killed(scene: Scene) -> None:
    """The service lives on beside a node that leads no more: between two steps it lets go, and another goes on."""
    node = scene.leading
    scene.cluster.kill_broker(node)
    scene.services[node].hears("released, steps in progress", PATIENCE)
    scene.cluster.start_broker(node)


def _service_killed(scene: Scene) -> None:
    node = scene.leading
    scene.services[node].kill()
    scene.serve(node)


def _service_killed_and_history_lost(scene: Scene) -> None:
    node = scene.leading
    scene.services[node].kill()
    shutil.rmtree(scene.folder / str(node) / "history")
    scene.serve(node)


SERVICE_KINDS: Mapping[str, Callable[[Scene], None]] = {
    "service-deposed": _controller_killed,
    "service-killed": _service_killed,
    "service-history-lost": _service_killed_and_history_lost,
}


def run_services(cluster: KafkaCluster, name: str, done: int, folder: Path) -> list[str]:
    """One case; what was wrong after it, in sentences."""
    topic = f"chaos-{name}-{done}"
    names = [Partition(topic, n) for n in range(COUNT)]
    folder.mkdir(parents=True, exist_ok=True)
    with administering(cluster) as admin:
        create_topic(admin, topic, [BEFORE] * COUNT, {"min.insync.replicas": "2"})
        fill(cluster.bootstrap, {(topic, n): KILOBYTES for n in range(COUNT)}, 1000)
        scene = Scene(cluster, folder, topic, {})
        wrong: list[str] = []
        before = scene.header()
        with Verified(cluster, names, every=0.1) as traffic, Reporters(cluster):
            try:
                for node in sorted(cluster.quorum):
                    scene.serve(node)
                if not until(lambda: _reached(scene, done), PATIENCE, every=0.05):
                    raise RuntimeError(f"{done} partitions were not reached")
                SERVICE_KINDS[name](scene)
                if not until(lambda: _is_over(scene, before), PATIENCE, every=1.0):
                    raise RuntimeError(f"it did not end: {scene.header()}")
            except RuntimeError as error:
                wrong.append(str(error))
            finally:
                said = {node: service.said[-4:] for node, service in scene.services.items()}
                rows = [row for service in scene.services.values() for row in service.decisions()]
                for service in scene.services.values():
                    service.end(signal.SIGTERM)
        wrong += traffic.faults() + traffic.failed[:3] + audit(rows)
        wrong += _left(scene)
        admin.delete_topics([topic])
    return wrong if not wrong else [*wrong, json.dumps(said)]


def _reached(scene: Scene, done: int) -> bool:
    now = placed(scene.cluster, scene.topic).values()
    return sum(len(r) == len(BEFORE) and set(r) != set(BEFORE) for r in now) >= done and any(len(r) > len(BEFORE) for r in now)


def _is_over(scene: Scene, before: Header | None) -> bool:
    header = scene.header()
    return header is not None and header.state != "running" and (before is None or header.started_ms != before.started_ms)


def _left(scene: Scene) -> list[str]:
    documents, now = scene.documents(), placed(scene.cluster, scene.topic)
    header, (tasks, marks) = header_of(documents), tasks_of(documents)
    found = [] if header is not None and header.state == "done" else [f"the execution is {header and header.state}"]
    found += [f"{n} is {mark.stage}: {mark.reason}" for n, mark in marks.items() if mark.stage is not Stage.DONE]
    found += [f"{n} is on {list(r)}" for n, r in now.items() if r != (tasks[n].target if n in tasks else BEFORE)]
    left = throttles(scene.cluster, scene.topic)
    return found + ([f"throttles are left: {json.dumps(left)}"] if left else [])
