"""`trimtab plan --load` from end to end: planning for the peak of a calibration's history instead of the moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.assembled.commands.command_line import CommandLine, partition, snapshot_file

CALIBRATION = """version: 1
cluster_id: test
made_at: 2026-11-02T00:00:00Z
history: {begin: 2026-10-01T00:00:00Z, end: 2026-11-01T00:00:00Z, window: 300, samples: 1, brokers: 1, partitions: 1, digest: x}
resources: {}
loads: loads
"""
GOALS = "version: 1\ngoals: [{kind: usage_distribution, resource: network_in}]\n"


def row(number: int, p95: float | None, topic: str = "orders", **changes: Any) -> dict[str, Any]:
    plain = {"cluster_id": "test", "topic": topic, "partition": number, "resource": "network_in", "mean": 1e6, "p95": p95}
    return plain | {"last": 1e6, "forecast": None, "pattern": "steady"} | changes


class Place:
    """A folder with a cluster that is level now, goals, a calibration, and loads with a peak on broker 1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = [row(n, 3e6 if n % 3 == 0 else 1e6) for n in range(6)]
        parts = [partition("orders", n, [1 + n % 3]) for n in range(6)]
        self.snapshot = snapshot_file(folder, partitions=parts)
        self.goals = folder / "goals.yaml"
        self.goals.write_text(GOALS + "calibration: c.yaml\n")
        self.calibration = folder / "c.yaml"
        self.calibration.write_text(CALIBRATION)
        self.write(self.rows)

    def write(self, rows: list[dict[str, Any]], **types: pa.DataType) -> None:
        """Two Parquet files, as Spark writes them, and its marker."""
        folder = self.folder / "loads"
        folder.mkdir(exist_ok=True)
        half = len(rows) // 2
        for number, part in enumerate((rows[:half], rows[half:])):
            table = pa.Table.from_pylist(part or rows)
            for name, kind in types.items():
                table = table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(kind))
            table = table.slice(0, len(part))
            pq.write_table(table, folder / f"part-0000{number}.snappy.parquet")
        (folder / "_SUCCESS").touch()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_peak_is_planned_for_when_asked(trimtab: CommandLine, place: Place) -> None:
    command = ("plan", "--snapshot", place.snapshot, "--goals", place.goals, "--format", "json")
    now = trimtab(*command)
    assert json.loads(now.out)["proposals"] == []
    assert "load" not in json.loads(now.out)["options"]
    assert trimtab(*command, "--load", "current").out == now.out
    peak = trimtab(*command, "--load", "p95")
    assert peak.code == 0, peak.err
    made = json.loads(peak.out)
    assert made["proposals"]
    assert made["options"]["load"] == "p95"
    assert made["snapshot"]["digest"] == json.loads(now.out)["snapshot"]["digest"]
    assert "loads are the p95 of c.yaml (2026-10-01 to 2026-11-01): network_in of 6 of 6 partitions" in made["notes"]


def test_the_option_names_a_calibration_for_goals_without_one(trimtab: CommandLine, place: Place) -> None:
    place.goals.write_text(GOALS)
    command = ("plan", "--snapshot", place.snapshot, "--goals", place.goals, "--format", "json", "--load", "p95")
    without = trimtab(*command)
    assert without.code == 2
    needs = "--load: p95 needs a calibration, found none; give --calibration FILE, or name one in the goals file"
    assert needs in without.err
    assert json.loads(trimtab(*command, "--calibration", place.calibration).out)["proposals"]


def test_loads_may_be_a_uri(trimtab: CommandLine, place: Place) -> None:
    command = ("plan", "--snapshot", place.snapshot, "--goals", place.goals, "--format", "json", "--load", "p95")
    beside = trimtab(*command).out
    place.calibration.write_text(CALIBRATION.replace("loads: loads", f"loads: file://{place.folder}/loads"))
    assert trimtab(*command).out == beside
    place.calibration.write_text(CALIBRATION.replace("loads: loads", "loads: nowhere://lake/loads"))
    ended = trimtab(*command)
    assert (ended.code, ended.err.count("nowhere://lake/loads: 1 problem")) == (2, 1)


def test_explain_answers_for_the_same_loads(trimtab: CommandLine, place: Place) -> None:
    command = ("explain", "--snapshot", place.snapshot, "--goals", place.goals, "--broker", "1")
    assert trimtab(*command).out != trimtab(*command, "--load", "p95").out


