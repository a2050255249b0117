"""`trimtab compile`: compiles the planner ahead, for this machine or for a folder that an image ships.

What is compiled is in `trimtab.warmup`, how in `trimtab.compiling`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.extras import remedy
from trimtab.story import Story, log

NATIVE = "native"


def register(app: typer.Typer) -> None:
    app.command("compile")(compile_command)


def compile_command(
    context: typer.Context,
    processor: Annotated[
        str, typer.Option("--for", metavar="PROCESSOR", help="native, or x86-64, x86-64-v2, x86-64-v3, x86-64-v4 (elsewhere: generic).")
    ] = NATIVE,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", file_okay=False, help="Fill this folder, to be named by TRIMTAB_KERNELS where it is used."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, metavar="N", help="Compile in so many processes. Default: one for each core.")
    ] = None,
) -> None:
    """Compile the planner ahead, so that no plan waits for that.

    Without it, plans of small clusters run interpreted, and the first one of a large cluster compiles the functions that it uses.
    """
    from kernels import cache
    from kernels import processor as processors
    from kernels.compiled import COMPILED, rehearsed

    problems = []
    if processor != NATIVE and processor not in processors.known():
        problems.append(Problem("--for", f"expected native or {', '.join(processors.known())} on this machine, found {processor!r}"))
    elif (processor == NATIVE) is not (out is None):
        problems.append(Problem("--for, --out", "give both or neither: kernels for this machine are kept where it looks for them"))
    if not COMPILED:
        problems.append(Problem("trimtab compile", f"numba is not installed or switched off: {remedy('numba')}"))
    if problems:
        raise ConfigurationError("trimtab compile", problems)
    os.environ.pop(processors.SHIPPED_VARIABLE, None)  # what is there already is compiled again
    os.environ["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"  # numba words thousands of them, unseen
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / processors.NAME_FILE).write_text(f"{processor}\n")
        os.environ[cache.CACHE_VARIABLE] = str(out)
        processors.compile_for(processor)
    if not cache.are_kept():
        advice = f"name a folder that can with {cache.CACHE_VARIABLE}" if out is None else "name another with --out"
        raise ConfigurationError("trimtab compile", [Problem(str(cache.wanted_folder()), f"cannot be written: {advice}")])

    from trimtab.compiling import compile_calls
    from trimtab.warmup import rehearse, warm_up

    story = context.find_root().ensure_object(Story)
    if missing := rehearsed(rehearse, only_missing=True):
        compile_calls(missing, story, processes)
    if processor == NATIVE or processors.runs_here(processor):
        warm_up()  # what no rehearsal calls
    log.info("the planner is compiled for %s, in %s", processor, cache.folder())
