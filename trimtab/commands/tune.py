"""`trimtab tune`: the difference between a goals file and a calibration, with reasons, and the goals file changed.

Here is only reading, showing and writing; what would change is decided in `goals.tuning`.
"""

from __future__ import annotations

import json
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cluster_model.content import STDIN
from cluster_model.errors import ConfigurationError, Problem
from cluster_model.plain_text import printable
from trimtab.commands.values import parsed_by, there
from trimtab.output import emit, unwritable, write_file
from trimtab.story import log

if TYPE_CHECKING:
    from goals.calibration import Calibration
    from goals.calibration.advice import Change, Key
    from goals.tuning import Tuned

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


def parse_only(text: str) -> tuple[Key, ...]:
    """``bound,weight``."""
    from goals.calibration.advice import KEYS

    words = [word.strip() for word in text.split(",")]
    if not set(words) <= set(KEYS):
        raise ValueError(f"expected some of {','.join(KEYS)}, found {text!r}")
    return tuple(key for key in KEYS if key in words)


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("tune")(tune_command)


def tune_command(
    goals: Annotated[Path, typer.Option("--goals", callback=there, dir_okay=False, metavar="FILE", help="Goals in YAML; - for stdin.")],
    calibration: Annotated[
        Path,
        typer.Option(
            "--calibration", callback=there, dir_okay=False, metavar="FILE", help="What `trimtab calibrate` wrote; - for stdin."
        ),
    ],
    only: Annotated[
        Any,
        typer.Option("--only", parser=parsed_by(parse_only), metavar="KEYS", help="Change only these: weight,bound,var,min_load."),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Change the goals file. Default: only show the diff.")] = False,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")] = "text",
) -> None:
    """Show as a diff how a calibration would change a goals file, with reasons and the effect to expect.

    With --write the file is changed in place: its comments, order, quotes and layout stay.
    """
    from goals.calibration import load_calibration
    from goals.calibration.advice import KEYS
    from goals.document import WHAT
    from goals.file_text import file_text
    from goals.tuning import tuned

    problems = unwritable("--goals", goals) if write and goals != STDIN else []
    if write and goals == STDIN:
        problems = [Problem("--write", "stdin cannot be changed; give --goals FILE, or leave out --write and apply the diff")]
    if problems:
        raise ConfigurationError("trimtab tune", problems)
    text = file_text(goals, WHAT)  # refuses what is too large or not UTF-8
    before = text.encode() if goals == STDIN else goals.read_bytes()
    text = before.decode("utf-8")
    mark, text = text[: len(BOM)] if text.startswith(BOM) else "", text.removeprefix(BOM)
    found = load_calibration(calibration)
    goals, calibration = (Path("stdin") if path == STDIN else path for path in (goals, calibration))
    result = tuned(text, goals, found, calibration, only or KEYS)
    changed = write and result.text != text
    if changed:
        write_over(goals, before, mark + result.text)
    diff = _diff(text, result.text, str(goals))
    if form == "json":
        emit(json.dumps(_document(goals, calibration, found, result, diff, changed), indent=1, ensure_ascii=False), None)
    else:
        emit("\n".join(_lines(goals, calibration, found, result)) + ("\n\n" + diff if diff else "\n"), None)
    if changed:
        log.info("%s changed: %s", goals, _count(len(result.changes), "value"))


def write_over(path: Path, before: bytes, text: str) -> None:
    """Write the new text in the place of exactly what was read.

    Raises
    ------
    ConfigurationError
        Something else stands there now; it stays.
    """
    if path.read_bytes() != before:
        message = "the file changed while it was being tuned, nothing was written; run the command again"
        raise ConfigurationError(str(path), [Problem("", message)])
    write_file(path, text)


def _diff(before: str, after: str, name: str) -> str:
    """Unified, as `patch` takes it; empty where nothing changes."""
    lines = []
    for line in unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


def _lines(goals: Path, calibration: Path, found: Calibration, result: Tuned) -> list[str]:
    of = f"{calibration} (cluster {found.cluster_id}, {found.history.begin[:10]} to {found.history.end[:10]})"
    if not result.changes:
        return [printable(line) for line in (f"nothing to change: {goals} is as {of} recommends", *result.remarks)]
    lines = [f"{goals}: {_count(len(result.changes), 'value')} to change by {of}"]
    for goal in dict.fromkeys(change.goal for change in result.changes):
        lines += ["", goal]
        for change in (c for c in result.changes if c.goal == goal):
            effect = f": {change.effect}" if change.effect else ""
            lines.append(f"  {change.key} {_before(change)} -> {change.text}{effect}")
            lines += [f"    {sentence}" for sentence in change.why]
    if result.expected:
        lines += ["", f"With all changes, {result.expected}"]
    lines += ["", *result.remarks] if result.remarks else []
    return [printable(line) for line in lines]


def _before(change: Change) -> str:
    return f"{change.in_force:g} (left out)" if change.before is None else str(change.before)


def _document(
    goals: Path, calibration: Path, found: Calibration, result: Tuned, diff: str, written: bool
) -> dict[str, object]:
    return {
        "version": 1,
        "goals": str(goals),
        "calibration": str(calibration),
        "cluster_id": found.cluster_id,
        "from": found.history.begin,
        "to": found.history.end,
        "changes": [
            {
                "goal": c.goal, "key": c.key, "place": f"goals[{c.index}].{c.key}" if c.index is not None else None,
                "before": c.before, "in_force": c.in_force, "after": c.after, "text": c.text, "why": list(c.why), "effect": c.effect,
            }
            for c in result.changes
        ],
        "expected": result.expected,
        "remarks": list(result.remarks),
        "diff": diff,
        "written": written,
    }  # fmt: skip


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
