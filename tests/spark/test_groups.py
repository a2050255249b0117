"""What goes to workers as one group gives the rows that the job expects, without Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spark.jobs.brokers import capacities_of
from spark.jobs.partitions import FORECASTS, WHOLE, forecast_many

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
