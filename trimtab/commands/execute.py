"""`trimtab execute` and `trimtab status`: one approved plan on a live cluster, and how far it is.

Parsing and writing only; what is safe is `trimtab.execution`'s. One execution at a time on a cluster, from whichever machine it started.
What an operator tells a running execution is `trimtab.commands.control`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, ExternalError, InputError, Problem
from cluster_model.quantities import format_size, parse_size
from trimtab.commands import options as o
from trimtab.commands import values as v
from trimtab.commands.execution_options import DataForm, JournalFolder, Server, Throttle, folder_of
from trimtab.commands.execution_text import partitions_counted, paused_by, write_dry_run, write_standing
from trimtab.execution.pacing import AUTO
from trimtab.execution.state import Limits
from trimtab.output import require_writable, unwritable
from trimtab.signals import signals_heard
from trimtab.story import Story, log

if TYPE_CHECKING:
    from trimtab.execution.comparison import Compared
    from trimtab.execution.documents import Settings
    from trimtab.execution.order import Order
    from trimtab.execution.pacing import Headroom
    from trimtab.execution.run import Reached
    from trimtab.execution.state import Task

FAILED, INTERRUPTED = 1, 130
LIMITS = Limits()
NOT_ITS_PLAN = (
    "this is not the id of what the file says: it was edited after `trimtab plan` wrote it, or another release wrote it; "
    "plan again, or give --edited to carry out what it says now"
)
EMPTY = "the plan is empty: nothing to do"
SLOWEST = 5  # brokers named with their hours


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command("execute")(execute_command)
    app.command("status")(status_command)


def execute_command(
    context: typer.Context,
    plan: Annotated[
        Path,
        typer.Option(
            "--plan", callback=v.there, dir_okay=False, metavar="FILE", help="A plan of `trimtab plan --format json`; - for stdin."
        ),
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
        int | None,
        typer.Option(parser=v.parsed_by(parse_size), metavar="SIZE", help="Keep this much free on every log directory (default 1GB)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the steps that would be taken on the cluster now, and change nothing.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse the plan if any partition changed since it was made.")] = False,
    edited: Annotated[bool, typer.Option("--edited", help="Accept a plan file that was edited or written by hand.")] = False,
    foreign: Annotated[
        Literal["wait", "refuse"], typer.Option(help="What to do about reassignments of other tools that are in progress.")
    ] = "wait",
    window: Annotated[
        list[str] | None,
        typer.Option(
            "--window", metavar="WHEN", help="Start steps only at these times, in UTC: 22:00-06:00, 'Sat,Sun 08:00-20:00'; repeatable."
        ),
    ] = None,
    interval: o.Interval = None,
    journal: JournalFolder = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Carry out one approved plan, throttled and step by step; each step is recorded before it starts, so a kill does no harm.

    --dry-run makes the same checks and shows the steps, but takes none. Partitions that changed since the plan was made are left
    alone and named. Ctrl-C ends only this process: steps in
    progress continue in the cluster, and `trimtab resume` does the rest.
    """
    from trimtab.execution.documents import Settings
    from trimtab.execution.order import read_order

    problems = [*_window_problems(window or ()), *unwritable("--out", out)]
    if problems:
        raise ConfigurationError("trimtab execute", problems)
    order = read_order(plan)
    if order.edited and not edited:
        raise InputError(str(plan), [Problem("plan_id", NOT_ITS_PLAN)])
    each = LIMITS.into if concurrency is None else concurrency
    limits = Limits(
        into=each, out_of=each, cluster=cluster_concurrency or LIMITS.cluster, elections=elections or LIMITS.elections,
        reserve=LIMITS.reserve if reserve is None else float(reserve),
    )  # fmt: skip
    settings = Settings(throttle=throttle, strict=strict, foreign=foreign, limits=limits, windows=tuple(window or ()))
    if dry_run:
        return show_steps(order, settings, bootstrap_server, command_config, journal, form, out)
    return carry_out(context, order, settings, bootstrap_server, command_config, journal, form, out, interval)


def _window_problems(windows: Collection[str]) -> Iterator[Problem]:
    from trimtab.execution.windows import parse_window

    for text in windows:
        try:
            parse_window(text)
        except ValueError as error:
            yield Problem("--window", str(error))


def carry_out(
    context: typer.Context, order: Order, settings: Settings, bootstrap_server: str, command_config: Path | None, journal: Path | None,
    form: Literal["text", "json"] = "text", out: Path | None = None, interval: float | None = None,
) -> int:  # fmt: skip
    """Carry an order out to the end, and say what became of the loads of brokers, measured for `interval` seconds; the exit code."""
    from trimtab.execution.run import reached

    if not order.tasks:
        log.info(EMPTY)
        return 0
    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        _require_free(there)
        there.execution.begin(order, settings)
        _foretell(there, there.execution.tasks.values(), order, settings)
        story = context.find_object(Story) or Story()
        return to_the_end(context, there, form, out, lambda: _loads(story, order, bootstrap_server, command_config, interval))


def _foretell(there: Reached, tasks: Collection[Task], order: Order, settings: Settings) -> None:
    """How much is copied, and what the copies may do to the cluster."""
    from trimtab.execution.noticed import noticed

    tell_size(tasks, order.plan_id, settings.throttle, order.headroom)
    notice = noticed(order.tasks, there.port)
    if notice:
        log.warning("%s", notice)


