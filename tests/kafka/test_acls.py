"""Each command works with the ACLs that docs/security.md names and nothing more, and says which one is missing where one is taken away."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import TopicAlreadyExistsError

from cluster_model.errors import ExternalError
from metrics_reporter.kafka_topic import KafkaTopicReader
from metrics_reporter.reporter import SYSTEM_CLOCK
from metrics_reporter.topic import TopicError
from tests.assembled.commands.command_line import CommandLine
from tests.kafka.cluster import KafkaCluster
from tests.kafka.executions import placed, plan_file
from tests.kafka.guarded import mutual, scram
from tests.kafka.services import Embedded, Reporters, configuration
from tests.kafka.traffic import administering, create_topic
from tests.kafka.watched import PATIENCE, ROOT
from trimtab import Balancer
from trimtab.execution.documents import Settings
from trimtab.execution.order import read_order
from trimtab.execution.run import carried_out, reached
from trimtab.execution.state import Limits, Partition
from trimtab.reporter import run
from trimtab.reporter.config import ReporterConfig
from trimtab.service.config import load_config
from trimtab.service.min_isr import MinIsr
from trimtab.service.reach import KafkaReach
from trimtab.story import Story

ROW = re.compile(r"^\| (?P<command>\w+) \| (?P<operation>\w+) \| (?P<kind>cluster|topic|group|transactional-id)(?: `(?P<name>[^`]+)`)? \|")
PLAIN = {"security_protocol": "PLAINTEXT"}
NEVER = "\0"
TURNS_AFTER = 5  # of an execution, once it said what is missing: that it does nothing then
METRICS, RECORD = "__trimtab_metrics", "__trimtab_executions"
LEVEL = """
version: 1
goals: [{kind: usage_distribution, resource: replicas, bound: 0.2}]
constraints: {include_topics: [approved]}
policy: {wait: {settle: 0}}
"""


@dataclass(frozen=True)
class Permission:
    """A row of the table."""

    command: str
    operation: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.command}: {self.operation} on {self.kind} {self.name}".rstrip()

    @property
    def said(self) -> str:
        """How the missing one is named."""
        where = {"cluster": "the cluster", "topic": f"topic {self.name}", "group": "all consumer groups"}.get(self.kind)
        if self.name == "*" and self.kind == "topic":
            where = "all topics"
        return f"needs {self.operation} on {where or 'transactional id ' + self.name.rstrip('*')}"

    def acl(self, principal: str) -> ACL:
        operation = ACLOperation[re.sub(r"(?<!^)([A-Z])", r"_\1", self.operation).upper()]
        kind = ResourceType[self.kind.replace("-", "_").upper()]
        prefixed = self.kind == "transactional-id"
        name = "kafka-cluster" if self.kind == "cluster" else self.name.rstrip("*") if prefixed else self.name
        pattern = ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL
        return ACL(principal, "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name, pattern))


def table() -> list[Permission]:
    found = [match for line in (ROOT / "docs" / "security.md").read_text().splitlines() if (match := ROW.match(line))]
    return [Permission(m["command"], m["operation"], m["kind"], m["name"] or "") for m in found]


TABLE = table()


def of(command: str) -> list[Permission]:
    return [row for row in TABLE if row.command == command]


@contextmanager
def allowed(kafka: KafkaCluster, permissions: Sequence[Permission]) -> Iterator[None]:
    """As SCRAM user and with a certificate, and nothing else."""
    with administering(kafka) as admin:
        if permissions:
            admin.create_acls([row.acl(f"User:{prefix}{row.command}") for row in permissions for prefix in ("", "CN=")])
        try:
            yield
        finally:
            everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
            admin.delete_acls([ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, everything)])


def eventually(said: Callable[[], tuple[bool, str]]) -> None:
    """An ACL holds a moment after it was written."""
    deadline = time.monotonic() + PATIENCE
    while True:
        good, text = said()
        if good:
            return
        assert time.monotonic() < deadline, text


@dataclass
class Told:
    """What a command that was started says so far."""

    captured: pytest.CaptureFixture[str]
    text: str = ""

    def __call__(self) -> str:
        out, err = self.captured.readouterr()
        self.text += out + err
        return self.text

    def run(self, *arguments: str | Path) -> tuple[int, str]:
        self.text = ""
        ended = CommandLine(self.captured)(*arguments)
        return ended.code, ended.out + ended.err


@dataclass(frozen=True)
class Scene:
    kafka: KafkaCluster
    where: str
    properties: Path
    told: Told

    @property
    def folder(self) -> Path:
        return self.properties.parent


Says = Callable[[Scene, str], tuple[bool, str]]
"""Runs a command, at most until it says a text; whether it did what it is for, and what it said."""


def reporter(scene: Scene, until: str) -> tuple[bool, str]:
    config = ReporterConfig.model_validate(
        {
            "version": 1, "broker": 1, "interval": 0.3, "collectors": {"kafka": {}}, "topic": {"partitions": 2, "grow": True},
            "kafka": {"bootstrap_servers": scene.where, "command_config": str(scene.properties)},
        }
    )  # fmt: skip
    stop, deadline, before = threading.Event(), time.monotonic() + 20, _records(scene.kafka)
    with hearing() as heard:
        thread = threading.Thread(target=run, args=(config, stop), daemon=True)
        thread.start()
        try:
            while until not in str(heard) and _records(scene.kafka) <= before + 1 and time.monotonic() < deadline:
                stop.wait(0.1)
        finally:
            stop.set()
            thread.join(20)
    return _records(scene.kafka) > before and "needs " not in str(heard), str(heard)


def _records(kafka: KafkaCluster) -> int:
    try:
        with KafkaTopicReader(kafka.bootstrap, PLAIN, METRICS) as reader:
            return sum(reader.end_offsets().values())
    except TopicError:
        return 0


def serve(scene: Scene, until: str) -> tuple[bool, str]:
    reached = {"bootstrap_servers": scene.where, "command_config": str(scene.properties)}
    config = load_config(configuration(scene.kafka, 100, scene.folder, kafka=reached, kraft_log=None))
    balancer, deadline, said, well = Balancer(config), time.monotonic() + 20, "", False
    with balancer:
        while until not in said and not well and time.monotonic() < deadline:
            state = balancer.state()
            said = "\n".join([*(w.error or "" for w in state.workers), *state.why_not_ready, state.leadership.error or ""])
            well = state.leadership.controller is not None and state.model.lag is not None
            threading.Event().wait(0.1)
    reach = KafkaReach(config)  # as where replicas of a topic are out of sync
    min_isr = MinIsr(reach.min_isr, lambda: ["guarded"], SYSTEM_CLOCK, lambda: None)
    try:
        min_isr.turn()
    except ExternalError as error:
        said += str(error)
    finally:
        reach.close()
    return well and dict(min_isr.known) == {"guarded": 1}, said


def plan(scene: Scene, until: str) -> tuple[bool, str]:
    known = ("--bootstrap-server", scene.where, "--command-config", scene.properties)
    code, said = scene.told.run("plan", *known, "--preset", "counts", "--interval", "0.2", "--out", scene.folder / "plan.json")
    return code == 0 and "needs " not in said, said


def execute(scene: Scene, until: str) -> tuple[bool, str]:
    """What `trimtab execute` does, in this process and without its pauses."""
    name = Partition("guarded", 0)
    eventually(lambda: (len(placed(scene.kafka, "guarded")[name]) == 1, "what was begun before has not ended"))
    (at,) = placed(scene.kafka, "guarded")[name]
    path = plan_file(
        scene.folder / "moves.json", scene.kafka.cluster_id, {name: ((at,), (3 - at,))}, digest=f"sha256:{time.monotonic_ns()}"
    )
    without(scene.kafka, RECORD)  # of an attempt before, which may have been ended in the middle
    deadline, left, over = time.monotonic() + PATIENCE, TURNS_AFTER, False

    def stop(seconds: float) -> bool:
        nonlocal left
        threading.Event().wait(min(seconds, 0.2))
        left -= until in str(heard)  # it waits until the permission is there
        return not left or time.monotonic() > deadline

    with hearing() as heard, suppress(ExternalError):
        try:
            with reached(scene.where, scene.properties, scene.folder / f"journal-{time.monotonic_ns()}") as there:
                there.execution.begin(read_order(path), Settings(throttle=10_000_000, limits=Limits(reserve=0.0)))
                over = carried_out(there.execution, Story(), stop).over
        except ExternalError as error:
            logging.getLogger().error("%s", error)
            raise
    return over and placed(scene.kafka, "guarded")[name] == (3 - at,), str(heard)


RUNS: dict[str, Says] = {"reporter": reporter, "serve": serve, "plan": plan, "execute": execute}


def without(kafka: KafkaCluster, topic: str) -> None:
    """The topic is not there."""
    with administering(kafka) as admin:
        if topic in admin.list_topics():
            admin.delete_topics([topic])
            eventually(lambda: (topic not in admin.list_topics(), f"{topic} is still there"))


def prepare(kafka: KafkaCluster, command: str, operation: str) -> None:
    """A topic that has to be made is absent, one that has to grow has a single partition; a group has committed something."""
    if command == "reporter" and operation in ("Create", "Alter"):
        without(kafka, METRICS)
    with administering(kafka) as admin:
        if command == "serve" or (command == "reporter" and operation == "Alter"):
            with suppress(TopicAlreadyExistsError):
                create_topic(admin, METRICS, [[1]])
    if command == "plan":
        with administering(kafka) as admin, suppress(TopicAlreadyExistsError):
            create_topic(admin, RECORD, [[1]])
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
        producer.send(RECORD, key=b"note", value=b"{}", partition=0).get(PATIENCE)  # of an empty topic nothing is read
        producer.close()
        consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap, group_id="readers", enable_auto_commit=False)
        consumer.assign([TopicPartition("guarded", 1)])
        consumer.poll(timeout_ms=500)
        consumer.commit({TopicPartition("guarded", 1): OffsetAndMetadata(0, "", -1)})
        consumer.close()


@pytest.fixture
def scene(guarded: KafkaCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Path, str], Scene]:
    return lambda properties, listener: Scene(guarded, guarded.addresses(listener), properties, Told(capsys))


Making = Callable[[Path, str], Scene]


@pytest.mark.parametrize("way", ["scram", "certificate"])
@pytest.mark.parametrize("command", list(RUNS))
def test_a_command_works_with_its_acls_alone(
    guarded: KafkaCluster, certificates: Path, tmp_path: Path, scene: Making, command: str, way: str
) -> None:
    prepare(guarded, command, "Create")
    properties = (scram if way == "scram" else mutual)(certificates, tmp_path, command)
    with allowed(guarded, of(command)):
        eventually(lambda: RUNS[command](scene(properties, "BOTH" if way == "scram" else "MUTUAL"), NEVER))


def test_serve_carries_plans_out_with_the_acls_of_serve_and_execute(guarded: KafkaCluster, certificates: Path, tmp_path: Path) -> None:
    """In the mode `approve`: who names one row too few finds plans that wait for ever."""
    without(guarded, RECORD)
    with administering(guarded) as admin:
        create_topic(admin, "approved", [[1]] * 40)  # uneven, whatever other tests left
    (tmp_path / "level.yaml").write_text(LEVEL)
    keys: dict[str, Any] = {
        "kafka": {"bootstrap_servers": guarded.addresses("BOTH"), "command_config": str(scram(certificates, tmp_path, "serve"))},
        "kraft_log": None, "mode": "approve", "goals": str(tmp_path / "level.yaml"), "execution": {"throttle": "10MB", "reserve": 1},
        "model": {"short": 3, "long": 6, "stale_after": 15, "dead_after": 60},
    }  # fmt: skip
    rows = [replace(row, command="serve") for row in (*of("serve"), *of("execute"))]
    with allowed(guarded, rows), Reporters(guarded, 0.5), hearing() as heard:
        service = Embedded(guarded, 100, tmp_path / "100", **keys)

        def stands(state: str) -> bool:
            found = service.balancer.state().plan
            return found is not None and found.state == state

        try:
            assert service.until(lambda: stands("proposed")), service.balancer.state()
            made, before = service.balancer.state().plan, len(str(heard))  # brokers know of new ACLs a moment later
            assert made is not None
            service.balancer.approve(made.plan_id, "anna")
            assert service.until(lambda: stands("done")), (service.balancer.state().plan, str(heard))
        finally:
            service.stop()
    assert (2,) in placed(guarded, "approved").values()
    assert "needs " not in str(heard)[before:]


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_a_missing_acl_is_named(guarded: KafkaCluster, certificates: Path, tmp_path: Path, scene: Making, row: Permission) -> None:
    prepare(guarded, row.command, row.operation)
    properties = scram(certificates, tmp_path, row.command)
    with allowed(guarded, [other for other in of(row.command) if other != row]):

        def named() -> tuple[bool, str]:
            worked, said = RUNS[row.command](scene(properties, "BOTH"), row.said)
            others = [other.said for other in TABLE if other.said in said and other.said != row.said]
            return row.said in said and not worked and not others, f"expected {row.said!r}, it said:\n{said}"

        eventually(named)


class Heard(logging.Handler):
    """What is logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def __str__(self) -> str:
        return "\n".join(self.lines)


@contextmanager
def hearing() -> Iterator[Heard]:
    heard, root = Heard(), logging.getLogger()
    level = root.level
    root.addHandler(heard)
    root.setLevel(logging.INFO)
    try:
        yield heard
    finally:
        root.setLevel(level)
        root.removeHandler(heard)
