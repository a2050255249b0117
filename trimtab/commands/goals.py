"""`trimtab goals`: check a goals file, list kinds and presets, print the schema or a preset to start from.

Reads files and prints; what is right or wrong with a goals file is decided in `goals.document`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_model.content import name_of
from cluster_model.errors import ConfigurationError, Problem
from cluster_model.plain_text import printable
from trimtab.commands.options import CalibrationPath, Preset
from trimtab.commands.values import there
from trimtab.output import emit, require_writable
from trimtab.story import log

if TYPE_CHECKING:
    from rich.console import RenderableType

    from goals.model import Calibrated, Goal, GoalSet

WIDTH = 110  # of tables where no terminal says otherwise
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the data here instead of to stdout.")
]


def register(app: typer.Typer) -> None:
    """Add the command and its parts to `app`."""
    group = typer.Typer(name="goals", help="Goal files: check one, list goals and presets, start from a preset.")
    group.command("check")(check)
    group.command("list")(list_kinds)
    group.command("schema")(schema)
    group.command("show")(show)
    group.command("import")(import_goals)
    app.add_typer(group)


def check(
    file: Annotated[Path, typer.Argument(dir_okay=False, callback=there, metavar="FILE", help="Goals file in YAML; - for stdin.")],
    preset: Preset = None,
    calibration: CalibrationPath = None,
    form: Annotated[
        Literal["text", "json"], typer.Option("--format", help="Print the goals, as understood, in this form.")
    ] = "text",
) -> None:
    """Say what a goals file means, every default filled in and where from, or everything that is wrong with it."""
    from goals.document import load_goals

    goals = load_goals(file, preset, calibration)
    for note in goals.notes:
        log.warning("%s", note)
    if form == "json":
        emit(json.dumps(_document(goals), indent=1, ensure_ascii=False), None)
        return
    count = len(goals.goals)
    _print(f"{name_of(file)}: OK, {count} goal{'' if count == 1 else 's'}, {goals.digest}", _goals_table(goals))
    for line in (*_constraint_lines(goals), *_calibration_lines(goals)):
        _print(line)


def list_kinds() -> None:
    """List the kinds of goals with their parameters, the resources they work on, and the shipped presets."""
    from rich.table import Table

    from cluster_model.resources import RESOURCES
    from goals.registry import KINDS, PRESETS

    for kind in KINDS.values():
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        for parameter in kind.parameters:
            default = {None: "required", "": "optional"}.get(
                parameter.default, f"default {parameter.default}"
            )
            table.add_row(parameter.name, default, parameter.description)
        _print(f"{kind.name}: {kind.summary}", table, "")
    _print("resources", _two_columns(RESOURCES), "", "presets", _two_columns(PRESETS))


def schema(out: Out = None) -> None:
    """Print the JSON Schema of a goals file; editors complete and check with it."""
    from goals.schema import json_schema

    require_writable("trimtab goals schema", out)
    emit(json.dumps(json_schema(), indent=2, ensure_ascii=False), out)


def show(
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="Name of a preset.", show_default=False)],
    calibration: CalibrationPath = None,
    out: Out = None,
) -> None:
    """Print the YAML of a preset, to start a file of your own from; with a calibration, what it fills is written in."""
    from goals.registry import PRESETS, preset_text
    from goals.wording import meant_or_known

    if preset not in PRESETS:
        message = f"unknown preset {preset!r}; {meant_or_known(preset, PRESETS)}"
        raise ConfigurationError("trimtab goals show", [Problem("PRESET", message)])
    require_writable("trimtab goals show", out)
    emit(preset_text(preset) if calibration is None else _filled_preset(preset, calibration), out)


def import_goals(
    cruise_control: Annotated[
        Path, typer.Option("--cruise-control", exists=True, dir_okay=False, metavar="FILE", help="Its cruisecontrol.properties.")
    ],
    capacity: Annotated[
        Path | None, typer.Option("--capacity", exists=True, dir_okay=False, metavar="FILE", help="Its capacity.json.")
    ] = None,
    capacity_out: Annotated[
        Path | None,
        typer.Option("--capacity-out", metavar="FILE", help="Write capacities here, as --capacity of snapshot and plan takes them."),
    ] = None,
    broker_sets: Annotated[
        Path | None, typer.Option("--broker-sets", exists=True, dir_okay=False, metavar="FILE", help="Its brokerSets.json.")
    ] = None,
    out: Out = None,
) -> None:
    """Turn Cruise Control's configuration into a goals file, and its capacities into a capacity file; says what has no counterpart."""
    from cluster_model.properties import ENCODING
    from goals.cruise_control import capacity_file, goals_file
    from goals.cruise_control_sets import broker_set_file
    from goals.file_text import file_text
    from trimtab.output import overwritten, unwritable

    problems = [*unwritable("--out", out), *unwritable("--capacity-out", capacity_out)]
    read = {"--cruise-control": cruise_control, "--capacity": capacity, "--broker-sets": broker_sets}
    problems += overwritten({"--out": out, "--capacity-out": capacity_out}, read)
    if (capacity is None) != (capacity_out is None):
        problems.append(Problem("--capacity, --capacity-out", "expected both or none; capacities have a file of their own"))
    if problems:
        raise ConfigurationError("trimtab goals import", problems)
    amounts, more, least = "", list[str](), dict[str, float]()
    if capacity is not None:
        amounts, more, least = capacity_file(file_text(capacity, "a capacity file in JSON"), str(capacity))
    sets = broker_set_file(file_text(broker_sets, "a broker set file in JSON"), str(broker_sets)) if broker_sets is not None else None
    properties = file_text(cruise_control, "a properties file", encoding=ENCODING)
    text, without = goals_file(properties, str(cruise_control), least, sets)
    without += more
    if capacity_out is not None:
        emit(amounts, capacity_out)
    emit(text, out)
    for line in without:
        log.warning("%s", line)


