"""How each broker's share of the load goes round the week: what of its deviations is no chance, because it comes every week.

Called by the calibration job with hourly means of one resource, and by `spark.methods.noise`, which takes it out. Plain numpy.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark.methods.bins import FloatArray, IntArray
from spark.methods.season import DAY_HOURS, MONDAY, WEEK_HOURS

FEWEST_WEEKS = 2
FEWEST_HOURS = 12  # of a broker in a day, that its share of the day is known
LEAST_GAIN = 0.05  # share by which a profile must lower deviations in weeks that it was not made from
BY_MEDIAN = 5  # weeks; of fewer the mean is taken, since the median of three is often one of them


@dataclass(frozen=True)
class Profile:
    """What each broker carries in each hour of the week over what it carries in the middle of the day.

    Attributes
    ----------
    brokers
        int [B], ids, ascending.
    factor
        float64 [B, 168], hour 0 is Monday 00:00 UTC; 1 where a broker has none.
    weeks
        That it was made from: what is left after taking it out shows so much too little noise.
    taken
        bool [B], which brokers have one.
    """

    brokers: IntArray
    factor: FloatArray
    weeks: int
    taken: npt.NDArray[np.bool_]

    def expected(self, brokers: IntArray, hours: IntArray) -> FloatArray:
        """float64 [brokers, hours]: the factor at hours since the Unix epoch; 1 for a broker that is not known."""
        place = np.clip(np.searchsorted(self.brokers, brokers), 0, len(self.brokers) - 1)
        known = self.brokers[place] == brokers
        found: FloatArray = np.where(known[:, None], self.factor[place][:, (hours - MONDAY) % WEEK_HOURS], 1.0)
        return found

    def lost(self, brokers: IntArray, windows_per_hour: float) -> FloatArray:
        """float64 [brokers]: by how much what is left is too small, since the profile is made from the same hours. Windows of an hour are
        taken to be independent."""
        place = np.clip(np.searchsorted(self.brokers, brokers), 0, len(self.brokers) - 1)
        mine = (self.brokers[place] == brokers) & self.taken[place]
        found: FloatArray = np.where(mine, np.sqrt(max(1.0 - 1.0 / (max(windows_per_hour, 1.0) * self.weeks), 0.25)), 1.0)
        return found


def profile(brokers: IntArray, hours: IntArray, share: FloatArray) -> Profile | None:
    """The profile of brokers; None where no broker has one.

    Parameters
    ----------
    brokers
        int [B], ids, ascending.
    hours
        int [T], since the Unix epoch, ascending, without gaps.
    share
        float64 [B, T], load over the broker's part of the mean; NaN: not known.

    Notes
    -----
    A broker has a profile where that of its even weeks lowers the deviations of its odd ones, and the other way round, by `LEAST_GAIN`
    together. So noise alone makes none.
    """
    whole = -(-len(hours) // WEEK_HOURS) + 1
    first = (hours[0] - MONDAY) // WEEK_HOURS
    cells = np.full((len(brokers), whole * WEEK_HOURS), np.nan)
    cells[:, hours - MONDAY - first * WEEK_HOURS] = share
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of hours that were not measured
        days = cells.reshape(len(brokers), whole * 7, DAY_HOURS)
        known = np.isfinite(days).sum(axis=2, keepdims=True) >= FEWEST_HOURS
        middle = np.where(known, np.nanmedian(days, axis=2, keepdims=True), np.nan)
        relative = (days / np.where(middle > 0, middle, np.nan)).reshape(len(brokers), whole, WEEK_HOURS)
        seen = np.isfinite(relative).any(axis=(0, 2))
        relative = relative[:, seen]
        weeks = relative.shape[1]
        if weeks < FEWEST_WEEKS:
            return None
        taken = _gain(relative) >= LEAST_GAIN
        if not taken.any():
            return None
        made = _middle(relative)
    factor = np.where(taken[:, None] & (made > 0), made, 1.0)
    return Profile(brokers, factor, weeks, taken)


def _gain(relative: FloatArray) -> FloatArray:
    """float64 [B]: by what share weeks deviate less from the profile of the other half of the weeks than from 1."""
    even, odd = relative[:, ::2], relative[:, 1::2]
    with_it, without = np.zeros(len(relative)), np.zeros(len(relative))
    for here, there in ((even, odd), (odd, even)):
        other = _middle(there)[:, None]
        off = np.abs(here / np.where(other > 0, other, np.nan) - 1.0)
        both = np.isfinite(off)
        with_it += np.where(both, off, 0.0).sum(axis=(1, 2))
        without += np.where(both, np.abs(here - 1.0), 0.0).sum(axis=(1, 2))
    found: FloatArray = 1.0 - with_it / np.where(without > 0, without, np.inf)
    return np.where(without > 0, found, 0.0)


def _middle(relative: FloatArray) -> FloatArray:
    """float64 [B, 168] over weeks [B, weeks, 168]."""
    found: FloatArray = np.nanmedian(relative, axis=1) if relative.shape[1] >= BY_MEDIAN else np.nanmean(relative, axis=1)
    return found
