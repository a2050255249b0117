"""What to expect of a change, by the calibration: false triggers by the width of the band, and the backtest's weeks held out.

Called by `goals.calibration.advice` and ``trimtab tune``. Words only; nothing is estimated that the calibration does not have.
"""

from __future__ import annotations

import math

from cluster_model.quantities import format_size
from goals.calibration.models import Calibration, ResourceCalibration, Tried
from goals.model import GoalSet, UsageDistribution

BEGUN_WITH = ("default", "goals as they are")  # in the words for the configuration that a backtest compares with, the surest first
TESTED = "tested on the part of the history kept for the test"
ROUNDING = 5e-3


def effect_of_bound(found: ResourceCalibration | None, before: float, after: float) -> str:
    """What a band of another width does to false triggers; empty where the calibration does not know."""
    if found is None:
        return ""
    then = _rate(found, after)
    if then is None:
        return ""
    now = _rate(found, before)
    there = f"about {_count(then)} a week are expected"
    if now is None or now == then:
        return f"false triggers: {there}"
    change = _count(abs(now - then))
    return f"about {change} false trigger{'' if change == '1' else 's'} a week {'less' if now > then else 'more'} ({there})"


def _rate(found: ResourceCalibration, bound: float) -> float | None:
    """False triggers a week of a band, between those that were counted; beyond them it is not known."""
    rates = {rate.bound: rate.false_alarms for rate in found.alarms}
    if found.bound is not None and found.false_alarms is not None:
        rates.setdefault(found.bound, found.false_alarms)
    known = sorted(rates)
    if not known or not known[0] * (1 - 1e-6) <= bound <= known[-1] * (1 + 1e-6):
        return _nearly(found, bound)
    high = next((b for b in known if b >= bound * (1 - 1e-6)), known[-1])
    if math.isclose(high, bound, rel_tol=1e-6):
        return rates[high]
    low = max(b for b in known if b < bound)
    part = (bound - low) / (high - low)
    if rates[low] > 0 and rates[high] > 0:  # they fall off like a tail
        return math.exp((1 - part) * math.log(rates[low]) + part * math.log(rates[high]))
    return (1 - part) * rates[low] + part * rates[high]


def _nearly(found: ResourceCalibration, bound: float) -> float | None:
    """That of the recommended bound, for one that is the same in two digits."""
    if found.bound is not None and math.isclose(found.bound, bound, rel_tol=0.05):
        return found.false_alarms
    return None


def _count(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1g}" if value >= 1e-3 else "0"


def expected(calibration: Calibration, goals: GoalSet) -> str:
    """What the backtest found for its choice, against the goals as they are where it tried those, else against what it started with.

    Empty without a backtest, and where the goals are what it chose.
    """
    chosen = next((t for t in calibration.backtest if t.chosen), None)
    began = _began_with(calibration)
    if chosen is None or chosen is began or _is_as(chosen, goals):
        return ""
    same = next((t for t in calibration.backtest if t is not chosen and _is_as(t, goals)), None)
    base = same or began
    if base is None:
        moved = format_size(chosen.bytes_moved)
        return f"{TESTED}: {chosen.out_of_band_hours:,.0f} broker-hours outside the target range, {moved} moved"
    name = "the goals as they are" if same is not None else "the goals that the backtest started with"
    errors = (chosen.out_of_band_error, chosen.bytes_error) if base.out_of_band_error is None else (None, None)
    told = [
        f"broker-hours outside the target range {_turn(base.out_of_band_hours, chosen.out_of_band_hours, errors[0])}",
        f"bytes moved {_turn(base.bytes_moved, chosen.bytes_moved, errors[1])}",
        f"peak utilization {base.peak_utilization:.2f} to {chosen.peak_utilization:.2f}",
        f"replicas moved back {base.moved_back:,} to {chosen.moved_back:,}",
    ]
    plans = "" if chosen.cadence == base.cadence else f", planning every {_span(chosen.cadence)} instead of {_span(base.cadence)}"
    if chosen.horizon is not None and base.horizon is not None and chosen.horizon != base.horizon:
        plans += f", on loads over {_span(chosen.horizon)} instead of {_span(base.horizon)}"
    return f"{TESTED} and compared with {name}: {', '.join(told)}{plans}"


