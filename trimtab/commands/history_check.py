"""`trimtab history check`: what a history has and lacks, before a calibration spends an hour on it. Reads only.

Parses, calls `spark.history.checking`, shows. Spark is imported inside the functions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trimtab.commands import options as o
from trimtab.commands import spark_options as so
from trimtab.output import emit, require_writable
from trimtab.story import Story

if TYPE_CHECKING:
    from spark.history.checking import Check, Coverage

MOST_GAPS = 20
MOST_DAYS = 14


def check_command(
    context: typer.Context,
    history: so.History,
    cluster_id: so.ClusterId = None,
    goals: o.GoalsPath = None,
    preset: o.Preset = None,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it here (default: stdout).")] = None,
    master: so.Master = None,
) -> None:
    """Show how complete a history is: coverage by metric, broker and day, gaps, repeated samples, clocks, and which goals it can feed.

    Changes nothing. Run it before the first calibration: what is missing here is missing there.
    """
    require_writable("trimtab history check", out)
    wanted = o.Wanted(goals, preset).read()
    story = context.find_object(Story) or Story()
    from spark.history.checking import check
    from spark.history.read import read_samples

    with so.spark_for("trimtab history check", master, history, story) as spark:
        found = check(read_samples(spark, history, cluster_id), wanted, datetime.now(UTC))
    text = json.dumps({"version": 1, "history": history, **asdict(found)}, indent=1) if form == "json" else as_text(found, history)
    emit(text + "\n", out)


def as_text(found: Check, history: str) -> str:
    """The check for people."""
    counted = found.rows - sum(found.rejected.values())
    lines = [f"{history}: {found.rows:,} samples, {counted:,} of them count"]
    if found.begin is None:
        return "\n".join([*lines, *_rejected(found)])
    lines += [f"{found.begin} to {found.end}, about every {found.spacing:g} s", "", *_rejected(found), *_metrics(found), "", *_days(found)]
    lines += ["", *_gaps(found), "", *_feeds(found)]
    return "\n".join([*lines, *(["", *found.notes] if found.notes else [])])


def _rejected(found: Check) -> list[str]:
    lines = [f"  {count:,} {name}" for name, count in found.rejected.items()]
    return ["do not count:", *lines, ""] if lines else []


def _metrics(found: Check) -> list[str]:
    groups: dict[tuple[bool, str], list[Coverage]] = {}
    for one in found.metrics:
        groups.setdefault((one.whole, one.metric), []).append(one)
    rows = [("metric", "of", "brokers", "series", "samples", "there", "least")]
    for (whole, name), mine in groups.items():
        least = min(mine, key=lambda one: (one.samples / max(one.due, 1), one.broker))
        share = sum(one.samples for one in mine) / max(sum(one.due for one in mine), 1)
        rows.append((
            name, "brokers" if whole else "replicas", f"{len(mine):,}", f"{sum(one.series for one in mine):,}",
            f"{sum(one.samples for one in mine):,}", f"{share:.1%}", f"{least.samples / max(least.due, 1):.1%} (broker {least.broker})",
        ))  # fmt: skip
    return _table(rows)


def _days(found: Check) -> list[str]:
    usual = sorted(day.samples for day in found.days)[len(found.days) // 2]
    shown = [day for day in found.days if day.samples < 0.9 * usual or day.repeated]
    told = f"{len(found.days):,} days, {usual:,} samples on a usual day"
    if not shown:
        return [f"{told}; no day has less than 90% of that, or repeated samples"]
    rows = [("day", "brokers", "samples", "repeated")]
    rows += [(day.date, f"{day.brokers:,}", f"{day.samples:,}", f"{day.repeated:,}") for day in shown[:MOST_DAYS]]
    more = [f"and {len(shown) - MOST_DAYS} more days"] if len(shown) > MOST_DAYS else []
    return [f"{told}; days with less than 90% of that, or repeated samples:", *_table(rows), *more]


def _gaps(found: Check) -> list[str]:
    if not found.gaps:
        return ["no broker was silent for an hour between its first and its last sample"]
    lines = [f"  broker {gap.broker}: {gap.begin} to {gap.end}" for gap in found.gaps[:MOST_GAPS]]
    more = [f"  and {len(found.gaps) - MOST_GAPS} more"] if len(found.gaps) > MOST_GAPS else []
    return ["brokers silent for an hour or more:", *lines, *more]


def _feeds(found: Check) -> list[str]:
    rows = [("goal", "resource", "calibrate", "backtest, plan --load")]
    rows += [(one.goal, one.resource, one.calibrate or "yes", one.backtest or "yes") for one in found.feeds]
    return _table(rows)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns as wide as their widest cell."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
