"""`trimtab history import`: what other systems kept as a history: CSV files by Spark, answers of Prometheus without it.

Parses, calls `spark.history`, tells what came of it. Heavy things are imported inside the functions.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_duration
from trimtab.bar import Move, bar
from trimtab.commands import spark_options as so
from trimtab.commands import values as v
from trimtab.output import emit
from trimtab.story import Story, log

if TYPE_CHECKING:
    from spark.history.importing import Imported
    from spark.history.mapping import CsvMapping, PrometheusMapping

DAY = 86_400
Form = Literal["csv", "prometheus"]
Out = Annotated[str, typer.Option("--out", metavar="DIR", help="The history: a folder, or a URI for Spark (s3a://, hdfs://).")]
Rejected = Annotated[
    str | None, typer.Option("--rejected", metavar="DIR", help="Write rejected rows here, with the reason, as Parquet.")
]
ClusterId = Annotated[str | None, typer.Option("--cluster-id", metavar="ID", help="Cluster that the samples belong to.")]


def import_command(
    context: typer.Context,
    form: Annotated[Form, typer.Option("--form", help="csv, or prometheus: its answers to query_range, as saved by curl.")],
    out: Out,
    source: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="PATH", help="File, folder or pattern; repeatable."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Ask Prometheus, Thanos or VictoriaMetrics here, instead of --from."),
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--begin", metavar="DATE", help="First day to ask for, UTC (default: after the last day of the history).")
    ] = None,
    end: Annotated[str | None, typer.Option("--end", metavar="DATE", help="Day to stop before, UTC (default: today).")] = None,
    step: Annotated[
        float,
        typer.Option(
            "--step", parser=v.parsed_by(parse_duration), metavar="DURATION", show_default=False,
            help="Time between two points of a series (default: 1m).",
        ),
    ] = 60.0,
    match: Annotated[
        str, typer.Option("--match", metavar="LABELS", help="Labels added to every query, such as 'job=\"kafka\"'.")
    ] = "",
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", exists=True, dir_okay=False, metavar="FILE", help="Bearer token for --url."),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option("--answers", metavar="DIR", help="Keep the server's answers here (default: in --out, until all are imported)."),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option("--mapping", exists=True, dir_okay=False, metavar="FILE", help="Mapping of columns or series to metrics (YAML)."),
    ] = None,
    cluster_id: ClusterId = None,
    rejected: Rejected = None,
    master: so.Master = None,
) -> None:
    """Write files of other systems as a history: whole days, all or nothing.

    Counters become rates. Rejected rows are reported with their reasons. An import by --url continues where it was interrupted.
    Prometheus needs no Java; CSV files do.
    """
    from spark.history.mapping import CsvMapping

    wanted = load_mapping(form, mapping)
    problems = _import_problems(form, source, url, cluster_id, wanted, out, rejected, begin, end, step)
    if problems:
        raise ConfigurationError("trimtab history import", problems)
    if isinstance(wanted, CsvMapping):
        from spark.history.importing import import_history
        from spark.session import session

        log.info("reading %s", ", ".join(source or []))
        with so.only_writer(out):
            gone = [Problem("--from", f"there is nothing at {path}") for path in source or [] if so.absent(path, master)]
            if gone:  # Spark would take its time, and tell it with a page of Java
                raise ConfigurationError("trimtab history import", gone)
            done = import_history(session("trimtab history import", master), source or [], wanted, out, cluster_id, rejected)
    else:
        done = _import_prometheus(context, source, url, (begin, end), step, match, token_file, answers, wanted, out, cluster_id, rejected)
    tell_rejected(done.rejected, done.examples)
    log.info("%s: %d samples of %d days, %s to %s", out, done.rows, len(done.days), done.days[0], done.days[-1])


def _import_problems(
    form: Form, source: list[str] | None, url: str | None, cluster_id: str | None, wanted: CsvMapping | PrometheusMapping, out: str,
    rejected: str | None, begin: str | None, end: str | None, step: float,
) -> list[Problem]:  # fmt: skip
    """Options that do not go together, all at once."""
    found = []
    if (not source) == (url is None):
        found.append(Problem("--from", "expected either files (--from) or a server to ask (--url)"))
    if url is not None and (form != "prometheus" or not url.startswith(("http://", "https://"))):
        found.append(Problem("--url", f"expected --form prometheus and an address such as http://prometheus:9090, found {url!r}"))
    if step < 1 or step % 1 or DAY % step:
        found.append(Problem("--step", f"expected whole seconds that divide a day evenly, such as 1m, found {step:g} s"))
    for option, day in (("--begin", begin), ("--end", end)):
        if day is not None and _day(day) is None:
            found.append(Problem(option, f"expected a day such as 2026-11-01, found {day!r}"))
    if form == "prometheus":
        if cluster_id is None and getattr(wanted, "cluster_label", None) is None:
            found.append(
                Problem("--cluster-id", "the cluster of the samples is not known; give it here, or give cluster_label in the mapping")
            )
        for option, place in (("--out", out), ("--rejected", rejected)):
            if place is not None and so.is_uri(place):
                message = f"expected a folder of this machine for --form prometheus, found {place}; copy it there afterwards"
                found.append(Problem(option, message))
    return found


def _day(text: str) -> int | None:
    """Epoch seconds of a day's start in UTC."""
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _import_prometheus(
    context: typer.Context, source: list[str] | None, url: str | None, days: tuple[str | None, str | None], step: float, match: str,
    token_file: Path | None, answers: Path | None, wanted: PrometheusMapping, out: str, cluster_id: str | None, rejected: str | None,
) -> Imported:  # fmt: skip
    from spark.history.answers import files_of
    from spark.history.importing import import_answers

    now, story = datetime.now(UTC), context.find_object(Story) or Story()
    with so.only_writer(out), bar(story, "Answers", "done") as (tell, move):
        kept = answers or Path(out) / "_answers"
        if url is None:
            files = files_of(source or [])
        else:
            begin, end = _span(days, out, now)
            tell(f"asking {url.rpartition('@')[2]} for {(end - begin) // DAY} days from {datetime.fromtimestamp(begin, UTC):%Y-%m-%d} on")
            files = _asked(url, wanted, match, (begin, end), round(step), token_file, kept, move)
        tell(f"reading {len(files)} answers")
        done = import_answers(files, wanted, out, now, cluster_id, rejected, move)
        if url is not None and answers is None:
            shutil.rmtree(kept, ignore_errors=True)
        return done


