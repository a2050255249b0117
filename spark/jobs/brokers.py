"""What brokers can carry, and what their cpu is spent on, out of their windows.

Called by `spark.jobs.calibrate`. One group a broker goes to the capacity kernel; the fit of cpu takes a bounded sample of all
brokers' windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from cluster_model.resources import MEASURED
from goals.calibration import CapacityEstimate, CpuCost
from spark.methods import cpu_cost
from spark.methods.bins import FloatArray, IntArray
from spark.methods.capacity import capacities
from spark.report.evidence import MOST_POINTS, CapacityEvidence, CpuEvidence, histogram, thinned
from spark.schemas import BrokerWindows

CAPACITY, LATENCY = "capacity.", "_latency_ms"
THROUGHPUT = ("network_in", "network_out", "produce_rate", "fetch_rate")
MOST_WINDOWS = 200_000  # in the fit of cpu
SHOWN = 6  # brokers drawn
FOUND = (
    "broker int, resource string, value double, confidence string, words string, measure string, "
    "at array<double>, measured array<double>, fit_at array<double>, fit array<double>"
)


@dataclass(frozen=True)
class Capacities:
    """The estimates, by broker and resource, and what a few of them were read from."""

    estimates: list[CapacityEstimate]
    shown: tuple[CapacityEvidence, ...]


def broker_capacities(windows: BrokerWindows) -> Capacities:
    """What each broker can carry: as it reports, as a latency bends, or at least."""
    names = [*MEASURED, *[CAPACITY + name for name in MEASURED]]
    known = windows.frame.where(F.col("resource").isin(*names) | F.col("resource").endswith(LATENCY))
    found = known.groupBy("broker").applyInArrow(capacities_of, FOUND).toArrow()
    place = {name: index for index, name in enumerate(MEASURED)}
    rows = found.select(["broker", "resource", "value", "confidence", "words"]).to_pylist()
    estimates = [
        CapacityEstimate(
            broker=row["broker"], resource=row["resource"], value=float(f"{row['value']:.6g}"),
            confidence=row["confidence"], evidence=row["words"],
        )
        for row in sorted(rows, key=lambda row: (row["broker"], place[row["resource"]]))
    ]  # fmt: skip
    bent = sorted(
        (row["confidence"] != "high", row["broker"], row["resource"], number)
        for number, (row, measure) in enumerate(zip(rows, found["measure"].to_pylist(), strict=True)) if measure is not None
    )  # fmt: skip
    shown = [
        CapacityEvidence(
            broker=row["broker"], resource=row["resource"], measure=row["measure"],
            points=tuple(zip(row["at"], row["measured"], strict=True)), fit=tuple(zip(row["fit_at"], row["fit"], strict=True)),
            capacity=row["value"], confidence=row["confidence"], words=row["words"],
        )
        for row in found.take(pa.array([number for *_, number in bent[:SHOWN]], pa.int64())).to_pylist()
    ]  # fmt: skip
    return Capacities(estimates, tuple(shown))


def capacities_of(group: pa.Table) -> pa.Table:
    """Rows of `FOUND` of one broker, from its windows: ``broker``, ``resource``, ``start`` and ``mean``."""
    start = group["start"].cast(pa.int64()).to_numpy()
    times, at = np.unique(start, return_inverse=True)
    values, names = group["mean"].to_numpy(), np.array(group["resource"].to_pylist())
    series = {}
    for name in np.unique(names):
        mine = names == name
        series[str(name)] = np.full(len(times), np.nan)
        series[str(name)][at[mine]] = values[mine]
    reported = {name.removeprefix(CAPACITY): one for name, one in series.items() if name.startswith(CAPACITY)}
    loads = {name: series[name] for name in MEASURED if name in series and (name in THROUGHPUT or name in reported)}
    measures = {name: one for name, one in series.items() if name.endswith(LATENCY)}
    rows = []
    for resource, found in capacities(loads, measures, reported).items():
        row = {
            "broker": group["broker"][0].as_py(), "resource": resource, "value": found.value, "confidence": found.confidence,
            "words": found.words, "measure": None, "at": [], "measured": [], "fit_at": [], "fit": [],
        }  # fmt: skip
        if found.bend is not None and found.measure is not None:
            pairs = np.stack([loads[resource], measures[found.measure]], axis=1)
            points = thinned([(float(a), float(b)) for a, b in pairs[np.isfinite(pairs).all(axis=1)]], MOST_POINTS)
            row |= {"measure": found.measure, "at": [a for a, _ in points], "measured": [b for _, b in points]}
            row |= {"fit_at": found.bend.curve[:, 0].tolist(), "fit": found.bend.curve[:, 1].tolist()}
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


_SCHEMA = pa.schema([
    ("broker", pa.int32()), ("resource", pa.string()), ("value", pa.float64()), ("confidence", pa.string()),
    ("words", pa.string()), ("measure", pa.string()), ("at", pa.list_(pa.float64())), ("measured", pa.list_(pa.float64())),
    ("fit_at", pa.list_(pa.float64())), ("fit", pa.list_(pa.float64())),
])  # fmt: skip


@dataclass(frozen=True)
class CpuFound:
    """The costs, or None and why not; and what is drawn of the fit."""

    cost: CpuCost | None
    shown: CpuEvidence | None
    words: str


def broker_cpu(windows: BrokerWindows, known: int) -> CpuFound:
    """What cpu is spent on, by a fit over a sample of windows.

    Parameters
    ----------
    known
        Windows in which cpu was measured.
    """
    if not known:
        return CpuFound(None, None, "cpu is not measured")
    every = max(1, -(-known // MOST_WINDOWS))
    sampled = windows.frame.where(F.col("resource").isin("cpu", *cpu_cost.FEATURES))
    if every > 1:
        sampled = sampled.where(F.pmod(F.xxhash64("broker", "start"), F.lit(every)) == 0)
    brokers, columns = _beside(sampled.select("broker", F.unix_micros("start").alias("start"), "resource", "mean").toArrow())
    rates = {name: columns[name] for name in cpu_cost.FEATURES if name in columns}
    found = cpu_cost.fit(columns["cpu"], rates, brokers)
    if isinstance(found, str):
        return CpuFound(None, None, found)
    said = f"{found.windows:,} windows fitted" + (f", one in {every} of all" if every > 1 else "")
    cost = CpuCost(
        idle=found.idle,
        per_byte_in=found.per_byte_in,
        per_byte_out=found.per_byte_out,
        per_produce_request=found.per_produce_request,
        per_fetch_request=found.per_fetch_request,
        error=found.error,
        brokers={str(broker): round(found.residuals[broker], 4) for broker in found.outstanding},
        why=[said, *found.words],
    )
    explained = found.explained(rates)
    mean = float(np.nanmean(columns["cpu"]))
    largest = sorted(found.residuals.items(), key=lambda item: (-abs(item[1]), item[0]))[:50]
    shown = CpuEvidence(
        points=thinned(list(zip(explained.tolist(), columns["cpu"].tolist(), strict=True))),
        residuals=histogram(((columns["cpu"] - explained) / mean).tolist(), -0.5, 0.5) if mean > 0 else None,
        brokers=tuple(largest),
    )
    return CpuFound(cost, shown, said)


def _beside(table: pa.Table) -> tuple[IntArray, dict[str, FloatArray]]:
    """Brokers [n], and by resource the mean [n] (NaN: not measured), of every window with cpu, ordered by broker and time.

    Parameters
    ----------
    table
        ``broker``, ``start`` (integer), ``resource`` and ``mean``, one row a resource, broker and window.
    """
    key = np.stack([table["broker"].to_numpy().astype(np.int64), table["start"].to_numpy()])
    windows, place = np.unique(key, axis=1, return_inverse=True)
    columns = {}
    for name in ("cpu", *cpu_cost.FEATURES):
        mine = pc.equal(table["resource"], name).to_numpy()
        if mine.any():
            columns[name] = np.full(windows.shape[1], np.nan)
            columns[name][place.reshape(-1)[mine]] = table["mean"].to_numpy()[mine]
    known = np.isfinite(columns["cpu"])
    return windows[0, known], {name: column[known] for name, column in columns.items()}
