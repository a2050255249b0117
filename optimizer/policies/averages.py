"""Averages over samples: short and long, and exponential. Values that are handed on, no state of their own.

Pure. Source: Apache Pulsar's bundle data and its smoothed broker load. Up to its number of samples the running average is a plain mean,
beyond it an exponential one with weight 1/N; no window slides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class RunningAverage:
    """Average of up to `most` samples; `default` stands in before the first."""

    most: int
    default: float
    value: float = 0.0
    samples: int = 0

    def with_sample(self, sample: float) -> RunningAverage:
        """The average with one sample more."""
        n = min(self.samples + 1, self.most)
        return replace(self, value=((n - 1) * self.value + sample) / n, samples=n)

    @property
    def current(self) -> float:
        """The average, or the default."""
        return self.value if self.samples else self.default


@dataclass(frozen=True, slots=True)
class Smoothed:
    """Exponential average: `history` (0..1) of the old and the rest of the new; the first sample as it is."""

    history: float
    value: float | None = None

    def with_sample(self, sample: float) -> Smoothed:
        """The average with one sample more."""
        return replace(self, value=sample if self.value is None else self.history * self.value + (1.0 - self.history) * sample)
