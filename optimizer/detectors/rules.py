"""What each kind of detector measures: from a `Sight` and the detector's parameters to gauges. Pure arithmetic, no memory.

Sources: Danube's load manager (`cv`), Pulsar's overload, threshold, uniform, transfer and average shedders (`absolute`, `above_mean`,
`minmax`, `std`, `pairs`), Wix's rebalance (`count_spread`), AutoMQ's goals (`goal_band`); docs/detectors.md says what differs.
"""

from __future__ import annotations

import numpy as np

from cluster_model.quantities import percent, told_apart
from cluster_model.resources import RESOURCES
from cluster_model.snapshot import FloatArray
from goals.model import Limit, RackAware, TopicGoal, UsageDistribution
from goals.policy_detectors import AboveMean, Absolute, CountSpread, Cv, GoalBand, MinMax, Pairs, Std
from optimizer.detectors.gauge import Gauge, few_ids, of_cluster, reached
from optimizer.detectors.sight import FEWEST, Sight, Utilization
from optimizer.outcome import judged
from optimizer.placement.state import RACKS, State
from optimizer.problem import CEILING, COLUMN, MEAN, Compiled
from optimizer.why_words import amounts, beside, counted

OVERLOADED = 0.85  # utilization at which a single broker counts as an outlier
NO_SPREAD = 1  # replicas between the largest and the smallest count that cannot always be helped
RATE = "request rate"  # the subject of `minmax` where rates of requests decide
NOTHING = 1e-6  # a minimum below it counts as 1 (Pulsar)
UNEVEN, FEW_SIGMAS, ONE_SIGMA = 0.3, 0.5, 1.0  # beyond this coefficient of variation, so many deviations make an outlier; else so many
LEAST_SIGMA = 0.2  # of the mean: a smaller deviation counts as this in naming outliers
LEAST_COUNT = 2.0  # and so does a smaller one than this, of counts

Rule = GoalBand | Cv | Absolute | AboveMean | MinMax | Std | Pairs | CountSpread


NEEDS = {
    "goal_band": "goals with a reported load, and active brokers",
    "cv": "usage_distribution goals with a reported load that reaches the floor, and two active brokers",
    "absolute": "a capacity, on some active broker, for a resource of the goals",
    "above_mean": "usage_distribution goals with a reported load, and two active brokers",
    "minmax": "a load of produce_rate, fetch_rate, network_in or network_out, and two active brokers",
    "std": "usage_distribution or capacity goals with a reported load, and two active brokers",
    "pairs": "usage_distribution or capacity goals with a reported load, and two active brokers",
    "count_spread": "replicas, and two active brokers",
}


def gauges(detector: Rule, sight: Sight) -> list[Gauge]:
    """What a detector measures on a snapshot, in the order of the goals. Where nothing can be judged: nothing, and a note."""
    found = _gauges(detector, sight)
    if not any(len(gauge.value) for gauge in found):
        sight.notes[f"{detector.kind} has nothing to judge; it needs {NEEDS[detector.kind]}"] = None
    return found


def _gauges(detector: Rule, sight: Sight) -> list[Gauge]:
    match detector:
        case GoalBand():
            return _goal_band(detector, sight)
        case Cv():
            return _cv(detector, sight)
        case Absolute():
            return _absolute(detector, sight)
        case AboveMean():
            return _above_mean(detector, sight)
        case MinMax():
            return _minmax(detector, sight)
        case Std():
            return _std(detector, sight)
        case Pairs():
            return _pairs(detector, sight)
        case CountSpread():
            return _count_spread(detector, sight)


# --- the goals themselves ---------------------------------------------------------------------------------------------


