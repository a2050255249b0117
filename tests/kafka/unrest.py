"""Reporters, services, brokers and controllers are killed and started again at random; afterwards everything must be true again.

``python -m tests.kafka.unrest --minutes 10 --seed 0``; not part of CI. Ends with 1 where something was not as it should be: a model
that differs from a fresh capture, a sample that is in a history twice, or decisions of two instances at once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from kafka import KafkaProducer

from cluster_model.snapshot import Snapshot
from tests.kafka.cluster import KafkaCluster, free_ports
from tests.kafka.services import audit, configuration, decisions
from tests.kafka.traffic import administering, create_topic
from tests.kafka.watched import ROOT
from trimtab.capture import capture

TOPICS = {"flows": [[1, 2], [2, 3], [3, 4], [4, 1]] * 3, "skewed": [[1, 2, 3]] * 6}
RECORD = b"u" * 2000
SETTLE_SECONDS = 90.0


class Producer:
    """Steady traffic that outlives brokers."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap, self._stop = bootstrap, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, max_block_ms=5000, delivery_timeout_ms=8000, request_timeout_ms=5000)
        while not self._stop.wait(0.1):
            for topic, lists in TOPICS.items():
                for number in range(len(lists)):
                    try:
                        producer.send(topic, RECORD, partition=number)
                    except Exception as error:
                        say(f"  producer: {error}")
        with suppress(Exception):  # brokers may be gone by now
            producer.close(timeout=5)


class Child:
    """A command that can be killed and started again; what it says goes to a file."""

    def __init__(self, name: str, arguments: list[str], folder: Path) -> None:
        self.name, self._arguments, self._folder = name, arguments, folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "trimtab", *self._arguments], cwd=self._folder, stderr=log, stdout=log,
                stdin=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)},
            )  # fmt: skip

    def end(self, sent: signal.Signals) -> float:
        """Seconds until it had ended."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(sent)
        self.process.wait(30)
        return time.monotonic() - begun


class Unrest:
    def __init__(self, kafka: KafkaCluster, folder: Path, seed: int) -> None:
        self.kafka, self.folder, self.random = kafka, folder, random.Random(seed)
        self.done: Counter[str] = Counter()
        self.slowest_stop = 0.0
        self.reporters = {b: Child(f"reporter-{b}", ["reporter", "--config", str(self._reporter(b))], folder) for b in kafka.broker_ids}
        self.ports = dict(zip(kafka.quorum, free_ports(len(kafka.quorum)), strict=True))
        self.services = {}
        for node, port in self.ports.items():
            http = {"enabled": True, "port": port}
            config = configuration(kafka, node, folder / str(node), http=http, mode="dry-run", model=MODEL)
            self.services[node] = Child(f"service-{node}", ["serve", "--config", str(config)], folder)

    def _reporter(self, broker: int) -> Path:
        path = self.folder / f"reporter-{broker}.yaml"
        kafka = {"bootstrap_servers": self.kafka.bootstrap}
        document = {"version": 1, "broker": broker, "interval": 2.0, "kafka": kafka, "collectors": {"kafka": {}}}
        path.write_text(json.dumps(document))
        return path

    def start(self) -> None:
        for child in (*self.reporters.values(), *self.services.values()):
            child.start()

    def stop(self) -> None:
        for child in (*self.reporters.values(), *self.services.values()):
            if child.process is not None and child.process.poll() is None:
                self.slowest_stop = max(self.slowest_stop, child.end(signal.SIGTERM))

    def once(self) -> None:
        """One thing goes wrong, and is mended after a while."""
        deeds: list[tuple[str, Callable[[], None]]] = [
            ("reporter killed", self._reporter_killed),
            ("service killed", self._service_killed),
            ("service stopped", self._service_stopped),
            ("broker killed", lambda: self._role_killed(self.random.choice(self.kafka.broker_ids))),
            ("controller killed", lambda: self._role_killed(self.random.choice(list(self.kafka.quorum)))),
            ("broker frozen", self._broker_frozen),
        ]
        what, deed = self.random.choice(deeds)
        say(what)
        deed()
        self.done[what] += 1

    def _wait(self, least: float, most: float) -> None:
        time.sleep(self.random.uniform(least, most))

    def _reporter_killed(self) -> None:
        child = self.random.choice(list(self.reporters.values()))
        child.end(signal.SIGKILL)
        self._wait(0, 4)
        child.start()

    def _service_killed(self) -> None:
        child = self.random.choice(list(self.services.values()))
        child.end(signal.SIGKILL)
        self._wait(0, 6)
        child.start()

    def _service_stopped(self) -> None:
        child = self.random.choice(list(self.services.values()))
        self.slowest_stop = max(self.slowest_stop, child.end(signal.SIGTERM))
        self._wait(0, 6)
        child.start()

    def _role_killed(self, id: int) -> None:
        self.kafka.kill_broker(id)
        self._wait(1, 12)
        self.kafka.start_broker(id, 120)

    def _broker_frozen(self) -> None:
        broker = self.random.choice(self.kafka.broker_ids)
        self.kafka.freeze_broker(broker)
        self._wait(2, 12)
        self.kafka.thaw_broker(broker)

    # -- afterwards ----------------------------------------------------------------------------------------

    def get(self, node: int, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[node]}{path}", timeout=30) as answer:
            return json.loads(answer.read())

    def settled(self) -> list[str]:
        """What is still not as it should be, after a while."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            wrong = [text for node in self.services for text in self._differences(node)]
            if not wrong or time.monotonic() > deadline:
                return wrong
            time.sleep(3)

    def _differences(self, node: int) -> list[str]:
        try:
            state, found = self.get(node, "/api/v1/state"), self.get(node, "/api/v1/snapshot")
        except OSError as error:
            return [f"service {node} does not answer: {error}"]
        wrong = [f"service {node} is unhealthy: {text}" for text in state["why_unhealthy"]]
        wrong += [f"service {node} is not ready: {text}" for text in state["why_not_ready"]]
        fresh = capture(self.kafka.bootstrap, interval=0)
        mine = {(p["topic"], p["partition"]): (tuple(p["replicas"]), p.get("leader")) for p in found["partitions"]}
        truth = placement(fresh)
        for name in sorted(mine.keys() | truth.keys()):
            if mine.get(name) != truth.get(name):
                wrong.append(f"service {node}: {name} is {mine.get(name)}, the cluster says {truth.get(name)}")
        brokers = {b["id"]: (b.get("rack"), b.get("state", "active")) for b in found["brokers"]}
        ids = fresh.broker_ids.tolist()
        if brokers != {b: (fresh.racks[row], "active") for row, b in enumerate(ids)}:
            wrong.append(f"service {node}: brokers are {brokers}")
        return wrong

    def repeated(self, node: int) -> list[str]:
        """Samples that are in a history twice."""
        table = ds.dataset(self.folder / str(node) / "history" / "samples", partitioning="hive").to_table()
        columns = (table[c].to_pylist() for c in ("time", "broker", "topic", "partition", "metric"))
        counts = Counter(zip(*columns, strict=True))
        twice = [f"service {node}: {row} is in the history {n} times" for row, n in counts.items() if n > 1]
        say(f"service {node}: {sum(counts.values()):,} rows of history, {len(twice)} twice")
        return twice[:5]


