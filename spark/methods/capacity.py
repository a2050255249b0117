"""What one broker can carry, read from its own windows: reported, a bend of latency or cpu over throughput, or the most ever seen.

Called by the calibrate job for each broker (`applyInArrow`), and by tests. Plain numpy over one broker's windows; knows nothing of
Spark. A bend has to be there beyond what a straight or an exponential rise gives, and again in nearly every resampling of the days;
otherwise no capacity is made up, only a lower bound told. docs/calibration-methods.md has the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from cluster_model.resources import MEASURED
from optimizer.report.units import amount
from spark.methods.rise import BLOCKS, LEAST_IN_BIN, Bins, FloatArray, curve_of, knee_error, left, queue, straight

Confidence = Literal["high", "medium", "low"]
Kind = Literal["reported", "bend", "most"]

LEAST_WINDOWS = 150  # below, nothing is fitted
LEAST_SPREAD = 1.3  # of throughput, 99th over 10th percentile: a broker whose load does not vary shows no bend
LARGEST_GAP = 1.5  # throughputs this factor above all others were misread
RESAMPLINGS = 60
FARTHEST = 1.4  # a limit is not read from windows that stay below 1/1.4 of it
LEAST_RISE = 2.0  # latency at the top over that at the bottom of the fit
LEAST_EXCESS = 1.25  # latency at the top over what an exponential through the lower part would give
LEAST_GAIN = 0.7  # error of the bent fit over that of the better straight one
AGREE = 0.95  # of the resamplings have that excess
ELSEWHERE = 0.15  # of the windows with a high measure may have far lower throughput
PILE = 0.03  # the top of throughput, as a share of it, that is compared with the stretch below
PILED = 3.0  # times the windows of a stretch below
PILED_KNEE = 1.2  # the same where latency has a knee: two things say then that throughput stops
KNEE = 1.2  # error of a knee over that of a queue, up to which it is a knee: whose slope says nothing of where a limit is
FORM = 0.0075  # of the limit, beyond what resampling says: the form of queues, and of throughput near its limit, differs by so much
BELOW = 0.8  # of the top: where piled up windows are compared with, which need no other proof
RIVAL = 1.15  # a bend over another resource explains as much while its error is at most so many times the least
MOST = 0.999  # quantile of throughput that is called the most ever carried
WIDEST = 0.1  # of the limit: a 90% interval that is wider, more than 5% to each side, is no estimate that a plan may rely on
EXCEEDED = 1.05  # times what is reported, or read from a bend: then that is not the limit
NEAR = 0.9  # throughput over estimate from which a limit counts as reached


@dataclass(frozen=True)
class Bend:
    """A queue fitted to a measure over throughput.

    Attributes
    ----------
    limit, low, high
        Throughput at which the queue grows without end, and the 5th and 95th percentile of it over the resamplings, `FORM` further out.
    curve
        float64 [n, 2], corners (throughput, measure), ascending, up to the largest measure.
    error
        Root mean square of the logarithm of measured over fitted, over bins.
    reached
        Largest throughput over the limit.
    pinned
        Throughput piles up at its top: it went no further, whatever was offered, and the limit is there.
    """

    limit: float
    low: float
    high: float
    curve: FloatArray
    error: float
    reached: float
    pinned: bool = False


@dataclass(frozen=True)
class Capacity:
    """What a broker can carry of one resource, or at least: `kind` "most" is a lower bound.

    `words` is the evidence as a sentence, `measure` what bends, `bend` the fit.
    """

    value: float
    confidence: Confidence
    kind: Kind
    words: str
    measure: str | None = None
    bend: Bend | None = None


def capacities(
    loads: Mapping[str, FloatArray], measures: Mapping[str, FloatArray], reported: Mapping[str, FloatArray], seed: int = 0
) -> dict[str, Capacity]:
    """Capacity of one broker by resource.

    Parameters
    ----------
    loads
        By resource: float64 [windows] in order of time, in the resource's unit; NaN: not measured.
    measures
        What may bend, by name (``produce_latency_ms``, …): float64 [windows], the same windows.
    reported
        By resource: what the broker said it can carry, in order of time, any length.
    seed
        Of the resampling.

    Notes
    -----
    Where a measure bends over several resources, since they rise together, one of them keeps the bend: of those within `RIVAL` of the least
    error the first in the order of `MEASURED`. A limit that follows another is none, nor is one whose interval is wider than `WIDEST`.
    O(windows log windows).
    """
    found: dict[str, Capacity] = {}
    bends: dict[str, dict[str, Bend]] = {}
    for resource, load in loads.items():
        told = _reported(resource, reported.get(resource), load)
        if told is None:
            seen = {name: find_bend(load, measure, seed) for name, measure in sorted(measures.items())}
            bends[resource] = {name: bend for name, bend in seen.items() if isinstance(bend, Bend)}
        best = told or _most(resource, load)
        if best is not None:
            found[resource] = best
    winners = {name: _winner({r: of[name] for r, of in bends.items() if name in of}) for of in bends.values() for name in of}
    for resource, of in bends.items():
        mine = {name: bend for name, bend in of.items() if winners[name] == resource}
        close = {name: bend for name, bend in mine.items() if bend.high - bend.low <= WIDEST * bend.limit}
        if close:
            found[resource] = _bent(resource, close)
        elif mine:
            name = min(mine, key=lambda n: mine[n].high - mine[n].low)
            span = f"between {amount(mine[name].low, resource)} and {amount(mine[name].high, resource)}, an interval too wide to use"
            found[resource] = replace(found[resource], words=f"{found[resource].words}; {_plain(name)} bends towards a limit {span}")
        elif of:
            name = min(of, key=lambda n: of[n].error)
            why = f"{found[resource].words}; {_plain(name)} bends, but {winners[name]} explains that as well or better"
            found[resource] = replace(found[resource], words=why)
    return found


def _winner(bends: Mapping[str, Bend]) -> str:
    """The resource that a measure's bend is given to."""
    least = min(bend.error for bend in bends.values())
    order = [*MEASURED, *sorted(bends.keys() - MEASURED.keys())]
    return next(resource for resource in order if resource in bends and bends[resource].error <= RIVAL * least)


