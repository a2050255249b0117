"""The page of a calibration: what history says about each resource, and what supports it.

Called by ``trimtab calibrate``. A pure function of the calibration file and its evidence; sections without anything to show are left
out.
"""

from __future__ import annotations

from goals.calibration import Calibration
from optimizer.report.markup import Child
from optimizer.report.units import amount, count, listing, percent, resource_label
from spark.report.drawings import DAYS, histogram_drawing, seconds, series_drawing, share_bar, week_drawing
from spark.report.evidence import CalibrationEvidence
from spark.report.page import Cell, Column, Section, facts, figure, figures, legend, listed, page, table
from spark.report.pareto import duration, pareto_drawing, pareto_legend, tried_table
from spark.report.sources import capacity_parts, correlation_parts, cpu_parts, forecast_parts, topic_parts

NOTHING = CalibrationEvidence()


def calibration_html(calibration: Calibration, evidence: CalibrationEvidence = NOTHING) -> str:
    """One self-contained page.

    Notes
    -----
    Of bounded size: at most `page.MOST_ROWS` rows a table, evidence as bounded as `spark.report.evidence` says.
    """
    history = calibration.history
    return page(
        "calibration",
        f"Calibration of {calibration.cluster_id or 'a cluster'}",
        [("cluster", calibration.cluster_id or "unnamed"), ("made", calibration.made_at)],
        "Recommended" if _bounds(calibration) else "No recommendation",
        _verdict(calibration),
        [f"From {history.begin} to {history.end}, in windows of {duration(history.window)}.", *evidence.notes],
        _tiles(calibration),
        [
            Section("resources", "Resources", _resources(calibration)),
            Section("noise", "Noise", _noise(calibration, evidence)),
            Section("season", "Season and level", _season(calibration, evidence)),
            Section("capacity", "Capacity", capacity_parts(calibration, evidence)),
            Section("cpu", "CPU cost", cpu_parts(calibration, evidence)),
            Section("correlations", "Resources that rise and fall together", correlation_parts(calibration)),
            Section("topics", "Topics that burst, grow or follow the day", topic_parts(calibration, evidence)),
            Section("forecast", "Forecasts on held-out days", forecast_parts(evidence)),
            Section("backtest", "Backtest", _backtest(calibration)),
            Section("rejected", "Rejected samples", _rejected(calibration)),
            Section("identity", "Source of the calibration", [_identity(calibration)]),
        ],
        "A calibration by Trimtab: it read history and changed nothing. `trimtab tune` shows what it would change in a goals file.",
        "good" if _bounds(calibration) else "unjudged",
    )


def _bounds(calibration: Calibration) -> dict[str, float]:
    return {name: r.bound for name, r in calibration.resources.items() if r.bound is not None}


def _verdict(calibration: Calibration) -> str:
    bounds = _bounds(calibration)
    if not bounds:
        return "No target range can be recommended from this history; the reasons are below the table of resources."
    names = listing([f"{resource_label(name)} ±{percent(bound)}" for name, bound in bounds.items()], most=6)
    alarms = [r.false_alarms for r in calibration.resources.values() if r.false_alarms is not None]
    rate = f". Noise alone takes a broker outside at most {sum(alarms):.2g} times a week" if alarms else ""
    return f"Target ranges: {names}{rate}."


def _tiles(calibration: Calibration) -> list[tuple[str, str, str]]:
    history = calibration.history
    rejected = sum(history.rejected.values())
    days = (seconds(history.end) - seconds(history.begin)) / 86_400
    sure = sum(c.confidence == "high" for c in calibration.capacity)
    return [
        ("Samples", f"{history.samples:,}", f"{rejected:,} more were rejected ({percent(rejected / max(rejected + history.samples, 1))})"),
        ("History", count(round(days), "day") if days >= 2 else f"{days * 24:.0f} h", f"windows of {duration(history.window)}"),
        ("Brokers", f"{history.brokers:,}", ""),
        ("Partitions", f"{history.partitions:,}", ""),
        ("Capacities", f"{len(calibration.capacity):,}", f"{sure:,} of high confidence"),
    ]  # fmt: skip


