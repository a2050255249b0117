"""Samples that the metadata does not place yet: metadata may lag behind what brokers report.

Owned by `cluster_model.model`, which tries them again when metadata came that may place them. Bounded in cells, pieces
and time.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BoolArray, FloatArray, IntArray

MAX_CELLS = 500_000
MAX_PIECES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Values of one block of a batch; `arrived_ms` is by the model's clock, and `number` counts the blocks that came: of two values
    of one moment the later one counts. Columns as in `ObservedBlock`."""

    broker: int
    time_ms: int
    window_ms: int
    arrived_ms: int
    number: int
    scope: int
    metrics: tuple[str, ...]
    topics: tuple[str, ...]
    topic: IntArray
    partition: IntArray
    values: FloatArray

    @property
    def size(self) -> int:
        """Cells; what the bound counts."""
        return max(1, self.values.size)

    @property
    def count(self) -> int:
        """Values present."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    def only(self, rows: BoolArray) -> Piece:
        """The given rows, bool [N], without topics that no row names."""
        used, topic = np.unique(self.topic[rows], return_inverse=True)
        return Piece(
            self.broker, self.time_ms, self.window_ms, self.arrived_ms, self.number, self.scope, self.metrics,
            tuple(self.topics[t] for t in used.tolist()),
            topic.astype(np.int32), self.partition[rows].copy(), self.values[:, rows].copy(),
        )  # fmt: skip


class WaitingSamples:
    """Pieces by arrival.

    Parameters
    ----------
    max_age_ms
        How long metadata may lag.
    max_cells, max_pieces
        What may wait; 8 bytes a cell.
    """

    def __init__(self, max_age_ms: int, max_cells: int = MAX_CELLS, max_pieces: int = MAX_PIECES) -> None:
        self._max_age_ms, self._max_cells, self._max_pieces = max_age_ms, max_cells, max_pieces
        self._pieces: list[Piece] = []
        self._cells = 0
        self._topics: set[str] = set()
        self._brokers: set[int] = set()
        self._all = False

    @property
    def cells(self) -> int:
        return self._cells

    def add(self, piece: Piece) -> int:
        """Let a piece wait; how many values had to go for it, oldest first."""
        insort(self._pieces, piece, key=_arrival)
        self._cells += piece.size
        gone, surplus = 0, 0
        while self._cells > self._max_cells or len(self._pieces) - surplus > self._max_pieces:
            self._cells -= self._pieces[surplus].size
            gone += self._pieces[surplus].count
            surplus += 1
        del self._pieces[:surplus]
        return gone

    def topic_changed(self, name: str) -> None:
        if self._pieces:
            self._topics.add(name)

    def broker_changed(self, broker: int) -> None:
        if self._pieces:
            self._brokers.add(broker)

    def all_changed(self) -> None:
        self._all = True

    def take(self) -> list[Piece]:
        """Remove and return what metadata that changed since the last call may place now."""
        if not (self._all or self._topics or self._brokers):
            return []
        topics, brokers, everything = self._topics, self._brokers, self._all
        self._topics, self._brokers, self._all = set(), set(), False

        def is_concerned(piece: Piece) -> bool:
            return everything or piece.broker in brokers or not topics.isdisjoint(piece.topics)

        return self._remove(is_concerned)

    def expire(self, now_ms: int) -> Sequence[Piece]:
        """Remove and return what waited for too long."""
        oldest = now_ms - self._max_age_ms
        if not self._pieces or self._pieces[0].arrived_ms >= oldest:
            return ()
        return self._remove(lambda piece: piece.arrived_ms < oldest)

    def _remove(self, chosen: Callable[[Piece], bool]) -> list[Piece]:
        taken: list[Piece] = []
        kept: list[Piece] = []
        for piece in self._pieces:
            (taken if chosen(piece) else kept).append(piece)
        self._pieces = kept
        self._cells -= sum(piece.size for piece in taken)
        return taken


def _arrival(piece: Piece) -> tuple[int, int]:
    return piece.arrived_ms, piece.number
