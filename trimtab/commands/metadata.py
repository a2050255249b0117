"""`trimtab metadata`: what a cluster's metadata says, from the log on disk or from the admin interface; once, or as
it changes. Changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from cluster_model.quantities import parse_duration
from trimtab.commands import options as o
from trimtab.commands import values as v
from trimtab.output import emit, unwritable
from trimtab.story import log

if TYPE_CHECKING:
    from cluster_model.metadata.follower import Follower, Update
    from trimtab.capture import Clock

EITHER = "--kraft-log, --bootstrap-server"
LOG_INTERVAL, ADMIN_INTERVAL = 0.2, 2.0
PATIENCE_SECONDS = 1.0  # the image may lag behind for so long before it is told


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("metadata")(metadata_command)


def metadata_command(
    kraft_log: Annotated[
        Path | None,
        typer.Option(
            "--kraft-log",
            exists=True,
            file_okay=False,
            rich_help_panel=o.SOURCE,
            metavar="DIR",
            help="Metadata log on this machine: …/__cluster_metadata-0 of a controller or broker.",
        ),
    ] = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            rich_help_panel=o.SOURCE,
            metavar="HOST:PORT",
            help="Brokers to ask how much of the log is committed; without --kraft-log, to ask for all metadata.",
        ),
    ] = None,
    command_config: o.CommandConfig = None,
    unconfirmed: Annotated[
        bool,
        typer.Option(
            "--unconfirmed",
            help="Read a log to its end, committed or not: for a copy of one that has no leader any more.",
        ),
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Continue, and print each change until Ctrl-C.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            parser=v.parsed_by(parse_duration),
            metavar="DURATION",
            help=f"Time between two looks of --follow (default {LOG_INTERVAL:g}s, {ADMIN_INTERVAL:g}s without a log).",
        ),
    ] = None,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
    out: o.Out = None,
) -> None:
    """Print the brokers, topics and partitions in a cluster's metadata, and with --follow each change.

    Only committed records count, unless --unconfirmed is given.
    """
    problems = _problems(kraft_log, bootstrap_server, command_config, unconfirmed, follow, interval, out)
    if problems:
        raise ConfigurationError("trimtab metadata", problems)
    from trimtab.capture import Clock
    from trimtab.metadata_words import image_document, image_words

    clock = Clock()
    with ExitStack() as opened:
        follower, update, cluster_id = _first(opened, clock, kraft_log, bootstrap_server, command_config, unconfirmed)
        if update.held is not None:
            remedy = "" if bootstrap_server else "; give --bootstrap-server too, or --unconfirmed for a copy of a log"
            log.warning("%s%s", update.held, remedy)
        for key, count in sorted(update.unknown.items()):
            log.info("skipped %d records of type %d, which this release does not know", count, key)
        if form == "json":
            document = image_document(follower.image, update, cluster_id)
            emit(json.dumps(document, indent=None if follow else 1, ensure_ascii=False), out)
        else:
            emit(image_words(follower.image, update, cluster_id), out)
        if follow:
            pause = interval or (LOG_INTERVAL if kraft_log is not None else ADMIN_INTERVAL)
            follow_on(follower, clock, pause, _printer(form, clock), lambda: False)


def _first(
    opened: ExitStack,
    clock: Clock,
    kraft_log: Path | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    unconfirmed: bool,
) -> tuple[Follower, Update, str | None]:
    """A follower, what its first poll brought, and the id of the cluster where it is known."""
    from cluster_model.metadata.follower import KRaftFollower
    from cluster_model.metadata.polling import AdminFollower
    from trimtab.capture.placement import caught_up, cluster_of, require_cluster

    if bootstrap_server is None:
        assert kraft_log is not None
        alone = KRaftFollower(kraft_log, None, unconfirmed=unconfirmed)
        return alone, alone.poll(now_ms(clock)), cluster_of(kraft_log)

    from trimtab.capture.client import client_settings
    from trimtab.capture.gateway import Gateway

    gateway = opened.enter_context(Gateway(bootstrap_server, client_settings(command_config)))
    cluster_id = gateway.cluster_id()
    if kraft_log is not None:
        require_cluster(kraft_log, cluster_id)
        follower = KRaftFollower(kraft_log, gateway)
        return follower, caught_up(follower, clock), cluster_id
    admin = AdminFollower(gateway)
    update = admin.poll(now_ms(clock))
    if not update.replaced:
        raise ExternalError(update.held or "the cluster does not answer", retriable=True)
    return admin, update, cluster_id


def follow_on(
    follower: Follower, clock: Clock, pause: float, happened: Callable[[Update], None], ended: Callable[[], bool]
) -> None:
    """Poll every `pause` seconds and hand every update to `happened`, until `ended`; tell of an image that lags."""
    lags_since: float | None = None
    told: str | None = None
    while not ended():
        clock.sleep(pause)
        update = follower.poll(now_ms(clock))
        happened(update)
        if update.held is None:
            if told is not None:
                log.info("the metadata is up to date again")
            lags_since, told = None, None
            continue
        lags_since = clock.monotonic() if lags_since is None else lags_since
        if told is None and clock.monotonic() - lags_since >= PATIENCE_SECONDS:
            told = update.held
            log.warning("%s", told)


def now_ms(clock: Clock) -> int:
    return int(clock.now().timestamp() * 1000)


def _printer(form: str, clock: Clock) -> Callable[[Update], None]:
    from trimtab.metadata_words import event_document, event_words

    def happened(update: Update) -> None:
        if update.replaced:
            log.info("loaded a newer checkpoint; what follows is the difference")
        for event in update.events:
            now = clock.now()
            if form == "json":
                emit(json.dumps(event_document(event, update.offset, now), ensure_ascii=False), None)
            else:
                place = f" {update.offset}" if update.offset >= 0 else ""
                emit(f"{now.strftime('%H:%M:%S.%f')[:-3]}{place} {event_words(event)}", None)

    return happened


def _problems(
    kraft_log: Path | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    unconfirmed: bool,
    follow: bool,
    interval: float | None,
    out: Path | None,
) -> list[Problem]:
    problems = unwritable("--out", out)
    if kraft_log is None and bootstrap_server is None:
        remedy = "give the log on this machine, HOST:PORT of a broker, or both"
        problems.append(Problem(EITHER, f"expected at least one of them, found none; {remedy}"))
    if unconfirmed and (kraft_log is None or bootstrap_server is not None):
        problems.append(Problem("--unconfirmed", "goes with --kraft-log alone: brokers say what is committed; leave it out"))
    if command_config is not None and bootstrap_server is None:
        problems.append(Problem("--command-config", "goes with --bootstrap-server; leave it out"))
    if follow and kraft_log is not None and bootstrap_server is None and not unconfirmed:
        problems.append(Problem("--follow", "needs --bootstrap-server: the files do not say what is committed"))
    if interval is not None and not follow:
        problems.append(Problem("--interval", "goes with --follow; leave it out"))
    if interval is not None and interval <= 0:
        problems.append(Problem("--interval", "expected a time above 0, such as 200ms"))
    if follow and out is not None and str(out) != "-":
        problems.append(Problem("--out", "does not go with --follow, which prints as things happen; leave it out"))
    return problems
