"""How the service reaches the cluster: the seam, and the real cluster behind it.

Followers, the sample consumer and the questions about leadership each have a connection of their own, because one that a
follower uses must not be shared with another thread. Everything here is asked again with growing pauses by the workers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeVar

from kafka.errors import TopicAuthorizationFailedError

from cluster_model.errors import ExternalError
from cluster_model.metadata.description import QuorumReport
from cluster_model.metadata.follower import Follower
from metrics_reporter.permissions import missing
from metrics_reporter.topic import RecordSource
from trimtab.service.claim import Claim

if TYPE_CHECKING:
    from trimtab.capture.client import ClientSettings
    from trimtab.capture.gateway import Gateway
    from trimtab.capture.reading import Reading, TopicPartition
    from trimtab.service.config import ServiceConfig

log = logging.getLogger(__name__)

T = TypeVar("T")
NAMED = 3
RENEWED_AFTER = 5  # failures in a row after which a connection is made again


class ClosableSource(RecordSource, Protocol):
    def close(self) -> None: ...


class Reach(Protocol):
    """What the service asks of a cluster. `follow`, `topic`, `min_isr`, `log_dirs` and `counters` are called by a thread of their own each,
    `quorum` and `shared` by any."""

    def follow(self) -> tuple[str, Follower]:
        """The cluster's id, and a new follower of its metadata.

        Raises
        ------
        ExternalError, ConfigurationError, InputError
            It cannot be reached, or is not what the configuration says.
        """
        ...

    def quorum(self) -> QuorumReport:
        """Who the active controller is now. Raises `ExternalError`."""
        ...

    def shared(self) -> str | None:
        """Who else has the place of this instance, in a sentence; None where it is this one's from now on, or it is unknown from the
        cluster yet."""
        ...

    def min_isr(self, topics: Collection[str]) -> Mapping[str, int]:
        """`min.insync.replicas` in force, by topic; those that are gone or may not be described are left out. Raises `ExternalError`."""
        ...

    def log_dirs(self, brokers: Collection[int]) -> Reading:
        """Log directories of some brokers; what went wrong is in the answer. Raises `ExternalError`."""
        ...

    def counters(self, leads: Mapping[int, list[TopicPartition]]) -> Reading:
        """Log sizes of some brokers, and offsets of what they lead; what went wrong is in the answer. Raises `ExternalError`."""
        ...

    def topic(self) -> ClosableSource:
        """A new reader of the internal topic. Raises `TopicError`, `ExternalError`."""
        ...

    def close(self) -> None: ...


class KafkaReach:
    """A `Reach` over a real cluster.

    Raises
    ------
    ConfigurationError
        The properties file that the configuration names is wrong.
    """

    def __init__(self, config: ServiceConfig) -> None:
        from trimtab.capture.client import client_settings

        path = config.kafka.command_config
        self._settings: ClientSettings = client_settings(None if path is None else Path(path))
        for warning in self._settings.warnings:
            log.warning("%s", warning)
        self._bootstrap, self._name = config.kafka.bootstrap_servers, config.topic_name
        self._kraft_log = None if config.kraft_log is None else Path(config.kraft_log)
        self._node_id = config.node_id if config.leader == "controller" else None
        self._claim: Claim | None = None
        self._following: Gateway | None = None
        self._asking, self._lock = _Renewed(self._connect), Lock()
        self._describing, self._counting, self._listing = (_Renewed(self._connect) for _ in range(3))

    def follow(self) -> tuple[str, Follower]:
        from cluster_model.metadata.follower import KRaftFollower
        from cluster_model.metadata.polling import AdminFollower
        from trimtab.capture.placement import require_cluster

        if self._following is not None:
            self._following.close()
            self._following = None
        gateway = self._following = self._connect()
        cluster_id = gateway.cluster_id()
        if self._claim is None:
            self._claim = Claim(cluster_id, self._node_id, self._kraft_log)
        if self._kraft_log is None:
            undescribed = gateway.undescribed()
            if undescribed:
                named = ", ".join(undescribed[:NAMED]) + (f" and {len(undescribed) - NAMED} more" if len(undescribed) > NAMED else "")
                why = missing(TopicAuthorizationFailedError, "Describe")
                raise ExternalError(f"brokers hold topics that are not described to this service ({named}): {why}", retriable=True)
            return cluster_id, AdminFollower(gateway)
        require_cluster(self._kraft_log, cluster_id, "configuration", "kraft_log")
        return cluster_id, KRaftFollower(self._kraft_log, gateway)

    def quorum(self) -> QuorumReport:
        with self._lock:
            return self._asking.ask(lambda gateway: gateway.quorum())

    def shared(self) -> str | None:
        with self._lock:
            return None if self._claim is None else self._claim.refused()

    def min_isr(self, topics: Collection[str]) -> Mapping[str, int]:
        return self._describing.ask(lambda gateway: gateway.min_isr(topics))

    def log_dirs(self, brokers: Collection[int]) -> Reading:
        return self._listing.ask(lambda gateway: gateway.counters({broker: [] for broker in brokers}))

    def counters(self, leads: Mapping[int, list[TopicPartition]]) -> Reading:
        return self._counting.ask(lambda gateway: gateway.counters(leads))

    def topic(self) -> ClosableSource:
        from metrics_reporter.kafka_topic import KafkaTopicReader

        return KafkaTopicReader(self._bootstrap, self._settings.options, self._name, wait=0.25)

    def close(self) -> None:
        if self._following is not None:
            self._following.close()
        self._describing.close()
        self._counting.close()
        self._listing.close()
        with self._lock:
            self._asking.close()
            if self._claim is not None:
                self._claim.close()

    def _connect(self) -> Gateway:
        from trimtab.capture.gateway import Gateway

        return Gateway(self._bootstrap, self._settings)


class _Renewed:
    """A connection that is made when it is needed, and again where it fails again and again."""

    def __init__(self, connect: Callable[[], Gateway]) -> None:
        self._connect = connect
        self._gateway: Gateway | None = None
        self._failures = 0

    def ask(self, question: Callable[[Gateway], T]) -> T:
        if self._gateway is None:
            self._gateway = self._connect()
        try:
            answer = question(self._gateway)
        except ExternalError:
            self._failures += 1
            if self._failures >= RENEWED_AFTER:
                self.close()
            raise
        self._failures = 0
        return answer

    def close(self) -> None:
        gateway, self._gateway, self._failures = self._gateway, None, 0
        if gateway is not None:
            gateway.close()
