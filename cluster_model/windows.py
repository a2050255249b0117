"""Loads per slot over two stated horizons: exact means of rates over time windows, newest values of gauges.

Owned by `cluster_model.model`, which says which slot is which partition or broker, and holds the lock. Columnar; time
comes in by parameter, nothing here knows what a partition or a broker is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from cluster_model.loops import LongArray, Totals, count_rates, keep_newest, roll
from cluster_model.snapshot import FloatArray, IntArray

HorizonName = Literal["short", "long"]

INITIAL_CAPACITY = 1024
NEVER = -1


@dataclass(frozen=True, slots=True)
class Horizon:
    """Means are over the newest `windows` windows of `window_ms` that samples have reached, the one that is being
    filled included: over between ``windows - 1`` and ``windows`` times `window_ms`."""

    window_ms: int
    windows: int

    def __post_init__(self) -> None:
        if self.window_ms < 1 or self.windows < 1:
            raise ValueError(
                f"expected at least one window of at least 1 ms, found {self.windows} of {self.window_ms} ms"
            )

    @property
    def span_ms(self) -> int:
        return self.window_ms * self.windows


SHORT = Horizon(30_000, 4)  # for reaction
LONG = Horizon(300_000, 6)  # for steady state


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of the values of one call: counted, senseless (negative or beyond all reason), too old."""

    counted: int
    senseless: int
    old: int


class Column(Protocol):
    """One metric of all slots."""

    @property
    def times(self) -> LongArray:
        """int64 [slots]: end of the newest interval that was counted, Unix ms; -1 where there is none."""
        ...

    def total(self, horizon: HorizonName) -> Totals:
        """float32 [slots, 2] as `cluster_model.loops` describes it; the live array."""
        ...

    def add(self, slots: IntArray, values: FloatArray, window_ms: int, time_ms: int) -> Taken: ...

    def advance(self, time_ms: int) -> None:
        """Make ready for samples of this time; a few ms at a million replicas, once a window."""
        ...

    def forget(self, slots: IntArray) -> None: ...

    def reserve(self, slots: int) -> None:
        """Have room for so many slots."""
        ...

    @property
    def nbytes(self) -> int: ...


class Ring:
    """The windows of one horizon: float32 [windows, slots, 2], time-weighted sum and weight, and their total."""

    def __init__(self, horizon: Horizon) -> None:
        self.horizon = horizon
        self.newest = NEVER  # number of the newest window
        self.cells = np.zeros((horizon.windows, INITIAL_CAPACITY, 2), dtype=np.float32)
        self.total: Totals = np.zeros((INITIAL_CAPACITY, 2), dtype=np.float32)

    def row(self, time_ms: int) -> int:
        """Where the window of this time stands; -1 where the ring has gone on."""
        number = time_ms // self.horizon.window_ms
        return -1 if number <= self.newest - self.horizon.windows else number % self.horizon.windows

    def weight(self, window_ms: int) -> float:
        """A value counts as often as its interval is long, but none for longer than the horizon."""
        return float(min(max(window_ms, 1), self.horizon.span_ms))

    def advance(self, time_ms: int) -> None:
        """Have the window of this time. O(slots x windows), once a window."""
        number, windows = time_ms // self.horizon.window_ms, self.horizon.windows
        if number <= self.newest:
            return
        if self.newest != NEVER:
            leaving = range(self.newest - windows + 1, min(self.newest, number - windows) + 1)
            roll(self.cells, self.total, np.array([n % windows for n in leaving], dtype=np.int64))
        self.newest = number

    def resize(self, slots: int) -> None:
        have = self.cells.shape[1]
        if slots > have:
            cells = np.zeros((self.horizon.windows, slots, 2), dtype=np.float32)
            cells[:, :have] = self.cells
            total = np.zeros((slots, 2), dtype=np.float32)
            total[:have] = self.total
            self.cells, self.total = cells, total


