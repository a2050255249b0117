"""What days of all brokers say: noise of each resource apart from imbalance, and which resources go together.

Called by `spark.jobs.calibrate`. One group a day: brokers x windows x resources, which fit into a worker, go in; what comes back are
counts, added up over the days before they come to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from cluster_model.resources import MEASURED
from spark.jobs.hours import Capacity
from spark.jobs.resources import Detection
from spark.methods import correlation, noise
from spark.methods.profile import Profile
from spark.schemas import BrokerWindows

TOGETHER = "together"  # kind of the rows of pairs, whose resource is both names
FOUND = f"{noise.COUNTED}, total double"


@dataclass(frozen=True)
class Days:
    """Rows of `noise.COUNTED`, at most a few thousand bins a resource; and what `correlation.covariances` adds up."""

    counts: list[Any]
    together: dict[correlation.Pair, tuple[float, int]]


def days_of(windows: BrokerWindows, detection: Detection, capacity: Capacity, profiles: Mapping[str, Profile]) -> Days:
    """What days say. One grouping of the windows."""
    loads = windows.frame.where(F.col("resource").isin(*MEASURED))
    days = loads.select("resource", "broker", "start", "mean", F.to_date("start").alias("day")).groupBy("day")
    added = days.applyInArrow(counter(detection, capacity, profiles), FOUND).groupBy("resource", "kind", "level", "bin")
    rows = added.agg(F.sum("count").alias("count"), F.sum("total").alias("total")).collect()
    together = {tuple(row["resource"].split(",")): (row["total"], row["count"]) for row in rows if row["kind"] == TOGETHER}
    pairs = {(a, b): together[a, b] for a in MEASURED for b in MEASURED if (a, b) in together}
    return Days([row for row in rows if row["kind"] != TOGETHER], pairs)


def counter(detection: Detection, capacity: Capacity, profiles: Mapping[str, Profile]) -> Callable[[pa.Table], pa.Table]:
    """`counted` as ``applyInArrow`` takes it."""

    def of_group(group: pa.Table) -> pa.Table:
        return counted(group, detection, capacity, profiles)

    return of_group


def counted(group: pa.Table, detection: Detection, capacity: Capacity, profiles: Mapping[str, Profile]) -> pa.Table:
    """Rows of `FOUND` of a day: of each resource those of `noise.counted`, and one for each pair of resources.

    Parameters
    ----------
    group
        Columns ``resource``, ``broker``, ``start`` (timestamp) and ``mean``, one row a resource, broker and window.
    """
    brokers, row = np.unique(group["broker"].to_numpy(), return_inverse=True)
    number = group["start"].cast(pa.int64()).to_numpy() // round(detection.window * 1e6)
    first = int(number.min())
    shape = len(brokers), int(number.max()) - first + 1
    loads, parts = {}, []
    for name in MEASURED:
        mine = pc.equal(group["resource"], name).to_numpy()
        if not mine.any():
            continue
        load = loads[name] = np.full(shape, np.nan)
        load[row[mine], number[mine] - first] = group["mean"].to_numpy()[mine]
        known = np.isfinite(load)
        there, times = known.any(axis=1), np.flatnonzero(known.any(axis=0))
        parts.append(
            noise.counted(
                name, brokers[there], first + int(times[0]), load[there, times[0] : times[-1] + 1], window_seconds=detection.window,
                hits=detection.hits, capacity=capacity.get(name), usual=profiles.get(name),
            )
        )  # fmt: skip
    rows = pa.concat_tables(parts)
    found = correlation.covariances(loads)
    pairs = pa.table({
        "resource": [",".join(pair) for pair in found], "kind": pa.repeat(TOGETHER, len(found)),
        "level": pa.array(np.zeros(len(found)), pa.int32()), "bin": pa.array(np.zeros(len(found)), pa.int32()),
        "count": pa.array([windows for _, windows in found.values()], pa.int64()),
        "total": [total for total, _ in found.values()],
    })  # fmt: skip
    return pa.concat_tables([rows.append_column("total", pa.array(np.zeros(len(rows)))), pairs])
