"""Clusters that run another balancer's agent are read without ours: its records become our samples, and a bad one
is counted and passed over."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_reporter.automq import AutoMQFormat
from metrics_reporter.codec import DecodeError
from metrics_reporter.columns import BatchColumns
from metrics_reporter.consumer import SampleConsumer
from metrics_reporter.cruise_control import CruiseControlFormat
from metrics_reporter.sample import BROKER_SCOPES, Scope
from metrics_reporter.topic import EmbeddedTopic

Values = dict[tuple[Scope, str | None, int | None, str], float]

# From AutoMQ's format: time 123, broker 0, no rack, topic "topic", partition 100, {0: 0.2, 2: 0.1}; then its broker
# record: time 123, broker 0, rack "rack-1", {3: 1.5, 4: 3.0}.
AUTOMQ_PARTITION = bytes.fromhex(
    "0000000000000000007b000000000000000000000005746f7069630000006400000002003fc999999999999a023fb999999999999a"
)
AUTOMQ_BROKER = bytes.fromhex(
    "0100000000000000007b00000000000000067261636b2d3100000002033ff8000000000000044008000000000000"
)


def values(batch: BatchColumns) -> Values:
    found: Values = {}
    for block in batch.blocks:
        for metric, column in zip(block.metrics, block.values, strict=True):
            for row, value in enumerate(column.tolist()):
                if not math.isnan(value):
                    of_broker = block.scope in BROKER_SCOPES
                    topic = None if of_broker else batch.topics[block.topic[row]]
                    found[block.scope, topic, None if of_broker else int(block.partition[row]), metric] = value
    return found


def text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def automq(topic: str, partition: int, pairs: dict[int, float], *, time_ms: int = 5000, broker: int = 1) -> bytes:
    head = struct.pack(">bbqi", 0, 0, time_ms, broker) + text("rack") + text(topic)
    return head + struct.pack(">ii", partition, len(pairs)) + b"".join(struct.pack(">bd", k, v) for k, v in pairs.items())


def cruise_control(
    level: int, kind: int, value: float, *, time_ms: int, broker: int = 1, topic: str = "", partition: int | None = None
) -> bytes:
    head = struct.pack(">bbbqi", level, 0, kind, time_ms, broker)
    where = text(topic) if level else b""
    return head + where + (b"" if partition is None else struct.pack(">i", partition)) + struct.pack(">d", value)


def test_automq_records_as_its_format_has_them() -> None:
    form = AutoMQFormat()
    form.add(AUTOMQ_PARTITION)
    form.add(AUTOMQ_BROKER)
    (batch,) = form.take()
    assert (batch.broker, batch.time_ms, batch.window_ms) == (0, 123, 10_000)
    assert values(batch) == {
        (Scope.LEADER, "topic", 100, "network_in"): 0.2, (Scope.LEADER, "topic", 100, "disk"): 0.1,
        (Scope.BROKER, None, None, "append_pending_ms"): 3.0,
    }  # fmt: skip
    assert form.take() == []


def test_an_automq_broker_without_partitions_is_seen_to_live() -> None:
    form = AutoMQFormat()
    form.add(AUTOMQ_BROKER)
    (batch,) = form.take()
    assert (batch.broker, batch.time_ms) == (0, 123)
    assert {block.scope for block in batch.blocks} == {Scope.BROKER}


def test_automq_rounds_of_several_brokers_become_a_batch_each_numbered_in_order() -> None:
    """A model passes over what is numbered no higher than the newest it took."""
    form = AutoMQFormat(interval_ms=5000)
    for time_ms in (6000, 5000):
        for broker in (2, 1):
            form.add(automq("orders", broker, {0: 1.0, 1: 2.0, 9: 3.0}, time_ms=time_ms, broker=broker))
    batches = form.take()
    assert [(b.time_ms, b.broker, b.window_ms) for b in batches] == [
        (5000, 1, 5000), (5000, 2, 5000), (6000, 1, 5000), (6000, 2, 5000),
    ]  # fmt: skip
    assert [b.sequence for b in batches] == [0, 1, 2, 3]
    assert values(batches[0]) == {
        (Scope.LEADER, "orders", 1, "network_in"): 1.0, (Scope.LEADER, "orders", 1, "consumer_out"): 2.0,
    }  # fmt: skip
    form.add(automq("orders", 1, {0: 1.0}, time_ms=7000))
    assert form.take()[0].sequence == 4


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (b"", "1 bytes announced where 0 are left"),
        (b"\x02" + AUTOMQ_PARTITION[1:], "record type 2"),
        (b"\x00\x01" + AUTOMQ_PARTITION[2:], "format version 1"),
        (AUTOMQ_PARTITION[:-1], "2 metrics announced where 17 bytes are left"),
        (AUTOMQ_PARTITION + b"x", "1 bytes left"),
        (struct.pack(">bbqi", 0, 0, -1, 1), "time -1 is out of range"),
        (struct.pack(">bbqi", 0, 0, 1, -1), "broker -1"),
        (struct.pack(">bbqii", 0, 0, 1, 1, 2**31 - 1), "2147483647 bytes announced where 0 are left"),
        (struct.pack(">bbqii", 0, 0, 1, 1, -5), "text of -5 bytes"),
        (struct.pack(">bbqii", 0, 0, 1, 1, 0) + text("t" * 250), "topic name of 250 bytes"),
        (struct.pack(">bbqii", 0, 0, 1, 1, 0) + struct.pack(">i", 1) + b"\xff", "not UTF-8"),
        (struct.pack(">bbqii", 0, 0, 1, 1, 0) + text("t") + struct.pack(">ii", 0, 2**31 - 1), "2147483647 metrics"),
        (struct.pack(">bbqii", 0, 0, 1, 1, 0) + text("t") + struct.pack(">ii", -1, 0), "partition -1"),
    ],
)
def test_a_bad_automq_record_leaves_nothing_behind(record: bytes, complaint: str) -> None:
    form = AutoMQFormat()
    with pytest.raises(DecodeError, match=complaint):
        form.add(record)
    assert form.take() == []


def rounds(form: CruiseControlFormat, *each: list[bytes]) -> list[BatchColumns]:
    """What comes of rounds that arrive one poll after the other."""
    found: list[BatchColumns] = []
    for records in [*each, []]:
        for record in records:
            form.add(record)
        found.extend(form.take())
    return found


def a_cruise_control_round(time_ms: int, sizes: dict[int, float], came: float, went: float) -> list[bytes]:
    return [
        cruise_control(0, 0, came, time_ms=time_ms), cruise_control(0, 1, went, time_ms=time_ms),
        cruise_control(0, 6, 20.0, time_ms=time_ms), cruise_control(0, 7, 0.0, time_ms=time_ms),
        cruise_control(0, 5, 0.25, time_ms=time_ms), cruise_control(0, 43, 3.0, time_ms=time_ms),
        cruise_control(1, 2, came, time_ms=time_ms, topic="orders"),
        cruise_control(1, 3, went, time_ms=time_ms, topic="orders"),
        *(cruise_control(2, 4, size, time_ms=time_ms, topic="orders", partition=n) for n, size in sizes.items()),
    ]  # fmt: skip


def leads_but_2(broker: int, topic: str, partition: int) -> bool | None:
    return partition != 2


def test_cruise_controls_topic_rates_are_split_by_how_logs_grew() -> None:
    """Its own sampler splits them evenly."""
    form = CruiseControlFormat(leads_but_2, cores=lambda broker: 8.0)
    batches = rounds(
        form,
        a_cruise_control_round(0, {0: 1000.0, 1: 9000.0, 2: 0.0}, 0.0, 0.0),
        a_cruise_control_round(60_000, {0: 6400.0, 1: 9600.0, 2: 600.0}, 100.0, 300.0),
    )
    assert [(b.broker, b.time_ms, b.window_ms) for b in batches] == [(1, 0, 0), (1, 60_000, 60_000)]
    found = values(batches[1])
    assert found[Scope.LEADER, "orders", 0, "network_in"] == pytest.approx(90.0)
    assert found[Scope.LEADER, "orders", 1, "network_in"] == pytest.approx(10.0)
    assert found[Scope.LEADER, "orders", 0, "consumer_out"] == pytest.approx(270.0)
    assert found[Scope.FOLLOWER, "orders", 2, "network_in"] == pytest.approx(10.0)
    assert found[Scope.LEADER, "orders", 1, "disk"] == 9600.0
    assert found[Scope.BROKER, None, None, "network_in"] == pytest.approx(120.0)
    assert found[Scope.BROKER, None, None, "network_out"] == pytest.approx(300.0)
    assert found[Scope.BROKER, None, None, "cpu"] == pytest.approx(2.0), "a quarter of eight cores"
    assert sum(v for k, v in found.items() if k[3] == "cpu" and k[1]) == pytest.approx(2.0)


def test_a_cruise_control_round_that_stands_in_several_partitions_is_waited_for() -> None:
    form = CruiseControlFormat(leads_but_2)
    first = a_cruise_control_round(0, {0: 0.0, 1: 0.0}, 0.0, 0.0)
    second = a_cruise_control_round(60_000, {0: 3000.0, 1: 3000.0}, 100.0, 0.0)
    batches = rounds(form, first[:4], first[4:], second[:-1], second[-1:])
    assert [(b.time_ms, b.window_ms) for b in batches] == [(0, 0), (60_000, 60_000)]
    assert values(batches[1])[Scope.LEADER, "orders", 1, "network_in"] == pytest.approx(50.0)


def test_without_metadata_and_cores_cruise_controls_records_tell_of_disks_and_brokers_only() -> None:
    form = CruiseControlFormat(lambda broker, topic, partition: None)
    batches = rounds(
        form,
        a_cruise_control_round(0, {0: 0.0}, 0.0, 0.0),
        a_cruise_control_round(60_000, {0: 6000.0}, 100.0, 0.0),
    )
    found = values(batches[1])
    assert found[Scope.REPLICA, "orders", 0, "disk"] == 6000.0
    assert found[Scope.BROKER, None, None, "network_in"] == pytest.approx(120.0)
    assert not [k for k in found if k[3] == "cpu"], "shares of unknown cores are no cores"
    assert not [k for k in found if k[0] == Scope.LEADER]


def test_a_late_cruise_control_record_is_left_out_and_a_clock_that_was_set_back_is_followed() -> None:
    form = CruiseControlFormat(leads_but_2)
    at = 10_000_000
    batches = rounds(
        form,
        a_cruise_control_round(at, {0: 0.0}, 0.0, 0.0),
        a_cruise_control_round(at - 60_000, {0: 0.0}, 0.0, 0.0),
        a_cruise_control_round(at - 9_000_000, {0: 0.0}, 0.0, 0.0),
        a_cruise_control_round(at - 8_940_000, {0: 6000.0}, 100.0, 0.0),
    )
    assert [(b.time_ms, b.window_ms) for b in batches] == [(at, 0), (at - 9_000_000, 0), (at - 8_940_000, 60_000)]


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (b"\x00\x00", "1 bytes announced where 0 are left"),
        (cruise_control(3, 4, 1.0, time_ms=1, topic="t"), "metric class 3"),
        (b"\x00\x01" + cruise_control(0, 0, 1.0, time_ms=1)[2:], "format version 1"),
        (cruise_control(0, 0, math.nan, time_ms=1), "value nan"),
        (cruise_control(0, 0, -1.0, time_ms=1), r"value -1\.0"),
        (cruise_control(2, 4, 1e300, time_ms=1, topic="t", partition=0), "value 1e"),
        (cruise_control(1, 2, 1.0, time_ms=1, topic=""), "topic name of 0 bytes"),
        (cruise_control(0, 0, 1.0, time_ms=1) + b"x", "1 bytes left"),
    ],
)
def test_a_bad_cruise_control_record_is_refused(record: bytes, complaint: str) -> None:
    form = CruiseControlFormat(leads_but_2)
    with pytest.raises(DecodeError, match=complaint):
        form.add(record)
    assert rounds(form) == []


def test_the_consumer_reads_either_format_and_counts_what_is_neither(tmp_path: Path) -> None:
    with EmbeddedTopic(tmp_path / "topic") as topic:
        topic.publish([AUTOMQ_PARTITION, b"rubbish", b"", AUTOMQ_BROKER], broker=1, time_ms=1)
        consumer = SampleConsumer(topic, form=AutoMQFormat())
        assert len(consumer.poll()) == 1
        assert (consumer.records, consumer.decode_errors, consumer.lag) == (4, 2, 0)
        assert "offset 2" in str(consumer.last_error)
        consumer = SampleConsumer(topic, form=CruiseControlFormat(leads_but_2))
        assert consumer.poll() + consumer.poll() == []
        assert (consumer.records, consumer.decode_errors) == (4, 4)


numbers = st.floats(min_value=0, max_value=1e15)
topics = st.text(st.characters(min_codepoint=45, max_codepoint=0x1F600, exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(topics, st.integers(0, 2**31 - 1), st.dictionaries(st.integers(-128, 127), numbers, max_size=9), st.integers(0, 2**31 - 1))
def test_every_automq_value_arrives(topic: str, partition: int, pairs: dict[int, float], broker: int) -> None:
    form = AutoMQFormat()
    form.add(automq(topic, partition, pairs, broker=broker))
    (batch,) = form.take()
    names = {0: "network_in", 1: "consumer_out", 2: "disk"}
    assert batch.broker == broker
    assert values(batch) == {(Scope.LEADER, topic, partition, names[k]): v for k, v in pairs.items() if k in names}


def test_a_second_reader_numbers_from_the_start() -> None:
    """Else a model that outlives its reader would take everything from then on for repeated."""
    for incarnation in (1000, 2000):
        form = AutoMQFormat(incarnation=incarnation)
        form.add(AUTOMQ_PARTITION)
        (batch,) = form.take()
        assert (batch.incarnation, batch.sequence) == (incarnation, 0)
        other = CruiseControlFormat(leads_but_2, incarnation=incarnation)
        other.add(cruise_control(0, 0, 1.0, time_ms=5))
        assert [b.incarnation for b in other.take() + other.take()] == [incarnation]
