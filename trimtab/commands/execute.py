"""`trimtab execute` and its companions `status`, `pause`, `resume`, `cancel`, `rollback`: one approved plan on a live cluster.

Parsing and writing only; what is safe is `trimtab.execution`'s. One execution at a time on a cluster, wherever it was begun.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from cluster_model.quantities import format_size, parse_rate, parse_size
from trimtab.commands import options as o
from trimtab.execution.pacing import AUTO
from trimtab.execution.state import Limits
from trimtab.output import emit
from trimtab.signals import signals_heard
from trimtab.story import Story, log

if TYPE_CHECKING:
    from trimtab.execution.documents import Header, Settings
    from trimtab.execution.order import Order
    from trimtab.execution.pacing import Headroom
    from trimtab.execution.people import Pause
    from trimtab.execution.progress import Standing
    from trimtab.execution.recorded import How, Verb
    from trimtab.execution.run import Reached
    from trimtab.execution.state import Task

FAILED, INTERRUPTED = 1, 130
LIMITS = Limits()
NAMED = 20  # partitions named in a text
SLOWEST = 5  # brokers named with their hours

Server = Annotated[str, typer.Option("--bootstrap-server", metavar="HOST:PORT", help="The live cluster.")]
JournalFolder = Annotated[
    Path | None,
    typer.Option("--journal", metavar="DIR", file_okay=False, help="Folder of the journal (default ~/.local/state/trimtab)."),
]
DataForm = Annotated[Literal["text", "json"], typer.Option("--format", help="Shape of the data on stdout.")]
Who = Annotated[str | None, typer.Option("--who", metavar="NAME", help="In whose name (default: the user of this machine).")]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command("execute")(execute_command)
    app.command("status")(status_command)
    app.command("pause")(pause_command)
    app.command("resume")(resume_command)
    app.command("cancel")(cancel_command)
    app.command("rollback")(rollback_command)


def parse_throttle(text: str) -> int:
    """A rate in bytes/s, or `AUTO`."""
    if text.strip().lower() == "auto":
        return AUTO
    rate = parse_rate(text)
    if rate <= 0:
        raise ValueError(f"expected auto or a rate above 0 such as 50MB/s, found {text!r}")
    return rate


Throttle = Annotated[
    int | None,
    typer.Option(
        "--throttle", parser=o.parsed_by(parse_throttle), metavar="SIZE/s",
        help="Copied into, and out of, each broker at most; auto: by head-room, and by what is seen while it runs.",
    ),
]


def execute_command(
    context: typer.Context,
    plan: Annotated[
        Path, typer.Option("--plan", exists=True, dir_okay=False, metavar="FILE", help="A plan of `trimtab plan --format json`.")
    ],
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    throttle: Throttle = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, metavar="N", help=f"Replicas copied into, and from, a broker at a time (default {LIMITS.into}).")
    ] = None,
    cluster_concurrency: Annotated[
        int | None, typer.Option(min=1, metavar="N", help=f"Partitions in progress at a time (default {LIMITS.cluster}).")
    ] = None,
    elections: Annotated[
        int | None, typer.Option(min=1, metavar="N", help=f"Leaders elected in a second at most (default {LIMITS.elections}).")
    ] = None,
    reserve: Annotated[
        int | None, typer.Option(parser=o.parsed_by(parse_size), metavar="SIZE", help="Stays free on every log directory (default 1GB).")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse the plan where any partition is not as it was planned for.")] = False,
    foreign: Annotated[
        Literal["wait", "refuse"], typer.Option(help="What to do about reassignments of other tools that are in progress.")
    ] = "wait",
    window: Annotated[
        list[str] | None,
        typer.Option("--window", metavar="WHEN", help="Steps begin only then, in UTC: 22:00-06:00, 'Sat,Sun 08:00-20:00'; repeatable."),
    ] = None,
    journal: JournalFolder = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Carry out one approved plan: step by step, throttled, written down before each step; survives being killed.

    Partitions that changed since the plan was made are left alone and named. Ctrl-C ends this process and no more: what is in
    progress goes on, `trimtab resume` goes on with the rest.
    """
    from trimtab.execution.documents import Settings
    from trimtab.execution.order import read_order

    problems = list(_window_problems(window or ()))
    if problems:
        raise ConfigurationError("trimtab execute", problems)
    order = read_order(plan)
    each = LIMITS.into if concurrency is None else concurrency
    limits = Limits(
        into=each, out_of=each, cluster=cluster_concurrency or LIMITS.cluster, elections=elections or LIMITS.elections,
        reserve=LIMITS.reserve if reserve is None else float(reserve),
    )  # fmt: skip
    settings = Settings(throttle=throttle, strict=strict, foreign=foreign, limits=limits, windows=tuple(window or ()))
    return carry_out(context, order, settings, bootstrap_server, command_config, journal, form, out)


