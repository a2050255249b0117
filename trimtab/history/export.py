"""Decisions and outcomes as Parquet, for Spark, which reads no SQLite without help.

Called by the service after decisions, and by operators who have the SQLite file. The files are made again as a whole each time:
decisions are few.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from cluster_model.errors import ExternalError
from cluster_model.extras import missing
from trimtab.history.decisions import DecisionHistory
from trimtab.history.records import ms_of

Table = Literal["decision", "goal", "outcome"]
TABLES: tuple[Table, ...] = ("decision", "goal", "outcome")
TIMES = frozenset({"began", "ended", "time"})
NUMBERS = frozenset({"deviation_before", "deviation_after"})
WHOLE = frozenset({
    "id", "decision_id", "controller", "controller_epoch", "actions", "replica_moves", "leadership_changes",
    "bytes_to_move", "bytes_moved", "violations_before", "violations_after",
})  # fmt: skip


def export(history: DecisionHistory, folder: Path) -> list[Path]:
    """Write ``decision.parquet``, ``goal.parquet`` and ``outcome.parquet``; their paths. Times become timestamps.

    Raises
    ------
    ExternalError
        The folder cannot be written, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ExternalError(f"{folder}: Parquet needs {missing('pyarrow')}") from None
    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in TABLES:
            names, rows = history.rows(table)
            arrays = [_column(name, [row[place] for row in rows]) for place, name in enumerate(names)]
            path, unfinished = folder / f"{table}.parquet", folder / f".{table}.parquet.tmp"
            pq.write_table(pa.table(dict(zip(names, arrays, strict=True))), unfinished, compression="zstd", store_schema=False)
            os.replace(unfinished, path)
            made.append(path)
    except OSError as e:
        raise ExternalError(f"{folder}: the history of decisions was not exported: {e}", retriable=True) from e
    return made


def _column(name: str, values: list[object]) -> object:
    import pyarrow as pa

    if name in TIMES:
        return pa.array([1000 * ms_of(str(value)) for value in values], pa.timestamp("us", tz="UTC"))
    if name in NUMBERS:
        return pa.array(values, pa.float64())
    if name in WHOLE:
        return pa.array(values, pa.int64())
    if name == "hard":
        return pa.array([bool(value) for value in values], pa.bool_())
    return pa.array(values, pa.string())
