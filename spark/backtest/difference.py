"""By what share two configurations differ on the same stretches, and how much of that chance may have made. Pure.

Called by the rule that chooses and by the validation on held-out stretches. The same days and phases of both are compared with each
other, so that what days have in common (a busy week, a weekend) is no noise.
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
    """`share`: -0.3 for 30 % less. `error`: its standard error as a share, too; None where one replay of one day is all there is."""

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
    pair = _paired(own, other, daily)
    if pair is None or pair[0].sum() <= 0.0:
        return Difference(share, None)
    mine, theirs = pair
    left = theirs - mine * (theirs.sum() / mine.sum())  # of each phase and day, what the share does not explain
    variance = _variance(left)
    return Difference(share, None if variance is None else math.sqrt(variance) / float(mine.sum()))


def _variance(left: FloatArray) -> float | None:
    """Variance of the sum of float64 [phases, days], as days and phases each are drawn by chance; None with one of both.

    *Source*: Cameron, Gelbach and Miller 2011 (two-way clusters): what days vary by, and phases, less what was counted twice. A day goes
    with the next, since placements last: Newey and West 1987, one lag.
    """
    phases, days = left.shape
    by_day, by_phase = left.sum(axis=0), left.sum(axis=1)
    parts: list[float] = []
    if days > 1:
        alike = max(0.0, float((by_day[1:] * by_day[:-1]).sum()))
        parts.append((float((by_day**2).sum()) + alike) * days / (days - 1))
    if phases > 1:
        parts.append(float((by_phase**2).sum()) * phases / (phases - 1))
    if not parts:
        return None
    return max(*parts, sum(parts) - float((left**2).sum())) if len(parts) > 1 else parts[0]


def _paired(own: Each, other: Each, daily: Callable[[Day], float]) -> tuple[FloatArray, FloatArray] | None:
    """The amounts of both, float64 [phases, days]; one phase, their mean, where they were not replayed equally often."""
    tables = [_tables(each, daily) for each in (own, other)]
    if any(len(table) == 0 for table in tables) or tables[0].shape[1] != tables[1].shape[1]:
        return None
    if tables[0].shape != tables[1].shape:
        tables = [table.mean(axis=0, keepdims=True) for table in tables]
    return tables[0], tables[1]


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
