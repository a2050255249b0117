"""A record must arrive as it was sent, and no record, however broken, may stop the consumer or fill its memory."""

from __future__ import annotations

import math
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metrics_reporter.codec import BLOCK, CHECKSUM, HEADER, DecodeError, encode
from metrics_reporter.columns import BatchColumns, decode
from metrics_reporter.sample import BROKER_SCOPES, METRIC_IDS, METRIC_NAMES, BatchHeader, Sample, SampleBatch, Scope

ROOT = Path(__file__).parents[3]

numbers = st.floats(min_value=0.0, allow_nan=False)
topics = (
    st.text(min_size=1, max_size=40)
    .filter(lambda t: 0 < len(t.encode("utf-8", "ignore")) <= 249)
    .filter(lambda t: not any("\ud800" <= c <= "\udfff" for c in t))
)
headers = st.builds(
    BatchHeader,
    broker=st.integers(0, 2**31 - 1),
    time_ms=st.integers(0, 4_000_000_000_000),
    window_ms=st.integers(0, 2**32 - 1),
    incarnation=st.integers(0, 2**64 - 1),
    sequence=st.integers(0, 2**64 - 1),
)
replica_samples = st.builds(
    Sample,
    st.sampled_from([Scope.LEADER, Scope.FOLLOWER, Scope.REPLICA]),
    topics,
    st.integers(0, 2**31 - 1),
    st.sampled_from(sorted(METRIC_IDS)),
    numbers,
)
broker_samples = st.builds(
    Sample, st.sampled_from(sorted(BROKER_SCOPES)), st.none(), st.none(), st.sampled_from(sorted(METRIC_IDS)), numbers
)
batches = st.builds(SampleBatch, headers, st.lists(replica_samples | broker_samples, max_size=30).map(tuple))


def samples_of(batch: BatchColumns) -> dict[tuple[Scope, str | None, int | None, str], float]:
    """The values of a decoded batch, one at a time."""
    found: dict[tuple[Scope, str | None, int | None, str], float] = {}
    for block in batch.blocks:
        for metric, column in zip(block.metrics, block.values, strict=True):
            for row, value in enumerate(column.tolist()):
                if not math.isnan(value):
                    of_broker = block.scope in BROKER_SCOPES
                    topic = None if of_broker else batch.topics[block.topic[row]]
                    number = None if of_broker else int(block.partition[row])
                    found[block.scope, topic, number, metric] = value
    return found


def with_checksum(body: bytes) -> bytes:
    return body + CHECKSUM.pack(zlib.crc32(body))


@given(batches)
def test_every_value_arrives_where_it_was_measured(batch: SampleBatch) -> None:
    decoded = decode(encode(batch))
    head = batch.header
    assert (decoded.broker, decoded.time_ms, decoded.window_ms) == (head.broker, head.time_ms, head.window_ms)
    assert (decoded.incarnation, decoded.sequence) == (head.incarnation, head.sequence)
    assert samples_of(decoded) == {s[:4]: s.value for s in batch.samples}


def test_layout_is_the_documented_one() -> None:
    """Records written by an old reporter must stay readable: these bytes are what version 1 means."""
    samples = (
        Sample(Scope.LEADER, "orders", 7, "network_in", 1.5),
        Sample(Scope.LEADER, "orders", 8, "disk", 2.0),
        Sample(Scope.CAPACITY, None, None, "cpu", 8.0),
    )
    nan = struct.pack("<d", math.nan)
    body = b"".join([
        b"TTMS", bytes([1, 0]), struct.pack("<HiIqQQI", 2, 3, 10_000, 1_767_225_600_000, 5, 6, 1),
        struct.pack("<H", 6), b"orders",
        struct.pack("<BBHI", 1, 0, 2, 2), struct.pack("<HH", 1, 4), struct.pack("<II", 0, 0), struct.pack("<ii", 7, 8),
        struct.pack("<d", 1.5), nan, nan, struct.pack("<d", 2.0),
        struct.pack("<BBHI", 4, 0, 1, 1), struct.pack("<H", 3), struct.pack("<d", 8.0),
    ])  # fmt: skip
    assert encode(SampleBatch(BatchHeader(3, 1_767_225_600_000, 10_000, 5, 6), samples)) == with_checksum(body)


def test_wire_ids_never_change() -> None:
    assert METRIC_IDS == {
        "network_in": 1, "network_out": 2, "cpu": 3, "disk": 4, "produce_rate": 5, "fetch_rate": 6, "consumer_out": 7,
        "replicas": 8, "leaders": 9, "produce_latency_ms": 10, "fetch_latency_ms": 11, "append_pending_ms": 12, "fetch_pending_ms": 13,
    }  # fmt: skip
    assert [int(s) for s in (Scope.BROKER, Scope.LEADER, Scope.FOLLOWER, Scope.REPLICA, Scope.CAPACITY)] == [0, 1, 2, 3, 4]