def _window_problems(windows: Collection[str]) -> Iterator[Problem]:
    from trimtab.execution.windows import parse_window

    for text in windows:
        try:
            parse_window(text)
        except ValueError as error:
            yield Problem("--window", str(error))


def carry_out(
    context: typer.Context, order: Order, settings: Settings, bootstrap_server: str, command_config: Path | None, journal: Path | None,
    form: Literal["text", "json"] = "text", out: Path | None = None,
) -> int:  # fmt: skip
    """Carry an order out to the end; the exit code."""
    from trimtab.execution.checks import unfinished
    from trimtab.execution.noticed import noticed
    from trimtab.execution.people import pause_of
    from trimtab.execution.run import at_work, reached

    if not order.tasks:
        log.info("the plan is empty: nothing to do")
        return 0
    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        header = there.execution.read()
        if header is not None and header.state == "running":
            raise ExternalError(unfinished(header, working=at_work(there.execution)))
        pause = pause_of(there.ledger.told())
        if pause is not None:
            raise ExternalError(f"the cluster is {_paused(pause)}: no plan is begun; `trimtab resume` ends that")
        there.execution.begin(order, settings)
        tell_size(there.execution.tasks.values(), order.plan_id, settings.throttle, order.headroom)
        notice = noticed(order.tasks, there.port)
        if notice:
            log.warning("%s", notice)
        return _to_the_end(context, there, form, out)


