"""History of decisions: what was planned or not, why, and what came of it; one SQLite file.

Written by the service (each decision before anything is done about it), read by its HTTP interface, by guards that count
what was done in the last hour, and by people: docs/history.md has the tables. May be called from any thread. Time comes in
by parameter.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Literal, Self

from cluster_model.errors import ExternalError
from trimtab.history.records import Decision, Done, GoalStanding, Outcome, Recorded, ms_of, text_of

VERSION = 1
BUSY_TIMEOUT_S = 10.0

# Times are texts, ISO 8601 in UTC with milliseconds, so that they sort, and people and Spark read them.
SCHEMA = """
CREATE TABLE IF NOT EXISTS decision (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    began TEXT NOT NULL,
    ended TEXT NOT NULL,
    cluster_id TEXT NOT NULL,
    instance TEXT NOT NULL,
    controller INTEGER,
    controller_epoch INTEGER,
    cause TEXT NOT NULL,
    mode TEXT NOT NULL,
    verdict TEXT NOT NULL,
    reason TEXT NOT NULL,
    horizon TEXT,
    snapshot_digest TEXT,
    goals_digest TEXT,
    plan_id TEXT,
    actions INTEGER NOT NULL,
    replica_moves INTEGER NOT NULL,
    leadership_changes INTEGER NOT NULL,
    bytes_to_move INTEGER NOT NULL,
    plan BLOB);
