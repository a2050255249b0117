"""Noise is told from imbalance: a band made from it neither chases what passes nor swallows what stays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spark.methods.bins import Histogram, bin_of, middle
from spark.methods.bound import band
from spark.methods.noise import ALARM, DAYS, LEAST_WINDOWS, NOISE, SETTLED, SPREAD, TO_SIGMA, counted, day, in_a_row, unsigned

WINDOWS = 288


def brokers(sigma: float, share: list[float], seed: int = 0) -> np.ndarray:
    """Loads around 1 MB/s times each broker's share, over a day with a peak."""
    r = np.random.default_rng(seed)
    season = 1e6 * (1 + 0.4 * np.sin(np.arange(WINDOWS) / WINDOWS * 2 * np.pi))
    return np.asarray(season * np.array(share)[:, None] * (1 + sigma * r.standard_normal((len(share), WINDOWS))))


def mad(values: np.ndarray) -> float:
    return float(np.nanmedian(np.abs(values))) * TO_SIGMA


def test_what_lasts_all_day_is_imbalance_and_what_does_not_is_noise() -> None:
    found = day(brokers(0.05, [1.0] * 18 + [1.4, 0.6]))
    assert found.slow[18] == pytest.approx(1.4, rel=0.02)
    assert found.slow[19] == pytest.approx(0.6, rel=0.02)
    assert mad(found.fast[:18]) == pytest.approx(0.05 * np.sqrt(1 - 1 / 20), rel=0.04)
    assert mad(found.fast[18:]) == pytest.approx(0.05, rel=0.12)
    assert np.nanmax(np.abs(found.deviation[18])) > 0.3


def test_the_hour_that_all_brokers_share_is_no_noise() -> None:
    assert mad(day(brokers(0.0, [1.0, 1.2, 0.8])).fast) == pytest.approx(0, abs=1e-12)


def test_a_misread_window_does_not_become_the_others_noise() -> None:
    load = brokers(0.02, [1.0] * 5)
    load[2, 100] *= 1000
    found = day(load)
    assert np.isnan(found.fast[2, 100])
    assert np.nanmax(np.abs(found.fast[[0, 1, 3, 4], 100])) < 0.1


def test_a_broker_whose_load_changed_during_the_day_does_not_widen_the_band() -> None:
    load = brokers(0.03, [1.0] * 20)
    load[7, 144:] *= 1.8
    found = day(load)
    assert not found.settled[7]
    assert found.settled.sum() == 19


def test_brokers_far_from_the_mean_do_not_say_what_a_balanced_one_would_do() -> None:
    found = day(brokers(0.03, [1.0] * 10 + [4.0, 0.1]))
    assert list(found.settled) == [True] * 10 + [False] * 2