def status_command(
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    journal: JournalFolder = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """How the execution on a cluster stands: how far, how fast, why it waits, and each partition that was not changed."""
    from trimtab.execution.people import drains_of, pause_of
    from trimtab.execution.run import at_work, reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        told = there.ledger.told()
        pause, drains = pause_of(told), drains_of(told)
        if pause is not None:
            log.warning("the cluster is %s: no plan is begun", _paused(pause))
        for broker, by in drains.items():
            log.info("broker %d is being drained, by %s; `trimtab activate` takes it back", broker, by)
        if there.execution.read() is None and (pause is not None or drains):
            return 0
        _known(there)
        found = there.execution.standing()
        assert found is not None
        working = at_work(there.execution)
        if not found.over:
            found = there.execution.looked()
        _write(found, form, out, working=working)
    return 0


def pause_command(
    bootstrap_server: Server, command_config: o.CommandConfig = None, journal: JournalFolder = None, who: Who = None
) -> int:
    """Take no further step; what is in progress goes on. Where nothing is carried out, no plan is begun on the cluster until `resume`."""
    from metrics_reporter.reporter import SYSTEM_CLOCK
    from trimtab.execution.ledger import PAUSE
    from trimtab.execution.people import Pause
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        header = there.execution.read()
        if header is None or header.state != "running":
            there.ledger.tell(PAUSE, Pause(name_of(who), "", SYSTEM_CLOCK.wall_ms()).document())
            log.info("paused: no plan is begun on this cluster, by no command and no service, until `trimtab resume`")
            return 0
        if _heard(there, "pause", who) is None:
            there.execution.pause(name_of(who))
        log.info("paused; `trimtab resume` goes on")
    return 0


def resume_command(
    context: typer.Context,
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    journal: JournalFolder = None,
    who: Who = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Go on: with a paused cluster or execution, or here with one whose process was killed or cut off, on any machine."""
    from metrics_reporter.reporter import SYSTEM_CLOCK
    from trimtab.execution.ledger import PAUSE
    from trimtab.execution.people import ended, pause_of
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        paused = pause_of(there.ledger.told()) is not None
        if paused:
            there.ledger.tell(PAUSE, ended(name_of(who), SYSTEM_CLOCK.wall_ms()))
            log.info("the cluster is not paused any more")
        header = there.execution.read()
        if paused and (header is None or header.state != "running"):
            return 0
        _unfinished(there)
        header = _heard(there, "resume", who)
        if header is not None:
            log.info("%s goes on", header.instance)
            return 0
        there.execution.resume()
        return _to_the_end(context, there, form, out)


def cancel_command(
    context: typer.Context,
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    finish: Annotated[bool, typer.Option("--finish", help="Let what is in progress complete instead of taking it back.")] = False,
    journal: JournalFolder = None,
    who: Who = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Begin nothing more, and take back what is in progress; what is done stays, and no throttle is left."""
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        _unfinished(there)
        how: How = "finish" if finish else "take back"
        header = _heard(there, "cancel", who, how)
        if header is not None:
            log.info("%s cancels it; `trimtab status` shows how far it is", header.instance)
            return 0
        there.execution.cancel(name_of(who), how)
        return _to_the_end(context, there, form, out)


def rollback_command(
    context: typer.Context,
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    journal: JournalFolder = None,
    who: Who = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Bring back every partition that the last execution changed, while it runs or after it ended."""
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        _known(there)
        header = _heard(there, "rollback", who)
        if header is not None:
            log.info("%s takes it back; `trimtab status` shows how far it is", header.instance)
            return 0
        count = there.execution.rollback(name_of(who))
        log.info("%d partitions are brought back", count)
        return _to_the_end(context, there, form, out)


# -- what they share -------------------------------------------------------------------------------------------


def folder_of(journal: Path | None) -> Path:
    """The folder of the journal."""
    from trimtab.execution.journal import default_folder

    return journal if journal is not None else default_folder()


def name_of(who: str | None) -> str:
    """In whose name something is asked for."""
    if who is not None:
        return who
    try:
        return getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _paused(pause: Pause) -> str:
    since = datetime.fromtimestamp(pause.since_ms / 1000, UTC)
    return f"paused by {pause.who} since {since:%Y-%m-%d %H:%M} UTC{f' ({pause.why})' if pause.why else ''}"


def _heard(there: Reached, verb: Verb, who: str | None, how: How = "take back") -> Header | None:
    """The header once the instance at work has heard the wish; None where none is, and this process has taken over."""
    from trimtab.execution.recorded import Wish
    from trimtab.execution.run import asked, at_work, new_id

    if at_work(there.execution):
        return asked(there, Wish(verb, name_of(who), new_id(), how))
    there.execution.adopt()
    return None


def _known(there: Reached) -> None:
    if there.execution.read() is None:
        raise ExternalError("no plan was carried out on this cluster yet; `trimtab execute` begins")


def _unfinished(there: Reached) -> None:
    _known(there)
    header = there.execution.header
    assert header is not None
    if header.state != "running":
        raise ExternalError(f"plan {header.plan_id} is {header.state}: nothing is in progress; `trimtab rollback` would take it back")


def tell_size(tasks: Collection[Task], plan_id: str, rate: int | None, headroom: Headroom | None = None) -> None:
    """How much a plan copies, and at a throttle how long that takes, per broker and in all."""
    from trimtab.execution.pacing import Headroom, first
    from trimtab.execution.run import spoken_seconds
    from trimtab.execution.throttle import hours

    total = sum(t.to_copy for t in tasks)
    log.info("plan %s: %d partitions, %s to copy", plan_id, len(tasks), format_size(total))
    if rate == AUTO and total:
        pace = first(tasks, headroom or Headroom())
        log.info("it begins with a throttle of %s/s: %s", format_size(pace.rate), pace.why)
        rate = pace.rate
    if rate and total:
        slowest = sorted(hours(tasks, rate).items(), key=lambda item: (-item[1], item[0]))
        each = ", ".join(f"broker {b} {spoken_seconds(h * 3600)}" for b, h in slowest[:SLOWEST])
        log.info("at %s/s it takes at least %s (%s)", format_size(rate), spoken_seconds(slowest[0][1] * 3600), each)


def _to_the_end(context: typer.Context, there: Reached, form: Literal["text", "json"], out: Path | None) -> int:
    """Carry out until it is over, or until a signal; the exit code."""
    from trimtab.execution.run import carried_out

    story = context.find_object(Story) or Story()
    with signals_heard() as told:
        found = carried_out(there.execution, story, told.stop.wait)
    if not found.over:
        log.warning("ended before the plan was carried out: what is in progress goes on; `trimtab resume` goes on with the rest")
        return INTERRUPTED
    _write(found, form, out, working=False)
    return FAILED if found.unchanged or found.throttles_left else 0


def _write(found: Standing, form: Literal["text", "json"], out: Path | None, *, working: bool) -> None:
    emit(json.dumps(_document(found, working=working), indent=1) if form == "json" else _text(found, working=working), out)


def _document(found: Standing, *, working: bool) -> dict[str, Any]:
    return {
        "version": 1, "plan_id": found.plan_id, "state": found.state, "direction": found.direction, "instance": found.instance,
        "at_work": working, "paused_by": found.paused or None, "waits": found.waits or None,
        "partitions": {str(stage): count for stage, count in found.counts.items()},
        "bytes_copied": round(found.bytes_copied), "bytes_total": round(found.bytes_total), "bytes_per_second": found.rate,
        "seconds_left": found.eta_s, "throttle": found.throttle, "throttle_reason": found.throttle_why or None,
        "throttles_left": found.throttles_left, "report": asdict(found.report),
        "details": [
            {
                "topic": p.name.topic, "partition": p.name.number, "stage": str(p.stage), "reason": p.reason or None,
                "replicas": list(p.target), "bytes_copied": round(p.copied), "bytes_total": round(p.size),
            }
            for p in found.partitions
        ],
    }  # fmt: skip


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
    from trimtab.execution.run import sentence

    state = found.state if found.over or working else f"{found.state}, but its process is gone: `trimtab resume` goes on with it"
    lines = [f"plan {found.plan_id}: {state}", f"by {found.instance}", sentence(found)]
    if found.over and found.direction == "forward":
        lines.append(_report(found))
    if found.paused:
        lines.append(f"paused by {found.paused}")
    if found.waits and not found.over:
        lines.append(found.waits)
    if found.throttle is not None and not found.over:
        lines.append(f"throttle {format_size(found.throttle)}/s{f': {found.throttle_why}' if found.throttle_why else ''}")
    if found.throttles_left:
        lines.append(f"{found.throttles_left} throttle settings are still to be taken off: `trimtab throttles --clean`")
    unchanged = found.unchanged
    if unchanged:
        lines.append(f"{len(unchanged)} partitions were not changed as planned:")
        lines += [f"  {p.name}: {p.reason}" for p in unchanged[:NAMED]]
        if len(unchanged) > NAMED:
            lines.append(f"  and {len(unchanged) - NAMED} more; --format json names all")
    moving = [p for p in found.partitions if p.stage.begun]
    lines += [f"  {p.name} to {list(p.target)}: {format_size(p.copied)} of {format_size(p.size)}" for p in moving[:NAMED]]
    return "\n".join(filter(None, lines))
