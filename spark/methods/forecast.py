"""What partitions will carry next: baselines, seasons and robust trends, each series by the one that did best on history held out.

Called by the calibrate job with many series at once (`mapInArrow`, `applyInArrow`), and by tests. Plain numpy over arrays
[series, step]; knows nothing of Spark. docs/calibration-methods.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]

METHODS = ("last", "mean", "day", "week", "trend")
PATTERNS = ("steady", "cyclic", "growing", "bursty")

HELD_OUT = (1, 2, 4, 7)  # days before the end from which a day is forecast and compared, as far as history reaches
BETTER = 0.9  # error over last-value's that a method needs to be chosen instead: four days are few, and chance favours the many
LEAST_DAYS = 3  # of history; below, nothing is forecast
LEAST_SEEN = 0.5  # of the steps
MOST_WEEKS = 8  # that a profile and a trend are made of
AT_ONCE = 2_000  # series, so that memory stays bounded

BURSTY = 3.0  # 99th percentile of load over what season and trend expect
GROWING = 0.03  # share of the mean a week
GROWING_DAYS = 14
SURE = 3.0  # standard deviations of Mann and Kendall's statistic
CYCLIC = 0.3  # share of the variance about the trend that the hour of the day or week explains, adjusted for its parameters


@dataclass(frozen=True)
class Forecasts:
    """One row a series; NaN where there is too little history.

    Attributes
    ----------
    path
        float64 [series, steps of a day], the coming day.
    method, pattern
        int8 [series], rows of `METHODS` and `PATTERNS`.
    error
        float64 [series, methods]: mean absolute error on the days held out, in the unit of the values; NaN: could not be tried.
    growth
        float64 [series], share of the mean a week (Theil and Sen); 0 where there are no two weeks to tell.
    strength
        float64 [series], 0..1: share of the variance about the trend that the season explains.
    burst
        float64 [series]: 99th percentile of load over what season and trend expect.
    """

    path: FloatArray
    method: npt.NDArray[np.int8]
    pattern: npt.NDArray[np.int8]
    error: FloatArray
    growth: FloatArray
    strength: FloatArray
    burst: FloatArray

    @property
    def next(self) -> FloatArray:
        """float64 [series], the coming step."""
        return self.path[:, 0]

    @property
    def peak(self) -> FloatArray:
        """float64 [series], the largest of the coming day, as expected: what noise and bursts add comes on top."""
        found: FloatArray = self.path.max(axis=1)
        return found

    @property
    def chosen_error(self) -> FloatArray:
        """float64 [series], of the method chosen; at most that of last-value by choice."""
        found: FloatArray = np.take_along_axis(self.error, self.method[:, None].astype(np.int64), axis=1)[:, 0]
        return found


def forecast(values: FloatArray, day: int) -> Forecasts:
    """The coming day of every series.

    Parameters
    ----------
    values
        float64 [series, steps], oldest first, all series over the same steps; NaN: not measured; not negative. Only the last
        nine weeks are looked at.
    day
        Steps of a day (24: hours).

    Notes
    -----
    Methods: the last value; the mean of the last week; the same step yesterday or a week ago (the newest of three that was
    measured); a profile of medians times a Theil-Sen line through the daily levels that the profile leaves. The one with the least
    mean absolute error over the days `HELD_OUT` is chosen, the simplest of equals, and last-value unless another is a tenth
    better. O(series x steps), with days squared for the trend (at most `MOST_WEEKS`).
    """
    values = values[:, -(MOST_WEEKS + 1) * 7 * day :]
    parts = [_forecast(values[first : first + AT_ONCE], day) for first in range(0, len(values), AT_ONCE)]
    if not parts:
        parts = [_forecast(values, day)]
    return Forecasts(*(np.concatenate([getattr(p, name) for p in parts]) for name in Forecasts.__dataclass_fields__))


def dense(series: IntArray, step: IntArray, values: FloatArray, count: int, first: int, last: int) -> FloatArray:
    """float64 [count, last - first]: rows of (series 0..count-1, step, value) as the array that `forecast` takes.

    Steps outside are left out, of doubled ones the last counts, those not there are NaN.
    """
    found = np.full((count, last - first), np.nan)
    inside = (step >= first) & (step < last)
    found[series[inside], step[inside] - first] = values[inside]
    return found


def _forecast(values: FloatArray, day: int) -> Forecasts:
    series, steps = values.shape
    path = np.full((series, day), np.nan)
    method, pattern = np.zeros(series, dtype=np.int8), np.zeros(series, dtype=np.int8)
    error = np.full((series, len(METHODS)), np.nan)
    growth, strength, burst = np.zeros(series), np.zeros(series), np.ones(series)
    known = np.isfinite(values).mean(axis=1) >= LEAST_SEEN if steps else np.zeros(series, dtype=np.bool_)
    if steps < LEAST_DAYS * day or not known.any():
        return Forecasts(path, method, pattern, error, growth, strength, burst)
    x = values[known]
    tried = np.stack([_errors(x, day, back) for back in HELD_OUT if steps - back * day >= (LEAST_DAYS - 1) * day])
    measured = np.isfinite(tried)
    usable = measured.sum(axis=0) == measured.any(axis=2).sum(axis=0)[:, None]  # a method is compared over all the days
    mean_error = np.where(usable, np.where(measured, tried, 0.0).sum(axis=0) / np.maximum(measured.sum(axis=0), 1), np.nan)
    mean_error[~measured.any(axis=(0, 2))] = np.nan
    compared = mean_error / np.where(np.arange(len(METHODS)) == 0, 1.0, BETTER)
    best = np.where(np.isfinite(compared), compared, np.inf).argmin(axis=1)
    paths = np.stack([found for _, found in _paths(x, day)])
    error[known], method[known] = mean_error, best
    path[known] = np.maximum(paths[best, np.arange(len(x))], 0.0)
    growth[known], strength[known], burst[known], pattern[known] = _character(x, day)
    return Forecasts(path, method, pattern, error, growth, strength, burst)


def _errors(x: FloatArray, day: int, back: int) -> FloatArray:
    """float64 [series, methods]: mean absolute error over one day, forecast from what was before it."""
    end = x.shape[1] - back * day
    truth = x[:, end : end + day]
    seen = np.isfinite(truth)
    count = seen.sum(axis=1)
    found = np.full((len(x), len(METHODS)), np.nan)
    for i, path in _paths(x[:, :end], day):
        away = np.where(seen, np.abs(path - truth), 0.0).sum(axis=1)
        found[:, i] = np.where(count > 0, away / np.maximum(count, 1), np.nan)
    return found


def _paths(x: FloatArray, day: int) -> Iterator[tuple[int, FloatArray]]:
    """Row of each method with its forecast [series, day] for the day after `x`; NaN where it cannot say."""
    week = 7 * day
    yield 0, np.repeat(_newest(x[:, -week:])[:, None], day, axis=1)
    mean = _mean(x[:, -week:])
    yield 1, np.repeat(mean[:, None], day, axis=1)
    yield 2, _same_step(x, day, day, mean)
    yield 3, _same_step(x, week, day, mean)
    yield 4, _trend(x, day)


def _same_step(x: FloatArray, cycle: int, day: int, mean: FloatArray) -> FloatArray:
    """The value one cycle ago, or the newest measured of three; the mean where none was."""
    if x.shape[1] < cycle:
        return np.full((len(x), day), np.nan)
    found = np.full((len(x), day), np.nan)
    for ago in range(1, 4):
        begin = x.shape[1] - ago * cycle
        if begin >= 0:
            found = np.where(np.isnan(found), x[:, begin : begin + day], found)
    return np.where(np.isnan(found), mean[:, None], found)


def _trend(x: FloatArray, day: int) -> FloatArray:
    profile, levels = _season(x, day)
    slope, at_last = _theil_sen(levels)
    return np.maximum(at_last + slope, 0.0)[:, None] * profile[:, :day]


def _season(x: FloatArray, day: int) -> tuple[FloatArray, FloatArray]:
    """Profile [series, cycle], which starts with the step after `x` and has mean 1; and levels [series, days] without it.

    The cycle is a week where there are two whole ones, else a day.
    """
    cycle = 7 * day if x.shape[1] >= 14 * day else day
    count = min(x.shape[1] // cycle, MOST_WEEKS * 7 * day // cycle)
    cycles = x[:, x.shape[1] - count * cycle :].reshape(len(x), count, cycle)
    level = _mean(cycles)
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = median(np.swapaxes(cycles / level[:, :, None], 1, 2))
        shape = np.where(np.isfinite(shape), shape, 1.0)
        average = shape.mean(axis=1, keepdims=True)
        profile = np.where(average > 0, shape / average, 1.0)
        plain = cycles / np.maximum(profile, 1e-3)[:, None, :]
    levels = median(plain.reshape(len(x), count * cycle // day, day))
    return profile, levels


def _theil_sen(levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope a day, and the line's height on the last day, of levels [series, days]."""
    days = levels.shape[1]
    one, other = np.triu_indices(days, 1)
    slope = median((levels[:, other] - levels[:, one]) / (other - one))
    slope = np.where(np.isfinite(slope), slope, 0.0)
    ago = np.arange(days - 1, -1, -1)
    return slope, median(levels + slope[:, None] * ago)


