"""What is better in two things at once: ranks, the Pareto set, and the rule by which one configuration is chosen. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from scipy.stats import norm

from spark.backtest.difference import Difference, Each, difference

Point = tuple[float, float]
Aim = Literal["hours", "cost", "both"]
WORTH = 0.02  # share of the hours (or of the cost) that must be gained, else the goals stay as they are
EQUAL = 0.01  # share by which hours (or costs) may differ and count as equal
SURE = 2.0  # standard errors that a gain has to be on the held-out span
COST_SLACK = 0.10  # that held-out weeks may cost more where hours are to be gained: bytes come in lumps
ROOM = 0.02  # more than `EQUAL` that hours may be with a standard error on top
LUCK = 0.02  # of days to come, a standard error of hours beside what is measured: their own differences (docs/benchmarks.md)
HOURS, COST = "broker-hours outside the target range", "bytes moved"  # replicas moved, where no bytes are


def ranks(points: Sequence[Point]) -> list[int]:
    """0 for the Pareto set, 1 for that of the rest, and so on. Equal points share a rank. O(n^2) each."""
    left, rank, level = set(range(len(points))), [0] * len(points), 0
    while left:
        front = [i for i in left if not any(_better(points[j], points[i]) for j in left)]
        for i in front:
            rank[i] = level
        left -= set(front)
        level += 1
    return rank


def _better(one: Point, other: Point) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


@dataclass(frozen=True)
class Rule:
    """What to gain, and what counts as equal: ``hours`` wants the fewest broker-hours outside the target range at
    equal cost, ``cost`` the least cost at equal broker-hours, ``both`` whichever of the two gains the larger share. Equal is at most the
    share `equal` more."""

    aim: Aim = "hours"
    equal: float = EQUAL

    @property
    def parts(self) -> tuple[Rule, ...]:
        """The rules that it is made of: itself, or one for each aim."""
        return (replace(self, aim="hours"), replace(self, aim="cost")) if self.aim == "both" else (self,)

    def is_equal(self, kept: Difference, more: float = 0.0) -> bool:
        """Whether a difference counts as none: at most `equal` (and `more`), of hours with a standard error on top at most `ROOM` more."""
        most = self.equal + more
        return kept.share <= most and (self.aim == "hours" or kept.share + kept.spare <= most + ROOM)

    def likely(self, kept: Difference) -> float:
        """Probability that there is no more on days to come, whose `LUCK` adds to what is not known. (Not `equal` more: what looks best of
        many is a little worse than it looks.)"""
        return float(norm.cdf(-kept.share / math.hypot(kept.spare, LUCK)))

    @property
    def words(self) -> tuple[str, str]:
        """What is gained, and what is kept."""
        return (HOURS, COST) if self.aim == "hours" else (COST, HOURS)


def hours_difference(own: Each, other: Each) -> Difference:
    """By what share `other` has more broker-hours outside the target range."""
    return difference(own, other, lambda one: one.out_of_band_hours, lambda day: day.hours)


def cost_difference(own: Each, other: Each) -> Difference:
    """By what share `other` moves more: bytes, or replicas where `own` moved none (`Outcome.cost`)."""
    if sum(one.bytes_moved for one in own) > 0.0:
        return difference(own, other, lambda one: one.cost, lambda day: day.bytes_moved)
    return difference(own, other, lambda one: one.cost, lambda day: float(day.replica_moves))


@dataclass(frozen=True)
class Choice:
    """Which was chosen (a row), and by what words."""

    row: int
    why: str


def choose(outcomes: Sequence[Each], own: int, rule: Rule, hours: Sequence[Difference] | None = None) -> Choice:
    """The one whose gain, times the probability that what the rule keeps is no more than with row `own` (`Rule.likely`), is the largest, of
    those that count as equal; of the gain a standard error is taken off. `own` stays where none gains `WORTH`; ties go to the earlier
    row. With both aims the larger of both.

    Parameters
    ----------
    hours
        By what share each row has more hours, where more is known of it than these outcomes tell.

    *Source*: ours. The largest gain of all that count as equal would be one at the edge of that, by luck within it.
    """
    hours = [hours_difference(outcomes[own], each) for each in outcomes] if hours is None else hours
    cost = [cost_difference(outcomes[own], each) for each in outcomes]
    best = max(
        ((_worth(hours[n], cost[n], part), -n, part) for part in rule.parts for n in range(len(outcomes)) if n != own),
        key=lambda found: found[:2], default=(0.0, -own, rule.parts[0]),
    )  # fmt: skip
    if best[0] <= 0.0:
        what = " or ".join(f"{part.words[0]} by {WORTH:.0%} at equal {part.words[1]}" for part in rule.parts)
        nothing = f"Before the held-out part, no configuration lowers {what} (equal within {rule.equal:.1%})"
        return Choice(own, f"{nothing}: the goals stay as they are")
    what, kept = best[2].words
    gain = f"The choice has the largest gain in {what}, weighted by the probability of no more {kept}"
    return Choice(-best[1], f"{gain}, in all replays before the held-out part")


def _worth(hours: Difference, cost: Difference, rule: Rule) -> float:
    """What a row is expected to gain under a rule of one aim; 0 where it is no choice."""
    gain, kept = (hours, cost) if rule.aim == "hours" else (cost, hours)
    sure = -(gain.share + gain.spare)
    return sure * rule.likely(kept) if sure >= WORTH and rule.is_equal(kept) else 0.0


def leading(outcomes: Sequence[Each], own: int, rule: Rule, hours: Sequence[Difference]) -> list[int]:
    """All rows but `own` by what they may gain, the most first: as in `choose`, but none is ruled out."""
    cost = [cost_difference(outcomes[own], each).share for each in outcomes]

    def gained(n: int) -> float:
        pairs = [(hours[n].share, Difference(cost[n], None)) if part.aim == "hours" else (cost[n], hours[n]) for part in rule.parts]
        likely = [part.likely(kept) for part, (_, kept) in zip(rule.parts, pairs, strict=True)]
        return min(gain * p if math.isfinite(gain) else gain for p, (gain, _) in zip(likely, pairs, strict=True))

    return sorted((n for n in range(len(outcomes)) if n != own), key=lambda n: (gained(n), n))


def promising(outcomes: Sequence[Each], own: int, rule: Rule, most: int, hours: Sequence[Difference] | None = None) -> list[int]:
    """Rows to go on with, the most promising first: by turns the best by the rule and the best by Pareto rank, `own` not counted.

    With both aims, by turns of each. `hours` as in `choose`.
    """
    hours = [hours_difference(outcomes[own], each) for each in outcomes] if hours is None else hours
    if len(rule.parts) > 1:
        each = [promising(outcomes, own, part, len(outcomes), hours) for part in rule.parts]
        return list(dict.fromkeys(n for pair in zip(*each, strict=True) for n in pair))[:most]
    cost = [cost_difference(outcomes[own], one) for one in outcomes]
    rank = ranks([(h.share, c.share) for h, c in zip(hours, cost, strict=True)])
    others = [n for n in range(len(outcomes)) if n != own]
    by_rule = leading(outcomes, own, rule, hours)
    by_rank = sorted(others, key=lambda n: (rank[n], n))
    pairs = [n for pair in zip(by_rule, by_rank, strict=True) for n in pair]
    return list(dict.fromkeys(pairs))[:most]
