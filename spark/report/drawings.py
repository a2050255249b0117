"""Drawings of this room's pages: histogram, week, lines over time, points with a fit, matrix. Inline SVG, styled by the page.

Called by `spark.report.calibration` and `spark.report.backtest`. Each takes plain numbers and the words for its axes, and gives None where
there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite, log10

from optimizer.report.markup import Child, Markup, el
from optimizer.report.panel import NARROW, WIDE, Panel, Words, line, or_zero, signed_percent
from optimizer.report.scales import Scale, ticks
from optimizer.report.units import percent
from spark.report.evidence import Histogram

PANEL = Panel(NARROW, 220, left=70, right=24, top=14, bottom=34)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
Points = Sequence[tuple[float, float]]


def histogram_drawing(shown: Histogram, edges: Sequence[float], label: str, x_words: str) -> Markup | None:
    """Counts of shares; `edges` are marked, and bars outside of the outermost are of another colour."""
    most = max(shown.counts)
    if not most:
        return None
    total = sum(shown.counts)
    x, y = PANEL.across(shown.low, shown.high), PANEL.upward(0.0, 1.05 * most / total)
    parts: list[Child] = [
        PANEL.grid(y, ticks(y.low, y.high, 5), or_zero(percent)),
        PANEL.below(x, ticks(x.low, x.high, 6), or_zero(signed_percent), x_words),
    ]
    if edges:
        parts.append(PANEL.target_range(x(min(edges)), x(max(edges))))
    for i, number in enumerate(shown.counts):
        if not number:
            continue
        begin = shown.low + i * shown.width
        outside = bool(edges) and not (min(edges) <= begin + shown.width / 2 <= max(edges))
        span = f"{percent(begin, signed=True)} to {percent(begin + shown.width, signed=True)}"
        top = y(number / total)
        parts.append(
            el(
                "rect", el("title", f"{span}: {number:,} ({percent(number / total)})"), x=x(begin) + 0.3, y=top,
                width=max(x(begin + shown.width) - x(begin) - 0.6, 0.6), height=PANEL.base - top,
                class_="bar beyond" if outside else "bar",
            )
        )  # fmt: skip
    for edge in edges:
        parts.append(el("line", x1=x(edge), x2=x(edge), y1=PANEL.top, y2=PANEL.base, class_="edge"))
    return PANEL.svg(label, parts)


def week_drawing(profile: Sequence[float], label: str) -> Markup | None:
    """The hours of a week as a map: a row a day, the darker the more load; 168 values over their mean."""
    if len(profile) != 168:
        return None
    low, high = min(profile), max(profile)
    tall = 22.0
    panel = replace(PANEL, height=round(PANEL.top + 7 * tall + 36), bottom=36)
    wide = (panel.end - panel.left) / 24
    parts: list[Child] = []
    for hour, value in enumerate(profile):
        day, of_day = divmod(hour, 24)
        strength = 0.08 + 0.92 * ((value - low) / (high - low) if high > low else 0.0)
        title = el("title", f"{DAYS[day]} {of_day:02d}:00 UTC: {percent(value)} of the mean")
        x, y = panel.left + of_day * wide, panel.top + day * tall
        parts.append(
            el("rect", title, x=x, y=y, width=wide - 1, height=tall - 1, class_="cell", fill_opacity=f"{strength:.2f}")
        )
    for day, name in enumerate(DAYS):
        parts.append(el("text", name, x=panel.left - 8, y=panel.top + day * tall + 15, class_="tick end"))
    for of_day in range(0, 24, 3):
        parts.append(el("text", f"{of_day:02d}", x=panel.left + (of_day + 0.5) * wide, y=panel.top + 7 * tall + 13, class_="tick mid"))
    words = f"hour of the day, UTC; from {percent(low)} to {percent(high)} of the mean"
    parts.append(panel.title(words))
    return panel.svg(label, parts)


def series_drawing(
    lines: Sequence[tuple[str, Sequence[float], Sequence[float]]], words: Words, label: str, wide: bool = False, from_zero: bool = True
) -> Markup | None:
    """Lines over time. Each: style (``""``, ``second``, ``ahead``), Unix seconds, values."""
    drawn = [(style, [(t, v) for t, v in zip(times, values, strict=False) if isfinite(v)]) for style, times, values in lines]
    every = [p for _, points in drawn for p in points]
    if len(every) < 2:
        return None
    panel = replace(PANEL, width=WIDE) if wide else PANEL
    begin, end = min(t for t, _ in every), max(t for t, _ in every)
    bottom = 0.0 if from_zero else min(v for _, v in every)
    x, y = panel.across(begin, end), panel.upward(bottom, (max(v for _, v in every) or 1.0) * 1.06)
    parts: list[Child] = [panel.grid(y, ticks(y.low, y.high, 5), or_zero(words)), *_time_marks(panel, x)]
    parts += [line(points, x, y, f"series {style}".strip()) for style, points in drawn if points]
    return panel.svg(label, parts)


def scatter_drawing(
    points: Points, fit: Points, limit: float | None, x_words: Words, y_words: Words, x_title: str, y_title: str, label: str
) -> Markup | None:
    """Points with the line fitted to them and a limit; the vertical axis is logarithmic where values span more than a factor of 8."""
    good = [(a, b) for a, b in points if isfinite(a) and isfinite(b)]
    if len(good) < 2:
        return None
    heights = sorted(b for _, b in good if b > 0)
    steep = bool(heights) and heights[-1] > 8 * heights[len(heights) // 50]
    shown = [p for p in good if p[1] > 0] if steep else good
    fitted = [p for p in fit if isfinite(p[1]) and (p[1] > 0 or not steep)]

    def tall(value: float) -> float:
        return log10(value) if steep else value

    high = max(b for _, b in shown)
    panel = replace(PANEL, top=PANEL.top + 10)
    x = panel.across(min(0.0, *(a for a, _ in shown)), max([a for a, _ in shown] + ([limit] if limit else [])) * 1.04)
    y = panel.upward(tall(heights[0]) - 0.05 if steep else 0.0, tall(high) + (0.05 if steep else 0.06 * high))
    marks = _log_marks(y) if steep else ticks(y.low, y.high, 5)
    parts: list[Child] = [
        panel.grid(y, marks, or_zero(y_words), tall),
        panel.below(x, ticks(x.low, x.high, 6), or_zero(x_words), x_title),
    ]
    parts.append(el("text", y_title + (", logarithmic" if steep else ""), x=panel.left, y=panel.top - 12, class_="tick"))
    parts += [
        el("circle", el("title", f"{x_words(a)}, {y_words(b)}"), cx=x(a), cy=y(tall(b)), r=2.4, class_="point")
        for a, b in shown
    ]  # fmt: skip
    if len(fitted) > 1:
        parts.append(line([(a, tall(b)) for a, b in fitted], x, y, "fit"))
    if limit:
        at = x(limit)
        parts.append(el("line", x1=at, x2=at, y1=panel.top, y2=panel.base, class_="limit"))
        parts.append(el("text", x_words(limit), x=at - 5, y=panel.base - 6, class_="say limit-words end"))
    return panel.svg(label, parts)


def diagonal(points: Points) -> tuple[tuple[float, float], ...]:
    """The line on which both are equal, over the points' range."""
    values = [v for p in points for v in p if isfinite(v)]
    return ((min(values), min(values)), (max(values), max(values))) if values else ()


