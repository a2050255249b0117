"""No record, of whatever format, may crash or stall the consumer. The long run is tests/fuzz/codecs.py."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metrics_reporter.automq import AutoMQFormat
from metrics_reporter.codec import DecodeError, encode
from metrics_reporter.cruise_control import CruiseControlFormat
from metrics_reporter.formats import RecordFormat
from metrics_reporter.sample import BatchHeader, Sample, SampleBatch, Scope
from tests.fuzz.decoders import one_input

OWN = encode(SampleBatch(BatchHeader(1, 2, 3, 4, 5), (Sample(Scope.LEADER, "t", 0, "cpu", 1.0),)))[5:-4]
AUTOMQ = struct.pack(">bbqiiibiibd", 0, 0, 5000, 1, 0, 1, ord("t"), 3, 1, 0, 1.5)
CRUISE = [
    struct.pack(">bbbqid", 0, 0, 0, 5000, 1, 2.0), struct.pack(">bbbqiibd", 1, 0, 2, 5000, 1, 1, ord("t"), 2.0),
    struct.pack(">bbbqiibid", 2, 0, 4, 5000, 1, 1, ord("t"), 1, 2.0),
]  # fmt: skip


def stream(kind: int, records: list[bytes]) -> bytes:
    """Records in the form that `one_input` takes, padded to what a byte of length can say."""
    padded = [r + b"\x07" * (-len(r) % 4) for r in records]
    return bytes([kind]) + b"".join(bytes([len(r) // 4]) + r for r in padded)


def record_of(kind: int) -> st.SearchStrategy[bytes]:
    """Records of a format with some of their bytes replaced."""
    known = [[OWN], [OWN], [AUTOMQ], CRUISE][kind]
    changes = st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from([b"\xff\xff\xff\xff", b"\x00", b"\x7f\xff", b"\x80", b"\x01", b""])),
        max_size=3,
    )
    return st.builds(_changed, st.sampled_from(known), changes) | st.binary(max_size=120)


def _changed(record: bytes, changes: list[tuple[int, bytes]]) -> bytes:
    for at, new in changes:
        at %= len(record)
        record = record[:at] + new + record[at + len(new) :]
    return record


@settings(max_examples=400)
@given(st.binary(max_size=400))
@example(stream(1, [OWN]))
@example(stream(3, CRUISE))
@example(stream(3, [*CRUISE, struct.pack(">bbbqid", 0, 0, 0, 2**42, 1, 2.0)]))  # a clock that jumped by a century
def test_no_bytes_crash_a_decoder(data: bytes) -> None:
    one_input(data)


@settings(max_examples=250)
@given(st.data(), st.integers(0, 3))
def test_nor_do_records_that_are_nearly_right(data: st.DataObject, kind: int) -> None:
    one_input(stream(kind, data.draw(st.lists(record_of(kind), max_size=8))))


@pytest.mark.parametrize(
    ("form", "record"),
    [
        (AutoMQFormat(), struct.pack(">bbqii", 0, 0, 1, 1, 2**31 - 1)),
        (AutoMQFormat(), struct.pack(">bbqiii", 0, 0, 1, 1, 0, 2**31 - 1)),
        (AutoMQFormat(), struct.pack(">bbqiiibii", 0, 0, 1, 1, 0, 1, ord("t"), 0, 2**31 - 1)),
        (CruiseControlFormat(lambda *_: True), struct.pack(">bbbqii", 1, 0, 2, 1, 1, 2**31 - 1)),
    ],
)
def test_a_length_that_is_a_lie_takes_no_memory(form: RecordFormat, record: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            form.add(record)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000
