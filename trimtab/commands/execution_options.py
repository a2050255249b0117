"""Options of the commands that reach executions on a live cluster, and what they default to."""

from __future__ import annotations

import os
from getpass import getuser
from pathlib import Path
from typing import Annotated, Literal

import typer

from cluster_model.quantities import parse_throttle
from trimtab.commands import values as v
from trimtab.execution.pacing import AUTO

Server = Annotated[str, typer.Option("--bootstrap-server", metavar="HOST:PORT", help="The live cluster.")]
JournalFolder = Annotated[
    Path | None,
    typer.Option("--journal", metavar="DIR", file_okay=False, help="Folder of the journal (default ~/.local/state/trimtab)."),
]
DataForm = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format on stdout.")]
Who = Annotated[str | None, typer.Option("--who", metavar="NAME", help="Name to record with it (default: the user of this machine).")]


def parse_pace(text: str) -> int:
    """A rate in bytes/s, or `AUTO`."""
    return AUTO if text.strip().lower() == "auto" else parse_throttle(text)


Throttle = Annotated[
    int | None,
    typer.Option(
        "--throttle", parser=v.parsed_by(parse_pace), metavar="SIZE/s",
        help="Copy at most so much into, and out of, each broker; auto: by head-room, adjusted while it runs.",
    ),
]


def folder_of(journal: Path | None) -> Path:
    """The folder of the journal."""
    from trimtab.execution.journal import default_folder

    return journal if journal is not None else default_folder()


def name_of(who: str | None) -> str:
    """In whose name something is asked for."""
    if who is not None:
        return who
    try:
        return getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
