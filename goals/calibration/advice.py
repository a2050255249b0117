"""What a calibration would change in goals: the values it recommends where they differ, with reasons and expected effect.

Called by ``trimtab tune``. Values are rounded to two digits, and a value that is the same in two digits is left alone. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cluster_model.quantities import SIZE_UNITS, parse_rate
from cluster_model.resources import DERIVED_FROM, RESOURCES
from goals.calibration.effect import effect_of_bound
from goals.calibration.filling import Recommended, goal_name, is_soft, recommended
from goals.calibration.models import Calibration
from goals.model import Goal, GoalSet, UsageDistribution
from goals.wording import plain

Key = Literal["bound", "var", "min_load", "weight"]
KEYS: tuple[Key, ...] = ("weight", "bound", "var", "min_load")
DIGITS = 2


@dataclass(frozen=True, slots=True)
class Change:
    """One value that would change.

    Attributes
    ----------
    goal, key
        Name of the goal, and the key.
    index
        Its place in the file's list; None for a goal of the preset.
    before
        What is written, None where it is left out; ``in_force`` is what holds then.
    in_force, after
        Amounts, in the unit of the key.
    text
        `after` as it is to be written.
    why, effect
        How the number came about, and what to expect of it; may be empty.
    """

    goal: str
    key: Key
    index: int | None
    before: object
    in_force: float
    after: float
    text: str
    why: tuple[str, ...]
    effect: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A goal as written: its values, and its place in the file (None: of the preset)."""

    values: Mapping[str, object]
    index: int | None


def advised(
    goals: GoalSet, listed: Sequence[Listed], calibration: Calibration, only: Iterable[Key] = KEYS, filled: bool = False
) -> tuple[Change, ...]:
    """Changes in the order of the goals.

    Parameters
    ----------
    goals
        What holds now, defaults and all.
    listed
        The same goals as they are written, in any order.
    only
        Keys that may change.
    filled
        The goals take from this very calibration what they leave out, so that only what is written can differ.
    """
    keys = tuple(only)
    written = {name: entry for entry in listed if (name := goal_name(entry.values)) is not None}
    changes: list[Change] = []
    for goal in goals.goals:
        entry = written.get(goal.name)
        if entry is None:
            continue
        open_keys = tuple(key for key in keys if not filled or key in entry.values)
        changes += _of_goal(goal, entry, calibration, open_keys, free=filled and "var" not in entry.values)
    return tuple(changes)


def unmeasured(goals: GoalSet, calibration: Calibration) -> Iterable[str]:
    """Why nothing is recommended for the bounds of some goals, a sentence for each reason."""
    levelled = [goal for goal in goals.goals if isinstance(goal, UsageDistribution)]
    bands = [
        goal for goal in levelled
        if recommended({"kind": "usage_distribution", "resource": goal.resource, "name": goal.name}, calibration) is None
    ]  # fmt: skip
    if calibration.backtest:
        if bands:
            yield f"left as they are, since the backtest did not try other bounds for them: {', '.join(goal.name for goal in bands)}"
        return
    counts = [goal.name for goal in bands if RESOURCES[goal.resource] == "count"]
    if counts:
        yield f"no bound for {', '.join(counts)}: counts change only where replicas or leaders are moved, so there is no noise to measure"
    for goal in bands:
        if goal.resource in DERIVED_FROM:
            base = DERIVED_FROM[goal.resource]
            found = calibration.resources.get(base)
            known = found.bound if found is not None else None
            more = f"; a part of {base} usually swings more than all of it, whose bound is {known:.2g}" if known is not None else ""
            yield f"no bound for {goal.name}: {goal.resource} is not in a history{more}"
        elif goal.name not in counts:
            yield f"no bound for {goal.name}: the history has no {goal.resource}"


def nice(value: float, digits: int = DIGITS) -> float:
    """`value` in so many significant digits."""
    return float(f"{value:.{digits}g}")


def _of_goal(goal: Goal, entry: Listed, calibration: Calibration, keys: tuple[Key, ...], free: bool) -> Iterable[Change]:
    """Changes of one goal; `free`: its var is left out and follows its bound."""
    weight = calibration.weights.get(goal.name)
    if weight is not None and "weight" in keys and is_soft(entry.values) and nice(goal.weight) != nice(weight):
        told = ("weight: chosen by the backtest",) if calibration.backtest else ()
        yield _change(goal.name, "weight", entry, goal.weight, nice(weight), plain(nice(weight)), told)
    found = recommended(entry.values, calibration)
    if found is None or not isinstance(goal, UsageDistribution):
        return
    bound = _bound(goal, found, keys, free)
    if bound != goal.bound:
        tried = found.places["bound"].startswith("backtest")
        why = ("bound: chosen by the backtest",) if tried else _why(calibration, goal.resource, "bound")
        if found.bound is not None and bound != nice(found.bound):
            why = (*why, f"{found.bound:.2g} is recommended, but the bound must be below var, which is not changed")
        effect = effect_of_bound(calibration.resources.get(goal.resource), goal.bound, bound)
        yield _change(goal.name, "bound", entry, goal.bound, bound, plain(bound), why, effect)
    if "var" in keys:
        yield from _var(goal, entry, found, bound, calibration)
    if "min_load" in keys and found.min_load is not None and nice(goal.min_load) != nice(found.min_load):
        text = _amount(found.min_load, goal.resource, entry.values.get("min_load"))
        if _read(text) != goal.min_load:
            why = _why(calibration, goal.resource, "min_load")
            yield _change(goal.name, "min_load", entry, goal.min_load, _read(text), text, why)


