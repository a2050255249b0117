"""`trimtab explain`: why one partition moves or stays, why one broker is or is not in band.

The answers are `optimizer.explain`'s; here is only parsing and writing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cluster_model.errors import ConfigurationError, Problem
from trimtab.commands import options as o
from trimtab.output import emit, overwritten, unwritable
from trimtab.signals import ending_at_once
from trimtab.story import Story


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("explain")(explain_command)


def explain_command(
    context: typer.Context,
    partition: Annotated[
        o.TopicPartition | None,
        typer.Option(
            "--partition",
            parser=o.parsed_by(o.parse_partition),
            metavar="TOPIC-N",
            help="Why this topic-partition would move, or stay.",
        ),
    ] = None,
    broker: Annotated[
        int | None,
        typer.Option("--broker", min=0, metavar="ID", help="Why this broker is in band, or is not."),
    ] = None,
    snapshot: o.SnapshotPath = None,
    bootstrap_server: o.Bootstrap = None,
    command_config: o.CommandConfig = None,
    interval: o.Interval = None,
    capacity: o.CapacityPath = None,
    save_snapshot: o.SaveSnapshot = None,
    goals: o.GoalsPath = None,
    preset: o.Preset = None,
    calibration: o.CalibrationPath = None,
    add_broker: o.AddBroker = None,
    remove_broker: o.RemoveBroker = None,
    exclude_broker: o.ExcludeBroker = None,
    exclude_topic: o.ExcludeTopic = None,
    scale_load: o.ScaleLoad = None,
    load: o.Load = "current",
    max_moves: o.MaxMoves = None,
    max_bytes: o.MaxBytes = None,
    max_partitions: o.MaxPartitions = None,
    move_cost: o.MoveCost = None,
    acceptance: o.AcceptanceRule = None,
    seed: o.Seed = None,
    threads: o.Threads = None,
    out: o.Out = None,
) -> None:
    """Why this partition moves or stays, why this broker is or is not in band.

    Give the options that the plan was made with, so that the answer is about that plan.
    """
    source = o.Source(snapshot, bootstrap_server, command_config, interval, capacity, save_snapshot)
    planning = o.planning_options(
        seed=seed, acceptance=acceptance, threads=threads,
        max_moves=max_moves, max_bytes=max_bytes, max_partitions=max_partitions, move_cost=move_cost,
        add_brokers=add_broker, remove_brokers=remove_broker, exclude_brokers=exclude_broker,
        exclude_topics=exclude_topic, scale_load=scale_load,
    )  # fmt: skip
    wanted = o.Wanted(goals, preset, calibration)
    problems = source.problems()
    if (partition is None) == (broker is None):
        found = "none" if partition is None else "both"
        message = f"expected one of them, found {found}; ask about one partition or one broker"
        problems.append(Problem("--partition, --broker", message))
    problems += overwritten({"--out": out, "--save-snapshot": save_snapshot}, source.files | wanted.files)
    problems += unwritable("--out", out)
    if problems:
        raise ConfigurationError("trimtab explain", problems)

    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(context.find_object(Story) or Story())
        from optimizer.explain import explain_partition
        from optimizer.explain_broker import explain_broker
        from optimizer.whatif import check_whatifs

        planning = o.with_loads(planning, load, goal_set, cluster)
        check_whatifs(cluster, goal_set, planning)
        if partition is not None:
            answer = explain_partition(cluster, goal_set, planning, partition.topic, partition.number)
        else:
            assert broker is not None
            answer = explain_broker(cluster, goal_set, planning, broker)
    source.keep(cluster)
    emit(answer, out)
