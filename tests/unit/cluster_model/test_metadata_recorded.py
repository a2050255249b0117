"""A log that Apache Kafka 4.3.1 wrote is read as Kafka's own tool reads it, and its checkpoints are what its log says.

`recorded/` is the log directory of one of three controllers: topics created and deleted, partitions added, reassignments,
throttles, a broker that died, one that came back in another rack, one unregistered, and a change of controllers; and
what `DumpLogSegments --cluster-metadata-decoder` of the same release says of it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cluster_model.metadata.checkpoint import load_checkpoint
from cluster_model.metadata.description import QuorumReport
from cluster_model.metadata.directory import list_files
from cluster_model.metadata.follower import KRaftFollower
from tests.unit.cluster_model.metadata_oracle import said_by
from tests.unit.cluster_model.metadata_tool import dumped, filled, read_records, tool_name

RECORDED = Path(__file__).with_name("recorded")
FILES = sorted(path.name for path in RECORDED.iterdir() if path.suffix in (".log", ".checkpoint"))


@pytest.mark.parametrize("name", FILES)
def test_every_record_is_what_kafkas_own_tool_says(name: str) -> None:
    theirs = dumped((RECORDED / "dump.txt").read_text())[name]
    ours = read_records(RECORDED / name)
    assert len(theirs) > 30
    assert ours.keys() == theirs.keys()
    for offset, (kind, fields) in theirs.items():
        found, values = ours[offset]
        assert (tool_name(found), values) == (kind, filled(values, fields)), f"offset {offset}"


class Committed:
    def __init__(self, offset: int) -> None:
        self.offset = offset

    def quorum(self) -> QuorumReport:
        return QuorumReport(None, 0, self.offset)


def test_a_checkpoint_is_what_the_log_before_it_says(tmp_path: Path) -> None:
    listing = list_files(RECORDED)
    shutil.copy(listing.segments[0].path, tmp_path)
    assert len(listing.checkpoints) == 2
    for checkpoint in listing.checkpoints:
        follower = KRaftFollower(tmp_path, Committed(checkpoint.end_offset))
        assert follower.poll(0).offset == checkpoint.end_offset
        assert said_by(follower.image) == said_by(load_checkpoint(checkpoint, 0).image)


def test_the_end_is_what_was_done() -> None:
    follower = KRaftFollower(RECORDED, None, unconfirmed=True)
    update = follower.poll(0)
    image = follower.image
    assert (update.offset, update.epoch) == (196, 2)
    assert {id: entry.rack for id, entry in image.brokers.items()} == {1: "r1", 2: "r9"}, "broker 3 was unregistered"
    assert sorted(image.topic_ids) == ["after-failover", "orders", "with-config"]
    orders = [(p.replicas, p.leader) for p in image.partitions(image.slots_of_topic("orders"))]
    assert orders[0][0] == (2, 1), "reassigned from 1, 2, 3"
    assert len(orders) == 6
    assert not image.reassigning
