"""Every decoder of the metric topic against records that no writer meant.

`one_input` is the property: whatever the bytes, a format raises `DecodeError` or gives batches whose arrays fit
together. The suite runs it under Hypothesis (tests/unit/metrics_reporter/test_fuzz.py), `tests.fuzz.codecs` for hours.
"""

from __future__ import annotations

import zlib

from metrics_reporter.automq import AutoMQFormat
from metrics_reporter.codec import CHECKSUM, MAGIC, DecodeError
from metrics_reporter.columns import BatchColumns
from metrics_reporter.cruise_control import CruiseControlFormat
from metrics_reporter.formats import OwnFormat, RecordFormat
from metrics_reporter.sample import BROKER_SCOPES

MAX_RECORDS = 40


def one_input(data: bytes) -> None:
    """Read `data` as records of one format: the first byte says which, and each record has a byte of length."""
    if not data:
        return
    kind, rest = data[0] % 4, data[1:]
    form = _format(kind)
    for _ in range(MAX_RECORDS):
        if not rest:
            break
        size = rest[0] * 4
        record, rest = rest[1 : 1 + size], rest[1 + size :]
        if kind == 1:  # to get past the checksum
            body = MAGIC + b"\x01" + record
            record = body + CHECKSUM.pack(zlib.crc32(body))
        try:
            form.add(record)
        except DecodeError:
            continue
        if record[-1:] == b"\x07":
            _check(form.take())
    for _ in range(3):
        _check(form.take())


def _format(kind: int) -> RecordFormat:
    if kind < 2:
        return OwnFormat()
    if kind == 2:
        return AutoMQFormat()
    return CruiseControlFormat(lambda broker, topic, partition: (None, True, False)[partition % 3], lambda broker: 4.0)


def _check(batches: list[BatchColumns]) -> None:
    for batch in batches:
        assert batch.broker >= 0
        for block in batch.blocks:
            rows = block.values.shape[1]
            assert block.values.shape[0] == len(block.metrics)
            if block.scope in BROKER_SCOPES:
                assert (rows, len(block.topic)) == (1, 0)
            else:
                assert len(block.topic) == len(block.partition) == rows
                assert 0 <= int(block.topic.min()) <= int(block.topic.max()) < len(batch.topics)
                assert int(block.partition.min()) >= 0
