"""What is measured of whole brokers: use over the horizons, capacity, and latencies.

Owned by `cluster_model.model`, which holds the lock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster_model.latency import LATENCIES, BrokerLatencies
from cluster_model.loads import BrokerUse
from cluster_model.loops import LARGEST, STALE
from cluster_model.observed import CAPACITY, GAUGES
from cluster_model.resources import MEASURED, RESOURCES
from cluster_model.snapshot import FloatArray, IntArray
from cluster_model.waiting import Piece
from cluster_model.windows import Column, Gauges, Horizon, HorizonName, Rates


class BrokerLoads:
    """Brokers by wire id."""

    def __init__(self, short: Horizon, long: Horizon) -> None:
        self._short, self._long = short, long
        self._row: dict[int, int] = {}
        self._free: list[int] = []
        self._use: dict[str, Column] = {}
        self._stated: dict[int, dict[str, float]] = {}
        self._reported: dict[int, dict[str, tuple[int, float]]] = {}  # resource -> time, value
        self.latencies = BrokerLatencies()

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._use.values())

    def remove(self, broker: int) -> None:
        self._reported.pop(broker, None)
        self.latencies.remove(broker)
        row = self._row.pop(broker, None)
        if row is not None:
            for column in self._use.values():
                column.forget(np.array([row], dtype=np.int32))
            self._free.append(row)

    def set_capacity(self, broker: int, resource: str, value: float) -> None:
        """State a capacity; it holds where none is reported, also when the broker goes and comes."""
        self._stated.setdefault(broker, {})[resource] = value

    def add(self, piece: Piece) -> tuple[int, int]:
        """Count a piece of scope broker or capacity; how many values were counted, and made no sense."""
        counted, senseless = 0, 0
        known = RESOURCES if piece.scope == CAPACITY else MEASURED
        for metric, value in zip(piece.metrics, piece.values[:, 0].tolist(), strict=True):
            is_latency = metric in LATENCIES and piece.scope != CAPACITY
            if (metric not in known and not is_latency) or value != value:
                continue  # what was not measured is no sample, and moves no other broker's windows on
            if not 0.0 <= value < LARGEST:
                senseless += 1
            elif is_latency:
                counted += self.latencies.add(piece.broker, metric, piece.time_ms, value)
            elif piece.scope == CAPACITY:
                self._report(piece.broker, metric, piece.time_ms, value)
                counted += 1
            else:
                column = self._column(metric)
                counted += column.add(self._rows(piece.broker), np.array([value]), piece.window_ms, piece.time_ms).counted
        return counted, senseless

    def _report(self, broker: int, resource: str, time_ms: int, capacity: float) -> None:
        reported = self._reported.setdefault(broker, {})
        if resource not in reported or reported[resource][0] <= time_ms:
            reported[resource] = (time_ms, capacity)

    def use(self, broker: int, horizon: HorizonName) -> dict[str, float]:
        row = self._row.get(broker)
        if row is None:
            return {}
        found = {}
        for metric, column in self._use.items():
            total = column.total(horizon)
            if row < len(total) and total[row, 1] != 0.0:
                found[metric] = float(total[row, 0]) / float(total[row, 1])
        return found

    def measured(self, resource: str, brokers: Sequence[int], horizon: HorizonName, oldest_ms: int) -> BrokerUse | None:
        """Use of one resource by the given brokers, in their order; None where none reported any."""
        column = self._use.get(resource)
        if column is None:
            return None
        values = np.full(len(brokers), np.nan)
        flags = np.zeros(len(brokers), dtype=np.uint8)
        for place, broker in enumerate(brokers):
            row = self._row.get(broker)
            found = self.use(broker, horizon).get(resource) if row is not None else None
            if row is not None and found is not None:
                values[place] = found
                flags[place] = STALE if column.times[row] < oldest_ms else 0
        return BrokerUse(values, flags)

    def capacities(self, brokers: Sequence[int]) -> dict[str, FloatArray]:
        """resource -> float64 [B] in the order of `brokers`, NaN where one has none."""
        tables = [
            self._stated.get(broker, {}) | {r: value for r, (_, value) in self._reported.get(broker, {}).items()}
            for broker in brokers
        ]
        named = {resource for table in tables for resource in table}
        return {
            resource: np.array([table.get(resource, np.nan) for table in tables])
            for resource in RESOURCES if resource in named
        }  # fmt: skip

    def _column(self, metric: str) -> Column:
        if metric not in self._use:
            self._use[metric] = Gauges() if metric in GAUGES else Rates(self._short, self._long)
        return self._use[metric]

    def _rows(self, broker: int) -> IntArray:
        row = self._row.get(broker)
        if row is None:
            row = self._row[broker] = self._free.pop() if self._free else len(self._row)
        for column in self._use.values():
            column.reserve(row + 1)
        return np.array([row], dtype=np.int32)
