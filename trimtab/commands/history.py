"""`trimtab history`: months of samples from what an operator has: files of other systems, or the internal topic.

Parses, calls `spark.history`, tells what came of it. Spark is imported inside the functions.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_duration
from trimtab.commands import options as o
from trimtab.commands import spark_options as so
from trimtab.commands import values as v
from trimtab.commands.history_check import check_command
from trimtab.commands.history_import import Out, Rejected, import_command, mapping_command, tell_rejected
from trimtab.story import log, tell_when

Bootstrap = Annotated[str, typer.Option("--bootstrap-server", metavar="HOST:PORT", help="Brokers of the cluster that has the topic.")]
Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="The internal topic (default: that of the reporter).")]
Records = Annotated[Literal["own", "automq"], typer.Option("--records", help="Reporter that wrote the records.")]
Checkpoint = Annotated[
    str | None, typer.Option("--checkpoint", metavar="DIR", help="Keep the reading positions here (default: _topic in the history).")
]


def register(app: typer.Typer) -> None:
    """Add the command and its parts to `app`."""
    what = "Histories of samples for Spark: import files of other systems, read the internal topic, check completeness."
    group = typer.Typer(name="history", help=what)
    group.command("import")(import_command)
    group.command("mapping")(mapping_command)
    group.command("backfill")(backfill_command)
    group.command("follow")(follow_command)
    group.command("check")(check_command)
    app.add_typer(group)


def backfill_command(
    bootstrap_server: Bootstrap,
    out: Out,
    topic: Topic = None,
    form: Records = "own",
    command_config: o.CommandConfig = None,
    checkpoint: Checkpoint = None,
    rejected: Rejected = None,
    master: so.Master = None,
) -> None:
    """Write the samples of the internal topic that the history does not have yet, then end.

    The next call continues where this one ended. No sample is written twice, even after an interruption.
    """
    _keep(Wanted(bootstrap_server, out, topic, form, command_config, checkpoint, rejected, None), master)


def follow_command(
    bootstrap_server: Bootstrap,
    out: Out,
    topic: Topic = None,
    form: Records = "own",
    command_config: o.CommandConfig = None,
    checkpoint: Checkpoint = None,
    rejected: Rejected = None,
    every: Annotated[
        float,
        typer.Option(
            "--every", parser=v.parsed_by(parse_duration), metavar="DURATION", show_default=False,
            help="Time between two batches of files (default: 10m).",
        ),
    ] = 600.0,
    master: so.Master = None,
) -> None:
    """Write the samples of the internal topic, and new ones as they arrive, until SIGTERM or Ctrl-C.

    It may be killed at any time: the next start continues there.
    """
    if every <= 0:
        raise ConfigurationError("trimtab history follow", [Problem("--every", "expected a time above 0, such as 10m")])
    tell_when()
    _keep(Wanted(bootstrap_server, out, topic, form, command_config, checkpoint, rejected, every), master)


@dataclass(frozen=True)
class Wanted:
    """What backfill and follow are asked for; `every` is None for the first."""

    bootstrap: str
    out: str
    topic: str | None
    form: Literal["own", "automq"]
    command_config: Path | None
    checkpoint: str | None
    rejected: str | None
    every: float | None


def _keep(wanted: Wanted, master: str | None) -> None:
    from metrics_reporter import automq
    from metrics_reporter.topic import DEFAULT_NAME
    from spark.history.follow import Kept, TopicAt, await_end, behind, keep
    from spark.history.topic_source import end_offsets
    from spark.session import session
    from trimtab.capture.client import client_options, client_settings
    from trimtab.capture.gateway import Gateway

    with Gateway(wanted.bootstrap, client_settings(wanted.command_config)) as gateway:
        cluster_id = gateway.cluster_id()
    config = None if wanted.command_config is None else str(wanted.command_config.absolute())
    topic = wanted.topic or (DEFAULT_NAME if wanted.form == "own" else automq.TOPIC)
    at = TopicAt(wanted.bootstrap, topic, partial(client_options, config), wanted.form)
    checkpoint = wanted.checkpoint or f"{wanted.out.rstrip('/')}/_topic"
    running = session("trimtab history", master, spark__sql__shuffle__partitions="4")

    def told(rows: int, rejected: Mapping[str, int]) -> None:
        if rows:
            log.info("%s: %d samples", wanted.out, rows)
        tell_rejected(rejected, {})

    every = None if wanted.every is None else f"{round(1000 * wanted.every)} milliseconds"
    target = end_offsets(at.bootstrap, at.topic, at.options)
    kept, again = Kept(), True
    with so.only_writer(wanted.out):
        while again:
            query = keep(running, at, cluster_id, wanted.out, checkpoint, every, kept, wanted.rejected, told)
            with _stopping(query.stop) as stopped:
                await_end(query)
            again = every is None and not stopped() and behind(query, target)
    log.info("%s: %d samples in %d batches; reading positions are in %s", wanted.out, kept.rows, kept.batches, checkpoint)


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """SIGTERM ends the query as Ctrl-C does; gives whether one of them did."""
    ended = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield lambda: ended
    except KeyboardInterrupt:
        ended = True
        stop()
    finally:
        signal.signal(signal.SIGTERM, before)
