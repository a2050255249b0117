"""The alternatives of a backtest: hours outside the target range against bytes moved, as a drawing and as a table.

Called by both pages. The default and the chosen configuration are told by shape as well as by colour.
"""

from __future__ import annotations

from collections.abc import Sequence

from goals.calibration import Tried
from optimizer.report.markup import Child, Markup, el, join
from optimizer.report.panel import WIDE, Panel, line
from optimizer.report.scales import ticks
from optimizer.report.units import percent, size
from spark.report.page import Cell, Column, legend, table

PANEL = Panel(WIDE, 360, left=76, right=30, top=20, bottom=40)
KIND = "usage_distribution-"  # what the names of goals start with that have none of their own
MOST_DOTS = 1_500
STAR = ((0, -10), (2.9, -3.4), (10, -3), (4.6, 1.6), (6.4, 8.6), (0, 4.8), (-6.4, 8.6), (-4.6, 1.6), (-10, -3), (-2.9, -3.4))


def is_default(tried: Tried) -> bool:
    """Whether it is what runs without a calibration, as its description says."""
    return "default" in tried.what.lower()


def chosen_of(tried: Sequence[Tried]) -> Tried | None:
    return next((t for t in tried if t.chosen), None)


def default_of(tried: Sequence[Tried]) -> Tried | None:
    return next((t for t in tried if is_default(t)), None)


def pareto_drawing(tried: Sequence[Tried]) -> Markup | None:
    """Every configuration at its bytes and hours, the Pareto set joined. Down and left is better."""
    if not tried:
        return None
    shown = sorted(tried, key=lambda t: (t.chosen, is_default(t), t.pareto))[-MOST_DOTS:]
    x, y = PANEL.across(*_reach([t.bytes_moved for t in shown])), PANEL.upward(*_reach([t.out_of_band_hours for t in shown]))
    parts: list[Child] = [
        PANEL.grid(y, ticks(y.low, y.high, 6), lambda hours: f"{hours:,.6g}"),
        PANEL.below(x, ticks(x.low, x.high, 8), size, "bytes moved"),
        el("text", "broker-hours outside the target range", x=PANEL.left, y=PANEL.top - 8, class_="tick"),
    ]
    front: list[tuple[float, float]] = []  # the set is that of the span searched on; here some of it is beaten by others
    for point in sorted((t.bytes_moved, t.out_of_band_hours) for t in shown if t.pareto):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    if len(front) > 1:
        steps = [front[0]]
        for one in front[1:]:
            steps += [(one[0], steps[-1][1]), one]
        parts.append(line(steps, x, y, "front"))
    parts += [_mark(t, x(t.bytes_moved), y(t.out_of_band_hours)) for t in shown]
    label = f"broker-hours outside the target range against bytes moved of {len(tried)} configurations"
    return PANEL.svg(label, parts)


def pareto_legend(tried: Sequence[Tried]) -> Markup:
    keys = [("round before", "tried"), ("round front", "Pareto set: no configuration is better in both")]
    if default_of(tried) is not None:
        keys.append(("diamond", "default goals"))
    if chosen_of(tried) is not None:
        keys.append(("star", "chosen"))
    return legend(*keys)


def tried_table(tried: Sequence[Tried]) -> Markup | None:
    """All configurations, the chosen one and the default first, then the Pareto set, by hours outside the target range."""
    columns = [
        Column("configuration"), Column("weights"), Column("bounds"), Column("plans"), Column("outside", True),
        Column("against default", True), Column("bytes moved", True), Column("against default", True), Column("actions", True),
        Column("moved back", True), Column("peak", True),
    ]  # fmt: skip
    default = default_of(tried)
    order = sorted(tried, key=lambda t: (not t.chosen, not is_default(t), not t.pareto, t.out_of_band_hours, t.bytes_moved))
    return table("Configurations on the held-out part", columns, [_row(t, default, i) for i, t in enumerate(order, 1)])


