"""Whatever Kafka, a failover or a power cut does to the files, the image is what the quorum committed, never more."""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path

import pytest

from cluster_model.errors import ExternalError
from cluster_model.metadata import schemas as s
from cluster_model.metadata.events import BrokerFenced, BrokerUnfenced, ControllerChanged, Event, PartitionChanged, TopicCreated
from cluster_model.metadata.follower import KRaftFollower
from cluster_model.metadata.wire import uuid_text
from tests.unit.cluster_model.metadata_log import Entry, LogWriter
from tests.unit.cluster_model.metadata_oracle import ACTIONS, Oracle, said_by, without_epochs
from tests.unit.cluster_model.metadata_site import NOW, Quorum, Site, broker, id_of, partition, topic

# -- what is committed -------------------------------------------------------------------------------------


def test_what_is_not_committed_is_not_in_the_image(site: Site) -> None:
    site.log.append(topic("orders"), partition("orders"))
    site.commit(2)
    assert site.poll().offset == 2
    assert site.topic_names() == []
    site.commit()
    update = site.poll()
    assert (update.offset, update.caught_up) == (4, True)
    assert update.events == (
        TopicCreated("orders", uuid_text(id_of("orders"))),
        PartitionChanged("orders", 0, (1, 2), (1, 2), 1),
    )


def test_a_batch_is_applied_whole_or_not_at_all(site: Site) -> None:
    """A watermark in the middle of a batch is none that Kafka gives; half a change must not be seen anyway."""
    site.log.append(topic("orders"), partition("orders"))
    site.commit(3)
    assert site.poll().offset == 2


def test_without_anyone_to_ask_nothing_but_checkpoints_is_applied(site: Site) -> None:
    site.log.append(topic("orders"))
    alone = KRaftFollower(site.log.directory, None)
    update = alone.poll(NOW)
    assert (update.offset, list(alone.image.topic_ids)) == (0, [])
    assert "no broker says what is committed" in str(update.held)
    site.log.checkpoint(3, 1, [broker(1), topic("orders")])
    alone = KRaftFollower(site.log.directory, None)
    assert alone.poll(NOW).offset == 3
    assert list(alone.image.topic_ids) == ["orders"]


def test_a_copied_log_is_read_to_its_end_where_that_is_asked_for(site: Site) -> None:
    site.log.append(topic("orders"))
    copy = KRaftFollower(site.log.directory, None, unconfirmed=True)
    assert copy.poll(NOW).offset == 3
    assert list(copy.image.topic_ids) == ["orders"]


@pytest.mark.parametrize("watermark", [0, -1])
def test_a_watermark_that_is_not_known_yet_holds_everything(site: Site, watermark: int) -> None:
    site.quorum.high_watermark = watermark
    update = site.poll()
    assert update.offset == 0
    assert "no high watermark yet" in str(update.held)


def test_a_replica_that_was_cut_off_never_shows_what_the_quorum_never_had(site: Site) -> None:
    """The disk of a dead leader: its last records were never committed, and the watermark of the others is beyond."""
    site.commit()
    site.poll()
    site.log.append(topic("never"))
    site.quorum.high_watermark, site.quorum.epoch, site.quorum.leader = 50, 2, 101
    update = site.poll()
    assert site.topic_names() == []
    assert update.offset == 2
    assert "epoch 1, the quorum is in epoch 2" in str(update.held)


def test_records_that_a_failover_took_back_are_not_seen_and_the_new_ones_are(site: Site) -> None:
    site.commit()
    site.poll()
    site.log.append(topic("never"))
    assert site.poll().offset == 2
    site.log.truncate(2)
    site.log.elect(101)
    site.log.append(topic("orders"))
    site.commit()
    site.quorum.leader = 101
    update = site.poll()
    assert update.events == (ControllerChanged(101, 2), TopicCreated("orders", uuid_text(id_of("orders"))))
    assert update.held is None


def test_a_suffix_rewritten_with_the_same_shape_is_read_again(site: Site) -> None:
    """Same offsets, same sizes, other contents: what was seen before must not stand for what is there."""
    site.commit()
    site.poll()
    site.log.append(topic("aaaa"))
    site.log.append(topic("bbbb"))
    site.poll()
    site.log.truncate(2)
    site.log.epoch = 2
    site.log.append(topic("cccc"))
    site.log.append(topic("dddd"))
    site.commit()
    site.poll()
    assert site.topic_names() == ["cccc", "dddd"]


