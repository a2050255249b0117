"""A planner that plans for tomorrow is hurt by a forecast that is worse than today's value, and by growth that is not there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import theilslopes

from spark.methods.forecast import METHODS, PATTERNS, Forecasts, dense, forecast, median
from spark.methods.forecast import _theil_sen as theil_sen

Array = npt.NDArray[Any]
DAY = 24


def season(hours: Array, weekend: float = 0.7) -> Array:
    """Day and weekend of a typical cluster; hour 0 is a Monday's first."""
    daily = 1 + 0.4 * np.cos(2 * np.pi * (hours % 24 - 14) / 24)
    found: Array = daily * np.where((hours // 24) % 7 >= 5, weekend, 1.0)
    return found


def series(r: np.random.Generator, pattern: str, count: int, days: int, growth: float = 0.1) -> Array:
    """Hourly loads of one pattern, 10 % noise, 5 % not measured."""
    hours = np.arange(days * 24)
    level = np.ones((count, len(hours))) * r.lognormal(12, 1.5, (count, 1))
    if pattern != "steady":
        level *= season(hours)
    if pattern == "growing":
        level *= 1 + growth * (hours - hours.mean()) / 168
    if pattern == "bursty":
        level *= np.where(r.random(level.shape) < 0.04, 6.0, 1.0)
    level *= np.exp(0.1 * r.standard_normal(level.shape))
    level[r.random(level.shape) < 0.05] = np.nan
    return level


def error(path: Array, truth: Array) -> float:
    """Mean absolute error over mean load, median over series."""
    return float(np.median(np.nanmean(np.abs(path - truth), axis=1) / np.nanmean(truth, axis=1)))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_told_apart(pattern: str) -> None:
    found = forecast(series(np.random.default_rng(1), pattern, 200, 29), DAY)
    assert np.mean(found.pattern == PATTERNS.index(pattern)) > 0.95


def test_growth_is_recovered_and_not_invented() -> None:
    r = np.random.default_rng(2)
    growing = forecast(series(r, "growing", 200, 42, growth=0.08), DAY).growth
    assert np.median(growing) == pytest.approx(0.08, rel=0.1)
    still = forecast(series(r, "cyclic", 200, 42), DAY).growth
    assert np.abs(still).max() < 0.03


def test_days_of_uneven_load_are_not_called_growth() -> None:
    """Levels that differ by a third from day to day show a slope by chance, often beyond 3 % a week."""
    r = np.random.default_rng(8)
    uneven = 1e6 * np.repeat(r.lognormal(0.0, 0.33, (300, 21)), 24, axis=1)
    found = forecast(uneven, DAY)
    assert np.mean(found.growth > 0.03) > 0.2
    assert np.mean(found.pattern == PATTERNS.index("growing")) < 0.01


@pytest.mark.parametrize(("pattern", "gain"), [("cyclic", 0.4), ("growing", 0.5), ("bursty", 0.7), ("steady", 0.85)])
def test_an_unseen_day_is_forecast_better_than_by_the_last_value(pattern: str, gain: float) -> None:
    """Every weekday is once the day held out; error of the forecast over that of last-value, at most `gain`."""
    ours, last = [], []
    for more in range(7):
        whole = series(np.random.default_rng(more), pattern, 60, 29 + more)
        past, truth = whole[:, :-DAY], whole[:, -DAY:]
        ours.append(error(forecast(past, DAY).path, truth))
        newest = np.array([row[np.isfinite(row)][-1] for row in past])
        last.append(error(newest[:, None], truth))
    assert np.mean(ours) < gain * np.mean(last)


def test_on_the_days_compared_no_choice_is_worse_than_last_value() -> None:
    r = np.random.default_rng(3)
    walks = np.abs(np.cumsum(r.standard_normal((100, 20 * DAY)), axis=1)) + 1.0
    found = forecast(np.concatenate([walks, *(series(r, p, 50, 20) for p in PATTERNS)]), DAY)
    assert np.all(found.chosen_error <= found.error[:, 0])
    assert np.mean(found.method[:100] == METHODS.index("last")) > 0.3  # nothing beats it on a random walk for long


def test_a_weekend_is_forecast_from_weekends() -> None:
    hours = np.arange(26 * 24)  # the coming day is a Saturday
    past = np.tile(1e6 * season(hours, weekend=0.2), (3, 1))
    found = forecast(past, DAY)
    np.testing.assert_allclose(found.path, np.tile(1e6 * season(np.arange(26 * 24, 27 * 24), weekend=0.2), (3, 1)), rtol=0.01)
    np.testing.assert_allclose(found.peak, 1e6 * 0.2 * 1.4, rtol=0.01)
    np.testing.assert_allclose(found.next, found.path[:, 0])


def test_too_little_history_gives_nothing_rather_than_a_guess() -> None:
    short = forecast(np.ones((2, 2 * DAY)), DAY)
    assert np.isnan(short.path).all()
    sparse = np.full((2, 30 * DAY), np.nan)
    sparse[0, ::10] = 5.0
    sparse[1] = 5.0
    found = forecast(sparse, DAY)
    assert np.isnan(found.path[0]).all()
    np.testing.assert_allclose(found.path[1], 5.0)
    assert PATTERNS[found.pattern[1]] == "steady"
    assert forecast(np.empty((0, 30 * DAY)), DAY).path.shape == (0, DAY)


def test_a_partition_without_load_stays_without() -> None:
    found = forecast(np.zeros((1, 20 * DAY)), DAY)
    np.testing.assert_array_equal(found.path, 0.0)
    assert (found.growth[0], PATTERNS[found.pattern[0]]) == (0.0, "steady")


def test_four_days_are_enough_for_a_daily_season_but_not_for_growth() -> None:
    past = 1e6 * season(np.arange(4 * 24), weekend=1.0)[None, :] * np.linspace(1, 1.3, 96)
    found = forecast(past, DAY)
    assert METHODS[found.method[0]] in ("day", "trend")
    assert np.isnan(found.error[0, METHODS.index("week")])
    assert found.growth[0] == 0.0
    assert PATTERNS[found.pattern[0]] == "cyclic"


def test_one_misread_day_does_not_move_the_forecast() -> None:
    past = series(np.random.default_rng(4), "cyclic", 20, 28)
    spiked = past.copy()
    spiked[:, 20 * DAY : 21 * DAY] *= 500
    before, after = forecast(past, DAY), forecast(spiked, DAY)
    np.testing.assert_allclose(after.peak, before.peak, rtol=0.1)


def test_the_slope_is_scipys() -> None:
    r = np.random.default_rng(5)
    levels = np.cumsum(r.standard_normal((5, 30)), axis=1)
    slope, _ = theil_sen(levels)
    np.testing.assert_allclose(slope, [theilslopes(row)[0] for row in levels])


def test_medians_are_numpys() -> None:
    r = np.random.default_rng(6)
    values = r.standard_normal((50, 13))
    values[r.random(values.shape) < 0.4] = np.nan
    values[7] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, of the empty row
        np.testing.assert_allclose(median(values), np.nanmedian(values, axis=1))


def test_rows_become_the_array_whatever_their_order() -> None:
    found = dense(np.array([1, 0, 1, 0]), np.array([12, 10, 10, 13]), np.array([4.0, 1.0, 3.0, 9.0]), 3, 10, 13)
    np.testing.assert_array_equal(found, [[1, np.nan, np.nan], [3, np.nan, 4], [np.nan] * 3])


def test_series_do_not_depend_on_which_others_are_there() -> None:
    values = np.concatenate([series(np.random.default_rng(7), p, 10, 21) for p in PATTERNS])
    whole, part = forecast(values, DAY), forecast(values[13:17], DAY)
    for name in Forecasts.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(whole, name)[13:17], getattr(part, name))
