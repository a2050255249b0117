"""By what share two configurations differ on the same stretches, and how much of that chance may have made. Pure.

Called by the rule that chooses and by the validation on held-out stretches. The same days of both are compared with each other, so that
what days have in common (a busy week, a weekend) is no noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import FloatArray
from spark.backtest.outcome import Day, Outcome

Each = Sequence[Outcome]
"""Outcomes of one configuration, one for each stretch."""


@dataclass(frozen=True)
class Difference:
    """`share`: -0.3 for 30% less. `error`: its standard error as a share, too; None where one replay of one day is all there is."""

    share: float
    error: float | None

    @property
    def spare(self) -> float:
        """The error, 0 where it is not known."""
        return self.error or 0.0

    def __str__(self) -> str:
        if not math.isfinite(self.share):
            return "none before"
        return f"{self.share:+.1%} ± {self.error:.1%}" if self.error is not None else f"{self.share:+.1%}"


def difference(own: Each, other: Each, total: Callable[[Outcome], float], daily: Callable[[Day], float]) -> Difference:
    """What `other` has more than `own`, of an amount that `total` takes from an outcome and `daily` from a day of it."""
    before, after = (sum(map(total, each)) for each in (own, other))
    if before <= 0.0:
        return Difference(0.0 if after <= 0.0 else math.inf, None)
    share = after / before - 1.0
    if own == other:
        return Difference(0.0, 0.0)
    mine, theirs = (_tables(each, daily) for each in (own, other))
    if not len(mine) or mine.shape[1] != theirs.shape[1] or mine.sum() <= 0.0:
        return Difference(share, None)
    variance = _variance(mine * (theirs.mean(axis=0).sum() / mine.mean(axis=0).sum()), theirs)
    return Difference(share, None if variance is None else math.sqrt(variance) / float(mine.mean(axis=0).sum()))


def luck(outcomes: Sequence[Outcome]) -> float | None:
    """Standard deviation of the hours of one replay of a stretch, as a share of their mean over its phases: of all these together, 0 where
    phases do not matter; None where each was replayed once. (Another look changes the next plan, and all after it.)"""
    squares, freedom = 0.0, 0
    for one in outcomes:
        hours = _tables([one], lambda day: day.hours).sum(axis=1)
        if len(hours) > 1 and hours.mean() > 0.0:
            squares += float(((hours / hours.mean() - 1.0) ** 2).sum())
            freedom += len(hours) - 1
    return math.sqrt(squares / freedom) if freedom else None


def _variance(mine: FloatArray, theirs: FloatArray) -> float | None:
    """Variance of the difference of the sums over days of two tables, float64 [phases, days] each, whose means over phases have one sum; as
    days and phases are drawn by chance. None with one of both.

    Days of both are compared with each other, since what days have in common is no noise; phases are not, since two ways to plan have
    nothing in common but the time of their looks, so one may have been replayed more often than the other.

    *Source*: Cameron, Gelbach and Miller 2011 (two-way clusters): what days vary by, and phases, less what was counted twice. A day goes
    with the next, since placements last: Newey and West 1987, one lag.
    """
    by_day = theirs.mean(axis=0) - mine.mean(axis=0)
    days, parts, twice = len(by_day), [], 0.0
    if days > 1:
        alike = max(0.0, float((by_day[1:] * by_day[:-1]).sum()))
        parts.append((float((by_day**2).sum()) + alike) * days / (days - 1))
    several = [table for table in (mine, theirs) if len(table) > 1]
    if several:
        apart = [(table - table.mean(axis=0), len(table) * (len(table) - 1)) for table in several]
        parts.append(sum(float((left.sum(axis=1) ** 2).sum()) / n for left, n in apart))
        twice = sum(float((left**2).sum()) / n for left, n in apart)
    return max(*parts, sum(parts) - twice) if len(parts) > 1 else parts[0] if parts else None


def _tables(each: Each, daily: Callable[[Day], float]) -> FloatArray:
    """float64 [phases, days of all stretches in order]; of no phases where days are not known."""
    phases = max((day.phase + 1 for one in each for day in one.by_day), default=0)
    columns: dict[tuple[int, int], int] = {}
    for n, one in enumerate(each):
        for day in one.by_day:
            columns.setdefault((n, day.day), len(columns))
    table = np.zeros((phases, len(columns)))
    for n, one in enumerate(each):
        for day in one.by_day:
            table[day.phase, columns[n, day.day]] += daily(day)
    return table
