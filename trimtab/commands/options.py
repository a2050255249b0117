"""Options that several commands share: where the cluster comes from, what is wanted, what is imagined.

The planner's own defaults stay in `optimizer.options`: an option that was not given is not passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from cluster_model.content import STDIN
from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_duration, parse_size
from optimizer.options import Acceptance, AddedBroker, PlanOptions
from trimtab.capturing import DEFAULT_INTERVAL, captured
from trimtab.output import unwritable
from trimtab.story import Story, log

if TYPE_CHECKING:
    from cluster_model.partition_loads import PartitionLoads
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet

T = TypeVar("T")
DEFAULT_PRESET = "default"
DEFAULTS = PlanOptions()
LARGEST_ID = 2**31 - 1
LARGEST_FACTOR = 1_000
LARGEST = 2**63 - 1  # of whole numbers that the search takes
EITHER = "--snapshot, --bootstrap-server"


def parsed_by(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` for an option: its `ValueError` is told with the option's name."""

    def parser(value: str) -> T:
        try:
            return parse(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parser


def there(value: Path | None) -> Path | None:
    """A file or folder that is read, or ``-``; refused where nothing is there."""
    if value is not None and value != STDIN and not value.exists():
        raise typer.BadParameter(f"there is no path {value}")
    return value


def exactly_one(given: Mapping[str, object], ask: str) -> list[Problem]:
    """A problem where not just one of two options is given (None: it is not); `ask` says what to do."""
    found = [value for value in given.values() if value is not None]
    many = "none" if not found else "both"
    return [] if len(found) == 1 else [Problem(", ".join(given), f"expected one of them, found {many}; {ask}")]


def parse_added_broker(text: str) -> AddedBroker:
    """``ID`` or ``ID:RACK``."""
    number, colon, rack = text.partition(":")
    if not number.isdecimal() or int(number) > LARGEST_ID or (colon and not rack):
        raise ValueError(f"expected ID or ID:RACK such as 7 or 7:rack-b, found {text!r}")
    return AddedBroker(int(number), rack or None)


@dataclass(frozen=True, slots=True)
class BrokerIds:
    """One or more brokers, as one option names them."""

    ids: tuple[int, ...]


def parse_broker_ids(text: str) -> BrokerIds:
    """``ID`` or ``ID,ID``."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and part.isascii() and int(part) <= LARGEST_ID for part in parts):
        raise ValueError(f"expected a broker ID, or several as 1,2,3, found {text!r}")
    return BrokerIds(tuple(int(part) for part in parts))


def all_ids(given: Iterable[BrokerIds] | None) -> tuple[int, ...]:
    """Every broker that a repeated option names, in the order given."""
    return tuple(broker for each in given or () for broker in each.ids)


@dataclass(frozen=True, slots=True)
class ScaledLoad:
    """Topics by glob pattern, and what their load is multiplied with."""

    pattern: str
    factor: float


def parse_scale(text: str) -> ScaledLoad:
    """``GLOB=FACTOR``; the factor is finite and above 0."""
    pattern, _, factor = text.rpartition("=")
    try:
        value = float(factor)
    except ValueError:
        value = 0.0
    if not pattern or not 0.0 < value < float("inf"):
        raise ValueError(f"expected GLOB=FACTOR such as 'orders*=1.5', found {text!r}")
    return ScaledLoad(pattern, value)


@dataclass(frozen=True, slots=True)
class TopicPartition:
    topic: str
    number: int


@dataclass(frozen=True, slots=True)
class Factor:
    """Topics by glob pattern, and the replication factor that they are to have."""

    pattern: str
    replicas: int


def parse_factor(text: str) -> Factor:
    """``GLOB=N``; 1 or more."""
    pattern, _, number = text.rpartition("=")
    if not pattern or not number.isdecimal() or not 1 <= int(number) <= LARGEST_FACTOR:
        raise ValueError(f"expected GLOB=N such as 'orders*=3', found {text!r}")
    return Factor(pattern, int(number))


def parse_partition(text: str) -> TopicPartition:
    """``TOPIC-N``, as Kafka prints a topic-partition."""
    topic, dash, number = text.rpartition("-")
    if not topic or not dash or not number.isdecimal():
        raise ValueError(f"expected TOPIC-N such as orders-12, found {text!r}")
    return TopicPartition(topic, int(number))


SOURCE, WANTED, IMAGINED, BUDGETS = "Cluster", "Goals", "What if", "Budgets"

SnapshotPath = Annotated[
    Path | None,
    typer.Option(
        "--snapshot",
        callback=there,
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
        help="Live cluster to capture first. Nothing on it is changed.",
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
        help="Capacities of the brokers; `trimtab capacity --template` writes the file to fill in.",
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
        help=f"Shipped goal set, instead of --goals or below it (default without both: {DEFAULT_PRESET}).",
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
LoadName = Literal["current", "mean", "p95", "forecast"]
Load = Annotated[
    LoadName,
    typer.Option(
        "--load",
        rich_help_panel=IMAGINED,
        help="Loads of partitions: the snapshot's, or the mean, 95th percentile or forecast of the calibration.",
    ),
]
AddBroker = Annotated[
    list[AddedBroker] | None,
    typer.Option(
        "--add-broker",
        parser=parsed_by(parse_added_broker),
        rich_help_panel=IMAGINED,
        metavar="ID[:RACK]",
        help="Add an empty broker of the median capacity. Repeatable, as all options here.",
    ),
]
RemoveBroker = Annotated[
    list[BrokerIds] | None,
    typer.Option(
        "--remove-broker",
        parser=parsed_by(parse_broker_ids),
        rich_help_panel=IMAGINED,
        metavar="ID[,ID]",
        help="Empty these brokers.",
    ),
]
ExcludeBroker = Annotated[
    list[BrokerIds] | None,
    typer.Option(
        "--exclude-broker",
        parser=parsed_by(parse_broker_ids),
        rich_help_panel=IMAGINED,
        metavar="ID[,ID]",
        help="Leave these brokers exactly as they are.",
    ),
]
DemoteBroker = Annotated[
    list[BrokerIds] | None,
    typer.Option(
        "--demote-broker",
        parser=parsed_by(parse_broker_ids),
        rich_help_panel=IMAGINED,
        metavar="ID[,ID]",
        help="Brokers that give up their leaderships and keep their replicas; the plan does nothing else.",
    ),
]
ExcludeTopic = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-topic",
        rich_help_panel=IMAGINED,
        metavar="GLOB",
        help="Move these topics for repairs only; their load counts.",
    ),
]
ScaleLoad = Annotated[
    list[ScaledLoad] | None,
    typer.Option(
        "--scale-load",
        parser=parsed_by(parse_scale),
        rich_help_panel=IMAGINED,
        metavar="GLOB=FACTOR",
        help="Multiply the load of these topics.",
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
AcceptanceRule = Annotated[
    Acceptance | None,
    typer.Option(
        "--acceptance",
        help="score (default): every action improves the cluster by itself. potential: only the plan as a whole has to.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=-LARGEST - 1,
        max=LARGEST,
        metavar="N",
        help=f"Seed of the search (default {DEFAULTS.seed}).",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help=f"Threads of the search (default {DEFAULTS.threads}); large clusters are planned faster, and the plan is the same.",
    ),
]
MaxMoves = Annotated[
    int | None,
    typer.Option(
        "--max-moves", min=0, max=LARGEST, metavar="N", rich_help_panel=BUDGETS, help="Move at most so many replicas."
    ),
]
MaxPartitions = Annotated[
    int | None,
    typer.Option(
        "--max-partitions",
        min=0,
        max=LARGEST,
        metavar="N",
        rich_help_panel=BUDGETS,
        help="Change at most so many partitions.",
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
MoveCost = Annotated[
    int | None,
    typer.Option(
        "--move-cost",
        parser=parsed_by(parse_size),
        metavar="SIZE",
        rich_help_panel=BUDGETS,
        help="Cost of a replica move besides its bytes, such as 100MB; 0: bytes alone. Default: a fifth of the mean replica.",
    ),
]
MaxBytes = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        parser=parsed_by(parse_size),
        metavar="SIZE",
        rich_help_panel=BUDGETS,
        help="Copy at most so many bytes, such as 500GB.",
    ),
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
            "--capacity": self.capacity,
        }
        return [
            Problem(option, "goes with --bootstrap-server, not with --snapshot; leave it out")
            for option, value in live.items()
            if value is not None
        ]

    def read(self, story: Story) -> Snapshot:
        """The snapshot in the file, or of the live cluster as it is now (with a progress bar)."""
        if self.snapshot is not None:
            from cluster_model.files import read_snapshot

            return read_snapshot(self.snapshot)
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


@dataclass(frozen=True, slots=True)
class Planning:
    """What is asked of the planner: what-ifs, budgets, and how it searches."""

    add_broker: AddBroker = None
    remove_broker: RemoveBroker = None
    exclude_broker: ExcludeBroker = None
    demote_broker: DemoteBroker = None
    exclude_topic: ExcludeTopic = None
    scale_load: ScaleLoad = None
    load: Load = "current"
    max_moves: MaxMoves = None
    max_bytes: MaxBytes = None
    max_partitions: MaxPartitions = None
    move_cost: MoveCost = None
    acceptance: AcceptanceRule = None
    seed: Seed = None
    threads: Threads = None

    @property
    def imagined(self) -> bool:
        """Whether the plan is for a cluster that differs from the one that is read."""
        return bool(self.add_broker or self.scale_load)

    def options(self, goals: GoalSet, snapshot: Snapshot) -> PlanOptions:
        """The planner's options, checked against the cluster; those that were not given keep its own defaults.

        Raises
        ------
        ConfigurationError
            A what-if that the cluster or the goals do not allow; ``--load`` without a calibration, with one without loads, or with one
            of another cluster.
        InputError
            The loads cannot be read.
        """
        from optimizer.whatif import check_whatifs

        given = {
            "seed": self.seed, "acceptance": self.acceptance, "threads": self.threads,
            "max_moves": self.max_moves, "max_bytes": self.max_bytes, "max_partitions": self.max_partitions, "move_cost": self.move_cost,
        }  # fmt: skip
        options = PlanOptions(
            add_brokers=tuple(self.add_broker or ()),
            remove_brokers=all_ids(self.remove_broker),
            exclude_brokers=all_ids(self.exclude_broker),
            demote_brokers=all_ids(self.demote_broker),
            exclude_topics=tuple(self.exclude_topic or ()),
            scale_load=tuple((scale.pattern, scale.factor) for scale in self.scale_load or ()),
            loads=_loads(self.load, goals, snapshot),
            **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
        )
        check_whatifs(snapshot, goals, options)
        return options


def _loads(load: LoadName, goals: GoalSet, snapshot: Snapshot) -> PartitionLoads | None:
    """Loads of partitions out of the calibration of `goals`; None: those of the snapshot."""
    if load == "current":
        return None
    given = goals.calibrated
    if given is None:
        raise _no_loads(load, "a calibration, found none; give --calibration FILE, or name one in the goals file")
    if given.loads is None:
        raise _no_loads(load, f"loads in {given.source}, found none; make it again with `trimtab calibrate`")
    if snapshot.cluster_id and given.cluster_id and snapshot.cluster_id != given.cluster_id:
        raise _no_loads(load, f"a calibration of cluster {snapshot.cluster_id}, found {given.source} of {given.cluster_id}")
    from cluster_model.partition_loads_file import read_partition_loads

    return read_partition_loads(given.loads, load, snapshot, given.cluster_id, f"{given.source} ({given.span})")


def _no_loads(load: str, message: str) -> ConfigurationError:
    return ConfigurationError("options", [Problem("--load", f"{load} needs {message}")])
