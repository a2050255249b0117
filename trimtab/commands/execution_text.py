"""How an execution stands, as the commands write it: text or JSON.

Called by `trimtab.commands.execute` and `trimtab.commands.control`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cluster_model.quantities import format_size
from trimtab.execution.progress import document
from trimtab.output import emit

if TYPE_CHECKING:
    from trimtab.execution.comparison import Compared
    from trimtab.execution.people import Pause
    from trimtab.execution.progress import PartitionStanding, Standing

NAMED = 20  # partitions named in a text


def paused_by(pause: Pause) -> str:
    """``paused by alice since 2026-11-20 12:00 UTC (reason)``."""
    since = datetime.fromtimestamp(pause.since_ms / 1000, UTC)
    return f"paused by {pause.who} since {since:%Y-%m-%d %H:%M} UTC{f' ({pause.why})' if pause.why else ''}"


def write_standing(
    found: Standing, form: Literal["text", "json"], out: Path | None, *, working: bool, loads: Sequence[Compared] = ()
) -> None:
    """Write it to `out` or stdout; `working` says whether an instance carries it out now, `loads` what became of brokers."""
    if form == "json":
        emit(json.dumps({**document(found, working=working), "loads": [asdict(c) for c in loads]}, indent=1), out)
    else:
        emit("\n".join([_text(found, working=working), *map(str, loads)]), out)


def _report(found: Standing) -> str:
    """``took 54 s, at least 23 s by its throttle; made replicas of 48 MB, 45 MB were planned``."""
    from trimtab.execution.run import spoken_seconds

    report, parts = found.report, []
    if report.seconds is not None:
        least = f", at least {spoken_seconds(report.seconds_planned)} by its throttle" if report.seconds_planned else ""
        parts.append(f"took {spoken_seconds(report.seconds)}{least}")
    if report.bytes_made:
        planned = f", {format_size(report.bytes_planned)} were planned" if report.bytes_planned is not None else ""
        parts.append(f"made replicas of {format_size(report.bytes_made)}{planned}")
    return "; ".join(parts)


def _text(found: Standing, *, working: bool) -> str:
    from trimtab.execution.run import sentence, spoken_seconds

    def pace(p: PartitionStanding) -> str:
        left = f", about {spoken_seconds(p.eta_s)} left" if p.eta_s is not None else ""
        return f", {format_size(p.rate)}/s{left}" if p.rate else ""

    state = found.state if found.over or working else f"{found.state}, but its process is gone: `trimtab resume` goes on with it"
    lines = [f"plan {found.plan_id}: {state}", f"by {found.instance}", sentence(found)]
    if found.over and found.direction == "forward":
        lines.append(_report(found))
    if found.gaps:
        lines.append(f"{found.gaps} partitions of one replica were without a leader for a moment")
    if found.paused:
        lines.append(f"paused by {found.paused}")
    if found.waits and not found.over:
        lines.append(found.waits)
    if found.throttle is not None and not found.over:
        lines.append(f"throttle {format_size(found.throttle)}/s{f': {found.throttle_why}' if found.throttle_why else ''}")
    if found.throttles_left and found.over:
        lines.append(f"{found.throttles_left} throttle settings are still to be taken off: `trimtab throttles --clean`")
    unchanged = found.unchanged
    if unchanged:
        lines.append(f"{len(unchanged)} partitions were not changed as planned:")
        lines += [f"  {p.name}: {p.reason}" for p in unchanged[:NAMED]]
        if len(unchanged) > NAMED:
            lines.append(f"  and {len(unchanged) - NAMED} more; --format json names all")
    moving = found.moving
    lines += [f"  {p.name} to {list(p.target)}: {format_size(p.copied)} of {format_size(p.size)}{pace(p)}" for p in moving[:NAMED]]
    return "\n".join(filter(None, lines))