def _resources(calibration: Calibration) -> list[Child]:
    columns = [
        Column("resource"), Column("mean of a broker", True), Column("noise", True), Column("bound", True),
        Column("false triggers a week", True), Column("var", True), Column("least load", True), Column("growth a week", True),
        Column("season", True), Column("peak hour"),
    ]  # fmt: skip
    rows = []
    for name, r in calibration.resources.items():
        season = r.seasonality
        rows.append([
            Cell(resource_label(name)),
            Cell(amount(r.mean, name), r.mean),
            Cell(percent(r.noise), r.noise),
            Cell(percent(r.bound), r.bound, "good" if r.bound is not None else "plain"),
            Cell("–" if r.false_alarms is None else f"{r.false_alarms:.2g}", r.false_alarms),
            Cell(percent(r.var), r.var),
            Cell("–" if r.min_load is None else amount(r.min_load, name), r.min_load),
            Cell("–" if r.growth is None else percent(r.growth, signed=True), r.growth),
            Cell("–" if season is None else percent(season.strength), season.strength if season else None, title="share of the variance"),
            Cell("–" if season is None else f"{DAYS[season.peak_hour // 24]} {season.peak_hour % 24:02d}:00 UTC"),
        ])  # fmt: skip
    why = [f"{resource_label(name)}: {sentence}" for name, r in calibration.resources.items() for sentence in r.why]
    return [table("Shares are of the mean load of a broker", columns, rows), listed(why)]


def _noise(calibration: Calibration, evidence: CalibrationEvidence) -> list[Child]:
    drawn = []
    for one in evidence.noise:
        found = calibration.resources.get(one.resource)
        bound = found.bound if found else None
        edges = () if bound is None else (-bound, bound)
        label = f"deviations of brokers in {resource_label(one.resource)}"
        drawing = histogram_drawing(one.deviations, edges, label, "deviation from the broker's expected load, share of the mean")
        note = "windows of all brokers"
        if found and found.noise is not None and bound is not None:
            note = f"noise {percent(found.noise)}, target range ±{percent(bound)}"
        if drawing is not None:
            drawn.append(figure(resource_label(one.resource).capitalize(), note, drawing))
    return figures(drawn, legend(("bar", "within the target range"), ("beyond", "outside it"), ("band", "recommended target range")))


def _season(calibration: Calibration, evidence: CalibrationEvidence) -> list[Child]:
    drawn = []
    for name, found in calibration.resources.items():
        if found.seasonality is None:
            continue
        drawing = week_drawing(found.seasonality.profile, f"load of {resource_label(name)} by hour of the week")
        note = f"the hour of the week explains {percent(found.seasonality.strength)} of the variance"
        if drawing is not None:
            drawn.append(figure(resource_label(name).capitalize(), note, drawing))
    for level in evidence.levels:
        name = level.resource
        line = ("", [seconds(t) for t in level.times], level.values)
        drawing = series_drawing([line], lambda v, name=name: amount(v, name), f"{resource_label(name)} over time", wide=True)  # type: ignore[misc]
        if drawing is not None:
            drawn.append(figure(resource_label(name).capitalize(), "mean load of a broker over time", drawing, wide=True))
    return figures(drawn)


def _backtest(calibration: Calibration) -> list[Child]:
    tried = calibration.backtest
    drawing = pareto_drawing(tried)
    if drawing is None:
        return []
    shown = figure("Alternatives", "down and to the left is better", drawing, wide=True)
    return [*figures([shown], pareto_legend(tried)), tried_table(tried)]


def _rejected(calibration: Calibration) -> list[Child]:
    rejected = calibration.history.rejected
    total = calibration.history.samples + sum(rejected.values())
    rows = [
        [Cell(reason), Cell(f"{number:,}", number), Cell([percent(number / total), " ", share_bar(number / total)], number / total)]
        for reason, number in sorted(rejected.items(), key=lambda item: (-item[1], item[0]))
        if number
    ]
    columns = [Column("reason"), Column("samples", True), Column("share of all", True)]
    return [table("Not used in this calibration, by reason", columns, rows)]


def _identity(calibration: Calibration) -> Child:
    history = calibration.history
    return facts([
        ("Cluster", calibration.cluster_id), ("Made at", calibration.made_at), ("History", f"{history.begin} to {history.end}"),
        ("Digest", history.digest), ("Loads", calibration.loads),
    ])  # fmt: skip
