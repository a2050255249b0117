"""An operator's CSV files become a history, whole days at a time, and no row is lost without a word."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cluster_model.errors import InputError
from spark.history.importing import import_history
from spark.history.mapping import CsvMapping
from spark.history.read import read_samples
from spark.history.write import COMPLETE, STAGING

Read = set[tuple[str, int, str | None, int | None, str, float]]
CSV = CsvMapping.model_validate({"version": 1})


def read(spark: SparkSession, folder: Path) -> Read:
    """What is in a history: time to the second, broker, topic, partition, metric, value."""
    found = read_samples(spark, str(folder)).frame.collect()
    assert len({tuple(r) for r in found}) == len(found)
    return {(f"{r.time.astimezone(UTC):%d %H:%M:%S}", r.broker, r.topic, r.partition, r.metric, round(r.value, 6)) for r in found}


# -- CSV -------------------------------------------------------------------------------------------------------


def test_columns_of_the_history_need_no_mapping(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "time,broker,topic,partition,metric,value\n"
        "2026-11-19T23:59:00Z,1,t,0,network_in,5\n"
        "2026-11-20T00:01:00+01:00,1,,,cpu, 1.5\n"
        "2026-11-20 00:00:00,2,t,x,network_in,5\n"
        "yesterday,2,t,0,network_in,5\n"
        "2026-11-20 00:00:00,2,t,0,network_in,many\n"
        "2026-11-20 00:00:00,2,t,0,network_in,-1\n"
        "2026-11-20 00:00:00,2,t,0,network_in\n"
    )
    out, rejected = tmp_path / "out", tmp_path / "rejected"
    done = import_history(spark, [str(tmp_path / "a.csv")], CSV, str(out), "c", str(rejected))
    assert (done.rows, done.days) == (2, ["2026-11-19"])
    assert read(spark, out) == {("19 23:59:00", 1, "t", 0, "network_in", 5.0), ("19 23:01:00", 1, None, None, "cpu", 1.5)}
    assert done.rejected == {
        "partition is no number": 1, "time cannot be read": 1, "value is no number": 1, "negative": 1, "no value": 1,
    }  # fmt: skip
    assert "a.csv: yesterday,2,t,0,network_in,5" in done.examples["time cannot be read"]
    kept = {r.reason: r.source for r in spark.read.parquet(str(rejected)).collect()}
    assert kept.keys() == done.rejected.keys()


def test_a_column_for_each_metric_with_counters_and_other_units(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text(
        "when;node;in total;cpu %\n"
        "1795132800;1;1000;50\n1795132860;1;7000;\n1795132920;1;600;75\n"  # the broker was restarted before the third
    )
    values = {"network_in": {"column": "in total", "kind": "counter"}, "cpu": {"column": "cpu %", "scale": 0.04}}
    mapping = CsvMapping.model_validate(
        {"version": 1, "delimiter": ";", "time": "when", "time_form": "seconds", "broker": "node", "values": values}
    )
    done = import_history(spark, [str(tmp_path / "wide.csv")], mapping, str(tmp_path / "out"), "c")
    assert done.rejected == {}
    assert read(spark, tmp_path / "out") == {
        ("20 00:00:00", 1, None, None, "cpu", 2.0), ("20 00:02:00", 1, None, None, "cpu", 3.0),
        ("20 00:01:00", 1, None, None, "network_in", 100.0), ("20 00:02:00", 1, None, None, "network_in", 10.0),
    }  # fmt: skip


def test_a_header_without_the_columns_is_refused_with_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("when,broker,metric,value\n1,1,cpu,1\n")
    with pytest.raises(InputError) as error:
        import_history(spark, [str(tmp_path)], CSV, str(tmp_path / "out"))
    assert "time: expected a column 'time' in the header, found when, broker, metric, value" in str(error.value)
    assert "give --cluster-id" in str(error.value)
    assert not (tmp_path / "out").exists()


def test_files_whose_headers_differ_are_not_mixed_up(spark: SparkSession, tmp_path: Path) -> None:
    """Read by place, the broker of one file would be the value of another."""
    for name, header in (("a", "time,broker,metric,value"), ("b", "time,value,metric,broker")):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n2026-11-20 00:00:00,1,cpu,2\n")
    with pytest.raises(InputError, match=r"expected one header in all files, found time, value, metric, broker in .*b\.csv"):
        import_history(spark, [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], CSV, str(tmp_path / "out"), "c")


def csv(path: Path, day: int, value: float = 1.0) -> list[str]:
    path.write_text(f"time,broker,metric,value\n2026-11-{day}T00:00:00Z,1,cpu,{value}\n")
    return [str(path)]


def test_a_day_that_is_there_is_not_written_again_and_nothing_else_either(spark: SparkSession, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    import_history(spark, csv(tmp_path / "a.csv", 10), CSV, out, "c")
    before = read(spark, tmp_path / "out")
    both = [*csv(tmp_path / "b.csv", 9), *csv(tmp_path / "c.csv", 10, 7.0)]
    with pytest.raises(InputError, match=r"1 of these days already, 2026-11-10"):
        import_history(spark, both, CSV, out, "c")
    assert read(spark, tmp_path / "out") == before
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if not p.name.startswith(".")) == ["date=2026-11-10"]
    assert import_history(spark, both[:1], CSV, out, "c").days == ["2026-11-09"]


def test_what_was_interrupted_between_two_days_is_finished_by_the_next(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    import_history(spark, [*csv(tmp_path / "a.csv", 10), *csv(tmp_path / "b.csv", 11)], CSV, str(out), "c")
    whole = read(spark, out)
    left = out / f"{STAGING}1234"
    left.mkdir()
    (out / "date=2026-11-11").rename(left / "date=2026-11-11")
    (left / COMPLETE).touch()
    assert len(read(spark, out)) == 1  # readers pass over what is not in place yet
    import_history(spark, csv(tmp_path / "c.csv", 12), CSV, str(out), "c")
    assert {r for r in read(spark, out) if not r[0].startswith("12")} == whole
    assert not left.exists()


def test_a_day_that_is_there_twice_says_which_to_delete(spark: SparkSession, tmp_path: Path) -> None:
    """Else every later import into the folder ended with the storage's error."""
    out = tmp_path / "out"
    import_history(spark, csv(tmp_path / "a.csv", 10), CSV, str(out), "c")
    left = out / f"{STAGING}1234"
    (left / "date=2026-11-10").mkdir(parents=True)
    (left / COMPLETE).touch()
    with pytest.raises(InputError, match=rf"date=2026-11-10 is there twice, also in {STAGING}1234.*; delete one of the two"):
        import_history(spark, csv(tmp_path / "c.csv", 12), CSV, str(out), "c")


def test_a_folder_with_other_things_is_no_history(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").touch()
    with pytest.raises(InputError, match=r"found chapter\.txt in it"):
        import_history(spark, csv(tmp_path / "a.csv", 10), CSV, str(tmp_path / "thesis"), "c")
