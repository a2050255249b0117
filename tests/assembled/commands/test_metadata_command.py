"""`trimtab metadata` says what is in a log, and what cannot be known from files alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster_model.metadata import schemas as s
from cluster_model.metadata.events import BrokerRegistered, ControllerChanged, PartitionChanged, TopicCreated
from cluster_model.metadata.follower import KRaftFollower, Update
from cluster_model.metadata.image import MetadataImage
from tests.assembled.commands.command_line import CommandLine
from tests.unit.cluster_model.metadata_log import Entry, LogWriter
from trimtab.capture import Clock
from trimtab.commands.metadata import follow_on
from trimtab.metadata_words import event_document, event_words

ID = bytes(range(16))


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """Two brokers, a topic of two partitions; the newest checkpoint ends before the topic."""
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=a-cluster\nnode.id=100\n")
    writer = LogWriter(tmp_path / "__cluster_metadata-0")
    writer.directory.mkdir()
    brokers = [
        Entry(s.REGISTER_BROKER, 1, {"brokerId": id, "incarnationId": bytes(16), "endPoints": [], "features": [],
                                     "rack": rack, "fenced": id == 2})
        for id, rack in ((1, "[red]a"), (2, None))
    ]  # fmt: skip
    writer.append(*brokers)
    writer.checkpoint(2, 1, brokers)
    fields = {"topicId": ID, "replicas": [1, 2], "leaderEpoch": 0, "partitionEpoch": 0}
    writer.append(
        Entry(s.TOPIC, 0, {"name": "orders", "topicId": ID}),
        Entry(s.PARTITION, 0, {**fields, "partitionId": 0, "isr": [1], "leader": 1}),
        Entry(s.PARTITION, 0, {**fields, "partitionId": 1, "isr": [2], "leader": -1, "removingReplicas": [2]}),
    )
    return writer


def test_files_alone_give_the_newest_checkpoint_and_say_so(trimtab: CommandLine, log: LogWriter) -> None:
    ended = trimtab("metadata", "--kraft-log", log.directory)
    assert ended.code == 0, ended.err
    assert "cluster a-cluster; metadata log to offset 2" in ended.out
    assert "2 brokers, 0 topics" in ended.out
    assert "only the newest checkpoint was read; give --bootstrap-server too" in ended.err


def test_a_copy_is_read_to_its_end(trimtab: CommandLine, log: LogWriter) -> None:
    ended = trimtab("metadata", "--kraft-log", log.directory, "--unconfirmed")
    assert ended.code == 0, ended.err
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["1", "[red]a", "active", "2", "1"] in lines, "a rack is text, not markup"
    assert ["2", "-", "fenced", "2", "0"] in lines
    assert ["orders", "2", "4", "1", "2", "1"] in lines
    assert ended.err == ""


def test_records_of_a_newer_kafka_that_are_skipped_are_told(trimtab: CommandLine, log: LogWriter) -> None:
    log.append(Entry(501, 0), Entry(501, 0))
    ended = trimtab("metadata", "--kraft-log", log.directory, "--unconfirmed")
    assert "skipped 2 records of type 501" in ended.err


def test_the_json_form_has_everything(trimtab: CommandLine, log: LogWriter, tmp_path: Path) -> None:
    out = tmp_path / "image.json"
    ended = trimtab("metadata", "--kraft-log", log.directory, "--unconfirmed", "--format", "json", "--out", out)
    assert (ended.code, ended.out) == (0, "")
    document = json.loads(out.read_text())
    assert (document["version"], document["cluster_id"], document["offset"], document["epoch"]) == (1, "a-cluster", 5, 1)
    assert document["brokers"] == [
        {"id": 1, "rack": "[red]a", "state": "active"}, {"id": 2, "rack": None, "state": "fenced"},
    ]  # fmt: skip
    assert document["topics"] == [
        {
            "name": "orders",
            "id": "AAECAwQFBgcICQoLDA0ODw",
            "partitions": [
                {"partition": 0, "replicas": [1, 2], "isr": [1], "leader": 1, "adding": [], "removing": []},
                {"partition": 1, "replicas": [1, 2], "isr": [2], "leader": None, "adding": [], "removing": [2]},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected at least one of them, found none"),
        (("--kraft-log", "LOG", "--follow"), "--follow: needs --bootstrap-server"),
        (("--kraft-log", "LOG", "--bootstrap-server", "h:1", "--unconfirmed"), "--unconfirmed: goes with --kraft-log alone"),
        (("--kraft-log", "LOG", "--interval", "1s"), "--interval: goes with --follow"),
        (("--kraft-log", "LOG", "--unconfirmed", "--follow", "--interval", "0"), "--interval: expected a time above 0"),
        (("--kraft-log", "LOG", "--unconfirmed", "--follow", "--out", "f"), "--out: does not go with --follow"),
        (("--kraft-log", "nowhere"), "--kraft-log: there is no folder nowhere"),
    ],
)
def test_options_that_do_not_fit_are_told(
    trimtab: CommandLine, log: LogWriter, arguments: tuple[str, ...], said: str
) -> None:
    ended = trimtab("metadata", *(str(log.directory) if a == "LOG" else a for a in arguments))
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_folder_that_is_no_metadata_log_is_told_with_a_hint(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("metadata", "--kraft-log", tmp_path)
    assert ended.code == 2
    assert "name the folder __cluster_metadata-0" in ended.err


@dataclass
class Ticking:
    """A clock that goes on by what is slept, and a follower's updates in turn."""

    updates: list[Update]
    image: MetadataImage = field(default_factory=MetadataImage)
    now: float = 0.0

    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep, lambda: datetime.fromtimestamp(self.now, UTC))

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def poll(self, now_ms: int) -> Update:
        return self.updates.pop(0)


