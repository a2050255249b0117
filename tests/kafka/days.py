"""Bad days of a real cluster: one thing goes wrong in each, and when it is over everything must be true again.

Used by `test_days` in a short form and by ``python -m tests.kafka.unrest``. Reporters stand beside every broker and services beside every
controller, each a process of its own in the mode `auto`. A day returns what was not as it should be, in sentences.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.dataset as ds
from kafka import KafkaProducer, TopicPartition
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cluster_model.snapshot import Snapshot
from metrics_reporter.topic import DEFAULT_NAME
from tests.kafka.cluster import KafkaCluster, free_ports
from tests.kafka.services import Row, audit, configuration, decisions
from tests.kafka.traffic import administering, create_topic
from tests.kafka.watched import ROOT
from trimtab.capture import capture

RECORD = b"u" * 1000
TICK = 0.1
PATIENCE = 180.0  # seconds that a busy machine may need for what takes some
SETTLE_SECONDS = 180.0
INTERVAL = 2.0  # from decision to decision
STEADY = 10  # decisions in a row without a plan
CONNECTIONS = 600
PROBE_SECONDS, PROBE_TIMEOUT, PROBE_FAILURES = 10.0, 1.0, 3  # Kubernetes' defaults
MODEL = {"short": 10, "long": 30, "stale_after": 15, "dead_after": 300}  # a broker may take long to come back on a busy machine
# Loads that lean on broker 1, in topics that the rack rule does not bind: a placement within 10 % exists.
LOADS: Mapping[str, list[tuple[list[int], int]]] = {
    "flows": [([1 + n % 4, 1 + (n + 1) % 4], 1 + n % 3) for n in range(12)],
    "skewed": [([1, 2], 5), ([1, 3], 4), ([1, 4], 3), ([2, 3], 2), ([3, 4], 2), ([4, 2], 1)],
    "single": [([1], 4), ([1], 4), ([2], 4), ([3], 4), ([4], 4)],
}
GOALS = """
version: 1
goals:
  - {kind: usage_distribution, resource: network_in, bound: 0.15}
  - {kind: usage_distribution, resource: disk, bound: 0.3, var: 0.9, min_load: 1MB}
