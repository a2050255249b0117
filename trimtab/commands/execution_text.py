"""How an execution stands, and what it would do, as the commands write it: text or JSON.

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
    from trimtab.execution.dry_run import DryRun, Step
    from trimtab.execution.people import Pause
    from trimtab.execution.progress import PartitionStanding, Standing

NAMED = 20  # partitions named in a text
STEPS, OF_STEP = 20, 10  # steps of a dry run told in a text, and partitions named with each


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
        lines.append(f"{partitions_counted(found.gaps)} of one replica had no leader for a moment")
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
        lines.append(f"{partitions_counted(len(unchanged))} not changed as planned:")
        lines += [f"  {p.name}: {p.reason}" for p in unchanged[:NAMED]]
        if len(unchanged) > NAMED:
            lines.append(f"  and {len(unchanged) - NAMED} more; --format json names all")
    moving = found.moving
    lines += [f"  {p.name} to {list(p.target)}: {format_size(p.copied)} of {format_size(p.size)}{pace(p)}" for p in moving[:NAMED]]
    return "\n".join(filter(None, lines))


# -- dry run ---------------------------------------------------------------------------------------------------


def write_dry_run(made: DryRun, form: Literal["text", "json"], out: Path | None) -> None:
    """Write it to `out` or stdout."""
    emit(json.dumps(_dry_run_document(made), indent=1) if form == "json" else _dry_run_text(made), out)


def _dry_run_text(made: DryRun) -> str:
    lines = [f"dry run of plan {made.plan_id}: nothing is changed"]
    lines.append("steps that would be taken:" if made.steps else "no step would be taken")
    for number, step in enumerate(made.steps[:STEPS], 1):
        title, names = _step_words(made, step)
        lines.append(f"{number:>3}. {title}")
        lines += [f"       {name}" for name in names[:OF_STEP]]
        if len(names) > OF_STEP:
            lines.append(f"       and {len(names) - OF_STEP} more")
    if len(made.steps) > STEPS:
        lines.append(f"     and {len(made.steps) - STEPS} more steps")
    if len(made.steps) > STEPS or any(len(_step_words(made, s)[1]) > OF_STEP for s in made.steps[:STEPS]):
        lines.append("--format json names all")
    if made.settings.windows:
        lines.append(f"steps start only within {', '.join(made.settings.windows)}, UTC")
    if any(not _is_throttled(s) for s in made.steps):
        lines.append("partitions of one step start together; an execution starts the next step as soon as a limit allows it")
    if made.unchanged:
        lines.append(f"{partitions_counted(len(made.unchanged))} would not be changed as planned:")
        lines += [f"  {p.name}: {p.reason}" for p in made.unchanged[:NAMED]]
        if len(made.unchanged) > NAMED:
            lines.append(f"  and {len(made.unchanged) - NAMED} more; --format json names all")
    if made.left:
        lines.append(f"{partitions_counted(len(made.left))} would wait, as the cluster is now: {made.waits.removeprefix('waits: ')}")
    return "\n".join(lines)


def _is_throttled(step: Step) -> bool:
    from trimtab.execution.dry_run import Throttled

    return isinstance(step, Throttled)


def _step_words(made: DryRun, step: Step) -> tuple[str, list[str]]:
    """A step in a sentence, and its partitions, each in a line."""
    from trimtab.execution.dry_run import Elected, Moved, Throttled

    match step:
        case Throttled(changes, off):
            brokers = sorted(int(r.name) for r in changes if r.kind == "broker")
            topics = sorted(r.name for r in changes if r.kind == "topic")
            on = "; ".join(
                f"{kind} {', '.join(map(str, names[:OF_STEP]))}{f' and {len(names) - OF_STEP} more' if len(names) > OF_STEP else ''}"
                for kind, names in (("brokers", brokers), ("topics", topics))
                if names
            )
            return f"restore the throttles from before: {on}" if off else f"set throttles of {format_size(_rate(made))}/s: {on}", []
        case Moved(tasks):
            copied = sum(t.to_copy for t in tasks)
            batch = f"batch {step.batch}: " if step.batch else ""
            size = f"{format_size(copied)} to copy" if copied else "nothing to copy"
            names = [
                f"{t.name}: {list(t.source)} → {list(t.target)}{f', {format_size(t.to_copy)}' if t.to_copy else ''}" for t in tasks
            ]
            return f"{batch}reassign {partitions_counted(len(tasks))}, {size}", names
        case Elected(tasks):
            return f"elect the preferred leader of {partitions_counted(len(tasks))}", [f"{t.name}: leader {t.target[0]}" for t in tasks]


def partitions_counted(count: int) -> str:
    return f"{count} partition{'' if count == 1 else 's'}"


def _rate(made: DryRun) -> int:
    return made.settings.throttle or 0


def _dry_run_document(made: DryRun) -> dict[str, object]:
    return {
        "version": 1, "plan_id": made.plan_id, "dry_run": True, "throttle": made.settings.throttle,
        "windows": list(made.settings.windows), "steps": [_step_document(s) for s in made.steps],
        "unchanged": [{"topic": p.name.topic, "partition": p.name.number, "reason": p.reason} for p in made.unchanged],
        "left": [{"topic": n.topic, "partition": n.number} for n in made.left], "waits": made.waits or None,
    }  # fmt: skip


def _step_document(step: Step) -> dict[str, object]:
    from trimtab.execution.dry_run import Elected, Moved, Throttled

    match step:
        case Throttled(changes, off):
            settings = [{r.kind: r.name, "key": k, "value": v} for r, of in changes.items() for k, v in of.items()]
            return {"type": "throttles_off" if off else "throttles", "settings": settings}
        case Moved(tasks):
            return {
                "type": "reassignments", "batch": step.batch or None,
                "partitions": [
                    {
                        "topic": t.name.topic, "partition": t.name.number, "replicas_before": list(t.source),
                        "replicas_after": list(t.target), "bytes_to_copy": round(t.to_copy),
                    }
                    for t in tasks
                ],
            }  # fmt: skip
        case Elected(tasks):
            return {
                "type": "elections",
                "partitions": [{"topic": t.name.topic, "partition": t.name.number, "leader": t.target[0]} for t in tasks],
            }  # fmt: skip