CREATE INDEX IF NOT EXISTS decision_began ON decision (began);
CREATE INDEX IF NOT EXISTS decision_plan ON decision (plan_id);
CREATE TABLE IF NOT EXISTS goal (
    decision_id INTEGER NOT NULL REFERENCES decision (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    hard INTEGER NOT NULL,
    status TEXT NOT NULL,
    violations_before INTEGER,
    violations_after INTEGER,
    deviation_before REAL,
    deviation_after REAL,
    PRIMARY KEY (decision_id, name));
CREATE TABLE IF NOT EXISTS outcome (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    decision_id INTEGER NOT NULL REFERENCES decision (id) ON DELETE CASCADE,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    who TEXT NOT NULL,
    detail TEXT NOT NULL,
    replica_moves INTEGER NOT NULL,
    leadership_changes INTEGER NOT NULL,
    bytes_moved INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS outcome_decision ON outcome (decision_id);
CREATE INDEX IF NOT EXISTS outcome_time ON outcome (time);
CREATE TABLE IF NOT EXISTS moved (
    time TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    plan_id TEXT NOT NULL,
    PRIMARY KEY (time, topic, partition)) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS story AS
    SELECT began AS time, id AS decision_id, instance AS who, verdict AS what, reason AS detail,
           replica_moves, leadership_changes, bytes_to_move AS bytes FROM decision
    UNION ALL
    SELECT time, decision_id, who, kind, detail, replica_moves, leadership_changes, bytes_moved FROM outcome
    ORDER BY time, decision_id;
"""

MOVED_BY_OTHERS = """
WITH own AS (SELECT plan_id, SUM(o.replica_moves) AS moves,
                    MAX(CASE WHEN who = 'executor' AND kind IN ('done', 'failed', 'cancelled', 'rolled_back')
                             THEN time ELSE '' END) AS ended
             FROM outcome o JOIN decision d ON d.id = o.decision_id GROUP BY plan_id),
     there AS (SELECT plan_id, COUNT(*) AS moves
               FROM (SELECT DISTINCT plan_id, topic, partition FROM moved LEFT JOIN own USING (plan_id)
                     WHERE time >= ? AND time > COALESCE(ended, '')) GROUP BY plan_id)
SELECT SUM(MAX(there.moves - COALESCE(own.moves, 0), 0)) FROM there LEFT JOIN own USING (plan_id)
"""

_FIELDS = (
    "instance", "controller", "controller_epoch", "cause", "mode", "verdict", "reason", "horizon", "snapshot_digest",
    "goals_digest", "plan_id", "actions", "replica_moves", "leadership_changes", "bytes_to_move",
)  # fmt: skip
_COLUMNS = f"id, began, ended, {', '.join(_FIELDS)}"


class DecisionHistory:
    """The file, open for reading and writing.

    Parameters
    ----------
    path
        Created where absent.

    Raises
    ------
    ExternalError
        The file cannot be opened or is something else.
    """

    def __init__(self, path: Path, cluster_id: str) -> None:
        self.path, self._cluster_id, self._lock = path, cluster_id, Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as e:
            raise ExternalError(f"{path}: expected a file that can be opened as history of decisions: {e}") from e
        try:
            self._open()
        except ExternalError:
            self._db.close()
            raise
        except sqlite3.OperationalError as e:
            self._db.close()
            raise ExternalError(f"{path}: the history of decisions cannot be opened: {e}", retriable=True) from e
        except sqlite3.Error as e:
            self._db.close()
            raise ExternalError(
                f"{path}: expected a history of decisions, found something else ({e}); move it away or choose another file"
            ) from e

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")  # decisions are few, and must not be lost
        self._db.execute("PRAGMA foreign_keys=ON")
        version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise ExternalError(
                f"{self.path}: expected version {VERSION} of the history of decisions, found {version}, which a later"
                " release wrote; choose another file or use that release"
            )
        self._db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version={VERSION}; COMMIT;")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    # -- writing -------------------------------------------------------------------------------------------

    def record(self, decision: Decision) -> int:
        """Keep a decision, durably; its id."""
        d = decision
        plan = None if d.plan is None else zlib.compress(d.plan.encode())
        with self._transaction() as db:
            row = db.execute(
                f"INSERT INTO decision VALUES (NULL{', ?' * 19})",
                (
                    text_of(d.began_ms), text_of(d.ended_ms), self._cluster_id, d.instance, d.controller, d.controller_epoch,
                    d.cause, d.mode, d.verdict, d.reason, d.horizon, d.snapshot_digest, d.goals_digest, d.plan_id,
                    d.actions, d.replica_moves, d.leadership_changes, d.bytes_to_move, plan,
                ),
            )  # fmt: skip
            id = int(row.lastrowid or 0)
            db.executemany(
                "INSERT INTO goal VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (id, g.name, g.hard, g.status, g.violations_before, g.violations_after, g.deviation_before, g.deviation_after)
                    for g in d.goals
                ],
            )
        return id

    def add_outcome(self, decision_id: int, outcome: Outcome) -> None:
        """Keep what came of a decision, durably.

        Raises
        ------
        ExternalError
            There is no such decision (any more), or the file cannot be written.
        """
        o = outcome
        with self._transaction() as db:
            db.execute(
                "INSERT INTO outcome VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
                (decision_id, text_of(o.time_ms), o.kind, o.who, o.detail, o.replica_moves, o.leadership_changes, o.bytes_moved),
            )

    def add_moved(self, time_ms: int, plan_id: str, partitions: Iterable[tuple[str, int]]) -> None:
        """Keep, durably, which partitions a plan moved; what is kept already is not kept twice."""
        with self._transaction() as db:
            rows = [(text_of(time_ms), topic, number, plan_id) for topic, number in partitions]
            db.executemany("INSERT OR IGNORE INTO moved VALUES (?, ?, ?, ?)", rows)

    def retain(self, now_ms: int, *, keep_days: int, keep_plan_days: int, keep_plan_bytes: int) -> int:
        """Delete decisions, with what came of them, that started more than `keep_days` ago, and the texts of plans of more
        than `keep_plan_days` ago or beyond so many bytes, the newest excepted; how many decisions went."""
        day = 86_400_000
        with self._transaction() as db:
            gone = db.execute("DELETE FROM decision WHERE began < ?", (text_of(now_ms - keep_days * day),)).rowcount
            db.execute("DELETE FROM moved WHERE time < ?", (text_of(now_ms - keep_days * day),))
            db.execute(
                "UPDATE decision SET plan = NULL WHERE plan IS NOT NULL AND began < ?",
                (text_of(now_ms - keep_plan_days * day),),
            )
            kept = 0
            sizes = db.execute("SELECT id, LENGTH(plan) FROM decision WHERE plan IS NOT NULL ORDER BY id DESC")
            for place, (id, size) in enumerate(sizes.fetchall()):
                kept += size
                if place and kept > keep_plan_bytes:
                    db.execute("UPDATE decision SET plan = NULL WHERE plan IS NOT NULL AND id <= ?", (id,))
                    break
        return gone

    # -- reading -------------------------------------------------------------------------------------------

    def newest(self, limit: int, *, before: int | None = None) -> list[Recorded]:
        """Decisions, newest first; of those older than the decision `before`, where it is given."""
        query = f"SELECT {_COLUMNS} FROM decision WHERE id < ? ORDER BY id DESC LIMIT ?"
        with self._reading() as db:
            rows = db.execute(query, (2**62 if before is None else before, limit)).fetchall()
            return [self._recorded(db, row) for row in rows]

    def find(self, plan_id: str) -> Recorded | None:
        """The newest decision for a plan."""
        with self._reading() as db:
            row = db.execute(f"SELECT {_COLUMNS} FROM decision WHERE plan_id = ? ORDER BY id DESC LIMIT 1", (plan_id,)).fetchone()
            return None if row is None else self._recorded(db, row)

    def plan(self, decision_id: int) -> str | None:
        """The text of a decision's plan; None where there was none, or it is not kept any more."""
        with self._reading() as db:
            row = db.execute("SELECT plan FROM decision WHERE id = ?", (decision_id,)).fetchone()
        return None if row is None or row[0] is None else zlib.decompress(row[0]).decode()

    def done_since(self, time_ms: int) -> Done:
        """What was really done from a time on, for limits per hour that a restart does not forget. Partitions that a plan moved, as far as
        its outcomes do not have them, were moved by another instance, a command, or this instance before it was killed; each is a move.
        What this instance ended counts as its outcomes have it: steps that were taken back are no moves."""
        query = "SELECT SUM(replica_moves), SUM(leadership_changes), SUM(bytes_moved) FROM outcome WHERE time >= ?"
        with self._reading() as db:
            moves, leaders, size = db.execute(query, (text_of(time_ms),)).fetchone()
            others = db.execute(MOVED_BY_OTHERS, (text_of(time_ms),)).fetchone()[0]
        return Done(int(moves or 0) + int(others or 0), int(leaders or 0), int(size or 0))

    def moved_since(self, time_ms: int) -> tuple[tuple[str, int], ...]:
        """Topic and number of the partitions that were moved from a time on, in ascending order."""
        query = "SELECT DISTINCT topic, partition FROM moved WHERE time >= ? ORDER BY topic, partition"
        with self._reading() as db:
            return tuple((str(topic), int(number)) for topic, number in db.execute(query, (text_of(time_ms),)))

    def rows(self, table: Literal["decision", "goal", "outcome"]) -> tuple[list[str], list[tuple[object, ...]]]:
        """Names of the columns and all rows of a table, plans' texts left out; for export."""
        hidden = {"plan"}
        with self._reading() as db:
            names = [row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[1] not in hidden]
            return names, db.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2").fetchall()

    def _recorded(self, db: sqlite3.Connection, row: Sequence[object]) -> Recorded:
        id, began, ended, *rest = row
        goals = db.execute("SELECT * FROM goal WHERE decision_id = ? ORDER BY rowid", (id,)).fetchall()
        outcomes = db.execute(
            "SELECT time, kind, who, detail, replica_moves, leadership_changes, bytes_moved FROM outcome"
            " WHERE decision_id = ? ORDER BY id",
            (id,),
        ).fetchall()
        values: dict[str, object] = dict(zip(_FIELDS, rest, strict=True))
        standings = tuple(GoalStanding(g[1], bool(g[2]), *g[3:]) for g in goals)
        decision = Decision(began_ms=ms_of(str(began)), ended_ms=ms_of(str(ended)), goals=standings, **values)  # type: ignore[arg-type]
        return Recorded(int(str(id)), decision, tuple(Outcome(ms_of(o[0]), *o[1:]) for o in outcomes))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                except BaseException:
                    with suppress(sqlite3.OperationalError):  # a full disk has ended it already
                        self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
            except sqlite3.IntegrityError as e:
                raise ExternalError(f"{self.path}: expected a decision that is in the history, found none ({e})") from e
            except sqlite3.Error as e:
                raise ExternalError(f"{self.path}: the decision was not kept: {e}", retriable=True) from e

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except sqlite3.Error as e:
                raise ExternalError(f"{self.path}: the history of decisions could not be read: {e}", retriable=True) from e
