"""The verdict of a backtest: what does not hold on held-out days is not recommended, and every row pays for how many are tested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from spark.backtest.configuration import Configuration
from spark.backtest.outcome import Day, Outcome
from spark.backtest.pareto import Rule, cost_difference, hours_difference
from spark.backtest.run import Validated, avoidable, ceiling, confirmation, instead, judged
from spark.backtest.search import Trained

HOURS, COST = Rule("hours"), Rule("cost")


def replays(hours: list[float], data: list[float], spread: float = 0.0) -> Outcome:
    """Two phases of some days, `spread` of the hours more or less by turns."""
    days = [
        Day(n, hour * (1 + spread * (-1) ** (n + phase)), bytes_, 0, phase)
        for phase in range(2)
        for n, (hour, bytes_) in enumerate(zip(hours, data, strict=True))
    ]
    total = sum(day.hours for day in days) / 2, sum(day.bytes_moved for day in days) / 2
    return Outcome(out_of_band_hours=total[0], bytes_moved=total[1], by_day=tuple(days))


def verdict(own: Outcome, best: Outcome, rule: Rule) -> tuple[bool, str]:
    def row(one: Outcome) -> Validated:
        trained = Trained(Configuration(3600.0), (0,), (one,))
        return Validated(trained, (one,), True, one is best, hours_difference([own], [one]), cost_difference([own], [one]))

    return confirmation(row(own), row(best), rule)


WEEK, LUMPS = [20.0, 22, 21, 19, 20, 8, 7], [5.0, 0, 9, 1, 4, 0, 2]
OWN = replays(WEEK, LUMPS)


def test_what_does_not_hold_on_held_out_weeks_is_not_recommended() -> None:
    fewer = [0.6 * hours for hours in WEEK]
    good, told = verdict(OWN, replays(fewer, [1.05 * b for b in LUMPS]), HOURS)
    worse, words = verdict(OWN, replays([1.01 * hours for hours in WEEK], LUMPS), HOURS)
    dearer, dear = verdict(OWN, replays(fewer, [1.5 * b for b in LUMPS]), HOURS)
    assert (good, worse, dearer) == (True, False, False)
    assert "-40.0% ± 0.0% broker-hours" in told
    assert words.endswith("Not confirmed: broker-hours outside the target range are not fewer.")
    assert "bytes moved are more than 10.0% higher" in dear
    half = [0.5 * b for b in LUMPS]
    assert verdict(OWN, replays([1.009 * hours for hours in WEEK], half), COST)[0]
    assert not verdict(OWN, replays([1.011 * hours for hours in WEEK], half), COST)[0]


def table_of(*found: Outcome) -> list[Validated]:
    rows = [Trained(Configuration(3600.0), (0,), (one,)) for one in found]
    return [
        Validated(row, row.each, True, n == 1, hours_difference([OWN], row.each), cost_difference([OWN], row.each))
        for n, row in enumerate(rows)
    ]


def test_every_row_has_a_verdict_and_pays_for_how_many_are_tested() -> None:
    """The best of a dozen that gain nothing looks better than it is; a gain that is one stays, also where another was chosen."""
    half = [0.5 * b for b in LUMPS]
    cheap, nothing = replays(WEEK, half, 0.01), replays([*WEEK[:-2], 4.0, 4.0], LUMPS, 0.05)
    judged_rows = judged(table_of(OWN, nothing, cheap), Rule("both"))
    assert [row.verdict.partition(":")[0] for row in judged_rows] == ["", "no gain beyond noise", "confirmed"]
    assert instead(judged_rows) == 2
    swing = [h * (0.84 if n % 2 else 0.98) for n, h in enumerate(WEEK)]
    slight = replays(swing, LUMPS)
    alone = judged(table_of(OWN, slight), HOURS)
    among = judged(table_of(OWN, *[slight] * 12), HOURS)
    assert alone[1].verdict.startswith("confirmed")
    assert instead(among) is None


def test_a_gain_is_also_told_as_a_share_of_what_can_be_avoided() -> None:
    own, best, never, hindsight = table_of(*(Outcome(out_of_band_hours=h) for h in (100.0, 90.0, 140.0, 50.0)))
    assert avoidable(own, best, never, hindsight).endswith("50 with hindsight. The choice avoids 20% of the hours that hindsight avoids.")
    assert avoidable(own, hindsight, never, best).endswith("The choice avoids at least as many of them as hindsight.")
    assert "avoids" not in avoidable(own, own, never, hindsight)


def test_a_gain_that_one_lucky_day_makes_is_not_confirmed() -> None:
    """Each run would recommend another configuration, and the next week would be no better."""
    lucky = replays([*WEEK[:-2], 0.0, 1.0], LUMPS)
    confirmed, words = verdict(OWN, lucky, HOURS)
    assert not confirmed
    assert "it may be noise" in words
    assert hours_difference([OWN], [lucky]).share < -0.1


def test_hours_that_swing_from_replay_to_replay_do_not_count_as_equal() -> None:
    half = [0.5 * b for b in LUMPS]
    steady, wild = replays(WEEK, half), replays(WEEK, half, spread=0.6)
    assert verdict(OWN, steady, COST)[0]
    lopsided = replace(wild, by_day=tuple(replace(d, hours=d.hours * (1.4 if d.phase else 0.6)) for d in wild.by_day))
    assert hours_difference([OWN], [lopsided]).share == pytest.approx(0.0)
    confirmed, words = verdict(OWN, lopsided, COST)
    assert not confirmed
    assert "too uncertain to count as equal" in words


def test_one_replay_of_one_day_confirms_nothing() -> None:
    one, other = (Outcome(out_of_band_hours=h, bytes_moved=10, by_day=(Day(0, h, 10),)) for h in (100.0, 50.0))
    confirmed, words = verdict(one, other, HOURS)
    assert not confirmed
    assert "one replay of one day" in words


@pytest.mark.parametrize("phases", [(3, 3), (9, 3)])
def test_the_standard_error_is_that_of_many_repetitions(phases: tuple[int, int]) -> None:
    """Chance in days, in phases, and in both: as large as differences really scatter when the weeks are drawn again."""
    r = np.random.default_rng(5)
    shares, errors = [], []
    for _ in range(400):
        busy = r.uniform(10, 30, 14)

        def outcome_of(level: float, many: int, busy: npt.NDArray[np.float64] = busy) -> Outcome:
            day, phase = r.normal(0, 0.08, 14), r.normal(0, 0.03, many)
            hours = [[busy[n] * level * (1 + day[n] + phase[p] + r.normal(0, 0.05)) for n in range(14)] for p in range(many)]
            made = [Day(n, float(hours[p][n]), 0.0, 0, p) for p in range(many) for n in range(14)]
            return Outcome(out_of_band_hours=sum(d.hours for d in made) / many, by_day=tuple(made))

        found = hours_difference([outcome_of(1.0, phases[0])], [outcome_of(0.8, phases[1])])
        shares.append(found.share)
        assert found.error is not None
        errors.append(found.error)
    assert np.mean(shares) == pytest.approx(-0.2, abs=0.01)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(shares), rel=0.25)


def test_where_nothing_is_recommended_the_best_that_was_tried_is_told() -> None:
    """An operator who reads "no gain was found" asks how much there was to find."""
    dear, cheap = (replays(WEEK, [factor * b for b in LUMPS]) for factor in (1.2, 0.9))
    rows = table_of(OWN, dear, cheap, replays([2 * hours for hours in WEEK], [0.0] * 7))
    assert ceiling(rows[1:], COST) == (
        "Of the 3 other configurations tested on these stretches, the one that moves least at equal broker-hours outside the target range "
        "has +0.0% ± 0.0% broker-hours outside the target range and -10.0% ± 0.0% bytes moved."
    )
    assert ceiling([rows[1], rows[3]], COST).endswith("none moves less at equal broker-hours outside the target range.")
