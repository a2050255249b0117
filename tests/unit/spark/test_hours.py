"""What comes every week is no noise, and a bound is as wide as levelling needs, not as noise would like."""

from __future__ import annotations

import numpy as np
import pytest

from goals.calibration import ResourceCalibration
from spark.jobs.hours import Hours, found_in
from spark.jobs.resources import Counted, Detection, chosen, described
from spark.methods.benefit import CAP, benefit
from spark.methods.bins import Histogram, bin_of
from spark.methods.noise import TO_SIGMA, day
from spark.methods.profile import Profile, profile

MONDAY_HOUR = 4 * 24 + 168 * 2_900


def shares(weeks: int, swing: float, noise: float, brokers: int = 6, seed: int = 0) -> np.ndarray:
    """Hourly shares of brokers; every second one is a day broker, the others work at night."""
    r = np.random.default_rng(seed)
    hours = np.arange(weeks * 168)
    wave = swing * np.sin(2 * np.pi * hours / 24)
    side = np.where(np.arange(brokers) % 2, 1.0, -1.0)
    return np.asarray((1 + side[:, None] * wave) * (1 + noise * r.standard_normal((brokers, len(hours)))))


def hours_from(share: np.ndarray) -> Hours:
    brokers, hours = share.shape
    at = np.tile(np.arange(hours) + MONDAY_HOUR, brokers)
    return found_in(np.repeat(np.arange(brokers), hours), at, 1e6 * share.ravel(), {})


def profile_of(share: np.ndarray) -> Profile | None:
    return profile(np.arange(len(share)), np.arange(share.shape[1]) + MONDAY_HOUR, share)


def test_a_share_that_swings_every_day_is_found_and_is_no_noise() -> None:
    found = profile_of(shares(4, 0.3, 0.02))
    assert found is not None
    assert found.taken.all()
    hours = np.arange(24) + MONDAY_HOUR
    usual = found.expected(np.arange(6), hours)
    assert usual[1] == pytest.approx(1 + 0.3 * np.sin(2 * np.pi * np.arange(24) / 24), abs=0.03)
    load = shares(5, 0.3, 0.02, seed=7)[:, -24:]
    with_it, without = day(load, None, usual), day(load)
    assert np.nanmedian(np.abs(without.fast)) > 0.15
    assert np.nanmedian(np.abs(with_it.fast)) * TO_SIGMA == pytest.approx(0.02, rel=0.35)
    assert np.nanmax(np.abs(with_it.deviation)) > 0.25  # what plans see stays


def test_noise_alone_makes_no_profile() -> None:
    """Else each history would look quieter than it is, and bands would be too narrow."""
    for weeks in (1, 2, 3, 8):
        assert profile_of(shares(weeks, 0.0, 0.1)) is None


def test_a_profile_is_paid_for_by_what_it_took_of_the_noise() -> None:
    found = profile_of(shares(3, 0.3, 0.05))
    assert found is not None
    assert found.lost(np.array([0, 99]), 1.0) == pytest.approx([np.sqrt(2 / 3), 1.0])
    assert found.lost(np.array([0]), 12.0) == pytest.approx([np.sqrt(1 - 1 / 36)])
    assert found.expected(np.array([99]), np.array([MONDAY_HOUR])).tolist() == [[1.0]]  # a broker that came later


def test_lasting_imbalance_is_removed_by_any_bound_and_chance_by_none() -> None:
    r = np.random.default_rng(1)
    lasting = np.array([1.4, 0.6, 1.0, 1.0])[:, None] * (1 + 0.02 * r.standard_normal((4, 21 * 24)))
    found = benefit(lasting)
    assert found is not None
    assert found.out == pytest.approx(2 * 168, rel=0.01)
    best = found.good(24)
    assert best is not None
    assert (best[0].bound, best[1].bound) == (0.05, 0.5)
    assert found.removed(best[1]) == pytest.approx(1.0, abs=0.01)
    jumping = np.exp(0.8 * r.standard_normal((4, 21 * 24)))
    noisy = benefit(jumping / jumping.mean(axis=0))
    assert noisy is not None
    assert noisy.good(1) is None
    assert noisy.least[1] == 0.0  # who knew the next hour could


def test_what_wanders_slowly_needs_a_narrow_bound_and_costs_moves() -> None:
    r = np.random.default_rng(2)
    walk = np.exp(np.cumsum(0.02 * r.standard_normal((8, 28 * 24)), axis=1))
    found = benefit(walk / walk.mean(axis=0))
    assert found is not None
    rows = found.at(6)
    assert [row.bound for row in rows] == sorted(row.bound for row in rows)
    assert rows[0].acts > 3 * rows[-1].acts
    assert rows[0].out < 0.5 * rows[-1].out
    best = found.good(6)
    assert best is not None
    assert 0.05 < best[1].bound <= 0.28
    assert 0.5 < found.removed(best[1]) < 1.0


def test_gaps_keep_what_was_and_short_histories_have_no_table() -> None:
    steady = np.full((3, 10 * 24), 1.0)
    steady[0, 30:60] = np.nan
    found = benefit(steady)
    assert found is not None
    assert (found.out, {row.acts for row in found.rows}) == (0.0, {0.0})
    assert benefit(steady[:, :70]) is None
    assert benefit(steady[:1]) is None


def test_the_bound_is_no_wider_than_it_is_of_use() -> None:
    """Eight times the mean was written once: no plan moved anything any more."""
    r = np.random.default_rng(3)
    walk = np.exp(np.cumsum(0.02 * r.standard_normal((8, 28 * 24)), axis=1))
    table = benefit(walk / walk.mean(axis=0))
    why: list[str] = []
    assert 0.1 <= chosen(8.0, table, 1800.0, why) <= 0.28
    assert "chosen by its benefit, since noise alone requires 8" in why[0]
    steady = benefit(np.array([1.4, 0.6, 1.0, 1.0])[:, None] * (1 + 0.02 * r.standard_normal((4, 21 * 24))))
    assert chosen(0.03, steady, 1800.0, why) == 0.03
    assert "removes 100% with any bound up to 0.5" in why[-1]
    assert chosen(8.0, None, 1800.0, why) == CAP
    jumping = np.exp(0.8 * r.standard_normal((4, 21 * 24)))
    assert chosen(8.0, benefit(jumping / jumping.mean(axis=0)), 1800.0, why) == CAP
    assert "cannot be levelled on mean loads of 1 h" in why[-1]
    assert "noise alone requires 8" in why[-1]


def resource_of(share: np.ndarray) -> ResourceCalibration:
    hours = hours_from(share)
    off = np.abs(share / np.median(share, axis=1, keepdims=True) - 1)
    seen = Histogram.of(bin_of(off.ravel()), np.ones(off.size, dtype=np.int64))
    counted = Counted(
        mean=1e6, brokers=len(share), windows=off.size, whole=len(share), noise={1: seen}, alarm=seen, spread=seen, benefit=hours.benefit,
    )  # fmt: skip
    return described("network_in", counted, Detection(3600.0, 1, 1.0), 1)


def test_var_fits_to_the_bound_that_is_written() -> None:
    """It was up to 20 times the mean, which no backtest had tried."""
    r = np.random.default_rng(4)
    found = resource_of(np.exp(0.8 * r.standard_normal((6, 21 * 24))))
    assert found.bound == CAP
    assert found.var is not None
    assert 2 * CAP <= found.var <= 6 * CAP
    assert {row.horizon for row in found.levelling} == {3600.0, 21_600.0, 86_400.0}
