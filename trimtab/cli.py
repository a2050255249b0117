"""The command `trimtab`: assembles the commands and turns every way of ending into an exit code.

0 done; 1 a cluster or the machine said no, or a bug; 2 wrong usage, configuration or input; 3 and 4 where a
command was asked for them; 130 after Ctrl-C, 143 after SIGTERM, 141 when the reader of stdout went away. Nothing heavy is
imported here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from cluster_model.errors import DocumentError, TrimtabError
from cluster_model.extras import EXTRAS, missing
from trimtab import __version__
from trimtab.commands import (
    assign,
    backtest,
    calibrate,
    capacity,
    check,
    compile,
    control,
    demo,
    diff,
    directories,
    drain,
    execute,
    explain,
    goals,
    history,
    metadata,
    plan,
    policies,
    reporter,
    schema,
    serve,
    show,
    snapshot,
    throttles,
    tune,
)
from trimtab.completion import completer
from trimtab.help_text import epilog, panel, place
from trimtab.story import LOG_FORMAT, LOG_FORMATS, Story, asked_for, log, tell
from trimtab.streams import reader_gone
from trimtab.usage import CLUSTER, SAID, every_problem, usage_text

COMMANDS = {
    "demo": demo, "snapshot": snapshot, "capacity": capacity, "plan": plan, "show": show, "diff": diff, "explain": explain, "goals": goals,
    "metadata": metadata, "drain": drain, "reporter": reporter, "serve": serve, "calibrate": calibrate, "backtest": backtest,
    "tune": tune, "history": history, "compile": compile,
    "execute": execute, "directories": directories, "pause": control, "throttles": throttles, "check": check, "policies": policies,
    "assign": assign, "schema": schema,
}  # fmt: skip

SHORT = {
    "out": "-o", "form": "-f", "snapshot": "-s", "bootstrap_server": "-b", "cluster": "-c", "goals": "-g", "preset": "-p",
}  # fmt: skip
WRAPPED = re.compile(r"(?<![.:\n])\n(?!\n)")  # where the source breaks a line of help, and a terminal would break it elsewhere
HELP = ["-h", "--help"]
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
        _settle(context)


def _verbose(context: typer.Context, value: bool) -> None:
    if value:
        _story(context).verbose = True
        _settle(context)


def _settle(context: typer.Context) -> None:
    if _story(context).quiet and _story(context).verbose:
        raise typer.BadParameter("expected one of them, found both: -q shows less and -v shows more", ctx=context, param_hint="-q, -v")
    tell(_story(context))


def _log_format(context: typer.Context, value: str | None) -> None:
    if value is None:
        return
    for known in LOG_FORMATS:
        if value == known:
            context.meta[SAID] = True
            _story(context).log_format = known
            tell(_story(context))
            return
    raise typer.BadParameter(f"expected {' or '.join(LOG_FORMATS)}, found {value!r}")


def _cluster(context: typer.Context, value: str | None) -> None:
    if value is not None:
        context.meta[CLUSTER] = value


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
        typer.Option(callback=_log_format, expose_value=False, metavar="text|json", help=f"Log format on stderr (text, or {LOG_FORMAT})."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            callback=_cluster, expose_value=False, metavar="NAME", help="A live cluster that trimtab.toml describes, instead of options."
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep a Kafka cluster balanced with the fewest replica moves that bring every broker into its target range."""
    if context.invoked_subcommand is None:
        with redirect_stdout(sys.stderr):
            context.get_help()  # it prints by itself
        raise typer.Exit(USAGE)


@cache
def build() -> TyperGroup:
    """The whole command: options of the story stand before or after the name of a command; all have help, short forms, completion. Made
    once in a process, which takes a fifth of a second."""
    app = typer.Typer(
        name="trimtab", invoke_without_command=True, rich_markup_mode="rich", callback=_root,
        context_settings={"help_option_names": HELP},
    )  # fmt: skip
    for module in COMMANDS.values():
        module.register(app)
    every_problem(app)
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    root.commands = {name: root.commands[name] for name in sorted(root.commands, key=place)}
    for name, command in root.commands.items():
        vars(command)["rich_help_panel"] = panel(name)
    told = {parameter.name: parameter for parameter in root.params}
    pending: list[tuple[str, Any]] = list(root.commands.items())
    _without_type(root)
    while pending:
        name, command = pending.pop()
        _without_type(command)
        command.params.extend(told[each] for each in ("quiet", "verbose", "log_format"))
        if isinstance(command, TyperGroup):
            pending.extend((f"{name} {part}", each) for part, each in command.commands.items())
        else:
            _finished(name, command, told["cluster"])
    return root


def _without_type(command: Any) -> None:
    """Flags take no value, so help names no type behind them."""
    for option in command.get_params(typer.Context(command, help_option_names=HELP)):
        if getattr(option, "is_flag", False):
            option.metavar = ""


def _finished(name: str, command: Any, cluster: Any) -> None:
    """Give a command, such as ``goals check``, what all have in common: short options, completion, examples, exit codes."""
    takes = [parameter.name for parameter in command.params]
    if "bootstrap_server" in takes:
        command.params.append(cluster)
    command.epilog = epilog(name, takes)
    command.help = WRAPPED.sub(" ", command.help)
    for parameter in command.params:
        if abs(getattr(parameter, "max", None) or 0) >= 2**31 - 1:  # a limit of the machine, not one to read about
            parameter.max = None
            parameter.min = None if abs(parameter.min or 0) >= 2**31 - 1 else parameter.min
        short = SHORT.get(parameter.name)
        if short is not None and parameter.opts[0].startswith("--") and short not in parameter.opts:
            parameter.opts.append(short)
        complete = completer(name, parameter.name)
        if complete is not None:
            parameter._custom_shell_complete = complete


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are told on stderr, tracebacks only with ``-v``."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
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
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            return _bug(error, story)
        log.error("this needs %s", missing(package), exc_info=story.verbose)
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