def described(tried: Tried, default: Tried | None = None) -> str:
    """What a configuration is, in one line; of weights and bounds those that are not the default's."""
    weights, bounds = (default.weights, default.bounds) if default is not None else ({}, {})
    parts = [f"{name} weight {value:g}" for name, value in tried.weights.items() if weights.get(name) != value]
    parts += [f"{name} bound {percent(value)}" for name, value in tried.bounds.items() if bounds.get(name) != value]
    return ", ".join([*(parts or ["weights and bounds as they are"]), *_plans(tried)])


def _plans(tried: Tried) -> list[str]:
    """When plans are made, and what it changes of the policy and of the budget of plans, by the names that these have in files."""
    over = [f"on loads over {duration(tried.horizon)}"] if tried.horizon is not None else []
    asked = {
        "max_moves": tried.max_moves, "min_gain": tried.min_gain, "move_cost": tried.move_cost, "hysteresis from": tried.start,
    }  # fmt: skip
    named = [f"{name} {value:g}" for name, value in asked.items() if value is not None]
    return [f"every {duration(tried.cadence)}", *over, *named]


def duration(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"


def _row(tried: Tried, default: Tried | None, place: int) -> list[Cell]:
    badges = [
        el("span", words, class_=f"badge {mood}")
        for holds, words, mood in (
            (tried.chosen, "chosen", "good"),
            (is_default(tried), "default", "bad"),
            (tried.pareto, "Pareto", "some"),
        )
        if holds
    ]  # fmt: skip
    name: Child = [tried.what.replace(KIND, "") or f"no. {place}", " " if badges else None, join(badges, " ")]
    was_out, was_moved = (0.0, 0.0) if default is None else (default.out_of_band_hours, default.bytes_moved)
    against = tried.out_of_band_hours / was_out - 1 if was_out > 0 else None
    moved = tried.bytes_moved / was_moved - 1 if was_moved > 0 else None
    return [
        Cell(name),
        Cell(_pairs(tried.weights, lambda v: f"{v:g}")),
        Cell(_pairs(tried.bounds, percent)),
        Cell(el("span", *(el("span", words) for words in _plans(tried)), class_="lines")),
        Cell(f"{tried.out_of_band_hours:,.1f} h", tried.out_of_band_hours),
        Cell(_share(against, tried.out_of_band_error, was_out), against),
        Cell(size(tried.bytes_moved), tried.bytes_moved, title=f"{tried.bytes_moved:,.0f} bytes"),
        Cell(_share(moved, tried.bytes_error, was_moved), moved),
        Cell(f"{tried.actions:,}", tried.actions),
        Cell(f"{tried.moved_back:,}", tried.moved_back),
        Cell(percent(tried.peak_utilization), tried.peak_utilization),
    ]


def _share(share: float | None, error: float | None, of: float) -> str:
    """``−12% ± 3%``, with the standard error where it is known."""
    if share is None:
        return "–"
    return percent(share, signed=True) + (f" ± {percent(error / of)}" if error is not None and of > 0 else "")


def _pairs(values: dict[str, float], words: object) -> Child:
    assert callable(words)
    if not values:
        return "–"
    return el("span", *(el("span", f"{name.removeprefix(KIND)} {words(value)}") for name, value in values.items()), class_="lines")


def _mark(tried: Tried, x: float, y: float) -> Markup:
    figures = f"{tried.out_of_band_hours:,.1f} broker-hours outside the target range, {size(tried.bytes_moved)} moved"
    title = el("title", f"{tried.what or 'tried'}: {figures}; {described(tried)}")
    if tried.chosen:
        points = " ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in STAR)
        return el("polygon", title, points=points, class_="tried chosen")
    if is_default(tried):
        points = f"{x:.1f},{y - 8:.1f} {x + 8:.1f},{y:.1f} {x:.1f},{y + 8:.1f} {x - 8:.1f},{y:.1f}"
        return el("polygon", title, points=points, class_="tried standard")
    return el("circle", title, cx=x, cy=y, r=5.0 if tried.pareto else 3.6, class_="tried pareto" if tried.pareto else "tried")


def _reach(values: Sequence[float]) -> tuple[float, float]:
    """From a little below the least to a little above the most; from zero where that is near."""
    low, high = min(values), max(values)
    spare = (high - low) * 0.06 or max(high * 0.1, 1.0)
    return 0.0 if low < 0.5 * high else low - spare, high + spare
