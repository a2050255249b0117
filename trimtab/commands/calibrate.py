"""`trimtab calibrate`: goal constants, loads of partitions and capacities out of a history. Changes nothing on a cluster.

What the figures are is `spark`'s; here is only parsing, telling and writing.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_duration
from trimtab.bar import bar
from trimtab.commands import options as o
from trimtab.commands import spark_options as so
from trimtab.commands import values as v
from trimtab.commands.spark_options import is_uri, spark_for
from trimtab.output import emit, overwritten, unwritable
from trimtab.story import Story, log

DAY = 86_400.0
STDOUT = "-"
DEFAULT_WINDOW = 1800.0  # seconds: the horizon that the service plans with unless told otherwise


def parse_window(text: str) -> float:
    """Seconds of a window: at least one, at most a day."""
    seconds = parse_duration(text)
    if not 1 <= seconds <= DAY:
        raise ValueError(f"expected 1s to 1d, such as 5m, found {text!r}")
    return seconds


def parse_time(text: str) -> datetime:
    """A day or an instant in ISO 8601; UTC where it names no zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a day or time such as 2026-10-01 or 2026-10-01T12:00:00Z, found {text!r}") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("calibrate")(calibrate_command)


def calibrate_command(
    context: typer.Context,
    history: so.History,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Write the calibration here (YAML); - is stdout.")],
    cluster_id: so.ClusterId = None,
    begin: Annotated[
        datetime | None,
        typer.Option(
            "--from", metavar="TIME", parser=v.parsed_by(parse_time), rich_help_panel=o.SOURCE, help="Use samples from this time on (UTC)."
        ),
    ] = None,
    end: Annotated[
        datetime | None,
        typer.Option(
            "--to", metavar="TIME", parser=v.parsed_by(parse_time), rich_help_panel=o.SOURCE, help="Use samples before this time (UTC)."
        ),
    ] = None,
    window: Annotated[
        float | None,
        typer.Option(
            "--window",
            metavar="DURATION",
            parser=v.parsed_by(parse_window),
            help="Average loads over this time, as detectors and plans do (default: the horizon of --service, else 30m).",
        ),
    ] = None,
    service: Annotated[
        Path | None,
        typer.Option(
            "--service", exists=True, dir_okay=False, metavar="FILE", help="Configuration of the service: its horizon is the window."
        ),
    ] = None,
    false_alarms: Annotated[
        float,
        typer.Option("--false-alarms-per-week", metavar="N", min=1e-6, help="How often noise alone may trigger, in the whole cluster."),
    ] = 1.0,
    hits: Annotated[
        int,
        typer.Option("--hits", metavar="N", min=1, max=100, help="Checks in a row that the detector needs to fire (persist.hits_low)."),
    ] = 1,
    once: so.Once = False,
    blocks: Annotated[
        str | None,
        typer.Option(
            "--blocks", metavar="DIR", help="Keep finished days packed in this folder or URI: the next calibration reads only new days."
        ),
    ] = None,
    loads: Annotated[
        str | None,
        typer.Option("--loads", metavar="DIR", help="Write the loads of partitions here as Parquet (default: a folder beside FILE)."),
    ] = None,
    report: so.Report = None,
    master: so.Master = None,
) -> int:
    """Measure a history: noise and imbalance of loads, their weekly pattern, and the capacity of brokers.

    Writes a calibration file that `tune` and goals files take bounds from, and the loads of partitions beside it. Needs Java.
    """
    folder = loads if loads is not None or str(out) == STDOUT else str(out.with_name(f"{out.stem}-loads"))
    inputs = {"--history": None if is_uri(history) else Path(history)}
    problems = [
        *overwritten({"--out": out, "--report": report}, inputs),
        *unwritable("--out", out),
        *unwritable("--report", report),
        *_folder_problems(folder, history),
    ]
    if report is not None and report == out:
        problems.append(Problem("--report", "expected a file of its own, found that of --out"))
    if window is not None and service is not None:
        problems.append(Problem("--window", "the window comes from --service; leave one of them out"))
    if begin is not None and end is not None and begin >= end:
        problems.append(Problem("--to", f"expected a time after --from {begin.isoformat()}, found {end.isoformat()}"))
    if blocks is not None and (begin is not None or end is not None):
        problems.append(Problem("--blocks", "keeps whole days of the whole history; leave --from and --to out"))
    if problems:
        raise ConfigurationError("trimtab calibrate", problems)

    story = context.find_object(Story) or Story()
    window = window or (horizon_of(service) if service is not None else DEFAULT_WINDOW)
    from goals.calibration import calibration_text
    from optimizer.why_words import amount
    from spark.jobs.calibrate import JOBS, Request, calibrate
    from spark.jobs.resources import Detection
    from spark.progress import watched

    with spark_for("trimtab calibrate", master, history, story) as spark:
        if folder is not None and not str(spark.sparkContext.master).startswith("local") and not is_uri(folder):
            log.warning("loads of partitions are not written: on a Spark cluster, --loads must be a URI that all workers can write to")
            folder = None
        request = Request(history, Detection(window, hits, false_alarms), folder, cluster_id, begin, end, once, blocks)
        with bar(story, "Calibration", "parts") as (tell, move), watched(spark, move, JOBS):
            made = calibrate(spark, request, datetime.now(UTC), tell)
    calibration = made.calibration
    if folder is not None:
        named = folder if is_uri(folder) or str(out) == STDOUT else os.path.relpath(folder, out.absolute().parent)
        calibration = calibration.model_copy(update={"loads": named})
    if report is not None:
        from spark.report.calibration import calibration_html

        emit(calibration_html(calibration, made.evidence), report)
    emit(calibration_text(calibration), out)
    for name, found in calibration.resources.items():
        least = amount(found.min_load or 0.0, name)
        said = "not known" if found.bound is None else f"bound {found.bound:g}, var {found.var:g}, min_load {least}"
        log.info("%s: %s", name, said)
    return 0


