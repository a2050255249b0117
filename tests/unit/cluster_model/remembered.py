"""Windows in plain Python, obviously right: what `cluster_model.windows` must equal. Used by tests of the live model."""

from __future__ import annotations

from collections.abc import Hashable

from cluster_model.windows import Horizon


class Remembered:
    """One horizon in plain Python: every sample of every window by its number, and what was known last."""

    def __init__(self, horizon: Horizon) -> None:
        self.horizon = horizon
        self.newest: int | None = None
        self.windows: dict[int, dict[Hashable, list[tuple[float, float]]]] = {}
        self.last: dict[Hashable, float] = {}
        self.times: dict[Hashable, int] = {}

    def advance(self, time_ms: int) -> None:
        number = time_ms // self.horizon.window_ms
        if self.newest is None or number > self.newest:
            self.newest = number
            for gone in sorted(n for n in self.windows if n <= number - self.horizon.windows):
                for at, samples in self.windows.pop(gone).items():
                    self.last[at] = mean(samples)

    def add(self, time_ms: int, slot: Hashable, value: float, weight: int) -> None:
        self.advance(time_ms)
        number = time_ms // self.horizon.window_ms
        assert self.newest is not None
        if number > self.newest - self.horizon.windows:
            held = min(max(weight, 1), self.horizon.span_ms)
            self.windows.setdefault(number, {}).setdefault(slot, []).append((value, held))
        elif time_ms >= self.times.get(slot, -1) and not self.samples(slot):
            self.last[slot] = value
        self.times[slot] = max(time_ms, self.times.get(slot, -1))

    def samples(self, slot: Hashable) -> list[tuple[float, float]]:
        return [sample for window in self.windows.values() for sample in window.get(slot, [])]

    def mean(self, slot: Hashable) -> float | None:
        samples = self.samples(slot)
        return mean(samples) if samples else self.last.get(slot)

    def forget(self, slot: Hashable) -> None:
        for window in self.windows.values():
            window.pop(slot, None)
        self.last.pop(slot, None)
        self.times.pop(slot, None)


def mean(samples: list[tuple[float, float]]) -> float:
    return sum(value * weight for value, weight in samples) / sum(weight for _, weight in samples)
