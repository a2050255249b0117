"""How wide a band must be so that noise alone seldom leaves it: an empirical quantile, or the tail beyond what was seen.

Called by the calibration job with the histograms that `spark.methods.noise` counted. Plain numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np

from spark.methods.bins import Histogram, upper

LEAST_SEEN = 2_000  # broker windows, that anything can be said of the tail
ENOUGH_BEYOND = 20  # seen beyond a quantile, that it needs no extrapolation
TAIL_SHARE = 0.005  # means of few samples with long tails look normal further in
LEAST_TAIL = 100
SHAPES = (-0.1, 0.5)  # of the generalized Pareto distribution: short-tailed to very long
WEEK = 604_800.0
LEAST_BOUND = 0.02  # a narrower band asks for moves that no one would notice


@dataclass(frozen=True)
class Tail:
    """The largest values: a generalized Pareto distribution above `threshold`, which `share` of all values exceed."""

    threshold: float
    share: float
    shape: float
    scale: float

    def quantile(self, chance: float) -> float:
        """The value exceeded with this probability, at most `share`."""
        ratio = self.share / chance
        if abs(self.shape) < 1e-9:
            return self.threshold + self.scale * log(ratio)
        return self.threshold + self.scale / self.shape * float(ratio**self.shape - 1)

    def beyond(self, value: float) -> float:
        """Probability of a value above `value`, which is at least the threshold."""
        excess = (value - self.threshold) / self.scale
        if abs(self.shape) < 1e-9:
            return self.share * exp(-excess)
        inner = 1 + self.shape * excess
        return self.share * float(inner ** (-1 / self.shape)) if inner > 0 else 0.0


def chance_of(alarms_per_week: float, brokers: int, window_seconds: float) -> float:
    """Probability that one broker may be outside its target range in one window, so that the cluster has so many alarms a week."""
    return min(alarms_per_week / (brokers * WEEK / window_seconds), 1.0)


def tail_of(seen: Histogram) -> Tail:
    """The tail of a histogram, by probability-weighted moments of the largest half percent.

    *Source*: Hosking and Wallis, Parameter and Quantile Estimation for the Generalized Pareto Distribution, 1987. Chosen over
    maximum likelihood because it always has an answer; the shape is kept within `SHAPES`.
    """
    total = seen.total
    wanted = min(max(round(total * TAIL_SHARE), LEAST_TAIL), total)
    through = np.cumsum(seen.counts[::-1])[::-1]  # in this bin and above
    first = int(np.flatnonzero(through >= wanted)[-1])
    counts = seen.counts[first:].astype(np.float64)
    ends = upper(np.arange(first - 1, first + len(counts)))
    threshold = float(ends[0])
    excess = (ends[:-1] + ends[1:]) / 2 - threshold
    count = counts.sum()
    above = count - np.cumsum(counts) + counts / 2  # rank from the top, at the middle of each bin
    a0 = float((counts * excess).sum() / count)
    a1 = float((counts * excess * above / count).sum() / count)
    shape = float(np.clip(2 - a0 / (a0 - 2 * a1) if a0 > 2 * a1 else SHAPES[0], *SHAPES))
    return Tail(threshold, float(count / total), shape, a0 * (1 - shape))


@dataclass(frozen=True)
class Band:
    """A half width, the probability that noise leaves it in one window, and what says so.

    Attributes
    ----------
    seen
        Deviations that a detector would have compared with the band.
    tail
        What stands for those beyond what was seen; None where enough were seen.
    exact
        The half width before it was rounded up, or widened to `LEAST_BOUND`.
    """

    bound: float
    exact: float
    seen: Histogram
    tail: Tail | None

    def chance(self, width: float | None = None) -> float:
        """Probability that noise leaves a band of this half width (None: `bound`) in one window of one broker."""
        width = self.bound if width is None else width
        rare = self.tail is not None and width >= self.tail.threshold
        return self.tail.beyond(width) if rare and self.tail is not None else self.seen.beyond(width)


def band(seen: Histogram, chance: float) -> Band | None:
    """The half width that noise leaves with probability `chance` at most; None: too few windows to say.

    Parameters
    ----------
    seen
        Deviations that a detector would have compared with the band.
    chance
        Of one broker in one window.
    """
    total = seen.total
    if total < LEAST_SEEN:
        return None
    tail = None if chance * total >= ENOUGH_BEYOND else tail_of(seen)
    exact = seen.quantile(1 - chance) if tail is None else tail.quantile(min(chance, tail.share))
    return Band(max(rounded_up(exact), LEAST_BOUND), exact, seen, tail)


def rounded_up(value: float) -> float:
    """Two significant digits, never less."""
    if value <= 0:
        return 0.0
    step = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(f"{np.ceil(value / step - 1e-9) * step:.2g}")


def sigma(seen: Histogram, to_sigma: float, brokers: int) -> float:
    """Standard deviation of a broker's own noise, by the median of |deviation|.

    A broker is part of the mean that it is compared with, so that its deviation shows ``sqrt(1 - 1/brokers)`` of its noise.
    """
    return seen.quantile(0.5) * to_sigma / float(np.sqrt(1 - 1 / brokers)) if brokers > 1 else float("nan")
