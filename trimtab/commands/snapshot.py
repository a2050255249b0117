"""`trimtab snapshot`: captures a live cluster to a file that `plan` and `explain` read. Changes nothing on
the cluster.

`captured` is the same with a progress bar, for every command that takes a live cluster.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import ConfigurationError
from cluster_model.quantities import parse_duration
from trimtab.commands import options as o
from trimtab.output import emit, overwritten, unwritable
from trimtab.story import Story, log

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot

DEFAULT_INTERVAL_SECONDS = parse_duration(o.DEFAULT_INTERVAL)
STDOUT = Path("-")


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("snapshot")(snapshot_command)


def snapshot_command(
    context: typer.Context,
    bootstrap_server: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            rich_help_panel=o.SOURCE,
            help="A broker of the cluster, several with commas.",
        ),
    ],
    command_config: o.CommandConfig = None,
    interval: o.Interval = None,
    capacity: o.CapacityPath = None,
    kraft_log: Annotated[
        Path | None,
        typer.Option(
            "--kraft-log",
            exists=True,
            file_okay=False,
            rich_help_panel=o.SOURCE,
            metavar="DIR",
            help="Metadata log on this machine (…/__cluster_metadata-0) to take brokers, replicas and leaders from.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write here instead of to stdout: .json, .json.gz, or a folder for Parquet files.",
        ),
    ] = None,
) -> int:
    """Capture a live cluster: brokers, replicas, leaders, log sizes and rates. Changes nothing.

    Rates are measured over --interval from offsets and log sizes, so no agent is needed on the brokers; 0s
    measures none.
    """
    if out is not None and out != STDOUT:
        problems = overwritten({"--out": out}, {"--command-config": command_config, "--capacity": capacity})
        problems += unwritable("--out", out) if o.is_file_name(out) else []
        if problems:
            raise ConfigurationError("trimtab snapshot", problems)
    story = context.find_object(Story) or Story()
    snapshot = captured(story, bootstrap_server, command_config, interval, capacity, kraft_log)
    if out is None or out == STDOUT:
        from cluster_model.build import to_document

        emit(json.dumps(to_document(snapshot), indent=1, allow_nan=False), None)
    else:
        from cluster_model.files import write_snapshot

        write_snapshot(snapshot, out)
    log.info("%s", _told(snapshot, out))
    return 0


def captured(
    story: Story,
    bootstrap_server: str,
    command_config: Path | None = None,
    interval: float | None = None,
    capacity: Path | None = None,
    kraft_log: Path | None = None,
) -> Snapshot:
    """`trimtab.capture.capture` with a progress bar where a person watches; `interval` None is the default
    one. Brokers that people told the cluster to drain are draining."""
    from trimtab.capture.client import client_settings
    from trimtab.execution.people import as_draining, drained_brokers

    snapshot = _captured(story, bootstrap_server, command_config, interval, capacity, kraft_log)
    return as_draining(snapshot, drained_brokers(bootstrap_server, client_settings(command_config).options, snapshot.cluster_id))


def _captured(
    story: Story, bootstrap_server: str, command_config: Path | None, interval: float | None, capacity: Path | None, kraft_log: Path | None
) -> Snapshot:
    from trimtab.capture import capture

    seconds = DEFAULT_INTERVAL_SECONDS if interval is None else interval
    if not story.animated:
        return capture(
            bootstrap_server, command_config=command_config, interval=seconds, capacity=capacity, kraft_log=kraft_log
        )
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("connecting", total=1.0)
        return capture(
            bootstrap_server, command_config=command_config, interval=seconds, capacity=capacity, kraft_log=kraft_log,
            progress=lambda what, share: bar.update(task, description=what, completed=share),
        )  # fmt: skip


def _told(snapshot: Snapshot, out: Path | None) -> str:
    """One sentence on what was captured."""
    counts = (
        f"{snapshot.broker_count} brokers, {snapshot.partition_count} partitions, "
        f"{snapshot.replica_count} replicas"
    )
    states = [label for label in ("draining", "dead") if (count := _count(snapshot, label)) and count]
    odd = ", ".join(f"{_count(snapshot, label)} {label}" for label in states)
    return f"captured {counts}{f' ({odd})' if odd else ''}{f' to {out}' if out not in (None, STDOUT) else ''}"


def _count(snapshot: Snapshot, label: str) -> int:
    from cluster_model.snapshot import STATES_BY_LABEL

    return int((snapshot.broker_states == STATES_BY_LABEL[label]).sum())
