"""Options of what is asked of the planner: what-ifs, budgets, and how it searches.

Called by commands that plan. The planner's own defaults stay in `optimizer.options`: an option that was not given is not passed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.quantities import parse_size
from optimizer.options import Acceptance, AddedBroker, PlanOptions
from trimtab.commands.options import BUDGETS, DEFAULTS, IMAGINED, LARGEST
from trimtab.commands.values import BrokerIds, ScaledLoad, all_ids, parse_added_broker, parse_broker_ids, parse_scale, parsed_by

if TYPE_CHECKING:
    from cluster_model.partition_loads import PartitionLoads
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet

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
        help="Have these brokers give up their leaderships and keep their replicas; the plan does nothing else.",
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
AcceptanceRule = Annotated[
    Acceptance | None,
    typer.Option(
        "--acceptance",
        help="score (default): no action lowers a score without a greater gain. "
        "potential: each action lowers the weighted distance of all brokers from their target ranges.",
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
MoveCost = Annotated[
    int | None,
    typer.Option(
        "--move-cost",
        parser=parsed_by(parse_size),
        metavar="SIZE",
        rich_help_panel=BUDGETS,
        help="Cost of a replica move besides its bytes, such as 100MB; 0: bytes alone. Default: three mean replicas.",
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