def matrix_drawing(names: Sequence[str], values: dict[tuple[str, str], float], label: str) -> Markup | None:
    """Correlations as squares: the darker the stronger; negative ones of another colour."""
    if len(names) < 2 or not values:
        return None
    left, wide, tall = 130.0, 104.0, 34.0
    top = PANEL.top
    parts: list[Child] = []
    for row, one in enumerate(names):
        parts.append(el("text", one, x=left - 8, y=top + (row + 0.5) * tall + 3, class_="tick end"))
        parts.append(el("text", one, x=left + (row + 0.5) * wide, y=top + len(names) * tall + 14, class_="tick mid"))
        for column, other in enumerate(names):
            value = 1.0 if row == column else values.get((one, other), values.get((other, one)))
            x, y = left + column * wide, top + row * tall
            parts.append(el("rect", x=x, y=y, width=wide - 2, height=tall - 2, class_="cell-back"))
            if value is None:
                continue
            kind = "cell negative" if value < 0 else "cell"
            title = el("title", f"{one} and {other}: {value:+.2f}")
            shade = f"{0.55 * abs(value):.2f}"
            parts.append(el("rect", title, x=x, y=y, width=wide - 2, height=tall - 2, class_=kind, fill_opacity=shade))
            if row != column:
                parts.append(el("text", f"{value:.2f}", x=x + wide / 2 - 1, y=y + tall / 2 + 3, class_="say mid"))
    return replace(PANEL, width=WIDE, height=round(top + len(names) * tall + 24)).svg(label, parts)


def share_bar(share: float) -> Markup:
    """A small bar of a share 0..1, for tables."""
    return el(
        "svg", el("rect", x=0, y=0, width=100, height=6, class_="track"), el("rect", x=0, y=0, width=100 * share, height=6, class_="after"),
        viewBox="0 0 100 6", preserveAspectRatio="none", class_="share-bar", aria_hidden="true",
    )  # fmt: skip


def seconds(time: str) -> float:
    """Unix seconds of an ISO 8601 time."""
    return datetime.fromisoformat(time).timestamp()


# -- axes ------------------------------------------------------------------------------------------------------------------


def _log_marks(y: Scale) -> list[float]:
    """Round values on a scale of logarithms."""
    steps = (1, 2, 5) if y.high - y.low < 2.5 else (1,)
    marks = [m * 10.0**k for k in range(int(y.low) - 2, int(y.high) + 2) for m in steps]
    return [mark for mark in marks if y.low <= log10(mark) <= y.high]


def _time_marks(panel: Panel, x: Scale) -> list[Child]:
    """Dates, or times of day where the span is short; at whole days or hours."""
    span = x.high - x.low
    most = 12 if panel.width == WIDE else 6
    units = (3600.0, 6 * 3600.0, 86_400.0, 2 * 86_400.0, 7 * 86_400.0, 28 * 86_400.0, 91 * 86_400.0, 364 * 86_400.0)
    step = next((u for u in units if span / u <= most), units[-1])
    marks = [m * step for m in range(int(-(-x.low // step)), int(x.high // step) + 1)]
    shape = "%H:%M" if step < 86_400 else "%-d %b"
    found: list[Child] = [
        panel.mark(x(m), datetime.fromtimestamp(m, UTC).strftime(shape)) for m in marks if x.start + 8 <= x(m) <= x.end - 8
    ]
    return [*found, panel.title("time, UTC")]
