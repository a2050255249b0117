"""`trimtab directories`: levels the volumes of each broker's log directories. Parsing and writing only.

What moves is `optimizer.directory_plan`'s, what is safe `trimtab.execution.directories`'.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.content import content_of
from cluster_model.errors import ConfigurationError, ExternalError, InputError, Problem
from cluster_model.quantities import format_size, parse_size
from optimizer.options import RemovedDirectory
from trimtab.commands import options as o
from trimtab.commands import values as v
from trimtab.commands.execution_options import JournalFolder, folder_of
from trimtab.commands.records import expanded
from trimtab.output import emit, nothing_else_on_stdout, overwritten, unwritable
from trimtab.signals import ending_at_once, signals_heard
from trimtab.story import Story, log

if TYPE_CHECKING:
    from optimizer.directory_plan import DirectoryPlan
    from trimtab.execution.directories import DirectoryMoves

Form = Literal["text", "json", "reassignment"]
FAILED, INTERRUPTED = 1, 130
TURN_SECONDS = 2.0


def parse_removed(text: str) -> RemovedDirectory:
    """``BROKER:DIR``."""
    broker, _, path = text.partition(":")
    if not (broker.isdecimal() and broker.isascii() and path):
        raise ValueError(f"expected BROKER:DIR such as 3:/data2, found {text!r}")
    return RemovedDirectory(int(broker), path.rstrip("/") or path)


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("directories")(directories_command)


@expanded
def directories_command(
    context: typer.Context,
    *,
    source: o.Source,
    wanted: o.Wanted,
    form: Annotated[
        Form, typer.Option("--format", help="text: the dry run; json; reassignment: Kafka's reassignment file with log_dirs.")
    ] = "text",
    out: o.Out = None,
    execute: Annotated[
        Path | None,
        typer.Option("--execute", callback=v.there, dir_okay=False, metavar="FILE", help="Carry out a file of --format reassignment."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, metavar="N", help="With --execute: replicas of a broker that are copied at a time.")
    ] = 1,
    remove: Annotated[
        list[RemovedDirectory] | None,
        typer.Option(
            "--remove", parser=v.parsed_by(parse_removed), metavar="BROKER:DIR",
            help="Move all replicas off this log directory, to the others of the broker. Repeatable.",
        ),
    ] = None,
    reserve: Annotated[
        int | None,
        typer.Option(
            parser=v.parsed_by(parse_size), metavar="SIZE", help="With --execute: keep this much free on every log directory (default 1GB)."
        ),
    ] = None,
    journal: JournalFolder = None,
) -> int:
    """Level the log directories of each broker that has several volumes (JBOD): the fewest bytes that bring each into its target range.

    With --remove, a directory is emptied, so that its disk can be replaced.

    This is a dry run. With --execute, the moves in the file of a dry run are carried out, a few at a time. Replicas stay on their
    brokers. The same command given again continues with the remaining moves.
    """
    problems = [*(source.problems() if execute is None else _alone(source, wanted, out, remove)), *unwritable("--out", out)]
    if execute is None and reserve is not None:
        problems.append(Problem("--reserve", "goes with --execute; for the dry run, give policy.directories.limit in the goals file"))
    problems += overwritten({"--out": out, "--save-snapshot": source.save_snapshot}, source.files | wanted.files)
    if problems:
        raise ConfigurationError("trimtab directories", problems)
    if execute is not None:
        assert source.bootstrap_server is not None
        return _carry_out(execute, source.bootstrap_server, source.command_config, journal, concurrency, reserve)
    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(context.find_object(Story) or Story())
        from goals.policy import PolicyDocument
        from optimizer.directory_plan import plan_directories

        policy = PolicyDocument.model_validate(goal_set.policy).directories
        with nothing_else_on_stdout():
            plan = plan_directories(cluster, goal_set.constraints, policy, remove or ())
    source.keep(cluster)
    _write(plan, form, out)
    return 0


def _alone(source: o.Source, wanted: o.Wanted, out: Path | None, remove: list[RemovedDirectory] | None) -> list[Problem]:
    """What is wrong beside --execute: options of the dry run, since the file says all, and no cluster."""
    given = {
        "--snapshot": source.snapshot, "--interval": source.interval, "--capacity": source.capacity,
        "--save-snapshot": source.save_snapshot, "--goals": wanted.goals, "--preset": wanted.preset,
        "--calibration": wanted.calibration, "--out": out, "--remove": remove or None,
    }  # fmt: skip
    why = "goes with the dry run, not with --execute, which does what its file says; leave it out"
    problems = [Problem(option, why) for option, value in given.items() if value is not None]
    if source.bootstrap_server is None:
        remedy = "give HOST:PORT of the live cluster, or --cluster NAME"
        problems.append(Problem("--bootstrap-server", f"expected with --execute, found none; {remedy}"))
    return problems


def _write(plan: DirectoryPlan, form: Form, out: Path | None) -> None:
    from optimizer.report import directories as report
    from trimtab.plan_output import write_text

    match form:
        case "text":
            write_text(plan, out, report.render_directories)
        case "json":
            emit(report.directories_json(plan), out)
        case "reassignment":
            emit(report.directories_reassignment(plan), out)
    if form != "text" or out is not None:
        log.info("%s", report.sentence(plan))


def _carry_out(
    file: Path, bootstrap_server: str, command_config: Path | None, journal: Path | None, concurrency: int, reserve: int | None
) -> int:
    from trimtab.execution.checks import unfinished
    from trimtab.execution.directories import DirectoryMoves, read_moves
    from trimtab.execution.run import at_work, reached
    from trimtab.execution.state import Limits

    try:
        moves = read_moves(content_of(file).decode(), str(file))
    except UnicodeDecodeError:
        raise InputError(str(file), [Problem("", "expected UTF-8 text, found other bytes; copy the file again")]) from None
    if not moves:
        log.info("the file has no replica that changes its log directory: nothing to do")
        return 0
    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        header = there.execution.read()
        if header is not None and header.state == "running":
            raise ExternalError(unfinished(header, working=at_work(there.execution)))
        doing = DirectoryMoves(there.port, moves, concurrency, Limits().reserve if reserve is None else float(reserve))
        with signals_heard() as told:
            return to_the_end(doing, told.stop.wait)


def to_the_end(doing: DirectoryMoves, stop: Callable[[float], bool]) -> int:
    """Take turns until all is done, or until `stop`, which waits some seconds, says to end; the exit code."""
    said = ""
    while True:
        try:
            doing.turn()
        except ExternalError as error:
            if not error.retriable:
                raise
            log.warning("%s; looking again", error)
        now = _standing(doing)
        if now != said:
            log.info("%s", now)
            said = now
        if doing.over or stop(TURN_SECONDS):
            break
    if not doing.over:
        log.warning("ended before all was moved: what is on its way goes on in the brokers; the same command goes on with the rest")
        return INTERRUPTED
    for step in doing.steps:
        if step.state == "failed":
            log.error("%s was not moved to %s: %s", step.replica, step.target, step.why)
    return FAILED if doing.count("failed") else 0


def _standing(doing: DirectoryMoves) -> str:
    done = doing.count("done")
    copied = sum(step.bytes for step in doing.steps if step.state == "done")
    silent = ", ".join(map(str, doing.silent))
    text = f"{done} of {len(doing.steps)} replicas are in their log directories ({format_size(copied)})"
    return f"{text}, {doing.count('moving')} on their way" + (f"; waiting for an answer of broker {silent}" if silent else "")