def test_the_mean_is_shared_by_capacity_where_brokers_differ() -> None:
    found = day(brokers(0.01, [1.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    assert found.slow == pytest.approx([1.0, 1.0, 1.0], rel=0.01)


def test_a_broker_seen_too_seldom_has_no_share_of_its_own() -> None:
    load = brokers(0.03, [1.0] * 4)
    load[3, LEAST_WINDOWS - 1 :] = np.nan
    found = day(load)
    assert np.isnan(found.slow[3])
    assert not found.settled[3]


def test_windows_that_most_brokers_missed_have_no_mean() -> None:
    load = brokers(0.03, [1.0, 9.0, 1.0, 9.0])
    load[1:, 10] = np.nan
    assert np.isnan(day(load).level[10])


@pytest.mark.parametrize("count", [6, 40])
def test_a_lost_sample_of_one_broker_is_no_noise_of_the_others(count: int) -> None:
    r = np.random.default_rng(3)
    load = brokers(0.0, list(r.uniform(0.6, 1.5, count)))
    load[r.random(load.shape) < 0.05] = np.nan
    found = day(load)
    assert np.nanmax(np.abs(found.fast)) < 0.001
    assert np.nanmax(np.abs(found.deviation + 1 - found.slow[:, None])) < 0.001


def test_a_broker_that_joins_at_noon_does_not_make_the_others_noisy() -> None:
    load = brokers(0.0, [1.0, 1.2, 0.8, 0.1])
    load[3, :150] = np.nan
    assert np.nanmax(np.abs(day(load).fast)) < 0.001


def test_a_cluster_without_load_has_no_noise_and_no_error() -> None:
    found = day(np.zeros((3, WINDOWS)))
    assert not found.settled.any()
    assert np.isnan(found.fast).all()


def test_checks_in_a_row_count_only_on_one_side() -> None:
    fast = np.array([[0.3, 0.2, -0.5, -0.4, -0.6, np.nan, 0.1]])
    found = in_a_row(fast, 2)
    assert found[0, :4] == pytest.approx([0.2, 0.0, 0.4, 0.4])
    assert np.isnan(found[0, 4:]).all()
    assert in_a_row(fast, 1)[0, :5] == pytest.approx([0.3, 0.2, 0.5, 0.4, 0.6])
    assert in_a_row(fast, 8).shape == (1, 0)


def test_more_checks_in_a_row_allow_a_narrower_band() -> None:
    fast = day(brokers(0.05, [1.0] * 20)).fast
    bounds = []
    for hits in (1, 3):
        off = in_a_row(fast, hits)
        found = band(Histogram.of(bin_of(off.ravel()), np.ones(off.size, dtype=np.int64)), 1e-5)
        assert found is not None
        bounds.append(found.bound)
    assert bounds[1] < 0.6 * bounds[0]


def test_a_day_becomes_counts_that_add_up() -> None:
    load = brokers(0.05, [1.0] * 10 + [1.5])
    missing = np.arange(load.size).reshape(load.shape) % 50 == 3
    rows = counted("cpu", np.arange(len(load)), 0, np.where(missing, np.nan, load), window_seconds=300, hits=2)
    kinds = {kind: rows.filter(pa.compute.equal(rows["kind"], kind)) for kind in (NOISE, ALARM, SPREAD, DAYS, SETTLED)}
    assert kinds[DAYS]["count"].to_pylist() == kinds[SETTLED]["count"].to_pylist() == [11]
    measured = load.size - len(range(3, load.size, 50))
    assert sum(kinds[NOISE]["count"].to_pylist()) == sum(kinds[SPREAD]["count"].to_pylist()) == measured
    assert 0.9 * measured < sum(kinds[ALARM]["count"].to_pylist()) < measured
    noise = Histogram.of(unsigned(kinds[NOISE]["bin"].to_numpy().astype(np.int64)), kinds[NOISE]["count"].to_numpy())
    assert min(kinds[NOISE]["bin"].to_pylist()) < 0
    assert noise.quantile(0.5) * TO_SIGMA == pytest.approx(0.05, rel=0.06)
    assert rows["resource"].unique().to_pylist() == ["cpu"]


def test_counts_use_capacity_only_where_every_broker_has_one() -> None:
    load = brokers(0.01, [1.0, 1.0, 2.0])

    def widest(capacity: list[float | None]) -> float:
        known = {broker: one for broker, one in enumerate(capacity) if one is not None}
        rows = counted("cpu", np.arange(3), 0, load, window_seconds=300, hits=1, capacity=known)
        spread = rows.filter(pa.compute.equal(rows["kind"], SPREAD))
        return float(middle(max(spread["bin"].to_pylist())))

    assert widest([1.0, 1.0, 2.0]) < 0.1
    assert widest([1.0, None, 2.0]) > 0.4
    assert widest([1.0, 0.0, 2.0]) == widest([0.0] * 3) == widest([1.0, None, 2.0])  # a 0 took the resource's band away


def test_a_histogram_knows_its_quantiles_within_half_a_percent() -> None:
    values = np.abs(np.random.default_rng(1).standard_normal(200_000)) * 0.1
    seen = Histogram.of(bin_of(values), np.ones(len(values), dtype=np.int64))
    for share in (0.01, 0.5, 0.9, 0.999):
        assert seen.quantile(share) == pytest.approx(np.quantile(values, share), rel=0.005)
    assert seen.beyond(0.2) == pytest.approx((values > 0.2).mean(), rel=0.01)
    assert np.isnan(Histogram.of(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).quantile(0.5))


def test_no_value_falls_out_of_a_histogram() -> None:
    assert list(bin_of(np.array([0.0, 1e-9, 1e9]))) == [0, 0, 2099]
