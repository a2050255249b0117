"""What a band is good for: hours out of range that levelling at a horizon removes, how often it acts for that, and how much it moves.

Called by the calibration job with hourly shares of brokers in one resource. Plain numpy; a model of levelling, not of the planner: each
look levels the brokers that the mean of the last horizon shows outside of the band, and they keep what they then have until they are
outside again. The backtest replays the real planner; this says, for each resource by itself, whether there is anything to win.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from spark.methods.bins import FloatArray

BOUNDS = (0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.5)
HORIZONS = (1, 6, 24)  # hours
REFERENCE = 0.10  # the band that hours are counted by, whatever band is tried: the default of a goal
CAP = 0.5  # no wider bound is recommended: beyond it a broker may stand idle
WORTH = 0.05  # share of the hours out of range that levelling must be worth, else it cannot be levelled at this horizon
PRICE = 24.0  # broker-hours out of range that moving as much as a mean broker carries must spare: one broker in its range for a day
ENOUGH = 0.95  # of what the best bound is worth: all bounds that are worth so much are as good
WEEK = 168.0


@dataclass(frozen=True)
class Row:
    """A bound at a horizon (hours), per week: looks that act, broker-hours out of `REFERENCE`, and what is moved, in mean broker loads."""

    bound: float
    horizon: int
    acts: float
    out: float
    moved: float


@dataclass(frozen=True)
class Benefit:
    """`out`: broker-hours a week outside of `REFERENCE` as the history has it. `least`: with foresight, by horizon: levelled for what comes
    next. `rows`: what levelling by the past gives."""

    out: float
    least: dict[int, float]
    rows: tuple[Row, ...]

    def at(self, horizon: int) -> list[Row]:
        """Rows of a horizon, the narrowest bound first."""
        return [row for row in self.rows if row.horizon == horizon]

    def nearest(self, seconds: float) -> int:
        """The horizon that is nearest to what the service plans on, by ratio."""
        known = sorted({row.horizon for row in self.rows})
        return min(known, key=lambda h: (abs(np.log(h * 3600.0 / seconds)), h))

    def worth(self, row: Row) -> float:
        """Broker-hours a week that a row removes, less `PRICE` for what it moves."""
        return self.out - row.out - PRICE * row.moved

    def removed(self, row: Row) -> float:
        """Share of the hours out of range that a row removes."""
        return 1.0 - row.out / self.out if self.out > 0.0 else 0.0

    def good(self, horizon: int) -> tuple[Row, Row] | None:
        """The narrowest and the widest of the bounds that are about as good as the best; None where none is worth `WORTH` of the hours."""
        rows = self.at(horizon)
        most = max((self.worth(row) for row in rows), default=0.0)
        if self.out <= 0.0 or most < WORTH * self.out:
            return None
        fine = [row for row in rows if self.worth(row) >= ENOUGH * most]
        return fine[0], fine[-1]


def benefit(share: FloatArray, bounds: Iterable[float] = BOUNDS, horizons: Iterable[int] = HORIZONS) -> Benefit | None:
    """The table of a resource.

    Parameters
    ----------
    share
        float64 [B, T], load of each broker in each hour over its part of the mean; NaN: not known, and then as before.
    bounds, horizons
        Half widths to try, shares; hours that loads are averaged over, which is also the time between looks.

    Returns
    -------
    Benefit, or None with fewer than two brokers, or a history shorter than three of the longest horizon.

    Notes
    -----
    O(brokers x hours x bounds x horizons).
    """
    horizons, widths = tuple(horizons), np.array(tuple(bounds))
    filled = _filled(share)
    brokers, hours = filled.shape
    if brokers < 2 or hours < 3 * max(horizons):
        return None
    weeks = (hours - max(horizons)) / WEEK
    scored = slice(max(horizons), hours)
    as_it_was = float((np.abs(filled[:, scored] - 1.0) > REFERENCE).sum()) / weeks
    rows: list[Row] = []
    least = {}
    for horizon in horizons:
        acts, out, moved, foreseen = _levelled(filled, widths, horizon, max(horizons))
        least[horizon] = foreseen / weeks
        rows += [
            Row(float(b), horizon, float(a) / weeks, float(o) / weeks, float(m) / weeks)
            for b, a, o, m in zip(widths, acts, out, moved, strict=True)
        ]
    return Benefit(as_it_was, least, tuple(rows))


def _levelled(share: FloatArray, widths: FloatArray, horizon: int, begin: int) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """For each width [K]: looks that act, broker-hours out, mean broker loads moved; and hours out with foresight.

    From hour `begin` on; the first look levels without being counted.
    """
    brokers, hours = share.shape
    acts, out, moved, foreseen = np.zeros(len(widths)), np.zeros(len(widths)), np.zeros(len(widths)), 0.0
    level = np.broadcast_to(share[:, begin - horizon : begin].mean(axis=1), (len(widths), brokers)).copy()
    for now in range(begin, hours, horizon):
        seen = share[:, now - horizon : now].mean(axis=1)
        off = _even(seen / level)
        outside = np.abs(off - 1.0) > widths[:, None]
        acts += outside.any(axis=1)
        moved += np.where(outside, np.abs(off - 1.0), 0.0).sum(axis=1) / 2
        level = np.where(outside, seen, level)
        coming = share[:, now : now + horizon]
        then = coming[None] / level[:, :, None]
        out += (np.abs(then / then.mean(axis=1, keepdims=True) - 1.0) > REFERENCE).sum(axis=(1, 2))
        best = coming / np.maximum(coming.mean(axis=1, keepdims=True), 1e-9)
        foreseen += float((np.abs(best / best.mean(axis=0) - 1.0) > REFERENCE).sum())
    return acts, out, moved, foreseen


def _even(values: FloatArray) -> FloatArray:
    """Over the mean of the brokers, the last axis."""
    found: FloatArray = values / values.mean(axis=-1, keepdims=True)
    return found


def _filled(share: FloatArray) -> FloatArray:
    """Without brokers that were not measured for half of the time; a gap is as before it, at the start as after; never 0."""
    kept = share[np.isfinite(share).mean(axis=1) >= 0.5]
    if not len(kept):
        return np.ones((0, share.shape[1]))
    known = np.isfinite(kept)
    last = np.maximum.accumulate(np.where(known, np.arange(kept.shape[1]), -1), axis=1)
    first = np.argmax(known, axis=1)[:, None]
    found: FloatArray = np.take_along_axis(kept, np.where(last >= 0, last, first), axis=1)
    return np.maximum(found, 1e-6)
