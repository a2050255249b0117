"""Broker charts of the HTML report: load of each broker before and after, one drawing a resource.

Bars with the band shaded for up to `MOST_BARS` brokers, a histogram of deviations beyond. Inline SVG,
styled by the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from cluster_model.resources import RESOURCES
from optimizer.plan import Band, BrokerOutcome
from optimizer.report.markup import Child, Markup, el
from optimizer.report.panel import NARROW, WIDE, Panel, or_zero, signed_percent
from optimizer.report.scales import Scale, ticks
from optimizer.report.units import amount, count, percent, resource_label

MOST_BARS = 120
WIDE_BARS = 36  # beyond, a chart takes the whole width
PANEL = Panel(NARROW, 216, left=66, right=10, top=16, bottom=30)
BROAD = replace(PANEL, width=WIDE)
MOST_STEP = 72.0
BINS = 40
OUT_OF_RANGE = 1.0  # deviation at which the histogram ends


@dataclass(frozen=True)
class Reading:
    """One broker in one resource; `band` None where no goal gives one. `is_out`: it would stay out of that band."""

    broker: BrokerOutcome
    before: float
    after: float
    band: Band | None
    is_out: bool


def readings(brokers: Sequence[BrokerOutcome], resource: str, goal: str, bands: Mapping[int, Band]) -> list[Reading]:
    """Brokers that report `resource`, ascending by id; a band (that of `goal`) only where the broker is judged."""
    return [
        Reading(
            b,
            b.before.get(resource, 0.0),
            b.after.get(resource, 0.0),
            bands.get(b.id) if b.scores_before or b.scores_after else None,
            goal in b.violates,
        )
        for b in sorted(brokers, key=lambda b: b.id)
        if resource in b.before or resource in b.after
    ]


def broker_chart(resource: str, read: Sequence[Reading]) -> Markup:
    """The drawing, as wide as the number of brokers asks for."""
    return _histogram(resource, read) if len(read) > MOST_BARS else _bars(resource, read)


def is_wide(brokers: int) -> bool:
    return WIDE_BARS < brokers <= MOST_BARS


def _bars(resource: str, read: Sequence[Reading]) -> Markup:
    panel = BROAD if is_wide(len(read)) else PANEL
    top = max([x for r in read for x in (r.before, r.after, r.band.high if r.band else 0.0)], default=0.0) or 1.0
    y = panel.upward(0.0, top * 1.06)
    room = panel.end - panel.left
    step = min(room / max(len(read), 1), MOST_STEP)
    start = panel.left + (room - step * len(read)) / 2
    parts: list[Child] = [_grid(panel, y, resource)]
    parts += [_band(r.band, start + i * step, step, y) for i, r in enumerate(read) if r.band]
    every = max(1, round(0.5 + _label_width(read) / step))
    for i, r in enumerate(read):
        x = start + i * step
        parts.append(_pair(resource, r, x, step, y))
        if i % every == 0:
            parts.append(panel.mark(x + step / 2, str(r.broker.id)))
    parts.append(panel.title("broker"))
    out = sum(r.is_out for r in read)
    who = f"{resource_label(resource)} of {count(len(read), 'broker')}"
    label = f"{who} before and after; {out} would be outside the target range"
    return panel.svg(label, parts)


def _pair(resource: str, r: Reading, x: float, step: float, y: Scale) -> Markup:
    base = PANEL.base
    broad, narrow = step * 0.78, max(step * 0.42, 1.0)
    before, after = y(r.before), y(r.after)
    bars: list[Child] = [
        el("title", _describe(resource, r)),
        el("rect", x=x, y=PANEL.top, width=step, height=PANEL.tall, class_="hit"),
        el("rect", x=x + (step - broad) / 2, y=before, width=broad, height=base - before, class_="before"),
        el(
            "rect",
            x=x + (step - narrow) / 2,
            y=after,
            width=narrow,
            height=base - after,
            class_="out" if r.is_out else "after" if r.broker.state == "active" else r.broker.state,
        ),
    ]
    if r.is_out:
        bars.append(_flag(x + step / 2, after, step, below=r.band is not None and r.after < r.band.mean))
    return el("g", *bars, class_="broker")


def _flag(x: float, top: float, step: float, *, below: bool) -> Markup:
    """A small triangle over a bar that ends outside its range, pointing to the side that it is on: told by shape as well as by colour."""
    size = min(step / 2, 4.5)
    low = max(top - 4, 2 + size * 1.5)
    high = low - size * 1.5
    base, tip = (high, low) if below else (low, high)
    return el("path", d=f"M{x - size:.1f} {base:.1f}h{2 * size:.1f}L{x:.1f} {tip:.1f}z", class_="flag")


def _band(band: Band, x: float, step: float, y: Scale) -> Markup:
    return el(
        "g",
        el(
            "rect",
            x=x,
            y=y(band.high),
            width=step + 0.05,
            height=max(y(band.low) - y(band.high), 1.0),
            class_="band",
        ),
        el("line", x1=x, x2=x + step, y1=y(band.mean), y2=y(band.mean), class_="mean"),
    )


def _histogram(resource: str, read: Sequence[Reading]) -> Markup:
    """Active brokers by deviation from their own mean."""
    read = [r for r in read if r.broker.state == "active"]
    if not read:
        return PANEL.svg(f"{resource_label(resource)}: no active broker", [])
    shares = [(_share(r, r.before, read), _share(r, r.after, read)) for r in read]
    reach = _reach(read, shares)
    bins, size = _bins(reach, _shared_band(read))
    reach = bins * size / 2
    before, after, out = [0] * bins, [0] * bins, [0] * bins
    for r, pair in zip(read, shares, strict=True):
        first, then = (min(max(int((share + reach) / size), 0), bins - 1) for share in pair)
        before[first] += 1
        after[then] += 1
        out[then] += r.is_out
    x, y = PANEL.across(-reach, reach), PANEL.upward(0.0, max(*before, *after) * 1.06)
    parts: list[Child] = [_grid(PANEL, y, "replicas")]
    widest = _shared_band(read)
    if widest is not None:
        parts.append(PANEL.target_range(x(-widest[0]), x(widest[1])))
    step = (PANEL.end - PANEL.left) / bins
    for i in range(bins):
        if before[i] or after[i]:
            brokers = f"{count(before[i], 'broker')} before, {after[i]:,} after"
            title = f"{_span(i, bins, reach)} of the mean: {brokers}"
            parts.append(_bin(title, PANEL.left + i * step, step, y, before[i], after[i], out[i], below=i < bins // 2))
    parts.append(PANEL.below(x, ticks(-reach, reach, 6), signed_percent, "deviation from the mean (height: number of brokers)"))
    label = (
        f"{resource_label(resource)}: {count(len(read), 'broker')} by deviation before and after; "
        f"{sum(out)} would be outside the target range"
    )
    return PANEL.svg(label, parts)


def _bin(title: str, x: float, step: float, y: Scale, before: int, after: int, out: int, *, below: bool) -> Markup:
    base = PANEL.base
    level = y(after - out)
    top = min(y(after), level - 2.0) if out else level
    return el(
        "g",
        el("title", title),
        el("rect", x=x, y=PANEL.top, width=step, height=PANEL.tall, class_="hit"),
        el("rect", x=x + 0.5, y=y(before), width=step - 1, height=base - y(before), class_="before"),
        el("rect", x=x + step * 0.25, y=level, width=step * 0.5, height=base - level, class_="after"),
        el("rect", x=x + step * 0.25, y=top, width=step * 0.5, height=level - top, class_="out") if out else None,
        _flag(x + step / 2, top, step, below=below) if out else None,
        class_="broker",
    )


def _span(i: int, bins: int, reach: float) -> str:
    low, high = (percent(-reach + k * 2 * reach / bins, signed=True) for k in (i, i + 1))
    return f"up to {high}" if i == 0 else f"{low} and more" if i == bins - 1 else f"{low} to {high}"


def _bins(reach: float, band: tuple[float, float] | None) -> tuple[int, float]:
    """How many bins, an even number, and their width: edges of the target range are edges of bins, where it is as wide on both sides."""
    width = 2 * reach / BINS
    if band is None or abs(band[0] - band[1]) > 1e-9 or not 0 < band[0] <= reach:
        return BINS, width
    width = band[0] / max(1, round(band[0] / width))
    return 2 * ceil(reach / width - 1e-9), width


def _reach(read: Sequence[Reading], shares: Sequence[tuple[float, float]]) -> float:
    """Half the width of the histogram: three bands, or what nearly all brokers need, at most
    `OUT_OF_RANGE`.
    """
    spread = sorted(max(abs(a), abs(b)) for a, b in shares)
    band = _shared_band(read)
    return min(max(3 * max(band) if band else 0.05, spread[int(len(spread) * 0.98)], 0.02), OUT_OF_RANGE)


def _shared_band(read: Sequence[Reading]) -> tuple[float, float] | None:
    """Share below and above the mean that is within the target range (the same for all brokers of a goal)."""
    band = next((r.band for r in read if r.band and r.band.mean > 0), None)
    return None if band is None else (1 - band.low / band.mean, band.high / band.mean - 1)


def _share(r: Reading, load: float, read: Sequence[Reading]) -> float:
    mean = r.band.mean if r.band else sum(x.after for x in read) / len(read)
    return load / mean - 1 if mean > 0 else 0.0


def _describe(resource: str, r: Reading) -> str:
    where = f"broker {r.broker.id}" + (f", rack {r.broker.rack}" if r.broker.rack is not None else "")
    if r.broker.state != "active":
        where += f", {r.broker.state}"
    before, after = amount(r.before, resource), amount(r.after, resource)
    text = f"{where}: {before}, would stay" if before == after else f"{where}: {before}, would be {after}"
    if r.band is None or r.band.mean <= 0:
        return text
    low, high = amount(r.band.low, resource), amount(r.band.high, resource)
    share = percent(r.after / r.band.mean - 1, signed=True)
    return f"{text} ({share} of the mean {amount(r.band.mean, resource)}; target range {low} to {high})"


def _grid(panel: Panel, y: Scale, resource: str) -> Markup:
    marks = ticks(0.0, y.high, 5, whole=RESOURCES.get(resource) == "count")
    return panel.grid(y, marks, or_zero(lambda value: amount(value, resource)))


def _label_width(read: Sequence[Reading]) -> float:
    return 8.0 + 6.5 * max((len(str(r.broker.id)) for r in read), default=1)