policy: {partition_cooldown: 0s, wait: {settle: 3s, leaders: 5s}}
"""


class Producer:
    """Steady traffic that outlives brokers."""

    def __init__(self, bootstrap: str, loads: Mapping[str, list[tuple[list[int], int]]]) -> None:
        self._bootstrap, self._loads, self._stop = bootstrap, loads, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap, acks=1, enable_idempotence=False, max_block_ms=1000, delivery_timeout_ms=8000,
            request_timeout_ms=5000,
        )  # fmt: skip
        while not self._stop.wait(TICK):
            for topic, partitions in self._loads.items():
                for number, (_, records) in enumerate(partitions):
                    for _ in range(records):
                        with suppress(Exception):  # brokers are away now and then
                            producer.send(topic, RECORD, partition=number)
        with suppress(Exception):  # brokers may be gone by now
            producer.close(timeout=5)


class Child:
    """A command that can be killed and started again; what it says goes to a file."""

    def __init__(self, name: str, arguments: list[str], folder: Path) -> None:
        self.name, self._arguments, self._folder = name, arguments, folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *before: str, **environment: str) -> None:
        """Start it; `before` are commands that run it."""
        command = [*before, sys.executable, "-m", "trimtab", *self._arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self._folder, stderr=log, stdout=log, stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
            )  # fmt: skip

    @property
    def log(self) -> Path:
        return self._folder / f"{self.name}.log"

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, sent: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(sent)

    def end(self, sent: signal.Signals) -> float:
        """Seconds until it had ended."""
        assert self.process is not None
        begun = time.monotonic()
        self.send(sent)
        self.process.wait(60)
        return time.monotonic() - begun


class Scene:
    """The cluster with everything beside it. A context manager, which starts and ends what is not the cluster."""

    def __init__(self, kafka: KafkaCluster, folder: Path, *, mode: str = "auto", say: Callable[[str], None] = lambda text: None) -> None:
        self.kafka, self.folder, self.say = kafka, folder, say
        self._goals = folder / "goals-of-all.yaml"
        self._goals.write_text(GOALS)
        self.slowest_stop = 0.0
        self.producer = Producer(kafka.bootstrap, LOADS)
        self.reporters = {b: Child(f"reporter-{b}", ["reporter", "--config", str(self._reporter(b))], folder) for b in kafka.broker_ids}
        self.ports = dict(zip(kafka.quorum, free_ports(len(kafka.quorum)), strict=True))
        self.services: dict[int, Child] = {}
        for node, port in self.ports.items():
            keys: dict[str, Any] = {"http": {"enabled": True, "port": port}, "mode": mode, "goals": str(self._goals)}
            keys |= {"model": MODEL, "interval": INTERVAL, "limits": {"cooldown": 1}}
            config = configuration(kafka, node, folder / str(node), **keys)
            self.services[node] = Child(f"service-{node}", ["serve", "--config", str(config)], folder)

    def _reporter(self, broker: int) -> Path:
        path = self.folder / f"reporter-{broker}.yaml"
        kafka = {"bootstrap_servers": self.kafka.bootstrap}
        document = {"version": 1, "broker": broker, "interval": 1.0, "kafka": kafka, "collectors": {"kafka": {}}}
        path.write_text(json.dumps(document))
        return path

    def __enter__(self) -> Scene:
        with administering(self.kafka) as admin:
            for name, partitions in LOADS.items():
                create_topic(admin, name, [replicas for replicas, _ in partitions], {"min.insync.replicas": str(len(partitions[0][0]))})
        self.producer.start()
        for child in (*self.reporters.values(), *self.services.values()):
            child.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Calling it again does nothing."""
        for child in (*self.services.values(), *self.reporters.values()):
            if child.runs:
                child.send(signal.SIGCONT)
                self.slowest_stop = max(self.slowest_stop, child.end(signal.SIGTERM))
        self.producer.stop()

    # -- what services say -----------------------------------------------------------------------------------

    def fetch(self, node: int, path: str, timeout: float = 30.0, **headers: str) -> tuple[int, str]:
        """Status and body; 0 where there is no answer in time."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[node]}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error)

    def get(self, node: int, path: str) -> Any:
        status, body = self.fetch(node, path)
        if status != 200:
            raise OSError(f"service {node} answered {status} to {path}: {body[:300]}")
        return json.loads(body)

    def state(self, node: int | None = None) -> dict[str, Any]:
        """The state of one service, by default of the one that decides, or of any."""
        found: dict[str, Any] = {}
        for each in self.services if node is None else [node]:
            with suppress(OSError):
                found = self.get(each, "/api/v1/state")
            if found and found["leadership"]["leads"]:
                break
        return found

    def figures(self, node: int) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """All figures, as a parser that forgives nothing reads them."""
        _, body = self.fetch(node, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
        families = text_string_to_metric_families(body)  # type: ignore[no-untyped-call]
        return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}

    def rows(self) -> list[Row]:
        """Decisions of all, in order."""
        return sorted(row for node in self.services for row in decisions(self.folder / str(node)))

    def until(self, true: Callable[[], Any], seconds: float = PATIENCE) -> bool:
        """Whether it came true in time."""
        deadline, pulse = time.monotonic() + seconds, threading.Event()
        while True:
            with suppress(OSError, KeyError):
                if true():
                    return True
            if time.monotonic() > deadline:
                return False
            pulse.wait(0.2)

    def ready(self) -> bool:
        return self.until(lambda: all(self.state(node)["ready"] for node in self.services), 2 * PATIENCE)

    # -- whether it is the truth -----------------------------------------------------------------------------

    def settled(self) -> list[str]:
        """What is still not as it should be, after a while."""
        wrong: list[str] = []

        def true() -> bool:
            wrong[:] = [text for node in self.services for text in self._differences(node)]
            return not wrong

        self.until(true, SETTLE_SECONDS)
        return wrong + audit(self.rows())

    def _differences(self, node: int) -> list[str]:
        try:
            state, found = self.get(node, "/api/v1/state"), self.get(node, "/api/v1/snapshot")
        except OSError as error:
            return [f"service {node} does not answer: {error}"]
        wrong = [f"service {node} is unhealthy: {text}" for text in state["why_unhealthy"]]
        wrong += [f"service {node} is not ready: {text}" for text in state["why_not_ready"]]
        short = {what: n for what in ("offline", "under_replicated", "under_min_isr", "reassigning") if (n := state["cluster"][what])}
        if short or state["cluster"]["down"]:
            wrong.append(f"service {node} says of the cluster: {short} {state['cluster']['down']}")
        if state["glance"]["tone"] == "bad":
            wrong.append(f"service {node} has the headline {state['glance']['sentence']}")
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
        self.say(f"service {node}: {sum(counts.values()):,} rows of history, {len(twice)} twice")
        return twice[:5]

    def logs(self, lines: int = 15) -> str:
        """The end of what services said, for a report."""
        return "\n".join(f"--- {c.name}\n" + "\n".join(c.log.read_text().splitlines()[-lines:]) for c in self.services.values())


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


def now() -> str:
    """As decisions have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())


