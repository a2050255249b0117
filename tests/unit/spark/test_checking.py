"""Clocks and gaps of brokers, as sentences."""

from __future__ import annotations

from spark.history.checking import clocks, gaps_of


def test_a_broker_whose_newest_sample_is_off_stopped_or_has_a_wrong_clock() -> None:
    assert clocks([], {1: 1000.0, 2: 1100.0, 3: 1300.0}, 60.0) == []
    told = clocks([("time before 2000", 4, 3), ("negative", 4, 9)], {1: 9e4, 2: 9e4, 3: 9.36e4, 4: 5e4}, 60.0)
    assert told == [
        "broker 4: 3 samples with time before 2000; check its clock",
        "broker 3: its newest sample is 60 min after those of most brokers: its clock is ahead, or the others stopped",
        "broker 4: its newest sample is 667 min before those of most brokers: it stopped reporting, or its clock is behind",
    ]
    assert clocks([], {1: 0.0, 2: 5e4, 3: 5e4}, 86_400.0) == []  # a sample a day: a day off is nothing


def test_a_gap_is_whole_hours_without_anything() -> None:
    assert not list(gaps_of(1, [10, 11, 12]))
    (gap,) = gaps_of(1, [10, 13, 14])
    assert (gap.begin, gap.end) == ("1970-01-01T11:00:00Z", "1970-01-01T13:00:00Z")
