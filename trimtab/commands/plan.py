"""`trimtab plan`: the dry run. Reads a cluster and goals, calls the planner, writes the result.

Changes nothing on a cluster. What a plan is worth is `optimizer`'s; here is only parsing and writing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from trimtab.commands import options as o
from trimtab.output import emit, overwritten, unwritable, unwritable_folders, write_file, write_folders
from trimtab.signals import ending_at_once
from trimtab.story import Story, log

if TYPE_CHECKING:
    from rich.console import Console

    from cluster_model.snapshot import Snapshot
    from optimizer.plan import Plan

Format = Literal["text", "json", "html", "markdown", "reassignment"]
FORMAT_BY_ENDING: dict[str, Format] = {".json": "json", ".html": "html", ".htm": "html", ".md": "markdown"}
PROPOSALS = 3
INFEASIBLE = 4
TEXT_WIDTH = 120  # of a text report that no terminal shows
ORIGINAL, MIGRATED = "original", "migrated"


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the result goes."""

    form: Format
    out: Path | None
    election_out: Path | None
    per_topic: Path | None
    frontier: bool

    def problems(self, inputs: Mapping[str, Path | None]) -> list[Problem]:
        """What keeps the result from being written; `inputs` are files that are read, by option."""
        same = self.election_out is not None and self.election_out == self.out
        stdout = str(self.election_out) == "-"
        shapeless = self.frontier and self.form not in ("text", "json")
        return [
            *([Problem("--frontier", f"expected --format text or json beside it, found {self.form}")] if shapeless else []),
            *([Problem("--election-out", "expected a file of its own, found that of --out")] if same else []),
            *(
                [Problem("--election-out", "expected a file, found stdout, where the data goes")]
                if stdout
                else []
            ),
            *overwritten({"--out": self.out, "--election-out": self.election_out}, inputs),
            *unwritable("--out", self.out),
            *unwritable("--election-out", self.election_out),
            *unwritable_folders("--per-topic-dir", self.per_topic, (ORIGINAL, MIGRATED)),
        ]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("plan")(plan_command)


def plan_command(
    context: typer.Context,
    snapshot: o.SnapshotPath = None,
    bootstrap_server: o.Bootstrap = None,
    command_config: o.CommandConfig = None,
    interval: o.Interval = None,
    capacity: o.CapacityPath = None,
    goals: o.GoalsPath = None,
    preset: o.Preset = None,
    calibration: o.CalibrationPath = None,
    form: Annotated[
        Format | None,
        typer.Option("--format", help="Shape of the data; by the ending of --out where left out, else text."),
    ] = None,
    out: o.Out = None,
    election_out: Annotated[
        Path | None,
        typer.Option("--election-out", metavar="FILE", help="Write the file for kafka-leader-election here."),
    ] = None,
    per_topic_dir: Annotated[
        Path | None,
        typer.Option(
            "--per-topic-dir",
            metavar="DIR",
            file_okay=False,
            help="Write DIR/original/TOPIC.json and DIR/migrated/TOPIC.json, to apply topic by topic.",
        ),
    ] = None,
    add_broker: o.AddBroker = None,
    remove_broker: o.RemoveBroker = None,
    exclude_broker: o.ExcludeBroker = None,
    exclude_topic: o.ExcludeTopic = None,
    scale_load: o.ScaleLoad = None,
    load: o.Load = "current",
    max_moves: o.MaxMoves = None,
    max_bytes: o.MaxBytes = None,
    max_partitions: o.MaxPartitions = None,
    acceptance: o.AcceptanceRule = None,
    seed: o.Seed = None,
    threads: o.Threads = None,
    frontier: Annotated[
        bool,
        typer.Option("--frontier", help="Instead of the plan, what each part of its bytes would buy (text or json)."),
    ] = False,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="3 when there are proposals, 4 when a hard goal fails or a broker cannot be emptied."),
    ] = False,
) -> int:
    """The dry run: what would be moved, why, and what it would cost. Changes nothing.

    Reads a captured cluster (--snapshot), or captures a live one first (--bootstrap-server), and plans the
    fewest moves that bring every broker into the band of every goal.
    """
    source = o.Source(snapshot, bootstrap_server, command_config, interval, capacity)
    targets = Targets(form or _form_of(out), out, election_out, per_topic_dir, frontier)
    planning = o.planning_options(
        seed=seed, acceptance=acceptance, threads=threads,
        max_moves=max_moves, max_bytes=max_bytes, max_partitions=max_partitions,
        add_brokers=add_broker, remove_brokers=remove_broker, exclude_brokers=exclude_broker,
        exclude_topics=exclude_topic, scale_load=scale_load,
    )  # fmt: skip
    wanted = o.Wanted(goals, preset, calibration)
    problems = [*source.problems(), *targets.problems(source.files | wanted.files)]
    if problems:
        raise ConfigurationError("trimtab plan", problems)

    story = context.find_object(Story) or Story()
    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(story)
        from optimizer import planner, report  # noqa: F401  # imported while nothing is to be put away
        from optimizer.report.standing import not_emptied
        from optimizer.report.verdict import verdict
        from optimizer.whatif import check_whatifs
        from trimtab.planning import planned
        from trimtab.warmup import announce

        planning = o.with_loads(planning, load, goal_set, cluster)
        check_whatifs(cluster, goal_set, planning)
        announce()
    result = planned(cluster, goal_set, planning, story)
    _write(result, cluster, targets)
    if not (targets.form == "text" and out is None and sys.stdout.isatty()):  # there the report just said it
        log.info("%s", verdict(result).sentence)
    if exit_code and (result.infeasible or not_emptied(result)):
        return INFEASIBLE
    return PROPOSALS if exit_code and result.proposals else 0


def _form_of(out: Path | None) -> Format:
    return FORMAT_BY_ENDING.get(out.suffix.lower(), "text") if out is not None else "text"


def _write(plan: Plan, snapshot: Snapshot, targets: Targets) -> None:
    """Write every file asked for, the data last, so that a reader of stdout finds the files there."""
    from optimizer import report

    if targets.per_topic is not None:
        write_folders(targets.per_topic, report.topic_files(plan, snapshot))
    if targets.election_out is not None:
        write_file(targets.election_out, report.to_election(plan))
    if targets.frontier:
        if targets.form == "json":
            emit(report.frontier_json(plan), targets.out)
        else:
            _write_text(plan, targets.out, report.render_frontier)
        return
    match targets.form:
        case "text":
            _write_text(plan, targets.out, report.render_text)
        case "json":
            emit(report.iter_json(plan), targets.out)
        case "html":
            emit(report.to_html(plan), targets.out)
        case "markdown":
            emit(report.to_markdown(plan), targets.out)
        case "reassignment":
            emit(report.to_reassignment(plan), targets.out)


def _write_text(plan: Plan, out: Path | None, render: Callable[[Plan, Console], None]) -> None:
    """The report for people: as wide as the terminal and in colour there, plain elsewhere."""
    from rich.console import Console

    if out is None and sys.stdout.isatty():
        render(plan, Console())
        return
    width = os.environ.get("COLUMNS", "")
    page = BytesIO()
    encoding = "utf-8" if out is not None else sys.stdout.encoding or "utf-8"  # decides on ASCII or more
    plain = TextIOWrapper(page, encoding=encoding, newline="\n")
    render(plan, Console(file=plain, width=int(width) if width.isdecimal() else TEXT_WIDTH, no_color=True))
    plain.flush()
    emit(page.getvalue().decode(encoding), out)