def test_a_metric_that_a_newer_reporter_sends_is_passed_over() -> None:
    unknown = max(METRIC_NAMES) + 1000
    block = BLOCK.pack(Scope.BROKER, 0, 2, 1) + struct.pack("<HHdd", unknown, METRIC_IDS["cpu"], 9.0, 2.5)
    decoded = decode(with_checksum(HEADER.pack(b"TTMS", 1, 0, 1, 3, 0, 5, 1, 1, 0) + block))
    assert decoded.blocks[0].metrics == ("", "cpu")
    assert decoded.blocks[0].values[:, 0].tolist() == [9.0, 2.5]


@given(st.binary(max_size=300))
@example(b"")
@example(b"TTMS\x01")
def test_arbitrary_bytes_are_refused(record: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(record)


@given(batches, st.data())
def test_damage_is_noticed(batch: SampleBatch, data: st.DataObject) -> None:
    record = bytearray(encode(batch))
    record[data.draw(st.integers(0, len(record) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(DecodeError):
        decode(bytes(record))


@given(batches, st.data())
def test_a_forged_record_with_a_good_checksum_raises_nothing_else(batch: SampleBatch, data: st.DataObject) -> None:
    """A faulty reporter computes good checksums over nonsense: cut, changed, repeated bytes."""
    body = bytearray(encode(batch)[: -CHECKSUM.size])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(body) - 1, 0)))
        match data.draw(st.sampled_from(["change", "cut", "repeat"])):
            case "change":
                body[at : at + 4] = data.draw(st.sampled_from([b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\x01\x00", b""]))
            case "cut":
                del body[at:]
            case "repeat":
                body[at:at] = body[at : at + 8]
    try:
        decoded = decode(with_checksum(bytes(body)))
    except DecodeError:
        return
    for block in decoded.blocks:
        assert block.values.shape == (len(block.metrics), block.values.shape[1])
        if block.scope not in BROKER_SCOPES:
            assert len(block.topic) == len(block.partition) == block.values.shape[1]
            assert block.topic.max() < len(decoded.topics)
            assert block.partition.min() >= 0


@pytest.mark.parametrize(
    ("topics_announced", "block"),
    [
        (0xFFFFFFFF, b""),
        (0, BLOCK.pack(Scope.LEADER, 0, 1, 0xFFFFFFFF) + b"\x01\x00"),
        (0, BLOCK.pack(Scope.LEADER, 0, 0xFFFF, 0xFFFFFFFF) + b"\x01\x00" * 0xFFFF),
        (0, BLOCK.pack(Scope.LEADER, 0, 0, 0xFFFFFFFF)),
        (0, BLOCK.pack(Scope.BROKER, 0, 1, 0xFFFFFFFF) + b"\x01\x00"),
    ],
)
def test_a_forged_count_takes_no_memory(topics_announced: int, block: bytes) -> None:
    record = with_checksum(HEADER.pack(b"TTMS", 1, 0, 1, 3, 0, 5, 1, 1, topics_announced) + block)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode(record)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(record) + 200_000


def test_a_newer_version_is_refused_by_name() -> None:
    record = bytearray(encode(SampleBatch(BatchHeader(1, 1, 1, 1, 1), ())))
    record[4] = 2
    with pytest.raises(DecodeError, match="format version 2, this release reads version 1"):
        decode(bytes(record))


@pytest.mark.parametrize(
    ("sample", "complaint"),
    [
        (Sample(Scope.LEADER, None, None, "cpu", 1.0), "names no topic-partition"),
        (Sample(Scope.LEADER, "t", 0, "temperature", 1.0), "'temperature' has no wire id"),
        (Sample(Scope.LEADER, "t", 2**31, "cpu", 1.0), "out of range"),
        (Sample(Scope.LEADER, "t" * 250, 0, "cpu", 1.0), "250 bytes"),
    ],
)
def test_what_the_format_cannot_carry_is_refused_by_the_reporter(sample: Sample, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        encode(SampleBatch(BatchHeader(1, 1, 1, 1, 1), (sample,)))


def test_decoded_arrays_cannot_be_written_to() -> None:
    decoded = decode(encode(SampleBatch(BatchHeader(1, 1, 1, 1, 1), (Sample(Scope.LEADER, "t", 0, "cpu", 1.0),))))
    assert not decoded.blocks[0].values.flags.writeable
    assert decoded.blocks[0].values.dtype == np.float64


def test_the_reporter_side_needs_no_numpy() -> None:
    """A reporter is installed beside brokers without the planner's libraries."""
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from metrics_reporter import codec, publisher, sample, topic\n"
        "batch = sample.SampleBatch(sample.BatchHeader(1, 1, 1, 1, 1), ())\n"
        "codec.frame(codec.encode(batch))\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