def moving(rows: Iterable[Row], since: str) -> list[str]:
    """Decisions since then that would copy something."""
    return [f"planned {r.replica_moves} moves at {r.began} ({r.cause}): {r.reason}" for r in rows if r.began > since and r.replica_moves]


# -- the days ----------------------------------------------------------------------------------------------------


def steady(scene: Scene) -> list[str]:
    """After the first plan was carried out, ten decisions in a row find nothing more to do."""
    if not scene.until(lambda: any(row.replica_moves for row in scene.rows())):
        return [f"a cluster that leans on one broker is not planned for: {scene.state().get('why_nothing')}"]
    if not scene.until(lambda: scene.state()["plan"]["state"] == "done"):
        return [f"its plan is not carried out: {scene.state().get('plan')}"]
    since, node = now(), next(iter(scene.services))
    considered: set[int] = set()

    def ten() -> bool:
        considered.add(scene.get(node, "/api/v1/state")["considered_ms"])
        return len(considered) > STEADY or bool(moving(scene.rows(), since))

    wrong = [] if scene.until(ten) else [f"only {len(considered)} decisions in {PATIENCE:.0f} s"]
    return wrong + moving(scene.rows(), since)


def restarted(scene: Scene, brokers: Sequence[int]) -> list[str]:
    """Brokers are restarted one after the other under load: it is said while it lasts, leaders go back, and no byte is planned."""
    wrong, since = [], now()
    for broker in brokers:
        scene.kafka.stop_broker(broker)

        def told(broker: int = broker) -> bool:
            state = scene.state()
            cluster, shown = state["cluster"], state["glance"]
            away = f"roker {broker} is" in shown["sentence"]
            return away and cluster["under_min_isr"] > 0 and shown["label"] in ("Under min ISR", "Partitions offline")

        if not scene.until(told):
            wrong.append(f"broker {broker} is down, and the page says: {scene.state().get('glance')}")
        scene.kafka.start_broker(broker, PATIENCE)
        if not scene.until(lambda: scene.state()["cluster"]["under_replicated"] == 0):
            wrong.append(f"broker {broker} is back, and the page says: {scene.state().get('glance')}")
    given_back = lambda: [r for r in scene.rows() if r.began > since and r.verdict == "planned" and "preferred leader" in r.reason]  # noqa: E731
    if not scene.until(given_back):
        wrong.append(f"leaders are not given back: {scene.state().get('why_nothing')}")
    if not scene.until(lambda: scene.state()["cluster"]["not_preferred"] == 0):
        wrong.append(f"leaders are still away: {scene.state().get('plan')}")
    return wrong + moving(scene.rows(), since)


def rolling_restart(scene: Scene) -> list[str]:
    """Every broker, one after the other."""
    return restarted(scene, scene.kafka.broker_ids)


