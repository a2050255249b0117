"""Synthetic histories of known truth, through the whole job: what went in comes out again, dirt or no dirt."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cluster_model.errors import InputError
from goals.calibration import Calibration, load_calibration
from spark.blocks import packed, tally
from spark.history.sift import reason
from spark.jobs.calibrate import JOBS, Request, calibrate
from spark.jobs.resources import Detection
from spark.schemas import PartitionLoads
from tests.histories.synthetic import Truth, drawn, synthetic, write
from tests.histories.synthetic import samples as samples_of
from trimtab.cli import main
from trimtab.commands.calibrate import horizon_of

DAY = 86_400
NOW = datetime(2026, 11, 21, tzinfo=UTC)
GROUP = "calibration"
FIVE_MINUTES = Detection(window=300, hits=1, alarms_per_week=1)
DIRTY = Truth(
    brokers=12, partitions=24, span=15 * DAY, interval=300, growth=0.03, imbalance=0.2, missing=0.05, corrupt=0.01,
    noise=(("network_in", 0.06), ("network_out", 0.04)), partition_noise=0.01, steady=0.0, partition_metrics=("network_in",),
    capacity=3.0, reports_capacity=0.25,
)  # fmt: skip


def made(
    spark: SparkSession, history: Path, detection: Detection = FIVE_MINUTES, loads: Path | None = None, once: bool = False
) -> Calibration:
    request = Request(str(history), detection, None if loads is None else str(loads), once=once)
    return calibrate(spark, request, NOW, lambda _: None).calibration


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifteen days with growth, imbalance, gaps and dirt."""
    out = tmp_path_factory.mktemp("history") / "dirty"
    write(DIRTY, out)
    return out


@pytest.fixture(scope="module")
def found(spark: SparkSession, history: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Calibration, Path]:
    """The calibration of `history`, and the folder with the loads of its partitions; its jobs are the group `GROUP`."""
    loads = tmp_path_factory.mktemp("loads") / "loads"
    spark.sparkContext.setJobGroup(GROUP, "one calibration")
    calibration = made(spark, history, loads=loads)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    return calibration, loads


def test_a_calibration_takes_few_jobs(spark: SparkSession, found: tuple[Calibration, Path]) -> None:
    """Each job is planned, compiled and scheduled, which is what a small history costs: 79 of them were 79 CPU s."""
    assert found[0].resources
    assert 0 < len(spark.sparkContext.statusTracker().getJobIdsForGroup(GROUP)) <= JOBS


def test_noise_is_found_under_imbalance_growth_season_gaps_and_dirt(found: tuple[Calibration, Path]) -> None:
    network_in = found[0].resources["network_in"]
    assert network_in.noise == pytest.approx(0.06, rel=0.05)


def test_growth_and_the_week_are_found(found: tuple[Calibration, Path]) -> None:
    network_in = found[0].resources["network_in"]
    assert network_in.growth == pytest.approx(0.03, abs=0.003)
    assert network_in.seasonality is not None
    assert np.abs(np.array(network_in.seasonality.profile) - DIRTY.profile()).max() < 0.06
    assert network_in.seasonality.peak_hour % 24 in (13, 14)
    assert network_in.seasonality.peak_hour < 120
    assert network_in.seasonality.strength > 0.95


def test_the_recommended_band_fires_about_as_seldom_as_promised_and_not_on_imbalance(found: tuple[Calibration, Path]) -> None:
    network_in = found[0].resources["network_in"]
    allowed = 1 / len(found[0].resources)
    assert network_in.bound is not None
    assert network_in.false_alarms is not None
    assert network_in.false_alarms <= allowed
    normal = 0.06 * np.sqrt(1 - 1 / 12) * 4.26  # two-sided, one of 24,192 * 6 checks of a week
    assert network_in.bound == pytest.approx(normal, rel=0.2)
    assert network_in.var is not None
    assert network_in.var > network_in.bound


def test_what_does_not_count_is_told_with_its_reasons(found: tuple[Calibration, Path]) -> None:
    history = found[0].history
    assert {"not a number", "negative", "time in the future"} <= set(history.rejected)
    rows = history.samples + sum(history.rejected.values())
    assert 0.005 < sum(history.rejected.values()) / rows < 0.012
    assert (history.brokers, history.partitions) == (12, 24)
    assert history.begin.startswith("2026-09-21T00")
    assert history.end.startswith("2026-10-05T23")


def test_each_partition_has_its_loads(spark: SparkSession, found: tuple[Calibration, Path]) -> None:
    loads = PartitionLoads(spark.read.parquet(str(found[1]))).frame.where("resource = 'network_in'").collect()
    assert len(loads) == 24
    for row in loads:
        assert 0 < row["mean"] < row["p95"] < 3 * row["mean"]
        assert row["last"] > 0


