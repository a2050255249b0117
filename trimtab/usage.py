"""Wrong command lines in words: every problem of one at once, as expected and found, with the command whose help has more.

Called by the command line only. Knows the library that parses, so that nothing else has to.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from typer import Context
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from cluster_model.errors import DocumentError, TrimtabError
from trimtab.defaults import Defaults, defaults_for
from trimtab.story import LOG_FORMAT, LOG_FORMATS, log

INPUTS = ("snapshot", "goals", "plan", "calibration", "file", "one", "two")  # may be "-", standard input
FILE_OPTIONS = ("--snapshot", "--plan", "--config", "--history", "--out")  # in the order of what is most likely meant
ORIGINS = "trimtab.origins"  # of options that the command line does not give, kept with the context
CLUSTER = "trimtab.cluster"  # what `trimtab --cluster NAME` said, kept with the context
SAID = "trimtab.log_format"  # that the command line gives the form of the log

# What the library says of a value, and what an operator understands.
PLAINLY = (
    (r"Input should be a valid integer\b.*", "expected a whole number"),
    (r"Input should be a valid number\b.*", "expected a number"),
    (r"Unable to parse input string as an integer\b.*", "expected a whole number of fewer digits"),
    (r"Input should be a finite number", "expected a finite number"),
    (r"Input should be greater than or equal to (\S+)", r"expected \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"expected at most \1"),
    (r"Input should be greater than (\S+)", r"expected more than \1"),
    (r"Input should be less than (\S+)", r"expected less than \1"),
    (r"'(.*)' is not one of (.*?)\.?", r"expected one of \2, found '\1'"),
    (r"file '(.*)' does not exist\.?", r"there is no file \1"),
    (r"path '(.*)' does not exist\.?", r"there is no file or folder \1"),
    (r"dir(?:ectory)? '(.*)' does not exist\.?", r"there is no folder \1"),
)
SAYS_FOUND = re.compile(r"found|there is no|is a (file|directory)|not (readable|writable)")


class EveryProblem(TyperCommand):
    """A command that tells all that is wrong with its options at once, not the first of it.

    Options that are not given come from the environment or `trimtab.toml`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        defaults = self._defaults(ctx, given)
        params: list[Any] = self.params
        options = {parameter.name: _bare(parameter.get_error_hint()) for parameter in params}
        ctx.meta[ORIGINS] = {options[name]: origin for name, origin in defaults.origins.items()}
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as first:
            raise typer.BadParameter("\n".join(self._problems(ctx, given, defaults)), ctx=ctx) from first

    def invoke(self, ctx: Any) -> object:
        """Run the command; what is wrong with an option is told with where its value is from."""
        try:
            return super().invoke(ctx)
        except DocumentError as error:
            origins = ctx.meta.get(ORIGINS, {})
            told = [replace(p, message=f"{p.message} (from {origins[p.place]})") if p.place in origins else p for p in error.problems]
            if told == list(error.problems):
                raise
            raise type(error)(error.document, told) from error

    def _defaults(self, ctx: Any, args: list[str]) -> Defaults:
        try:
            options, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        except TyperException:
            return Defaults()  # parsing tells what is wrong
        if set(options) & {"help", "version"}:
            return Defaults()
        form = os.environ.get(LOG_FORMAT)
        if form and form not in LOG_FORMATS and not ctx.meta.get(SAID) and options.get("log_format") is None:
            raise typer.BadParameter(f"{LOG_FORMAT}: expected {' or '.join(LOG_FORMATS)}, found {form!r}", ctx=ctx)
        params: list[Any] = self.params
        empty = [_bare(p.get_error_hint()) for p in params if options.get(p.name) == ""]
        if empty:  # an empty path would be the working directory
            raise typer.BadParameter(f"{', '.join(empty)}: expected a value, found an empty text", ctx=ctx)
        by_stdin = [_bare(p.get_error_hint()) for p in params if options.get(p.name) == "-" and p.name in INPUTS]
        if len(by_stdin) > 1:
            raise typer.BadParameter(f"{', '.join(by_stdin)}: expected one of them from stdin (-), found {len(by_stdin)}", ctx=ctx)
        named = options.get("cluster") or ctx.meta.get(CLUSTER)
        takes = [parameter.name for parameter in self.params if parameter.name]
        try:
            found = defaults_for(takes, [name for name in options if options[name] is not None], named, os.environ, Path.cwd())
        except TrimtabError:
            if ctx.resilient_parsing:  # completion of a half written line
                return Defaults()
            raise
        lists = {parameter.name for parameter in self.params if getattr(parameter, "multiple", False)}
        ctx.default_map = {name: [value] if name in lists else value for name, value in found.values.items()}
        if found.said and not ctx.resilient_parsing:
            log.info("%s", found.said)
        return found

    def _problems(self, ctx: Any, args: list[str], defaults: Defaults) -> list[str]:
        options, _, _ = self.make_parser(ctx).parse_args(args=args)
        told = []
        for parameter in self.get_params(ctx):
            name = parameter.name or ""
            try:
                parameter.handle_parse_result(ctx, options, [])
            except typer.BadParameter as error:
                text = _of_parameter(error, options.get(name, defaults.values.get(name)))
                told.append(text if name in options or name not in defaults.origins else f"{text} (from {defaults.origins[name]})")
        return list(dict.fromkeys(told))  # what two options do to each other is told by both


