"""Reporters beside every broker and services beside every controller of a real cluster, in threads and in processes."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kafka.cluster import KafkaCluster
from tests.kafka.watched import PATIENCE, Watched
from trimtab import Balancer
from trimtab.reporter import run
from trimtab.reporter.config import ReporterConfig
from trimtab.service.config import load_config

INTERVAL = 10.0  # seconds between decisions
HORIZON = 20.0
GOALS = """
version: 1
goals:
  - {kind: usage_distribution, resource: network_in, bound: 0.2}
constraints: {exclude_topics: ["__*"]}
policy: {wait: {settle: 3s, leaders: 1s}}
"""


@dataclass(frozen=True, order=True)
class Row:
    """One decision, of whichever instance."""

    began: str
    ended: str
    instance: str
    controller: int
    epoch: int
    cause: str
    verdict: str
    reason: str
    plan_id: str | None
    replica_moves: int = 0


def decisions(folder: Path) -> list[Row]:
    """What an instance decided so far."""
    path = folder / "history" / "decisions.db"
    if not path.exists():
        return []
    query = "SELECT began, ended, instance, controller, controller_epoch, cause, verdict, reason, plan_id, replica_moves FROM decision"
    with sqlite3.connect(path, timeout=10) as db:
        return [Row(*row) for row in db.execute(query).fetchall()]


def configuration(kafka: KafkaCluster, node: int, folder: Path, /, **keys: Any) -> Path:
    """A service's configuration file with short times."""
    folder.mkdir(exist_ok=True)
    (folder / "goals.yaml").write_text(GOALS)
    document: Mapping[str, Any] = {
        "version": 1,
        "kafka": {"bootstrap_servers": kafka.bootstrap},
        "node_id": node,
        "instance": f"beside {node}",
        "kraft_log": str(kafka.metadata_log(node)),
        "goals": "goals.yaml",
        "interval": INTERVAL,
        "debounce": 1,
        "check": 2,
        "model": {"short": 10, "long": HORIZON, "stale_after": 15, "dead_after": 15},
        "history": {"write_every": 5},
        "http": {"enabled": False},
        **keys,
    }
    path = folder / "service.yaml"
    path.write_text(json.dumps(document))  # JSON is YAML
    return path


class Reporters:
    """A reporter beside every broker, each a thread of this process."""

    def __init__(self, kafka: KafkaCluster, interval: float = 1.0) -> None:
        self._stops = {broker: threading.Event() for broker in kafka.broker_ids}
        self._threads = [
            threading.Thread(target=run, args=(self._configured(kafka, broker, interval), stop), daemon=True)
            for broker, stop in self._stops.items()
        ]

    def _configured(self, kafka: KafkaCluster, broker: int, interval: float) -> ReporterConfig:
        return ReporterConfig.model_validate(
            {
                "version": 1, "broker": broker, "interval": interval, "kafka": {"bootstrap_servers": kafka.bootstrap},
                "collectors": {"kafka": {}},
            }
        )

    def __enter__(self) -> Reporters:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for stop in self._stops.values():
            stop.set()
        for thread in self._threads:
            thread.join(20)


class Embedded:
    """A `Balancer` of this process, and a wait for what it does."""

    def __init__(self, kafka: KafkaCluster, node: int, folder: Path, /, **keys: Any) -> None:
        self.node, self.folder = node, folder
        self.balancer = Balancer(load_config(configuration(kafka, node, folder, **keys)))
        self._news = threading.Condition()
        self.balancer.watch(self._tell)
        self.balancer.start()

    def _tell(self) -> None:
        with self._news:
            self._news.notify_all()

    def until(self, true: Callable[[], Any], seconds: float = PATIENCE) -> bool:
        """Whether it came true in time; looked at whenever something happened."""
        with self._news:
            return bool(self._news.wait_for(lambda: bool(true()), seconds))

    def decisions(self) -> list[Row]:
        return decisions(self.folder)

    def stop(self) -> bool:
        return self.balancer.stop()


class Process(Watched):
    """`trimtab serve` beside a controller."""

    def __init__(self, kafka: KafkaCluster, node: int, folder: Path, **keys: Any) -> None:
        self.node, self.folder = node, folder
        super().__init__(folder, "serve", "--config", str(configuration(kafka, node, folder, **keys)))

    def decisions(self) -> list[Row]:
        return decisions(self.folder)


def audit(rows: list[Row]) -> list[str]:
    """What shows that two instances decided at once: verdicts of different instances that overlap, an epoch that goes back, two
    controllers in one epoch."""
    found = []
    judged = sorted(row for row in rows if row.verdict in ("planned", "nothing"))
    for one, other in pairwise(judged):
        if other.instance != one.instance and other.began < one.ended:
            found.append(f"{one} overlaps {other}")
        if other.epoch < one.epoch:
            found.append(f"{other} is of an earlier epoch than {one}")
        if other.epoch == one.epoch and other.controller != one.controller:
            found.append(f"{one} and {other} name two controllers of one epoch")
    return found
