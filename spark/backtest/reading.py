"""From a history to packed series, with what was seen on the way: samples that count, and whose word on capacities holds.

Called by ``trimtab backtest``. Samples are averaged and counted in the one grouping that calibration uses (`spark.blocks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from cluster_model.errors import InputError, Problem
from cluster_model.resources import DERIVED_FROM, MEASURED, RESOURCES
from goals.model import GoalSet
from spark.backtest.configuration import levelled
from spark.backtest.packing import CAPACITY, Cut, packed
from spark.blocks import counted, unpacked
from spark.history import known
from spark.history.sift import REASON, reason
from spark.schemas import Samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOUR, DAY = 3_600, 86_400
Given = Mapping[str, Mapping[int, float]]
"""Resource -> broker -> what it can carry, as a calibration has it."""


@dataclass(frozen=True)
class Read:
    """Packed series (`packing.packed`), kept while the block runs, how they are cut, whose history it is, and which measured resources of
    partitions are known."""

    series: DataFrame
    cut: Cut
    cluster_id: str
    resources: frozenset[str]


@contextmanager
def read_series(
    samples: Samples, window: float, stretch: float, lead: float, name: str, now: datetime, once: bool, tell: Callable[[str], None]
) -> Iterator[Read]:
    """The series of a history.

    Parameters
    ----------
    window, stretch, lead
        Seconds, as in `Cut`.
    once
        A sample that is there twice counts once; else it weighs twice in its window's mean.

    Raises
    ------
    InputError
        No sample counts.
    """
    with counted(samples.frame.withColumn(REASON, reason(F.lit(now))), window, once) as (blocks, seen):
        tell(seen.told)
        if seen.begin_ms is None:
            raise InputError(name, [Problem("", f"expected samples that count, found none: {seen.told}")])
        for sentence in known.told(seen.metrics):
            tell(sentence)
        cut = Cut(_begin(seen.begin_ms, stretch), window, stretch, lead)
        series = packed(unpacked(blocks, window), cut).cache()
        try:
            yield Read(series, cut, seen.cluster_id, frozenset(known.of_partitions(seen.metrics)))
        finally:
            series.unpersist()


def _begin(first_ms: int, stretch: float) -> int:
    """Epoch seconds at which the first sample's day starts; its hour, where stretches are shorter than a day."""
    whole = DAY if stretch >= DAY else HOUR
    return first_ms // 1000 // whole * whole


def unscored(goals: GoalSet, resources: frozenset[str]) -> str:
    """The goals that a backtest cannot score, since their resources were not measured, as a sentence; empty where there is none."""
    named = [
        f"{goal.name} ({base})" for goal in levelled(goals)
        if RESOURCES[goal.resource] != "count" and (base := DERIVED_FROM.get(goal.resource, goal.resource)) not in resources
    ]  # fmt: skip
    told = "goals neither planned nor scored, since the history has no samples of their resource by partition"
    return f"{told}: {', '.join(named)}" if named else ""


def capacities_told(series: DataFrame, given: Given) -> str:
    """Whose capacities are used, resource by resource: what brokers report in the history comes before a calibration."""
    about = series.where(F.col("topic").isNull() & F.col("metric").startswith(CAPACITY) & (F.col("mean")[0] > 0))
    reported: dict[str, set[int]] = {}
    for row in about.select("broker", "metric").distinct().collect():  # brokers x resources
        reported.setdefault(row.metric.removeprefix(CAPACITY), set()).add(row.broker)
    parts = []
    for resource in MEASURED:
        own = reported.get(resource, set())
        estimated = set(given.get(resource, {})) - own
        words = [f"as {_brokers(own)} in the history"] if own else []
        words += [f"from the calibration for {len(estimated)}"] if estimated else []
        if words:
            parts.append(f"{resource} {' and '.join(words)}")
    if not parts:
        return "capacities: none known, so utilization is load over the mean load of the brokers"
    return f"capacities: {', '.join(parts)}; none known for other resources"


def _brokers(found: set[int]) -> str:
    return f"{len(found)} broker reports" if len(found) == 1 else f"{len(found)} brokers report"
