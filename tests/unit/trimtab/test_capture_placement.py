"""`--kraft-log` must give the placement that is committed in this very cluster, or say why it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError, ExternalError
from cluster_model.metadata import schemas as s
from cluster_model.metadata.description import DescribedBroker, QuorumReport
from tests.unit.cluster_model.metadata_log import Entry, LogWriter
from trimtab.capture import Clock
from trimtab.capture.placement import LogPlacement

ID = bytes(range(16))


@dataclass
class Quorum:
    high_watermark: int
    epoch: int = 1

    def quorum(self) -> QuorumReport:
        return QuorumReport(100, self.epoch, self.high_watermark)


class Ticking:
    """A clock that goes on by what is slept; `then` is done at the first pause."""

    def __init__(self, then: object = None) -> None:
        self.now = 0.0
        self.then = then

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if callable(self.then):
            self.then()
            self.then = None

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep, lambda: datetime.fromtimestamp(0, UTC))


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=this-one\n")
    writer = LogWriter(tmp_path / "__cluster_metadata-0")
    writer.directory.mkdir()
    base = {"incarnationId": bytes(16), "endPoints": [], "features": []}
    writer.append(
        *(Entry(s.REGISTER_BROKER, 1, {**base, "brokerId": b, "rack": f"r{b}", "fenced": b == 3}) for b in (1, 2, 3)),
        Entry(s.TOPIC, 0, {"name": "orders", "topicId": ID}),
        Entry(s.PARTITION, 0, {"topicId": ID, "partitionId": 0, "replicas": [4, 2, 3, 1], "isr": [1, 2],
                               "addingReplicas": [4], "removingReplicas": [1], "leader": 1}),
        Entry(s.PARTITION, 0, {"topicId": ID, "partitionId": 1, "replicas": [3], "isr": [3], "leader": -1}),
    )  # fmt: skip
    return writer


def test_the_topology_is_the_image(log: LogWriter) -> None:
    topology = LogPlacement(log.directory, Quorum(log.end), "this-one", Ticking().clock).topology()
    assert topology.cluster_id == "this-one"
    assert topology.brokers == {b: DescribedBroker(b, f"r{b}", b == 3) for b in (1, 2, 3)}
    moving, lost = (topology.partitions["orders", n] for n in (0, 1))
    assert (moving.replicas, moving.target, moving.leader) == ((4, 2, 3, 1), (4, 2, 3), 1)
    assert moving.offline == (4, 3), "not registered, and fenced"
    assert (lost.leader, lost.offline) == (None, (3,))
    assert topology.notes == ("brokers, replica lists and leaders are from the metadata log at offset 6",)


def test_a_replica_that_comes_to_the_watermark_in_time_is_waited_for(log: LogWriter) -> None:
    quorum = Quorum(7)
    ticking = Ticking(lambda: log.append(Entry(20, 0)))
    placement = LogPlacement(log.directory, quorum, "this-one", ticking.clock)
    assert placement.topology().notes[0].endswith("offset 7")
    assert 0 < ticking.now < 1


def test_a_replica_that_is_cut_off_is_refused_with_the_reason(log: LogWriter) -> None:
    ticking = Ticking()
    placement = LogPlacement(log.directory, Quorum(6, epoch=2), "this-one", ticking.clock)
    with pytest.raises(ExternalError, match=r"not up to date after 15 s: .* epoch 1, the quorum is in epoch 2") as caught:
        placement.topology()
    assert caught.value.retriable
    assert 15 <= ticking.now < 16


def test_the_log_of_another_cluster_is_refused(log: LogWriter) -> None:
    with pytest.raises(ConfigurationError, match=r"--kraft-log: .* belongs to cluster this-one, the brokers that were asked to other"):
        LogPlacement(log.directory, Quorum(6), "other", Ticking().clock)


def test_a_copied_log_without_the_files_beside_it_is_taken_as_it_is(log: LogWriter) -> None:
    (log.directory.parent / "meta.properties").unlink()
    assert LogPlacement(log.directory, Quorum(6), "any", Ticking().clock).topology().cluster_id == "any"
