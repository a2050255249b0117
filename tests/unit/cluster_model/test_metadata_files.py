"""Torn, damaged, rolled and deleted files of a metadata log: the follower reads what is whole, and waits or says so otherwise."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster_model.errors import InputError
from cluster_model.metadata import schemas as s
from cluster_model.metadata.events import BrokerRegistered, BrokerRemoved, PartitionChanged, TopicCreated, TopicDeleted
from cluster_model.metadata.follower import KRaftFollower
from cluster_model.metadata.tail import LogTail
from cluster_model.metadata.wire import uuid_text
from tests.unit.cluster_model.metadata_log import Entry, LogWriter
from tests.unit.cluster_model.metadata_site import NOW, Site, broker, id_of, leader, partition, topic

# -- what happens to files ---------------------------------------------------------------------------------


def test_a_batch_that_is_being_written_is_read_when_it_is_whole(site: Site) -> None:
    site.commit(3)
    site.log.tear(topic("orders"), share=0.9)
    update = site.poll()
    assert update.offset == 2
    assert "ends at offset 2, 3 is committed" in str(update.held)
    site.log.append(topic("orders"))
    assert site.poll().offset == 3


def test_zeros_at_the_end_are_no_damage(site: Site) -> None:
    """A file that grew before its bytes came, as after a power cut."""
    site.commit()
    path = next(site.log.directory.glob("*.log"))
    size = path.stat().st_size
    path.open("ab").write(bytes(4096))
    assert site.poll().caught_up
    os.truncate(path, size)
    site.log.append(topic("orders"))
    site.commit()
    assert site.poll().offset == 3


def test_a_committed_batch_that_is_damaged_is_never_passed_over(site: Site) -> None:
    end = (path := next(site.log.directory.glob("*.log"))).stat().st_size
    site.log.append(topic("orders"))
    site.log.append(topic("later"))
    raw = bytearray(path.read_bytes())
    raw[end + 70] ^= 1
    path.write_bytes(bytes(raw))
    site.commit()
    update = site.poll()
    assert (update.offset, site.topic_names()) == (2, [])
    assert "offset 2 cannot be read: the checksum differs" in str(update.held)
    raw[end + 70] ^= 1
    path.write_bytes(bytes(raw))
    assert site.poll().offset == 4, "it is read as soon as it is right"


def test_a_newer_checkpoint_leads_over_damage(site: Site) -> None:
    site.commit()
    site.poll()
    end = (path := next(site.log.directory.glob("*.log"))).stat().st_size
    site.log.append(topic("orders"))
    site.log.append(topic("later"))
    raw = bytearray(path.read_bytes())
    raw[end + 70] ^= 1
    path.write_bytes(bytes(raw))
    site.commit()
    site.poll()
    site.log.checkpoint(3, 1, [broker(1), broker(2), topic("orders")])
    update = site.poll()
    assert update.offset == 4
    assert site.topic_names() == ["later", "orders"]


def test_new_segments_are_followed(site: Site) -> None:
    for i in range(5):
        site.log.roll()
        site.log.append(topic(f"t{i}"))
        site.log.append(partition(f"t{i}"))
        site.commit()
        update = site.poll()
        assert update.offset == 4 + 2 * i
        assert tuple(update.events)[-2:] == (
            TopicCreated(f"t{i}", uuid_text(id_of(f"t{i}"))), PartitionChanged(f"t{i}", 0, (1, 2), (1, 2), 1),
        )  # fmt: skip
    site.log.roll()
    assert site.poll().held is None, "a segment that is empty still"


def test_many_segments_are_read_at_once(site: Site) -> None:
    for i in range(20):
        site.log.append(topic(f"t{i:02d}"))
        site.log.roll()
    site.commit()
    assert site.poll().offset == 22
    assert len(site.topic_names()) == 20


def test_a_failover_that_takes_back_a_whole_segment(site: Site) -> None:
    site.commit()
    site.poll()
    site.log.append(topic("kept"))
    site.log.roll()
    site.log.append(topic("never"))
    site.log.append(topic("neither"))
    site.poll()
    site.log.truncate(3)
    site.log.elect(101)
    site.log.append(topic("orders"))
    site.commit()
    site.poll()
    assert site.topic_names() == ["kept", "orders"]


def test_a_follower_whose_segments_were_deleted_goes_on_from_a_checkpoint(site: Site) -> None:
    """It was suspended for an hour; what went meanwhile must go from the image too."""
    site.log.append(topic("old"), partition("old"), topic("kept"), partition("kept"))
    site.commit()
    site.poll()
    site.log.append(Entry(s.REMOVE_TOPIC, 0, {"topicId": id_of("old")}), Entry(s.UNREGISTER_BROKER, 0, {"brokerId": 2}))
    site.log.append(broker(3, "b"), leader("kept", 2))
    site.log.roll()
    end = site.log.append(topic("new"))
    site.log.checkpoint(end - 1, 1, [broker(1), broker(3, "b"), topic("kept"), partition("kept", 0, (2, 1))])
    site.log.delete_before(end - 1)
    site.commit()
    update = site.poll()
    assert update.replaced
    assert (update.offset, update.held) == (end, None)
    assert set(update.events) == {
        TopicDeleted("old"), BrokerRemoved(2), BrokerRegistered(3, "b"),
        PartitionChanged("kept", 0, (2, 1), (2, 1), 2), TopicCreated("new", uuid_text(id_of("new"))),
    }  # fmt: skip
    site.log.append(broker(4))
    site.commit()
    assert site.poll().events == (BrokerRegistered(4, "a"),)


def test_a_log_that_starts_later_waits_for_its_checkpoint(site: Site) -> None:
    """A replica that is fetching a snapshot: its log is gone, the checkpoint is not there yet."""
    site.commit()
    site.poll()
    (part := site.log.directory / "00000000000000000050-0000000001-123.checkpoint.part").write_bytes(b"...")
    for path in site.log.directory.glob("*.log"):
        path.unlink()
    site.log = LogWriter(site.log.directory, end=50)
    site.log.roll()
    site.commit(50)
    update = site.poll()
    assert update.offset == 2
    assert "the log starts at offset 50" in str(update.held)
    part.unlink()
    site.log.checkpoint(50, 1, [broker(7)])
    assert site.poll().offset == 50
    assert list(site.follower.image.brokers) == [7]


def test_a_restart_continues_at_the_newest_whole_checkpoint(site: Site) -> None:
    site.log.append(topic("orders"))
    site.log.checkpoint(2, 1, [broker(1), broker(2)])
    site.log.checkpoint(3, 1, [broker(1), broker(2), topic("orders")], whole=False)
    (site.log.directory / "00000000000000000099-0000000001.checkpoint.deleted").write_bytes(b"x")
    (site.log.directory / "00000000000000000003-0000000001-7.checkpoint.part").write_bytes(b"x")
    site.commit()
    update = site.poll()
    assert update.offset == 3
    assert site.topic_names() == ["orders"]
    assert site.follower.counts.records == 2 + 2 + 1, "header, two brokers, footer, then one topic from the log"


def test_a_checkpoint_of_dynamic_voters_that_holds_control_records_only_is_an_empty_image(site: Site) -> None:
    site.log.checkpoint(0, 0, [])
    site.commit()
    assert site.poll().offset == 2


def test_a_checkpoint_appears_while_the_log_is_followed(site: Site) -> None:
    """It says what is known: nothing happens."""
    site.commit()
    site.poll()
    site.log.checkpoint(2, 1, [broker(1)])
    site.log.append(broker(3))
    site.commit()
    update = site.poll()
    assert (update.replaced, update.events) == (False, (BrokerRegistered(3, "a"),))
    assert sorted(site.follower.image.brokers) == [1, 2, 3]


def test_a_log_cut_below_what_was_applied_is_waited_for(site: Site) -> None:
    """A disk that was replaced, filled again by the quorum: nothing is taken back, nothing is applied twice."""
    site.log.append(topic("orders"))
    site.log.append(partition("orders"))
    site.commit()
    site.poll()
    raw = (path := next(site.log.directory.glob("*.log"))).read_bytes()
    os.truncate(path, 10)
    update = site.poll()
    assert (update.offset, site.topic_names()) == (4, ["orders"])
    path.write_bytes(raw)
    site.log.append(leader("orders", 2))
    site.commit()
    assert [e.leader for e in site.poll().events if isinstance(e, PartitionChanged)] == [2]


def test_a_log_that_was_filled_again_with_other_segments_is_found_again(site: Site) -> None:
    """Same records, same offsets, other files: a replica that fetched everything again."""
    site.log.roll()
    site.log.append(topic("orders"))
    site.log.append(partition("orders"))
    site.commit()
    site.poll()
    for path in site.log.directory.glob("*.log"):
        path.unlink()
    site.log = LogWriter(site.log.directory)
    site.log.append(broker(1), broker(2))
    site.log.append(topic("orders"))
    site.log.roll()
    site.log.append(partition("orders"))
    site.log.append(leader("orders", 2))
    site.commit()
    update = site.poll()
    assert [e.leader for e in update.events if isinstance(e, PartitionChanged)] == [2]
    assert (update.offset, update.held, update.replaced) == (5, None, False)


def test_records_of_an_epoch_that_is_over_are_no_continuation(site: Site) -> None:
    """Two logs mixed up in one directory."""
    site.log.elect(101)
    site.log.epoch = 1
    site.log.append(topic("never"))
    site.log.epoch = 2
    site.commit()
    update = site.poll()
    assert (update.offset, site.topic_names()) == (3, [])
    assert "epoch 1 after epoch 2" in str(update.held)


def test_what_changed_between_the_look_and_the_reading_is_not_taken(tmp_path: Path) -> None:
    """A failover in the very moment: the batch that was seen is not the one that is read."""
    log = LogWriter(tmp_path)
    log.append(topic("aaaa"))
    log.append(topic("bbbb"))
    tail = LogTail(tmp_path, 0, 0)
    tail.look()
    log.truncate(1)
    log.epoch = 2
    log.append(topic("cccc"))
    assert [len(placed) for _, placed, _ in tail.take(2)] == []
    assert "changed while it was read" in str(tail.problem)
    tail.look()
    assert [batch.epoch for _, placed, _ in tail.take(2) for _, batch in placed] == [1, 2]


def test_a_record_of_a_newer_release_stops_the_follower_for_good(site: Site) -> None:
    site.commit()
    site.poll()
    site.log.append(Entry(s.PARTITION, 3, partition("orders").fields))
    site.commit()
    for _ in range(2):
        with pytest.raises(InputError, match=r"log: 1 problem\n  offset 2: PartitionRecord version 3"):
            site.poll()


# -- wrong directories -------------------------------------------------------------------------------------


def test_a_directory_that_is_no_metadata_log_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(InputError, match=r"expected NUMBER\.log files, found none; name the folder __cluster_metadata-0"):
        KRaftFollower(tmp_path, None).poll(NOW)
    with pytest.raises(InputError, match="No such file or directory"):
        KRaftFollower(tmp_path / "nowhere", None).poll(NOW)


@contextmanager
def stepped_down() -> Iterator[None]:
    """As a user who may not read what its owner keeps to itself; root, who may read everything, steps down."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_checkpoint_of_another_user_is_told_with_what_to_do() -> None:
    folder = Path(tempfile.mkdtemp(prefix="trimtab-test-"))
    try:
        folder.chmod(0o755)
        log = LogWriter(folder)
        log.append(broker(1))
        log.roll()
        log.append(broker(2))
        log.delete_before(1)
        log.checkpoint(1, 1, [broker(1)]).chmod(0o400 if os.geteuid() == 0 else 0o000)
        with stepped_down(), pytest.raises(InputError, match=r"readable for its own user only .* run as that user"):
            KRaftFollower(folder, None).poll(NOW)
    finally:
        shutil.rmtree(folder)
