"""Changes of a plan: columns, read as sequences that build what is asked for.

`optimizer.assemble` makes the columns; reports and executors see `Sequence[Change]`. Going through all of them builds a block at a
time, which is several times cheaper than one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, overload

import numpy as np

from cluster_model.snapshot import Snapshot
from optimizer.plan import Change

BLOCK = 2_048  # rows


Item = TypeVar("Item")


@dataclass(frozen=True)
class ChangeTable:
    """Changes in rows: partition, lists before and after (wire ids, -1 beyond the list), leaders (-1 none)."""

    snapshot: Snapshot
    partition: np.ndarray
    before: np.ndarray
    after: np.ndarray
    leader_before: np.ndarray
    leader_after: np.ndarray

    def rows(self, start: int, stop: int) -> list[Change]:
        """Rows of a range."""
        topics = self.snapshot.topics
        partition = self.partition[start:stop]
        columns = (
            self.snapshot.partition_topic[partition].tolist(), self.snapshot.partition_number[partition].tolist(),
            _tuples(self.before[start:stop]), _tuples(self.after[start:stop]),
            self.leader_before[start:stop].tolist(), self.leader_after[start:stop].tolist(),
        )  # fmt: skip
        return [
            Change(topics[topic], number, old, new, led if led >= 0 else None, leads if leads >= 0 else None)
            for topic, number, old, new, led, leads in zip(*columns, strict=True)
        ]

    def taken(self, rows: np.ndarray) -> ChangeTable:
        """The changes `rows` (int64) alone."""
        return ChangeTable(
            self.snapshot, self.partition[rows], self.before[rows], self.after[rows], self.leader_before[rows], self.leader_after[rows]
        )

    def __len__(self) -> int:
        return len(self.partition)


def _tuples(lists: np.ndarray) -> list[tuple[int, ...]]:
    """Rows without their -1."""
    rows: list[list[int]] = lists.tolist()
    if not len(lists) or lists.min() >= 0:
        return [tuple(row) for row in rows]
    return [tuple([b for b in row if b >= 0]) for row in rows]


class Blocks(Sequence[Item]):
    """A sequence of rows that are built by the range."""

    def _built(self, start: int, stop: int) -> list[Item]:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            rows = range(*index.indices(len(self)))
            if rows.step == 1:
                return self._built(rows.start, max(rows.stop, rows.start))
            return [self._built(i, i + 1)[0] for i in rows]
        i = range(len(self))[index]
        return self._built(i, i + 1)[0]

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), BLOCK):
            yield from self._built(start, min(start + BLOCK, len(self)))


class Proposals(Blocks[Change]):
    """Net changes."""

    def __init__(self, table: ChangeTable) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    def _built(self, start: int, stop: int) -> list[Change]:
        return self.table.rows(start, stop)

    def flows(self) -> dict[int, list[int]]:
        """Of every broker that they touch, ascending: replicas that come and go, leaderships that come and go."""
        table = self.table
        came = table.after[(table.after[:, :, None] != table.before[:, None, :]).all(axis=2) & (table.after >= 0)]
        gone = table.before[(table.before[:, :, None] != table.after[:, None, :]).all(axis=2) & (table.before >= 0)]
        led = table.leader_before != table.leader_after
        leads, led = table.leader_after[led & (table.leader_after >= 0)], table.leader_before[led & (table.leader_before >= 0)]
        ids = np.unique(np.concatenate([came, gone, leads, led]))
        counts = [np.bincount(np.searchsorted(ids, column), minlength=len(ids)).tolist() for column in (came, gone, leads, led)]
        return dict(zip(ids.tolist(), map(list, zip(*counts, strict=True)), strict=True))
