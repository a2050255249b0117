"""Rates from two readings: what was appended and consumed, however the log was cut in between."""

from __future__ import annotations

import pytest

from trimtab.capture.rates import Rate, Rates, measure
from trimtab.capture.reading import BrokerReading, Commits, LogEnds, LogSizes, PartitionEntry, Reading, Topology  # fmt: skip

KEY = ("orders", 0)


def topology(leader: int | None = 1) -> Topology:
    return Topology("c", {}, {KEY: PartitionEntry((1, 2), (1, 2), leader, ())})


def broker(
    at: float,
    size: int | None = None,
    end: int | None = None,
    start: int = 0,
    commits: dict[str, int] | None = None,
) -> BrokerReading:
    """One broker's counters, all read at `at`."""
    return BrokerReading(
        sizes=LogSizes(at, {} if size is None else {KEY: size}),
        ends=LogEnds(at, {} if end is None else {KEY: end}, {} if end is None else {KEY: start}),
        commits=Commits(at, {group: {KEY: offset} for group, offset in (commits or {}).items()}),
    )


def measured(before: Reading, after: Reading, earlier: Topology | None = None) -> Rates:
    return measure(before, after, earlier or topology(), topology())


def rate(before: BrokerReading, after: BrokerReading) -> Rate:
    return measured({1: before}, {1: after}).of[KEY]


def test_a_growing_log_gives_its_growth_over_the_time_that_really_passed() -> None:
    found = rate(broker(100.0, 1000, 10), broker(104.0, 9000, 90))
    assert found == Rate(appended=2000.0, fetched=0.0)


def test_each_counter_is_taken_over_its_own_time() -> None:
    before = BrokerReading(
        LogSizes(0.0, {KEY: 0}), LogEnds(1.0, {KEY: 0}, {KEY: 0}), Commits(3.0, {"g": {KEY: 0}})
    )
    after = BrokerReading(
        LogSizes(10.0, {KEY: 1000}), LogEnds(21.0, {KEY: 20}, {KEY: 0}), Commits(8.0, {"g": {KEY: 5}})
    )
    # 100 bytes/s at 1 record/s: 100 bytes a record; the group read 1 record/s
    assert rate(before, after) == Rate(appended=100.0, fetched=100.0)


@pytest.mark.parametrize("size", [500, 1500], ids=["the log shrank", "the log grew all the same"])
def test_retention_meanwhile_counts_records_times_their_size(size: int) -> None:
    before = broker(0.0, 1000, end=100, start=0)  # 10 bytes a record
    found = rate(before, broker(10.0, size, end=300, start=150))
    assert found == Rate(appended=200.0, fetched=0.0, estimated=True, guessed=True)


def test_compaction_meanwhile_does_not_give_a_negative_rate() -> None:
    found = rate(broker(0.0, 1000, end=100), broker(10.0, 800, end=110))
    assert found == Rate(appended=10.0, fetched=0.0, estimated=True, guessed=True)


def steps(*readings: BrokerReading) -> Rate:
    between = [{1: part} for part in readings[1:-1]]
    return measure({1: readings[0]}, {1: readings[-1]}, topology(), topology(), between).of[KEY]


def test_a_cleaned_log_counts_its_records_by_how_it_grew_at_other_times() -> None:
    """What is left of a compacted log has gaps: its average was 0.2 to 0.3 % of what a record takes."""
    cleaned = [broker(0.0, 1000, 100_000), broker(2.0, 3000, 100_020), broker(4.0, 1100, 100_040), broker(6.0, 3100, 100_060)]
    assert steps(*cleaned) == Rate(1000.0, 0.0, estimated=True)


def test_a_log_that_was_cleaned_and_grew_all_the_same_is_noticed_by_the_step_in_which_it_was() -> None:
    hidden = [broker(0.0, 1000, 100), broker(2.0, 3000, 120), broker(4.0, 3200, 140), broker(6.0, 5200, 160)]
    assert steps(*hidden) == Rate(1000.0, 0.0, estimated=True)


def test_a_log_that_is_cleaned_all_the_time_is_a_guess() -> None:
    always = [broker(0.0, 1000, 1000), broker(2.0, 900, 1020), broker(4.0, 800, 1040)]
    assert steps(*always) == Rate(10.0, 0.0, estimated=True, guessed=True)


def test_readings_in_between_change_nothing_of_a_log_that_only_grew() -> None:
    grown = [broker(0.0, 1000, 100), broker(2.0, 3000, 120), broker(4.0, 6600, 140), broker(10.0, 11_000, 200)]
    assert steps(*grown) == Rate(1000.0, 0.0)


def test_a_log_that_was_cut_and_not_written_has_no_rate_and_is_no_estimate() -> None:
    assert rate(broker(0.0, 1000, end=100), broker(10.0, 0, end=100, start=100)) == Rate(0.0, 0.0)


def test_consumers_of_old_records_are_counted_with_the_average_size() -> None:
    found = rate(
        broker(0.0, 1000, 100, commits={"a": 0, "b": 10}), broker(10.0, 1000, 100, commits={"a": 50, "b": 30})
    )
    assert found == Rate(appended=0.0, fetched=70.0)


def test_groups_seen_at_one_end_only_and_resets_count_as_nothing() -> None:
    found = rate(
        broker(0.0, 1000, 100, commits={"reset": 90, "gone": 5}),
        broker(10.0, 1000, 100, commits={"reset": 10, "new": 99}),
    )
    assert found.fetched == 0.0


def test_a_group_whose_coordinator_moved_is_still_compared() -> None:
    rates = measured({1: broker(0.0, 1000, 100, commits={"a": 0}), 2: broker(0.0)},
                     {1: broker(10.0, 1000, 100), 2: broker(10.0, commits={"a": 50})})  # fmt: skip
    assert rates.of[KEY].fetched == 50.0


def test_a_leader_change_meanwhile_compares_the_new_leaders_log_with_itself() -> None:
    before = {1: broker(0.0, 5000, end=50), 2: broker(0.0, 4900)}
    after = {1: broker(10.0, 5900), 2: broker(10.0, 5900, end=60)}
    rates = measure(before, after, topology(leader=1), topology(leader=2))
    assert rates.of[KEY] == Rate(100.0, 0.0)
    assert rates.moved_leader == 1


def test_what_cannot_be_compared_is_unmeasured_not_zero() -> None:
    full, silent = broker(0.0, 1000, 100), BrokerReading(answered=False, errors=("no route",))
    for before, after in [
        ({1: silent}, {1: full}),
        ({1: full}, {1: silent}),
        ({}, {1: full}),
        ({1: broker(0.0)}, {1: full}),
    ]:
        rates = measured(before, after)
        assert rates.of == {}
        assert rates.unmeasured == (KEY,)


def test_offsets_that_are_not_told_leave_the_growth_of_the_log() -> None:
    assert rate(broker(0.0, 1000), broker(10.0, 2000)) == Rate(100.0, 0.0)


def test_a_partition_without_a_leader_has_no_rate_and_is_not_missed() -> None:
    rates = measure({1: broker(0.0, 1)}, {1: broker(1.0, 2)}, topology(), topology(leader=None))
    assert rates.of == {}
    assert rates.unmeasured == ()
