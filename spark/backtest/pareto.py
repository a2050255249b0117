"""What is better in two things at once: ranks, the Pareto set, and the rule by which one configuration is chosen. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from spark.backtest.outcome import Outcome

Point = tuple[float, float]
Aim = Literal["hours", "cost"]
WORTH = 0.02  # share of the hours (or of the cost) that must be gained, else the goals stay as they are


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
class Choice:
    """Which was chosen (a row), and by what words."""

    row: int
    why: str


def choose(outcomes: Sequence[Outcome], own: int, aim: Aim) -> Choice:
    """The rule: with aim ``hours`` the fewest broker-hours out of band at no more cost than row `own`; with ``cost`` the least cost at no
    more such hours. Ties go to the better other number, then to the earlier row; `own` stays where nothing gains `WORTH`."""

    def mine(n: int) -> Point:
        hours, cost = outcomes[n].out_of_band_hours, outcomes[n].cost
        return (hours, cost) if aim == "hours" else (cost, hours)

    limit, spent = mine(own)
    open_to = [n for n in range(len(outcomes)) if mine(n)[1] <= spent]
    best = min(open_to, key=lambda n: (*mine(n), n))
    what, kept = (
        ("broker-hours out of band", "cost") if aim == "hours" else ("cost", "broker-hours out of band")
    )
    if mine(best)[0] > (1.0 - WORTH) * limit:
        return Choice(
            own,
            f"nothing that was tried has {WORTH:.0%} less {what} at no more {kept}: the goals stay as they are",
        )
    return Choice(
        best, f"the least {what} of all with no more {kept} than the goals as they are, on the training span"
    )