def show_steps(
    order: Order, settings: Settings, bootstrap_server: str, command_config: Path | None, journal: Path | None,
    form: Literal["text", "json"], out: Path | None,
) -> int:  # fmt: skip
    """Write the steps that carrying an order out would take on the cluster as it is now; changes nothing there. The exit code."""
    from trimtab.execution.dry_run import dry_run
    from trimtab.execution.run import reached

    if not order.tasks:
        log.info(EMPTY)
        return 0
    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        _require_free(there)
        made = dry_run(order, settings, there.port, there.ledger.read())
        _foretell(there, made.tasks.values(), order, settings)
    write_dry_run(made, form, out)
    return 0


def _require_free(there: Reached) -> None:
    """Refuse with an `ExternalError` where another execution is not over, or the cluster is paused."""
    from trimtab.execution.checks import unfinished
    from trimtab.execution.people import pause_of
    from trimtab.execution.run import at_work

    header = there.execution.read()
    if header is not None and header.state == "running":
        raise ExternalError(unfinished(header, working=at_work(there.execution)))
    pause = pause_of(there.ledger.told())
    if pause is not None:
        raise ExternalError(f"the cluster is {paused_by(pause)}: no plan is started; `trimtab resume` ends the pause")


def _loads(
    story: Story, order: Order, bootstrap_server: str, command_config: Path | None, interval: float | None
) -> tuple[Compared, ...]:
    """Loads of brokers now beside those that the plan predicted; none where that cannot be told."""
    from trimtab.capturing import captured
    from trimtab.execution.comparison import compared, loads_of

    if not order.predicted:
        return ()
    try:
        now = captured(story, bootstrap_server, command_config, interval)
    except ExternalError as error:
        log.warning("the loads of brokers after the execution could not be measured: %s", error)
        return ()
    except KeyboardInterrupt:  # the plan is carried out, whether a person waits for this or not
        log.warning("the loads of brokers after the execution were not measured completely")
        return ()
    return compared(order.predicted, loads_of(now, order.predicted), order.before)


def status_command(
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    journal: JournalFolder = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Show how far the execution on a cluster is, how fast, why it waits, and each partition that was not changed."""
    require_writable("trimtab status", out)
    from trimtab.execution.people import drains_of, pause_of
    from trimtab.execution.run import at_work, looked_on, reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        told = there.ledger.told()
        pause, drains = pause_of(told), drains_of(told)
        if pause is not None:
            log.warning("the cluster is %s: no plan is started", paused_by(pause))
        for broker, by in drains.items():
            log.info("broker %d is being drained, by %s; `trimtab activate` takes it back", broker, by)
        if there.execution.read() is None and (pause is not None or drains):
            return 0
        require_known(there)
        found = there.execution.standing()
        assert found is not None
        working = at_work(there.execution)
        if not found.over:
            found = looked_on(there.execution)
        write_standing(found, form, out, working=working)
    return 0


def tell_size(tasks: Collection[Task], plan_id: str, rate: int | None, headroom: Headroom | None = None) -> None:
    """How much a plan copies, and at a throttle how long that takes."""
    total = sum(t.to_copy for t in tasks)
    log.info("plan %s: %s, %s to copy", plan_id, partitions_counted(len(tasks)), format_size(total))
    batches = max((t.batch for t in tasks), default=0)
    if batches:
        log.info("it is carried out in %s, as its policy says", "one batch" if batches == 1 else f"{batches} batches")
    gaps = sum(t.gap for t in tasks)
    if gaps:
        log.info("%s of one replica: without a leader for a moment", partitions_counted(gaps))
    for line in duration_lines(tasks, rate, headroom):
        log.info("%s", line)


def duration_lines(tasks: Collection[Task], rate: int | None, headroom: Headroom | None = None) -> list[str]:
    """How long a plan takes at a throttle, in all and of the slowest brokers; nothing without a throttle, or a byte to copy."""
    from trimtab.execution.pacing import Headroom, first
    from trimtab.execution.run import spoken_seconds
    from trimtab.execution.throttle import hours

    lines: list[str] = []
    if not rate or not sum(t.to_copy for t in tasks):
        return lines
    if rate == AUTO:
        pace = first(tasks, headroom or Headroom())
        lines.append(f"it starts with a throttle of {format_size(pace.rate)}/s: {pace.why}")
        rate = pace.rate
    slowest = sorted(hours(tasks, rate).items(), key=lambda item: (-item[1], item[0]))
    each = ", ".join(f"broker {b} {spoken_seconds(h * 3600)}" for b, h in slowest[:SLOWEST])
    return [*lines, f"at {format_size(rate)}/s it takes at least {spoken_seconds(slowest[0][1] * 3600)} ({each})"]


def require_known(there: Reached) -> None:
    """Refuse with an `ExternalError` where no plan was carried out on the cluster yet."""
    if there.execution.read() is None:
        raise ExternalError("no plan was carried out on this cluster yet; `trimtab execute` starts one")


def to_the_end(
    context: typer.Context, there: Reached, form: Literal["text", "json"], out: Path | None,
    loads: Callable[[], tuple[Compared, ...]] = tuple,
) -> int:  # fmt: skip
    """Carry out until it is over, or until a signal; the exit code. `loads` measures what became of brokers, for the report."""
    from trimtab.execution.run import carried_out

    story = context.find_object(Story) or Story()
    with signals_heard() as told:
        found = carried_out(there.execution, story, told.stop.wait)
    if not found.over:
        log.warning("ended before the plan was carried out: steps in progress continue in the cluster; `trimtab resume` does the rest")
        return INTERRUPTED
    write_standing(found, form, out, working=False, loads=loads() if found.state == "done" else ())
    return FAILED if found.unchanged or found.throttles_left else 0