def find_bend(throughput: FloatArray, measure: FloatArray, seed: int = 0) -> Bend | str:
    """The bend of a measure over throughput, or why none is seen.

    Parameters
    ----------
    throughput, measure
        float64 [windows] in order of time; windows where either is NaN, infinite or not positive are passed over.

    Notes
    -----
    Medians of the measure in `BINS` bins of throughput, fitted by ``base + slope * u^q / (1 - u)``, ``u = throughput / limit``:
    a queue of one or (q above 1) several servers. Relative least squares with Huber weights over a grid of limits and q.
    """
    use = np.isfinite(throughput) & np.isfinite(measure) & (throughput > 0) & (measure > 0)
    x, y = throughput[use], np.log(measure[use])
    x, y = _supported(x, y)
    if len(x) < LEAST_WINDOWS:
        return f"only {len(x)} windows have both"
    low, high = np.quantile(x, [0.1, 0.99])
    if high < LEAST_SPREAD * low:
        return f"throughput hardly varies (99th percentile {high / low:.2f} times the 10th)"
    grid = Bins.of(x, y)
    if len(grid.at) < 6:
        return "too few throughputs were seen often enough"
    whole, _ = grid.level(np.ones((1, BLOCKS)))
    fit = queue(grid.at, whole, grid.weight[None, :])
    limit, q, base, slope = (float(part[0]) for part in fit)
    at = np.linspace(grid.at[0], grid.at[-1], 60)
    drawn = np.stack([at, np.minimum(curve_of(at, limit, q, base, slope), np.exp(whole.max()))], axis=1)
    error = left(whole[0], np.log(curve_of(grid.at, limit, q, base, slope)), grid.weight)
    pinned = _pinned(x)
    before = float(np.interp(BELOW * grid.at[-1], grid.at, whole[0]))
    limits = None
    if pinned is None or whole[0, -1] - before < np.log(LEAST_RISE):
        again, seen = grid.level(_resampled(seed))
        against = _against(grid, whole, error, drawn, limit)
        if against is None and np.mean(_excess(grid, again, seen) > np.log(LEAST_EXCESS)) < AGREE:
            against = "it bends on some days only, or no more steeply at the top than below"
        if against is not None:
            return against
        limits = queue(grid.at, again, np.broadcast_to(grid.weight, again.shape))[0]
    if np.quantile(x, MOST) > EXCEEDED * limit:
        return "it carried more than the limit would be"
    if _elsewhere(x, y, drawn) > ELSEWHERE:
        return "it is as high at lower throughput, so something else raises it"
    if pinned is None and knee_error(grid, whole[0]) < KNEE * error:
        pinned = _pinned(x, PILED_KNEE)
        if pinned is None:
            return "it rises beyond a knee and throughput goes on, which says of no limit where it is"
    if pinned is not None and (limits is None or pinned < limit):
        return Bend(pinned, pinned * (1 - FORM), pinned * (1 + FORM), drawn, error, 1.0, True)
    assert limits is not None
    low, high = np.quantile(limits, [0.05, 0.95])
    low, high = min(float(low), limit) * (1 - FORM), max(float(high), limit) * (1 + FORM)
    return Bend(limit, low, high, drawn, error, float(grid.at[-1]) / limit)


