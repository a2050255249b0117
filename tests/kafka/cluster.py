"""A real Apache Kafka on loopback: one JVM for each controller and broker, as `kafka-server-start.sh` would
run them.

Used by the tests of this folder, and by a person through ``make kafka`` (``python -m
tests.kafka.cluster``). The processes end with the run that started them, also when it is interrupted or
killed (see `tests.kafka.watchdog`). Nothing leaves 127.0.0.1.
"""

from __future__ import annotations

import base64
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from tests.kafka import jars
from tests.kafka.islands import Islands
from tests.kafka.proxy import Proxy

READY = "Kafka Server started"
FIRST_CONTROLLER = 100


class StartFailed(RuntimeError):
    """A process of the cluster ended, or did not come up in time; the message has the end of its log."""


@dataclass(frozen=True)
class Listener:
    """One more client listener on every broker, beside the plain one; `properties` are broker properties."""

    name: str
    protocol: str  # SSL, SASL_PLAINTEXT or SASL_SSL
    properties: Mapping[str, str] = field(default_factory=dict)
    proxied: bool = False  # clients come through a `Proxy`, which `cut` and `mend` of the cluster are about


@dataclass
class _Role:
    """A controller or broker: what it is told, and the process that plays it, if any."""

    id: int
    folder: Path
    properties: dict[str, str]
    process: _Process | None = None


