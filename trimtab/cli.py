"""The command `trimtab`: assembles the commands and turns every way of ending into an exit code.

0 done; 1 a cluster or the machine said no, or a bug; 2 wrong usage, configuration or input; 3 and 4 where a
command was asked for them; 130 after Ctrl-C, 143 after SIGTERM, 141 when the reader of stdout went away. Nothing heavy is
imported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from cluster_model.errors import ConfigurationError, DocumentError, Problem, TrimtabError
from trimtab import __version__
from trimtab.commands import (
    assign,
    backtest,
    calibrate,
    check,
    compile,
    control,
    demo,
    diff,
    drain,
    execute,
    explain,
    goals,
    history,
    metadata,
    plan,
    policies,
    reporter,
    serve,
    show,
    snapshot,
    throttles,
    tune,
)
from trimtab.story import LOG_FORMATS, Story, asked_for, log, tell
from trimtab.streams import reader_gone
from trimtab.usage import every_problem, usage_text

COMMANDS = {
    "demo": demo, "snapshot": snapshot, "plan": plan, "show": show, "diff": diff, "explain": explain, "goals": goals,
    "metadata": metadata, "drain": drain, "reporter": reporter, "serve": serve, "calibrate": calibrate, "backtest": backtest,
    "tune": tune, "history": history, "compile": compile,
    "execute": execute, "pause": control, "throttles": throttles, "check": check, "policies": policies, "assign": assign,
}  # fmt: skip

# What to install for a library that is missing; the distribution's extras.
EXTRAS = {
    "numpy": "plan", "numba": "plan", "scipy": "plan",
    "pyarrow": "parquet",
    "psutil": "reporter", "prometheus_client": "reporter",
    "starlette": "service", "uvicorn": "service",
    "pyspark": "spark", "pandas": "spark",
}  # fmt: skip
USAGE = 2
FAILED = 1
INTERRUPTED = 130
READER_GONE = 141


def _story(context: typer.Context) -> Story:
    story: Story = context.find_root().ensure_object(Story)
    return story


def _quiet(context: typer.Context, value: bool) -> None:
    if value:
        _story(context).quiet = True
        tell(_story(context))


def _verbose(context: typer.Context, value: bool) -> None:
    if value:
        _story(context).verbose = True
        tell(_story(context))


def _log_format(context: typer.Context, value: str | None) -> None:
    if value is None:
        return
    for known in LOG_FORMATS:
        if value == known:
            _story(context).log_format = known
            tell(_story(context))
            return
    raise typer.BadParameter(f"expected {' or '.join(LOG_FORMATS)}, found {value!r}")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"trimtab {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", callback=_quiet, expose_value=False, help="Show only warnings and errors."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", callback=_verbose, expose_value=False, help="Show details and tracebacks."
        ),
    ] = False,
    log_format: Annotated[
        str | None,
        typer.Option(callback=_log_format, expose_value=False, metavar="text|json", help="Form of stderr."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Keeps a Kafka cluster level: plans the fewest replica moves that bring every broker into band."""
    if context.invoked_subcommand is None:
        message = f"expected one of {', '.join(COMMANDS)}; trimtab --help says what they do"
        raise ConfigurationError("trimtab", [Problem("COMMAND", message)])


def build() -> TyperGroup:
    """The whole command, with the options of the story accepted before and after the name of a command."""
    app = typer.Typer(name="trimtab", invoke_without_command=True, rich_markup_mode="rich", callback=_root)
    for module in COMMANDS.values():
        module.register(app)
    every_problem(app)
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    told = [parameter for parameter in root.params if parameter.name in ("quiet", "verbose", "log_format")]
    pending = list(root.commands.values())
    while pending:
        command = pending.pop()
        command.params.extend(told)
        if isinstance(command, TyperGroup):
            pending.extend(command.commands.values())
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are told on stderr, tracebacks only with ``-v``."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    story = asked_for(arguments)
    tell(story)
    try:
        result = _invoke(arguments, story)
        sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except TyperException as error:
        log.error("%s", usage_text(error))
        return USAGE
    except DocumentError as error:
        log.error("%s", error, exc_info=story.verbose)
        return USAGE
    except TrimtabError as error:
        log.error("%s", error, exc_info=story.verbose)
        return FAILED
    except BrokenPipeError:
        reader_gone()
        return READER_GONE
    except SystemExit as end:  # rich ends so where the reader of a table went away
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return READER_GONE
    except (KeyboardInterrupt, typer.Abort):
        log.error("interrupted")
        return INTERRUPTED
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            return _bug(error, story)
        remedy = f"pip install 'trimtab[{extra}]'"
        log.error("this needs %s, which is not installed: %s", error.name, remedy, exc_info=story.verbose)
        return USAGE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        log.error("%s%s", where, error.strerror or error, exc_info=story.verbose)
        return FAILED
    except Exception as error:
        return _bug(error, story)
    return result if isinstance(result, int) else 0


def _invoke(arguments: list[str], story: Story) -> object:
    """What the command returns. Typer's own `main` is for shell completion only: it hides a broken pipe."""
    root = build()
    if "_TRIMTAB_COMPLETE" in os.environ:
        return root.main(arguments, prog_name="trimtab")
    with root.make_context("trimtab", arguments, obj=story) as context:
        return root.invoke(context)


def _bug(error: Exception, story: Story) -> int:
    log.error(
        "this is a bug in Trimtab, please report it (%s: %s)%s",
        type(error).__name__, error, "" if story.verbose else "; -v shows where", exc_info=story.verbose,
    )  # fmt: skip
    return FAILED
