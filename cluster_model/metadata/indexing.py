"""Finds the records in batches: columns of places, types and offsets, without a Python object for each.

Used by `fold`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cluster_model.errors import InputError, Problem
from cluster_model.metadata import kernels
from cluster_model.metadata.batches import Batch


@dataclass(frozen=True, slots=True)
class Records:
    """Records in columns of length N: where the fields of each start and stop in `data`, what it is, its log offset.

    `where` is what errors call the source.
    """

    data: bytes
    where: str
    begins: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int32]
    versions: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    def only(self, chosen: npt.NDArray[np.int_]) -> Records:
        """Those at these places, int [M]."""
        begins, stops, offsets = (column[chosen] for column in (self.begins, self.stops, self.offsets))
        return Records(self.data, self.where, begins, stops, self.keys[chosen], self.versions[chosen], offsets)


def index_batches(data: bytes, placed: Sequence[tuple[int, Batch]], where: str) -> Records:
    """Every record of data batches, whose places in `data` and heads are given.

    Raises
    ------
    InputError
        The records are not what the head of their batch announces.
    """
    starts = np.array([at for at, _ in placed], dtype=np.int64)
    ends = starts + np.array([batch.size for _, batch in placed], dtype=np.int64)
    counts = np.array([batch.count for _, batch in placed], dtype=np.int64)
    bases = np.array([batch.base_offset for _, batch in placed], dtype=np.int64)
    total = int(counts.sum())
    offsets, begins, stops = (np.zeros(total, dtype=np.int64) for _ in range(3))
    keys, versions = np.zeros(total, dtype=np.int32), np.zeros(total, dtype=np.int32)
    found = kernels.index_records(
        kernel_bytes(data), starts, ends, counts, bases, offsets, begins, stops, keys, versions
    )
    if found < 0:
        bad = int(np.searchsorted(np.cumsum(counts), -1 - found, side="right"))
        batch = placed[min(bad, len(placed) - 1)][1]
        raise refused(where, batch.base_offset, "a record that is not whole, in a batch whose checksum is right")
    return Records(data, where, begins, stops, keys, versions, offsets)


def kernel_bytes(data: bytes) -> Any:
    """`data` as kernels take it."""
    return np.frombuffer(data, dtype=np.uint8)


def refused(where: str, offset: int, message: str) -> InputError:
    """The error of a record that cannot be folded."""
    return InputError(where, [Problem(f"offset {offset}", message)])