def _against(grid: Bins, whole: FloatArray, error: float, curve: FloatArray, limit: float) -> str | None:
    """Why a fitted queue is none after all; None: it stands. `whole` [1, K] are the levels of bins."""
    unbent = min(left(whole[0], line, grid.weight) for line in straight(grid.at, whole[0], grid.weight))
    if curve[-1, 1] < LEAST_RISE * curve[0, 1]:
        return "it hardly rises"
    if error > LEAST_GAIN * unbent:
        return "a straight or exponential rise explains it as well"
    if limit > FARTHEST * grid.at[-1]:
        return f"a limit would be {limit / grid.at[-1]:.1f} times the most that was seen"
    return None


def _resampled(seed: int) -> FloatArray:
    """float64 [R, S]: how often each block of time is taken."""
    r = np.random.default_rng(seed)
    return r.multinomial(BLOCKS, np.full(BLOCKS, 1 / BLOCKS), RESAMPLINGS).astype(np.float64)


# -- kinds of evidence -----------------------------------------------------------------------------------------------------


def _reported(resource: str, values: FloatArray | None, load: FloatArray) -> Capacity | None:
    """The newest that was reported; a median, so that one misread value does not count. Less sure where more was carried."""
    if values is None:
        return None
    good = values[np.isfinite(values) & (values > 0)]
    if not len(good):
        return None
    value = float(np.median(good[-15:]))
    most = _most(resource, load)
    if most is not None and most.value > EXCEEDED * value:
        words = f"reported by the broker, though it carried {amount(most.value, resource)}"
        return Capacity(value, "medium", "reported", words)
    return Capacity(value, "high", "reported", "reported by the broker")


def _bent(resource: str, seen: Mapping[str, Bend]) -> Capacity:
    """The capacity by the bend of the measure that is fitted best."""
    name = min(seen, key=lambda n: seen[n].error)
    bend = seen[name]
    sure: Confidence = "high" if bend.reached >= NEAR else "medium"
    rise = bend.curve[-1, 1] / bend.curve[0, 1]
    words = f"{_plain(name)} rises {rise:.0f} times towards {amount(bend.limit, resource)}"
    if bend.pinned:
        words += ", where throughput stops"
    else:
        low, high = amount(bend.low, resource), amount(bend.high, resource)
        words += f" (90% interval {low} to {high}; " if low != high else " ("
        words += f"{bend.reached:.0%} of it was reached)"
    return Capacity(bend.limit, sure, "bend", words, name, bend)


def _most(resource: str, load: FloatArray) -> Capacity | None:
    """What the broker carried at least."""
    good = load[np.isfinite(load) & (load > 0)]
    if not len(good):
        return None
    good, _ = _supported(good, good)
    value = float(np.quantile(good, MOST))
    return Capacity(value, "low", "most", f"no sign of a limit; it carried {amount(value, resource)}, so it can carry at least that")


# -- what is looked at ------------------------------------------------------------------------------------------------------------------


def _excess(grid: Bins, level: FloatArray, seen: npt.NDArray[np.bool_]) -> FloatArray:
    """float64 [R]: logarithm of the top two bins over an exponential through the lower 70% of throughputs; a bin not seen has none."""
    at = grid.at
    lower = at <= at[0] + 0.7 * (at[-1] - at[0])
    if lower.sum() < 3:
        return np.zeros(len(level))
    slope, base = np.polyfit(at[lower], level[:, lower].T, 1, w=grid.weight[lower])
    expected = base[:, None] + np.maximum(slope, 0.0)[:, None] * at[-2:]
    found: FloatArray = np.where(seen[:, -2:], level[:, -2:] - expected, 0.0).mean(axis=1)
    return found


def _supported(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Those with throughputs that go on without a gap from the median: single misread values stand alone, far above."""
    order = np.sort(x)
    upper = order[len(order) // 2 :]
    jumps = np.flatnonzero(upper[1:] > LARGEST_GAP * upper[:-1])
    if not len(jumps):
        return x, y
    kept = x <= upper[jumps[0]]
    return x[kept], y[kept]


def _elsewhere(x: FloatArray, y: FloatArray, curve: FloatArray) -> float:
    """Share of the windows in the upper half of the measure's rise (logarithms `y`) that have far less throughput than that takes."""
    level = np.log(curve[:, 1])
    half = (level[0] + level[-1]) / 2
    takes = float(np.interp(half, level, curve[:, 0]))
    high = y >= half
    return float(np.mean(x[high] < 0.85 * takes)) if high.any() else 1.0


def _pinned(x: FloatArray, least: float = PILED) -> float | None:
    """The throughput at which windows pile up at the top, `least` times those of a stretch below; None where they thin out."""
    top = float(np.quantile(x, MOST))
    edges = top * (1.0 - PILE * np.arange(5))
    above = np.array([np.count_nonzero(x > edge) for edge in edges[1:]])
    piled, below = above[0], np.diff(above)
    return top if piled >= max(least * below.max(), LEAST_IN_BIN) else None


def _plain(measure: str | None) -> str:
    """``produce_latency_ms`` as words."""
    return (measure or "").removesuffix("_ms").replace("_", " ")
