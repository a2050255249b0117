"""The one place where captures and followers talk to Kafka: a thin port around the Python admin client.

Used by `trimtab.capture`, and asked by the followers of `cluster_model.metadata`. Every answer carries its own
time and, per broker, its own error, so that one broker that does not answer never hides the others. Only reads.
Most requests go out below the client's public methods (`trimtab.capture.asking`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.consumer import ListOffsetsRequest, OffsetSpec
from kafka.protocol.metadata import MetadataRequest

from cluster_model.errors import ExternalError
from cluster_model.metadata.description import ClusterDescription, DescribedBroker, DescribedPartition, DescribedTopic, QuorumReport
from cluster_model.metadata.wire import uuid_text
from metrics_reporter.permissions import missing
from trimtab.capture.asking import Asker
from trimtab.capture.client import ClientSettings
from trimtab.capture.connection import connect, named
from trimtab.capture.reading import BrokerReading, Commits, LogDir, LogEnds, LogSizes, Reading, TopicPartition, Topology, led, topology_of

T = TypeVar("T")
BROKERS_AT_ONCE = 8
# Of ListOffsets: from here on it knows where the local log starts when older segments are in remote storage.
LOCAL_START_VERSION = 8
# A broker that knows no active controller lets the question wait for long; the next one is asked soon enough.
QUORUM_TIMEOUT_MS = 2_000
METADATA_TOPIC = "__cluster_metadata"
MIN_ISR, CLEANUP = "min.insync.replicas", "cleanup.policy"
TOPICS_AT_ONCE = 1_000  # in one request for settings
TOPIC_RESOURCE = 2  # of the protocol


class Gateway:
    """An open admin connection. Close it, or use it as a context manager.

    Raises
    ------
    ConfigurationError
        The address is not HOST:PORT.
    ExternalError
        Nothing answers there, or it is not Kafka, or it does not let us in; the message says what to check.
    """

    def __init__(
        self, bootstrap_server: str, settings: ClientSettings, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._where = bootstrap_server
        self._now = monotonic
        self._timeout_ms = settings.request_timeout_ms
        self._admin = connect(bootstrap_server, settings)
        self._ask = Asker(self._admin, bootstrap_server, monotonic)

    def close(self) -> None:
        self._admin.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- metadata ------------------------------------------------------------------------------------------

    def describe(self) -> ClusterDescription:
        """Brokers, topics, replica lists, leaders, reassignments that are under way, and the quorum."""
        try:
            quorum = self.quorum()
        except ExternalError:
            quorum = None
        return replace(self._description(), quorum=quorum)

    def topology(self) -> Topology:
        """Brokers, topics, replica lists, leaders, and reassignments that are under way."""
        return topology_of(self._description())

    def quorum(self) -> QuorumReport:
        """Leader, epoch and high watermark of the metadata quorum."""
        what = "describe the metadata quorum"
        kind = DescribeQuorumRequest.TopicData
        topic = kind(topic_name=METADATA_TOPIC, partitions=[kind.PartitionData(partition_index=0)])
        try:
            response = self._ask.anyone(what, lambda: DescribeQuorumRequest(topics=[topic]), QUORUM_TIMEOUT_MS)
        except kafka_errors.UnsupportedVersionError as error:
            raise ExternalError(f"{self._where}: cannot {what}: the cluster does not run on KRaft") from error
        partition = response.topics[0].partitions[0]
        if partition.error_code:
            kind = kafka_errors.for_code(partition.error_code)
            if issubclass(kind, kafka_errors.AuthorizationError):
                raise self._ask.refused(what, kind())
            said = kind.__name__
            raise ExternalError(f"{self._where}: cannot {what} now: {said}", retriable=True)
        leader = partition.leader_id if partition.leader_id >= 0 else None
        return QuorumReport(leader, partition.leader_epoch, partition.high_watermark)

    def cluster_id(self) -> str:
        """Id of the cluster."""
        request = lambda: DescribeClusterRequest(include_fenced_brokers=True)  # noqa: E731
        return str(self._ask.anyone("describe the cluster", request).cluster_id)

    def min_isr(self, topics: Collection[str]) -> dict[str, int]:
        """``min.insync.replicas`` in force, by topic; topics that are gone or may not be described are left out."""
        return {topic: int(value) for topic, value in self._topic_config(MIN_ISR, topics).items()}

    def compacted(self, topics: Collection[str]) -> dict[str, bool]:
        """Whether topics are compacted; those that are gone or may not be described are left out."""
        return {topic: "compact" in value for topic, value in self._topic_config(CLEANUP, topics).items()}

    def _topic_config(self, name: str, topics: Collection[str]) -> dict[str, str]:
        """One setting in force, by topic."""
        resource, listed = DescribeConfigsRequest.DescribeConfigsResource, list(topics)
        found: dict[str, str] = {}
        for first in range(0, len(listed), TOPICS_AT_ONCE):
            some = listed[first : first + TOPICS_AT_ONCE]
            asked = [resource(resource_type=TOPIC_RESOURCE, resource_name=t, configuration_keys=[name]) for t in some]
            response = self._ask.anyone("describe topic configs", partial(DescribeConfigsRequest, resources=asked))
            for result in response.results:
                if not result.error_code:
                    found.update((str(result.resource_name), str(c.value)) for c in result.configs if c.name == name)
        return found

    def _description(self) -> ClusterDescription:
        metadata = self._ask.anyone("describe the topics", lambda: MetadataRequest(topics=None, allow_auto_topic_creation=False))
        try:
            brokers = self._registered()
        except kafka_errors.UnsupportedVersionError:  # a cluster too old to tell of fenced brokers
            brokers = [DescribedBroker(b.node_id, b.rack, False) for b in metadata.brokers]
        unreadable = {
            topic.name or str(topic.topic_id): kafka_errors.for_code(topic.error_code).__name__
            for topic in metadata.topics
            if topic.error_code
        }
        topics = [
            DescribedTopic(topic.name, _id_text(topic.topic_id), [_described(p) for p in topic.partitions])
            for topic in metadata.topics
            if topic.name
        ]
        return ClusterDescription(metadata.cluster_id, brokers, topics, self._reassigning(), unreadable)

    def _registered(self) -> list[DescribedBroker]:
        response = self._ask.anyone("describe the cluster", lambda: DescribeClusterRequest(include_fenced_brokers=True))
        return [DescribedBroker(b.broker_id, b.rack, bool(getattr(b, "is_fenced", False))) for b in response.brokers]

    def _reassigning(self) -> dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...]]]:
        """Replicas that reassignments under way are adding and removing."""
        try:
            response = self._ask.anyone(
                "list reassignments",
                lambda: ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=None),
            )
        except kafka_errors.UnsupportedVersionError:  # so old that it cannot be asked
            return {}
        return {
            (topic.name, p.partition_index): (tuple(p.adding_replicas), tuple(p.removing_replicas))
            for topic in response.topics
            for p in topic.partitions
        }

    def undescribed(self) -> list[str]:
        """Topics that have logs on a broker and are not described to us: the cluster leaves out, without a word, what a principal may not
        see. From one broker that answers."""
        response = self._ask.anyone("describe log directories", lambda: DescribeLogDirsRequest(topics=None))
        logs = {topic.name for log_dir in response.results for topic in log_dir.topics} - {METADATA_TOPIC}
        return sorted(logs - {topic.name for topic in self._description().topics})

    # -- counters ------------------------------------------------------------------------------------------

    def read(self, topology: Topology, *, rates: bool, done: Callable[[float], None]) -> Reading:
        """Log sizes of every broker that is not fenced and, with `rates`, offsets and commits beside them.

        `done` is called with the share of brokers that have answered or failed to.
        """
        leads = led(topology, {topic for topic, _ in topology.partitions})
        asked = [b.id for b in topology.brokers.values() if not b.fenced]
        reading: dict[int, BrokerReading] = {}
        with ThreadPoolExecutor(BROKERS_AT_ONCE) as pool:
            answers = pool.map(lambda b: self._broker(b, leads.get(b, []), rates), asked)
            for broker, answer in zip(asked, answers, strict=True):
                reading[broker] = answer
                done(len(reading) / len(asked))
        return reading

    def counters(self, leads: Mapping[int, list[TopicPartition]]) -> Reading:
        """Log sizes and offsets of partitions, by the broker that leads them."""
        with ThreadPoolExecutor(BROKERS_AT_ONCE) as pool:
            answers = pool.map(lambda b: self._broker(b, leads[b], True, commits=False), leads)
            return dict(zip(leads, answers, strict=True))

    def _broker(self, broker: int, leads: list[TopicPartition], rates: bool, commits: bool = True) -> BrokerReading:
        """What one broker tells. One that does not answer the first question is not asked the others."""
        answered = False
        errors: list[str] = []

        def part(what: str, read: Callable[[], T]) -> T | None:
            nonlocal answered
            try:
                told = read()
            except kafka_errors.KafkaError as error:
                answered = answered or _is_answer(error)
                refused = isinstance(error, kafka_errors.AuthorizationError)
                errors.append(f"{what}: {named(error)}" + (f"; {missing(error, 'Describe')}" if refused else ""))
                return None
            answered = True
            return told

        sizes = part("log directories", lambda: self._sizes(broker, None if commits else leads))
        if not (rates and answered):
            return BrokerReading(sizes, answered=answered, errors=tuple(errors))
        ends = part("offsets", lambda: self._ends(broker, leads))
        committed = part("consumer groups", lambda: self._commits(broker)) if commits else None
        return BrokerReading(sizes, ends, committed, errors=tuple(errors))

    def _sizes(self, broker: int, only: list[TopicPartition] | None) -> LogSizes:
        kind = DescribeLogDirsRequest.DescribableLogDirTopic
        topics = None if only is None else [kind(topic=t, partitions=numbers) for t, numbers in _by_topic(only).items()]
        response, at = self._ask.timed(lambda: DescribeLogDirsRequest(topics=topics), broker)
        code = getattr(response, "error_code", 0)
        if code:
            raise kafka_errors.for_code(code)()
        sizes: dict[TopicPartition, int] = {}
        held: dict[TopicPartition, int] = {}
        future: dict[TopicPartition, tuple[int, int]] = {}
        offline: list[str] = []
        dirs: list[LogDir] = []
        several = len(response.results) > 1
        for log_dir in response.results:
            place = len(dirs)
            if log_dir.error_code:
                offline.append(log_dir.log_dir)
            elif getattr(log_dir, "total_bytes", -1) > 0:
                logs = sum(p.partition_size for topic in log_dir.topics for p in topic.partitions)
                dirs.append(LogDir(log_dir.log_dir, log_dir.total_bytes, log_dir.usable_bytes, logs))
            for topic in log_dir.topics:
                for p in topic.partitions:
                    key = topic.name, p.partition_index
                    if p.is_future_key:
                        future[key] = place, p.partition_size
                        continue
                    sizes[key] = p.partition_size
                    if several:
                        held[key] = place
        told = tuple(dirs) if len(dirs) + len(offline) == len(response.results) else ()
        return LogSizes(at, sizes, tuple(offline), len(future), told, held if told else {}, future)

    def _ends(self, broker: int, leads: list[TopicPartition]) -> LogEnds:
        if not leads:
            return LogEnds(self._now(), {}, {})
        version = self._admin.get_broker_version_data(broker).api_version(ListOffsetsRequest)
        earliest = OffsetSpec.EARLIEST_LOCAL if version >= LOCAL_START_VERSION else OffsetSpec.EARLIEST
        ends, at = self._offsets(broker, leads, OffsetSpec.LATEST)
        starts, _ = self._offsets(broker, leads, earliest)
        return LogEnds(at, ends, starts)

    def _offsets(
        self, broker: int, leads: list[TopicPartition], spec: OffsetSpec
    ) -> tuple[dict[TopicPartition, int], float]:
        """Offsets of those partitions that the broker really leads, and when; the others are left out."""
        numbers = _by_topic(leads)
        kind = ListOffsetsRequest.ListOffsetsTopic
        response, at = self._ask.timed(
            lambda: ListOffsetsRequest(
                isolation_level=0,
                topics=[
                    kind(
                        name=topic,
                        partitions=[kind.ListOffsetsPartition(partition_index=n, timestamp=spec) for n in each],
                    )
                    for topic, each in numbers.items()
                ],
            ),
            broker,
        )
        offsets = {
            (topic.name, p.partition_index): p.offset
            for topic in response.topics
            for p in topic.partitions
            if not p.error_code
        }
        return offsets, at

    def _commits(self, broker: int) -> Commits:
        groups = [
            g["group_id"] for g in self._admin.list_groups(broker_ids=[broker]) if g.get("protocol_type") in ("consumer", "")
        ]
        offsets: dict[str, dict[TopicPartition, int]] = {}
        unknown: dict[str, str] = {}
        begun = self._now()
        try:
            found = self._admin.list_group_offsets(groups) if groups else {}
        except kafka_errors.BrokerResponseError:
            found = {}
            for group in groups:
                try:
                    found |= self._admin.list_group_offsets([group])
                except kafka_errors.AuthorizationError as error:
                    unknown[group] = missing(error, "Describe")
                except kafka_errors.BrokerResponseError as error:
                    unknown[group] = named(error)
        at = (begun + self._now()) / 2
        for group, committed in found.items():
            offsets[group] = {(tp.topic, tp.partition): c.offset for tp, c in committed.items() if c.offset >= 0}
        return Commits(at, offsets, unknown)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return numbers


def _is_answer(error: kafka_errors.KafkaError) -> bool:
    """Whether a broker said this, rather than the client for want of an answer."""
    silence = (kafka_errors.RequestTimedOutError, kafka_errors.NetworkExceptionError)
    return isinstance(error, kafka_errors.BrokerResponseError) and not isinstance(error, silence)


def _described(partition: Any) -> DescribedPartition:
    return DescribedPartition(
        partition.partition_index,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        partition.leader_id if partition.leader_id >= 0 else None,
        tuple(partition.offline_replicas or ()),
    )


def _id_text(topic_id: Any) -> str:
    return uuid_text(topic_id.bytes) if topic_id is not None else ""


def require_broker(topology: Topology, reading: Reading, where: str) -> None:
    """Refuse a capture of which nothing could be read: then it is our way to the brokers that is broken,
    not they; and one that may not see any topic of those that brokers hold."""
    if any(broker.answered for broker in reading.values()):
        logs = any(part.sizes is not None and part.sizes.sizes for part in reading.values())
        if logs and not topology.partitions:
            why = missing(kafka_errors.TopicAuthorizationFailedError, "Describe")
            raise ExternalError(f"{where} describes no topic, though its brokers hold some: {why}")
        return
    said = "; ".join(f"broker {b}: {', '.join(r.errors)}" for b, r in sorted(reading.items())[:3])
    raise ExternalError(
        f"{where} describes a cluster of {len(topology.brokers)} brokers, but none of them answers at "
        "the address it advertises"
        f"{f' ({said})' if said else ''}. Check advertised.listeners, and that those host names and "
        "ports can be reached from here.",
        retriable=True,
    )
