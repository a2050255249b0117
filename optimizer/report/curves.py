"""Score curves of the HTML report: what a broker scores at each deviation, with the brokers on it before
and after.

Inline SVG, styled by the page. The curve is that of the broker with the median mean; every broker stands at
its own score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optimizer.plan import Band, BrokerOutcome, GoalOutcome
from optimizer.report.markup import Child, Markup, el
from optimizer.report.panel import NARROW, Panel, line, signed_percent
from optimizer.report.scales import Scale, ticks
from optimizer.report.units import count, percent

PANEL = Panel(NARROW, 190, left=40, right=14, top=16, bottom=32)
MOST_DOTS = 120
FARTHEST = 3.0  # deviation at which the drawing ends
SAMPLES = 160


@dataclass(frozen=True, slots=True)
class Place:
    """One broker on the curve: signed deviation from its own mean, score, and `style`: before, after, or out (after,
    and it would stay outside its target range).
    """

    broker: int
    deviation: float
    score: float
    style: str


def score_curve(goal: GoalOutcome, brokers: Sequence[BrokerOutcome], bands: Mapping[int, Band]) -> Markup | None:
    """The drawing; None where no broker has a positive mean."""
    judged = [b for b in brokers if b.id in bands and bands[b.id].mean > 0 and goal.name in b.scores_after]
    if not judged or goal.resource is None:
        return None
    before = [_place(b.id, b.before, b.scores_before, goal, bands[b.id], "before") for b in judged]
    after = [
        _place(b.id, b.after, b.scores_after, goal, bands[b.id], "out" if goal.name in b.violates else "after")
        for b in judged
    ]
    band = sorted((bands[b.id] for b in judged), key=lambda x: x.mean)[len(judged) // 2]
    bound, var = band.high / band.mean - 1, band.var_high / band.mean - 1
    farthest = max([abs(p.deviation) for p in (*before, *after)] + [var * 1.1])
    reach = min(farthest * 1.04, FARTHEST)
    x, y = PANEL.across(max(-reach, -1.0), reach), PANEL.upward(0.0, 1.0)
    parts: list[Child] = [
        PANEL.grid(y, (0.0, 0.5, 1.0), lambda score: f"{score:g}"),
        PANEL.below(x, ticks(x.low, x.high, 8), signed_percent, "deviation from the broker's own mean"),
        PANEL.target_range(x(-bound), x(bound)),
        line(_samples(band, x, _is_absolute(after + before, bands)), x, y, "curve"),
    ]
    parts += _dots(before, x, y) + _dots(after, x, y)
    out = sum(p.style == "out" for p in after)
    label = f"score curve of {goal.name}: {count(len(judged), 'broker')}, {out} would be outside the target range"
    return PANEL.svg(label, parts)


def _place(
    broker: int, loads: Mapping[str, float], scores: Mapping[str, float], goal: GoalOutcome, band: Band, style: str
) -> Place:
    load = loads.get(goal.resource or "", 0.0)
    return Place(broker, load / band.mean - 1, scores.get(goal.name, 1.0), style)


def _samples(band: Band, x: Scale, absolute: bool) -> list[tuple[float, float]]:
    """Points of the curve, its corners among them."""
    from goals.score import distribution_score

    bound, var = band.high - band.mean, band.var_high - band.mean
    shares = {x.low + (x.high - x.low) * i / SAMPLES for i in range(SAMPLES + 1)}
    shares |= {s for c in (bound, var) for s in (c / band.mean, -c / band.mean) if x.low <= s <= x.high}
    return [
        (s, float(distribution_score(band.mean * (1 + s), band.mean, bound, var, absolute, 0.0))) for s in sorted(shares)
    ]


def _is_absolute(places: Sequence[Place], bands: Mapping[int, Band]) -> bool:
    """Whether the scores beyond `var` follow the absolute tail (the plan does not say which)."""
    from goals.score import distribution_score

    def error(absolute: bool) -> float:
        total = 0.0
        for p in far:
            b = bands[p.broker]
            load, bound, var = b.mean * (1 + p.deviation), b.high - b.mean, b.var_high - b.mean
            total += abs(p.score - float(distribution_score(load, b.mean, bound, var, absolute, 0.0)))
        return total

    far = [p for p in places if p.score < 0.1][:200]
    return bool(far) and error(True) < error(False)


def _dots(places: Sequence[Place], x: Scale, y: Scale) -> list[Child]:
    """A dot a broker; beyond `MOST_DOTS` a dot for those at nearly the same place, its area their number."""
    tally: Counter[tuple[float, float, str, str]] = Counter()
    many = len(places) > MOST_DOTS
    for p in places:
        if many:
            tally[(round(p.deviation, 2), round(p.score, 2), p.style, "")] += 1
        else:
            tally[(p.deviation, p.score, p.style, f"broker {p.broker}: ")] += 1
    dots: list[Child] = []
    for (deviation, score, style, who), number in sorted(tally.items()):
        moment = "before" if style == "before" else "after"
        text = f"{who or count(number, 'broker') + ' near '}{percent(deviation, signed=True)}, score {score:.3f} {moment}"
        radius = min(2.2 + number**0.5 * 0.7, 9.0) if many else 4.0
        dots.append(el("circle", el("title", text), cx=x(deviation), cy=y(score), r=radius, class_=f"dot {style}"))
    return dots