def test_partitions_are_forecast_at_the_peak_of_the_coming_day(spark: SparkSession, found: tuple[Calibration, Path]) -> None:
    world = drawn(DIRTY)
    ahead = np.arange(0, 86_400, 3_600, dtype=np.float64) + DIRTY.begin + DIRTY.span + 1_800.0
    peak = (DIRTY.season(ahead) * DIRTY.level(ahead, DIRTY.growth)).max()
    expected = {(world.topics[t], int(n)): rate * peak for t, n, rate in zip(world.topic, world.number, world.rate, strict=True)}
    rows = spark.read.parquet(str(found[1])).where("resource = 'network_in'").collect()
    off = [row["forecast"] / expected[row["topic"], row["partition"]] - 1 for row in rows]
    assert np.median(np.abs(off)) < 0.1
    assert {row["pattern"] for row in rows} <= {"cyclic", "growing"}


def test_what_cpu_costs_and_brokers_carry_is_found(found: tuple[Calibration, Path]) -> None:
    cost = found[0].cpu_cost
    assert cost is not None
    truth = DIRTY.cpu
    assert cost.idle == pytest.approx(truth.idle, rel=0.05)
    capacity = {(one.broker, one.resource): one for one in found[0].capacity}
    world = drawn(DIRTY)
    assert world.capacity is not None
    for broker, true in enumerate(world.capacity, start=1):
        one = capacity[broker, "network_in"]
        if one.confidence == "high":
            assert one.value == pytest.approx(true, rel=0.1)
    assert sum(one.confidence == "high" for one in capacity.values()) >= 3


def test_resources_that_ride_on_the_same_partitions_go_together(found: tuple[Calibration, Path]) -> None:
    values = {tuple(one.resources): one.value for one in found[0].correlations}
    assert values["network_in", "disk"] > 0.8
    assert all(-1 <= value <= 1 for value in values.values())


def test_equal_histories_have_equal_digests_whatever_their_files_and_windows(spark: SparkSession) -> None:
    truth = replace(DIRTY, span=6 * 3600, interval=600)

    def digest(truth: Truth, window: float, files: int) -> str:
        samples = samples_of(spark, synthetic(truth)).frame.repartition(files)
        return tally(packed(samples.withColumn("reason", reason(F.lit(NOW))), window)).digest

    first = digest(truth, 300, 1)
    assert first == digest(truth, 900, 3)
    assert first != digest(replace(truth, seed=1), 300, 1)
    assert first.startswith("sha256:")


@pytest.fixture(scope="module")
def short(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Calibration]:
    """Two hours of three brokers with what our reporter measures, and the calibration of that; the loads are beside it."""
    history = tmp_path_factory.mktemp("short") / "h"
    reported = ("network_in", "consumer_out", "follower.network_in")
    write(Truth(brokers=3, partitions=6, span=2 * 3600, corrupt=0.0, partition_metrics=reported), history)
    return history, made(spark, history, loads=history.with_name("loads"))


def test_partitions_have_the_outgoing_traffic_that_brokers_send(short: tuple[Path, Calibration]) -> None:
    """Only what consumers fetch is measured of partitions; brokers count what followers copy, too."""
    rows = pq.read_table(short[0].with_name("loads"), partitioning=None).to_pylist()
    sums = {name: sum(row["mean"] for row in rows if row["resource"] == name) for name in ("network_in", "network_out")}
    assert {row["resource"] for row in rows} == {"network_in", "network_out"}
    assert sums["network_out"] == pytest.approx(3 * short[1].resources["network_out"].mean, rel=0.01)
    assert sums["network_out"] > 2 * sums["network_in"]


def test_a_short_history_leaves_open_what_it_cannot_say_and_says_why(short: tuple[Path, Calibration]) -> None:
    resource = short[1].resources["network_in"]
    assert resource.mean > 0
    assert (resource.noise, resource.bound, resource.var, resource.min_load) == (None, None, None, None)
    assert (resource.growth, resource.seasonality) == (None, None)
    told = "\n".join(resource.why)
    for word in ("noise: not known", "give a longer history", "growth: not known", "seasonality: not known"):
        assert word in told


