"""`trimtab assign`: where the partitions of a new topic go, or more partitions of one that there is.

Reads a cluster and goals, and prints what Kafka's tools take; changes nothing. Who gets what is `optimizer.policies.assign`'s.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError
from trimtab.commands import options as o
from trimtab.commands.records import expanded
from trimtab.output import emit, overwritten, unwritable
from trimtab.signals import ending_at_once
from trimtab.story import Story, log

Strategy = Literal["least", "rotate_within", "below_mean_random", "spread_scope", "leader_deficit", "weighted_by_headroom"]
ScoreName = Literal["count", "leaders", "weighted_sum", "bottleneck", "weighted_max", "rate", "throughput"]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("assign")(assign_command)


@expanded
def assign_command(
    context: typer.Context,
    *,
    topic: Annotated[str, typer.Option("--topic", metavar="NAME", help="The topic.", show_default=False)],
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, metavar="N", help="How many partitions it is to have.", show_default=False)
    ],
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", min=1, metavar="R", help="Replicas of each partition.", show_default=False)
    ],
    strategy: Annotated[Strategy, typer.Option("--strategy", help="Which broker gets a replica, of those that may.")] = "least",
    score: Annotated[ScoreName, typer.Option("--score", help="By what brokers are ranked.")] = "count",
    like: Annotated[
        str | None, typer.Option("--like", metavar="TOPIC", help="A topic whose mean loads are expected of the new partitions.")
    ] = None,
    source: o.Source,
    wanted: o.Wanted,
    seed: o.Seed = None,
    form: Annotated[
        Literal["json", "replica-assignment"],
        typer.Option("--format", help="json: Kafka's reassignment file; replica-assignment: what kafka-topics takes."),
    ] = "json",
    out: o.Out = None,
) -> None:
    """Place the partitions of a new topic, or more partitions of one that there is, within hard goals. Changes nothing.

    For a new topic: kafka-topics --create --topic NAME --replica-assignment "$(trimtab assign … --format replica-assignment)".
    """
    problems = [*source.problems(), *unwritable("--out", out)]
    problems += overwritten({"--out": out, "--save-snapshot": source.save_snapshot}, source.files | wanted.files)
    if problems:
        raise ConfigurationError("trimtab assign", problems)
    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(context.find_object(Story) or Story())
        from goals.policy import Placement
        from optimizer.policies.assign import NewTopic, assign, replica_assignment
        from optimizer.report.kafka_files import assignment

        new = NewTopic(topic, partitions, replication_factor, like)
        found = assign(cluster, goal_set, new, Placement(kind=strategy), score, seed or 0)
    source.keep(cluster)
    numbered = ((topic, found.first + i, row) for i, row in enumerate(found.replicas))
    emit(assignment(numbered) if form == "json" else replica_assignment(found) + "\n", out)
    if found.first:
        log.info("topic %s has partitions 0 to %d already; %d more are placed", json.dumps(topic), found.first - 1, len(found.replicas))