def broker_dead(scene: Scene, broker: int = 4) -> list[str]:
    """A broker is lost for good: the headline and the figure of the alert say so, and its replicas are put elsewhere."""
    wrong, since, node = [], now(), next(iter(scene.services))
    scene.kafka.kill_broker(broker)
    if not scene.until(lambda: scene.state()["glance"]["label"] in ("Broker dead", "Partitions offline"), MODEL["dead_after"] + PATIENCE):
        wrong.append(f"broker {broker} is dead, and the page says: {scene.state().get('glance')}")
    if not scene.until(lambda: f"Broker {broker} is dead" in scene.state()["glance"]["sentence"]):
        wrong.append(f"the headline names no broker: {scene.state().get('glance')}")
    alert = ("trimtab_cluster_brokers", (("life", "dead"),))
    if not scene.until(lambda: scene.figures(node).get(alert) == 1.0):
        wrong.append("no alert fires on trimtab_cluster_brokers{life=dead}")
    if not scene.until(lambda: [row for row in scene.rows() if row.began > since and row.replica_moves]):
        wrong.append(f"nothing is planned for its replicas: {scene.state().get('why_nothing')}")

    def emptied() -> bool:
        places = placement(capture(scene.kafka.bootstrap, interval=0))
        return not [name for name, (replicas, _) in places.items() if broker in replicas and len(replicas) > 1]

    if not scene.until(emptied):
        wrong.append(f"replicas of broker {broker} are still on it: {scene.state().get('plan')}")
    scene.kafka.start_broker(broker, PATIENCE)
    return wrong


def controller_cut_off(scene: Scene) -> list[str]:
    """No packet reaches the active controller, or leaves it: another instance decides meanwhile, one at a time, and it comes back."""
    if len(scene.services) < 3 or scene.kafka.islands is None:
        return ["cannot be tried here: there is no other controller, or none that can be cut off"]
    before = scene.state()["leadership"]["controller"]
    others = [node for node in scene.services if node != before]
    address = (scene.kafka.address(before), scene.kafka.quorum[before])
    scene.kafka.islands.cut(before)
    begun = time.monotonic()
    try:
        with suppress(OSError), socket.create_connection(address, timeout=2):
            return [f"controller {before} is reached all the same"]
        taken = scene.until(lambda: any(scene.state(node)["leadership"]["leads"] for node in others))
        scene.say(f"  another instance decides {time.monotonic() - begun:.0f} s after controller {before} was cut off")
        held = scene.until(lambda: not scene.state(before)["leadership"]["leads"])
    finally:
        scene.kafka.islands.mend(before)
    wrong = [] if taken else ["no other instance decides"]
    return wrong if held else [*wrong, f"the instance beside {before} goes on deciding"]


def topic_deleted(scene: Scene) -> list[str]:
    """The metric topic is deleted: reporters make it again, samples go on, and no counter falls."""
    node = next(iter(scene.services))
    before = _counters(scene.figures(node))
    read = scene.state(node)["model"]["newest_sample_ms"]
    with administering(scene.kafka) as admin:
        admin.delete_topics([DEFAULT_NAME])
    wrong = []
    if not scene.until(lambda: scene.state(node)["model"]["newest_sample_ms"] > read + 10_000 and _voices(scene, node) == {"fresh"}):
        wrong.append(f"samples do not go on: {scene.state(node).get('why_not_ready')} {_voices(scene, node)}")
    after = _counters(scene.figures(node))
    fallen = {name: (value, after[name]) for name, value in before.items() if after.get(name, value) < value}
    return wrong + [f"counters fell: {fallen}"] * bool(fallen)


def _counters(figures: Mapping[tuple[str, tuple[tuple[str, str], ...]], float]) -> dict[object, float]:
    return {name: value for name, value in figures.items() if name[0].endswith("_total")}


def _voices(scene: Scene, node: int) -> set[str]:
    return {b["voice"] for b in scene.state(node)["brokers"]}