def _of_parameter(error: typer.BadParameter, value: object) -> str:
    """``--seed: expected a whole number, found 'x'``."""
    name = str(error.param_hint) if error.param_hint else error.param.get_error_hint() if error.param is not None else ""
    if not error.message:
        kind = error.param.param_type_name if error.param is not None else "option"
        named = ", or name a cluster of trimtab.toml with --cluster" if _bare(name) == "--bootstrap-server" else ""
        return f"{_bare(name)}: expected this {kind}, found none; add it{named}"
    text = error.message.removeprefix("Value error, ")
    for pattern, plain in PLAINLY:
        match = re.fullmatch(pattern, text, re.DOTALL)
        if match:
            text = match.expand(plain)
            break
    values = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    if values and not SAYS_FOUND.search(text) and not any(repr(v) in text for v in values):
        text += f", found {', '.join(map(repr, values))}"
    return f"{_bare(name)}: {text}"


def _bare(hint: str) -> str:
    """The name alone, without its short form: ``--snapshot``."""
    return hint.replace("'", "").partition(" / ")[0]


def every_problem(app: typer.Typer) -> None:
    """Have every command of `app` and of its groups tell all its problems."""
    for command in app.registered_commands:
        command.cls = EveryProblem
    for group in app.registered_groups:
        if group.typer_instance is not None:
            every_problem(group.typer_instance)


def usage_text(error: TyperException) -> str:
    """One or more lines for a wrong command line, naming the command whose help has more."""
    context = getattr(error, "ctx", None)
    text = error.message if isinstance(error, typer.BadParameter) and error.param is None else error.format_message()
    possible = getattr(error, "possibilities", None)
    if possible:
        text = f"{error.message}; did you mean {' or '.join(sorted(possible))}?"
    elif text.startswith(("No such command", "Missing command")) and context is not None:
        text = _with_commands(text, context)
    elif text.startswith("Got unexpected extra argument") and context is not None:
        text = _with_file_options(text, context)
    return text if context is None else f"{text}\nTry '{context.command_path} --help'."


def _with_file_options(text: str, context: Context) -> str:
    """A word that belongs to no option is most often a file: the option for it, where the command takes one."""
    taken = {option for parameter in context.command.params for option in parameter.opts}
    files = [option for option in FILE_OPTIONS if option in taken]
    return f"{text}; an option goes before a file, such as {files[0]}" if files else text


def _with_commands(text: str, context: Context) -> str:
    """What there is, where nothing close was found."""
    command = context.command
    if "Did you mean" in text or not isinstance(command, TyperGroup):
        return text
    return f"{text.rstrip('.')}; expected one of {', '.join(command.commands)}"
