"""Batches as a reporter's decoder hands them out, written shortly. Used by the tests of the live model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cluster_model.observed import BROKER, CAPACITY
from cluster_model.snapshot import FloatArray, IntArray

NOW = 1_767_225_600_000
Name = tuple[str, int]


@dataclass(frozen=True)
class Block:
    scope: int
    metrics: tuple[str, ...]
    topic: IntArray
    partition: IntArray
    values: FloatArray


@dataclass(frozen=True)
class Batch:
    broker: int
    time_ms: int
    sequence: int
    topics: tuple[str, ...] = ("orders",)
    blocks: tuple[Block, ...] = ()
    window_ms: int = 10_000
    incarnation: int = 1


@dataclass
class Reports:
    """Numbers the batches of each broker."""

    sequence: dict[int, int] = field(default_factory=dict)

    def of(
        self, broker: int, time_ms: int, *blocks: Block, topics: tuple[str, ...] = ("orders",), window_ms: int = 10_000
    ) -> Batch:
        self.sequence[broker] = self.sequence.get(broker, -1) + 1
        return Batch(broker, time_ms, self.sequence[broker], topics, blocks, window_ms)


def replica(scope: int, partition: int, **values: float) -> Block:
    """One replica of the batch's first topic."""
    return Block(
        scope,
        tuple(values),
        np.array([0], dtype=np.int32),
        np.array([partition], dtype=np.int32),
        np.array([[v] for v in values.values()]),
    )


def rows(scope: int, metric: str, of: Sequence[tuple[int, int, float]]) -> Block:
    """One metric of many replicas: (row of the topic, partition, value)."""
    topic, partition, values = zip(*of, strict=True)
    return Block(
        scope, (metric,), np.array(topic, dtype=np.int32), np.array(partition, dtype=np.int32), np.array([values], dtype=float)
    )


def whole(scope: int, **values: float) -> Block:
    """The broker itself."""
    assert scope in (BROKER, CAPACITY)
    empty = np.empty(0, dtype=np.int32)
    return Block(scope, tuple(values), empty, empty, np.array([[v] for v in values.values()]))
