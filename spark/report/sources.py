"""Sections of a calibration's page on what loads come from: capacity, cpu, correlation, topics, forecasts.

Called by `spark.report.calibration`. Each gives parts, none where there is nothing.
"""

from __future__ import annotations

from goals.calibration import Calibration, CpuCost
from optimizer.report.markup import Child, Markup
from optimizer.report.units import amount, percent, prefixed, resource_label
from spark.report.drawings import diagonal, histogram_drawing, matrix_drawing, scatter_drawing, seconds, series_drawing
from spark.report.evidence import CalibrationEvidence, CapacityEvidence, ForecastEvidence, TopicEvidence
from spark.report.page import Cell, Column, facts, figure, figures, legend, listed, table

MOST_FIGURES = 12
MOODS = {"high": "good", "medium": "some", "low": "plain"}


def capacity_parts(calibration: Calibration, evidence: CalibrationEvidence) -> list[Child]:
    """Every estimate as a table, some brokers as drawings."""
    columns = [Column("broker", True), Column("resource"), Column("can carry", True), Column("confidence"), Column("evidence")]
    order = {"high": 0, "medium": 1, "low": 2}
    found = sorted(calibration.capacity, key=lambda c: (order[c.confidence], c.broker, c.resource))
    rows = [
        [
            Cell(str(c.broker), c.broker),
            Cell(resource_label(c.resource)),
            Cell(("at least " if c.confidence == "low" else "") + amount(c.value, c.resource), c.value),
            Cell(c.confidence, mood=MOODS[c.confidence]),
            Cell(c.evidence),
        ]
        for c in found
    ]
    drawn = [_capacity_figure(c) for c in evidence.capacity[:MOST_FIGURES]]
    keys = legend(("round", "a window"), ("line fit", "fitted"), ("line limit", "capacity"))
    return [*figures(drawn, keys), table("Capacities of brokers, by confidence", columns, rows)]


def _capacity_figure(one: CapacityEvidence) -> Markup | None:
    label = f"{_plain(one.measure)} over {resource_label(one.resource)} of broker {one.broker}"
    drawing = scatter_drawing(
        one.points, one.fit, one.capacity, lambda v: amount(v, one.resource), lambda v: measured(v, one.measure),
        resource_label(one.resource), _plain(one.measure), label,
    )  # fmt: skip
    if drawing is None:
        return None
    return figure(f"Broker {one.broker}, {resource_label(one.resource)}", f"{one.confidence} confidence: {one.words}", drawing)


def cpu_parts(calibration: Calibration, evidence: CalibrationEvidence) -> list[Child]:
    """Costs, how well they explain, and the brokers that they do not."""
    cost, shown = calibration.cpu_cost, evidence.cpu
    parts: list[Child] = []
    if cost is not None:
        parts += [_costs(cost), listed(cost.why)]
    drawn: list[Markup | None] = []
    if shown is not None:
        words = "cores by the costs"
        points = scatter_drawing(
            shown.points, diagonal(shown.points), None, _cores, _cores, words, "cores measured", "cores measured over cores explained"
        )  # fmt: skip
        if points is not None:
            drawn.append(figure("Explained", "each dot is a window of a broker; on the line both are equal", points))
        if shown.residuals is not None:
            bars = histogram_drawing(shown.residuals, (), "cpu that the costs do not explain", "measured less explained, share of the mean")
            if bars is not None:
                drawn.append(figure("Unexplained", "all windows of all brokers", bars))
    parts += figures(drawn)
    rest = shown.brokers if shown is not None else ()
    if not rest and cost is not None:
        rest = tuple((int(b), r) for b, r in sorted(cost.brokers.items(), key=lambda item: -abs(item[1])) if b.isdigit())
    columns = [Column("broker", True), Column("uses more (+) or less (−) than its rates explain", True)]
    rows = [[Cell(str(b), b), Cell(f"{r:+.3f} cores", r)] for b, r in rest]
    parts.append(table("Brokers that stand out, in cores", columns, rows))
    return parts if any(parts) else []


