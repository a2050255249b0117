"""`trimtab explain`: why one partition moves or stays, why one broker is inside or outside its target range.

The answers are `optimizer.explain`'s; here is only parsing and writing.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cluster_model.errors import ConfigurationError, Problem
from trimtab.commands import options as o
from trimtab.commands import values as v
from trimtab.commands.planning_options import Planning
from trimtab.commands.records import expanded
from trimtab.output import emit, nothing_else_on_stdout, overwritten, unwritable
from trimtab.signals import ending_at_once
from trimtab.story import Story


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("explain")(explain_command)


@expanded
def explain_command(
    context: typer.Context,
    *,
    partition: Annotated[
        list[v.TopicPartition] | None,
        typer.Option(
            "--partition",
            parser=v.parsed_by(v.parse_partition),
            metavar="TOPIC-N",
            help="Why this topic-partition would move, or stay.",
        ),
    ] = None,
    broker: Annotated[
        list[int] | None,
        typer.Option("--broker", min=0, metavar="ID", help="Why this broker is inside or outside its target range."),
    ] = None,
    source: o.Source,
    wanted: o.Wanted,
    planning: Planning,
    out: o.Out = None,
) -> None:
    """Explain why a partition moves or stays, or why a broker is inside or outside its target range.

    Give the options that the plan was made with, so that the answer is about that plan.
    """
    problems = source.problems()
    partitions, brokers = partition or [], broker or []
    if len(partitions) + len(brokers) != 1:
        found = "several" if partitions or brokers else "none"
        wanted_one = f"expected one of them, once, found {found}; ask about one partition or one broker"
        problems.append(Problem("--partition, --broker", wanted_one))
    problems += overwritten({"--out": out, "--save-snapshot": source.save_snapshot}, source.files | wanted.files)
    problems += unwritable("--out", out)
    if problems:
        raise ConfigurationError("trimtab explain", problems)

    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(context.find_object(Story) or Story())
        from optimizer.explain import explain_partition
        from optimizer.explain_broker import explain_broker

        options = planning.options(goal_set, cluster)
        with nothing_else_on_stdout():
            if partitions:
                answer = explain_partition(cluster, goal_set, options, partitions[0].topic, partitions[0].number)
            else:
                answer = explain_broker(cluster, goal_set, options, brokers[0])
    source.keep(cluster)
    emit(answer, out)
