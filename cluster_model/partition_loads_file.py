"""Loads of partitions from Parquet: one row per partition and resource, as `trimtab calibrate` writes them.

Called by the commands that plan (``--load``). Columns `cluster_id`, `topic`, `partition`, `resource`, and one per statistic; other
columns are not looked at. Whole columns at once, never a row.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cluster_model.errors import InputError, Problem
from cluster_model.extras import missing
from cluster_model.partition_loads import PartitionLoads, Statistic
from cluster_model.resources import LARGEST_AMOUNT, LEAST_AMOUNT, MEASURED
from cluster_model.snapshot import BoolArray, FloatArray, Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

KEPT = frozenset({"disk"})  # what is on disk now is what a move copies, whatever it was or will be
LongArray = npt.NDArray[np.int64]


def read_partition_loads(place: str, statistic: Statistic, snapshot: Snapshot, cluster_id: str, source: str) -> PartitionLoads:
    """The loads of a snapshot's partitions.

    Parameters
    ----------
    place
        Parquet file, folder of such, or URI.
    cluster_id
        Rows of other clusters are left out; empty: all rows count.
    source
        What `place` is called in the plan.

    Raises
    ------
    InputError
        Nothing there, not Parquet, a column that is missing or of a wrong type, an unknown resource, an amount that is
        negative or too large, two rows for one partition and resource, no amount at all.

    Notes
    -----
    Partitions that the snapshot does not have are left out, and so is `disk`, which stays as the snapshot has it.
    """
    table = _table(place, statistic, cluster_id)
    if not table.num_rows:
        of = f" of cluster {cluster_id}" if cluster_id else ""
        raise _refused(place, f"expected loads{of}, found none; was the calibration made for another cluster?")
    for column in ("topic", "partition", "resource"):
        if nulls := table.column(column).null_count:
            raise _refused(place, f"column {column}: expected a value in every row, found none in {nulls:,}")
    topics, topic = _words(table.column("topic"))
    names, resource = _words(table.column("resource"))
    unknown = sorted(set(names) - MEASURED.keys())
    if unknown:
        raise _refused(place, f"resource: expected one of {', '.join(MEASURED)}, found {', '.join(map(repr, unknown[:5]))}")
    number = table.column("partition").to_numpy().astype(np.int64)
    value = table.column(statistic).to_numpy().astype(np.float64)
    _check_values(place, statistic, value, lambda row: f"{names[resource[row]]} of {topics[topic[row]]}-{number[row]}")
    if np.isnan(value).all():
        raise _refused(place, f"{statistic}: expected amounts, found none; there may be too little history for it, choose another --load")
    rows = _rows(snapshot, topics, topic, number)
    amounts: dict[str, FloatArray] = {}
    for name in MEASURED:
        if name not in names or name in KEPT:
            continue
        mine = (resource == names.index(name)) & (rows >= 0)
        twice = np.flatnonzero(np.bincount(rows[mine], minlength=snapshot.partition_count) > 1)
        if len(twice):
            which = f"{name} of {snapshot.partition_name(int(twice[0]))}"
            raise _refused(place, f"expected one row for each partition and resource, found more for {which}")
        amount = np.full(snapshot.partition_count, np.nan)
        amount[rows[mine]] = value[mine]
        amounts[name] = np.where(amount < LEAST_AMOUNT, 0.0, amount)
    return PartitionLoads(statistic, source, amounts)


def _table(place: str, statistic: str, cluster_id: str) -> pa.Table:
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
        from pyarrow import fs
    except ImportError:
        raise _refused(place, f"loads in Parquet need {missing('pyarrow')}") from None
    form = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(dictionary_columns={"topic", "resource"}))
    try:
        uri = place.replace("s3a://", "s3://", 1)  # what Spark calls it
        system, path = fs.FileSystem.from_uri(uri) if "://" in place else (fs.LocalFileSystem(), str(Path(place).absolute()))
        if system.get_file_info(path).type == fs.FileType.NotFound:
            raise _refused(place, "expected Parquet with loads of partitions, found nothing there; `trimtab calibrate` writes it")
        data = ds.dataset(path, filesystem=system, format=form)
        _check_columns(place, data.schema, statistic)
        wanted = ds.field("cluster_id") == cluster_id if cluster_id else None
        return data.to_table(columns=["topic", "partition", "resource", statistic], filter=wanted)
    except (OSError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise _refused(place, f"expected Parquet with loads of partitions, cannot read it: {' '.join(str(error).split())}") from error


def _check_columns(place: str, schema: pa.Schema, statistic: str) -> None:
    """Columns that are read must be there, each of its type."""
    import pyarrow.types as t

    def text(kind: Any) -> bool:
        kind = kind.value_type if t.is_dictionary(kind) else kind
        return bool(t.is_string(kind) or t.is_large_string(kind))

    def number(kind: Any) -> bool:
        return bool(t.is_floating(kind) or t.is_integer(kind))

    tests = {
        "cluster_id": ("strings", text), "topic": ("strings", text), "partition": ("whole numbers", t.is_integer),
        "resource": ("strings", text), statistic: ("numbers", number),
    }  # fmt: skip
    problems = []
    for name, (expected, test) in tests.items():
        if name not in schema.names:
            problems.append(Problem(f"column {name}", f"missing; expected {expected} (the file has {', '.join(schema.names[:12])})"))
        elif not test(schema.field(name).type):
            problems.append(Problem(f"column {name}", f"expected {expected}, found {schema.field(name).type}"))
    if problems:
        raise InputError(place, problems)


def _words(column: pa.ChunkedArray) -> tuple[list[str], LongArray]:
    """The different words of a column, and which of them stands in each row."""
    import pyarrow.types as t

    coded = column.unify_dictionaries() if t.is_dictionary(column.type) else column.dictionary_encode()
    whole = coded.combine_chunks()
    return whole.dictionary.to_pylist(), whole.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _check_values(place: str, statistic: str, value: FloatArray, name: Any) -> None:
    wrong = np.flatnonzero((value < 0) | (value > LARGEST_AMOUNT))
    if len(wrong):
        told = [f"{name(int(row))} {value[row]:g}" for row in wrong[:5]]
        more = f" and {len(wrong) - 5:,} more" if len(wrong) > 5 else ""
        raise _refused(place, f"{statistic}: expected amounts from 0 to {LARGEST_AMOUNT:g}, found {', '.join(told)}{more}")


def _rows(snapshot: Snapshot, topics: list[str], topic: LongArray, number: LongArray) -> LongArray:
    """int64 [N], row in the snapshot of each topic-partition, -1 where it has none. O(N log P)."""
    if not snapshot.partition_count:
        return np.full(len(topic), -1)
    row_of = snapshot.row_of_topic
    known = np.array([row_of.get(name, -1) for name in topics], dtype=np.int64)[topic]
    number = np.clip(number, -1, 2**31)
    have = _key(snapshot.partition_topic.astype(np.int64), snapshot.partition_number.astype(np.int64))
    wanted = _key(known, number)
    found = np.minimum(np.searchsorted(have, wanted), len(have) - 1)
    there: BoolArray = (have[found] == wanted) & (known >= 0)
    return np.where(there, found, -1)


def _key(topic: LongArray, number: LongArray) -> LongArray:
    return topic * 2**32 + number


def _refused(place: str, message: str) -> InputError:
    return InputError(place, [Problem("", message)])
