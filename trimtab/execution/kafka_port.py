"""A real cluster behind the port: the public calls of kafka-python's admin client, and nothing below them.

A client remembers brokers that went, and puts some questions to one broker of its choice: so a client that failed is replaced by a new
one before the next call.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka import TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.protocol.admin import ElectionType

from cluster_model.errors import ExternalError
from metrics_reporter.permissions import missing
from trimtab.capture.client import ClientSettings
from trimtab.capture.connection import connect, named
from trimtab.execution.directories import SeenDirectories
from trimtab.execution.port import Answers, Refusal, Resource
from trimtab.execution.state import Observed, Partition, SeenBroker, SeenPartition

T = TypeVar("T")
FAILURES = (kafka_errors.KafkaError, OSError, RuntimeError)  # a client that cannot go on raises any of these
MIN_ISR, MIN_ISR_SECONDS = "min.insync.replicas", 60.0
OWN_SOURCE = {"broker": "DYNAMIC_BROKER_CONFIG", "topic": "DYNAMIC_TOPIC_CONFIG"}
OK = "OK"
CONFIGURING = ("alter configs", "describe configs", "describe topic configs")
ATTEMPTS = 2


class KafkaPort:
    """See `ClusterPort`.

    Parameters
    ----------
    bootstrap_server
        ``HOST:PORT,HOST:PORT``.

    Raises
    ------
    ConfigurationError, ExternalError
        The address is wrong, or nothing there lets us in.
    """

    def __init__(
        self,
        bootstrap_server: str,
        settings: ClientSettings,
        *,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._where, self._settings, self._wall_ms, self._monotonic = bootstrap_server, settings, wall_ms, monotonic
        self._admin: KafkaAdminClient | None = connect(bootstrap_server, settings)
        self._min_isr: dict[str, tuple[float, int]] = {}  # by topic: when it was asked, and the value

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(*FAILURES):
                admin.close()

    # -- looking ---------------------------------------------------------------------------------------------

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        at = self._wall_ms()
        cluster = self._ask("describe the cluster", lambda admin: admin.describe_cluster())
        moving = self._ask("list reassignments", lambda admin: admin.list_partition_reassignments())
        wanted = None if topics is None else sorted({*topics, *(key.topic for key in moving)})
        partitions: dict[Partition, SeenPartition] = {}
        for topic in self._ask("describe the topics", lambda admin: admin.describe_topics(wanted)) if wanted != [] else ():
            if topic.get("error_code", 0) == kafka_errors.TopicAuthorizationFailedError.errno:
                why = missing(kafka_errors.TopicAuthorizationFailedError, "Describe")
                raise ExternalError(f"{self._where}: the cluster does not describe topic {topic['name']} to us: {why}")
            for p in topic["partitions"]:
                name = Partition(topic["name"], p["partition_index"])
                leader = p["leader_id"] if p["leader_id"] >= 0 else None
                partitions[name] = SeenPartition(tuple(p["replica_nodes"]), tuple(p["isr_nodes"]), leader)
        for key, r in moving.items():
            name = Partition(key.topic, key.partition)
            seen = partitions.get(name, SeenPartition((), (), None))
            partitions[name] = SeenPartition(
                tuple(r["replicas"]), seen.isr, seen.leader, tuple(r["adding_replicas"]), tuple(r["removing_replicas"])
            )
        alive = {b["broker_id"]: not b.get("is_fenced", False) for b in cluster["brokers"]}
        rooms, copied = self._disks(sorted(b for b in brokers if alive.get(b)), names, partitions)
        known = {b["broker_id"]: SeenBroker(b["rack"], alive[b["broker_id"]], rooms.get(b["broker_id"])) for b in cluster["brokers"]}
        counts = {n.topic for n in names} | {n.topic for n, p in partitions.items() if len(p.isr) < len(p.replicas)}
        return Observed(cluster["cluster_id"], at, known, partitions, self._needed(counts & {n.topic for n in partitions}), copied)

    def sizes(self, names: Collection[Partition]) -> dict[Partition, float]:
        cluster = self._ask("describe the cluster", lambda admin: admin.describe_cluster())
        wanted, found = set(names), dict[Partition, float]()
        for broker in [b["broker_id"] for b in cluster["brokers"] if not b.get("is_fenced", False)]:
            for log_dir in self._log_dirs(broker, wanted):
                for name, size in _replicas(log_dir):
                    if name in wanted:
                        found[name] = max(found.get(name, 0.0), size)
        return found

    def _disks(
        self, brokers: Sequence[int], names: Collection[Partition], partitions: Mapping[Partition, SeenPartition]
    ) -> tuple[dict[int, float], dict[Partition, float]]:
        """Room of the fullest log directory of each broker that answers, and what adding replicas of `names` have."""
        rooms: dict[int, float] = {}
        copied: dict[Partition, float] = {}
        moving = {n: partitions[n].adding for n in names if n in partitions and partitions[n].adding}
        for broker in brokers:
            log_dirs = self._log_dirs(broker, moving)
            free = [d["usable_bytes"] for d in log_dirs if d.get("usable_bytes", -1) >= 0 and not d["error_code"]]
            if free:
                rooms[broker] = float(min(free))
            for log_dir in log_dirs:
                for name, size in _replicas(log_dir):
                    if broker in moving.get(name, ()):
                        copied[name] = copied.get(name, 0.0) + size
        return rooms, copied

    def _log_dirs(self, broker: int, names: Collection[Partition]) -> list[dict[str, Any]]:
        """Log directories of one broker with the replicas of some partitions; none where it does not answer."""
        asked = _by_topic(names)
        try:
            answers = self._ask("describe log directories", lambda admin: admin.describe_log_dirs(asked, [broker]))
        except ExternalError:
            return []
        return [d for answer in answers for d in answer["log_dirs"]]

    def _needed(self, topics: Collection[str]) -> dict[str, int]:
        """``min.insync.replicas`` by topic, asked again after a minute."""
        now = self._monotonic()
        asked = sorted(t for t in topics if t not in self._min_isr or now - self._min_isr[t][0] > MIN_ISR_SECONDS)
        if asked:
            resources = [ConfigResource("TOPIC", t, [MIN_ISR]) for t in asked]
            told = self._ask("describe topic configs", lambda admin: admin.describe_configs(resources, config_filter="all"))
            self._min_isr |= {name: (now, int(of[MIN_ISR]["value"])) for name, of in told.get("topic", {}).items() if MIN_ISR in of}
        return {t: self._min_isr[t][1] for t in topics if t in self._min_isr}

    # -- steps -----------------------------------------------------------------------------------------------

    def reassign(self, targets: Mapping[Partition, tuple[int, ...] | None]) -> Answers:
        if not targets:
            return {}
        wanted = {TopicPartition(*name): None if to is None else list(to) for name, to in targets.items()}
        told = self._ask("alter reassignments", lambda admin: admin.alter_partition_reassignments(wanted))
        answers = {Partition(key.topic, key.partition): _refusal(error) for key, error in told.items()}
        return {name: answers.get(name, Refusal("NO_ANSWER", "the controller did not say", retriable=True)) for name in targets}

    def elect(self, names: Sequence[Partition]) -> Answers:
        if not names:
            return {}
        wanted = _by_topic(names)
        told = self._ask("elect leaders", lambda admin: admin.elect_leaders(ElectionType.PREFERRED, wanted, raise_errors=False))
        whole = kafka_errors.for_code(getattr(told, "error_code", 0))
        answers: Answers = dict.fromkeys(names, _refusal(whole))
        for topic in told.replica_election_results:
            for p in topic.partition_result:
                answers[Partition(topic.topic, p.partition_id)] = _refusal(kafka_errors.for_code(p.error_code), p.error_message)
        return answers

    # -- log directories -------------------------------------------------------------------------------------

    def directories(self, broker: int, names: Sequence[Partition]) -> SeenDirectories | None:
        found = self._log_dirs(broker, names)
        online = [d for d in found if not d["error_code"]]
        if not online:
            return None
        rooms = {d["log_dir"]: float(d.get("usable_bytes", -1)) for d in online}
        held: dict[Partition, tuple[str, float]] = {}
        coming: dict[Partition, tuple[str, float]] = {}
        for log_dir in online:
            for topic in log_dir["topics"]:
                for p in topic["partitions"]:
                    to = coming if p["is_future_key"] else held
                    to[Partition(topic["name"], p["partition_index"])] = log_dir["log_dir"], float(p["partition_size"])
        return SeenDirectories({path: room if room >= 0 else math.inf for path, room in rooms.items()}, held, coming)

    def move(self, broker: int, targets: Mapping[Partition, str]) -> Answers:
        wanted = {(name.topic, name.number, broker): path for name, path in targets.items()}
        told = self._ask("move replicas between log directories", lambda admin: admin.alter_replica_log_dirs(wanted))
        answers = {Partition(key.topic, key.partition): _refusal(error) for key, error in told.items()}
        return {name: answers.get(name, Refusal("NO_ANSWER", "the broker did not say", retriable=True)) for name in targets}

    # -- configuration ---------------------------------------------------------------------------------------

    def configs(self, resources: Collection[Resource], keys: Collection[str]) -> dict[Resource, dict[str, str]]:
        found: dict[Resource, dict[str, str]] = {}
        topics = [r for r in resources if r.kind == "topic"]
        for group in [topics, *([r] for r in resources if r.kind == "broker")]:
            if not group:
                continue
            asked = [ConfigResource(r.kind.upper(), r.name, list(keys)) for r in group]
            try:
                told = self._ask("describe configs", _describing(asked))
            except ExternalError as error:
                if group is topics or not error.retriable:  # refused: no move without the throttle that was asked for
                    raise
                continue  # a broker that is down
            for resource in group:
                values = told.get(resource.kind, {}).get(resource.name)
                if values is not None:
                    own = OWN_SOURCE[resource.kind]
                    found[resource] = {k: v["value"] for k, v in values.items() if v["config_source"] == own and v["value"] is not None}
        return found

    def setting(self, broker: int, key: str) -> str | None:
        try:
            told = self._ask("describe configs", _describing([ConfigResource("BROKER", str(broker), [key])]))
        except ExternalError:
            return None
        found = told.get("broker", {}).get(str(broker), {}).get(key)
        return None if found is None else found["value"]

    def set_configs(self, changes: Mapping[Resource, Mapping[str, str | None]]) -> dict[Resource, Refusal | None]:
        answers: dict[Resource, Refusal | None] = {}
        topics = {r: c for r, c in changes.items() if r.kind == "topic"}
        for group in [topics, *({r: c} for r, c in changes.items() if r.kind == "broker")]:
            if not group:
                continue
            wanted = [
                ConfigResource(r.kind.upper(), r.name, {k: ("DELETE", None) if v is None else ("SET", v) for k, v in of.items()})
                for r, of in group.items()
            ]
            try:
                told = self._ask("alter configs", _altering(wanted))
            except ExternalError as error:
                answers |= dict.fromkeys(group, Refusal("NO_ANSWER", str(error), retriable=True))
                continue
            for resource in group:
                said = told.get(resource.kind, {}).get(resource.name, OK)
                why = f"{said}; {_needed(said, 'alter configs')}" if "AuthorizationFailed" in said else said
                answers[resource] = None if said == OK else Refusal("CONFIG_REFUSED", why)
        return answers

    # -- calls -----------------------------------------------------------------------------------------------

    def _ask(self, what: str, call: Callable[[Any], T]) -> T:
        """The answer to a question, asked again once on a new connection."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                if self._admin is None:
                    self._admin = connect(self._where, self._settings)
                return call(self._admin)
            except kafka_errors.AuthorizationError as error:
                raise ExternalError(
                    f"{self._where}: the cluster refused to {what}: {named(error)}; {_needed(error, what)}"
                ) from error
            except (*FAILURES, ExternalError) as error:  # who was let in once is let in again, whatever a connection says meanwhile
                self.close()
                if attempt == ATTEMPTS:
                    raise ExternalError(f"{self._where}: cannot {what} now: {_told(error)}", retriable=True) from error
        raise AssertionError("unreachable")


