"""Figures of the HTML report: broker charts and score curves with captions and a legend. Called by `html`."""

from __future__ import annotations

from collections.abc import Sequence

from optimizer.plan import GoalOutcome, Plan
from optimizer.report.charts import MOST_BARS, Reading, broker_chart, is_wide, readings
from optimizer.report.curves import score_curve
from optimizer.report.frame import figure, legend
from optimizer.report.labels import goal_labels
from optimizer.report.markup import Child, Markup, el
from optimizer.report.units import amount, count, percent, resource_label


def broker_figures(plan: Plan) -> list[Child]:
    """A chart for each resource that a distribution goal has a band for; the other resources folded away
    below.
    """
    banded: dict[str, GoalOutcome] = {}
    for g in plan.goals:
        if g.resource is not None and plan.bands.get(g.name) and g.resource not in banded:
            banded[g.resource] = g
    rest = sorted({r for b in plan.brokers for r in b.before} - set(banded))
    wide = is_wide(len(plan.brokers))
    figures: list[Child] = []
    for resource, g in banded.items():
        read = readings(plan.brokers, resource, g.name, plan.bands[g.name])
        if read:
            figures.append(figure(resource_label(resource), _band_words(g, read), broker_chart(resource, read), wide))
    others: list[Child] = []
    for resource in rest:
        read = readings(plan.brokers, resource, "", {})
        if any(r.before or r.after for r in read):
            others.append(figure(resource_label(resource), "no distribution goal", broker_chart(resource, read), wide))
    parts: list[Child] = []
    if figures:
        states = [s for s in ("draining", "dead", "excluded") if any(b.state == s for b in plan.brokers)]
        parts += [_legend("bars", states), el("div", *figures, class_="figures")]
    if others:
        names = el("summary", f"{count(len(others), 'more resource')} without a distribution goal")
        parts.append(el("details", names, el("div", *others, class_="figures")))
    return parts


def curve_figures(plan: Plan) -> list[Child]:
    """The score curve of each distribution goal, with the brokers on it."""
    labels = goal_labels(plan)
    figures: list[Child] = []
    for g in plan.goals:
        drawing = score_curve(g, plan.brokers, plan.bands[g.name]) if g.name in plan.bands else None
        if drawing is None or g.before is None or g.after is None:
            continue
        words = f"worst deviation {percent(g.before.max_deviation)}, would be {percent(g.after.max_deviation)}"
        figures.append(figure(labels[g.name], words, drawing, wide=False))
    if not figures:
        return []
    return [_legend("dots"), el("div", *figures, class_="figures")]


def _band_words(g: GoalOutcome, read: list[Reading]) -> str:
    bands = [r.band for r in read if r.band is not None and r.band.mean > 0]
    if not bands or g.resource is None:
        return ""
    means = sorted(b.mean for b in bands)
    low, high = amount(means[0], g.resource), amount(means[-1], g.resource)
    mean = f"mean {low}" if low == high else f"means {low} to {high}, by capacity or rack"
    width = percent(bands[0].high / bands[0].mean - 1)
    shape = f"; {len(read):,} brokers as a histogram" if len(read) > MOST_BARS else ""
    return f"{mean}, target range ±{width}{shape}"


def _legend(kind: str, states: Sequence[str] = ()) -> Markup:
    words = (
        ("before", "before"),
        ("after", "after, within the target range"),
        ("out", "after, outside it"),
        ("band", "target range"),
        *((state, f"after, {state} broker") for state in states),
    )
    return legend(kind, *words)
