"""`trimtab show`: a saved plan in any form. Plans nothing, asks no cluster.

The texts are `optimizer.report`'s; here is only parsing, reading and writing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.content import content_of
from cluster_model.errors import ConfigurationError, InputError, Problem
from trimtab.commands import options as o
from trimtab.commands import values as v
from trimtab.output import unwritable, write_file
from trimtab.plan_output import FormatOption, Outs, output_problems, outputs, write_outputs
from trimtab.story import log

if TYPE_CHECKING:
    from optimizer.plan import Plan

SavedPlan = Annotated[
    Path,
    typer.Argument(dir_okay=False, callback=v.there, metavar="PLAN", help="A plan that `trimtab plan -o FILE.json` wrote; - for stdin."),
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("show")(show_command)


def show_command(
    plan: SavedPlan,
    form: FormatOption = None,
    out: Outs = None,
    election_out: o.ElectionOut = None,
) -> None:
    """Write a saved plan in any form: report, Kafka's reassignment file, its rollback. Plans nothing and asks no cluster."""
    made, problems = outputs(out, form)
    problems += output_problems(made, {"--election-out": election_out}, {"PLAN": plan})
    problems += unwritable("--election-out", election_out)
    if problems:
        raise ConfigurationError("trimtab show", problems)
    saved = read_plan_file(plan)
    if election_out is not None:
        from optimizer.report import to_election

        write_file(election_out, to_election(saved))
        log.info("wrote %s (election)", election_out)
    write_outputs(saved, made)


def read_plan_file(path: Path) -> Plan:
    """The plan in a file; a warning says so where it was edited.

    Raises
    ------
    InputError
        The file cannot be read, or is no plan file.
    """
    from optimizer.identity import identified
    from optimizer.report.plan_file import read_plan

    try:
        content = content_of(path)
    except OSError as error:
        raise InputError(str(path), [Problem("", f"cannot be read ({error.strerror}); give a file that you may read")]) from None
    plan = read_plan(content, str(path))
    if identified(plan).plan_id != plan.plan_id:
        log.warning("%s: plan_id is not that of what the file says: it was edited, or another release wrote it", path)
    return plan
