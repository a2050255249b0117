"""Strips of the terminal report: where a broker stands between -100% and +100% of the mean, before and
after. Called by `text`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optimizer.plan import BrokerOutcome, Plan

if TYPE_CHECKING:
    from rich.text import Text

    from optimizer.report.paper import Paper

REACH = 1.0  # deviation at the ends
NARROWEST, WIDEST = 21, 53  # columns


@dataclass(frozen=True, slots=True)
class Deviation:
    """Signed deviations of a broker in one goal, as shares of its own mean, and the band around it."""

    goal: str
    before: float
    after: float
    low: float
    high: float
    is_out: bool  # would stay out of it


def worst_deviation(plan: Plan, b: BrokerOutcome) -> Deviation | None:
    """In the goal where the broker stays out, else in the one it deviates most in, before or after; None
    where no goal judges it (a broker that would be emptied is outside no target range).
    """
    if not b.scores_before and not b.scores_after:
        return None
    found: list[tuple[bool, float, int, Deviation]] = []
    for rank, g in enumerate(plan.goals):
        band = plan.bands.get(g.name, {}).get(b.id)
        if band is None or band.mean <= 0 or g.resource is None:
            continue
        before, after = (of.get(g.resource, 0.0) / band.mean - 1 for of in (b.before, b.after))
        deviation = Deviation(
            g.name, before, after, band.low / band.mean - 1, band.high / band.mean - 1, g.name in b.violates
        )
        found.append((g.name in b.violates, max(abs(before), abs(after)), -rank, deviation))
    return max(found, key=lambda item: item[:3])[3] if found else None


def strip(d: Deviation, width: int, paper: Paper) -> Text:
    """`width` columns: the band, the way from before to after, and both ends."""
    band, way, first_sign, then_sign, mean = _signs(paper)
    cells = [(" ", "")] * width
    for i in range(_at(d.low, width), _at(d.high, width) + 1):
        cells[i] = (band, "dim")
    cells[width // 2] = (mean, "dim")
    first, then = _at(d.before, width), _at(d.after, width)
    for i in range(min(first, then) + 1, max(first, then)):
        cells[i] = (way, "dim")
    cells[first] = (first_sign, "")
    cells[then] = (then_sign, "bold red" if d.is_out else "bold green")
    text = paper.text("")
    for sign, style in cells:
        text.append(sign, style)
    return text


def strip_width(console_width: int, taken: int) -> int:
    """Columns for strips beside others that take `taken`: odd, so that the mean has one of its own, and within reason."""
    room = min(max(console_width - taken, NARROWEST), WIDEST)
    return room if room % 2 else room - 1


def scale(width: int) -> str:
    """The head over strips of `width` columns."""
    return "-100%" + "mean".center(width - 10) + "+100%"


def legend(paper: Paper) -> str:
    band, _, before, after, _ = _signs(paper)
    return f"{before} before  {after} after  {band} target range; beyond ±100% at the end of the strip"


def _signs(paper: Paper) -> tuple[str, str, str, str, str]:
    return ("=", "-", "o", "#", "|") if paper.ascii_only else ("░", "─", "○", "●", "│")


def _at(share: float, width: int) -> int:
    clamped = min(max(share, -REACH), REACH)
    return round((clamped + REACH) / (2 * REACH) * (width - 1))
