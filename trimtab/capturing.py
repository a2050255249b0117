"""The capture of a live cluster with a progress bar, for every command that takes one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cluster_model.quantities import parse_duration
from trimtab.story import Story

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot

DEFAULT_INTERVAL = "10s"
DEFAULT_INTERVAL_SECONDS = parse_duration(DEFAULT_INTERVAL)


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
