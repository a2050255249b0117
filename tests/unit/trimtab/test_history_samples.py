"""The history of samples must hold every sample once, whatever stops the service, and be what the contract says."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_model.errors import ExternalError
from metrics_reporter.codec import encode
from metrics_reporter.columns import BatchColumns, decode
from metrics_reporter.sample import BatchHeader, Sample, SampleBatch, Scope
from trimtab.history.samples import SampleHistory, SampleHistoryOptions

DAY = 86_400_000
NOON = 1_767_225_600_000 + DAY // 2  # of 2026-01-01
CONTRACT = pa.schema([
    ("time", pa.timestamp("us", tz="UTC")), ("cluster_id", pa.string()), ("broker", pa.int32()), ("topic", pa.string()),
    ("partition", pa.int32()), ("metric", pa.string()), ("value", pa.float64()),
])  # fmt: skip


def batch(time_ms: int, *samples: Sample, broker: int = 1) -> BatchColumns:
    return decode(encode(SampleBatch(BatchHeader(broker, time_ms, 30_000, 1, 0), samples)))


def numbered(number: int, time_ms: int) -> BatchColumns:
    """One sample, whose value is its number."""
    return batch(time_ms, Sample(Scope.LEADER, f"t-{number % 3}", number % 5, "network_in", float(number)))


def values(root: Path) -> Counter[float]:
    if not list(root.glob("date=*/*.parquet")):
        return Counter()
    return Counter(ds.dataset(root, partitioning="hive").to_table()["value"].to_pylist())


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.glob("date=*/*"))


def test_a_row_a_sample_in_the_columns_of_the_contract(tmp_path: Path) -> None:
    with SampleHistory(tmp_path, "c-1") as history:
        samples = (
            Sample(Scope.BROKER, None, None, "cpu", 2.5),
            Sample(Scope.CAPACITY, None, None, "cpu", 8.0),
            Sample(Scope.LEADER, "orders", 3, "network_in", 100.0),
            Sample(Scope.FOLLOWER, "audit", 0, "network_in", 7.0),
            Sample(Scope.REPLICA, "audit", 1, "disk", 9.0),
        )
        history.append([batch(NOON + 1, *samples, broker=4)], {0: 1}, NOON)
        history.close(NOON)
    (path,) = tmp_path.glob("date=2026-01-01/part-*.parquet")
    assert pq.read_schema(path).remove_metadata().equals(CONTRACT)
    rows = ds.dataset(tmp_path, partitioning="hive").to_table().to_pylist()
    time = datetime(2026, 1, 1, 12, 0, 0, 1000, tzinfo=UTC)
    common = {"time": time, "cluster_id": "c-1", "broker": 4, "date": "2026-01-01"}
    assert [{k: v for k, v in row.items() if k not in common} for row in rows] == [
        {"topic": None, "partition": None, "metric": "capacity.cpu", "value": 8.0},
        {"topic": None, "partition": None, "metric": "cpu", "value": 2.5},
        {"topic": "audit", "partition": 0, "metric": "follower.network_in", "value": 7.0},
        {"topic": "orders", "partition": 3, "metric": "network_in", "value": 100.0},
        {"topic": "audit", "partition": 1, "metric": "replica.disk", "value": 9.0},
    ]
    assert all({k: str(row[k]) for k in common} == {k: str(v) for k, v in common.items()} for row in rows)


def test_what_makes_no_sense_or_is_not_there_is_no_row(tmp_path: Path) -> None:
    with SampleHistory(tmp_path, "c") as history:
        bad = [Sample(Scope.LEADER, "t", n, "cpu", v) for n, v in enumerate((math.nan, math.inf, -1.0, 0.0))]
        history.append([batch(NOON, *bad, Sample(Scope.LEADER, "t", 0, "disk", 5.0))], {0: 1}, NOON)
        history.flush(NOON)
    assert values(tmp_path) == Counter([0.0, 5.0])


def test_every_sample_is_under_its_own_day_also_when_it_comes_late(tmp_path: Path) -> None:
    with SampleHistory(tmp_path, "c") as history:
        history.append([numbered(1, NOON + DAY), numbered(2, NOON + DAY // 2 - 1), numbered(3, NOON + DAY // 2)], {0: 3}, NOON + DAY)
        history.flush(NOON + DAY)
    assert files(tmp_path) == ["date=2026-01-01/part-0000000001.parquet", "date=2026-01-02/part-0000000001.parquet"]
    table = ds.dataset(tmp_path, partitioning="hive").to_table(filter=ds.field("date") == "2026-01-01")
    assert table["value"].to_pylist() == [2.0]


def test_files_are_rolled_by_rows_and_by_age(tmp_path: Path) -> None:
    with SampleHistory(tmp_path, "c", SampleHistoryOptions(max_rows=3, max_age_ms=60_000)) as history:
        for number in range(4):
            history.append([numbered(number, NOON)], {0: number + 1}, NOON)
        assert (len(files(tmp_path)), history.state.waiting, history.state.written) == (1, 1, 3)
        history.append([], {0: 4}, NOON + 59_999)
        assert len(files(tmp_path)) == 1
        history.append([], {0: 4}, NOON + 60_000)
        assert (len(files(tmp_path)), history.state.waiting, history.state.written) == (2, 0, 4)


steps = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from(["go on", "stop", "crash"])), max_size=25)


@settings(max_examples=40, deadline=None)
@given(steps)
def test_no_sample_is_missing_or_twice_after_any_stops_and_crashes(run: Sequence[tuple[int, int, str]]) -> None:
    """A crash loses what waits; it is read again from the positions that the newest commit remembers."""
    log: list[BatchColumns] = []  # two partitions: even and odd offsets
    options = SampleHistoryOptions(max_rows=5, max_age_ms=1_000_000)
    with tempfile.TemporaryDirectory() as home:
        root = Path(home)
        history, at = SampleHistory(root, "c", options), {0: 0, 1: 0}
        for more, days, then in [*run, (0, 0, "stop"), (0, 0, "go on")]:
            log += [numbered(len(log) + i, NOON + (len(log) + i) % 3 * DAY) for i in range(more)]
            ends = {p: len(log[p::2]) for p in (0, 1)}
            new = [b for p in (0, 1) for b in log[p::2][at[p] : ends[p]]]
            at = ends
            history.append(new, at, NOON + days * DAY)
            if then == "stop":
                history.close(NOON)
            if then != "go on":
                history.__exit__(None, None, None)
                history = SampleHistory(root, "c", options)
                at = {0: 0, 1: 0} | (history.positions or {})
        history.close(NOON)
        assert values(root) == Counter(float(n) for n in range(len(log)))


WRITER = """
import sys
from pathlib import Path
from tests.unit.trimtab.test_history_samples import NOON, DAY, numbered
from trimtab.history.samples import SampleHistory, SampleHistoryOptions
history = SampleHistory(Path(sys.argv[1]), "c", SampleHistoryOptions(max_rows=2))
first = (history.positions or {0: 0})[0]
for n in range(first, 10_000):
    history.append([numbered(n, NOON + n % 2 * DAY)], {0: n + 1}, NOON)
    print(n, flush=True)
