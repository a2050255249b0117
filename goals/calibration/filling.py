"""What a calibration gives to goals that leave something out: `bound`, `var`, `min_load` by resource, `weight` by name.

Called by `goals.document` on the values of a file or preset before they are checked, so that what is filled in is checked like what
is written. A key that is written always stands, also where it says the default. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from goals.calibration.models import Calibration
from goals.model import Calibrated, Filled
from goals.registry import KINDS
from goals.schema import UsageDistributionDocument, default_name

TAKEN = ("high", "medium")  # confidence of a capacity; one of low confidence is only the most that was ever seen
FIELDS = UsageDistributionDocument.model_fields
BOUND, VAR = float(FIELDS["bound"].default), float(FIELDS["var"].default)


@dataclass(frozen=True, slots=True)
class Fill:
    """What one goal gets, and what there is to say about it."""

    goal: str
    filled: tuple[Filled, ...]
    notes: tuple[str, ...]


def filled_in(document: object, calibration: Calibration) -> tuple[object, tuple[Fill, ...]]:
    """The values of a goals file with what it leaves out, and what that is, goal by goal. `document` may be anything."""
    goals = document.get("goals") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(goals, list):
        return document, ()
    made, fills = [], []
    for goal in goals:
        fill = _fill(goal, calibration) if isinstance(goal, dict) else None
        made.append({**goal, **{entry.key: entry.value for entry in fill.filled}} if fill is not None else goal)
        if fill is not None and fill.filled:
            fills.append(fill)
    return {**document, "goals": made}, tuple(fills)


def calibrated(calibration: Calibration, source: str, fills: tuple[Fill, ...], loads: str | None) -> Calibrated:
    """What the plan is told of a calibration; `source` is its file as it is named, `loads` the place of its loads."""
    capacity: dict[str, dict[int, float]] = {}
    doubtful: dict[str, list[int]] = {}
    for estimate in sorted(calibration.capacity, key=lambda e: (e.resource, e.broker)):
        if estimate.confidence in TAKEN:
            capacity.setdefault(estimate.resource, {})[estimate.broker] = estimate.value
        else:
            doubtful.setdefault(estimate.resource, []).append(estimate.broker)
    return Calibrated(
        source=source,
        span=f"{calibration.history.begin[:10]} to {calibration.history.end[:10]}",
        cluster_id=calibration.cluster_id,
        filled=tuple(entry for fill in fills for entry in fill.filled),
        capacity=capacity,
        lower_bounds={resource: tuple(brokers) for resource, brokers in doubtful.items()},
        loads=loads,
    )


def goal_name(goal: Mapping[str, object]) -> str | None:
    """The name of a goal as its file gives it, or the default one; None where that cannot be told."""
    kind, resource, name = goal.get("kind"), goal.get("resource"), goal.get("name")
    if isinstance(name, str) and name:
        return name
    return default_name(kind, resource if isinstance(resource, str) else None) if isinstance(kind, str) else None


def is_soft(goal: Mapping[str, object]) -> bool:
    """Whether a goal, as written, may have a weight."""
    kind = goal.get("kind")
    default = KINDS[kind].document.model_fields["hard"].default if isinstance(kind, str) and kind in KINDS else True
    return not goal.get("hard", default)


@dataclass(frozen=True, slots=True)
class Recommended:
    """What a calibration recommends for one usage distribution goal, None where it does not know; `places` by key. `tested`: as a backtest
    tried it, whose var keeps the goal's own ratio to its bound; the var here is that of a goal with the default ratio."""

    bound: float | None
    var: float | None
    min_load: float | None
    places: Mapping[str, str]
    tested: bool = False

    @property
    def ratio(self) -> float:
        """Of var to bound; that of the defaults where one is not known."""
        if self.var is None or self.bound is None or self.var <= self.bound:
            return VAR / BOUND
        return self.var / self.bound


def recommended(goal: Mapping[str, object], calibration: Calibration) -> Recommended | None:
    """What to take for a goal, as written; None for kinds that have no band, and where nothing is known.

    Where there was a backtest, only what it tried counts: the bound of its choice, which may be that of the goals as they are, and nothing
    for goals that it names no bound of. Else what the history of the resource asks for.
    """
    name, resource = goal_name(goal), goal.get("resource")
    if goal.get("kind") != "usage_distribution" or not isinstance(resource, str) or name is None:
        return None
    if calibration.backtest:
        tried = _tried_bound(calibration, name)
        if tried is None:
            return None
        place = f"backtest[{tried[0]}].bounds.{name}"
        return Recommended(tried[1], float(f"{tried[1] * VAR / BOUND:.6g}"), None, {"bound": place, "var": place}, tested=True)
    found = calibration.resources.get(resource)
    if found is None:
        return None
    places = {key: f"resources.{resource}.{key}" for key in ("bound", "var", "min_load")}
    return Recommended(found.bound, found.var, found.min_load, places)


def _tried_bound(calibration: Calibration, goal: str) -> tuple[int, float] | None:
    """The row of the backtest's choice and its bound for a goal; None where it chose nothing, or names no bound of the goal."""
    return next(((n, t.bounds[goal]) for n, t in enumerate(calibration.backtest) if t.chosen and t.bounds.get(goal)), None)


def band(bound: object, var: object, found: Recommended) -> tuple[float | None, float | None, str]:
    """Bound and var to fill in, None for what is written or not known, and a note where one had to give way to the other.

    `bound` and `var` are as written, None where they are not. Var must be above bound: where what is filled in does not fit to what
    is written, it keeps the distance that the calibration has between the two (their ratio; that of the defaults where it has one only).
    """
    if found.bound is None and found.var is None:
        return None, None, ""
    new_bound = found.bound if bound is None else None
    new_var = found.var if var is None else None
    low = _first(bound, new_bound, BOUND)
    high = _first(var, new_var, VAR)
    if low is None or high is None or high > low or (bound is not None and var is not None):
        return new_bound, new_var, ""
    if var is None:
        fitted = low * found.ratio
        return new_bound, fitted, f"var {high:g} is not above bound {low:g}, so {fitted:.3g} is taken"
    fitted = high / found.ratio
    return fitted, new_var, f"bound {low:g} is not below var {high:g}, so {fitted:.3g} is taken"


def _first(written: object, filled: float | None, default: float) -> float | None:
    """The number that will hold; None where what is written is no plain number (a size, or a mistake)."""
    if written is not None:
        return float(written) if isinstance(written, int | float) and not isinstance(written, bool) else None
    return default if filled is None else filled


def _fill(goal: Mapping[str, object], calibration: Calibration) -> Fill | None:
    name = goal_name(goal)
    if name is None:
        return None
    filled, notes = [], []
    found = recommended(goal, calibration)
    if found is not None:
        bound, var, note = band(_written(goal, "bound"), _written(goal, "var"), found)
        for key, value in (("bound", bound), ("var", var), ("min_load", None if "min_load" in goal else found.min_load)):
            if value is not None:
                filled.append(Filled(name, key, value, found.places[key]))
        if note:
            notes.append(f"goal {name}: {note}")
    if "weight" not in goal and name in calibration.weights and is_soft(goal):
        filled.append(Filled(name, "weight", calibration.weights[name], f"weights.{name}"))
    return Fill(name, tuple(filled), tuple(notes))


def _written(goal: Mapping[str, object], key: str) -> object:
    """The value of a key; a null is a mistake that the schema tells of, so it is written too."""
    return goal[key] if goal.get(key) is not None else "" if key in goal else None
