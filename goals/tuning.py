"""A goals file tuned to a calibration: what would change and why, and the file's text with the changes.

Called by ``trimtab tune``. Reads what the goals file names (its calibration), writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster_model.errors import ConfigurationError, Problem
from goals.calibration.advice import KEYS, Change, Key, Listed, advised, unmeasured
from goals.calibration.effect import expected, rhythm
from goals.calibration.filling import goal_name
from goals.calibration.models import Calibration
from goals.document import goals_in
from goals.registry import PRESETS, preset_text
from goals.yaml_edit import Edit, edited
from goals.yaml_source import read_yaml


@dataclass(frozen=True, slots=True)
class Tuned:
    """What comes out.

    Attributes
    ----------
    changes
        In the order of the goals.
    expected
        What the backtest found for the whole recommendation; empty where there was none.
    remarks
        What the calibration recommends that the goals have no place for, and what the goals have that it says nothing of.
    text
        The file's text with the changes; as it was where there are none.
    """

    changes: tuple[Change, ...]
    expected: str
    remarks: tuple[str, ...]
    text: str


def tuned(text: str, path: Path, calibration: Calibration, calibration_file: Path, only: Iterable[Key] = KEYS) -> Tuned:
    """`text`, which stands in the goals file `path`, tuned.

    Raises
    ------
    ConfigurationError
        The goals are wrong, or would be; or their text cannot be changed without changing more.
    """
    only, goals = tuple(only), goals_in(text, path)
    document = read_yaml(text, str(path)).value
    assert isinstance(document, dict)  # else goals_in would have refused it
    listed = _listed(document)
    named = document.get("calibration")
    filled = isinstance(named, str) and (path.parent / named).resolve() == calibration_file.resolve()
    changes = advised(goals, listed, calibration, only, filled)
    made = _changed(text, path, listed, changes)
    known = {goal.name for goal in goals.goals}
    others = [name for name in calibration.weights if name not in known]
    remarks = [f"weights for goals that are not there: {', '.join(others)}"] if others else []
    remarks += rhythm(calibration)
    if {"bound", "var", "min_load"} & set(only):
        remarks += unmeasured(goals, calibration)
    return Tuned(changes, expected(calibration, goals) if changes else "", tuple(remarks), made)


def _listed(document: Mapping[str, object]) -> tuple[Listed, ...]:
    """The goals as they are written in the file, and those of its preset that it does not replace."""
    listed = document.get("goals")
    mine = tuple(Listed(goal, n) for n, goal in enumerate(listed)) if isinstance(listed, list) else ()
    preset = document.get("preset")
    if not isinstance(preset, str) or preset not in PRESETS:
        return mine
    base = read_yaml(preset_text(preset), preset).value
    assert isinstance(base, dict)
    names = {goal_name(entry.values) for entry in mine}
    return (*mine, *(Listed(goal, None) for goal in base["goals"] if goal_name(goal) not in names))


def _changed(text: str, path: Path, listed: tuple[Listed, ...], changes: tuple[Change, ...]) -> str:
    """The text with the changes; a goal of the preset that changes is written into the file as a whole."""
    edits = [Edit(c.index, c.key, c.text) for c in changes if c.index is not None]
    added: list[dict[str, object]] = []
    for entry in listed:
        mine = [c for c in changes if c.index is None and c.goal == goal_name(entry.values)] if entry.index is None else []
        if mine:
            added.append(dict(entry.values) | {c.key: read_yaml(c.text, "").value for c in mine})
    made = edited(text, str(path), edits, added)
    if made != text:
        try:
            goals_in(made, path)
        except ConfigurationError as error:
            wrong = [Problem(p.place, f"after the changes: {p.message}") for p in error.problems]
            raise ConfigurationError(str(path), wrong) from None
    return made
