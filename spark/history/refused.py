"""What an import did not take: counted by reason with an example each, and kept as Parquet where that is asked for.

Told by `spark.history.answers` and `spark.history.prometheus_form`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = Callable[[], Mapping[str, Any]]
"""Columns of `SCHEMA` that are known of refused rows, arrays or one value for all."""
SCHEMA = pa.schema([
    ("time", pa.timestamp("us", tz="UTC")), ("cluster_id", pa.string()), ("broker", pa.int32()), ("topic", pa.string()),
    ("partition", pa.int32()), ("metric", pa.string()), ("value", pa.float64()), ("date", pa.date32()), ("reason", pa.string()),
    ("source", pa.string()),
])  # fmt: skip


class Refused:
    """Counts, and where `folder` is given, rows in files there."""

    def __init__(self, folder: Path | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self._folder, self._files = folder, 0

    def example(self, reason: str) -> str | None:
        """The one that is kept; None where every row needs its own source, since rows are kept."""
        return None if self._folder is not None else self.examples.get(reason)

    def add(self, reason: str, source: str, count: int = 1, rows: Rows | None = None) -> None:
        """Count `count` rows with a reason; `source` says where the first of them was found."""
        if count <= 0:
            return
        self.counts[reason] += count
        self.examples[reason] = min(self.examples.get(reason, source), source)
        if self._folder is None:
            return
        known = {"source": source, "reason": reason} | dict(rows() if rows is not None else {})
        arrays = [_column(known.get(one.name), one.type, count) for one in SCHEMA]
        self._folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(arrays, schema=SCHEMA), self._folder / f"part-{self._files:06d}.parquet", compression="zstd")
        self._files += 1


def _column(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    if value is None or isinstance(value, str | int):
        return pa.array([value] * count, kind)
    array = pa.array(value)
    return array.cast(pa.int64()).cast(kind) if pa.types.is_timestamp(kind) else array.cast(kind)
