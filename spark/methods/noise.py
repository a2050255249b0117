"""What of brokers' deviations is noise: a day of loads of one resource, told apart into the broker's own share and the rest.

`day` is the kernel, numpy on a matrix of brokers by windows; `counted` makes histograms of it. Called by the calibration job, one resource
and day at a time. Knows nothing of goals.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark.methods.bins import FloatArray, IntArray, bin_of, middle
from spark.methods.profile import Profile
from spark.methods.season import HOUR

# Kinds of rows that `counted` gives.
NOISE, ALARM, SPREAD, DAYS, SETTLED = "noise", "alarm", "spread", "days", "settled"
COUNTED = "resource string, kind string, level int, bin int, count long"

LEAST_WINDOWS = 12  # of a broker in a day, that its share is known
MISREAD = 10.0  # a window so many times the broker's median of the day is a wrong sample, not load
UNSETTLED = 3.0  # a broker's day with so many times the usual noise had a change in it
NEAR = 2.0  # brokers within this factor of the mean tell what a balanced one would do
PASSES = 3  # of shares from the mean and the mean from shares, where samples are missing
LEVELS_PER_OCTAVE = 2
TO_SIGMA = 1.4826  # median absolute deviation to standard deviation, for a normal distribution


@dataclass(frozen=True)
class Day:
    """A day of one resource.

    Attributes
    ----------
    deviation
        float64 [brokers, windows], load over the broker's part of the mean, less 1; NaN: not measured.
    slow
        float64 [brokers], the broker's median of load over its part of the mean: what lasts; NaN: too few windows.
    fast
        float64 [brokers, windows], what is left: load over ``slow`` times its part of the mean, less 1.
    settled
        bool [brokers], whose `fast` is noise: near the mean, and without a change of its share during the day.
    level
        float64 [windows], mean load of a broker; NaN where fewer than half of the brokers were measured.
    """

    deviation: FloatArray
    slow: FloatArray
    fast: FloatArray
    settled: npt.NDArray[np.bool_]
    level: FloatArray


def day(load: FloatArray, capacity: FloatArray | None = None, usual: FloatArray | None = None) -> Day:
    """What lasts and what does not in a day of brokers' loads.

    Parameters
    ----------
    load
        float64 [brokers, windows], not negative, NaN where not measured; not written to.
    capacity
        float64 [brokers], above 0, where every broker has one: then the mean is shared by capacity, as a goal does.
    usual
        float64 [brokers, windows], above 0: what each broker carries at that hour of the week over its own middle of the day
        (`spark.methods.profile`). What comes every week is no noise, and in `deviation` only. None: 1.

    Notes
    -----
    A deviation that goes away within a day by itself is no imbalance to act on, so the slow part is the day's median. It is
    a ratio to the mean of all brokers, so what all of them do together (the hour, an incident of a producer) is in neither.
    Nor is a sample of one broker that was lost: the mean is then told from what the others carry of it, since without a broker
    that carries much it would be lower, and every other broker seem to deviate.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # medians of nothing are NaN, as meant
        load = np.where(load > MISREAD * np.nanmedian(load, axis=1, keepdims=True), np.nan, load)
        weight = np.ones(len(load)) if capacity is None else capacity / capacity.mean()
        fair = load / weight[:, None]
        told = np.isfinite(fair).sum(axis=0) * 2 > len(load)
        usual = np.ones(load.shape) if usual is None else usual
        slow = np.ones(len(load))
        for _ in range(PASSES):
            level = np.where(told, _mean_of_all(fair, slow[:, None] * usual), np.nan)
            ratio = fair / np.where(level > 0, level, np.nan)
            known = np.isfinite(ratio).sum(axis=1) >= LEAST_WINDOWS
            slow = np.where(known, np.nanmedian(ratio / usual, axis=1), np.nan)
        fast = ratio / (np.where(slow > 0, slow, np.nan)[:, None] * usual) - 1.0
        wide = np.nanmedian(np.abs(fast), axis=1)
        near = (slow >= 1 / NEAR) & (slow <= NEAR)
        settled = near & (wide <= UNSETTLED * np.nanmedian(wide[near])) if near.any() else near
    return Day(ratio - 1.0, slow, fast, settled, level)


def _mean_of_all(load: FloatArray, share: FloatArray) -> FloatArray:
    """float64 [windows], the mean load that all brokers would show, told from those measured and what `share` of it each carries then."""
    measured = np.isfinite(load) & np.isfinite(share)
    carried = np.where(measured, share, 0.0).sum(axis=0)
    found: FloatArray = np.where(measured, load, 0.0).sum(axis=0) * np.nanmean(share, axis=0) / np.where(carried > 0, carried, np.nan)
    return found