def _goal_band(detector: GoalBand, sight: Sight) -> list[Gauge]:
    """Every goal, exactly as a plan judges it."""
    compiled, state = sight.judgement.compiled, sight.judgement.state
    result, topic_row = [], -1
    for g, goal in enumerate(compiled.goals):
        topic_row += isinstance(goal, TopicGoal)
        rows = np.intersect1d(judged(compiled, g), sight.rows(*filter(None, [getattr(goal, "resource", None)])))
        if not len(rows):
            continue
        match goal:
            case UsageDistribution():
                result.append(_band(detector, sight, compiled, state, g, goal, rows))
            case Limit():
                result.append(_limit(sight, compiled, state, g, goal, rows))
            case RackAware():
                result.append(_units(sight, goal.name, rows, state.units[RACKS], "in over-full racks", "replica"))
            case TopicGoal():
                noun = goal.resource.removesuffix("s")
                where = "outside its topics' target ranges" if goal.levels else "fewer than the minimum of topics"
                result.append(_units(sight, goal.name, rows, state.units[topic_row], where, noun))
    return result


def _band(
    detector: GoalBand, sight: Sight, compiled: Compiled, state: State, g: int, goal: UsageDistribution, rows: np.ndarray
) -> Gauge:
    load, means = state.load[rows, compiled.problem.goal[g, COLUMN]], compiled.problem.table[rows, g, MEAN]
    least = np.maximum(goal.min_load, _floor(detector.floor, goal.resource))
    quiet = (means <= 0.0) | ((load < least) & (means < least))
    shares = np.where(quiet, 1.0, np.divide(load, means, out=np.ones(len(rows)), where=means > 0.0))
    line = goal.bound if detector.deviation is None else detector.deviation

    def words(row: int) -> tuple[str, str]:
        limit = "its target range ends at" if detector.deviation is None else "allowed is"
        off, most = told_apart(abs(float(shares[row]) - 1.0), line)
        return _beside_mean(sight, rows[row], float(shares[row]), goal.resource, off), f"; {limit} {most}"

    return Gauge(goal.name, sight.ids(rows), np.abs(shares - 1.0), np.full(len(rows), line), words, strict=True)


def _beside_mean(sight: Sight, row: int, share: float, resource: str, distance: str | None = None) -> str:
    off = beside(share - 1.0, distance)
    return f"broker {sight.snapshot.broker_ids[row]} is {off} the mean in {resource}"


def _limit(
    sight: Sight, compiled: Compiled, state: State, g: int, goal: Limit, rows: np.ndarray
) -> Gauge:
    load, ceiling = state.load[rows, compiled.problem.goal[g, COLUMN]], compiled.problem.table[rows, g, CEILING]
    shares = np.divide(load, ceiling, out=1.0 + load, where=ceiling > 0.0)

    def words(row: int) -> tuple[str, str]:
        side = "above" if load[row] > ceiling[row] else "within"
        held, most = amounts(float(load[row]), float(ceiling[row]), goal.resource)
        if RESOURCES[goal.resource] == "count":
            held = counted(round(float(load[row])), goal.resource.removesuffix("s"))
        else:
            held += f" of {goal.resource}"
        return f"broker {sight.snapshot.broker_ids[rows[row]]} has {held}, {side} its limit of {most}", ""

    return Gauge(goal.name, sight.ids(rows), shares, np.ones(len(rows)), words, strict=True, latched=False)


def _units(sight: Sight, name: str, rows: np.ndarray, units: FloatArray, where: str, noun: str) -> Gauge:
    held = units[rows]

    def words(row: int) -> tuple[str, str]:
        return f"broker {sight.snapshot.broker_ids[rows[row]]} holds {counted(round(float(held[row])), noun)} {where}", ""

    return Gauge(name, sight.ids(rows), held, np.ones(len(rows)), words, latched=False)


def _floor(floor: float | None, resource: str) -> float:
    """A floor is an amount of bytes, bytes/s or requests/s; counts and cores have none."""
    return floor if floor is not None and RESOURCES[resource] not in ("count", "cores") else 0.0


# --- spread around the mean, resource by resource ---------------------------------------------------------------------


