"""`trimtab check`: holds two folders of assignments against each other, before and after a rebalance.

Reads the files that `trimtab plan --per-topic-dir` writes, and prints; what is checked is `optimizer.policies.comparison`'s.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, DocumentError, InputError, Problem
from trimtab.output import emit

FAILED = 1


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("check")(check_command)


def check_command(
    original: Annotated[Path, typer.Option("--original", metavar="DIR", help="Assignments before, one file a topic.")],
    migrated: Annotated[Path, typer.Option("--migrated", metavar="DIR", help="Assignments after, the same file names.")],
    replica_spread: Annotated[
        int, typer.Option("--replica-spread", min=0, metavar="N", help="How far replica counts of brokers may differ.")
    ] = 1,
    leader_spread: Annotated[
        int, typer.Option("--leader-spread", min=0, metavar="N", help="How far preferred leader counts of brokers may differ.")
    ] = 1,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
) -> int:
    """Check assignments after a rebalance against those before it: seven checks; exit code 1 if one fails."""
    from optimizer.policies.comparison import compare

    problems = [
        Problem(option, f"expected a folder, found none at {path}; give what `trimtab plan --per-topic-dir` wrote")
        for option, path in (("--original", original), ("--migrated", migrated))
        if not path.is_dir()
    ]
    if problems:
        raise ConfigurationError("trimtab check", problems)
    found = compare(_read(original), _read(migrated), replica_spread=replica_spread, leader_spread=leader_spread)
    if form == "json":
        emit(json.dumps({**asdict(found), "holds": found.holds}, indent=1), None)
    else:
        lines = [f"{'ok  ' if c.holds else 'FAIL'}  {c.id}  {c.asks}: {c.found}" for c in found.checks]
        sums = f"{found.topics} topics, {found.partitions} partitions: {found.replica_moves} replica moves, "
        sums += f"{found.reordered} lists reordered"
        emit("\n".join([*lines, sums]) + "\n", None)
    return 0 if found.holds else FAILED


def _read(folder: Path) -> dict[str, dict[int, tuple[int, ...]]]:
    """Topic -> assignment of all files of a folder; problems of all files at once."""
    from optimizer.policies.comparison import read_assignment

    result: dict[str, dict[int, tuple[int, ...]]] = {}
    problems: list[Problem] = []
    for path in sorted(folder.glob("*.json")):
        try:
            read = read_assignment(path.read_text("utf-8"), str(path))
        except DocumentError as error:
            problems += [Problem(f"{path}: {p.place}" if p.place else str(path), p.message) for p in error.problems]
            continue
        except UnicodeDecodeError:
            problems.append(Problem(str(path), "expected UTF-8 text, found other bytes; copy the file again"))
            continue
        problems += [Problem(str(path), f"topic {t} is in another file of {folder} too; keep one") for t in read if t in result]
        result |= read
    if problems:
        raise InputError(str(folder), problems)
    return result
