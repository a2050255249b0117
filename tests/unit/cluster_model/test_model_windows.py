"""Averages must be exactly those of the samples within the horizon: no burst lost, none counted twice, none too long."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_model.windows import LatestValues, WindowRing

WINDOW_MS, WINDOWS, SLOTS = 100, 3, 4


def slots(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(numbers, dtype=np.int32)


samples = st.lists(
    st.tuples(st.integers(0, 1200), st.integers(0, SLOTS - 1), st.integers(0, 1000), st.integers(1, 100)), max_size=40
)


@given(samples, st.integers(0, 600), st.integers(1, WINDOWS))
def test_average_equals_that_of_the_samples_within_the_horizon(
    given_samples: list[tuple[int, int, int, int]], later: int, span: int
) -> None:
    """In any order of arrival, against a list of all samples."""
    ring, kept, newest = WindowRing(WINDOW_MS, WINDOWS), [], -1
    for time_ms, slot, value, weight in given_samples:
        number = time_ms // WINDOW_MS
        accepted = ring.add(slots(slot), np.array([float(value)]), weight, time_ms)
        assert accepted == (newest < 0 or number > newest - WINDOWS)
        if accepted:
            newest = max(newest, number)
            kept.append((number, slot, value, weight))
    now_ms = max(newest, 0) * WINDOW_MS + later
    last = now_ms // WINDOW_MS
    averages = ring.average(np.arange(SLOTS, dtype=np.int32), now_ms, span)
    for slot in range(SLOTS):
        inside = [
            (v, w) for n, s, v, w in kept if s == slot and last - span < n <= last and n > newest - WINDOWS
        ]  # fmt: skip
        if inside:
            assert averages[slot] == pytest.approx(sum(v * w for v, w in inside) / sum(w for _, w in inside))
        else:
            assert math.isnan(averages[slot])


def test_a_long_interval_counts_more_than_a_short_one() -> None:
    ring = WindowRing(60_000, 5)
    ring.add(slots(0), np.array([100.0]), 1_000, 1_000)
    ring.add(slots(0), np.array([10.0]), 9_000, 10_000)
    assert ring.average(slots(0), 10_000).tolist() == [19.0]


def test_forgotten_slots_start_anew_and_others_stay() -> None:
    ring, latest = WindowRing(100, 3), LatestValues()
    for table_slot in (0, 5000):  # beyond the first capacity too
        ring.add(slots(table_slot), np.array([7.0]), 10, 50)
        latest.put(slots(table_slot), np.array([7.0]))
    ring.forget(slots(0, 9000))
    latest.forget(slots(0, 9000))
    assert np.isnan(ring.average(slots(0), 50)[0])
    assert np.isnan(latest.get(slots(0))[0])
    assert ring.average(slots(5000, 9000), 50)[0] == 7.0
    assert latest.get(slots(5000))[0] == 7.0


def test_a_ring_without_windows_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one window"):
        WindowRing(0, 3)