def horizon_of(service: Path) -> float:
    """Seconds that a service averages over before it plans.

    Raises
    ------
    ConfigurationError
        The file is none of a service's, or its horizon is no window: 1s to 1d.
    """
    from trimtab.config_file import read_config
    from trimtab.service.config import ServiceConfig

    config = read_config(service, ServiceConfig, "a mapping with version: 1 and kafka", lambda document, folder: ())
    seconds = config.horizon_ms / 1000
    if not 1 <= seconds <= DAY:
        told = f"expected 1s to 1d for a calibration, found {seconds:g} s"
        raise ConfigurationError(str(service), [Problem(f"model.{config.horizon}", told)])
    log.info("windows of %g s, as %s plans (model.%s)", seconds, service, config.horizon)
    return seconds


def _folder_problems(folder: str | None, history: str) -> list[Problem]:
    """What keeps the loads from being written to a folder on this machine."""
    if folder is None or is_uri(folder):
        return []
    place, source = Path(os.path.realpath(folder)), Path(os.path.realpath(history))
    if not is_uri(history) and (place == source or source in place.parents or place in source.parents):
        return [Problem("--loads", f"expected a folder apart from the history, found {folder}; name another")]
    if place.exists() and not place.is_dir():
        return [Problem("--loads", f"expected a folder, found the file {folder}; name another")]
    if place.is_dir() and any(one.suffix != ".parquet" for one in place.iterdir() if not one.name.startswith(("_", "."))):
        return [Problem("--loads", f"{folder} has other files in it, which would be deleted; name another folder")]
    if not place.parent.is_dir():
        return [Problem("--loads", f"there is no folder {place.parent}; create it or name another")]
    return [] if os.access(place.parent, os.W_OK) else [Problem("--loads", f"no permission to write in {place.parent}; name another")]