def reporter_silent(scene: Scene, broker: int = 1) -> list[str]:
    """One reporter of four is gone: its broker's loads are known all the same, and a skew of what it alone measured is planned for."""
    node, wrong, child = next(iter(scene.services)), [], scene.reporters[broker]
    child.end(signal.SIGKILL)
    try:
        if not scene.until(lambda: {b["id"]: b["voice"] for b in scene.state(node)["brokers"]}[broker] == "silent"):
            return [f"nobody says that the reporter of broker {broker} is silent"]
        if "reporter of broker" not in scene.state(node)["glance"]["sentence"]:
            wrong.append(f"it is not in the headline: {scene.state(node)['glance']['sentence']}")
        since = now()
        with administering(scene.kafka) as admin:  # everything in single replicas comes to the broker without a reporter
            admin.alter_partition_reassignments({TopicPartition("single", n): [broker] for n in range(5)})

        def planned() -> list[Row]:
            return [row for row in scene.rows() if row.began > since and row.replica_moves]

        if not scene.until(planned):
            wrong.append(f"a skew is not planned for: {scene.state(node)['why_nothing']} {scene.state(node)['model']['stale_partitions']}")
        elif not scene.until(lambda: _is_done(scene, node, [row.plan_id for row in planned()])):  # these partitions move, or others
            wrong.append(f"the plan for it is not carried out: {scene.state(node)['plan']}")
    finally:
        child.start()
    if not scene.until(lambda: _voices(scene, node) == {"fresh"}):
        wrong.append(f"it is back, and not heard: {_voices(scene, node)}")
    return wrong


def _is_done(scene: Scene, node: int, plans: Sequence[str | None]) -> bool:
    """Whether one of these plans was carried out."""
    plan = scene.state(node)["plan"]
    return plan is not None and plan["plan_id"] in plans and plan["state"] == "done"


def idle_connections(scene: Scene) -> list[str]:
    """Six hundred connections that say nothing, or half of a head, keep neither probes nor Prometheus nor people out."""
    node = next(iter(scene.services))
    wrong, slowest = [], 0.0
    with ExitStack() as stack:
        for number in range(CONNECTIONS):
            try:
                opened = stack.enter_context(socket.create_connection(("127.0.0.1", scene.ports[node]), timeout=10))
                opened.sendall(b"GET / HTTP/1.1\r\nHost: lo" if number % 2 else b"")
            except OSError:
                continue  # ended already: it is one of the longest idle
        for _ in range(5):
            for path in ("/healthz", "/metrics", "/api/v1/state"):
                begun = time.monotonic()
                status, body = scene.fetch(node, path, timeout=30)
                slowest = max(slowest, time.monotonic() - begun)
                wrong += [f"{path} answers {status}: {body[:200]}"] * (status != 200)
    scene.say(f"  slowest answer beside {CONNECTIONS} idle connections: {slowest:.2f} s")
    return wrong


def disk_full(scene: Scene) -> list[str]:
    """The disk of the history is full, of the instance that decides and of one that would take over: it is unhealthy and not ready, shows
    no plan as current, and goes on when there is room."""
    decides = scene.state()["leadership"]["controller"]
    standby = next((node for node in scene.services if node != decides), None)
    return _disk_full(scene, decides) + (_disk_full(scene, standby) if standby is not None else [])


def _disk_full(scene: Scene, node: int) -> list[str]:
    child, history = scene.services[node], scene.folder / str(node) / "history"
    child.end(signal.SIGTERM)
    mounted = f"mount -t tmpfs -o size=16m none '{history}' && exec \"$@\""
    child.start("unshare", "--map-root-user", "--mount", "sh", "-c", mounted, "sh")
    try:
        if not scene.until(lambda: scene.state(node)["ready"]):
            return [f"cannot be tried here: the service does not start in a mount of its own; {child.log.read_text()[-300:]}"]
        assert child.process is not None
        inside = Path(f"/proc/{child.process.pid}/root") / history.relative_to("/")
        for name, much in (("everything", 65536), ("the rest", 512)):
            with (inside / name).open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(b"x" * much)
        wrong = []

        def ill() -> bool:
            state = scene.state(node)
            current = state["plan"] is not None and state["plan"]["state"] in ("proposed", "approved")
            return not state["healthy"] and not state["ready"] and not current

        if not scene.until(ill):
            wrong.append(f"the disk is full, and service {node} says: {scene.state(node)['why_unhealthy']} {scene.state(node)['plan']}")
        wrong += [f"{path} of {node} answers 200" for path in ("/healthz", "/readyz") if scene.fetch(node, path)[0] == 200]
        if scene.figures(node).get(("trimtab_healthy", ())) != 0.0:
            wrong.append("no alert fires on trimtab_healthy")
        for name in ("everything", "the rest"):
            (inside / name).unlink()
        if not scene.until(lambda: scene.state(node)["healthy"] and scene.state(node)["ready"], 2 * PATIENCE):
            wrong.append(f"there is room, and it does not go on: {scene.state(node)['why_unhealthy']}")
        return wrong
    finally:
        child.end(signal.SIGTERM)
        child.start()


