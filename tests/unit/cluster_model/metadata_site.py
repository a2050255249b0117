"""A metadata log in a folder, the quorum beside it, and a follower that reads both. Used by the tests of the follower."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cluster_model.errors import ExternalError
from cluster_model.metadata import schemas as s
from cluster_model.metadata.description import QuorumReport
from cluster_model.metadata.follower import KRaftFollower, Update
from cluster_model.metadata.image import MetadataImage
from tests.unit.cluster_model.metadata_log import Entry, LogWriter
from tests.unit.cluster_model.metadata_oracle import said_by, without_epochs

NOW = 1_767_225_600_000


@dataclass
class Quorum:
    """What the quorum says, as the test wants it."""

    high_watermark: int = 0
    epoch: int = 1
    leader: int | None = 100
    error: ExternalError | None = None

    def quorum(self) -> QuorumReport:
        if self.error is not None:
            raise self.error
        return QuorumReport(self.leader, self.epoch, self.high_watermark)


@dataclass
class Site:
    """A log directory, the quorum, a follower, and what it said."""

    log: LogWriter
    quorum: Quorum
    follower: KRaftFollower
    told: MetadataImage = field(default_factory=MetadataImage)  # folded from the events alone
    topics: int = 0

    def poll(self) -> Update:
        update = self.follower.poll(NOW)
        events = tuple(update.events)
        for event in events:
            self.told.apply(event, NOW)
        assert without_epochs(said_by(self.told)) == without_epochs(said_by(self.follower.image))
        return replace(update, events=events)

    def commit(self, offset: int | None = None) -> None:
        self.quorum.high_watermark = self.log.end if offset is None else offset
        self.quorum.epoch = self.log.epoch

    def again(self) -> None:
        """A new follower on the same directory, as after a restart."""
        self.follower = KRaftFollower(self.log.directory, self.quorum)
        self.told = MetadataImage()

    def topic_names(self) -> list[str]:
        return sorted(self.follower.image.topic_ids)


def broker(id: int, rack: str | None = "a", *, fenced: bool = False) -> Entry:
    fields = {"brokerId": id, "incarnationId": bytes(16), "endPoints": [], "features": [], "rack": rack, "fenced": fenced}
    return Entry(s.REGISTER_BROKER, 1, fields)


def topic(name: str, number: int = 0) -> Entry:
    return Entry(s.TOPIC, 0, {"name": name, "topicId": id_of(name, number)})


def id_of(name: str, number: int = 0) -> bytes:
    return (name.encode() * 16)[:12] + number.to_bytes(4, "big")


def partition(name: str, number: int = 0, replicas: tuple[int, ...] = (1, 2)) -> Entry:
    fields = {
        "partitionId": number, "topicId": id_of(name), "replicas": list(replicas), "isr": list(replicas),
        "leader": replicas[0], "leaderEpoch": 0, "partitionEpoch": 0,
    }  # fmt: skip
    return Entry(s.PARTITION, 0, fields)


def leader(name: str, broker: int) -> Entry:
    return Entry(s.PARTITION_CHANGE, 0, {"partitionId": 0, "topicId": id_of(name), "leader": broker})
