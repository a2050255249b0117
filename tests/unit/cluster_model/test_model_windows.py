"""Means must be exactly those of the samples within the horizon: no burst lost, none counted twice, none too long."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_model.windows import Gauges, Horizon, HorizonName, Rates
from tests.unit.cluster_model.remembered import Remembered

SHORT, LONG, SLOTS = Horizon(100, 3), Horizon(250, 4), 4
HORIZONS: dict[HorizonName, Horizon] = {"short": SHORT, "long": LONG}


def slots(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(numbers, dtype=np.int32)


def means(column: Rates | Gauges, horizon: HorizonName, count: int = SLOTS) -> list[float | None]:
    total = column.total(horizon)[:count].astype(float)
    return [None if weight == 0.0 else float(amount / weight) for amount, weight in total]


samples = st.lists(
    st.tuples(st.integers(0, 3000), st.integers(0, SLOTS - 1), st.integers(0, 1000), st.integers(0, 400)), max_size=40
)


@settings(max_examples=300)
@given(samples)
def test_means_equal_those_of_the_samples_within_the_horizon(arriving: list[tuple[int, int, int, int]]) -> None:
    """In any order of arrival, however late, against a record of all samples; a slot that fell silent keeps the mean of
    its newest window."""
    column = Rates(SHORT, LONG)
    expected = {name: Remembered(horizon) for name, horizon in HORIZONS.items()}
    for time_ms, slot, value, weight in arriving:
        column.add(slots(slot), np.array([float(value)]), weight, time_ms)
        for remembered in expected.values():
            remembered.add(time_ms, slot, float(value), weight)
    for name, remembered in expected.items():
        for slot, found in enumerate(means(column, name)):
            wanted = remembered.mean(slot)
            assert found == (None if wanted is None else pytest.approx(wanted, rel=1e-5))
    for slot, time_ms in enumerate(column.times[:SLOTS].tolist()):
        assert time_ms == max((t for t, s, _, _ in arriving if s == slot), default=-1)


@given(samples, st.randoms(use_true_random=False))
def test_the_order_of_arrival_within_the_horizon_does_not_matter(
    arriving: list[tuple[int, int, int, int]], random: Random
) -> None:
    recent = [(time_ms % 100 + 900, *rest) for time_ms, *rest in arriving]
    shuffled = list(recent)
    random.shuffle(shuffled)
    columns = Rates(SHORT, LONG), Rates(SHORT, LONG)
    for column, given_samples in zip(columns, (recent, shuffled), strict=True):
        for time_ms, slot, value, weight in given_samples:
            column.add(slots(slot), np.array([float(value)]), weight, time_ms)
    for name in HORIZONS:
        for a, b in zip(means(columns[0], name), means(columns[1], name), strict=True):
            assert a == (None if b is None else pytest.approx(b, rel=1e-5))


def test_a_long_interval_counts_more_than_a_short_one() -> None:
    column = Rates(Horizon(60_000, 5), Horizon(60_000, 5))
    column.add(slots(0), np.array([100.0]), 1_000, 1_000)
    column.add(slots(0), np.array([10.0]), 9_000, 10_000)
    assert means(column, "short", 1) == [19.0]


def test_an_interval_longer_than_the_horizon_does_not_outweigh_everything_after_it() -> None:
    column = Rates(Horizon(100, 3), Horizon(100, 3))
    column.add(slots(0), np.array([1000.0]), 2**32 - 1, 300)
    column.add(slots(0), np.array([0.0]), 300, 310)
    assert means(column, "short", 1) == [500.0]


def test_what_makes_no_sense_and_what_is_missing_is_passed_over() -> None:
    rates, gauges = Rates(SHORT, LONG), Gauges()
    values = np.array([1.0, -1.0, math.nan, math.inf, 1e300, 7.0])
    for column in (rates, gauges):
        taken = column.add(slots(0, 1, 2, 3, 1, -1), values, 10, 50)
        assert (taken.counted, taken.senseless, taken.old) == (1, 3, 0)
        assert means(column, "long") == [1.0, None, None, None]


def test_a_gauge_keeps_its_newest_value_whatever_comes_late() -> None:
    column = Gauges()
    for time_ms, value in ((100, 5.0), (300, 7.0), (200, 6.0)):
        column.add(slots(2), np.array([value]), 0, time_ms)
    assert means(column, "short") == means(column, "long") == [None, None, 7.0, None]
    assert column.add(slots(2), np.array([1.0]), 0, 299).old == 1
    assert column.times[2] == 300


def test_a_value_too_old_for_every_window_counts_only_where_nothing_newer_is_known() -> None:
    """After a restart the samples of a silent broker are old, and still the best there is."""
    column = Rates(SHORT, LONG)
    column.add(slots(0), np.array([9.0]), 10, 5_000)
    late = column.add(slots(0, 1), np.array([3.0, 4.0]), 10, 100)
    assert (late.counted, late.old) == (1, 1)
    assert means(column, "long") == [9.0, 4.0, None, None]
    column.add(slots(1), np.array([8.0]), 10, 5_001)
    assert means(column, "long")[1] == 8.0


def test_forgotten_slots_start_again_and_others_stay() -> None:
    for column in (Rates(SHORT, LONG), Gauges()):
        column.reserve(5001)  # beyond the first room
        for slot in (0, 5000):
            column.add(slots(slot), np.array([7.0]), 10, 50)
        column.forget(slots(0, 900_000))
        assert means(column, "long", 1) == [None]
        assert means(column, "long", 5001)[5000] == 7.0
        assert column.times[[0, 5000]].tolist() == [-1, 50]


def test_horizons_without_windows_are_refused() -> None:
    for window_ms, windows in ((0, 3), (10, 0)):
        with pytest.raises(ValueError, match="at least one window"):
            Horizon(window_ms, windows)
