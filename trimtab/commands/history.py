"""`trimtab history`: months of samples from what an operator has: files of other systems, or the internal topic.

Parses, calls `spark.history`, tells what came of it. Spark is imported inside the functions.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_duration
from trimtab.commands import options as o
from trimtab.commands import spark_options as so
from trimtab.commands.history_check import check_command
from trimtab.output import emit
from trimtab.story import log, tell_when

if TYPE_CHECKING:
    from spark.history.mapping import CsvMapping, PrometheusMapping

Form = Literal["csv", "prometheus"]
Out = Annotated[str, typer.Option("--out", metavar="DIR", help="The history: a folder, or a URI that Spark takes (s3a://, hdfs://).")]
Bootstrap = Annotated[str, typer.Option("--bootstrap-server", metavar="HOST:PORT", help="The cluster that the topic is on.")]
Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="The topic (default: as the reporter names it).")]
Records = Annotated[Literal["own", "automq"], typer.Option("--records", help="Whose reporter wrote the records.")]
Checkpoint = Annotated[
    str | None, typer.Option("--checkpoint", metavar="DIR", help="Where the reading positions stand (default: _topic in the history).")
]
Rejected = Annotated[
    str | None, typer.Option("--rejected", metavar="DIR", help="Keep what was not taken here, with the reason, as Parquet.")
]
ClusterId = Annotated[str | None, typer.Option("--cluster-id", metavar="ID", help="Which cluster the samples are of.")]


def register(app: typer.Typer) -> None:
    """Add the command and its parts to `app`."""
    what = "Histories of samples for Spark: import what others kept, read the internal topic, check what is there."
    group = typer.Typer(name="history", help=what)
    group.command("import")(import_command)
    group.command("mapping")(mapping_command)
    group.command("backfill")(backfill_command)
    group.command("follow")(follow_command)
    group.command("check")(check_command)
    app.add_typer(group)


def import_command(
    source: Annotated[
        list[str],
        typer.Option("--from", metavar="PATH", help="File, folder or pattern; repeatable."),
    ],
    form: Annotated[Form, typer.Option("--form", help="csv, or answers of Prometheus to query_range as curl saves them.")],
    out: Out,
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", exists=True, dir_okay=False, metavar="FILE", help="Which column or series is which metric (YAML)."),
    ] = None,
    cluster_id: ClusterId = None,
    rejected: Rejected = None,
    master: so.Master = None,
) -> None:
    """Write files of other systems as a history: whole days, all or nothing.

    Counters become rates. Rows that do not count are told with their reasons.
    """
    wanted = load_mapping(form, mapping)
    if form == "prometheus" and cluster_id is None and getattr(wanted, "cluster_label", None) is None:
        message = "nothing says of which cluster the samples are; give it, or cluster_label in the mapping"
        raise ConfigurationError("trimtab history import", [Problem("--cluster-id", message)])
    from spark.history.importing import import_history
    from spark.session import session

    log.info("reading %s", ", ".join(source))
    with so.only_writer(out):
        done = import_history(session("trimtab history import", master), source, wanted, out, cluster_id, rejected)
    tell_rejected(done.rejected, done.examples)
    log.info("%s: %d samples of %d days, %s to %s", out, done.rows, len(done.days), done.days[0], done.days[-1])


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
    """Write what the internal topic has and the history has not yet, then end.

    Called again, it goes on where it ended. No sample is there twice, wherever it was interrupted.
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
        typer.Option("--every", parser=o.parsed_by(parse_duration), metavar="DURATION", help="Time between two batches; each makes files."),
    ] = 600.0,
    master: so.Master = None,
) -> None:
    """Write what the internal topic has, and go on with what comes, until SIGTERM or Ctrl-C.

    May be killed at any time, and goes on where it was.
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
    log.info("%s: %d samples in %d batches; read up to what %s says", wanted.out, kept.rows, kept.batches, checkpoint)


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


def mapping_command(
    form: Annotated[Literal["prometheus"], typer.Argument(metavar="FORM", help="prometheus")] = "prometheus",
) -> None:
    """Print the mapping that an import uses where none is given, to start an own one from."""
    emit(_shipped(form).read_text(encoding="utf-8"), None)


def load_mapping(form: Form, path: Path | None) -> CsvMapping | PrometheusMapping:
    """The mapping of a file, or the one that is shipped."""
    from spark.history.mapping import CsvMapping, PrometheusMapping
    from trimtab.config_file import read_config

    if form == "csv":
        if path is None:
            return CsvMapping(version=1)
        return read_config(path, CsvMapping, "a mapping with `version` and columns", lambda document, folder: ())
    with nullcontext(path) if path is not None else as_file(_shipped(form)) as file:
        return read_config(file, PrometheusMapping, "a mapping with `version` and series", lambda document, folder: ())


def _shipped(form: str) -> Traversable:
    """Not a path: the package may be a zip, as spark-submit takes it."""
    return files("spark.history") / "mappings" / f"{form}.yaml"


def tell_rejected(rejected: Mapping[str, int], examples: Mapping[str, str]) -> None:
    """A line for each reason, the most frequent first."""
    for reason, count in sorted(rejected.items(), key=lambda item: (-item[1], item[0])):
        example = examples.get(reason)
        log.warning("%d rows were not taken: %s%s", count, reason, f" (such as {example})" if example else "")
