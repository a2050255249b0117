"""What goes to workers as one group gives the rows that the job expects, without Spark."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from spark.jobs.brokers import capacities_of
from spark.jobs.days import TOGETHER, counted
from spark.jobs.hours import Level, level_of
from spark.jobs.partitions import FORECASTS, FOUND, WHOLE, forecast_many, with_forecasts
from spark.jobs.resources import Detection
from spark.methods.correlation import correlations
from spark.methods.noise import NOISE

DAYS = 6
HOURS = np.arange(500_000, 500_000 + DAYS * 24)
DAY = 1 + 0.5 * np.sin(HOURS / 24 * 2 * np.pi)


def hours(*series: tuple[str, int, np.ndarray]) -> pa.Table:
    """Rows of (topic, partition, hourly means); NaN is left out."""
    rows = [
        {"cluster_id": "c", "topic": topic, "partition": partition, "resource": "cpu", "hour": int(hour), "mean": float(mean)}
        for topic, partition, means in series
        for hour, mean in zip(HOURS, means, strict=True)
        if np.isfinite(mean)
    ]
    table = pa.Table.from_pylist(rows)
    place = table.schema.get_field_index("partition")
    table = table.set_column(place, "partition", table["partition"].cast(pa.int32()))
    return table.append_column("bucket", pa.repeat(0, len(rows)))


def test_every_series_of_a_group_gets_its_own_forecast() -> None:
    sparse = np.where(HOURS % 5 == 0, 1.0, np.nan)
    group = hours(("a", 0, 10 * DAY), ("a", WHOLE, 70 * DAY), ("b", 0, 3 + 0 * DAY), ("c", 0, sparse))
    rows = {(row["topic"], row["partition"]): row for row in forecast_many(group, 500_000, int(HOURS[-1]) + 1).to_pylist()}
    assert rows["a", 0]["forecast"] == pytest.approx(15, rel=0.02)
    assert rows["a", WHOLE]["forecast"] == pytest.approx(105, rel=0.02)
    assert rows["b", 0]["forecast"] == pytest.approx(3)
    assert (rows["a", 0]["pattern"], rows["b", 0]["pattern"]) == ("cyclic", "steady")
    assert (rows["c", 0]["forecast"], rows["c", 0]["pattern"]) == (None, None)
    assert rows["a", 0]["chosen"] < 0.02 < rows["a", 0]["last"]


def test_a_history_of_two_days_is_not_forecast() -> None:
    found = forecast_many(hours(("a", 0, DAY)), int(HOURS[-48]), int(HOURS[-1]) + 1).to_pylist()
    assert found[0]["forecast"] is None


def loads(*series: tuple[str, int, str]) -> pa.Table:
    """Rows of (topic, partition, resource) as they come before their hours."""
    return pa.table({
        "cluster_id": pa.repeat("c", len(series)), "topic": [topic for topic, _, _ in series],
        "partition": pa.array([partition for _, partition, _ in series], pa.int32()), "resource": [name for *_, name in series],
        "mean": np.arange(len(series)) + 1.0, "p95": np.arange(len(series)) + 2.0, "last": np.arange(len(series)) + 3.0,
    })  # fmt: skip


def test_a_load_keeps_its_figures_beside_its_forecast_and_each_partition_counts_once() -> None:
    """Without hours of the last weeks it has no forecast, and stays in the file all the same."""
    known = loads(("a", 0, "cpu"), ("a", 0, "disk"), ("a", 1, "cpu"), ("b", 0, "cpu"))
    group = pa.concat_tables([hours(("a", 0, 10 * DAY)), known], promote_options="default")
    found = with_forecasts(group, 500_000, int(HOURS[-1]) + 1)
    rows = {(row["topic"], row["partition"], row["resource"]): row for row in found.to_pylist()}
    assert len(rows) == 4
    assert rows["a", 0, "cpu"]["forecast"] == pytest.approx(15, rel=0.02)
    assert [rows["a", 1, "cpu"][name] for name in ("mean", "p95", "last", "forecast", "pattern")] == [3.0, 4.0, 5.0, None, None]
    assert sum(row["first"] for row in rows.values()) == 3
    simple = {pa.string(): "string", pa.int32(): "int", pa.float64(): "double"}
    assert {field.name: simple[field.type] for field in found.schema} == dict(column.split(" ") for column in FOUND.split(", "))


def test_columns_have_the_types_that_spark_was_told_also_where_nothing_is_known() -> None:
    found = forecast_many(hours(("a", 0, DAY)), int(HOURS[-48]), int(HOURS[-1]) + 1)
    simple = {pa.string(): "string", pa.int32(): "int", pa.float64(): "double"}
    types = {field.name: simple[field.type] for field in found.schema}
    assert types == dict(column.split(" ") for column in FORECASTS.split(", "))


def test_the_windows_of_a_broker_give_its_capacities_with_what_they_were_read_from() -> None:
    r = np.random.default_rng(0)
    load = 1e6 * r.uniform(0.2, 0.97, 1500)
    latency = 4 / (1 - load / 1e6) * np.exp(0.1 * r.standard_normal(1500))
    start = (np.arange(1500) * 300_000_000).tolist()
    columns = {"network_in": load, "produce_latency_ms": latency, "cpu": load / 1e6, "capacity.disk": np.full(1500, 1e12), "disk": load}
    group = pa.table({
        "broker": pa.array(np.full(5 * 1500, 7, dtype=np.int32)),
        "resource": pa.array(np.repeat(list(columns), 1500)),
        "start": pa.array(start * 5, pa.timestamp("us", tz="UTC")),
        "mean": pa.array(np.concatenate(list(columns.values()))),
    })  # fmt: skip
    rows = {row["resource"]: row for row in capacities_of(group).to_pylist()}
    assert set(rows) == {"network_in", "disk"}
    assert rows["network_in"]["value"] == pytest.approx(1e6, rel=0.1)
    assert rows["network_in"]["measure"] == "produce_latency_ms"
    assert len(rows["network_in"]["at"]) == len(rows["network_in"]["measured"]) == 400
    assert len(rows["network_in"]["fit_at"]) == len(rows["network_in"]["fit"]) > 2
    assert (rows["disk"]["value"], rows["disk"]["measure"]) == (1e12, None)
    assert {row["broker"] for row in rows.values()} == {7}


def test_a_broker_of_which_nothing_is_known_has_no_capacity() -> None:
    group = pa.table({
        "broker": pa.array([1], pa.int32()), "resource": ["cpu"], "start": pa.array([0], pa.timestamp("us", tz="UTC")),
        "mean": [1.0],
    })  # fmt: skip
    assert capacities_of(group).num_rows == 0


def windows(**resources: np.ndarray) -> pa.Table:
    """Rows of brokers x windows of five minutes; NaN is left out."""
    rows = [
        {"resource": name.replace("_of_", "."), "broker": broker, "start": (6_000_000 + window) * 300_000_000, "mean": float(mean)}
        for name, loads in resources.items()
        for broker, means in enumerate(loads)
        for window, mean in enumerate(means)
        if np.isfinite(mean)
    ]
    types = {"resource": pa.string(), "broker": pa.int32(), "start": pa.timestamp("us", tz="UTC"), "mean": pa.float64()}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(types.items())))


def test_a_day_gives_noise_by_resource_and_how_resources_go_together() -> None:
    """Of windows that lack one of both nothing is said; day and night, which all brokers follow, make no correlation."""
    r = np.random.default_rng(2)
    share, swing = r.uniform(0.5, 1.5, (8, 288)), 1 + 0.5 * np.sin(np.arange(288) / 288 * 2 * np.pi)
    other = r.uniform(0.5, 1.5, (8, 288))
    disk = np.where(np.arange(288) < 100, share * swing, np.nan)
    rows = counted(windows(network_in=share * swing, disk=disk, cpu=other * swing), Detection(300, 1, 1), {}, {}).to_pylist()
    pairs = {tuple(row["resource"].split(",")): (row["total"], row["count"]) for row in rows if row["kind"] == TOGETHER}
    found = correlations(pairs)
    assert pairs["network_in", "disk"][1] == pairs["disk", "disk"][1] == 100
    assert found["network_in", "disk"] > 0.9
    assert abs(found["network_in", "cpu"]) < 0.1
    seen = {name: sum(row["count"] for row in rows if (row["resource"], row["kind"]) == (name, NOISE)) for name in ("network_in", "disk")}
    assert 0 < seen["disk"] <= 800 < seen["network_in"] <= 8 * 288


def test_hours_of_a_resource_know_what_its_brokers_report_of_themselves() -> None:
    hourly = {
        "hour": [1, 2, 1, 2, 1], "mean": [1.0, 3.0, 5.0, 7.0, 9.0], "total": [12.0, 36.0, 60.0, 84.0, 9.0], "windows": [12, 12, 12, 12, 1],
    }  # fmt: skip
    group = pa.table({
        "about": pa.repeat("disk", 5), "resource": [*["disk"] * 4, "capacity.disk"], "broker": pa.array([1, 1, 2, 2, 3], pa.int32()),
        "newest": [1.0, 3.0, 5.0, 7.0, 9.0], **hourly,
    })  # fmt: skip
    (row,) = level_of(group).to_pylist()
    level = pickle.loads(row["found"])
    assert isinstance(level, Level)
    assert (level.mean, level.brokers, level.windows, dict(level.capacity)) == (4.0, 2, 48, {3: 9.0})
    assert level.hours.level.tolist() == [3.0, 5.0]
    assert row["brokers"] == [1, 2, 3]
