"""Options that several commands share: where the cluster comes from, which goals hold, where the answer goes.

Values are read by `trimtab.commands.values`; options of what is planned stand in `trimtab.commands.planning_options`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import Problem
from cluster_model.quantities import parse_duration
from optimizer.options import PlanOptions
from trimtab.capturing import DEFAULT_INTERVAL, captured
from trimtab.commands.values import Factor, parse_factor, parsed_by, there, there_or_folder
from trimtab.output import unwritable
from trimtab.story import Story, log

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet

DEFAULT_PRESET = "default"
DEFAULTS = PlanOptions()
LARGEST = 2**63 - 1  # of whole numbers that the search takes
EITHER = "--snapshot, --bootstrap-server"


SOURCE, WANTED, IMAGINED, BUDGETS = "Cluster", "Goals", "What if", "Budgets"

SnapshotPath = Annotated[
    Path | None,
    typer.Option(
        "--snapshot",
        callback=there_or_folder,
        rich_help_panel=SOURCE,
        metavar="FILE",
        help="Captured cluster: .json, .json.gz or a folder of Parquet files; - for stdin.",
    ),
]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        rich_help_panel=SOURCE,
        metavar="HOST:PORT",
        help="Live cluster to capture first; a capture changes nothing.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        exists=True,
        dir_okay=False,
        rich_help_panel=SOURCE,
        metavar="FILE",
        help="Properties file with SASL and TLS settings, as Kafka's own tools take it.",
    ),
]
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval",
        parser=parsed_by(parse_duration),
        rich_help_panel=SOURCE,
        metavar="DURATION",
        help=f"How long rates of a live cluster are measured (default {DEFAULT_INTERVAL}).",
    ),
]
CapacityPath = Annotated[
    Path | None,
    typer.Option(
        "--capacity",
        exists=True,
        dir_okay=False,
        rich_help_panel=SOURCE,
        metavar="FILE",
        help="Capacities of the brokers, instead of those known; `trimtab capacity --template` writes the file to fill in.",
    ),
]
SaveSnapshot = Annotated[
    Path | None,
    typer.Option(
        "--save-snapshot",
        rich_help_panel=SOURCE,
        metavar="FILE",
        help="Keep the capture of a live cluster: .json, .json.gz, or a folder for Parquet files.",
    ),
]
GoalsPath = Annotated[
    Path | None,
    typer.Option(
        "--goals", dir_okay=False, callback=there, rich_help_panel=WANTED, metavar="FILE", help="Goals in YAML; - for stdin."
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        rich_help_panel=WANTED,
        metavar="NAME",
        help=f"Shipped goal set, instead of --goals or below it. Without --goals and --preset: preset `{DEFAULT_PRESET}`.",
    ),
]
CalibrationPath = Annotated[
    Path | None,
    typer.Option(
        "--calibration",
        exists=True,
        dir_okay=False,
        rich_help_panel=WANTED,
        metavar="FILE",
        help="Calibration for values that the goals leave out, instead of the one that they name.",
    ),
]
Factors = Annotated[
    list[Factor] | None,
    typer.Option(
        "--replication-factor",
        parser=parsed_by(parse_factor),
        rich_help_panel=WANTED,
        metavar="GLOB=N",
        help="Topics that are to have N replicas of each partition; such a plan changes nothing else. Repeatable, the last one holds.",
    ),
]
ElectionOut = Annotated[
    Path | None,
    typer.Option("--election-out", metavar="FILE", help="Write the file for kafka-leader-election here."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write the data here instead of to stdout."),
]
@dataclass(frozen=True, slots=True)
class Source:
    """Where the cluster comes from: one of a file and a live cluster."""

    snapshot: SnapshotPath = None
    bootstrap_server: Bootstrap = None
    command_config: CommandConfig = None
    interval: Interval = None
    capacity: CapacityPath = None
    save_snapshot: SaveSnapshot = None

    @property
    def files(self) -> dict[str, Path | None]:
        """What is read, by option."""
        return {
            "--snapshot": self.snapshot,
            "--command-config": self.command_config,
            "--capacity": self.capacity,
        }

    def problems(self) -> list[Problem]:
        if self.snapshot is not None and self.bootstrap_server is not None:
            return [Problem(EITHER, "expected one of them, found both; leave one out")]
        if self.snapshot is None and self.bootstrap_server is None:
            remedy = "give a file that `trimtab snapshot` wrote, HOST:PORT of a live cluster, or --cluster NAME"
            return [Problem(EITHER, f"expected one of them, found none; {remedy}")]
        if self.snapshot is None:
            save = self.save_snapshot
            return unwritable("--save-snapshot", save) if save is not None and is_file_name(save) else []
        live = {
            "--save-snapshot": self.save_snapshot,
            "--command-config": self.command_config,
            "--interval": self.interval,
        }
        return [
            Problem(option, "goes with --bootstrap-server, not with --snapshot; leave it out")
            for option, value in live.items()
            if value is not None
        ]

    def read(self, story: Story) -> Snapshot:
        """The snapshot in the file, or of the live cluster as it is now (with a progress bar); capacities of a file go before its own."""
        if self.snapshot is not None:
            from cluster_model.files import read_snapshot

            snapshot = read_snapshot(self.snapshot)
            if self.capacity is None:
                return snapshot
            from trimtab.capture.capacity import with_capacities

            return with_capacities(snapshot, self.capacity)
        assert self.bootstrap_server is not None
        return captured(story, self.bootstrap_server, self.command_config, self.interval, self.capacity)

    def keep(self, snapshot: Snapshot) -> None:
        """Write what was captured to `save_snapshot`, where that was asked for."""
        if self.save_snapshot is None:
            return
        from cluster_model.files import write_snapshot

        write_snapshot(snapshot, self.save_snapshot)
        log.info("wrote %s (snapshot)", self.save_snapshot)


def is_file_name(path: Path) -> bool:
    """Whether the ending names a snapshot file; a folder of Parquet files has none of these."""
    return path.name.endswith((".json", ".json.gz"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which goals hold."""

    goals: GoalsPath = None
    preset: Preset = None
    calibration: CalibrationPath = None

    @property
    def files(self) -> dict[str, Path | None]:
        """What is read, by option."""
        return {"--goals": self.goals, "--calibration": self.calibration}

    def read(self) -> GoalSet:
        from goals.document import load_goals

        preset = self.preset
        if self.goals is None and preset is None:
            preset = DEFAULT_PRESET
            log.info("no --goals and no --preset given: using preset %s", preset)
        goals = load_goals(self.goals, preset=preset, calibration=self.calibration)
        for note in goals.notes:
            log.warning("%s", note)
        return goals