def variation(values: FloatArray, population: bool = True) -> float:
    """Coefficient of variation; 0 for fewer than two values or a mean of 0."""
    if len(values) < FEWEST or values.mean() <= 0.0:
        return 0.0
    return float(values.std(ddof=0 if population else 1) / values.mean())


def outliers(values: FloatArray, least: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """int64 rows of values far above and far below the mean.

    More than one population deviation off, and 0.5 where the coefficient of variation is above 0.3 (with half of the brokers or more
    overloaded, no broker is one whole deviation above the mean). A deviation counts as 20% of the mean at least, and as `least`.
    """
    if len(values) < FEWEST or values.mean() <= 0.0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    mean, spread = float(values.mean()), float(values.std())
    k = FEW_SIGMAS if variation(values) > UNEVEN else ONE_SIGMA
    off = k * max(spread, LEAST_SIGMA * mean, least)
    return np.flatnonzero(values > mean + off), np.flatnonzero(values < mean - off)


def _cv(detector: Cv, sight: Sight) -> list[Gauge]:
    result = []
    for resource in sight.levelled:
        rows = sight.rows(resource)
        shares, mean = sight.shares_of_mean(resource, rows)
        if len(rows) < FEWEST or mean < _floor(detector.floor, resource):
            continue
        found = variation(shares, detector.pop)
        least = LEAST_COUNT / mean if RESOURCES[resource] == "count" and mean > 0.0 else 0.0
        who = [
            f"{few_ids(sight.ids(rows[ends]))} far {side} the mean"
            for side, ends in zip(("above", "below"), outliers(shares, least), strict=True) if len(ends)
        ]  # fmt: skip
        text = f"the coefficient of variation of {resource} is {percent(found)}" + (f" ({', '.join(who)})" if who else "")
        result.append(of_cluster(resource, found, detector.threshold, (text, f"; the line is {percent(detector.threshold)}")))
        if detector.sigma_k is not None:
            result.append(_sigma_outliers(detector, sight, resource, rows, shares))
    return result


def _sigma_outliers(detector: Cv, sight: Sight, resource: str, rows: np.ndarray, shares: FloatArray) -> Gauge:
    """Single brokers that the coefficient of a large cluster does not show: an empty new one above all."""
    k = detector.sigma_k or 0.0
    spread = float(shares.std())
    line = max(k * spread, detector.threshold)

    def words(row: int) -> tuple[str, str]:
        text = _beside_mean(sight, rows[row], float(shares[row]), resource)
        return text, f"; an outlier is {percent(line)} off ({k:g} standard deviations, at least {percent(detector.threshold)})"

    off = np.abs(shares - 1.0) if shares.any() else np.zeros(len(rows))
    subject = f"{resource} outliers"
    return Gauge(subject, sight.ids(rows), off, np.full(len(rows), line), words, strict=True, latched=False, behind=resource)


def _above_mean(detector: AboveMean, sight: Sight) -> list[Gauge]:
    result = []
    for resource in sight.levelled:
        rows = sight.rows(resource)
        if len(rows) < FEWEST:
            continue
        shares, mean = sight.shares_of_mean(resource, rows)
        shares = shares if mean > 0.0 else np.ones(len(rows))
        shares = sight.averages.of(resource, sight.ids(rows), shares, detector.history_weight)
        value = np.abs(shares - 1.0) if detector.lower_boundary else np.maximum(shares - 1.0, 0.0)
        result.append(_above(detector, sight, resource, rows, shares, value))
    return result


def _above(
    detector: AboveMean, sight: Sight, resource: str, rows: np.ndarray, shares: FloatArray, value: FloatArray
) -> Gauge:
    def words(row: int) -> tuple[str, str]:
        tail = f"; the margin is {percent(detector.margin)}"
        return _beside_mean(sight, rows[row], float(shares[row]), resource) + _averaged(detector), tail

    return Gauge(resource, sight.ids(rows), value, np.full(len(rows), detector.margin), words)


def _averaged(detector: AboveMean | Std) -> str:
    return " on average" if detector.history_weight else ""


def _minmax(detector: MinMax, sight: Sight) -> list[Gauge]:
    """The rate of requests decides; only where it does not reach its line is throughput looked at. Severity counts lines."""
    result: list[Gauge] = []
    for subject, resources, percents in (
        (RATE, ("produce_rate", "fetch_rate"), True), ("throughput", ("network_in", "network_out"), False)
    ):  # fmt: skip
        known = [r for r in resources if sight.snapshot.is_reported(r)]
        rows = sight.rows(*known)
        if not known or len(rows) < FEWEST:
            continue
        load = np.sum([sight.load(r)[rows] for r in known], axis=0)
        most, least = int(np.argmax(load)), int(np.argmin(load))
        low = float(load[least]) if load[least] >= NOTHING else 1.0
        gap = 100.0 * (load[most] - low) / low if percents else load[most] / low
        line = detector.rate_pct if percents else detector.tp_ratio
        pair = f"broker {sight.ids(rows)[most]} and broker {sight.ids(rows)[least]}"
        shown = f"{subject} of {pair} differs by {percent(gap / 100)}" if percents else f"{subject} of {pair} is {gap:,.3g} to 1"
        allowed = f"; allowed is {line:g}%" if percents else f"; allowed is {line:g} to 1"
        result.append(of_cluster(subject, max(float(gap), 0.0) / line, 1.0, (shown, allowed), strict=True))
        if reached(result[-1].value, result[-1].line, True).any():
            break
    return result


def _count_spread(detector: CountSpread, sight: Sight) -> list[Gauge]:
    return [gauge for what in ("replicas", "leaders")[: 1 + detector.leaders] for gauge in _spread_of(what, detector, sight)]


def _spread_of(what: str, detector: CountSpread, sight: Sight) -> list[Gauge]:
    rows = sight.rows(what)
    shares, mean = sight.shares_of_mean(what, rows)
    if len(rows) < FEWEST or mean <= 0.0:
        return []
    if detector.ratio_of_mean is not None:
        least = max(1.0 - detector.ratio_of_mean, 1e-9)

        def words(row: int) -> tuple[str, str]:
            text = _beside_mean(sight, rows[row], float(shares[row]), what)
            return text, f"; it should hold {percent(detector.ratio_of_mean or 0.0)} of the mean"

        return [Gauge(what, sight.ids(rows), np.maximum(1.0 - shares, 0.0), np.full(len(rows), least), words, strict=True)]
    counts = shares * mean
    most, smallest = int(np.argmax(counts)), int(np.argmin(counts))
    allowed = NO_SPREAD if detector.max_spread is None else detector.max_spread
    spread = float(counts[most] - counts[smallest])
    ids = sight.ids(rows)
    text = f"broker {ids[most]} has {counted(round(spread), what.removesuffix('s'))} more than broker {ids[smallest]}"
    text = text if round(spread) else f"all brokers have equally many {what}"
    return [of_cluster(what, spread, float(allowed), (text, f"; allowed is {allowed}"), strict=True)]


# --- utilization ------------------------------------------------------------------------------------------------------


def _absolute(detector: Absolute, sight: Sight) -> list[Gauge]:
    use = sight.by_capacity()
    shares = use.shares.copy()
    for column, resource in enumerate(use.resources):
        shares[~np.isin(use.rows, sight.rows(resource)), column] = np.nan
    use = Utilization(use.rows, shares, use.resources, True)
    known = np.flatnonzero(~np.isnan(shares).all(axis=1)) if len(use.resources) else np.zeros(0, np.int64)
    if not len(known):
        return []

    def words(row: int) -> tuple[str, str]:
        share, line = told_apart(float(use.worst[known[row]]), detector.limit)
        return _used(sight, use, int(known[row]), share), f"; the limit is {line}"

    limit = np.full(len(known), detector.limit)
    return [Gauge("utilization", sight.ids(use.rows[known]), use.worst[known], limit, words)]


def _used(sight: Sight, use: Utilization, row: int, share: str) -> str:
    of = "its capacity" if use.by_capacity else "the busiest broker"
    broker = sight.snapshot.broker_ids[use.rows[row]]
    return f"broker {broker} is at {share} of {of} in {use.resource(row)}"


def _std(detector: Std, sight: Sight) -> list[Gauge]:
    use = sight.utilization()
    if len(use.rows) < FEWEST or not use.resources:
        return []
    unit = "utilization" if use.by_capacity else "share of the busiest"  # one is no history of the other
    loads = sight.averages.of(unit, sight.ids(use.rows), use.worst, detector.history_weight)
    found = float(loads.std())
    text = f"the standard deviation of utilization is {found:.3g}{_averaged(detector)}"
    result = [of_cluster("utilization", found, detector.target, (text, f"; the target is {detector.target:g}"), strict=True)]
    return [*result, *_far_off(detector, sight, use, loads)] if detector.outliers else result


def _far_off(detector: Std, sight: Sight, use: Utilization, loads: FloatArray) -> list[Gauge]:
    """Single brokers that hardly change the deviation of a large cluster: far above the mean, far below, or without traffic."""
    ids, mean = sight.ids(use.rows), float(loads.mean())
    part = min(0.5, detector.target / 2.0)  # of the mean: below it a broker is idle
    line = np.full(len(ids), max(OVERLOADED, mean + detector.target) if use.by_capacity else np.inf)

    def used(row: int) -> str:
        return _used(sight, use, row, percent(float(loads[row]))) + _averaged(detector)

    def busy(row: int) -> tuple[str, str]:
        return used(row), f"; one broker alone counts above {percent(float(line[row]))}"

    def idle(row: int) -> tuple[str, str]:
        return used(row), f"; one broker alone counts below {percent(part * mean)}"

    result = [
        Gauge("overloaded", ids, loads, line, busy, strict=True, latched=False),
        Gauge("underloaded", ids, np.maximum(mean - loads, 0.0), np.full(len(ids), max(mean * (1.0 - part), 1e-12)), idle,
              strict=True, latched=False),
    ]  # fmt: skip
    known = [r for r in ("network_in", "network_out") if sight.snapshot.is_reported(r)]
    if known:
        now = np.sum([sight.load(r)[use.rows] for r in known], axis=0)
        traffic = sight.averages.of("traffic", ids, now, detector.history_weight)
        most = float(traffic[int(np.argmax(loads))])

        def quiet(row: int) -> tuple[str, str]:
            share = float(traffic[row]) / most if most > 0.0 else 0.0
            return f"broker {ids[row]} has {percent(share)} of the busiest broker's traffic", f"; counts below {percent(part)}"

        missing = np.where(loads < mean, np.maximum(most - traffic, 0.0), 0.0)
        lines = np.full(len(ids), max(most * (1.0 - part), 1e-12))
        result.append(Gauge("without traffic", ids, missing, lines, quiet, strict=True, latched=False))
    return result


def _pairs(detector: Pairs, sight: Sight) -> list[Gauge]:
    """Busiest with idlest, second with second: both count the hits of their pair."""
    use = sight.utilization()
    if len(use.rows) < FEWEST or not use.resources:
        return []
    ids, points = sight.ids(use.rows), 100.0 * use.worst
    order = np.lexsort((ids, points))
    mate = np.empty(len(order), np.int64)
    mate[order] = order[::-1]
    gap = np.abs(points - points[mate])

    def words(row: int) -> tuple[str, str]:
        busy, idle = (row, mate[row]) if points[row] > points[mate[row]] else (mate[row], row)
        both = f"{points[busy]:.0f} and {points[idle]:.0f}"
        text = f"brokers {ids[busy]} and {ids[idle]} are {gap[row]:.0f} points of utilization apart ({both})"
        return text, f"; the lines are {detector.low:g} and {detector.high:g}"

    return [Gauge("pairs", ids, gap, np.full(len(ids), detector.low), words, high=detector.high)]
