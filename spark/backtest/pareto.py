"""What is better in two things at once: ranks, the Pareto set, and the rule by which one configuration is chosen. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from spark.backtest.difference import Difference, Each, difference
from spark.backtest.outcome import Outcome

Point = tuple[float, float]
Aim = Literal["hours", "cost", "both"]
WORTH = 0.02  # share of the hours (or of the cost) that must be gained, else the goals stay as they are
EQUAL = 0.01  # share by which hours (or costs) may differ and count as equal
ROOM = 0.02  # more than `EQUAL` that a configuration may be off by on a part of the training span and not be given up for it


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
    """What to gain, and what counts as equal: ``hours`` wants the fewest broker-hours out of band at equal cost, ``cost`` the least cost at
    equal broker-hours, ``both`` whichever of the two gains the larger share. Equal is at most the share `equal` more."""

    aim: Aim = "hours"
    equal: float = EQUAL

    @property
    def parts(self) -> tuple[Rule, ...]:
        """The rules that it is made of: itself, or one for each aim."""
        return (replace(self, aim="hours"), replace(self, aim="cost")) if self.aim == "both" else (self,)

    @property
    def words(self) -> tuple[str, str]:
        """What is gained, and what is kept."""
        return ("broker-hours out of band", "cost") if self.aim == "hours" else ("cost", "broker-hours out of band")

    def gained(self, outcome: Outcome) -> float:
        """What is to become less."""
        return outcome.out_of_band_hours if self.aim == "hours" else outcome.cost

    def kept(self, outcome: Outcome) -> float:
        """What is to stay equal."""
        return outcome.cost if self.aim == "hours" else outcome.out_of_band_hours

    def excess(self, own: Each, other: Each) -> float:
        """Share by which `other` has more than `own` of what is to stay equal; of hours with one standard error on top, so that luck does
        not make two things equal."""
        if self.aim == "hours":
            return cost_difference(own, other).share
        hours = hours_difference(own, other)
        return hours.share + hours.spare


def hours_difference(own: Each, other: Each) -> Difference:
    """By what share `other` has more broker-hours out of band."""
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


def choose(outcomes: Sequence[Each], own: int, rule: Rule) -> Choice:
    """The one with the least of what the rule wants to gain, of those that are equal to row `own` in what it keeps. Ties go to the better
    other number, then to the earlier row; `own` stays where nothing gains `WORTH`. With both aims the one that gains the larger share."""
    if len(rule.parts) > 1:
        made = [choose(outcomes, own, part) for part in rule.parts]
        shares = [_gain(outcomes, own, choice.row, part) for choice, part in zip(made, rule.parts, strict=True)]
        return made[shares.index(max(shares))]
    sums = [sum(each, Outcome()) for each in outcomes]
    open_to = [n for n, each in enumerate(outcomes) if n == own or rule.excess(outcomes[own], each) <= rule.equal]
    best = min(open_to, key=lambda n: (rule.gained(sums[n]), rule.kept(sums[n]), n))
    what, kept = rule.words
    equal = f"equal {kept} (within {rule.equal:.1%}, with a standard error to spare)"
    if rule.gained(sums[best]) > (1.0 - WORTH) * rule.gained(sums[own]):
        return Choice(own, f"nothing that was tried lowers {what} by {WORTH:.0%} at {equal}: the goals stay as they are")
    return Choice(best, f"the lowest {what} of all at {equal}, against the goals as they are, on the training span")


def _gain(outcomes: Sequence[Each], own: int, row: int, rule: Rule) -> float:
    """Share of what a rule wants to gain that a row has less than `own`."""
    before, after = (rule.gained(sum(outcomes[n], Outcome())) for n in (own, row))
    return 1.0 - after / before if before > 0.0 else 0.0


def promising(outcomes: Sequence[Each], own: int, rule: Rule, most: int) -> list[int]:
    """Rows to go on with, the most promising first: by turns the best by the rule and the best by Pareto rank, `own` not counted.

    The rule has `ROOM` here: what is known of a configuration is a part of the training span. With both aims, by turns of each.
    """
    if len(rule.parts) > 1:
        each = [promising(outcomes, own, part, len(outcomes)) for part in rule.parts]
        return list(dict.fromkeys(n for pair in zip(*each, strict=True) for n in pair))[:most]
    sums = [sum(each, Outcome()) for each in outcomes]
    rank = ranks([(s.out_of_band_hours, s.cost) for s in sums])
    others = [n for n in range(len(outcomes)) if n != own]

    def off(n: int) -> float:
        return max(0.0, rule.excess(outcomes[own], outcomes[n]) - rule.equal - ROOM)

    by_rule = sorted(others, key=lambda n: (off(n), rule.gained(sums[n]), n))
    by_rank = sorted(others, key=lambda n: (rank[n], n))
    both = [n for pair in zip(by_rule, by_rank, strict=True) for n in pair]
    return list(dict.fromkeys(both))[:most]