def _character(x: FloatArray, day: int) -> tuple[FloatArray, FloatArray, FloatArray, npt.NDArray[np.int8]]:
    """Growth, strength of the season, burst and pattern of each series."""
    profile, levels = _season(x, day)
    days = levels.shape[1]
    cycle = profile.shape[1]
    slope, at_last = _theil_sen(levels)
    mean = median(levels)
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.where(mean > 0, 7 * slope / mean, 0.0)
    one, other = np.triu_indices(days, 1)
    sign = np.sign(levels[:, other] - levels[:, one])
    statistic = np.where(np.isfinite(sign), sign, 0.0).sum(axis=1)
    score = statistic / np.sqrt(days * (days - 1) * (2 * days + 5) / 18)
    seen = x[:, x.shape[1] - days * day :]
    ago = np.arange(seen.shape[1] - 1, -1, -1) / day
    line = np.maximum(at_last[:, None] - slope[:, None] * ago, 0.05 * np.maximum(mean, 1e-300)[:, None])
    expected = line * np.tile(profile, (1, seen.shape[1] // cycle))
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.where(expected > 0, seen / expected, np.nan)
    burst = _quantile(over, 0.99)
    spare = (seen.shape[1] - 1) / max(seen.shape[1] - cycle, 1)
    left = _variance(np.clip(seen - expected, -line, line)) * spare
    whole = _variance(np.clip(seen - line, -line, line))
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.clip(np.where(whole > 0, 1.0 - left / whole, 0.0), 0.0, 1.0)
    enough = days >= GROWING_DAYS
    is_growing = enough & (growth >= GROWING) & (score >= SURE)
    pattern = np.select([burst >= BURSTY, is_growing, strength >= CYCLIC], [3, 2, 1], 0).astype(np.int8)
    return np.where(enough, growth, 0.0), strength, np.where(np.isfinite(burst), burst, 1.0), pattern


# -- over the last axis, NaN left out ------------------------------------------------------------------------------------------


def median(values: FloatArray) -> FloatArray:
    """Medians over the last axis without NaN, several times as fast as numpy's; NaN where there is nothing."""
    return _quantile(values, 0.5)


def _quantile(values: FloatArray, share: float) -> FloatArray:
    order = np.sort(values, axis=-1)  # NaN goes last
    count = np.isfinite(order).sum(axis=-1)
    place = share * np.maximum(count - 1, 0)
    low = place.astype(np.int64)
    high = np.minimum(low + 1, np.maximum(count - 1, 0))
    below = np.take_along_axis(order, low[..., None], axis=-1)[..., 0]
    above = np.take_along_axis(order, high[..., None], axis=-1)[..., 0]
    found: FloatArray = np.where(count > 0, below + (above - below) * (place - low), np.nan)
    return found


def _mean(values: FloatArray) -> FloatArray:
    seen = np.isfinite(values)
    count = seen.sum(axis=-1)
    return np.where(count > 0, np.where(seen, values, 0.0).sum(axis=-1) / np.maximum(count, 1), np.nan)


def _variance(values: FloatArray) -> FloatArray:
    seen = np.isfinite(values)
    count = np.maximum(seen.sum(axis=-1), 1)
    found: FloatArray = np.where(seen, (values - _mean(values)[..., None]) ** 2, 0.0).sum(axis=-1) / count
    return found


def _newest(values: FloatArray) -> FloatArray:
    """The last that was measured [series]."""
    seen = np.isfinite(values)
    place = values.shape[1] - 1 - seen[:, ::-1].argmax(axis=1)
    found: FloatArray = values[np.arange(len(values)), place]
    return found
