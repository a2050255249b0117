"""What is wrong with a mapping is told with its place before Spark starts; the shipped one is a start for an own."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spark.history.mapping import CsvMapping, PrometheusMapping
from spark.session import SHORT_BYTES
from tests.assembled.commands.command_line import CommandLine
from trimtab.commands.history_import import load_mapping
from trimtab.commands.spark_options import is_short, is_uri, only_writer
from trimtab.history.lock import locked

ROOT = Path(__file__).resolve().parents[3]


def test_the_shipped_mapping_is_printed_and_can_be_given_back(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("history", "mapping")
    assert ended.code == 0
    own = tmp_path / "own.yaml"
    own.write_text(ended.out)
    mapping = load_mapping("prometheus", own)
    assert mapping == load_mapping("prometheus", None)
    assert isinstance(mapping, PrometheusMapping)
    summed = {s.metric: s.summands for s in mapping.sources() if s.about == "broker"}
    assert summed == {"network_in": 2, "network_out": 2, "produce_rate": 1, "fetch_rate": 1, "cpu": 1}


def test_the_shipped_mapping_is_there_where_spark_submit_has_the_package_as_a_zip(tmp_path: Path) -> None:
    package = tmp_path / "trimtab.zip"
    with zipfile.ZipFile(package, "w") as archive:
        for room in ("cluster_model", "goals", "metrics_reporter", "optimizer", "spark", "trimtab"):
            for path in (ROOT / room).rglob("*"):
                if path.suffix in (".py", ".yaml"):
                    archive.write(path, path.relative_to(ROOT))
    asked = f"import sys; sys.path.insert(0, {str(package)!r}); from trimtab.commands import history_import as it"
    told = "print(it.__file__); print(it.load_mapping('prometheus', None).version)"
    ended = subprocess.run([sys.executable, "-c", f"{asked}; {told}"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == [str(package / "trimtab" / "commands" / "history_import.py"), "1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 1\nbrocker: {cpu: x}\n", "brocker: unknown key"),
        ("version: 1\nbroker: {cpu: {nam: x}}\n", "broker.cpu[0].nam: unknown key"),
        ("version: 1\nbroker_id: {pattern: '('}\n", "expected a regular expression"),
        ("version: 1\nbroker_id: {pattern: 'kafka'}\n", "expected one group in parentheses"),
        ("broker: {}\n", "version: missing"),
    ],
)
def test_a_wrong_mapping_is_refused_before_anything_is_read(trimtab: CommandLine, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "m.yaml").write_text(text)
    out = str(tmp_path / "out")
    ended = trimtab("history", "import", "--from", "x", "--form", "prometheus", "--mapping", str(tmp_path / "m.yaml"), "--out", out)
    assert ended.code == 2
    assert said in ended.err


def test_an_import_of_prometheus_needs_to_know_the_cluster(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("history", "import", "--from", "x", "--form", "prometheus", "--out", str(tmp_path / "out"))
    assert (ended.code, "--cluster-id: the cluster of the samples is not known" in ended.err) == (2, True)


def test_a_column_may_be_named_alone(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("version: 1\nvalues: {cpu: cores, network_in: {column: in, kind: counter}}\n")
    mapping = load_mapping("csv", tmp_path / "m.yaml")
    assert isinstance(mapping, CsvMapping)
    assert [(c.column, c.kind) for c in mapping.values.values()] == [("cores", "gauge"), ("in", "counter")]


def test_two_that_write_one_history_do_not_do_so_at_once(trimtab: CommandLine, tmp_path: Path) -> None:
    """Both found no such day before they wrote, and one of them was left half in place."""
    out = tmp_path / "out"
    with locked(out):  # as another import has it, a backfill, or the service
        ended = trimtab("history", "import", "--from", "x", "--form", "csv", "--cluster-id", "c", "--out", str(out))
    assert ended.code == 1
    assert "another process writes this history" in ended.err


def test_samples_that_are_not_there_are_refused_before_spark_starts(
    trimtab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark took its time, and a page of Java stood above the one sentence that helps."""
    monkeypatch.setattr("spark.session.session", lambda *_: pytest.fail("Spark was started"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    given = ("history", "import", "--from", "there", "--from", "gone/*.csv", "--from", "gone.csv", "--form", "csv", "--cluster-id", "c")
    ended = trimtab(*given, "--out", tmp_path / "out")
    assert ended.code == 2
    assert "--from: there is nothing at gone/*.csv\n" in ended.err
    assert "--from: there is nothing at gone.csv\n" in ended.err
    assert "nothing at there" not in ended.err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_was_made_for_the_lock_goes_with_it_and_a_uri_makes_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"), only_writer(str(tmp_path / "new")):
        raise ValueError("no such file")
    with only_writer(str(tmp_path / "full")):
        (tmp_path / "full" / "date=2026-11-20").mkdir()
    with only_writer(f"file:{tmp_path}/elsewhere"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["full"]
    assert is_uri("s3a://b/h")
    assert not is_uri("C")


def test_a_small_history_here_gets_a_short_run_and_any_other_does_not(tmp_path: Path) -> None:
    """A large one would be slow with two partitions; of an object store nothing is known before Spark runs."""
    day = tmp_path / "h" / "date=2026-11-20"
    day.mkdir(parents=True)
    (day / "a.parquet").write_bytes(b"PAR1")
    assert is_short(str(tmp_path / "h"))
    assert is_short(str(day / "a.parquet"))
    with (day / "b.parquet").open("wb") as file:
        file.truncate(SHORT_BYTES)
    assert not is_short(str(tmp_path / "h"))
    assert not is_short("s3a://metrics/h")
    assert not is_short(str(tmp_path / "none"))


def test_a_folder_without_parquet_is_refused_before_spark_starts(trimtab: CommandLine, tmp_path: Path) -> None:
    """It took ten seconds and a page of Java to say so."""
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "samples.json").write_text("{}")
    ended = trimtab("calibrate", "--history", tmp_path / "h", "--out", tmp_path / "calibration.yaml")
    assert (ended.code, "there is no Parquet file in it" in ended.err, "starting Spark" in ended.err) == (2, True, False)
