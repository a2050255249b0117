"""What a report shows beyond the calibration file: histograms, sampled points, a few series. Everything of bounded size.

Filled by the jobs (`spark.jobs.calibrate`, `spark.backtest`); drawn by ``spark.report.calibration.calibration_html(calibration,
evidence)`` and ``spark.report.backtest.backtest_html(tried, evidence)``. Knows nothing of
Spark or HTML. Shares are 0..1, loads in their resource's unit, times ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_POINTS = 400  # in one drawing


@dataclass(frozen=True)
class Histogram:
    """Counts of equal bins from `low` to `high`; what is beyond is in the first and last."""

    low: float
    high: float
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.low < self.high or not self.counts:
            raise ValueError(f"expected bins between two ascending ends, found {self.low} to {self.high}, {len(self.counts)} bins")

    @property
    def width(self) -> float:
        """Of one bin."""
        return (self.high - self.low) / len(self.counts)


@dataclass(frozen=True)
class NoiseEvidence:
    """How broker loads deviated, window by window, from what each should have carried: signed shares of the mean."""

    resource: str
    deviations: Histogram


@dataclass(frozen=True)
class LevelEvidence:
    """The whole cluster's load over time, thinned: mean of a broker in each of at most `MOST_POINTS` stretches."""

    resource: str
    times: tuple[str, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class CapacityEvidence:
    """What the capacity of one broker was read from. A few brokers of each kind of evidence are enough.

    Attributes
    ----------
    points
        (throughput, measure) of windows, at most `MOST_POINTS`.
    fit
        The fitted line through them as corners, ascending by throughput; empty where none was fitted.
    """

    broker: int
    resource: str
    measure: str  # what is on the other axis: produce_latency_ms, cpu, …
    points: tuple[tuple[float, float], ...]
    fit: tuple[tuple[float, float], ...] = ()
    capacity: float | None = None
    confidence: str = "low"
    words: str = ""


@dataclass(frozen=True)
class CpuEvidence:
    """How well cpu is explained.

    Attributes
    ----------
    points
        (cores by the fit, cores measured) of windows, at most `MOST_POINTS`.
    residuals
        Measured less fitted, over the mean cpu of a broker; all windows.
    brokers
        (broker, median residual in cores), largest first, at most 50.
    """

    points: tuple[tuple[float, float], ...]
    residuals: Histogram | None = None
    brokers: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class TopicEvidence:
    """The past of one topic, thinned to at most `MOST_POINTS`, and what is expected next (empty: no forecast)."""

    topic: str
    resource: str
    times: tuple[str, ...]
    values: tuple[float, ...]
    forecast: tuple[float, ...] = ()  # in the same steps


@dataclass(frozen=True)
class ForecastEvidence:
    """How forecasts did on history held out, one row a resource: median over partitions of mean absolute error over mean load."""

    resource: str
    partitions: int
    chosen: float
    last_value: float
    by_method: tuple[tuple[str, int, float], ...] = ()  # method, partitions that it won, its error over all of them


@dataclass(frozen=True)
class CalibrationEvidence:
    """All that the page of a calibration shows beyond the file; any part may be missing."""

    noise: tuple[NoiseEvidence, ...] = ()
    levels: tuple[LevelEvidence, ...] = ()
    capacity: tuple[CapacityEvidence, ...] = ()
    cpu: CpuEvidence | None = None
    topics: tuple[TopicEvidence, ...] = ()
    forecasts: tuple[ForecastEvidence, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BacktestEvidence:
    """What a backtest was: told on its page above the table of `goals.calibration.Tried`.

    Attributes
    ----------
    trained, held_out
        Spans as text, such as ``2026-10-01 to 2026-10-21``.
    searched
        Configurations tried, those that were given up early among them.
    timeline
        Of the default and the chosen one on the held-out span: (name, times, brokers outside the target range); more than `MOST_POINTS` are
        averaged.
    """

    cluster_id: str
    made_at: str
    trained: str = ""
    held_out: str = ""
    searched: int = 0
    method: str = ""  # grid, random, successive halving
    timeline: tuple[tuple[str, tuple[str, ...], tuple[float, ...]], ...] = ()
    notes: tuple[str, ...] = ()


def histogram(values: Iterable[float], low: float, high: float, bins: int = 60) -> Histogram:
    """Counts of values that are already in memory; Spark jobs count with a grouping instead."""
    counts = [0] * bins
    for value in values:
        if value == value:
            counts[min(max(int((value - low) / (high - low) * bins), 0), bins - 1)] += 1
    return Histogram(low, high, tuple(counts))


def averaged(times: Sequence[float], values: Sequence[float], most: int = MOST_POINTS) -> tuple[tuple[float, float], ...]:
    """Times and values, neighbours averaged where there are more than `most`."""
    each = -(-len(times) // most) or 1
    return tuple((times[i], sum(values[i : i + each]) / len(values[i : i + each])) for i in range(0, len(times), each))


def thinned(points: Iterable[tuple[float, float]], most: int = MOST_POINTS) -> tuple[tuple[float, float], ...]:
    """Evenly many of the points in their order, the first and last among them."""
    every = list(points)
    if len(every) <= most:
        return tuple(every)
    return tuple(every[round(i * (len(every) - 1) / (most - 1))] for i in range(most))