def rhythm(calibration: Calibration) -> tuple[str, ...]:
    """Sentences about what the backtest's choice needs and a goals file has no place for: how often to plan, and on which loads.

    Empty where it kept what it started with.
    """
    chosen = next((t for t in calibration.backtest if t.chosen), None)
    base = _began_with(calibration)
    if chosen is None or base is None or chosen is base:
        return ()
    told = []
    if chosen.cadence != base.cadence:
        every = f"plan every {_span(chosen.cadence)} instead of {_span(base.cadence)}"
        told.append(f"the backtest's choice: {every} (service: interval: {_span(chosen.cadence, '')})")
    if chosen.horizon is not None and base.horizon is not None and chosen.horizon != base.horizon:
        over = f"plan on loads averaged over {_span(chosen.horizon)} instead of {_span(base.horizon)}"
        where = f"service: model.long: {_span(chosen.horizon, '')}; of `trimtab plan`, --load mean is the nearest"
        told.append(f"the backtest's choice: {over} ({where})")
    if chosen.max_moves is not None and chosen.max_moves != base.max_moves:
        told.append(f"the backtest's choice: {chosen.max_moves} moves in a plan at most (service: budgets.max_moves: {chosen.max_moves})")
    if chosen.min_gain is not None:
        more = "plans must gain more for the bytes they copy"
        told.append(f"the backtest's choice: {more} (goals file: policy: {{min_gain: {chosen.min_gain:g}}})")
    if chosen.move_cost is not None:
        cost = f"a move costs {format_size(chosen.move_cost)} besides its bytes"
        told.append(f"the backtest's choice: {cost} (goals file: policy: {{move_cost: {chosen.move_cost:g}}})")
    if chosen.start is not None:
        detector = f"{{kind: goal_band, hysteresis: {{start: {chosen.start:g}, stop: {chosen.start / 2:g}}}}}"
        told.append(f"the backtest's choice: plans start later (goals file: policy: {{detector: {detector}}})")
    return tuple(told)


def _began_with(calibration: Calibration) -> Tried | None:
    """The row that a backtest compares with. Others have the goals as they are, too, at another cadence."""
    named = (next((t for t in calibration.backtest if word in t.what), None) for word in BEGUN_WITH)
    return next((t for t in named if t is not None), None)


def _span(seconds: float, space: str = " ") -> str:
    for unit, length in (("h", 3600), ("m" if not space else "min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{space}{unit}"
    return f"{seconds:g}{space}s"


def _is_as(tried: Tried, goals: GoalSet) -> bool:
    """Whether a configuration has the goals' weights and bounds, as far as it names them; it has three digits."""
    weights = {g.name: g.weight for g in goals.goals if not g.hard}
    bounds = {g.name: g.bound for g in goals.goals if isinstance(g, UsageDistribution)}
    return (
        bool(tried.weights)
        and all(math.isclose(weights.get(name, -1.0), weight, rel_tol=ROUNDING) for name, weight in tried.weights.items())
        and all(math.isclose(bounds.get(name, -1.0), bound, rel_tol=ROUNDING) for name, bound in tried.bounds.items())
    )


def _turn(before: float, after: float, error: float | None = None) -> str:
    """``−34% ± 4%``, with the standard error where it is known."""
    if before == after:
        return "±0%"
    if before <= 0:
        return f"from 0 to {after:.3g}"
    beside = "" if error is None else f" ± {error / before:.0%}"
    return f"{'−' if after < before else '+'}{abs(after / before - 1):.0%}{beside}"
