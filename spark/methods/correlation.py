"""Which resources of brokers rise and fall together, beyond what the hour does to all of them.

Column expressions over broker windows, called by the calibration job. Of each window, brokers are compared with each other
only, so that day and night, which all resources follow, make no correlation.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.schemas import BrokerWindows


def wide(windows: BrokerWindows, resources: Sequence[str]) -> DataFrame:
    """One row a broker and window, a column a resource; null where it was not measured."""
    known = windows.frame.where(F.col("resource").isin(*resources))
    return known.groupBy("broker", "start").pivot("resource", list(resources)).agg(F.first("mean"))


def covariances(loads: DataFrame, resources: Sequence[str]) -> DataFrame:
    """One row: for each pair ``a``, ``b`` the mean over windows of brokers' covariance over both means, as ``a,b``; null where
    the two were never measured together."""
    names = {f"{a},{b}": (a, b) for a, b in combinations_with_replacement(resources, 2)}
    of_window = loads.groupBy("start").agg(*[_relative(a, b).alias(name) for name, (a, b) in names.items()])
    return of_window.agg(*[F.avg(F.col(f"`{name}`")).alias(name) for name in names])


def _relative(a: str, b: str) -> Column:
    """Covariance of two columns over brokers, over the product of their means."""
    both = F.col(a).isNotNull() & F.col(b).isNotNull()
    means = F.avg(F.when(both, F.col(a))) * F.avg(F.when(both, F.col(b)))
    return F.try_divide(F.covar_pop(a, b), means)


def correlations(found: dict[str, float | None]) -> dict[tuple[str, str], float]:
    """Pairs of different resources, in the order given, and how they go together, -1 to 1; without those that do not vary."""
    result = {}
    for name, value in found.items():
        a, b = name.split(",")
        of_a, of_b = found[f"{a},{a}"] or 0.0, found[f"{b},{b}"] or 0.0
        if a != b and value is not None and of_a > 0 and of_b > 0:
            result[a, b] = max(-1.0, min(1.0, value / (of_a * of_b) ** 0.5))
    return result