MODEL = {"short": 10, "long": 30, "stale_after": 15, "dead_after": 600}


def placement(snapshot: Snapshot) -> dict[tuple[str, int], tuple[tuple[int, ...], int | None]]:
    ids = snapshot.broker_ids
    return {
        (snapshot.topics[int(t)], int(n)): (
            tuple(int(ids[b]) for b in row if b >= 0), int(ids[lead]) if lead >= 0 else None
        )
        for t, n, row, lead in zip(
            snapshot.partition_topic, snapshot.partition_number, snapshot.replicas, snapshot.leader, strict=True
        )
    }  # fmt: skip


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="trimtab-unrest-"))
    with KafkaCluster(controllers=3) as kafka:
        with administering(kafka) as admin:
            for name, lists in TOPICS.items():
                create_topic(admin, name, lists)
        producer, unrest = Producer(kafka.bootstrap), Unrest(kafka, folder, options.seed)
        producer.start()
        unrest.start()
        try:
            time.sleep(20)
            until = time.monotonic() + 60 * options.minutes
            while time.monotonic() < until:
                unrest.once()
                unrest._wait(1, 8)
            say("quiet")
            wrong = unrest.settled()
            for node in unrest.services:
                state = unrest.get(node, "/api/v1/state")
                say(f"service {node}: {state['model']['counts']}, lost {state['model']['lost']}, errors {state['model']['decode_errors']}")
        finally:
            unrest.stop()
            producer.stop()
        rows = [row for node in unrest.services for row in decisions(folder / str(node))]
        wrong += audit(rows)
        wrong += [text for node in unrest.services for text in unrest.repeated(node)]
        say(f"{dict(unrest.done)}; {len(rows)} decisions {dict(Counter(r.verdict for r in rows))}")
        say(f"epochs {sorted({r.epoch for r in rows})}; slowest stop {unrest.slowest_stop:.1f} s; logs in {folder}")
    for text in wrong:
        say(f"WRONG: {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
