"""What hours of all brokers say of one resource: level, season, growth, how shares go round the week, and what levelling is good for.

Called by `spark.jobs.calibrate`. One group a resource, of hourly means: brokers x hours, which fit into a worker, goes in; what comes back
grows with brokers and with hours, not with both.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from cluster_model.resources import MEASURED
from spark.methods import season
from spark.methods.benefit import Benefit, benefit
from spark.methods.bins import FloatArray, IntArray
from spark.methods.noise import day, weights
from spark.methods.profile import Profile, profile
from spark.schemas import BrokerWindows

FOUND = "resource string, brokers array<int>, found binary"
CAPACITY = "capacity."
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


@dataclass(frozen=True)
class Level:
    """One measured resource: load of a broker over brokers and windows; how many brokers; windows of all of them; broker -> the newest that
    it says it can carry; what the hours say."""

    mean: float
    brokers: int
    windows: int
    capacity: Mapping[int, float]
    hours: Hours


@dataclass(frozen=True)
class Levels:
    """Each measured resource that there is, in the order of `MEASURED`, and how many brokers report anything."""

    found: dict[str, Level]
    brokers: int


def levels_of(windows: BrokerWindows) -> Levels:
    """What hours say. One grouping of the windows: loads of a resource, and what brokers say they can carry of it, go together."""
    hour = F.expr(f"unix_seconds(start) div {season.HOUR}").alias("hour")
    hourly = windows.frame.groupBy("resource", "broker", hour).agg(
        F.avg("mean").alias("mean"), F.sum("mean").alias("total"), F.count("*").alias("windows"), F.max_by("mean", "start").alias("newest")
    )
    about = F.expr(f"if(startswith(resource, '{CAPACITY}'), substr(resource, {len(CAPACITY) + 1}), resource)").alias("about")
    rows = hourly.select("*", about).groupBy("about").applyInArrow(level_of, FOUND).collect()
    found = {row["resource"]: pickle.loads(row["found"]) for row in rows if row["found"] is not None}  # made by our own workers
    brokers = {broker for row in rows for broker in row["brokers"]}
    return Levels({name: found[name] for name in MEASURED if name in found}, len(brokers))


def level_of(group: pa.Table) -> pa.Table:
    """The `Level` of a measured resource as a row of `FOUND`; of anything else that brokers report, only which they are."""
    name = group["about"][0].as_py()
    loads = group.filter(pc.equal(group["resource"], name))
    found = None
    if name in MEASURED and len(loads):
        newest = group.filter(pc.not_equal(group["resource"], name)).sort_by("hour")
        capacity = dict(zip(newest["broker"].to_pylist(), newest["newest"].to_pylist(), strict=True))
        hours = found_in(loads["broker"].to_numpy(), loads["hour"].to_numpy(), loads["mean"].to_numpy(), capacity)
        windows = int(loads["windows"].to_numpy().sum())
        mean = float(loads["total"].to_numpy().sum()) / windows
        found = pickle.dumps(Level(mean, len(loads["broker"].unique()), windows, capacity, hours))
    brokers = pa.array([group["broker"].unique().to_pylist()], pa.list_(pa.int32()))
    return pa.table({"resource": [name], "brokers": brokers, "found": pa.array([found], pa.binary())})


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
        warnings.simplefilter("ignore", RuntimeWarning)  # an hour that was not measured
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