def test_a_history_of_which_a_quarter_is_there_twice_gives_the_same_figures(
    spark: SparkSession, short: tuple[Path, Calibration], tmp_path: Path
) -> None:
    shutil.copytree(short[0], tmp_path / "h")
    (file,) = (tmp_path / "h").glob("date=*/*.parquet")
    rows = pq.ParquetFile(file).read()
    again = np.random.default_rng(1).permutation(len(rows))[: len(rows) // 4]
    pq.write_table(rows.take(again), file.with_name("again.parquet"))
    twice, once = made(spark, tmp_path / "h", once=True), short[1]
    assert twice.history.rejected == {"repeated": len(again)}
    assert twice.history.samples == once.history.samples
    assert twice.model_copy(update={"history": once.history}) == once


def test_a_history_in_which_nothing_counts_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(Truth(brokers=3, partitions=3, span=600, corrupt=1.0, damage=("nan", "negative")), tmp_path / "h")
    with pytest.raises(InputError, match=r"expected samples that count, found none: .*not a number"):
        made(spark, tmp_path / "h")


# -- the command -----------------------------------------------------------------------------------------------------------


def command(*arguments: str) -> int:
    return main(["calibrate", *arguments])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--window", "0s"], "expected 1s to 1d"),
        (["--from", "yesterday"], "expected a day or time such as"),
        (["--from", "2026-10-02", "--to", "2026-10-01"], "expected a time after --from"),
        (["--hits", "0"], "--hits"),
        (["--false-alarms-per-week", "0"], "--false-alarms-per-week"),
    ],
)
def test_wrong_options_are_refused_before_spark_starts(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--history", str(tmp_path), "--out", str(tmp_path / "c.yaml"), *arguments) == 2
    assert told in capsys.readouterr().err


def test_the_window_is_that_of_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bounds of five minutes were written for a service that plans on half an hour."""
    service = tmp_path / "service.yaml"
    text = "version: 1\nkafka: {bootstrap_servers: '127.0.0.1:9092'}\nmodel: {long: 45m}\n"
    service.write_text(f"{text}preset: default\n")
    assert horizon_of(service) == 2700.0
    service.write_text(f"{text}preset: default\nhorizon: short\n")
    assert horizon_of(service) == 120.0
    (tmp_path / "h").mkdir()
    history, out, given = str(tmp_path / "h"), str(tmp_path / "c.yaml"), ("--service", str(service))
    assert command("--history", history, "--out", out, *given, "--window", "5m") == 2
    assert "leave one of them out" in capsys.readouterr().err
    service.write_text("version: 1\nkafka: {}\n")
    assert command("--history", history, "--out", out, *given) == 2
    assert "kafka.bootstrap_servers" in capsys.readouterr().err


def test_neither_the_history_nor_other_files_are_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    out = str(tmp_path / "c.yaml")
    for folder, told in (("h", "apart from the history"), ("h/loads", "apart from the history"), ("mine", "has other files in it")):
        assert command("--history", str(tmp_path / "h"), "--out", out, "--loads", str(tmp_path / folder)) == 2
        assert told in capsys.readouterr().err
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"


def test_the_command_writes_a_file_that_reads_back_and_the_loads_beside_it(
    history: Path, tmp_path: Path, command_line: Callable[..., CompletedProcess[str]]
) -> None:
    out = tmp_path / "calibration.yaml"
    (tmp_path / "calibration-loads").mkdir()
    (tmp_path / "calibration-loads" / "old.parquet").write_text("of the last run")
    until = (datetime.fromtimestamp(DIRTY.begin, UTC) + timedelta(days=1)).isoformat()
    report = tmp_path / "r.html"
    options = ("--to", until, "--report", str(report), "--window", "5m")
    ended = command_line("calibrate", "--history", str(history), "--out", str(out), *options)
    assert ended.returncode == 0, ended.stderr
    calibration = load_calibration(out)
    assert calibration.loads == "calibration-loads"
    assert calibration.history.end.startswith("2026-09-21T23")
    assert calibration.resources["network_in"].seasonality is None
    names = sorted(path.name for path in (tmp_path / "calibration-loads").glob("*.parquet"))
    assert names
    assert "old.parquet" not in names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calibration-loads", "calibration.yaml", "r.html"]
    assert "<svg" in report.read_text()
    for stage in ("reading ", "samples, ", "noise separated from imbalance", "loads of 24 partitions", "network_in: bound"):
        assert stage in ended.stderr


@pytest.mark.parametrize("name", ["calibrate", "history check", "backtest"])
def test_a_history_that_is_not_there_is_said_before_spark_starts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An operator who mistyped the path waited a minute for it."""
    out = ("--out", str(tmp_path / "c.yaml")) if name == "calibrate" else ("--preset", "default")
    assert main([*name.split(), "--history", str(tmp_path / "none"), *out]) == 2
    said = capsys.readouterr().err
    assert "there is nothing at this path" in said
    assert "starting Spark" not in said
    assert not list(tmp_path.iterdir())