def test_news_of_an_older_epoch_do_not_count(site: Site) -> None:
    """A broker that lags answers with the state before the failover."""
    site.log.elect(101)
    site.commit()
    site.poll()
    site.log.append(topic("orders"))
    site.quorum.epoch, site.quorum.high_watermark, site.quorum.leader = 1, 100, 100
    update = site.poll()
    assert site.topic_names() == []
    assert site.follower.image.controller is not None
    assert site.follower.image.controller.id == 101
    assert update.high_watermark == 3


def test_a_quorum_that_cannot_be_asked_now_is_waited_for(site: Site) -> None:
    site.commit()
    site.poll()
    site.log.append(topic("orders"))
    site.quorum.error = ExternalError("no leader", retriable=True)
    update = site.poll()
    assert (update.offset, update.held) == (2, "no leader")
    site.quorum.error = None
    site.commit()
    assert site.poll().offset == 3


def test_a_quorum_that_refuses_is_told(site: Site) -> None:
    site.quorum.error = ExternalError("needs DESCRIBE on the cluster")
    with pytest.raises(ExternalError, match="DESCRIBE"):
        site.poll()
    site.quorum.error = None
    site.commit()
    assert site.poll().replaced, "an ACL was added: nothing was missed"
    assert sorted(site.told.brokers) == [1, 2]


def test_a_new_controller_is_known_before_its_first_record_is_committed(site: Site) -> None:
    site.commit()
    site.poll()
    site.log.elect(102)
    site.quorum.leader, site.quorum.epoch = 102, 2
    assert site.poll().events == (ControllerChanged(102, 2),)


# -- everything at once ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_through_tears_failovers_rolls_and_retention_the_image_is_the_committed_one(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    log, quorum = LogWriter(tmp_path), Quorum()
    log.roll()
    site = Site(log, quorum, KRaftFollower(tmp_path, quorum))
    committed: list[tuple[int, list[Entry]]] = []  # end offset of each batch, and its entries
    pending: list[tuple[int, list[Entry], Oracle]] = []
    oracle, safe = Oracle(), Oracle()

    def batch() -> list[Entry]:
        entries = []
        for _ in range(chance.randint(1, 6)):
            a, b, c, d = (chance.randrange(10_000) for _ in range(4))
            entry = oracle.act(chance.choice(ACTIONS), a, b, c, d)
            entries += [entry] if entry is not None else []
        return entries or [Entry(20, 0)]

    for _ in range(150):
        match chance.choice(["write"] * 6 + ["commit"] * 4 + ["poll"] * 5 + ["tear", "roll", "failover", "checkpoint", "restart"]):
            case "write":
                entries = batch()
                pending.append((log.append(*entries), entries, deepcopy(oracle)))
            case "tear":
                log.tear(topic("torn"), share=chance.random())
            case "roll":
                log.append(Entry(20, 0))
                pending.append((log.end, [Entry(20, 0)], deepcopy(oracle)))
                log.roll()
            case "commit" if pending:
                for _ in range(chance.randint(1, len(pending))):
                    end, entries, safe = pending.pop(0)
                    committed.append((end, entries))
                site.commit(committed[-1][0])
            case "failover":
                log.truncate(committed[-1][0] if committed else 0)
                pending, oracle = [], deepcopy(safe)
                log.elect(100 + chance.randrange(3))
                pending.append((log.end, [], deepcopy(oracle)))
            case "checkpoint" if committed:
                log.checkpoint(committed[-1][0], log.epoch, safe.checkpoint())
                if chance.random() < 0.5:
                    log.delete_before(committed[-1][0])
            case "restart":
                site.again()
            case _:
                update = site.poll()
                assert update.offset <= site.quorum.high_watermark or not committed
                if update.held is None and committed and update.offset == committed[-1][0]:
                    assert without_epochs(said_by(site.follower.image)) == without_epochs(safe.said())
    if pending:
        safe = pending[-1][2]
    site.commit()
    log.append(Entry(20, 0))
    site.commit()
    update = site.poll()
    assert (update.offset, update.held) == (log.end, None)
    assert said_by(site.follower.image) == safe.said()


def test_events_name_what_happened_to_brokers(site: Site) -> None:
    site.commit()
    site.poll()
    site.log.append(
        Entry(s.BROKER_CHANGE, 0, {"brokerId": 1, "fenced": 1}), Entry(s.BROKER_CHANGE, 0, {"brokerId": 1, "fenced": -1})
    )
    site.commit()
    events: tuple[Event, ...] = tuple(site.poll().events)
    assert events == (BrokerFenced(1), BrokerUnfenced(1))
