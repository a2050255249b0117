"""Linear scales and round tick values for drawings. Called by the charts and curves of the HTML report."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low`..`high` to pixels `start`..`end`; values outside are clamped."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high <= self.low:
            return self.start
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, most: int = 5, *, whole: bool = False) -> list[float]:
    """At most `most` + 1 round values within `low`..`high`; of things that are counted, `whole` ones."""
    if high <= low:
        return [low]
    raw = (high - low) / most
    magnitude = 10.0 ** floor(log10(raw))
    step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= raw * (1 - 1e-9))
    step = max(step, 1.0) if whole else step
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]
