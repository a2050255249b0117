"""What hours of all brokers say of one resource: level, season, growth, how shares go round the week, and what levelling is good for.

Called by `spark.jobs.calibrate`. One group a resource, of hourly means: brokers x hours, which fit into a worker, goes in; what comes back
grows with brokers and with hours, not with both.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from cluster_model.resources import MEASURED
from spark.methods import season
from spark.methods.benefit import Benefit, benefit
from spark.methods.bins import FloatArray, IntArray
from spark.methods.noise import day, weights
from spark.methods.profile import Profile, profile
from spark.schemas import BrokerWindows

FOUND = "resource string, found binary"
Capacity = Mapping[str, Mapping[int, float]]
"""Resource -> broker -> what it says it can carry."""


@dataclass(frozen=True)
class Hours:
    """One resource of one cluster.

    Attributes
    ----------
    hours, level
        int64 and float64 [T]: hours since the Unix epoch in which anything was measured, and the mean load of a broker in them.
    growth, season
        As `spark.methods.season` gives them; None: too little history.
    profile
        How shares of brokers go round the week; None where no broker's does.
    benefit
        What bands are good for; None: too little history.
    """

    hours: IntArray
    level: FloatArray
    growth: float | None
    season: season.Season | None
    profile: Profile | None
    benefit: Benefit | None


def hours_of(windows: BrokerWindows, capacity: Capacity) -> dict[str, Hours]:
    """The hours of each measured resource. One grouping of the windows."""
    hour = F.expr(f"unix_seconds(start) div {season.HOUR}").alias("hour")
    loads = windows.frame.where(F.col("resource").isin(*MEASURED))
    hourly = loads.groupBy("resource", "broker", hour).agg(F.avg("mean").alias("mean"))
    rows = hourly.groupBy("resource").applyInArrow(finder(capacity), FOUND).collect()
    return {row["resource"]: pickle.loads(row["found"]) for row in rows}  # made by our own workers


def finder(capacity: Capacity) -> Callable[[pa.Table], pa.Table]:
    """`found_in` as ``applyInArrow`` takes it."""

    def of_group(group: pa.Table) -> pa.Table:
        resource = group["resource"][0].as_py()
        found = found_in(
            group["broker"].to_numpy(), group["hour"].to_numpy(), group["mean"].to_numpy(), capacity.get(resource, {})
        )
        return pa.table({"resource": [resource], "found": pa.array([pickle.dumps(found)], pa.binary())})

    return of_group


def found_in(broker: IntArray, hour: IntArray, mean: FloatArray, capacity: Mapping[int, float]) -> Hours:
    """What hourly means of one resource say.

    Parameters
    ----------
    broker, hour, mean
        [n], one row a broker and hour, in any order.
    capacity
        broker -> what it can carry; shares are by capacity where all have one.
    """
    brokers, row = np.unique(broker, return_inverse=True)
    first = int(hour.min())
    load = np.full((len(brokers), int(hour.max()) - first + 1), np.nan)
    load[row, hour - first] = mean
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an hour that nobody measured
        level = np.nanmean(load, axis=0)
    seen = np.flatnonzero(np.isfinite(level))
    hours, levels = seen + first, level[seen]
    share = shares(load, weights(brokers, capacity))
    every = np.arange(first, first + load.shape[1])
    return Hours(
        hours=hours, level=levels, growth=season.growth(hours, levels), season=season.season(hours, levels),
        profile=None if len(brokers) < 2 else profile(brokers, every, share), benefit=benefit(share),
    )  # fmt: skip


def shares(load: FloatArray, capacity: FloatArray | None) -> FloatArray:
    """float64 [B, T]: load over the broker's part of the mean, day by day, as `spark.methods.noise.day` has it."""
    found = np.full(load.shape, np.nan)
    for begin in range(0, load.shape[1], season.DAY_HOURS):
        part = slice(begin, begin + season.DAY_HOURS)
        if np.isfinite(load[:, part]).any():
            found[:, part] = day(load[:, part], capacity).deviation + 1.0
    return found
