"""`trimtab plan`: the dry run. Reads a cluster and goals, calls the planner, writes the result.

Changes nothing on a cluster, unless it is to carry the plan out at once. What a plan is worth is `optimizer`'s; here is only parsing and
writing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import ConfigurationError, Problem
from trimtab.commands import options as o
from trimtab.commands.execute import carry_out, duration_lines, tell_size
from trimtab.commands.execution_options import JournalFolder, Throttle
from trimtab.commands.planning_options import Planning
from trimtab.commands.records import expanded
from trimtab.output import emit, unwritable, unwritable_folders, write_file, write_folders
from trimtab.plan_output import FormatOption, Output, Outs, output_problems, outputs, write_outputs, write_text
from trimtab.signals import ending_at_once
from trimtab.story import Story, log

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from optimizer.plan import Plan

INTERRUPTED = 130
PROPOSALS = 3
INFEASIBLE = 4
UNCHECKED = 5
ORIGINAL, MIGRATED = "original", "migrated"
MOST_PLANNED = 100_000  # replicas: with more, --frontier shows parts of the one plan, as a plan for each budget takes too long


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the result goes."""

    outs: list[Output]
    election_out: Path | None
    per_topic: Path | None
    frontier: bool

    def problems(self, inputs: Mapping[str, Path | None], save: Path | None) -> list[Problem]:
        """Reasons why the result cannot be written; `inputs` are files that are read, by option."""
        stdout = str(self.election_out) == "-"
        shapeless = next((o.form for o in self.outs if o.form not in ("text", "json")), None) if self.frontier else None
        return [
            *([Problem("--frontier", f"expected --format text or json beside it, found {shapeless}")] if shapeless else []),
            *(
                [Problem("--election-out", "expected a file, found stdout, where the data goes")]
                if stdout
                else []
            ),
            *output_problems(self.outs, {"--election-out": self.election_out, "--save-snapshot": save}, inputs),
            *unwritable("--election-out", self.election_out),
            *unwritable_folders("--per-topic-dir", self.per_topic, (ORIGINAL, MIGRATED)),
        ]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("plan")(plan_command)


