"""What was counted about one resource, as its part of the calibration file, with a sentence for every figure and every gap.

Called by `spark.jobs.calibrate`. Pure: takes small tables, knows nothing of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cluster_model.resources import MEASURED
from goals.calibration import AlarmRate, Levelling, ResourceCalibration, Seasonality
from optimizer.report.units import amount
from spark.methods.benefit import CAP, REFERENCE, Benefit
from spark.methods.bins import FloatArray, Histogram
from spark.methods.bound import LEAST_BOUND, LEAST_SEEN, WEEK, Band, band, chance_of, sigma
from spark.methods.least_level import fitted, least_level
from spark.methods.noise import LEVELS_PER_OCTAVE, TO_SIGMA
from spark.methods.season import DAY_HOURS
from spark.methods.spread import var

WIDTHS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)
DIGITS = 4


@dataclass(frozen=True)
class Detection:
    """How brokers will be watched: seconds of a window, checks in a row before something is done, and how many false triggers
    of the whole cluster, all resources together, are put up with in a week."""

    window: float
    hits: int
    alarms_per_week: float


@dataclass(frozen=True)
class Counted:
    """One resource of one cluster.

    Attributes
    ----------
    mean, brokers, windows
        Load of a broker over brokers and time; how many brokers; windows of all of them.
    whole
        How many of the brokers report it themselves; that of the others is the sum of their replicas.
    noise
        By level in half octaves (of the resource's unit): sizes of fast deviations.
    alarm, spread
        What a detector would see of them; all deviations, lasting ones too.
    days, settled
        Broker days seen, and those that noise was taken from.
    weekly
        Brokers whose share goes round the week: that was taken out of their noise.
    benefit
        What bands are good for; None: too little history.
    growth, strength, cycle, profile
        As `spark.methods.season` gives them; None: too little history.
    """

    mean: float
    brokers: int
    windows: int
    whole: int
    noise: Mapping[int, Histogram]
    alarm: Histogram
    spread: Histogram
    days: int = 0
    settled: int = 0
    weekly: int = 0
    benefit: Benefit | None = None
    growth: float | None = None
    strength: float | None = None
    cycle: int | None = None
    profile: FloatArray | None = None


def described(resource: str, counted: Counted, detection: Detection, resources: int) -> ResourceCalibration:
    """The resource's part of the calibration file; `resources` share the false triggers that are put up with."""
    why = [_mean_why(counted, detection)]
    if counted.mean <= 0.0:
        why.append("noise, bound, var, min_load, growth, seasonality: not known; the load is always 0")
        return ResourceCalibration(mean=0.0, noise=None, bound=None, var=None, min_load=None, why=why)
    noise = _noise(counted, why)
    allowed = detection.alarms_per_week / resources
    found = None if noise is None else band(counted.alarm, chance_of(allowed, counted.brokers, detection.window))
    per_week = counted.brokers * WEEK / detection.window
    bound, end, least = None, None, None
    if found is None:
        why.append("bound, var, min_load: not known, since the noise is not known" if noise is None else _too_few(counted))
    else:
        why.append(_bound_why(found, counted, detection, allowed))
        bound = chosen(found.bound, counted.benefit, detection.window, why)
        end = var(counted.spread, bound)
        why.append(f"var: {_var_why(end, bound)}; 99% of brokers' windows are within {counted.spread.quantile(0.99):.1%} of the mean")
        least = _least(resource, counted, bound, why)
    return ResourceCalibration(
        mean=counted.mean,
        noise=noise,
        false_alarms=None if found is None else rounded(found.chance(bound) * per_week),
        alarms=[] if found is None or bound is None else _alarms(found, bound, per_week),
        levelling=_levelling(counted.benefit),
        bound=bound,
        var=end,
        min_load=None if least is None else rounded(least, 2),
        growth=None if counted.growth is None else round(counted.growth, DIGITS),
        seasonality=_seasonality(counted, why),
        why=why,
    )


def rounded(value: float, digits: int = 3) -> float:
    return float(f"{value:.{digits}g}")


def _mean_why(counted: Counted, detection: Detection) -> str:
    match counted.whole:
        case counted.brokers:
            source = "as brokers report it themselves"
        case 0:
            source = "sums over their replicas"
        case some:
            source = f"as {some} of them report it themselves, sums over replicas for the others"
    return f"mean: {counted.brokers} brokers, {counted.windows:,} windows of {detection.window:g} s; {source}"


def _noise(counted: Counted, why: list[str]) -> float | None:
    together = Histogram.added(counted.noise.values())
    reason = None
    if counted.brokers < 2:
        reason = "a single broker cannot be compared with others"
    elif together.total < LEAST_SEEN:
        reason = f"{together.total:,} windows of brokers in settled days, at least {LEAST_SEEN:,} are needed; give a longer history"
    if reason is not None:
        why.append(f"noise: not known; {reason}")
        return None
    why.append(
        f"noise: standard deviation, from the median of {together.total:,} windows' deviations from the broker's own median share "
        f"of the day; {counted.settled:,} of {counted.days:,} broker days"
        + ("" if counted.settled == counted.days else " (the others changed during the day, or are below half or above twice the mean)")
        + (f"; the weekly pattern of {counted.weekly} brokers is removed" if counted.weekly else "")
    )
    return rounded(sigma(together, TO_SIGMA, counted.brokers), DIGITS)


def _too_few(counted: Counted) -> str:
    return (
        f"bound, var, min_load: not known; {counted.alarm.total:,} checks of brokers in settled days, at least {LEAST_SEEN:,} are needed"
    )


def _bound_why(found: Band, counted: Counted, detection: Detection, allowed: float) -> str:
    checks = counted.brokers * WEEK / detection.window
    row = "" if detection.hits == 1 else f" {detection.hits} times in a row"
    said = (
        f"bound: noise alone exceeds it{row} at most {allowed:.3g} times a week, in {checks:,.0f} checks (all resources together: "
        f"{detection.alarms_per_week:g}); "
    )
    said += (
        f"measured in {found.seen.total:,} checks" if found.tail is None else
        f"extrapolated from {found.seen.total:,} checks by a Pareto tail of shape {found.tail.shape:.2f} above {found.tail.threshold:.1%}"
    )  # fmt: skip
    if found.bound == LEAST_BOUND:
        said += f"; this gives {found.exact:.2%}, but no bound below {LEAST_BOUND:.0%} is recommended"
    return said


def chosen(by_noise: float, found: Benefit | None, window: float, why: list[str]) -> float:
    """The bound: as noise asks for, but no wider than levelling needs and never beyond `CAP`; adds the sentence about it.

    Parameters
    ----------
    by_noise
        Left by chance as seldom as was asked for.
    window
        Seconds that plans average over.
    """
    narrow = min(by_noise, CAP)
    capped = "" if by_noise <= CAP else f"; noise alone requires {by_noise:g}, but with a bound above {CAP:g} a broker may stay idle"
    if found is None:
        if capped:
            why.append(f"bound: limited to {CAP:g}{capped}")
        return narrow
    horizon = found.nearest(window)
    hours = f"of {found.out:,.3g} broker-hours a week that are beyond {REFERENCE:.0%} of the mean"
    if found.out <= 0.0:
        why.append(f"bound: no broker was beyond {REFERENCE:.0%} of the mean for an hour, so there is nothing to level{capped}")
        return narrow
    best = found.good(horizon)
    if best is None:
        day = max(found.least)
        foreseen = max(1.0 - found.least[day] / found.out, 0.0)
        why.append(
            f"bound: cannot be levelled on mean loads of {horizon} h, since loads change faster: {hours}, no bound removes enough to be "
            f"worth the moves (with the next {day} h known in advance, {1 - foreseen:.0%} would remain){capped}"
        )
        return narrow
    low, high = best
    if by_noise <= high.bound and (by_noise >= low.bound or low is found.at(horizon)[0]):
        share = found.removed(high)
        why.append(f"bound: {hours}, levelling on mean loads of {horizon} h removes {share:.0%} with any bound up to {high.bound:g}")
        return by_noise
    row = low if by_noise < low.bound else high
    removes = f"{row.bound:g} removes {found.removed(row):.0%} on mean loads of {horizon} h"
    why.append(
        f"bound: chosen by its benefit, since noise alone requires {by_noise:g}: {hours}, {removes}, "
        f"acting {row.acts:.3g} times a week and moving {row.moved:.2g} times the mean load of a broker"
    )
    return row.bound


def _levelling(found: Benefit | None) -> list[Levelling]:
    rows = () if found is None else found.rows
    return [
        Levelling(bound=row.bound, horizon=3600.0 * row.horizon, acts=rounded(row.acts), out=rounded(row.out), moved=rounded(row.moved))
        for row in rows
    ]


def _var_why(end: float, bound: float) -> str:
    if end <= 2.01 * bound:
        return "twice the bound"
    return "six times the bound, as goals have it" if end >= 5.99 * bound else "by the spread of brokers"


def _least(resource: str, counted: Counted, bound: float, why: list[str]) -> float | None:
    levels = [(2.0 ** ((level + 0.5) / LEVELS_PER_OCTAVE), h) for level, h in sorted(counted.noise.items())]
    at = np.array([level for level, _ in levels])
    sizes = np.array([h.quantile(0.5) * TO_SIGMA for _, h in levels])
    noise = fitted(at, sizes, np.array([h.total for _, h in levels], dtype=np.float64))
    if noise is None:
        why.append("min_load: not known; no level of load lasted long enough")
        return None
    least = least_level(noise, bound, counted.mean)
    if least > 0.01 * counted.mean:
        why.append(
            f"min_load: below it, noise is wider than half the target range; {amount(noise.fixed, resource)} of the noise does not "
            f"shrink with the load (measured at {noise.levels} levels of load)"
        )
    else:
        why.append(f"min_load: a hundredth of the mean; noise shrinks with the load at the {noise.levels} levels seen")
    return least


def _alarms(found: Band, bound: float, per_week: float) -> list[AlarmRate]:
    widths = sorted({*WIDTHS, bound})
    return [AlarmRate(bound=width, false_alarms=rounded(found.chance(width) * per_week)) for width in widths]


def _seasonality(counted: Counted, why: list[str]) -> Seasonality | None:
    if counted.growth is None:
        why.append("growth: not known; two weeks are needed")
    if counted.profile is None or counted.strength is None:
        why.append("seasonality: not known; three days are needed, two weeks for the days of the week")
        return None
    if counted.cycle == DAY_HOURS:
        why.append("seasonality: by hour of the day, the same for every day; two weeks are needed to distinguish the days")
    profile = [round(float(part), DIGITS) for part in counted.profile]
    return Seasonality(strength=round(counted.strength, DIGITS), peak_hour=profile.index(max(profile)), profile=profile)


def in_order(found: Mapping[str, ResourceCalibration]) -> dict[str, ResourceCalibration]:
    """Resources as everything lists them."""
    return {name: found[name] for name in MEASURED if name in found}
