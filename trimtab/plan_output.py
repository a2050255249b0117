"""One plan in several forms: which file takes which form, and the writing of them.

Called by the commands that have a plan to show. The texts are `optimizer.report`'s.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, get_args

import typer

from cluster_model.errors import Problem
from trimtab.output import emit, overwritten, unwritable
from trimtab.story import log

if TYPE_CHECKING:
    from rich.console import Console

    from optimizer.plan import Plan

P = TypeVar("P")
Form = Literal["text", "json", "html", "markdown", "reassignment", "rollback"]
FORMS: tuple[Form, ...] = get_args(Form)
FORM_BY_ENDING: dict[str, Form] = {
    ".txt": "text", ".json": "json", ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown",
}  # fmt: skip
FORM_BY_NAME: dict[str, Form] = {"moves": "reassignment", "reassignment": "reassignment", "rollback": "rollback"}  # of .json files
JSON_FORMS = {"json", *FORM_BY_NAME.values()}
STDOUT = Path("-")
TEXT_WIDTH = 120  # of a text report that no terminal shows

FormatOption = Annotated[
    Form | None,
    typer.Option("--format", help="Output format. Default: taken from the name of --out, otherwise text."),
]
Outs = Annotated[
    list[str] | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write the plan here instead of to stdout; repeatable. The name says the form: .html, .json (the plan), moves.json "
        "(Kafka's reassignment), rollback.json (its reverse), .md, .txt; or FORM:FILE.",
    ),
]


@dataclass(frozen=True, slots=True)
class Output:
    """One form of a plan and its place; `path` None is stdout."""

    form: Form
    path: Path | None


def outputs(outs: Sequence[str] | None, form: Form | None) -> tuple[list[Output], list[Problem]]:
    """Places and forms of all ``--out``, and what is wrong with them. Without any, the plan goes to stdout."""
    if not outs:
        return [Output(form or "text", None)], []
    made, problems = [], []
    for text in outs:
        before, colon, after = text.partition(":")
        named = next((f for f in FORMS if f == before), None) if colon and after else None
        if not text or (colon and not after and before.isalpha()):
            problems.append(Problem("--out", f"expected a file{f' after {text}' if text else ''}, found none; name one"))
            continue
        if named is None and after and len(before) > 1 and before.isalpha():
            expected = f"expected one of {', '.join(FORMS)}, or ./{text} for a file of that name"
            problems.append(Problem("--out", f"unknown form {before!r}; {expected}"))
            continue
        path = Path(after if named is not None else text)
        where = None if path == STDOUT else path
        by_name = form_of(path)
        if named is None and form is not None and len(outs) > 1 and where is not None and by_name is None:
            problems.append(Problem("--out", f"expected FORM:FILE where --out is given more than once, as in {form}:{path}"))
        if named is None and where is not None and form is None and by_name is None:
            known = ", ".join(FORM_BY_ENDING)
            problems.append(
                Problem("--out", f"expected a file that ends in {known}, found {path}; name it so, or write FORM:FILE, as in text:{path}")
            )
        # --format decides a single file and stdout; several files have their own forms.
        chosen = named or (form if len(outs) == 1 or where is None else by_name) or by_name or "text"
        alike = where is None or not path.suffix or (path.suffix.lower() == ".json" and chosen in JSON_FORMS)
        if named is None and by_name not in (None, chosen) and not alike:
            log.warning("%s is written as %s, as --format says", path, chosen)
        made.append(Output(chosen, where))
    places = [str(o.path.absolute() if o.path is not None else STDOUT) for o in made]
    problems += [
        Problem("--out", f"expected each file once, found {place} twice") for place in dict.fromkeys(places) if places.count(place) > 1
    ]
    return made, problems


def form_of(path: Path) -> Form | None:
    """The form that a file's name says; None where its ending is not known. A name without an ending is of a text, as is a device."""
    if path.suffix.lower() == ".json":
        return FORM_BY_NAME.get(path.stem.lower().replace("_", "-").rpartition("-")[2], "json")
    if not path.suffix or (path.exists() and not path.is_file() and not path.is_dir()):
        return "text"
    return FORM_BY_ENDING.get(path.suffix.lower())


def output_problems(
    made: Iterable[Output], others: Mapping[str, Path | None], inputs: Mapping[str, Path | None]
) -> list[Problem]:
    """Places that cannot be written. `others` are further outputs and `inputs` files that are read, both by option."""
    files = [o.path for o in made if o.path is not None]
    problems = []
    for path in files:
        problems += overwritten({"--out": path}, inputs)
        problems += unwritable("--out", path)
        problems += overwritten(others, {"--out": path})
    for option, other in others.items():
        problems += overwritten({option: other}, inputs)
    return problems


def write_outputs(plan: Plan, made: Sequence[Output]) -> None:
    """Write every form asked for, stdout last, so that its reader finds the files there."""
    for output in sorted(made, key=lambda o: o.path is None):
        write_form(plan, output)


def write_form(plan: Plan, output: Output) -> None:
    from optimizer import report

    match output.form:
        case "text":
            write_text(plan, output.path, report.render_text)
        case "json":
            emit(report.iter_json(plan), output.path, output.form)
        case "html":
            emit(report.to_html(plan), output.path, output.form)
        case "markdown":
            emit(report.to_markdown(plan), output.path, output.form)
        case "reassignment":
            emit(report.to_reassignment(plan), output.path, output.form)
        case "rollback":
            emit(report.to_rollback(plan), output.path, output.form)


def write_text(plan: P, out: Path | None, render: Callable[[P, Console], None]) -> None:
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
    emit(page.getvalue().decode(encoding), out, "text")