@expanded
def plan_command(
    context: typer.Context,
    *,
    source: o.Source,
    wanted: o.Wanted,
    form: FormatOption = None,
    out: Outs = None,
    election_out: o.ElectionOut = None,
    per_topic_dir: Annotated[
        Path | None,
        typer.Option(
            "--per-topic-dir",
            metavar="DIR",
            file_okay=False,
            help="Write DIR/original/TOPIC.json and DIR/migrated/TOPIC.json, to apply topic by topic.",
        ),
    ] = None,
    planning: Planning,
    replication_factor: o.Factors = None,
    frontier: Annotated[
        bool,
        typer.Option("--frontier", help="Print what each further gigabyte would buy instead of the plan (text or json)."),
    ] = False,
    keep_partial: Annotated[
        bool,
        typer.Option("--keep-partial", help="After Ctrl-C, write the best plan so far. The exit code stays 130."),
    ] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Carry the plan out on the live cluster after a question.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --execute: do not ask.")] = False,
    throttle: Throttle = None,
    journal: JournalFolder = None,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="Exit with 3, 4 or 5 instead of 0, as listed below."
        ),
    ] = False,
) -> int:
    """Plan the fewest moves that balance a cluster: a dry run that changes nothing without --execute.

    Reads a captured cluster (--snapshot), or captures a live one first (--bootstrap-server).
    """
    outs, wrong = outputs(out, form)
    targets = Targets(outs, election_out, per_topic_dir, frontier)
    problems = [*source.problems(), *wrong, *targets.problems(source.files | wanted.files, source.save_snapshot)]
    if frontier and replication_factor:
        problems.append(Problem("--frontier", "a plan of replication factors has none; leave one of them out"))
    problems += _not_to_execute(source, imagined=planning.imagined, yes=yes) if execute else []
    if yes and not execute:
        problems.append(Problem("--yes", "goes with --execute: without it nothing is carried out, so nothing is asked"))
    if problems:
        raise ConfigurationError("trimtab plan", problems)

    story = context.find_object(Story) or Story()
    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(story)
        from optimizer import planner, report  # noqa: F401  # imported while nothing is to be put away
        from optimizer.frontier import with_budgets
        from optimizer.report.verdict import verdict
        from trimtab.compiling import compile_for_plan
        from trimtab.planning import planned, stop_on_request

        options = planning.options(goal_set, cluster)
        compile_for_plan(cluster, goal_set, options, story)
        options = replace(options, replication_factor=tuple((f.pattern, f.replicas) for f in replication_factor or ()))
    source.keep(cluster)
    order = None
    with stop_on_request() if keep_partial else nullcontext(()) as asked:  # once heard, files are written and the exit code says so
        result = planned(cluster, goal_set, options, story, asked=asked)
        if throttle is not None or execute:
            from trimtab.execution.order import order_of, sized

            order = sized(order_of(result), cluster)
            durations = duration_lines(order.tasks, throttle, order.headroom)
            if throttle is not None and result.summary.unsized_moves:
                durations.append("how long it takes is not known, as some sizes are not; `trimtab status` shows the speed")
            result = replace(result, notes=(*result.notes, *(f"carried out: {line}" for line in durations)))
        if frontier and cluster.replica_count <= MOST_PLANNED:
            result = with_budgets(result, options, lambda budget: planned(cluster, goal_set, budget, story, asked=asked))
        _write(result, cluster, targets)
    told = any(output.form == "text" and output.path is None for output in outs)  # the report just said it
    if not told:
        log.info("%s", verdict(result).sentence)
    if asked:
        return INTERRUPTED
    if order is not None and (execute or not told):
        tell_size(order.tasks, order.plan_id, throttle, order.headroom)
    if order is not None and execute and source.bootstrap_server is not None and order.tasks:
        from trimtab.execution.documents import Settings

        if not (yes or typer.confirm("Carry it out?", err=True)):
            log.info("nothing was changed")
            return 0
        settings = Settings(throttle=throttle)
        at, config = source.bootstrap_server, source.command_config
        return carry_out(context, order, settings, at, config, journal, interval=source.interval)
    if exit_code and (result.infeasible or result.cannot_be_emptied):
        return INFEASIBLE
    if exit_code and result.proposals:
        return PROPOSALS
    return UNCHECKED if exit_code and any(g.hard and g.unchecked for g in result.goals) else 0


def _not_to_execute(source: o.Source, *, imagined: bool, yes: bool) -> list[Problem]:
    """Why a plan may not be carried out right after its dry run."""
    found = []
    if source.bootstrap_server is None:
        found.append(Problem("--execute", "goes with --bootstrap-server; for a plan of a file: trimtab execute --plan FILE"))
    if imagined:
        found.append(Problem("--execute", "goes with neither --add-broker nor --scale-load: the plan would be for an imagined cluster"))
    if not yes and not sys.stdin.isatty():
        found.append(Problem("--execute", "there is no terminal to ask on; give --yes, or `trimtab execute` later"))
    return found


def _write(plan: Plan, snapshot: Snapshot, targets: Targets) -> None:
    """Write every file asked for, the data last, so that a reader of stdout finds the files there."""
    from optimizer import report

    if targets.per_topic is not None:
        write_folders(targets.per_topic, report.topic_files(plan, snapshot))
        log.info("wrote %s (%s and %s)", targets.per_topic, ORIGINAL, MIGRATED)
    if targets.election_out is not None:
        write_file(targets.election_out, report.to_election(plan))
        log.info("wrote %s (election)", targets.election_out)
    if not targets.frontier:
        write_outputs(plan, targets.outs)
        return
    for output in targets.outs:
        if output.form == "json":
            emit(report.frontier_json(plan), output.path, output.form)
        else:
            write_text(plan, output.path, report.render_frontier)