class _Process:
    """A running JVM in a process group of its own, whose output goes to a file and is watched for the ready
    line."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self._popen = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True, env=dict(environment),
        )  # fmt: skip
        self.ready = False
        self._turned = threading.Event()  # ready, or ended
        assert self._popen.stdout is not None
        self._reader = threading.Thread(target=self._copy, args=(self._popen.stdout, log), daemon=True)
        self._reader.start()

    def _copy(self, output: IO[str], log: Path) -> None:
        with log.open("a") as sink:
            for line in output:
                sink.write(line)
                sink.flush()
                if READY in line:
                    self.ready = True
                    self._turned.set()
        self._turned.set()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def ended(self) -> bool:
        return self._popen.poll() is not None

    def wait_ready(self, seconds: float) -> bool:
        self._turned.wait(seconds)
        return self.ready and self._popen.poll() is None

    def end(self, sent: signal.Signals, seconds: float = 60.0) -> None:
        """Send a signal and wait for the end; a process that does not heed it is killed."""
        self._signal(sent)
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._popen.wait()
        self._reader.join(5)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, which: signal.Signals) -> None:
        if self._popen.poll() is None:
            os.killpg(self._popen.pid, which)


class KafkaCluster:
    """Controllers and brokers with racks; `start` it, or use it as a context manager.

    Parameters
    ----------
    racks
        One entry a broker; brokers are numbered from 1. None gives a broker without a rack.
    controllers
        How many controllers, numbered from 100.
    log_dirs
        Log directories of each broker.
    volumes
        Folders on other file systems; each broker has one more log directory in each of them.
    properties, controller_properties
        Properties of brokers and of controllers that override the fixture's own.
    listeners
        Client listeners beside the plain one.
    heap
        Heap of each JVM, as Java takes it.
    jvm_options
        More options of a broker's JVM by its id, such as an agent.
    islands
        Where controllers run that can be cut off, one in each; its numbers are theirs.
    shares_classes
        Whether JVMs start with the file of `jars.shared_classes`, which is written where there is none.
    """

    def __init__(
        self,
        racks: Sequence[str | None] = ("r1", "r1", "r2", "r3"),
        *,
        controllers: int = 1,
        log_dirs: int = 1,
        volumes: Sequence[Path] = (),
        properties: Mapping[str, str] | None = None,
        controller_properties: Mapping[str, str] | None = None,
        listeners: Sequence[Listener] = (),
        heap: str = "256m",
        jvm_options: Callable[[int], Sequence[str]] = lambda broker: (),
        islands: Islands | None = None,
        shares_classes: bool = True,
    ) -> None:
        self.islands = islands
        classes = jars.shared_classes(_write_classes) if shares_classes else None
        self._sharing = [] if classes is None else [f"-XX:SharedArchiveFile={classes}"]
        self._heap, self._jvm_options = heap, jvm_options
        self._class_path = jars.class_path()
        self._java = jars.java()
        self.folder = Path(tempfile.mkdtemp(prefix="trimtab-kafka-"))
        self._cluster_id = _new_cluster_id()
        proxied = [x.name for x in listeners if x.proxied]
        ports = iter(free_ports(controllers + len(racks) * (1 + len(listeners) + len(proxied))))
        self.quorum = {FIRST_CONTROLLER + i: next(ports) for i in range(controllers)}
        self._ports = {
            i: {name: next(ports) for name in ["PLAINTEXT", *(x.name for x in listeners)]} for i in range(1, len(racks) + 1)
        }
        self._proxied = {i: {name: next(ports) for name in proxied} for i in self._ports}
        self._controllers = {
            i: _Role(i, self.folder / f"controller-{i}", self._controller(i) | dict(controller_properties or {}))
            for i in self.quorum
        }
        self._brokers = {
            i: _Role(
                i,
                self.folder / f"broker-{i}",
                self._broker(i, rack, log_dirs, listeners) | dict(properties or {}),
            )
            for i, rack in enumerate(racks, start=1)
        }
        for i, role in self._brokers.items():
            role.properties["log.dirs"] = ",".join([role.properties["log.dirs"], *(str(v / f"broker-{i}") for v in volumes)])
        self._watchdog: subprocess.Popen[str] | None = None
        self._proxies: list[Proxy] = []

    # -- what it is ----------------------------------------------------------------------------------------

    @property
    def cluster_id(self) -> str:
        return self._cluster_id

    @property
    def broker_ids(self) -> list[int]:
        return list(self._brokers)

    @property
    def bootstrap(self) -> str:
        """Addresses of the plain listener of every broker, as ``--bootstrap-server`` takes them."""
        return self.addresses("PLAINTEXT")

    def addresses(self, listener: str) -> str:
        return ",".join(f"127.0.0.1:{self._advertised(i)[listener]}" for i in self._ports)

    def _advertised(self, broker: int) -> dict[str, int]:
        return self._ports[broker] | self._proxied[broker]

    def log_dirs(self, broker: int) -> list[Path]:
        return [Path(p) for p in self._brokers[broker].properties["log.dirs"].split(",")]

    def metadata_log(self, id: int = FIRST_CONTROLLER) -> Path:
        """Folder of the metadata log of a controller, or of a broker, which keeps a copy."""
        return Path(self._role(id).properties["log.dirs"].split(",")[0]) / "__cluster_metadata-0"

    def log_file(self, id: int) -> Path:
        return self._role(id).folder.with_suffix(".log")

    def pid(self, id: int) -> int:
        process = self._role(id).process
        if process is None:
            raise KeyError(f"{id} is not running")
        return process.pid

    def log_tail(self, lines: int = 12) -> str:
        """The end of every process' log, for a failure report."""
        parts = []
        for role in [*self._controllers.values(), *self._brokers.values()]:
            path = self.log_file(role.id)
            end = path.read_text(errors="replace").splitlines()[-lines:] if path.exists() else []
            parts.append("\n".join([f"--- {path.name}", *end]))
        return "\n".join(parts)

    # -- start and stop ------------------------------------------------------------------------------------

    def start(self, seconds: float = 90.0) -> KafkaCluster:
        """Format, start everything, and wait until every broker serves."""
        try:
            self._watchdog = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("watchdog.py")), str(self.folder)],
                stdin=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
            for broker, of in self._proxied.items():
                self._proxies += [Proxy(port, self._ports[broker][name]) for name, port in of.items()]
            roles = [*self._controllers.values(), *self._brokers.values()]
            self._format(roles)
            for role in roles:
                self._launch(role)
            for role in roles:
                self._await_ready(role, seconds)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self, *, keep_logs: bool = False) -> None:
        """End every process at once and remove the data. Calling it again does nothing."""
        while self._proxies:
            self._proxies.pop().close()
        for role in [*self._brokers.values(), *self._controllers.values()]:
            self._end(role, signal.SIGKILL)
        if self._watchdog is not None and self._watchdog.stdin is not None:
            if keep_logs:
                self._tell("keep")
            self._watchdog.stdin.close()
            self._watchdog.wait()
            self._watchdog = None
        if keep_logs:
            for role in [*self._brokers.values(), *self._controllers.values()]:
                shutil.rmtree(role.folder, ignore_errors=True)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def cut(self) -> None:
        """Cut off clients that come through proxied listeners."""
        for proxy in self._proxies:
            proxy.cut()

    def mend(self) -> None:
        for proxy in self._proxies:
            proxy.mend()

    def __enter__(self) -> KafkaCluster:
        return self if self._watchdog is not None else self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    # What follows is said of brokers, and takes the id of a controller as well.

    def stop_broker(self, broker: int) -> None:
        """Stop a broker in order (its leaderships move first)."""
        self._end(self._role(broker), signal.SIGTERM)

    def kill_broker(self, broker: int) -> None:
        """End a broker without warning."""
        self._end(self._role(broker), signal.SIGKILL)

    def has_ended(self, broker: int) -> bool:
        """Whether a broker that was started ended by itself."""
        process = self._role(broker).process
        return process is not None and process.ended

    def freeze_broker(self, broker: int) -> None:
        """Let a broker hang: it keeps its connections and answers nothing."""
        process = self._role(broker).process
        if process is not None:
            process.freeze()

    def thaw_broker(self, broker: int) -> None:
        process = self._role(broker).process
        if process is not None:
            process.thaw()

    def start_broker(self, broker: int, seconds: float = 60.0) -> None:
        """Start a stopped broker again, on its old data and port."""
        role = self._role(broker)
        if role.process is None:
            self._launch(role)
            self._await_ready(role, seconds)

    def alter(self, id: int, properties: Mapping[str, str]) -> None:
        """Change properties of a broker or controller; they hold from its next start."""
        role = self._role(id)
        role.properties.update(properties)
        self._write_properties(role)

    def run_tool(self, main_class: str, *arguments: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run one of Kafka's own command line tools to its end."""
        command = [*self._jvm("128m"), main_class, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)

    # -- inside --------------------------------------------------------------------------------------------

    def _role(self, id: int) -> _Role:
        return self._brokers[id] if id in self._brokers else self._controllers[id]

    def _jvm(self, heap: str) -> list[str]:
        logging = Path(__file__).with_name("log4j2.properties")
        return [self._java, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *self._sharing,
                f"-Dlog4j2.configurationFile={logging}", "-cp", self._class_path]  # fmt: skip

    def _format(self, roles: Sequence[_Role]) -> None:
        running = []
        for role in roles:
            role.folder.mkdir(exist_ok=True)
            self._write_properties(role)
            command = [*self._jvm("64m"), "kafka.tools.StorageTool", "format", "-t", self._cluster_id,
                       "-c", str(role.folder / "server.properties")]  # fmt: skip
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        said = [process.communicate()[0] for process in running]
        for role, process, text in zip(roles, running, said, strict=True):
            if process.returncode != 0:
                raise StartFailed(f"formatting the log directories of {role.folder.name} failed:\n{text}")

    def _write_properties(self, role: _Role) -> None:
        lines = (f"{key}={value}" for key, value in role.properties.items())
        (role.folder / "server.properties").write_text("\n".join(lines) + "\n")

    def _launch(self, role: _Role) -> None:
        options = self._jvm_options(role.id) if role.id in self._brokers else ()
        where = self.islands.within(role.id) if self.islands is not None and role.id in self._controllers else ()
        command = [*where, *self._jvm(self._heap), *options, "kafka.Kafka", str(role.folder / "server.properties")]
        role.process = _Process(command, self.log_file(role.id), os.environ)
        self._tell(f"+{role.process.pid}")

    def _await_ready(self, role: _Role, seconds: float) -> None:
        assert role.process is not None
        if not role.process.wait_ready(seconds):
            raise StartFailed(f"{role.folder.name} did not come up within {seconds:.0f} s\n{self.log_tail()}")

    def _end(self, role: _Role, sent: signal.Signals) -> None:
        if role.process is not None:
            role.process.end(sent)
            self._tell(f"-{role.process.pid}")
            role.process = None

    def _tell(self, line: str) -> None:
        if self._watchdog is not None and self._watchdog.stdin is not None:
            self._watchdog.stdin.write(line + "\n")
            self._watchdog.stdin.flush()

    def address(self, controller: int) -> str:
        return "127.0.0.1" if self.islands is None else self.islands.address(controller)

    def _common(self, id: int) -> dict[str, str]:
        return {
            "node.id": str(id),
            "controller.quorum.voters": ",".join(f"{i}@{self.address(i)}:{port}" for i, port in self.quorum.items()),
            "controller.listener.names": "CONTROLLER",
            "auto.leader.rebalance.enable": "false",
            "broker.session.timeout.ms": "6000",
            "broker.heartbeat.interval.ms": "1000",
            "num.network.threads": "2",
            "num.io.threads": "3",
            "background.threads": "2",
        }

    def _controller(self, id: int) -> dict[str, str]:
        return self._common(id) | {
            "process.roles": "controller",
            "listeners": f"CONTROLLER://{self.address(id)}:{self.quorum[id]}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / f"controller-{id}" / "data"),
        }

    def _broker(self, id: int, rack: str | None, log_dirs: int, extra: Sequence[Listener]) -> dict[str, str]:
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self._ports[id].items())
        advertised = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self._advertised(id).items())
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"} | {x.name: x.protocol for x in extra}
        factor = str(min(3, len(self._ports)))
        properties = self._common(id) | {
            "process.roles": "broker",
            "listeners": listeners,
            "advertised.listeners": advertised,
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": ",".join(f"{name}:{p}" for name, p in protocols.items()),
            "log.dirs": ",".join(str(self.folder / f"broker-{id}" / f"data-{n}") for n in range(log_dirs)),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": factor,
            "offsets.topic.num.partitions": "8",
            "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "8",
            "share.coordinator.state.topic.replication.factor": factor,
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "2097152",
        }
        if rack is not None:
            properties["broker.rack"] = rack
        for listener in extra:
            properties |= listener.properties
        return properties


def _write_classes(path: Path) -> None:
    """The classes that a broker has loaded when it ends."""
    with KafkaCluster([None], jvm_options=lambda broker: (f"-XX:ArchiveClassesAtExit={path}",), shares_classes=False) as kafka:
        kafka.stop_broker(1)


def _new_cluster_id() -> str:
    """A random id as Kafka writes it: 22 characters, the first not a dash, which its tools take for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def free_ports(count: int) -> list[int]:
    """Loopback ports without a listener, outside the range that outgoing connections take their ports from."""
    held: list[socket.socket] = []
    try:
        candidates = iter(random.sample(range(15000, 32000), 400))
        while len(held) < count:
            probe = socket.socket()
            try:
                probe.bind(("127.0.0.1", next(candidates)))
            except OSError:
                probe.close()
            else:
                held.append(probe)
        return [probe.getsockname()[1] for probe in held]
    finally:
        for probe in held:
            probe.close()


if __name__ == "__main__":
    from tests.kafka.playground import main

    sys.exit(main())
