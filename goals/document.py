"""Goal files: from YAML text to a `GoalSet`, every default applied, every problem reported at once.

Called by the command line and by the service. The one place in this room that reads files: the goals file
itself, shipped presets, and the calibration file that it names. Knows nothing of clusters.

A file that builds on a preset takes the preset's goals in their order; a goal of the file with the same name
stands in place of the preset's as a whole, the others follow in the order of the file. Lists of constraints
are joined, keys of `policy` in the file win. What file and preset leave out comes from the calibration, where
there is one, else from the defaults.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path as FilePath
from typing import Any, TypeVar

from pydantic import ValidationError

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.kinds import GOALS, other_kind
from goals.broker_sets import set_problems
from goals.calibration import Calibration, load_calibration
from goals.calibration.filling import Fill, calibrated, filled_in
from goals.file_text import file_text
from goals.model import BrokerSet, Calibrated, Capacity, Constraints, Goal, GoalSet, TopicDistribution, UsageDistribution
from goals.policy_presets import POLICY_PRESETS
from goals.problems import to_problems
from goals.registry import PRESETS, preset_text
from goals.schema import GoalsDocument, default_name
from goals.wording import meant_or_known
from goals.yaml_source import Found, Path, YamlSource, in_order, read_yaml

WHAT = "a goals file in YAML"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Layer:
    """One document: a preset or a file, before they are put together."""

    goals: tuple[Goal, ...]
    constraints: Constraints
    policy: dict[str, object]
    preset: str | None
    calibration: str | None
    fills: tuple[Fill, ...] = ()


@dataclass(frozen=True, slots=True)
class _Measured:
    """A calibration, its file as it was named, and the place of that."""

    calibration: Calibration
    name: str
    path: FilePath

    @property
    def loads(self) -> str | None:
        """Where the loads of partitions are: a URI as it is given, or a path from the calibration file."""
        given = self.calibration.loads
        return given if given is None or "://" in given else str(self.path.parent / given)


def load_goals(
    path: FilePath | None, preset: str | None = None, calibration: FilePath | None = None
) -> GoalSet:
    """The goals of a YAML file, of a shipped preset, or of a file on top of a preset.

    Parameters
    ----------
    path
        Goals file, UTF-8; None for the preset alone.
    preset
        Name of a shipped goal set that the file builds on, as ``preset:`` at the top of the file does.
    calibration
        Calibration file, instead of the one that the goals file names.

    Raises
    ------
    ConfigurationError
        Neither file nor preset, a file that cannot be read, or anything wrong in it or in the calibration file: all problems
        at once.
    """
    if path is None:
        if preset is None:
            raise ConfigurationError("goals", [Problem("", _nothing_given())])
        _require_preset(preset, "--preset", "goals")
        measured = None if calibration is None else _Measured(load_calibration(calibration), str(calibration), calibration)
        return _goal_set(_preset_layer(preset, measured), f"preset {preset}", measured)
    return goals_in(file_text(FilePath(path), WHAT), FilePath(path), preset, calibration)


def goals_in(
    text: str, path: FilePath, preset: str | None = None, calibration: FilePath | None = None
) -> GoalSet:
    """As `load_goals`, of a file with this text."""
    return _read(text, str(path), preset, path.parent, calibration)


def parse_goals(text: str, name: str, preset: str | None = None) -> GoalSet:
    """The goals of a YAML text; `name` stands for it in messages.

    As `load_goals`, but nothing outside the text is looked for, such as a calibration file.
    """
    return _read(text, name, preset, None)


def calibration_path(path: FilePath) -> FilePath | None:
    """Where the calibration file is that a goals file names; None where it names none or is no goals file."""
    try:
        value = read_yaml(file_text(path, WHAT), str(path)).value
    except ConfigurationError:
        return None
    named = value.get("calibration") if isinstance(value, dict) else None
    return path.parent / named if isinstance(named, str) and named else None


def _read(
    text: str, name: str, preset: str | None, folder: FilePath | None, calibration: FilePath | None = None
) -> GoalSet:
    if preset is not None:
        _require_preset(preset, "--preset", name)
    source = read_yaml(text, name)
    if other := other_kind(source.value, GOALS):
        raise ConfigurationError(name, [Problem("", other)])
    measured, found, wrong = _measured(source, folder, calibration)
    fills: tuple[Fill, ...] = ()
    if measured is not None:
        value, fills = filled_in(source.value, measured.calibration)
        source = replace(source, value=value)
    document, more = _validate(source)
    found = [*more, *_name_problems(source), *_preset_problems(source, preset), *set_problems(source), *found]
    if document is None or found or wrong:
        raise ConfigurationError(name, [*in_order(found), *wrong])
    layer = _layer(document, fills)
    base = layer.preset or preset
    if base is not None:
        layer = _stacked(_preset_layer(base, measured), layer)
    elif not layer.goals:
        nothing = source.problem(("goals",), "no goals; list at least one, or name a preset")
        raise ConfigurationError(name, in_order([nothing]))
    return _goal_set(layer, name, measured)


def _measured(
    source: YamlSource, folder: FilePath | None, instead: FilePath | None
) -> tuple[_Measured | None, list[Found], list[Problem]]:
    """The calibration of a goals file; what is wrong with its name, and what is wrong in it."""
    named = source.value.get("calibration") if isinstance(source.value, dict) else None
    if instead is not None:
        path, name = instead, str(instead)
    elif folder is not None and isinstance(named, str) and named:
        path, name = folder / named, named
    else:
        return None, [], []
    if instead is None and not path.is_file():
        message = f"expected a calibration file, found none at {path}; correct the path or drop the key"
        return None, [source.problem(("calibration",), message)], []
    try:
        return _Measured(load_calibration(path), name, path), [], []
    except ConfigurationError as error:
        wrong = [Problem(f"{name}: {p.place}" if p.place else name, p.message) for p in error.problems]
        return None, [], wrong


def _validate(source: YamlSource) -> tuple[GoalsDocument | None, list[Found]]:
    found = list(source.problems)
    if not isinstance(source.value, dict):
        what = "nothing" if source.value is None else type(source.value).__name__
        message = f"expected a mapping with version: 1 and goals, found {what}"
        return None, [*found, source.problem((), message)]
    try:
        return GoalsDocument.model_validate(source.value), found
    except ValidationError as error:
        # A place that the reader already complained about is empty for that reason only.
        known = {problem.place for _, problem in found}
        more = to_problems(source, error.errors(include_url=False))
        return None, found + [entry for entry in more if entry.problem.place not in known]


def _raw_goals(source: YamlSource) -> Iterable[tuple[int, Mapping[str, object]]]:
    listed = source.value.get("goals") if isinstance(source.value, dict) else None
    for index, goal in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(goal, dict):
            yield index, goal


def _name_problems(source: YamlSource) -> list[Found]:
    """Names that two goals of the file share, also where something else is wrong with them."""
    found: list[Found] = []
    first: dict[str, int] = {}
    for index, goal in _raw_goals(source):
        kind, resource, name = goal.get("kind"), goal.get("resource"), goal.get("name")
        path: Path = ("goals", index)
        if isinstance(name, str) and name:
            label, what, path = name, "name", (*path, "name")
        elif isinstance(kind, str):
            label, what = default_name(kind, resource if isinstance(resource, str) else None), "default name"
        else:
            continue
        if label in first:
            taken = f"{what} {label!r} is taken by goals[{first[label]}]"
            found.append(source.problem(path, f"{taken}; give this goal a name of its own"))
        else:
            first[label] = index
    return found


def _preset_problems(source: YamlSource, asked: str | None) -> list[Found]:
    named = source.value.get("preset") if isinstance(source.value, dict) else None
    if not isinstance(named, str):
        return []
    if named not in PRESETS:
        return [source.problem(("preset",), _unknown_preset(named))]
    if asked is not None and asked != named:
        message = f"the file builds on {named!r}, --preset says {asked!r}; drop one of them"
        return [source.problem(("preset",), message)]
    return []


def _require_preset(preset: str, place: str, name: str) -> None:
    if preset not in PRESETS:
        raise ConfigurationError(name, [Problem(place, _unknown_preset(preset))])


def _unknown_preset(name: str) -> str:
    if name in POLICY_PRESETS:
        return f"{name!r} is a preset of policies, not of goals: write policy: {{preset: {name}}} in a goals file"
    return f"unknown preset {name!r}; {meant_or_known(name, PRESETS)}"


def _nothing_given() -> str:
    return f"expected a goals file or a preset, found neither; name one of {', '.join(PRESETS)} with --preset"


def _preset_layer(name: str, measured: _Measured | None) -> _Layer:
    source = read_yaml(preset_text(name), f"preset {name}")
    fills: tuple[Fill, ...] = ()
    if measured is not None:
        value, fills = filled_in(source.value, measured.calibration)
        source = replace(source, value=value)
    document, found = _validate(source)
    if document is None:
        raise ConfigurationError(f"preset {name}", in_order(found))
    return _layer(document, fills)


def _layer(document: GoalsDocument, fills: tuple[Fill, ...]) -> _Layer:
    return _Layer(
        goals=tuple(goal.build() for goal in document.goals),
        constraints=Constraints(
            exclude_topics=_unique(document.constraints.exclude_topics),
            exclude_brokers=_unique(document.constraints.exclude_brokers),
            include_topics=_unique(document.constraints.include_topics),
            freeze_topics=_unique(document.constraints.freeze_topics),
            broker_sets=tuple(
                BrokerSet(one.name, _unique(one.brokers), _unique(one.topics)) for one in document.constraints.broker_sets
            ),
        ),
        policy=document.policy.model_dump(exclude_unset=True),
        preset=document.preset or None,
        calibration=document.calibration or None,
        fills=fills,
    )


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


def _stacked(base: _Layer, top: _Layer) -> _Layer:
    """`top` over `base`; see the module."""
    goals = {goal.name: goal for goal in base.goals} | {goal.name: goal for goal in top.goals}
    return _Layer(
        goals=tuple(goals.values()),
        constraints=Constraints(
            exclude_topics=_unique(base.constraints.exclude_topics + top.constraints.exclude_topics),
            exclude_brokers=_unique(base.constraints.exclude_brokers + top.constraints.exclude_brokers),
            include_topics=_unique(base.constraints.include_topics + top.constraints.include_topics),
            freeze_topics=_unique(base.constraints.freeze_topics + top.constraints.freeze_topics),
            broker_sets=base.constraints.broker_sets + top.constraints.broker_sets,
        ),
        policy=base.policy | top.policy,
        preset=top.preset,
        calibration=top.calibration,
        fills=(*(fill for fill in base.fills if fill.goal not in {goal.name for goal in top.goals}), *top.fills),
    )


def _goal_set(layer: _Layer, source: str, measured: _Measured | None) -> GoalSet:
    given = None
    if measured is not None:
        given = calibrated(measured.calibration, measured.name, layer.fills, measured.loads)
    return GoalSet(
        goals=layer.goals,
        constraints=layer.constraints,
        policy=layer.policy,
        source=source,
        digest=digest(layer.goals, layer.constraints, _capacity(given)),
        calibration=layer.calibration,
        notes=tuple(_notes(layer, given)),
        calibrated=given,
    )


def with_goals(whole: GoalSet, goals: tuple[Goal, ...]) -> GoalSet:
    """`whole` with other goals, and the digest that it has then."""
    return replace(whole, goals=goals, digest=digest(goals, whole.constraints, _capacity(whole.calibrated)))


def _capacity(given: Calibrated | None) -> Mapping[str, Mapping[int, float]]:
    return given.capacity if given is not None else {}


def digest(
    goals: Iterable[Goal], constraints: Constraints, capacity: Mapping[str, Mapping[int, float]] | None = None
) -> str:
    """``sha256:…`` over all that decides a plan: every goal in full, in order, the constraints, and what a calibration gives
    for the capacity of brokers (resource -> broker -> amount).
    """
    canonical: dict[str, Any] = {
        "version": 1,
        "goals": [{key: _canonical(value) for key, value in asdict(goal).items()} for goal in goals],
        "constraints": {key: sorted(set(value)) for key, value in asdict(constraints).items() if key != "broker_sets"},
    }
    if not constraints.freeze_topics:  # a later addition: files without it keep their digest
        del canonical["constraints"]["freeze_topics"]
    if constraints.broker_sets:  # the same; their order decides
        canonical["constraints"]["broker_sets"] = [
            [one.name, sorted(one.brokers), sorted(one.topics)] for one in constraints.broker_sets
        ]
    if capacity:
        canonical["capacity"] = {
            resource: {str(broker): float(value) for broker, value in of.items()} for resource, of in capacity.items()
        }
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _canonical(value: object) -> object:
    """Equal numbers as equal text: 1 and 1.0, 0.0 and -0.0."""
    return float(value) + 0.0 if isinstance(value, int | float) and not isinstance(value, bool) else value


def _notes(layer: _Layer, given: Calibrated | None) -> Iterable[str]:
    """What is legal and yet probably not what was meant, and what has no effect."""
    if layer.calibration is not None and given is None:
        yield f"calibration {layer.calibration} is not read here: what the goals leave out takes the shipped defaults"
    for fill in layer.fills:
        for note in fill.notes:
            yield f"{note} (from {given.source})" if given is not None else note
    for goal in layer.goals:
        if isinstance(goal, Capacity) and goal.limit > 1.0:
            yield f"goal {goal.name}: limit {goal.limit:g} is above the whole capacity; 80% is written 0.8"
        gap = isinstance(goal, TopicDistribution) and goal.min_gap > 0  # whose range is in replicas; that a broker has none is meant
        if isinstance(goal, UsageDistribution | TopicDistribution) and goal.bound >= 1.0 and not gap:
            yield f"goal {goal.name}: bound {goal.bound:g} lets a broker stand empty; 10% is written 0.10"
        if goal.hard and goal.group is not None:
            yield f"goal {goal.name}: group {goal.group!r} has no effect on a hard goal"
