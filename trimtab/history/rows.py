"""Batches as rows of history: one row a sample, as docs/history.md and the contract have them.

Called by `trimtab.history.samples`. A buffer of columns in, Arrow tables of one day each out; no files, no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from metrics_reporter.columns import BatchColumns
from metrics_reporter.sample import BROKER_SCOPES, HISTORY_PREFIXES

if TYPE_CHECKING:
    import pyarrow as pa

Array = npt.NDArray[np.generic]

DAY_MS = 86_400_000
NOBODY = -1  # code of a topic, and number of a partition, where a row is about the whole broker


class _Columns:
    """Growing columns of one day: time ms, broker, topic code, partition, metric code, value."""

    def __init__(self) -> None:
        self.count = 0
        self._arrays: list[Array] = [np.empty(1024, dtype=t) for t in (np.int64, *4 * [np.int32], np.float64)]

    def add(self, rows: int, *values: Array | int) -> None:
        """Append rows; a single value stands for all of them."""
        begin, self.count = self.count, self.count + rows
        if self.count > len(self._arrays[0]):
            room = max(self.count, 2 * len(self._arrays[0]))
            self._arrays = [np.resize(array, room) for array in self._arrays]
        for array, value in zip(self._arrays, values, strict=True):
            array[begin : self.count] = value

    def whole(self) -> list[Array]:
        return [array[: self.count] for array in self._arrays]


class RowBuffer:
    """Rows in the order they came, columnar; topics and metrics as codes."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._topics: dict[str, int] = {}
        self._metrics: dict[str, int] = {}
        self._days: dict[int, _Columns] = {}

    @property
    def rows(self) -> int:
        return sum(day.count for day in self._days.values())

    def add(self, batch: BatchColumns) -> None:
        """Take every value that is present and makes sense (finite, not negative)."""
        topics = np.array([self._topics.setdefault(name, len(self._topics)) for name in batch.topics], dtype=np.int32)
        day = self._days.setdefault(batch.time_ms // DAY_MS, _Columns())
        for block in batch.blocks:
            with np.errstate(invalid="ignore"):
                present = np.isfinite(block.values) & (block.values >= 0.0)
            present &= np.array([bool(metric) for metric in block.metrics])[:, None]
            metric, row = np.nonzero(present)
            names = [HISTORY_PREFIXES[block.scope] + name for name in block.metrics]
            codes = np.array([self._metrics.setdefault(name, len(self._metrics)) for name in names], dtype=np.int32)
            of_broker = block.scope in BROKER_SCOPES
            day.add(
                len(row), batch.time_ms, batch.broker,
                NOBODY if of_broker else topics[block.topic[row]], NOBODY if of_broker else block.partition[row],
                codes[metric], block.values[metric, row],
            )  # fmt: skip

    def drop_days_before(self, day: int) -> int:
        """Forget rows of earlier days; how many there were."""
        before = self.rows
        for old in [d for d in self._days if d < day]:
            del self._days[old]
        return before - self.rows

    def tables(self) -> Iterator[tuple[int, pa.Table]]:
        """Each day's rows, the days ascending: by metric, topic, partition, then as they came. O(rows log rows)."""
        for number, day in sorted(self._days.items()):
            if not day.count:
                continue
            time_ms, broker, topic, partition, metric, values = day.whole()
            topic_names, topic = _sorted_codes(list(self._topics), topic)
            metric_names, metric = _sorted_codes(list(self._metrics), metric)
            order = np.lexsort((partition, topic, metric))
            columns = (time_ms[order], broker[order], topic[order], partition[order], metric[order], values[order])
            yield number, self._table(*columns, topic_names, metric_names)

    def _table(
        self, time_ms: Array, broker: Array, topic: Array, partition: Array, metric: Array, values: Array,
        topic_names: list[str], metric_names: list[str],
    ) -> pa.Table:  # fmt: skip
        import pyarrow as pa

        nobody = topic == NOBODY
        one = np.zeros(len(time_ms), dtype=np.int32)
        return pa.table({
            "time": pa.array(time_ms).cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC")),
            "cluster_id": _names([self._cluster_id], one),
            "broker": pa.array(broker),
            "topic": _names(topic_names, topic, nobody),
            "partition": pa.array(partition, mask=nobody),
            "metric": _names(metric_names, metric),
            "value": pa.array(values),
        })  # fmt: skip


def _sorted_codes(names: list[str], codes: Array) -> tuple[list[str], Array]:
    """Names ascending, and the codes that go with them."""
    order = sorted(range(len(names)), key=names.__getitem__)
    renamed = np.full(len(names) + 1, NOBODY, dtype=np.int32)  # the last is for `NOBODY`
    renamed[order] = np.arange(len(names), dtype=np.int32)
    return [names[i] for i in order], renamed[codes]


def _names(names: list[str], codes: Array, absent: Array | None = None) -> pa.Array:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=absent), pa.array(names, type=pa.string()))
