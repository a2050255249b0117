"""How load goes round the week and where it is heading, of one series of hourly means.

`season` and `growth` are numpy kernels, called by `spark.jobs.hours`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from spark.methods.bins import FloatArray, IntArray

HOUR, WEEK_HOURS, DAY_HOURS = 3_600, 168, 24
MONDAY = 4 * DAY_HOURS  # hours from the Unix epoch, a Thursday, to the first Monday
FEWEST_DAYS, FEWEST_WEEKS = 3, 2
MOST_APART = 104  # weeks between two hours that a trend is read off: work and memory grow with it


@dataclass(frozen=True)
class Season:
    """Load of each hour of the week over the mean (float64 [168], 0 is Monday 00:00 UTC), the share of the variance that it
    explains, and hours in the cycle that was seen: 168, or 24 where history is too short for more."""

    profile: FloatArray
    strength: float
    cycle: int


def season(hours: IntArray, level: FloatArray) -> Season | None:
    """The hour-of-week profile; of the hour of the day where there are less than two weeks, None with less than three days.

    Parameters
    ----------
    hours, level
        int64 and float64 [N], hours since the Unix epoch, each once, and mean load in them, finite and not negative.

    Notes
    -----
    Medians over the weeks, after the trend was taken out, so that one bad day is not part of every week. `strength` is
    adjusted for the number of slots: pure noise has about 0, however short the history.
    """
    if not len(hours) or level.mean() <= 0:
        return None
    cycle = WEEK_HOURS if _cover(hours, FEWEST_WEEKS * WEEK_HOURS) else DAY_HOURS
    if not _cover(hours, FEWEST_DAYS * DAY_HOURS):
        return None
    trend = growth(hours, level) or 0.0
    middle = (hours.max() + hours.min()) / 2
    flat = level / np.maximum(1 + trend * (hours - middle) / WEEK_HOURS, 0.05)
    slot = (hours - MONDAY) % cycle
    profile = np.array([np.median(flat[slot == s]) if (slot == s).any() else np.nan for s in range(cycle)])
    profile = np.where(np.isfinite(profile), profile, np.nanmedian(profile))
    slots = len(np.unique(slot))
    rest, whole = ((flat - profile[slot]) ** 2).sum(), ((flat - flat.mean()) ** 2).sum()
    if len(hours) <= slots or whole <= 0:
        return None
    strength = 1 - (rest / (len(hours) - slots)) / (whole / (len(hours) - 1))
    week = np.tile(profile, WEEK_HOURS // cycle)
    return Season(week / week.mean(), float(np.clip(strength, 0, 1)), cycle)


def growth(hours: IntArray, level: FloatArray) -> float | None:
    """Trend as a share of the mean a week; None with less than two weeks.

    The median slope between hours that are whole weeks apart, each over what is usual at its hour of the week, so neither
    seasons nor outliers weigh in.

    *Source*: the seasonal Kendall slope estimator, Hirsch, Slack and Smith, 1982.
    """
    if not _cover(hours, FEWEST_WEEKS * WEEK_HOURS) or level.mean() <= 0:
        return None
    begin = int(hours.min())
    weeks = -(-(int(hours.max()) - begin + 1) // WEEK_HOURS)
    hourly = np.full(weeks * WEEK_HOURS, np.nan)
    hourly[hours - begin] = level
    series = hourly.reshape(weeks, WEEK_HOURS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an hour of the week that was never seen
        usual = np.nanmedian(series, axis=0)
        share = series / np.where(usual > 0, usual, np.nan)
        slopes = [(share[lag:] - share[:-lag]).ravel() / lag for lag in range(1, min(weeks, MOST_APART + 1))]
        slope = float(np.nanmedian(np.concatenate(slopes)))
    return slope if np.isfinite(slope) else None


def _cover(hours: IntArray, least: int) -> bool:
    """Whether hours are so far apart, and half as many: a wrong clock, years back, makes no long history."""
    return len(hours) > 0 and int(hours.max() - hours.min()) + 1 >= least <= 2 * len(hours)

