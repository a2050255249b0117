"""Batches as arrays: the consumer's side of the codec.

The only module of this room that needs numpy; the reporter never imports it. Arrays are views into the record
where the processor allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics_reporter.codec import BlockView, DecodeError, frame
from metrics_reporter.sample import BROKER_SCOPES, METRIC_NAMES, Scope


@dataclass(frozen=True, eq=False)
class SampleColumns:
    """Values of one scope.

    Attributes
    ----------
    metrics
        M names; empty where the id is unknown to this release.
    topic
        int32 [N], row in the batch's `topics`; empty for broker scopes (then N is 1).
    partition
        int32 [N], number within the topic; empty for broker scopes.
    values
        float64 [M, N], NaN where a row has no such value. Read-only.
    """

    scope: Scope
    metrics: tuple[str, ...]
    topic: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BatchColumns:
    """A batch: header fields as in `BatchHeader`, names of its topics, and its blocks."""

    broker: int
    time_ms: int
    window_ms: int
    incarnation: int
    sequence: int
    topics: tuple[str, ...]
    blocks: tuple[SampleColumns, ...]

    @property
    def sample_count(self) -> int:
        """How many values are present."""
        return sum(int(np.count_nonzero(~np.isnan(block.values))) for block in self.blocks)


def decode(record: bytes) -> BatchColumns:
    """The batch in a record of the internal topic.

    Raises
    ------
    DecodeError
        The record is not a batch this release can read; nothing else is ever raised.
    """
    checked = frame(record)
    head = checked.header
    blocks = tuple(_columns(block, len(checked.topics)) for block in checked.blocks)
    return BatchColumns(head.broker, head.time_ms, head.window_ms, head.incarnation, head.sequence, checked.topics, blocks)


def _columns(block: BlockView, topics: int) -> SampleColumns:
    metrics = tuple(METRIC_NAMES.get(number, "") for number in block.metric_ids)
    values = np.frombuffer(block.values, dtype="<f8").reshape(len(metrics), block.rows)
    if block.scope in BROKER_SCOPES:
        empty = np.empty(0, dtype=np.int32)
        return SampleColumns(block.scope, metrics, empty, empty, values.astype(np.float64, copy=False))
    topic = np.frombuffer(block.topic, dtype="<u4")
    partition = np.frombuffer(block.partition, dtype="<i4")
    if int(topic.max()) >= topics:
        raise DecodeError(f"topic row {int(topic.max())} where the record names {topics} topics")
    if int(partition.min()) < 0:
        raise DecodeError(f"partition {int(partition.min())} is negative")
    return SampleColumns(
        block.scope, metrics, topic.astype(np.int32), partition.astype(np.int32, copy=False),
        values.astype(np.float64, copy=False),
    )  # fmt: skip
