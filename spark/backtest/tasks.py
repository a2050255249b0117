"""Replays as Spark tasks: each has one stretch of history and a share of the configurations.

A stretch's packed rows travel to as many tasks as there are shares, once for each, whatever the number of configurations; only
outcomes come back. Called by `spark.backtest.run`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cluster_model.snapshot import Storage
from goals.model import GoalSet
from kernels.compiled import compile_all
from optimizer.options import PlanOptions
from spark.backtest.configuration import Configuration
from spark.backtest.outcome import Day, Outcome
from spark.backtest.packing import Cut, unpacked
from spark.backtest.replay import RESTARTS, replay
from spark.backtest.stretch import Stretch

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0  # multiples of it, without their whole part, are spread evenly
TURNS = 2  # tasks for each core, so that a slow plan does not leave the other cores idle and progress is seen
COUNTS = tuple(f.name for f in fields(Outcome) if f.type == "int")
AMOUNTS = tuple(f.name for f in fields(Outcome) if f.type == "float")
SCHEMA = ", ".join([
    "configuration int", "stretch int", *(f"{n} double" for n in AMOUNTS), *(f"{n} bigint" for n in COUNTS),
    "by_goal map<string, double>", "course array<struct<at: double, outside: double>>",
    "by_day array<struct<day: int, hours: double, bytes_moved: double, replica_moves: bigint, phase: int>>", "cpu double",
])  # fmt: skip


@dataclass(frozen=True)
class Job:
    """What is the same in all tasks; sent to them pickled. `throttle` is bytes/s into, and out of, each broker while copying; `racks` are
    by broker, one that is not named is a rack of its own."""

    cut: Cut
    cluster_id: str
    goals: GoalSet
    reference: GoalSet
    capacity: Mapping[str, Mapping[int, float]]
    storage: Storage = "local"
    options: PlanOptions = field(default_factory=lambda: PlanOptions(restarts=RESTARTS))
    throttle: float = math.inf
    racks: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Replayed:
    """Outcomes of configurations in the order that they were given, one for each stretch, and the CPU seconds that they took together."""

    outcomes: tuple[tuple[Outcome, ...], ...]
    cpu: float


def replayed(
    spark: SparkSession,
    series: DataFrame,
    job: Job,
    configurations: Sequence[Configuration],
    stretches: Sequence[int],
    phases: int = 1,
    done: Accumulator[int] | None = None,
) -> Replayed:
    """What came of every configuration on each of the given stretches, the mean of so many `phases` of its looks.

    `done` is added to whenever a task is through with its replays, by their number; it is for telling how far this is.
    """
    cores = spark.sparkContext.defaultParallelism
    shares = max(1, min(len(configurations), math.ceil(TURNS * cores / len(stretches))))
    work = [
        (stretch, share, n)
        for n, (stretch, share) in enumerate((s, k) for s in stretches for k in range(shares))
    ]
    keys = _keys(spark, len(work))
    columns = {"stretch": [s for s, _, _ in work], "share": [k for _, k, _ in work], "task": [keys[n] for *_, n in work]}
    plan = spark.createDataFrame(pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()}))
    rows = series.join(F.broadcast(plan), "stretch").repartition(len(work), "task")
    tried = tuple(configurations)

    def task(group: pa.Table) -> pa.Table:  # Spark reads the types, which `functools.partial` hides from it
        found = outcomes_of(group, job, tried, shares, phases)
        if done is not None:
            done.add(len(found))
        return found

    each = rows.groupBy("task").applyInArrow(task, SCHEMA)
    found = each.collect()  # configurations x stretches rows
    outcomes: list[list[Outcome]] = [[] for _ in configurations]
    for row in sorted(found, key=lambda r: (r.configuration, r.stretch)):
        values = {name: row[name] for name in (*AMOUNTS, *COUNTS)}
        course = tuple((point.at, point.outside) for point in row.course)
        days = tuple(Day(**day.asDict()) for day in row.by_day)
        outcomes[row.configuration].append(Outcome(**values, by_goal=dict(row.by_goal), course=course, by_day=days))
    return Replayed(tuple(map(tuple, outcomes)), sum(row.cpu for row in found))


def outcomes_of(rows: pa.Table, job: Job, configurations: Sequence[Configuration], shares: int, phases: int = 1) -> pa.Table:
    """What one task does: its share of the configurations on its stretch, one row each."""
    compile_all()  # hundreds of plans
    stretch = unpacked(
        rows.drop_columns(["share", "task"]), job.cut, job.cluster_id, job.capacity, job.storage, job.racks
    )
    stretch = replace(stretch, throttle=job.throttle)
    share, number = rows["share"][0].as_py(), rows["stretch"][0].as_py()
    return pa.Table.from_pylist(
        [
            {"configuration": n, "stretch": number, **scored(stretch, job, configurations[n], phases, n)}
            for n in range(share, len(configurations), shares)
        ],
        schema=ARROW,
    )


def scored(stretch: Stretch, job: Job, configuration: Configuration, phases: int, nth: int) -> dict[str, Any]:
    """The row of one configuration on one stretch."""
    begun = time.process_time()
    came = came_of(stretch, job, configuration, phases, nth)
    row = {name: getattr(came, name) for name in (*AMOUNTS, *COUNTS)}
    course = [{"at": at, "outside": outside} for at, outside in came.course]
    days = [asdict(day) for day in came.by_day]
    return row | {"by_goal": list(came.by_goal.items()), "course": course, "by_day": days, "cpu": time.process_time() - begun}


def came_of(stretch: Stretch, job: Job, configuration: Configuration, phases: int, nth: int) -> Outcome:
    """The mean of as many phases; of fewer where more would be the same looks again, of one where nothing is planned. Of a single one the
    phase is another for each configuration (the `nth`): those that look at the same times share the luck of what they see."""
    looks = 1 if configuration.mode == "never" else max(1, round(configuration.cadence / stretch.window))
    begin = nth * GOLDEN % 1.0 if phases == 1 else 0.0
    phases = min(phases, looks)
    return Outcome.mean([
        replay(
            stretch, job.goals, job.reference, configuration, begin=job.cut.lead_windows, phase=begin + n / phases, options=job.options,
        )
        for n in range(phases)
    ])  # fmt: skip


ARROW = pa.schema([
    ("configuration", pa.int32()), ("stretch", pa.int32()), *((n, pa.float64()) for n in AMOUNTS),
    *((n, pa.int64()) for n in COUNTS), ("by_goal", pa.map_(pa.string(), pa.float64())),
    ("course", pa.list_(pa.struct([("at", pa.float64()), ("outside", pa.float64())]))),
    ("by_day", pa.list_(pa.struct([
        ("day", pa.int32()), ("hours", pa.float64()), ("bytes_moved", pa.float64()), ("replica_moves", pa.int64()), ("phase", pa.int32()),
    ]))), ("cpu", pa.float64()),
])  # fmt: skip


def _keys(spark: SparkSession, tasks: int) -> list[int]:
    """One number for each task, such that Spark's hash puts each into a partition of its own. Worked out while planning: no job."""
    numbers = spark.createDataFrame(pa.table({"id": pa.array(np.arange(64 * tasks + 64), pa.int32())}))
    found: dict[int, int] = {}
    for row in numbers.select("id", F.pmod(F.hash("id"), F.lit(tasks)).alias("place")).collect():
        found.setdefault(row.place, row.id)
    return [found.get(n, n) for n in range(tasks)]
