"""`trimtab snapshot`: captures a live cluster to a file that `plan` and `explain` read. Changes nothing on
the cluster.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import ConfigurationError
from trimtab.capturing import captured
from trimtab.commands import options as o
from trimtab.output import emit, overwritten, unwritable
from trimtab.story import Story, log

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot

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

    Rates are measured over --interval from offsets and log sizes, so no agent is needed on the brokers. 0s measures none.
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
