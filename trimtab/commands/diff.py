"""`trimtab diff`: two snapshots, or two plans, in words. Asks no cluster.

The differences are found by `optimizer.report.differences`; here is only parsing, reading and writing.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Annotated

import typer

from cluster_model.content import STDIN
from cluster_model.errors import ConfigurationError, Problem
from trimtab.commands import options as o
from trimtab.commands import values as v
from trimtab.commands.show import read_plan_file
from trimtab.output import emit, overwritten, unwritable

One = Annotated[Path, typer.Argument(callback=v.there_or_folder, metavar="A", help="A snapshot or a plan, the earlier; - for stdin.")]
Two = Annotated[Path, typer.Argument(callback=v.there_or_folder, metavar="B", help="The later one, of the same kind; - for stdin.")]
PLAN_KEY = b'"plan_id"'
HEAD = 4096  # bytes of a file; a plan file names itself in its first lines


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("diff")(diff_command)


def diff_command(
    one: One,
    two: Two,
    goals: o.GoalsPath = None,
    preset: o.Preset = None,
    out: o.Out = None,
) -> None:
    """Compare two snapshots, or two plans, in words: brokers, topics, replicas, loads and goals.

    Goals (--goals, --preset) judge two snapshots; two plans have their own.
    """
    wanted = o.Wanted(goals, preset)
    problems = overwritten({"--out": out}, {"A": one, "B": two} | wanted.files) + unwritable("--out", out)
    on_disk = [is_plan(path) for path in (one, two) if path != STDIN]
    plans = on_disk * (3 - len(on_disk))  # what comes by stdin is of the kind that the other is
    if plans[0] != plans[1]:
        found = f"one plan, {one if plans[0] else two}, and {two if plans[0] else one}, which is no plan; give two of one kind"
        problems.append(Problem("A, B", f"expected two snapshots or two plans, found {found}"))
    if all(plans):
        problems += [
            Problem(option, "goes with two snapshots, not with two plans; leave it out")
            for option, value in (("--goals", goals), ("--preset", preset))
            if value is not None
        ]
    if problems:
        raise ConfigurationError("trimtab diff", problems)
    from optimizer.report.differences import as_text, plan_differences, snapshot_differences

    if all(plans):
        emit(as_text(plan_differences(read_plan_file(one), read_plan_file(two))), out)
        return
    from cluster_model.files import read_snapshot

    goal_set = wanted.read()
    emit(as_text(snapshot_differences(read_snapshot(one), read_snapshot(two), goal_set)), out)


def is_plan(path: Path) -> bool:
    """Whether a file looks like a plan file; anything else is taken for a snapshot."""
    if path.is_dir():
        return False
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            return PLAN_KEY in file.read(HEAD)
    except (OSError, EOFError):
        return False
