"""What producers bring: an average rate per partition, a daily wave, and noise that changes slowly."""

from __future__ import annotations

import math

import numpy as np

from cluster_model.snapshot import FloatArray

DAY_S = 86_400.0


class Traffic:
    """Bytes offered per step.

    Parameters
    ----------
    seed
        Equal seeds and equal steps give equal traffic.
    noise
        Natural deviation (standard deviation of the logarithm) of each partition around its average; 0 for
        none.
    memory_s
        How long a deviation lasts.
    wave
        Share of the average by which the daily wave rises and falls.
    """

    def __init__(self, seed: int, *, noise: float = 0.05, memory_s: float = 60.0, wave: float = 0.0) -> None:
        self._random = np.random.default_rng(seed)
        self._noise, self._memory_s, self._wave = noise, memory_s, wave
        self._deviation: FloatArray = np.empty(0)

    def offer(self, average: FloatArray, now_s: float, seconds: float) -> FloatArray:
        """float64 [P] bytes in the `seconds` that end at `now_s`, for average rates, float64 [P] bytes/s."""
        missing = len(average) - len(self._deviation)
        if missing > 0:
            self._deviation = np.concatenate([self._deviation, self._random.standard_normal(missing)])
        if self._noise > 0.0:
            keep = math.exp(-seconds / self._memory_s)
            fresh = self._random.standard_normal(len(average))
            self._deviation = keep * self._deviation + math.sqrt(1.0 - keep * keep) * fresh
        level = 1.0 + self._wave * math.sin(2.0 * math.pi * now_s / DAY_S)
        factor = np.exp(self._noise * self._deviation - 0.5 * self._noise**2)
        return np.asarray(average * factor * (level * seconds), dtype=np.float64)