"""


def test_a_killed_writer_leaves_whole_files_and_the_next_one_goes_on_where_they_end(tmp_path: Path) -> None:
    for lines in (7, 12, 30):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        for _ in range(lines):
            assert writer.stdout.readline()
        writer.kill()
        writer.wait()
        writer.stdout.close()
    with SampleHistory(tmp_path, "c") as history:
        assert history.positions is not None
        written = history.positions[0]
    assert written >= 40
    assert values(tmp_path) == Counter(float(n) for n in range(written))
    assert not list(tmp_path.glob("date=*/.*"))


def test_a_commit_that_was_interrupted_between_its_files_does_not_count(tmp_path: Path) -> None:
    with SampleHistory(tmp_path, "c") as history:
        history.append([numbered(0, NOON)], {0: 1}, NOON)
        history.flush(NOON)
        history.append([numbered(1, NOON), numbered(2, NOON + DAY)], {0: 3}, NOON + DAY)
        history.flush(NOON + DAY)
    (tmp_path / "date=2026-01-02" / "part-0000000002.parquet").unlink()  # as if it had not come to that one
    (tmp_path / "date=2026-01-02" / ".part-0000000002.parquet.tmp").write_bytes(b"PAR1")
    with SampleHistory(tmp_path, "c") as history:
        assert history.positions == {0: 1}
        assert files(tmp_path) == ["date=2026-01-01/part-0000000001.parquet"]


def test_a_folder_that_cannot_be_written_is_told_and_nothing_is_lost_or_twice_when_it_can(tmp_path: Path) -> None:
    obstacle = tmp_path / "date=2026-01-02"
    obstacle.touch()
    with SampleHistory(tmp_path, "c", SampleHistoryOptions(max_rows=2)) as history:
        history.append([numbered(0, NOON), numbered(1, NOON + DAY)], {0: 2}, NOON + DAY)
        assert "history was not written" in str(history.state.failure)
        assert (history.state.waiting, history.positions) == (2, None)
        obstacle.unlink()
        assert history.flush(NOON + DAY)
        assert (history.state.failure, history.state.written, history.positions) == (None, 2, {0: 2})
    assert values(tmp_path) == Counter([0.0, 1.0])


def test_memory_is_bounded_while_a_folder_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "date=2026-01-01").touch()
    with SampleHistory(tmp_path, "c", SampleHistoryOptions(max_rows=2)) as history:
        for number in range(11):
            history.append([numbered(number, NOON)], {0: number + 1}, NOON)
            assert history.state.waiting < 4
        assert (history.state.dropped, history.state.waiting) == (8, 3)


def test_old_days_and_what_is_too_much_go_but_not_what_says_where_to_go_on(tmp_path: Path) -> None:
    options = SampleHistoryOptions(max_rows=1, keep_days=2)
    with SampleHistory(tmp_path, "c", options) as history:
        for day in range(4):
            history.append([numbered(day, NOON + day * DAY)], {0: day + 1}, NOON + day * DAY)
        assert [name[:15] for name in files(tmp_path)] == ["date=2026-01-03", "date=2026-01-04"]
        history.append([numbered(9, NOON)], {0: 5}, NOON + 3 * DAY)  # far too late
        assert (history.state.expired, history.state.waiting) == (1, 0)
    with SampleHistory(tmp_path, "c", SampleHistoryOptions(max_rows=1, keep_bytes=0)) as history:
        history.append([numbered(4, NOON + 3 * DAY)], {0: 6}, NOON + 3 * DAY)
        assert files(tmp_path) == ["date=2026-01-04/part-0000000005.parquet"]
    with SampleHistory(tmp_path, "c") as history:
        assert history.positions == {0: 6}


def test_two_processes_do_not_write_one_history(tmp_path: Path) -> None:
    with SampleHistory(tmp_path, "c"), pytest.raises(ExternalError, match="another process writes this history"):
        SampleHistory(tmp_path, "c")
    SampleHistory(tmp_path, "c").close(NOON)


def test_a_damaged_newest_file_is_named(tmp_path: Path) -> None:
    with SampleHistory(tmp_path, "c", SampleHistoryOptions(max_rows=1)) as history:
        history.append([numbered(0, NOON)], {0: 1}, NOON)
    (path,) = tmp_path.glob("date=*/*.parquet")
    path.write_bytes(b"nonsense")
    with pytest.raises(ExternalError, match=r"part-0000000001\.parquet: expected a Parquet file"):
        SampleHistory(tmp_path, "c")
    path.unlink()
    SampleHistory(tmp_path, "c").close(NOON)  # the lock was let go