def test_a_lag_is_told_once_and_only_when_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    fine, held = Update(()), Update((), held="this replica lags")
    ticking = Ticking([held, fine, fine, *[held] * 8, fine])
    caplog.set_level("INFO", logger="trimtab")
    follow_on(ticking, ticking.clock(), 0.3, lambda update: None, lambda: not ticking.updates)
    assert [record.getMessage() for record in caplog.records] == ["this replica lags", "the metadata is up to date again"]


def test_following_prints_what_happens(log: LogWriter) -> None:
    follower = KRaftFollower(log.directory, None, unconfirmed=True)
    follower.poll(0)
    log.elect(102)
    ticking = Ticking([])
    seen: list[object] = []
    follow_on(follower, ticking.clock(), 0.2, lambda update: seen.extend(update.events), lambda: bool(seen))
    assert seen == [ControllerChanged(102, 2)]


def test_events_in_words_and_in_json() -> None:
    moved = PartitionChanged("orders", 3, (4, 1, 2), (1, 2), None, (4,), (1,), 9)
    assert event_words(moved) == (
        "partition orders-3: no leader, replicas 4,1,2, in sync 1,2, adding 4, removing 1"
    )
    assert event_words(BrokerRegistered(1, None, fenced=True)) == "broker 1 registered, no rack, fenced"
    assert event_words(TopicCreated("t", "x")) == "topic t created, id x"
    assert event_words(BrokerRegistered(1, "a\n\x1b[2J")) == "broker 1 registered, rack a  [2J", "no way to steer a terminal"
    document = event_document(moved, -1, datetime(2026, 1, 1, tzinfo=UTC))
    assert json.loads(json.dumps(document)) == {
        "event": "partition_changed", "time": "2026-01-01T00:00:00.000Z", "offset": None, "topic": "orders",
        "partition": 3, "replicas": [4, 1, 2], "isr": [1, 2], "leader": None, "adding": [4], "removing": [1], "epoch": 9,
    }  # fmt: skip