def cold_start(scene: Scene) -> list[str]:
    """Started on one core with nothing compiled, and probed as Kubernetes does by default: it is not ended, and not ready too soon."""
    node = next(iter(scene.services))
    child, pulse = scene.services[node], threading.Event()
    child.end(signal.SIGTERM)
    begun, failures, compiled = time.monotonic(), 0, 0.0
    child.start("taskset", "-c", "0", XDG_CACHE_HOME=str(scene.folder / "nothing-compiled"))
    wrong: list[str] = []
    while time.monotonic() - begun < 3600:
        pulse.wait(PROBE_SECONDS)
        alive, _ = scene.fetch(node, "/healthz", timeout=PROBE_TIMEOUT)
        failures = 0 if alive == 200 else failures + 1
        if failures >= PROBE_FAILURES:
            wrong.append(f"Kubernetes would have ended it after {time.monotonic() - begun:.0f} s")
            break
        state = scene.state(node)
        if state and state["starting"] is None and state["ready"]:
            compiled = time.monotonic() - begun
            break
        if state and state["starting"] is not None and scene.fetch(node, "/readyz")[0] == 200:
            wrong.append("it is ready while it compiles")
    scene.say(f"  ready after {compiled:.0f} s on one core")
    return wrong or ([] if compiled else ["it was not ready within an hour"])


def at_random(scene: Scene, minutes: float, seed: int) -> list[str]:
    """Reporters, services, brokers and controllers are killed, stopped and frozen at random."""
    chance, done, pulse = random.Random(seed), Counter[str](), threading.Event()

    def pause(least: float, most: float) -> None:
        pulse.wait(chance.uniform(least, most))

    def killed(children: Mapping[int, Child], sent: signal.Signals) -> None:
        child = chance.choice(list(children.values()))
        seconds = child.end(sent)
        if sent is signal.SIGTERM:
            scene.slowest_stop = max(scene.slowest_stop, seconds)
        pause(0, 6)
        child.start()

    def role_killed(ids: Iterable[int]) -> None:
        id = chance.choice(list(ids))
        scene.kafka.kill_broker(id)
        pause(1, 12)
        scene.kafka.start_broker(id, PATIENCE)

    def frozen() -> None:
        broker = chance.choice(scene.kafka.broker_ids)
        scene.kafka.freeze_broker(broker)
        pause(2, 12)
        scene.kafka.thaw_broker(broker)

    deeds: Mapping[str, Callable[[], None]] = {
        "reporter killed": lambda: killed(scene.reporters, signal.SIGKILL),
        "service killed": lambda: killed(scene.services, signal.SIGKILL),
        "service stopped": lambda: killed(scene.services, signal.SIGTERM),
        "broker killed": lambda: role_killed(scene.kafka.broker_ids),
        "controller killed": lambda: role_killed(scene.kafka.quorum),
        "broker frozen": frozen,
    }
    until = time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        what = chance.choice(list(deeds))
        scene.say(f"  {what}")
        deeds[what]()
        done[what] += 1
        pause(1, 8)
    scene.say(f"  {dict(done)}")
    return []


DAYS: Mapping[str, Callable[[Scene], list[str]]] = {
    "steady": steady,
    "restart": rolling_restart,
    "silent": reporter_silent,
    "topic": topic_deleted,
    "idle": idle_connections,
    "partition": controller_cut_off,
    "disk": disk_full,
    "dead": broker_dead,
    "cold": cold_start,
}
