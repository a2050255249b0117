"""A cheap stand-in for replays, and the space that a search of a backtest goes through. Used by the tests of the search in this folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goals.document import load_goals
from spark.backtest.configuration import Configuration
from spark.backtest.outcome import Day, Outcome
from spark.backtest.pareto import Rule
from spark.backtest.search import Space

DEFAULT = load_goals(None, "default")
SPACE = Space(
    DEFAULT, {"usage_distribution-network_in": 0.3, "usage_distribution-cpu": 0.2}, (3600.0, 14400.0), (1800.0, 86_400.0)
)
COST = Rule("cost")


class Fake:
    """A cheap stand-in for replays: wider bounds move less and leave more outside. Remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, tuple[int, ...], int]] = []

    def __call__(
        self, configurations: Sequence[Configuration], stretches: Sequence[int], phases: int
    ) -> Sequence[tuple[Outcome, ...]]:
        self.asked.append((len(configurations), tuple(stretches), phases))
        return [tuple(self.replayed(c, phases) for _ in stretches) for c in configurations]

    def replayed(self, c: Configuration, phases: int) -> Outcome:
        one = self.outcome(c)
        return replace(one, by_day=tuple(Day(0, one.out_of_band_hours, one.bytes_moved, 0, phase) for phase in range(phases)))

    def outcome(self, c: Configuration) -> Outcome:
        wide = sum(c.bounds.values())
        return Outcome(out_of_band_hours=wide, bytes_moved=1e9 / wide / c.cadence / c.horizon)
