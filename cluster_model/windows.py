"""Averages of rates over a stated horizon: an exact ring of time-weighted window sums, and latest values of
gauges.

Owned by `cluster_model.model`, which says which slot is which partition. Columnar; time comes in by
parameter, nothing here knows what a partition or a broker is.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import FloatArray, IntArray

INITIAL_CAPACITY = 1024


class LatestValues:
    """The newest value of one gauge per slot."""

    def __init__(self) -> None:
        self._values = np.full(INITIAL_CAPACITY, np.nan)

    def put(self, slots: IntArray, values: FloatArray) -> None:
        """Take new values, float64 [N], for slots, int32 [N]; neither is kept."""
        self._reserve(slots)
        self._values[slots] = values

    def get(self, slots: IntArray) -> FloatArray:
        """float64 [N], NaN where nothing was ever put; a copy."""
        found = np.full(len(slots), np.nan)
        known = slots < len(self._values)
        found[known] = self._values[slots[known]]
        return found

    def forget(self, slots: IntArray) -> None:
        self._values[slots[slots < len(self._values)]] = np.nan

    def _reserve(self, slots: IntArray) -> None:
        needed = int(slots.max(initial=-1)) + 1
        if needed > len(self._values):
            self._values = _grown(self._values, needed, np.nan)


class WindowRing:
    """Time-weighted sums of one rate per slot in the newest `windows` windows of `window_ms` milliseconds.

    A value counts as often as the interval it was averaged over is long, so a burst between two reports is
    neither lost nor counted twice, and reports of different lengths mix truly.

    Notes
    -----
    16 bytes a slot and window. `add` is O(N), clearing a window O(slots), once per window.
    """

    def __init__(self, window_ms: int, windows: int) -> None:
        if window_ms < 1 or windows < 1:
            raise ValueError(f"expected at least one window of at least 1 ms, found {windows} of {window_ms}")
        self.window_ms, self.windows = window_ms, windows
        self._sums = np.zeros((windows, INITIAL_CAPACITY))
        self._weights = np.zeros((windows, INITIAL_CAPACITY))
        self._numbers = np.full(windows, -1, dtype=np.int64)  # which window each row of the ring holds

    def add(self, slots: IntArray, values: FloatArray, weight_ms: int, time_ms: int) -> bool:
        """Count values, float64 [N], averaged over `weight_ms` up to `time_ms`, for distinct slots, int32
        [N].

        False, and nothing counted, where `time_ms` is older than the ring reaches back.
        """
        number = time_ms // self.window_ms
        if number <= int(self._numbers.max()) - self.windows:
            return False
        row = number % self.windows
        if self._numbers[row] != number:
            self._sums[row] = 0.0
            self._weights[row] = 0.0
            self._numbers[row] = number
        self._reserve(slots)
        weight = float(max(weight_ms, 1))
        self._sums[row, slots] += values * weight
        self._weights[row, slots] += weight
        return True

    def average(self, slots: IntArray, now_ms: int, windows: int | None = None) -> FloatArray:
        """float64 [N]: mean over the newest `windows` (default all) windows up to now; NaN where they hold
        nothing."""
        span = self.windows if windows is None else min(windows, self.windows)
        newest = now_ms // self.window_ms
        rows = np.flatnonzero((self._numbers > newest - span) & (self._numbers <= newest))
        sums, weights = np.zeros(len(slots)), np.zeros(len(slots))
        known = slots < self._sums.shape[1]
        inside = slots[known]
        for row in rows:
            sums[known] += self._sums[row, inside]
            weights[known] += self._weights[row, inside]
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / np.where(weights > 0.0, weights, np.nan), dtype=np.float64)

    def forget(self, slots: IntArray) -> None:
        """Drop all that was counted for slots, int32 [N]."""
        inside = slots[slots < self._sums.shape[1]]
        self._sums[:, inside] = 0.0
        self._weights[:, inside] = 0.0

    def _reserve(self, slots: IntArray) -> None:
        needed = int(slots.max(initial=-1)) + 1
        if needed > self._sums.shape[1]:
            self._sums = _grown(self._sums, needed, 0.0)
            self._weights = _grown(self._weights, needed, 0.0)


def _grown(array: FloatArray, needed: int, fill: float) -> FloatArray:
    """The array with its last axis at least doubled and at least `needed` long."""
    length = max(needed, 2 * array.shape[-1])
    grown = np.full((*array.shape[:-1], length), fill)
    grown[..., : array.shape[-1]] = array
    return grown