def weights(brokers: IntArray, capacity: Mapping[int, float]) -> FloatArray | None:
    """float64 [brokers], capacities where every broker has one; a broker that says 0 does not know."""
    found = np.array([capacity.get(int(broker), np.nan) for broker in brokers], dtype=np.float64)
    return found if bool((found > 0).all()) else None


def in_a_row(fast: FloatArray, hits: int) -> FloatArray:
    """float64 [brokers, windows - hits + 1], not negative: how far off every one of `hits` windows in a row is, on the same side.

    A detector that persists for `hits` checks fires where this is beyond the band. NaN where one was not measured.
    """
    if hits > fast.shape[1]:
        return np.empty((len(fast), 0))
    rows = np.lib.stride_tricks.sliding_window_view(fast, hits, axis=1)
    found: FloatArray = np.maximum(np.maximum(rows.min(axis=2), (-rows).min(axis=2)), 0.0)
    return found


def level_bin(level: FloatArray) -> IntArray:
    """int64: half octaves of the level, above 0."""
    found: IntArray = np.floor(LEVELS_PER_OCTAVE * np.log2(level)).astype(np.int64)
    return found


def signed_bin(values: FloatArray) -> IntArray:
    """int64: the bin of values from 0 on; of those below, -1 less the bin of their size."""
    bins = bin_of(np.abs(values))
    found: IntArray = np.where(values < 0, -1 - bins, bins)
    return found


def unsigned(bins: IntArray) -> IntArray:
    """int64, the bin of the size of what `signed_bin` put there."""
    found: IntArray = np.where(bins < 0, -1 - bins, bins)
    return found


def middle_of(bins: IntArray) -> FloatArray:
    """float64, the value that stands for what `signed_bin` put into each bin."""
    found: FloatArray = np.where(bins < 0, -1.0, 1.0) * middle(unsigned(bins))
    return found


def counted(
    resource: str, brokers: IntArray, first: int, load: FloatArray, *, window_seconds: float, hits: int,
    capacity: Mapping[int, float] | None = None, usual: Profile | None = None,
) -> pa.Table:  # fmt: skip
    """The histograms of one resource and day, as rows of `COUNTED`.

    Parameters
    ----------
    brokers
        int [brokers], ids, ascending.
    first
        Number of the first window since the Unix epoch.
    load
        float64 [brokers, windows], mean load; NaN: not measured.
    window_seconds, hits
        Length of a window; checks in a row that a detector takes.
    capacity
        broker -> what it can carry of the resource; the mean is shared by it where all brokers have one (0: not known).
    usual
        What of the brokers' shares comes every week.

    Returns
    -------
    pyarrow.Table
        Kind `NOISE`: fast by level, in bins that `signed_bin` gives; `ALARM`: what `in_a_row` gives;
        `SPREAD`: |deviation|; `DAYS` and `SETTLED`: broker days
        seen and used, in bin 0.
    """
    hours = (first + np.arange(load.shape[1])) * round(window_seconds * 1e6) // round(HOUR * 1e6)
    expected = None if usual is None else usual.expected(brokers, hours)
    found = day(load, weights(brokers, capacity or {}), expected)
    if usual is not None:
        found = replace(found, fast=found.fast / usual.lost(brokers, HOUR / window_seconds)[:, None])

    levels = np.broadcast_to(level_bin(np.where(found.level > 0, found.level, 1.0)), load.shape)[found.settled]
    noise = found.fast[found.settled]
    valid = np.isfinite(noise)
    alarms = in_a_row(found.fast[found.settled], hits)
    spread = np.abs(found.deviation)
    parts = [
        _rows(NOISE, signed_bin(noise[valid]), levels[valid]),
        _rows(ALARM, bin_of(alarms[np.isfinite(alarms)])),
        _rows(SPREAD, bin_of(spread[np.isfinite(spread)])),
        _rows(DAYS, np.zeros(int(np.isfinite(found.slow).sum()), dtype=np.int64)),
        _rows(SETTLED, np.zeros(int(found.settled.sum()), dtype=np.int64)),
    ]
    rows = pa.concat_tables(parts)
    return rows.add_column(0, "resource", pa.repeat(resource, len(rows)))


def _rows(kind: str, bins: IntArray, levels: IntArray | None = None) -> pa.Table:
    """One row for each pair of level and bin that occurs, with its count."""
    levels = np.zeros_like(bins) if levels is None else levels
    pairs, counts = np.unique(np.stack([levels, bins]), axis=1, return_counts=True)
    return pa.table({
        "kind": pa.repeat(kind, len(counts)),
        "level": pa.array(pairs[0], pa.int32()),
        "bin": pa.array(pairs[1], pa.int32()),
        "count": pa.array(counts, pa.int64()),
    })  # fmt: skip