def _asked(
    url: str, wanted: PrometheusMapping, match: str, span: tuple[int, int], step: int, token_file: Path | None, kept: Path,
    move: Move | None,
) -> list[Path]:  # fmt: skip
    from spark.history.ask import Server, ask, questions, selectors
    from trimtab.secret_file import read_secret

    try:
        token = None if token_file is None else read_secret(str(token_file), "the token")
    except ValueError as error:
        raise ConfigurationError("trimtab history import", [Problem("--token-file", str(error))]) from None
    return ask(Server(url, token), questions(selectors(wanted, match), *span, step), kept, move)


def _span(days: tuple[str | None, str | None], out: str, now: datetime) -> tuple[int, int]:
    """Epoch seconds of what is asked for: from the day after the last that is there, up to today, unless it is said."""
    there = sorted(one.name.removeprefix("date=") for one in Path(out).glob("date=*"))
    begin = _day(days[0]) if days[0] is not None else _day(there[-1]) if there else None
    if begin is None:
        option = "--begin"
        message = f"expected the first day to ask for, since {out} has none yet; add {option} {_earlier(now)}, or another day"
        raise ConfigurationError("trimtab history import", [Problem(option, message)])
    begin += DAY if days[0] is None else 0
    end = _day(days[1]) if days[1] is not None else None
    end = int(now.timestamp()) // DAY * DAY if end is None else end
    if begin >= end:
        first, last = (datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d") for at in (begin, end))
        message = f"there is no finished day to ask for: from {first} on, and before {last}"
        raise ConfigurationError("trimtab history import", [Problem("--end", message)])
    return begin, end


def _earlier(now: datetime) -> str:
    """The day four weeks before `now`: enough for a first calibration."""
    return f"{now - timedelta(weeks=4):%Y-%m-%d}"


def mapping_command(
    form: Annotated[Literal["prometheus"], typer.Argument(metavar="FORM", help="prometheus")] = "prometheus",
) -> None:
    """Print the default mapping of an import, as a start for your own."""
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
        log.warning("%d rows were rejected: %s%s", count, reason, f" (such as {example})" if example else "")