def _needed(error: Exception | str, what: str) -> str:
    """The permission that an executor needs: on the cluster Alter, which contains Describe; for settings AlterConfigs, which contains the
    other."""
    topics = "Topic" in (error if isinstance(error, str) else type(error).__name__)
    kind = kafka_errors.TopicAuthorizationFailedError if topics else kafka_errors.ClusterAuthorizationFailedError
    return missing(kind, "AlterConfigs" if what in CONFIGURING else "Describe" if topics else "Alter")


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, ExternalError) else named(error)


def _describing(asked: Sequence[Any]) -> Callable[[Any], Any]:
    return lambda admin: admin.describe_configs(asked, config_filter="all")


def _altering(wanted: Sequence[Any]) -> Callable[[Any], Any]:
    return lambda admin: admin.alter_configs(wanted, raise_on_unknown=False, incremental=True)


def _by_topic(names: Collection[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name in sorted(names):
        found.setdefault(name.topic, []).append(name.number)
    return found


def _replicas(log_dir: Mapping[str, Any]) -> list[tuple[Partition, float]]:
    return [
        (Partition(topic["name"], p["partition_index"]), float(p["partition_size"]))
        for topic in log_dir["topics"]
        for p in topic["partitions"]
        if not p["is_future_key"]
    ]


def _refusal(error: Any, message: str | None = None) -> Refusal | None:
    """Of an error class of the client; None where it is none, or none is needed."""
    if error is None or error in (kafka_errors.NoError, kafka_errors.ElectionNotNeededError):
        return None
    again = issubclass(error, kafka_errors.RetriableError) or error is kafka_errors.PreferredLeaderNotAvailableError
    return Refusal(getattr(error, "message", error.__name__), message or "", retriable=again)
