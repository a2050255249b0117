"""Curves through a measure over throughput: a queue, a knee, a straight or an exponential rise.

Called by `spark.methods.capacity`, which says what follows from which of them fits. Plain numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

BINS = 30
LEAST_IN_BIN = 6
BLOCKS = 20  # stretches of time that are resampled as wholes, since neighbouring windows are alike
SHARPNESS = (1.0, 2.0, 4.0, 8.0)  # of the queue: 1 is one server, more are many
CEILING = 0.1  # logarithm of a measure, below its largest
HUBER = 0.2  # logarithms beyond which a bin counts less
ROUND = 0.03  # of the top: how round a rounded knee is


@dataclass(frozen=True)
class Bins:
    """Median throughput [K], weight [K], and per block of time and bin the median of the measure's logarithm and a count [S, K]."""

    at: FloatArray
    weight: FloatArray
    median: FloatArray
    count: FloatArray

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray) -> Bins:
        """Equal bins from the 1st percentile to the largest; those with few windows are left out."""
        low, high = float(np.quantile(x, 0.01)), float(x.max())
        bins = np.clip(((x - low) / (high - low) * BINS).astype(np.int64), 0, BINS - 1)
        block = np.arange(len(x)) * BLOCKS // len(x)
        counts = np.bincount(bins, minlength=BINS)
        kept = np.flatnonzero(counts >= LEAST_IN_BIN)
        at = np.array([np.median(x[bins == k]) for k in kept])
        median, count = np.zeros((BLOCKS, len(kept))), np.zeros((BLOCKS, len(kept)))
        for place, k in enumerate(kept):
            inside = bins == k
            for s in np.unique(block[inside]):
                part = y[inside & (block == s)]
                median[s, place], count[s, place] = np.median(part), len(part)
        return cls(at, np.sqrt(counts[kept].astype(np.float64)), median, count)

    def level(self, times: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """float64 [R, K] of each bin over blocks taken so many times [R, S], and whether any of these saw it; else over all."""
        total = times @ self.count
        whole = (self.count * self.median).sum(axis=0) / self.count.sum(axis=0)
        found: FloatArray = np.where(total > 0, times @ (self.count * self.median) / np.maximum(total, 1), whole)
        return found, total > 0


def queue(at: FloatArray, level: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Limit, q, base and slope [R] of the queue that fits each of `level` (logarithms) [R, K] best."""
    limits = at[-1] * (1.0 + np.geomspace(2e-3, 2.0, 48))
    choice = np.array([(limit, q) for limit in limits for q in SHARPNESS])
    u = at[None, :] / choice[:, :1]
    shape = u ** choice[:, 1:] / (1.0 - u)  # [G, K]
    y = np.exp(level)
    best = np.full(len(level), np.inf)
    found = np.zeros((4, len(level)))
    for row in range(len(level)):
        base, slope, cost = two_terms(shape, y[row], weight[row], ceiling(level[row]))
        pick = int(np.argmin(cost))
        best[row] = cost[pick]
        found[:, row] = choice[pick, 0], choice[pick, 1], base[pick], slope[pick]
    return found[0], found[1], found[2], found[3]


def ceiling(level: FloatArray) -> npt.NDArray[np.bool_]:
    """bool [K], the bins at the top of the measure, which a queue may rise above: at its limit requests wait for seconds, time out or are
    throttled, and the mean of a window has calmer moments in it, so what is measured there stays below the curve."""
    return np.asarray(level >= level.max() - CEILING)


def two_terms(
    shape: FloatArray, y: FloatArray, weight: FloatArray, open_above: npt.NDArray[np.bool_] | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Base and slope [G], not negative, of ``base + slope * shape`` [G, K], and the cost: mean of Huber's loss of logarithms, which bins
    that are `open_above` [K] have only where the curve is below them."""
    open_above = np.zeros(len(y), np.bool_) if open_above is None else open_above
    robust = np.ones_like(shape)
    base, slope = np.zeros(len(shape)), np.zeros(len(shape))
    rest = np.zeros_like(shape)
    for _ in range(3):
        w = robust * (weight / y) ** 2
        s, sx, sxx = w.sum(1), (w * shape).sum(1), (w * shape**2).sum(1)
        sy, sxy = (w * y).sum(1), (w * shape * y).sum(1)
        det = np.maximum(s * sxx - sx * sx, 1e-300)
        slope = np.maximum((s * sxy - sx * sy) / det, 0.0)
        base = np.maximum((sy - slope * sx) / np.maximum(s, 1e-300), 1e-3 * y.min())
        rest = np.log(y) - np.log(base[:, None] + slope[:, None] * shape)
        rest = np.where(open_above, np.maximum(rest, 0.0), rest)
        robust = np.where(open_above & (rest <= 0.0), 0.0, np.minimum(1.0, HUBER / np.maximum(np.abs(rest), 1e-12)))
    size = np.abs(rest)
    loss = np.where(size <= HUBER, size**2 / 2, HUBER * (size - HUBER / 2))
    return base, slope, (loss * weight).sum(1) / weight.sum()


def curve_of(at: FloatArray, limit: float, q: float, base: float, slope: float) -> FloatArray:
    u = at / limit
    found: FloatArray = base + slope * u**q / (1.0 - u)
    return found


def straight(at: FloatArray, level: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithms [K] of an exponential and of a straight line through all bins."""
    slope, base = np.polyfit(at, level, 1, w=weight)
    y = np.exp(level)
    rise, start = np.polyfit(at, y, 1, w=weight / y)
    return base + slope * at, np.log(np.maximum(start + rise * at, 1e-3 * y.min()))


def knee_error(grid: Bins, level: FloatArray) -> float:
    """What is left of `level` [K] (logarithms) after a straight rise beyond the best of many knees, sharp or rounded; as `rms`."""
    at, top = grid.at, grid.at[-1]
    beyond = (at[None, :] - np.linspace(at[0] + 0.3 * (top - at[0]), 0.985 * top, 40)[:, None]) / top
    shape = np.concatenate([np.maximum(beyond, 0.0), ROUND * np.log1p(np.exp(np.clip(beyond / ROUND, -50.0, 50.0)))])
    base, slope, cost = two_terms(shape, np.exp(level), grid.weight)
    best = int(np.argmin(cost))
    return rms(level - np.log(base[best] + slope[best] * shape[best]), grid.weight)


def left(level: FloatArray, curve: FloatArray, weight: FloatArray) -> float:
    """Root mean square of what a curve leaves of `level` (logarithms), which it may rise above at its `ceiling`."""
    rest = level - curve
    return rms(np.where(ceiling(level), np.maximum(rest, 0.0), rest), weight)


def rms(rest: FloatArray, weight: FloatArray) -> float:
    return float(np.sqrt(np.average(rest**2, weights=weight)))