def _bound(goal: UsageDistribution, found: Recommended, keys: tuple[Key, ...], free: bool) -> float:
    """The bound that will hold: below var, where that is a share and stays."""
    if "bound" not in keys or found.bound is None:
        return goal.bound
    wanted = nice(found.bound)
    if goal.var_is_share and "var" not in keys and not free and goal.var <= wanted:
        wanted = nice(goal.var / found.ratio)
        if wanted >= goal.var:
            return goal.bound
    return goal.bound if nice(goal.bound) == wanted else wanted


def _var(goal: UsageDistribution, entry: Listed, found: Recommended, bound: float, calibration: Calibration) -> Iterable[Change]:
    """The var that fits to `bound`; a size stays a size, which is above any bound."""
    if found.tested:
        share = _above(bound, goal.var * bound / goal.bound) if goal.var_is_share and bound != goal.bound else goal.var
        if share != goal.var:
            told = "var: keeps its ratio to the bound, as the backtest tried it"
            yield _change(goal.name, "var", entry, goal.var, share, plain(share), (told,))
        return
    why = _why(calibration, goal.resource, "var")
    share = nice(found.var) if found.var is not None else 0.0
    if goal.var_is_share:
        if share <= bound:  # not known, or not for such a bound
            if goal.var > bound:
                return
            share, why = _above(bound, bound * found.ratio), (f"var must be above bound {bound:g}",)
        if share != nice(goal.var) or goal.var <= bound:
            yield _change(goal.name, "var", entry, goal.var, share, plain(share), why)
        return
    level = calibration.resources.get(goal.resource)
    amount = (share - bound) * level.mean if level is not None else 0.0
    if amount >= 1.0 and nice(amount) != nice(goal.var):  # below one byte there is no size
        text = _amount(amount, goal.resource, entry.values.get("var"))
        if _read(text) != goal.var:
            why = (*why, f"{share:g} of the mean less bound {bound:g}, as a size")
            yield _change(goal.name, "var", entry, goal.var, _read(text), text, why)


def _above(bound: float, share: float) -> float:
    """`share` in two digits, above `bound`."""
    return nice(share) if nice(share) > bound else nice(bound * 1.1)


def _change(
    goal: str, key: Key, entry: Listed, now: float, after: float, text: str, why: tuple[str, ...], effect: str = ""
) -> Change:
    return Change(goal, key, entry.index, entry.values.get(key), now, after, text, why, effect)


def _why(calibration: Calibration, resource: str, key: str) -> tuple[str, ...]:
    """The calibration's sentences about a key; they start with the keys they are about."""
    found = calibration.resources.get(resource)
    if found is None:
        return ()
    about = [s for s in found.why if key in (word.strip() for word in s.partition(":")[0].split(","))]
    return tuple(about)


def _amount(value: float, resource: str, before: object) -> str:
    """An amount in the form of the one that it replaces: a plain number, or a size in the same family of units.

    Below one byte it is a plain number: sizes are whole bytes.
    """
    if not RESOURCES[resource].startswith("bytes") or not isinstance(before, str | None) or value < 1.0:
        return plain(nice(value))
    written = (before or "").strip()
    step, names = (1024.0, ("B", "KiB", "MiB", "GiB", "TiB", "PiB")) if "iB" in written else (1e3, ("B", "kB", "MB", "GB", "TB", "PB"))
    power = min(int(math.log(value, step)), len(names) - 1)
    if nice(value / step**power) >= step and power < len(names) - 1:
        power += 1
    rate = "/s" if written.endswith("/s") else ""
    return f"{plain(nice(value / step**power))}{' ' if ' ' in written else ''}{names[power]}{rate}"


def _read(text: str) -> float:
    """The amount that a goals file with `text` would have."""
    plain = text.removesuffix("/s").strip()
    if any(plain.endswith(unit) for unit in SIZE_UNITS):
        return float(parse_rate(text))
    return float(text)
