"""Records of the internal topic decoded into samples, by workers, array by array.

Given to `mapInArrow` by `spark.history.follow`. Uses the reporter's own codec; a record that is none is one row with a problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from metrics_reporter.automq import AutoMQFormat
from metrics_reporter.codec import DecodeError
from metrics_reporter.columns import BatchColumns, SampleColumns
from metrics_reporter.formats import OwnFormat, RecordFormat
from metrics_reporter.sample import BROKER_SCOPES, HISTORY_PREFIXES

if TYPE_CHECKING:
    import pyarrow as pa

Form = Literal["own", "automq"]
"""Whose records. Those of Cruise Control need to know who leads and what came before, so only the service reads them."""
SCHEMA = "time timestamp, broker int, topic string, partition int, metric string, value double, problem string, source string"


def decoder(form: Form) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows of `spark.history.topic_source` -> rows of `SCHEMA`."""
    return partial(decoded, form=form)


def decoded(batches: Iterator[pa.RecordBatch], form: Form) -> Iterator[pa.RecordBatch]:
    """The samples of each batch of records, and one row for each problem."""
    for batch in batches:
        codec: RecordFormat = OwnFormat() if form == "own" else AutoMQFormat()
        problems = []
        columns = (batch.column(name).to_pylist() for name in ("partition", "record_offset", "value", "problem"))
        for partition, offset, value, problem in zip(*columns, strict=True):
            place = f"partition {partition}" if offset is None else f"partition {partition} offset {offset}"
            if problem is not None:
                problems.append((problem, place))
                continue
            try:
                codec.add(value)
            except DecodeError as error:
                problems.append(("record cannot be decoded", f"{place}: {error}"))
        for found in codec.take():
            for block in found.blocks:
                yield _samples(found, block)
        if problems:
            yield _problems(problems)


def _samples(batch: BatchColumns, block: SampleColumns) -> pa.RecordBatch:
    """Every value that was measured, whether it makes sense or not; those of metrics unknown to this release are left out."""
    import pyarrow as pa

    present = ~np.isnan(block.values) & np.array([bool(metric) for metric in block.metrics])[:, None]
    metric, row = np.nonzero(present)
    rows = len(row)
    names = pa.array([HISTORY_PREFIXES[block.scope] + name for name in block.metrics], pa.string())
    if block.scope in BROKER_SCOPES:
        topic, partition = pa.nulls(rows, pa.string()), pa.nulls(rows, pa.int32())
    else:
        topic = pa.array(batch.topics, pa.string()).take(pa.array(block.topic[row]))
        partition = pa.array(block.partition[row], pa.int32())
    time = pa.array(np.full(rows, batch.time_ms * 1000, dtype=np.int64)).cast(pa.timestamp("us", tz="UTC"))
    return pa.RecordBatch.from_arrays(
        [time, pa.array(np.full(rows, batch.broker, dtype=np.int32)), topic, partition, names.take(pa.array(metric)),
         pa.array(block.values[metric, row]), pa.nulls(rows, pa.string()), pa.nulls(rows, pa.string())],
        names=["time", "broker", "topic", "partition", "metric", "value", "problem", "source"],
    )  # fmt: skip


def _problems(found: list[tuple[str, str]]) -> pa.RecordBatch:
    import pyarrow as pa

    count = len(found)
    types = [("time", pa.timestamp("us", tz="UTC")), ("broker", pa.int32()), ("topic", pa.string()), ("partition", pa.int32()),
             ("metric", pa.string()), ("value", pa.float64())]  # fmt: skip
    columns = {name: pa.nulls(count, kind) for name, kind in types}
    columns |= {"problem": pa.array([p for p, _ in found], pa.string()), "source": pa.array([s for _, s in found], pa.string())}
    return pa.RecordBatch.from_pydict(columns)
