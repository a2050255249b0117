"""Every decision and what came of it must be found again, after a crash too, by the service, by people and by Spark."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_model.errors import ExternalError
from trimtab.history.decisions import DecisionHistory
from trimtab.history.export import export
from trimtab.history.records import Decision, Done, GoalStanding, Outcome, ms_of, text_of

NOW = 1_767_268_800_123
HOUR, DAY = 3_600_000, 86_400_000
NOTHING = Decision(NOW, NOW + 40, "controller-1", "interval", "dry-run", "nothing", "all brokers are within their target range")
PLANNED = Decision(
    NOW + 1000, NOW + 1900, "controller-1", "broker lost", "approve", "planned", "broker 3 holds replicas and is gone",
    controller=1, controller_epoch=7, horizon="long", snapshot_digest="sha256:aa", goals_digest="sha256:bb",
    plan_id="sha256:cc", actions=3, replica_moves=2, leadership_changes=1, bytes_to_move=5 * 10**12,
    goals=(GoalStanding("rack", True, "satisfied", 0, 0), GoalStanding("in", False, "improved", 4, 0, 0.31, 0.09)),
    plan='{"plan_id": "sha256:cc", "text": "äöü"}',
)  # fmt: skip


def test_decisions_come_back_as_they_were_newest_first(tmp_path: Path) -> None:
    with DecisionHistory(tmp_path / "new" / "decisions.db", "c-1") as history:
        first, second = history.record(NOTHING), history.record(PLANNED)
        history.add_outcome(second, Outcome(NOW + 5000, "approved", "ada", "looks right"))
        history.add_outcome(second, Outcome(NOW + 9000, "done", "executor", "", 2, 1, 5 * 10**12))
    with DecisionHistory(tmp_path / "new" / "decisions.db", "c-1") as history:
        newest = history.newest(10)
        assert [r.id for r in newest] == [second, first]
        assert newest[0].decision == replace(PLANNED, plan=None)
        assert newest[1].decision == NOTHING
        assert [o.kind for o in newest[0].outcomes] == ["approved", "done"]
        assert newest[0].outcomes[1].bytes_moved == 5 * 10**12
        assert history.newest(10, before=second) == [newest[1]]
        assert history.newest(1) == [newest[0]]
        assert history.find("sha256:cc") == newest[0]
        assert history.find("sha256:dd") is None
        assert history.plan(second) == PLANNED.plan
        assert history.plan(first) is None


def test_a_decision_is_kept_when_the_process_is_killed_right_after(tmp_path: Path) -> None:
    path = tmp_path / "decisions.db"
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from trimtab.history.decisions import DecisionHistory\n"
        "from tests.unit.trimtab.test_history_decisions import PLANNED\n"
        "DecisionHistory(Path(sys.argv[1]), 'c').record(PLANNED); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9
    with DecisionHistory(path, "c") as history:
        assert [r.decision.plan_id for r in history.newest(5)] == ["sha256:cc"]


def test_a_limit_per_hour_counts_what_was_done_and_survives_a_restart(tmp_path: Path) -> None:
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        id = history.record(PLANNED)
        for ago, moves in ((HOUR + 1, 100), (HOUR, 10), (5, 1)):
            history.add_outcome(id, Outcome(NOW - ago, "done", "executor", "", moves, 2 * moves, 3 * moves))
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        assert history.done_since(NOW - HOUR) == Done(11, 22, 33)
        assert history.done_since(NOW) == Done(0, 0, 0)


def test_a_limit_per_hour_counts_what_others_moved_and_nothing_twice(tmp_path: Path) -> None:
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        own = history.record(PLANNED)
        history.add_outcome(own, Outcome(NOW - HOUR - 1, "noted", "executor", "", 2, 0, 0))
        history.add_outcome(own, Outcome(NOW - 5, "failed", "service", "killed", 1, 0, 0))
        history.add_moved(NOW - 3, "sha256:cc", [("orders", n) for n in range(4)])  # one more after it was killed
        for at in (NOW - 4, NOW - 2):
            history.add_moved(at, "sha256:by-another", [("orders", 7), ("orders", 8)])
        history.add_moved(NOW - HOUR - 1, "sha256:long-ago", [("orders", 9)])
        assert history.done_since(NOW - HOUR).replica_moves == 1 + 1 + 2
        stopped = history.record(replace(PLANNED, plan_id="sha256:stopped"))
        history.add_moved(NOW - 8, "sha256:stopped", [("orders", n) for n in range(4)])
        history.add_outcome(stopped, Outcome(NOW - 7, "cancelled", "executor", "taken back"))
        assert history.done_since(NOW - HOUR).replica_moves == 4, "what was taken back is no move"
        history.add_moved(NOW - 6, "sha256:stopped", [("orders", 1)])
        assert history.done_since(NOW - HOUR).replica_moves == 5, "unless another instance carried it out since"


def test_a_full_disk_is_told_as_one(tmp_path: Path) -> None:
    """SQLite ends the transaction by itself then, and what was told was that it could not be ended again."""
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        history.record(PLANNED)
        history._db.execute("PRAGMA max_page_count = 1")  # as many pages as there are, and no more
        large = replace(PLANNED, plan=os.urandom(1_000_000).hex())
        with pytest.raises(ExternalError, match="the decision was not kept: database or disk is full") as refused:
            history.record(large)
        assert refused.value.retriable
        history._db.execute("PRAGMA max_page_count = 1000000")
        history.record(PLANNED)


def test_an_outcome_needs_its_decision(tmp_path: Path) -> None:
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        with pytest.raises(ExternalError, match="expected a decision that is in the history"):
            history.add_outcome(77, Outcome(NOW, "done", "executor"))
        history.record(NOTHING)  # goes on working


def test_old_decisions_go_with_their_outcomes_and_old_plans_lose_their_text(tmp_path: Path) -> None:
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        for days in (10, 5, 0):
            id = history.record(replace(PLANNED, began_ms=NOW - days * DAY, plan_id=f"sha256:{days}"))
            history.add_outcome(id, Outcome(NOW, "done", "executor", "", 1))
        assert history.retain(NOW, keep_days=7, keep_plan_days=2, keep_plan_bytes=10**9) == 1
        kept = history.newest(9)
        assert [r.decision.plan_id for r in kept] == ["sha256:0", "sha256:5"]
        assert [history.plan(r.id) is None for r in kept] == [False, True]
        assert len(history.rows("outcome")[1]) == 2
        assert len(history.rows("goal")[1]) == 4


def test_texts_of_plans_go_oldest_first_beyond_their_bytes_and_the_newest_stays(tmp_path: Path) -> None:
    """A dry run of a large skewed cluster makes a plan of some ten megabytes every interval: the disk would be full within weeks."""
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        ids = [history.record(replace(PLANNED, plan="".join(chr(33 + (i * i) % 90) for i in range(5000)))) for _ in range(6)]
        (size,) = {row[0] for row in sqlite3.connect(tmp_path / "d.db").execute("SELECT LENGTH(plan) FROM decision")}
        history.retain(NOW, keep_days=10**4, keep_plan_days=10**4, keep_plan_bytes=3 * size)
        assert [history.plan(id) is not None for id in ids] == [False, False, False, True, True, True]
        history.retain(NOW, keep_days=10**4, keep_plan_days=10**4, keep_plan_bytes=1)
        assert [history.plan(id) is not None for id in ids] == [False, False, False, False, False, True]
        assert len(history.newest(9)) == 6, "the decisions themselves stay"


def test_people_read_it_with_sqlite_alone_while_it_is_open(tmp_path: Path) -> None:
    with DecisionHistory(tmp_path / "d.db", "c-1") as history:
        id = history.record(PLANNED)
        history.add_outcome(id, Outcome(NOW + 5000, "approved", "ada", "looks right"))
        reader = sqlite3.connect(tmp_path / "d.db")
        assert reader.execute("SELECT time, who, what, detail FROM story").fetchall() == [
            ("2026-01-01T12:00:01.123Z", "controller-1", "planned", "broker 3 holds replicas and is gone"),
            ("2026-01-01T12:00:05.123Z", "ada", "approved", "looks right"),
        ]
        reader.close()


def test_spark_reads_the_same_from_parquet(tmp_path: Path) -> None:
    with DecisionHistory(tmp_path / "d.db", "c-1") as history:
        export(history, tmp_path / "lake")  # also with nothing in it
        id = history.record(PLANNED)
        history.record(NOTHING)
        history.add_outcome(id, Outcome(NOW + 5000, "done", "executor", "", 2, 1, 7))
        paths = export(history, tmp_path / "lake")
    assert [path.name for path in paths] == ["decision.parquet", "goal.parquet", "outcome.parquet"]
    decisions, goals, outcomes = (pq.read_table(path) for path in paths)
    assert decisions.schema.field("began").type == pa.timestamp("us", tz="UTC")
    first, second = decisions.to_pylist()
    assert first["began"] == datetime(2026, 1, 1, 12, 0, 1, 123_000, tzinfo=UTC)
    assert (first["cluster_id"], first["controller_epoch"], first["bytes_to_move"]) == ("c-1", 7, 5 * 10**12)
    assert (second["verdict"], second["plan_id"], second["controller"]) == ("nothing", None, None)
    assert goals.to_pylist()[0] == {
        "decision_id": id, "name": "in", "hard": False, "status": "improved", "violations_before": 4, "violations_after": 0,
        "deviation_before": 0.31, "deviation_after": 0.09,
    }  # fmt: skip
    assert [o["bytes_moved"] for o in outcomes.to_pylist()] == [7]
    assert sorted(path.name for path in (tmp_path / "lake").iterdir()) == [path.name for path in paths]


def test_several_threads_may_write(tmp_path: Path) -> None:
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        threads = [
            threading.Thread(target=lambda: [history.record(NOTHING) and history.newest(1) for _ in range(10)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(history.newest(100)) == 40


def test_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not a database, but longer than its header would have to be " * 20)
    with pytest.raises(ExternalError, match=r"notes\.txt: expected a history of decisions"):
        DecisionHistory(other, "c")
    assert other.read_text().startswith("not a database")
    with pytest.raises(ExternalError, match="expected a file that can be opened"):
        DecisionHistory(tmp_path, "c")
    later = tmp_path / "later.db"
    with sqlite3.connect(later) as db:
        db.execute("PRAGMA user_version=99")
    with pytest.raises(ExternalError, match="found 99, which a later release wrote"):
        DecisionHistory(later, "c")


@given(st.integers(0, 253_402_300_799_999), st.integers(0, 253_402_300_799_999))
def test_times_are_texts_that_sort_as_times_do(a: int, b: int) -> None:
    assert ms_of(text_of(a)) == a
    assert (text_of(a) < text_of(b)) == (a < b)


def test_what_was_moved_is_kept_once_and_for_as_long_as_decisions(tmp_path: Path) -> None:
    day = 86_400_000
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        history.add_moved(5 * day, "p1", [("b", 2), ("a", 10)])
        history.add_moved(5 * day, "p1", [("b", 2), ("a", 9)])
        history.add_moved(6 * day, "p2", [("b", 2)])
        assert history.moved_since(5 * day) == (("a", 9), ("a", 10), ("b", 2))
        assert history.moved_since(5 * day + 1) == (("b", 2),)
        history.retain(16 * day, keep_days=10, keep_plan_days=1, keep_plan_bytes=1)
        assert history.moved_since(0) == (("b", 2),)


def test_a_span_that_reaches_before_1970_reaches_everything(tmp_path: Path) -> None:
    """`partition_cooldown: 1000000d` ended the planner's thread: that long ago is no year."""
    with DecisionHistory(tmp_path / "d.db", "c") as history:
        history.record(NOTHING)
        history.add_moved(NOW, "p1", [("a", 1)])
        assert history.moved_since(NOW - 1_000_000 * DAY) == (("a", 1),)
        history.retain(NOW, keep_days=1_000_000, keep_plan_days=1_000_000, keep_plan_bytes=1)
        assert len(history.newest(2)) == 1
