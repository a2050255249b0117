"""The rule that chooses: what counts as a gain, as equal, and as sure. By hand-made outcomes."""

from __future__ import annotations

from dataclasses import replace

from spark.backtest.difference import Difference
from spark.backtest.outcome import Day, Outcome
from spark.backtest.pareto import Rule, choose, hours_difference, leading, promising, ranks

HOURS, COST = Rule("hours"), Rule("cost")


def test_the_pareto_set_is_rank_zero_and_equal_points_share_it() -> None:
    assert ranks([(1, 5), (2, 2), (2, 2), (3, 3), (5, 1), (4, 4)]) == [0, 0, 0, 1, 0, 2]


def outcome(hours: float, data: float) -> Outcome:
    return Outcome(out_of_band_hours=hours, bytes_moved=data)


def test_the_choice_has_the_fewest_hours_at_no_more_bytes_or_the_other_way_round() -> None:
    found = [[outcome(*pair)] for pair in ((100, 10), (50, 11), (80, 10), (70, 9), (100.9, 4), (101.1, 3))]
    assert choose(found, 0, HOURS).row == 3
    assert choose(found, 0, COST).row == 4
    assert choose(found[:4] + found[5:], 0, COST).row == 3  # a tenth of the bytes, since 1.1 % more hours are not equal
    assert choose(found[:4] + found[5:], 0, Rule("cost", equal=0.02)).row == 4


def test_a_sure_gain_goes_before_a_larger_one_whose_hours_are_equal_perhaps() -> None:
    """The largest gain is at the edge of what counts as equal, and beyond it next week."""
    found = [[outcome(*pair)] for pair in ((100, 10), (99, 4), (100.5, 2), (97, 8), (90, 9.9))]
    hours = [Difference(share, 0.015) for share in (0.0, -0.01, 0.008, -0.03, -0.1)]
    assert choose(found, 0, COST, hours).row == 1  # -60 % surely, not -80 % perhaps, nor -20 %
    assert choose(found, 0, COST, [*hours[:2], Difference(-0.01, 0.015), *hours[3:]]).row == 2


def test_what_is_equal_at_the_edge_gives_way_to_what_surely_has_no_more_hours() -> None:
    """What looks best of many is a little worse than it looks: on days that it had not seen, the first had 2.8 % more hours."""
    found = [[outcome(*pair)] for pair in ((100, 100), (99.6, 57), (98.8, 60))]
    hours = [Difference(share, 0.01) for share in (0.0, -0.004, -0.012)]
    assert choose(found, 0, COST, hours).row == 2


def test_a_much_larger_gain_at_equal_hours_goes_before_slightly_fewer_hours() -> None:
    """The next days differ by more than replays of these days can tell: on them, the second had 7% fewer hours and the first as many."""
    found = [[outcome(*pair)] for pair in ((100, 100), (99.2, 54), (100, 37))]
    hours = [Difference(share, 0.01) for share in (0.0, -0.008, 0.0)]
    assert choose(found, 0, COST, hours).row == 2


def test_hours_that_are_equal_by_luck_on_one_day_are_not_equal() -> None:
    def days(*outside: float) -> Outcome:
        by_day = tuple(Day(day, 24 * each) for day, each in enumerate(outside))
        return Outcome(out_of_band_hours=24 * sum(outside), bytes_moved=5, by_day=by_day)

    own = [replace(days(10, 10, 10, 10), bytes_moved=10)]
    lucky, steady = [days(14, 14, 2, 10)], [days(10, 10.1, 9.9, 10)]
    assert lucky[0].out_of_band_hours == steady[0].out_of_band_hours == own[0].out_of_band_hours
    assert choose([own, lucky], 0, COST).row == 0
    assert choose([own, lucky, steady], 0, COST).row == 2


def test_a_part_of_the_training_span_does_not_give_up_what_is_nearly_equal() -> None:
    found = [[outcome(*pair)] for pair in ((100, 10), (99, 11), (102.5, 2), (104, 1), (104, 9))]
    assert promising(found, 0, COST, 1) == [2]
    assert set(promising(found, 0, COST, 3)) == {1, 2, 3}  # those of the Pareto set by turns with those


def test_the_goals_stay_where_nothing_gains() -> None:
    found = choose([[outcome(100, 10)], [outcome(99, 10)], [outcome(10, 10.5)]], 0, HOURS)
    assert found.row == 0
    assert "stay as they are" in found.why


def test_where_the_goals_as_they_are_move_nothing_what_moves_comes_last() -> None:
    found = [[outcome(100, 0)], [outcome(1e6, 5)], [outcome(100, 0)], [outcome(101, 7)]]
    assert leading(found, 0, COST, [hours_difference(found[0], each) for each in found]) == [2, 1, 3]
    assert choose(found, 0, COST).row == 0


def test_both_aims_are_searched_in_one_run() -> None:
    cheap, short = [outcome(100, 5)], [outcome(80, 10)]
    found = [[outcome(100, 10)], cheap, short]
    assert choose(found, 0, Rule("both")).row == 1  # half of the bytes is more than a fifth of the hours
    assert promising(found, 0, Rule("both"), 2) == [2, 1]
    assert choose([found[0], [outcome(100, 9.9)]], 0, Rule("both")).row == 0
