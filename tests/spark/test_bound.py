"""A band holds noise as often as was asked, also where that is rarer than anything seen; seasons and trends are what they are."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from spark.methods.bins import Histogram, bin_of
from spark.methods.bound import LEAST_BOUND, SHAPES, TAIL_SHARE, WEEK, band, chance_of, rounded_up, tail_of
from spark.methods.least_level import fitted, least_level
from spark.methods.season import growth, season
from spark.methods.spread import var

R = np.random.default_rng(3)


def seen(values: np.ndarray) -> Histogram:
    return Histogram.of(bin_of(np.abs(values)), np.ones(len(values), dtype=np.int64))


def test_one_alarm_a_week_is_shared_by_all_brokers_and_windows() -> None:
    assert chance_of(1, 200, 300) == pytest.approx(1 / (200 * 2016))
    assert chance_of(1e9, 3, 300) == 1.0
    assert chance_of(1, 1, WEEK) == 1.0


def test_what_was_seen_often_enough_is_not_extrapolated() -> None:
    values = R.standard_normal(100_000) * 0.05
    found = band(seen(values), 0.01)
    assert found is not None
    assert found.tail is None
    assert found.bound == pytest.approx(np.quantile(np.abs(values), 0.99), rel=0.05)
    assert found.chance() <= 0.01
    assert found.chance(0.0) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("distribution", "most"),
    [(stats.norm(scale=0.05), 1.15), (stats.laplace(scale=0.03), 1.25), (stats.t(df=5, scale=0.03), 1.7)],
)
def test_a_band_beyond_what_was_seen_holds_whatever_the_tail(distribution: stats.rv_frozen, most: float) -> None:
    chance = 2.5e-6  # one a week of 200 brokers, from a tenth of a week
    true = distribution.ppf(1 - chance / 2)
    found = [band(seen(distribution.rvs(40_000, random_state=seed)), chance) for seed in range(8)]
    bounds = np.array([one.bound for one in found if one is not None])
    assert len(bounds) == 8
    assert 0.9 * true < np.median(bounds) < most * true


def test_the_tail_is_that_of_the_distribution_it_came_from() -> None:
    for shape in (0.0, 0.25):
        values = 1 + stats.genpareto(shape, scale=0.5).rvs(400_000, random_state=5)
        tail = tail_of(seen(values))
        assert tail.share == pytest.approx(TAIL_SHARE, rel=0.02)
        assert tail.shape == pytest.approx(shape, abs=0.07)
        assert tail.quantile(1e-4) == pytest.approx(1 + stats.genpareto(shape, scale=0.5).ppf(1 - 1e-4), rel=0.08)
        assert tail.beyond(tail.quantile(1e-4)) == pytest.approx(1e-4)


def test_windows_of_few_samples_with_long_tails_are_foretold_as_they_come() -> None:
    """They look normal for longer than they are: at a seventh of an alarm a week, half as many were foretold as happened."""
    checks, rate = 6 * 2016, 0.14  # six brokers, a week of five minutes
    r = np.random.default_rng(8)
    wide = float(np.quantile(np.abs(r.standard_t(4, (2_000_000, 5)).mean(axis=1)), 1 - rate / checks))
    told = [tail_of(seen(r.standard_t(4, (8 * checks, 5)).mean(axis=1))).beyond(wide) * checks for _ in range(12)]
    assert 0.6 * rate < np.mean(told) < 1.5 * rate


def test_a_tail_without_end_does_not_run_away() -> None:
    assert tail_of(seen(1e-3 * stats.pareto(0.8).rvs(20_000, random_state=1))).shape == SHAPES[1]


def test_noise_that_is_all_the_same_still_gives_a_band() -> None:
    found = band(seen(np.full(5_000, 0.04)), 1e-6)
    assert found is not None
    assert 0.039 < found.bound < 0.045


def test_too_few_windows_give_no_band_rather_than_a_guess() -> None:
    assert band(seen(R.standard_normal(1_999)), 1e-3) is None


def test_a_disk_without_noise_does_not_ask_for_moves_without_end() -> None:
    found = band(seen(R.standard_normal(5_000) * 1e-5), 1e-5)
    assert found is not None
    assert found.exact < 1e-4
    assert found.bound == LEAST_BOUND


def test_a_wider_band_is_left_more_seldom_than_the_one_asked_for() -> None:
    found = band(seen(R.standard_normal(40_000) * 0.05), 2.5e-6)
    assert found is not None
    chances = [found.chance(width) for width in (0.05, 0.1, 0.15, found.bound, 0.4)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] == pytest.approx(2 * stats.norm.sf(1), rel=0.05)
    assert 0.1 * 2.5e-6 < found.chance() <= 2.5e-6


def test_more_false_alarms_allowed_make_a_narrower_band() -> None:
    noise = seen(R.standard_normal(50_000))
    bounds = [found.bound for chance in (1e-7, 1e-5, 1e-3, 1e-1) if (found := band(noise, chance)) is not None]
    assert bounds == sorted(bounds, reverse=True)
    assert len(set(bounds)) == 4


def test_rounding_never_narrows_a_band() -> None:
    assert [rounded_up(v) for v in (0.1, 0.1001, 0.0999, 12.1, 0.0)] == [0.1, 0.11, 0.1, 13.0, 0.0]


def test_var_is_where_nearly_all_brokers_are_and_leaves_the_score_a_slope() -> None:
    assert var(seen(R.standard_normal(100_000) * 0.2), 0.1) == pytest.approx(0.2 * 2.576, rel=0.05)
    assert var(seen(R.standard_normal(100_000) * 0.01), 0.1) == 0.2


def test_load_that_is_mostly_fixed_noise_is_below_the_least_level() -> None:
    level = np.array([1e5, 2e5, 4e5, 8e5])
    sigma = np.sqrt(0.03**2 + (5e3 / level) ** 2)
    noise = fitted(level, sigma, np.full(4, 1e4))
    assert noise is not None
    assert noise.share == pytest.approx(0.03, rel=1e-3)
    assert noise.fixed == pytest.approx(5e3, rel=1e-3)
    least = least_level(noise, bound=0.15, mean=5e5)
    assert np.hypot(0.03, 5e3 / least) == pytest.approx(0.075)


def test_noise_that_shrinks_with_load_leaves_a_hundredth_of_the_mean() -> None:
    noise = fitted(np.array([1e5, 2e5]), np.array([0.03, 0.03]), np.array([1e4, 1e4]))
    assert noise is not None
    assert least_level(noise, 0.15, 1e5) == pytest.approx(1e3)
    one = fitted(np.array([1e5]), np.array([0.03]), np.array([1e4]))
    assert one is not None
    assert (one.fixed, one.levels) == (0.0, 1)
    assert fitted(np.array([1e5]), np.array([0.03]), np.array([10.0])) is None


HOURS = 493_000 + np.arange(6 * 168)


def weeks(trend: float = 0.0, noise: float = 0.0) -> np.ndarray:
    clock = (HOURS - 96) % 168
    shape = 1 + 0.4 * np.cos(2 * np.pi * (clock % 24 - 14) / 24) - 0.3 * (clock >= 120)
    wander = 1 + noise * np.random.default_rng(2).standard_normal(len(HOURS))
    return np.asarray(5e6 * shape * (1 + trend * (HOURS - HOURS.mean()) / 168) * wander)


def test_the_busiest_hour_of_the_week_is_found_in_the_week_that_starts_on_monday() -> None:
    found = season(HOURS, weeks(noise=0.02))
    assert found is not None
    assert found.cycle == 168
    assert int(found.profile[:120].argmax()) % 24 == 14
    assert found.profile.mean() == pytest.approx(1)
    assert found.profile[5 * 24 + 14] / found.profile[14] == pytest.approx(1.1 / 1.4, rel=0.03)
    assert found.strength > 0.98


def test_pure_noise_has_no_season_however_short_the_history() -> None:
    found = season(HOURS[:336], 1 + 0.1 * R.standard_normal(336))
    assert found is not None
    assert found.strength < 0.15


def test_short_histories_say_less() -> None:
    level = weeks()
    assert season(HOURS[:60], level[:60]) is None
    found = season(HOURS[:100], level[:100])
    assert found is not None
    assert found.cycle == 24
    assert len(found.profile) == 168
    assert growth(HOURS[:300], level[:300]) is None
    assert season(HOURS[:0], level[:0]) is None
    assert season(HOURS, np.zeros(len(HOURS))) is None


@pytest.mark.parametrize("trend", [-0.03, 0.0, 0.05])
def test_growth_is_found_under_seasons_outliers_and_gaps(trend: float) -> None:
    level = weeks(trend, noise=0.05)
    level[100:110] *= 20
    kept = np.random.default_rng(0).random(len(HOURS)) > 0.05
    assert growth(HOURS[kept], level[kept]) == pytest.approx(trend, abs=0.002)


def test_samples_of_a_wrong_clock_years_back_make_no_long_history_of_six_days() -> None:
    """They made a week's profile of six days, a trend over 14 years, and a gigabyte of slopes between them."""
    hours = np.concatenate([np.arange(20), np.arange(6 * 24) + 14 * 365 * 24])
    level = 100.0 + 50.0 * np.cos(2 * np.pi * hours / 24)
    assert growth(hours, level) is None
    found = season(hours, level)
    assert found is not None
    assert (found.cycle, round(found.strength, 2)) == (24, 1.0)
    long = np.concatenate([hours, np.arange(60 * 168) + 15 * 365 * 24])
    tracemalloc.start()
    assert growth(long, np.full(len(long), 5.0)) == 0.0
    assert tracemalloc.get_traced_memory()[1] < 500e6
    tracemalloc.stop()