class Rates:
    """A rate per slot, averaged over both horizons.

    A value counts as often as the interval it was averaged over is long, so a burst between two reports is neither
    lost nor counted twice, and reports of different lengths mix truly. Late values count into the window they are
    of. A slot without samples in the horizon keeps the mean of its newest window that had any, the last known load.

    Notes
    -----
    ``8 x (windows of both horizons + 2) + 8`` bytes a slot. Single precision: relative error below 1e-5.
    """

    def __init__(self, short: Horizon, long: Horizon) -> None:
        self._rings = {"short": Ring(short), "long": Ring(long)}
        self._times: LongArray = np.full(INITIAL_CAPACITY, NEVER, dtype=np.int64)

    @property
    def times(self) -> LongArray:
        return self._times

    @property
    def nbytes(self) -> int:
        return self._times.nbytes + sum(r.cells.nbytes + r.total.nbytes for r in self._rings.values())

    def total(self, horizon: HorizonName) -> Totals:
        return self._rings[horizon].total

    def advance(self, time_ms: int) -> None:
        for ring in self._rings.values():
            ring.advance(time_ms)

    def add(self, slots: IntArray, values: FloatArray, window_ms: int, time_ms: int) -> Taken:
        """Count values, float64 [N], averaged over `window_ms` up to `time_ms`, for slots, int32 [N]; -1 and NaN are
        passed over. The arrays are not kept."""
        self.advance(time_ms)
        short, long = self._rings["short"], self._rings["long"]
        return Taken(
            *count_rates(
                slots, values, time_ms, self._times,
                short.cells, short.total, short.row(time_ms), short.weight(window_ms),
                long.cells, long.total, long.row(time_ms), long.weight(window_ms),
            )
        )  # fmt: skip

    def forget(self, slots: IntArray) -> None:
        inside = slots[slots < len(self._times)]
        self._times[inside] = NEVER
        for ring in self._rings.values():
            ring.cells[:, inside] = 0.0
            ring.total[inside] = 0.0

    def reserve(self, slots: int) -> None:
        if slots > len(self._times):
            room = _room(slots)
            self._times = _longer(self._times, room)
            for ring in self._rings.values():
                ring.resize(room)


class Gauges:
    """The newest value per slot of what is not a rate; both horizons are the same.

    Notes
    -----
    16 bytes a slot.
    """

    def __init__(self) -> None:
        self._times: LongArray = np.full(INITIAL_CAPACITY, NEVER, dtype=np.int64)
        self._total: Totals = np.zeros((INITIAL_CAPACITY, 2), dtype=np.float32)

    @property
    def times(self) -> LongArray:
        return self._times

    @property
    def nbytes(self) -> int:
        return self._times.nbytes + self._total.nbytes

    def total(self, horizon: HorizonName) -> Totals:
        return self._total

    def advance(self, time_ms: int) -> None:
        return

    def add(self, slots: IntArray, values: FloatArray, window_ms: int, time_ms: int) -> Taken:
        """As `Rates.add`; a value older than the one that is kept is too old."""
        return Taken(*keep_newest(slots, values, time_ms, self._times, self._total))

    def forget(self, slots: IntArray) -> None:
        inside = slots[slots < len(self._times)]
        self._times[inside] = NEVER
        self._total[inside] = 0.0

    def reserve(self, slots: int) -> None:
        have = len(self._times)
        if slots > have:
            room = _room(slots)
            total = np.zeros((room, 2), dtype=np.float32)
            total[:have] = self._total
            self._total, self._times = total, _longer(self._times, room)


def _room(slots: int) -> int:
    """An eighth more than is needed, so that growing slot by slot stays cheap."""
    return -(-(slots + slots // 8) // INITIAL_CAPACITY) * INITIAL_CAPACITY


def _longer(times: LongArray, slots: int) -> LongArray:
    longer = np.full(slots, NEVER, dtype=np.int64)
    longer[: len(times)] = times
    return longer
