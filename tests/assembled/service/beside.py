"""A service beside a simulated cluster, in virtual time: tests take the turns of its threads."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from cluster_model.errors import ExternalError
from cluster_model.metadata.description import QuorumReport
from cluster_model.metadata.follower import Update
from cluster_model.metadata.image import MetadataImage
from metrics_reporter.reporter import Clock
from metrics_reporter.topic import EmbeddedTopic, TopicError
from optimizer.planner import plan
from trimtab.capture.reading import BrokerReading, LogEnds, LogSizes, TopicPartition
from trimtab.execution.ledger import MemoryDocuments
from trimtab.executor import Executor
from trimtab.service.balancer import Balancer
from trimtab.service.claim import Claim
from trimtab.service.config import ServiceConfig
from trimtab.service.planning import Planner
from trimtab.service.views import StateView
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.collector import SimulatedReporter
from trimtab.simulator.executor import SimulatedExecutor
from trimtab.simulator.spec import MB, BrokerSpec, TopicSpec
from trimtab.simulator.spec import TopicPartition as Named
from trimtab.simulator.traffic import Traffic

NODE, OTHER = 100, 101
REPORT_SECONDS = 5.0
GOALS = """
version: 1
goals:
  - {kind: usage_distribution, resource: network_in}
"""
LEVEL = GOALS.replace("network_in", "network_in, bound: 3.0, var: 6.0")


def skewed_cluster() -> SimulatedCluster:
    """Three brokers of which the third has nothing."""
    cluster = SimulatedCluster([BrokerSpec(i) for i in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=5.0)
    many = 12
    assignment = tuple((1, 2) if n % 2 else (2, 1) for n in range(many))
    cluster.create_topic(TopicSpec("orders", assignment, np.full(many, MB), 1.0, np.full(many, 50 * MB), filled=1.0))
    return cluster


class SimulatedFollower:
    """The metadata log of a simulated cluster."""

    def __init__(self, cluster: SimulatedCluster, world: World) -> None:
        self._cluster, self._world, self._offset = cluster, world, 0
        self.image = MetadataImage()

    def poll(self, now_ms: int) -> Update:
        if self._world.held is not None:
            return Update((), held=self._world.held)
        found = self._cluster.metadata_since(self._offset)
        first = self._offset == 0
        self._offset += len(found)
        for at_ms, event in found:
            self.image.apply(event, at_ms)
        return Update([event for _, event in found], replaced=first, offset=self._offset)


class World:
    """The cluster, its reporters and topic, and who its active controller is; a `Reach` for services."""

    def __init__(self, folder: Path, cluster: SimulatedCluster | None = None) -> None:
        self.folder = folder
        self.name = uuid4().hex  # on this machine, where other tests run
        self.cluster = skewed_cluster() if cluster is None else cluster
        self.topic_file = folder / "topic.db"
        self.topic = EmbeddedTopic(self.topic_file, retention_ms=3_600_000)
        self.reporters = {b: SimulatedReporter(self.cluster, b, self.topic) for b in self.cluster.broker_ids}
        self.controller, self.epoch = NODE, 1
        self.held: str | None = None
        self.away: str | None = None
        self.hidden: set[str] = set()  # topics that may not be described
        self.dirs: dict[int, BrokerReading] = {}  # what brokers tell of their log directories
        self.counted: list[list[int]] = []  # brokers whose logs and offsets were asked for
        self.unread: str | None = None  # why the topic cannot be read
        for reporter in self.reporters.values():
            reporter.report()

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.cluster.now_ms / 1000, lambda: self.cluster.now_ms)

    def pass_time(self, seconds: float) -> None:
        """Virtual time, with reporters at work."""
        left = seconds
        while left > 0:
            self.cluster.step(REPORT_SECONDS)
            for reporter in self.reporters.values():
                reporter.report()
            left -= REPORT_SECONDS

    def elect(self, node: int) -> None:
        self.controller, self.epoch = node, self.epoch + 1

    # -- Reach ---------------------------------------------------------------------------------------------

    def follow(self) -> tuple[str, SimulatedFollower]:
        if self.away is not None:
            raise ExternalError(self.away, retriable=True)
        return self.cluster.cluster_id, SimulatedFollower(self.cluster, self)

    def quorum(self) -> QuorumReport:
        if self.away is not None:
            raise ExternalError(self.away, retriable=True)
        return QuorumReport(self.controller, self.epoch, 1)

    def min_isr(self, topics: Collection[str]) -> dict[str, int]:
        return {topic: self.cluster.min_isr.get(topic, 1) for topic in topics if topic not in self.hidden}

    def log_dirs(self, brokers: Collection[int]) -> dict[int, BrokerReading]:
        return {broker: self.dirs[broker] for broker in brokers if broker in self.dirs}

    def counters(self, leads: Mapping[int, list[TopicPartition]]) -> dict[int, BrokerReading]:
        """As if every record had one byte."""
        self.counted.append(sorted(leads))
        at, cluster = self.cluster.now_ms / 1000, self.cluster
        found = {}
        for broker, led in leads.items():
            rows = {key: cluster.controller.partitions[Named(*key)].row for key in led if cluster.has(Named(*key))}
            ends = {key: int(cluster.logs.end[row]) for key, row in rows.items()}
            starts = {key: int(cluster.logs.start[row]) for key, row in rows.items()}
            sizes = {key: ends[key] - starts[key] for key in rows}
            found[broker] = BrokerReading(LogSizes(at, sizes), LogEnds(at, ends, starts))
        return found

    def topic_reader(self) -> EmbeddedTopic:
        if self.unread is not None:
            raise TopicError(self.unread)
        return EmbeddedTopic(self.topic_file)


class _Reach:
    """`World` as a `Reach` of the instance beside a node."""

    def __init__(self, world: World, node: int | None = NODE) -> None:
        self.follow, self.quorum, self.topic, self.min_isr = world.follow, world.quorum, world.topic_reader, world.min_isr
        self.counters, self.log_dirs = world.counters, world.log_dirs
        self._claim = Claim(world.name, node, None)
        self.shared, self.close = self._claim.refused, self._claim.close


class Service:
    """A `Balancer` whose threads take turns when told to."""

    def __init__(
        self, world: World, *, node: int = NODE, executor: Executor | None = None, goals: str = GOALS,
        planner: Planner = plan, folder: str | None = None, **keys: Any,
    ) -> None:  # fmt: skip
        self.world, self.folder = world, world.folder / (folder or f"node-{node}")
        self.folder.mkdir(exist_ok=True)
        self.goals = self.folder / "goals.yaml"
        if not self.goals.exists():
            self.goals.write_text(goals)
        config = configured(self.folder, node, **keys)
        self.balancer = Balancer(config, executor, reach=_Reach(world, node), clock=world.clock, planner=planner)

    def turns(self, *names: str) -> StateView:
        """One turn of each thread, or of those named."""
        for name, worker in self.balancer.workers.items():
            if not names or name in names:
                worker.once()
        return self.balancer.state()

    def run(self, seconds: float) -> StateView:
        """Time passes, turns are taken every few seconds."""
        left = seconds
        while left > 0:
            self.world.pass_time(REPORT_SECONDS)
            self.turns()
            left -= REPORT_SECONDS
        return self.balancer.state()

    def stop(self) -> None:
        """As `Balancer.stop` ends threads that run."""
        for worker in self.balancer.workers.values():
            worker.ask_to_stop()
        self.balancer._execution.stop()
        self.balancer.stop()

    def rows(self, query: str) -> list[Any]:
        """From the history of decisions."""
        with sqlite3.connect(self.folder / "history" / "decisions.db") as db:
            return db.execute(query).fetchall()


def configured(folder: Path, node: int | None = NODE, **keys: Any) -> ServiceConfig:
    """A configuration with short times; `keys` as in the file."""
    document: Mapping[str, Any] = {
        "version": 1,
        "kafka": {"bootstrap_servers": "127.0.0.1:1"},
        "node_id": node,
        "goals": str(folder / "goals.yaml"),
        "interval": 60,
        "debounce": 5,
        "check": 5,
        "model": {"short": 20, "long": 60, "stale_after": 30, "dead_after": 60},
        "history": {"folder": str(folder / "history"), "write_every": 30},
        "http": {"enabled": False},
        "limits": {"cooldown": 10},
        **keys,
    }
    return ServiceConfig.model_validate(document)


def simulated_executor(world: World, record: MemoryDocuments | None = None, instance: str = "simulated") -> SimulatedExecutor:
    return SimulatedExecutor(world.cluster, throttle=50 * MB, record=record, instance=instance)


def said(state: StateView) -> str:
    """Why the service does nothing, in its words."""
    return " ".join(state.why_nothing)
