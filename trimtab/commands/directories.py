"""`trimtab directories`: levels the volumes of each broker's log directories. Parsing and writing only.

What moves is `optimizer.directory_plan`'s, what is safe `trimtab.execution.directories`'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError
from trimtab.commands import options as o
from trimtab.commands.records import expanded
from trimtab.output import emit, overwritten, unwritable
from trimtab.signals import ending_at_once
from trimtab.story import Story, log

if TYPE_CHECKING:
    from optimizer.directory_plan import DirectoryPlan

Form = Literal["text", "json", "reassignment"]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("directories")(directories_command)


@expanded
def directories_command(
    context: typer.Context,
    *,
    source: o.Source,
    wanted: o.Wanted,
    form: Annotated[
        Form, typer.Option("--format", help="text: the dry run; json; reassignment: Kafka's reassignment file with log_dirs.")
    ] = "text",
    out: o.Out = None,
) -> int:
    """Level the log directories of each broker that has several volumes (JBOD): the fewest bytes that bring each into its target range.

    A dry run: nothing on the cluster is changed. Replicas stay on their brokers.
    """
    problems = [*source.problems(), *unwritable("--out", out)]
    problems += overwritten({"--out": out, "--save-snapshot": source.save_snapshot}, source.files | wanted.files)
    if problems:
        raise ConfigurationError("trimtab directories", problems)
    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(context.find_object(Story) or Story())
        from goals.policy import PolicyDocument
        from optimizer.directory_plan import plan_directories

        policy = PolicyDocument.model_validate(goal_set.policy).directories
        plan = plan_directories(cluster, goal_set.constraints, policy)
    source.keep(cluster)
    _write(plan, form, out)
    return 0


def _write(plan: DirectoryPlan, form: Form, out: o.Out) -> None:
    from optimizer.report.directories import (
        directories_json,
        directories_reassignment,
        render_directories,
        sentence,
    )
    from trimtab.plan_output import write_text

    match form:
        case "text":
            write_text(plan, out, render_directories)
        case "json":
            emit(directories_json(plan), out)
        case "reassignment":
            emit(directories_reassignment(plan), out)
    if form != "text" or out is not None:
        log.info("%s", sentence(plan))
