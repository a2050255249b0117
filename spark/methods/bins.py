"""Deviations counted in bins of 1%: what is left of any number of broker windows, and adds up in any order.

Called by the noise, bound and spread methods. Plain numpy; knows nothing of where deviations come from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

STEP = 0.01  # of the natural logarithm
LEAST = 1e-6  # what is smaller counts as this
BINS = 2_100  # up to about 1,300


def bin_of(values: FloatArray) -> IntArray:
    """int64, the bin of each value, 0 to `BINS` - 1. Values are finite and not negative."""
    with np.errstate(divide="ignore"):
        place = np.floor(np.log(values / LEAST) / STEP)
    found: IntArray = np.clip(place, 0, BINS - 1).astype(np.int64)
    return found


def upper(bins: npt.ArrayLike) -> FloatArray:
    """float64, where each bin ends."""
    found: FloatArray = LEAST * np.exp((np.asarray(bins, dtype=np.float64) + 1) * STEP)
    return found


def middle(bins: npt.ArrayLike) -> FloatArray:
    """float64, the geometric middle of each bin."""
    return upper(np.asarray(bins, dtype=np.float64) - 0.5)


@dataclass(frozen=True)
class Histogram:
    """How many values are in each bin.

    Attributes
    ----------
    counts
        int64 [`BINS`].
    """

    counts: IntArray

    @classmethod
    def of(cls, bins: IntArray, counts: IntArray) -> Histogram:
        """From pairs of bin and count; a bin may come several times."""
        return cls(np.bincount(bins, counts, BINS).astype(np.int64))

    @classmethod
    def added(cls, parts: Iterable[Histogram]) -> Histogram:
        """All of them together."""
        return cls(sum((part.counts for part in parts), np.zeros(BINS, dtype=np.int64)))

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def quantile(self, share: float) -> float:
        """The value that `share` of all are at or below, within half a percent; NaN where there are none.

        Within a bin, values are taken to be spread evenly by logarithm.
        """
        total = self.total
        if not total:
            return float("nan")
        through = np.cumsum(self.counts)
        wanted = share * total
        place = min(int(np.searchsorted(through, wanted)), int(np.flatnonzero(self.counts)[-1]))
        inside = (wanted - (through[place] - self.counts[place])) / max(int(self.counts[place]), 1)
        return float(upper(place - 1 + min(max(inside, 0.0), 1.0)))

    def beyond(self, value: float) -> float:
        """Share of the values above `value`, itself a value that need not be a bin's end."""
        total = self.total
        if not total:
            return 0.0
        place = np.log(max(value, LEAST) / LEAST) / STEP
        whole = min(int(place), BINS - 1)
        rest = self.counts[whole + 1 :].sum() + self.counts[whole] * (1 - min(place - whole, 1.0))
        return float(rest / total)