def _filled_preset(preset: str, calibration: Path) -> str:
    """Text of a preset with the values of a calibration, and where each is from."""
    from goals.document import load_goals
    from goals.registry import preset_text
    from goals.wording import plain
    from goals.yaml_edit import Edit, edited

    goals = load_goals(None, preset, calibration)
    assert goals.calibrated is not None
    place = {goal.name: index for index, goal in enumerate(goals.goals)}
    edits = [Edit(place[f.goal], f.key, plain(f.value)) for f in goals.calibrated.filled]
    lines = [f"# {printable(line)}\n" for line in _calibration_lines(goals)]
    return "".join(lines) + edited(preset_text(preset), f"preset {preset}", edits)


def _document(goals: GoalSet) -> dict[str, object]:
    return {
        "source": goals.source,
        "digest": goals.digest,
        "goals": [asdict(goal) for goal in goals.goals],
        "constraints": asdict(goals.constraints),
        "policy": goals.policy,
        "calibration": goals.calibration,
        "notes": list(goals.notes),
        **({"calibrated": _calibrated(goals.calibrated)} if goals.calibrated is not None else {}),
    }


def _calibrated(given: Calibrated) -> dict[str, object]:
    return {**asdict(given), "filled": [{**asdict(f), "from": given.of(f.goal)[f.key]} for f in given.filled]}


def _goals_table(goals: GoalSet) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("goal", "weight", "group", "parameters"):
        table.add_column(title, overflow="fold", no_wrap=title == "goal")
    for goal in goals.goals:
        weight = "hard" if goal.hard else f"{goal.weight:g}"
        table.add_row(*map(printable, (goal.name, weight, goal.group or "-", ", ".join(_parameters(goal)))))
    return table


def _parameters(goal: Goal) -> list[str]:
    """What the kind adds, in the words of the file; kind and resource where the name does not say them."""
    from cluster_model.resources import RESOURCES
    from goals.schema import default_name

    resource = getattr(goal, "resource", None)
    what = default_name(goal.kind, resource)
    parts = [] if goal.name == what else [f"{goal.kind} {resource or ''}".rstrip()]
    match goal.kind:
        case "rack_aware":
            pass
        case "capacity":
            parts.append(f"limit {goal.limit:g}")
        case "count_limit":
            parts.append(f"max {_amount(goal.max, RESOURCES[goal.resource])}")
        case "topic_distribution":
            parts.append(f"bound {goal.bound:g}")
            if goal.min_gap:
                parts.append(f"min_gap {goal.min_gap}")
        case "topic_minimum":
            parts.append(f"min {goal.min or 'as many as there are for each'} of {', '.join(goal.topics)}")
        case "usage_distribution":
            unit = RESOURCES[goal.resource]
            var = f"{goal.var:g}" if goal.var_is_share else f"bound + {_amount(goal.var, unit)}"
            parts += [f"bound {goal.bound:g}", f"var {var}", f"tail {goal.tail}"]
            if goal.min_load:
                parts.append(f"min_load {_amount(goal.min_load, unit)}")
            if goal.trivial_change:
                parts.append(f"trivial_change {goal.trivial_change:g}")
    return parts


def _amount(value: float, unit: str) -> str:
    """An amount for people; the exact one stands in the JSON."""
    from cluster_model.quantities import format_size

    if unit.startswith("bytes"):
        return format_size(value) + unit.removeprefix("bytes")
    return f"{value:.9g}" + ("" if unit == "count" else f" {unit}")


def _constraint_lines(goals: GoalSet) -> list[str]:
    lines = []
    for name, value in asdict(goals.constraints).items():
        if value and name != "broker_sets":
            lines.append(f"{name}: {', '.join(str(item) for item in value)}")
    for one in goals.constraints.broker_sets:
        topics = ", ".join(one.topics) or "all topics of no other set"
        lines.append(f"broker set {one.name}: brokers {', '.join(map(str, one.brokers))} for {topics}")
    if goals.policy:
        lines.append(f"policy: {json.dumps(goals.policy)}")
    return lines


def _calibration_lines(goals: GoalSet) -> list[str]:
    """What comes from the calibration, a value a line."""
    given = goals.calibrated
    if given is None:
        return []
    lines = [f"goal {f.goal}: {f.key} is from {given.of(f.goal)[f.key]}" for f in given.filled]
    for resource, of in given.capacity.items():
        count = f"{len(of):,} broker{'' if len(of) == 1 else 's'}"
        lines.append(f"capacity: {resource} of {count} is from {given.source}, from {given.span}, where a snapshot gives none")
    return lines or [f"{given.source} gives nothing that the goals leave out"]


def _two_columns(rows: dict[str, str]) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    for name, text in rows.items():
        table.add_row(name, text)
    return table


def _print(*parts: RenderableType) -> None:
    """Plain text on stdout; names of goals and topics are never markup."""
    import sys

    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDTH
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    for part in parts:
        console.print(printable(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