def _costs(cost: CpuCost) -> Markup:
    def per(value: float, unit: str, scale: float) -> str:
        return f"{value * scale:.3g} {unit}" if value else "none of its own"

    return facts([
        ("Idle", f"{cost.idle:.3g} cores"),
        ("A MB/s in", per(cost.per_byte_in, "cores", 1e6)),
        ("A MB/s out", per(cost.per_byte_out, "cores", 1e6)),
        ("1,000 produce/s", per(cost.per_produce_request, "cores", 1e3)),
        ("1,000 fetch/s", per(cost.per_fetch_request, "cores", 1e3)),
        ("Error", f"{percent(cost.error)} of a broker's cpu in the median window"),
    ])  # fmt: skip


def correlation_parts(calibration: Calibration) -> list[Child]:
    """All pairs as a matrix."""
    names = list(dict.fromkeys(resource_label(r) for c in calibration.correlations for r in c.resources))
    values = {
        (resource_label(c.resources[0]), resource_label(c.resources[1])): c.value for c in calibration.correlations
    }  # fmt: skip
    drawing = matrix_drawing(names, values, "correlations of resources of brokers")
    if drawing is None:
        return []
    return figures([figure("Correlation", "over windows of brokers; near 1, levelling one resource levels the other", drawing, wide=True)])


def topic_parts(calibration: Calibration, evidence: CalibrationEvidence) -> list[Child]:
    """The past of some, and all of them as a table."""
    columns = [
        Column("topic"), Column("resource"), Column("pattern"), Column("95th percentile over mean", True),
        Column("growth a week", True),
    ]  # fmt: skip
    rows = [
        [
            Cell(t.topic),
            Cell(resource_label(t.resource)),
            Cell(t.pattern, mood={"bursty": "bad", "growing": "some"}.get(t.pattern, "plain")),
            Cell(f"{t.burst:.2f}", t.burst),
            Cell(percent(t.growth, signed=True), t.growth),
        ]
        for t in calibration.topics
    ]
    drawn = [_topic_figure(t) for t in evidence.topics[:MOST_FIGURES]]
    keys = legend(("line", "measured"), ("line ahead", "expected"))
    return [*figures(drawn, keys), table("Bursts and growth of topics", columns, rows)]


def _topic_figure(one: TopicEvidence) -> Markup | None:
    times = [seconds(t) for t in one.times]
    step = times[-1] - times[-2] if len(times) > 1 else 3600.0
    ahead = [times[-1] + step * i for i in range(len(one.forecast) + 1)] if times else []
    lines = [("", times, one.values)]
    if one.forecast:
        lines.append(("ahead", ahead, (one.values[-1], *one.forecast)))
    drawing = series_drawing(lines, lambda v: amount(v, one.resource), f"{resource_label(one.resource)} of {one.topic}")
    return None if drawing is None else figure(one.topic, resource_label(one.resource), drawing)


def forecast_parts(evidence: CalibrationEvidence) -> list[Child]:
    """How forecasts did against the last value."""
    columns = [
        Column("resource"), Column("partitions", True), Column("error", True), Column("last value's error", True),
        Column("difference", True), Column("methods"),
    ]  # fmt: skip
    rows = [_forecast_row(f) for f in evidence.forecasts]
    return [table("Mean absolute error over mean load, median over partitions", columns, rows)] if rows else []


def _forecast_row(one: ForecastEvidence) -> list[Cell]:
    better = one.chosen / one.last_value - 1 if one.last_value > 0 else 0.0
    methods = ", ".join(f"{name} {number:,} ({percent(error)})" for name, number, error in one.by_method)
    return [
        Cell(resource_label(one.resource)),
        Cell(f"{one.partitions:,}", one.partitions),
        Cell(percent(one.chosen), one.chosen),
        Cell(percent(one.last_value), one.last_value),
        Cell(percent(better, signed=True), better, "good" if better < -0.05 else "plain"),
        Cell(methods or "–"),
    ]


def measured(value: float, measure: str) -> str:
    """A measure in its unit: ``12.0 ms`` for those that end in ``_ms``."""
    if measure.endswith("_ms"):
        return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"
    return amount(value, measure)


def _plain(measure: str) -> str:
    return measure.removesuffix("_ms").replace("_", " ")


def _cores(value: float) -> str:
    number, prefix = prefixed(value)
    return number + prefix