def test_partitions_without_a_value_keep_the_load_of_the_snapshot(trimtab: CommandLine, place: Place) -> None:
    """Of six partitions one has no row, one no value, one a NaN; rows of others and of disk change nothing."""
    others = [row(99, 1.0), row(0, 1.0, "gone"), row(0, 9e9, cluster_id="other"), row(0, 1.0, resource="disk")]
    place.write([*place.rows[:3], row(3, None), row(4, float("nan")), *others])
    ended = trimtab("plan", "--snapshot", place.snapshot, "--goals", place.goals, "--format", "json", "--load", "p95")
    assert ended.code == 0, ended.err
    note = "loads are the p95 of c.yaml (2026-10-01 to 2026-11-01): network_in of 3 of 6 partitions; the others keep the snapshot's"
    assert note in json.loads(ended.out)["notes"]


def test_order_and_files_of_the_rows_do_not_matter(trimtab: CommandLine, place: Place) -> None:
    command = ("plan", "--snapshot", place.snapshot, "--goals", place.goals, "--format", "json", "--load", "p95")
    first = trimtab(*command).out
    place.write(place.rows[::-1])
    assert trimtab(*command).out == first


@pytest.mark.parametrize(
    ("change", "load", "says"),
    [
        ({"p95": -1.0}, "p95", "p95: expected amounts from 0 to 1e+30, found network_in of orders-5 -1"),
        ({"p95": float("inf")}, "p95", "p95: expected amounts from 0 to 1e+30, found network_in of orders-5 inf"),
        ({"resource": "netwrok"}, "p95", "resource: expected one of network_in, network_out, cpu, disk, produce_rate, "),
        ({"partition": 0}, "p95", "expected one row for each partition and resource, found more for network_in of orders-0"),
        ({"topic": None}, "p95", "column topic: expected a value in every row, found none in 1"),
        ({}, "forecast", "forecast: expected amounts, found none; there may be too little history for it"),
    ],
)  # fmt: skip
def test_loads_that_are_wrong_are_refused_with_the_place(
    trimtab: CommandLine, place: Place, change: dict[str, Any], load: str, says: str
) -> None:
    place.write([*place.rows[:5], place.rows[5] | change], forecast=pa.float64())
    ended = trimtab("plan", "--snapshot", place.snapshot, "--goals", place.goals, "--load", load)
    assert ended.code == 2
    assert f"{place.folder}/loads: 1 problem" in ended.err
    assert says in ended.err


def test_wrong_columns_are_all_told(trimtab: CommandLine, place: Place) -> None:
    rows = [{"topic": 1, "partition": "a", "resource": "x", "mean": 1.0, "cluster_id": "test"}] * 2
    place.write(rows)
    ended = trimtab("plan", "--snapshot", place.snapshot, "--goals", place.goals, "--load", "p95")
    assert ended.code == 2
    assert "3 problems" in ended.err
    assert "column topic: expected strings, found int64" in ended.err
    assert "column partition: expected whole numbers, found string" in ended.err
    assert "column p95: missing; expected numbers (the file has topic, partition, resource, mean, cluster_id)" in ended.err


def test_what_is_no_parquet_is_told(trimtab: CommandLine, place: Place) -> None:
    command = ("plan", "--snapshot", place.snapshot, "--goals", place.goals, "--load", "mean")
    for number in (0, 1):
        (place.folder / "loads" / f"part-0000{number}.snappy.parquet").write_text("no parquet")
    ended = trimtab(*command)
    assert (ended.code, "cannot read it" in ended.err) == (2, True)
    place.calibration.write_text(CALIBRATION.replace("loads: loads", "loads: gone"))
    ended = trimtab(*command)
    assert ended.code == 2
    assert f"{place.folder}/gone: 1 problem" in ended.err
    assert "found nothing there; `trimtab calibrate` writes it" in ended.err
    place.calibration.write_text(CALIBRATION.replace("loads: loads\n", ""))
    assert "--load: mean needs loads in c.yaml, found none" in trimtab(*command).err
    place.calibration.write_text(CALIBRATION.replace("cluster_id: test", "cluster_id: other"))
    assert "--load: mean needs a calibration of cluster test, found c.yaml of other" in trimtab(*command).err
