"""Synthetic histories are what their truth says; otherwise a calibration that finds the truth again proves nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from tests.histories.rows import pieces, rows_per_step
from tests.histories.synthetic import History, Truth, spanning, synthetic, write
from tests.histories.truth import DAY, WEEK, drawn

PLAIN = Truth(brokers=6, partitions=60, interval=300, span=WEEK)


def of_brokers(history: History, metric: str) -> pd.DataFrame:
    """Time x broker, values of whole brokers."""
    frame = history.table.to_pandas()
    found = frame[(frame.metric == metric) & frame.topic.isna()]
    found = found.assign(step=(found.time - found.time.dt.floor("D")).dt.total_seconds() // 300, day=found.time.dt.floor("D"))
    return found.pivot_table(index=["day", "step"], columns="broker", values="value")


def test_equal_truths_give_equal_samples_and_another_seed_others() -> None:
    truth = replace(PLAIN, span=DAY, bursty=0.3, missing=0.05, corrupt=0.01)
    once, again, other = (synthetic(t).table.to_pandas() for t in (truth, truth, replace(truth, seed=1)))
    pd.testing.assert_frame_equal(once, again)
    assert not once.equals(other)


def test_a_broker_reports_the_sum_of_its_replicas() -> None:
    frame = synthetic(replace(PLAIN, span=7200)).table.to_pandas()
    replicas = frame[frame.metric.isin(["network_in", "follower.network_in"]) & frame.topic.notna()]
    whole = frame[(frame.metric == "network_in") & frame.topic.isna()].set_index(["broker", "time"]).value
    summed = replicas.groupby(["broker", "time"]).value.sum()
    np.testing.assert_allclose(summed.sort_index(), whole.sort_index(), rtol=1e-9)


def test_noise_season_and_growth_are_those_of_the_truth() -> None:
    truth = replace(PLAIN, span=4 * WEEK, growth=0.05, partition_noise=0.0, steady=0.0)
    load = of_brokers(synthetic(truth), "network_in").to_numpy()
    expected = drawn(truth).broker_level()
    time = truth.begin + truth.interval * (np.arange(len(load), dtype=np.float64) + 0.5)
    rest = load / (truth.season(time) * truth.level(time, 0.05))[:, None] / expected
    assert rest.std() == pytest.approx(0.05, rel=0.02)
    assert rest.mean() == pytest.approx(1.0, abs=1e-3)
    assert truth.profile().mean() == pytest.approx(1.0)
    assert truth.profile().argmax() in (13, 14)
    assert truth.profile()[5 * 24 : 6 * 24].mean() / truth.profile()[:24].mean() == pytest.approx(0.7)


def test_cpu_is_made_of_what_passes_through() -> None:
    truth = replace(PLAIN, span=DAY)
    history = synthetic(truth)
    use = {m: of_brokers(history, m) for m in ("cpu", "network_in", "network_out", "produce_rate", "fetch_rate")}
    cost = truth.cpu
    expected = (
        cost.idle + cost.byte_in * use["network_in"] + cost.byte_out * use["network_out"]
        + cost.produce * use["produce_rate"] + cost.fetch * use["fetch_rate"]
    )  # fmt: skip
    assert (use["cpu"] / expected - 1).to_numpy().std() == pytest.approx(cost.noise, rel=0.1)


def test_brokers_saturate_only_where_the_truth_has_a_capacity() -> None:
    free = synthetic(PLAIN)
    limited = synthetic(replace(PLAIN, capacity=1.2, capacity_spread=0.0, reports_capacity=0.5))
    capacity = limited.world.capacity
    assert capacity is not None
    top = of_brokers(limited, "network_in").to_numpy().max(axis=0)
    assert np.all((top <= capacity) & (top > 0.9 * capacity))
    assert of_brokers(free, "network_in").to_numpy().max() > 1.4 * drawn(PLAIN).broker_level().mean()
    assert of_brokers(limited, "produce_latency_ms").to_numpy().max() > 40.0
    assert of_brokers(free, "produce_latency_ms").to_numpy().max() < 15.0
    reported = limited.table.to_pandas().query("metric == 'capacity.network_in'").groupby("broker").value.mean()
    assert dict(reported) == pytest.approx(dict(enumerate(capacity[:3], start=1)))


def test_topics_burst_and_grow_and_brokers_are_uneven_as_told() -> None:
    truth = replace(PLAIN, span=2 * WEEK, bursty=0.2, growing=0.2, topic_growth=0.3, imbalance=0.5, partition_noise=0.0)
    history = synthetic(replace(truth, noise=()))
    frame = history.table.to_pandas()
    led = frame[(frame.metric == "network_in") & frame.topic.notna()]
    week = (led.time - led.time.min()).dt.days // 7
    level = led.groupby([led.topic, week]).value.median().unstack()
    for name, pattern in zip(history.world.topics, history.world.pattern, strict=True):
        step = level.loc[name, 1] / level.loc[name, 0]
        assert step == pytest.approx(1.35 if pattern == "growing" else 1.0, abs=0.05)
        peak = led[led.topic == name].groupby("partition").value.agg(lambda v: v.max() / v.median())
        assert (peak > 4).all() == (pattern == "bursty")
    level_of_broker = history.world.broker_level()
    assert level_of_broker.std() / level_of_broker.mean() > 0.25
    balanced = drawn(replace(truth, imbalance=0.0)).broker_level()
    assert balanced.std() / balanced.mean() < 0.1


def test_partitions_change_brokers_at_the_times_told_and_not_otherwise() -> None:
    truth = replace(PLAIN, span=DAY, moves=((DAY / 2, 0.5),))
    frame = synthetic(truth).table.to_pandas()
    led = frame[(frame.metric == "network_in") & frame.topic.notna()]
    half = led.time >= pd.Timestamp(truth.begin + DAY // 2, unit="s", tz="UTC")
    before, after = (led[x].groupby(["topic", "partition"]).broker.unique() for x in (~half, half))
    assert all(len(b) == 1 for b in (*before, *after))
    assert sum(b[0] != a[0] for b, a in zip(before, after, strict=True)) == 30
    held = frame[frame.metric.isin(["network_in", "follower.network_in"]) & frame.topic.notna()]
    assert not held.duplicated(["topic", "partition", "broker", "time"]).any()


def test_damage_is_as_much_as_told_and_counted() -> None:
    truth = replace(PLAIN, span=2 * DAY, missing=0.05, corrupt=0.02, damage=("nan", "negative", "duplicate", "future", "spike"))
    history = synthetic(truth)
    whole = rows_per_step(history.world) * truth.steps
    frame = history.table.to_pandas()
    told = history.damaged
    assert told["missing"] / whole == pytest.approx(0.05, rel=0.05)
    assert sum(told[kind] for kind in truth.damage) / whole == pytest.approx(0.019, rel=0.1)
    assert frame.value.isna().sum() == told["nan"]
    assert history.table["value"].null_count == 0  # NaN, as a reporter sends it, not absent
    assert (frame.value < 0).sum() == told["negative"]
    assert frame.duplicated().sum() == told["duplicate"]
    assert (frame.time.dt.year > 2030).sum() == told["future"]


def test_a_folder_is_laid_out_as_the_service_does_and_holds_the_same_samples(tmp_path: Path) -> None:
    truth = replace(PLAIN, span=2 * DAY, corrupt=0.01, missing=0.05)
    counts = write(truth, tmp_path, workers=1)
    expected = synthetic(truth)
    found = ds.dataset(tmp_path, partitioning="hive", exclude_invalid_files=False).to_table()
    assert found.num_rows == counts["rows"] == expected.table.num_rows
    assert {name: counts[name] for name in expected.damaged} == expected.damaged
    assert found.drop_columns("date").schema.remove_metadata().names == expected.table.schema.names
    key = ["time", "broker", "topic", "partition", "metric", "value"]
    left, right = (t.to_pandas()[key].sort_values(key, ignore_index=True) for t in (found, expected.table))
    pd.testing.assert_frame_equal(left, right, check_dtype=False)
    for folder in tmp_path.glob("date=*"):
        for path in folder.glob("part-*.parquet"):
            rows = ds.dataset(path).to_table().to_pandas()
            assert (rows.time.dt.strftime("%Y-%m-%d") == folder.name[5:]).all()
            order = rows[["metric", "topic", "partition"]].fillna({"topic": "", "partition": -1})
            assert order.equals(order.sort_values(["metric", "topic", "partition"], kind="stable"))


def test_a_wanted_number_of_rows_is_met() -> None:
    truth = spanning(replace(PLAIN, missing=0.05), 200_000)
    assert synthetic(truth).table.num_rows == pytest.approx(200_000, rel=0.02)
    parts = list(pieces(drawn(truth), 20_000))
    assert (parts[0].first, parts[-1].last) == (0, truth.steps)
    assert all(a.last == b.first for a, b in pairwise(parts))
