"""`trimtab assign`: where the partitions of a new topic go, or more partitions of one that there is.

Reads a cluster and goals, and prints what Kafka's tools take; changes nothing. Who gets what is `optimizer.policies.assign`'s.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from trimtab.commands import options as o
from trimtab.commands.planning_options import Seed
from trimtab.commands.records import expanded
from trimtab.output import emit, overwritten, unwritable
from trimtab.plan_output import Form as PlanForm
from trimtab.plan_output import Output, write_form
from trimtab.signals import ending_at_once
from trimtab.story import Story, log

Form = Literal["json", "reassignment", "replica-assignment", "plan", "text"]
PLAN_FORMS: dict[Form, PlanForm] = {"json": "reassignment", "reassignment": "reassignment", "plan": "json", "text": "text"}
Strategy = Literal["least", "rotate_within", "least_rate", "below_mean_random", "spread_scope", "leader_deficit", "weighted_by_headroom"]
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
        int | None,
        typer.Option("--partitions", min=1, metavar="N", help="Partitions that the topic is to have in all.", show_default=False),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor", min=1, metavar="R", help="Replicas of each partition; not needed for a topic that exists.",
            show_default=False,
        ),
    ] = None,
    existing: Annotated[
        bool, typer.Option("--existing", help="Make a plan that moves the topic's partitions to where they would be placed now.")
    ] = False,
    strategy: Annotated[
        Strategy,
        typer.Option("--strategy", help="How to choose among the brokers that may get a replica (`trimtab policies list` describes each)."),
    ] = "least",
    score: Annotated[ScoreName, typer.Option("--score", help="Rank brokers by this.")] = "count",
    like: Annotated[
        str | None, typer.Option("--like", metavar="TOPIC", help="Expect the mean loads of this topic for the new partitions.")
    ] = None,
    source: o.Source,
    wanted: o.Wanted,
    seed: Seed = None,
    form: Annotated[
        Form,
        typer.Option(
            "--format",
            help="reassignment, json: Kafka's reassignment file; replica-assignment: what kafka-topics takes; plan, text: with --existing, "
            "the plan file that `trimtab execute` takes, and the report.",
        ),
    ] = "json",
    out: o.Out = None,
) -> None:
    """Place the partitions of a new topic, or more partitions of an existing one, within hard goals. Changes nothing.

    For a new topic: kafka-topics --create --topic NAME --replica-assignment "$(trimtab assign … --format replica-assignment)".
    For one that Kafka has placed already: trimtab assign --existing --topic NAME … --format plan --out plan.json, and then
    trimtab execute --plan plan.json.
    """
    from trimtab.config_file import TOPIC_NAME

    problems = [*source.problems(), *unwritable("--out", out), *_together(existing, partitions, replication_factor, like, form)]
    problems += overwritten({"--out": out, "--save-snapshot": source.save_snapshot}, source.files | wanted.files)
    if not existing and topic in (".", ".."):
        problems.append(Problem("--topic", f"expected a name that Kafka takes, found {topic!r}; give another"))
    elif not existing and TOPIC_NAME.fullmatch(topic) is None:
        problems.append(Problem("--topic", f"expected letters, digits, dots, dashes and underscores, at most 249, found {topic!r}"))
    if problems:
        raise ConfigurationError("trimtab assign", problems)
    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(context.find_object(Story) or Story())
        from goals.policy import Placement

        by = Placement(kind=strategy)
        if existing:
            from optimizer.options import PlanOptions
            from optimizer.policies.placed_anew import placed_anew

            made = placed_anew(cluster, goal_set, (topic,), by, score, PlanOptions(seed=seed or 0))
        else:
            from optimizer.policies.assign import NewTopic, assign

            found = assign(cluster, goal_set, NewTopic(topic, partitions or 0, replication_factor, like), by, score, seed or 0)
    source.keep(cluster)
    if existing:
        from optimizer.report.verdict import verdict

        write_form(made, Output(PLAN_FORMS[form], out))
        for note in made.notes:
            log.info("%s", note)
        log.info("%s", verdict(made).sentence)
        return
    from optimizer.policies.assign import replica_assignment
    from optimizer.report.kafka_files import assignment

    numbered = ((topic, found.first + i, row) for i, row in enumerate(found.replicas))
    emit(replica_assignment(found) + "\n" if form == "replica-assignment" else assignment(numbered), out)
    if found.first:
        log.info("topic %s has partitions 0 to %d already; %d more are placed", json.dumps(topic), found.first - 1, len(found.replicas))


def _together(existing: bool, partitions: int | None, factor: int | None, like: str | None, form: Form) -> list[Problem]:
    """Options that do not go with --existing, and those that are needed without it."""
    given = {"--partitions": partitions, "--replication-factor": factor}
    if existing:
        given["--like"] = None if like is None else 0
        where = "goes with new partitions, not with --existing; leave it out"
        found = [Problem(name, where) for name, value in given.items() if value is not None]
        if form == "replica-assignment":
            message = "replica-assignment is of a topic that is to be created; with --existing give plan or reassignment"
            found.append(Problem("--format", message))
        return found
    found = []
    if partitions is None:
        found.append(Problem("--partitions", "expected a number, found none; say how many the topic is to have in all"))
    if form in ("plan", "text"):
        message = f"{form} goes with --existing, since only partitions that exist can be moved; create the topic first"
        found.append(Problem("--format", message))
    return found
