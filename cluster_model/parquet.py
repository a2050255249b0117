"""Snapshot folders: `brokers.parquet`, `partitions.parquet` and `meta.json`.

Called by `cluster_model.files`, which also cares for atomic writing. Columns are flat
(``leader_load.network_in``), null means absent. Tables are checked as arrays; only a table in which
something is wrong is turned into documents, so that both file forms refuse in the same words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster_model import refusals
from cluster_model.build import head_document
from cluster_model.columns import Doubtful, LongArray, PartitionColumns, assemble, broker_columns
from cluster_model.directories import directory_documents
from cluster_model.errors import InputError, Problem
from cluster_model.extras import missing
from cluster_model.parquet_columns import (
    DIRECTORIES,
    HAS_FOLLOWER_LOAD,
    ColumnTests,
    broker_column_tests,
    column_problems,
    partition_column_tests,
)
from cluster_model.resources import MEASURED
from cluster_model.snapshot import BoolArray, BrokerState, FloatArray, Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

BROKERS, PARTITIONS, META = "brokers.parquet", "partitions.parquet", "meta.json"
FOLDER_FILES = (BROKERS, PARTITIONS, META)
MISSING = "expected this file in a snapshot folder, found none; name a folder that holds all three"


def write_folder(snapshot: Snapshot, folder: Path) -> None:
    """Writes the three files into a folder that exists.

    Raises
    ------
    InputError
        pyarrow is not installed.
    """
    _require_pyarrow(folder)
    import pyarrow.parquet as pq

    options: dict[str, Any] = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True}
    pq.write_table(_broker_table(snapshot), folder / BROKERS, **options)
    pq.write_table(_partition_table(snapshot), folder / PARTITIONS, use_dictionary=["topic"], **options)
    text = json.dumps(head_document(snapshot), indent=1) + "\n"
    (folder / META).write_text(text, encoding="utf-8")


def read_folder(folder: Path, meta: Mapping[str, object] | None) -> Snapshot:
    """The snapshot of a folder whose `meta.json` says `meta`; None where the caller has refused that file.

    Raises
    ------
    InputError
        pyarrow is not installed, a table cannot be read, has other columns than it should, or holds
        something that is refused; carries every problem found.
    """
    _require_pyarrow(folder)
    try:
        return _read(folder, meta)
    finally:
        _give_back()


def _read(folder: Path, meta: Mapping[str, object] | None) -> Snapshot:
    problems = [] if meta is None else refusals.head_problems(meta, row_lists=())
    brokers = _read_table(folder, BROKERS, broker_column_tests(), problems)
    partitions = _read_table(folder, PARTITIONS, partition_column_tests(), problems)
    broker_rows = None if brokers is None else _broker_rows(brokers)
    if broker_rows is not None:
        problems += refusals.broker_problems(broker_rows)
    if partitions is None:
        raise InputError(str(folder), problems)
    if meta is not None and broker_rows is not None and not problems:
        try:
            return assemble(meta, broker_columns(broker_rows), _partition_columns(partitions))
        except Doubtful:
            pass
    rows = _partition_rows(partitions, problems)
    problems += refusals.partition_problems(rows, broker_rows)
    if not problems and meta is not None and brokers is not None:
        raise AssertionError(f"{folder}: refused by the array checks, but no problem was found in words")
    raise InputError(str(folder), problems)


def _give_back() -> None:
    """The memory of the tables, which pyarrow would keep for others that may be read: 85 MB for a million replicas."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _require_pyarrow(folder: Path) -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        found = f"a folder of Parquet files needs {missing('pyarrow')}, or use a .json.gz file"
        raise InputError(str(folder), [Problem("", found)]) from None


# Writing


def _broker_table(snapshot: Snapshot) -> pa.Table:
    import pyarrow as pa

    states = [BrokerState(int(state)).label for state in snapshot.broker_states]
    columns: dict[str, pa.Array] = {
        "id": pa.array(snapshot.broker_ids),
        "rack": pa.array(snapshot.racks, type=pa.string()),
        "state": pa.array(states, type=pa.string()),
    }
    for name, amounts in snapshot.capacity.items():
        columns[f"capacity.{name}"] = pa.array(amounts, mask=np.isnan(amounts))
    if snapshot.directories:
        kind = pa.struct({"path": pa.string(), "size": pa.float64(), "used": pa.float64(), "volume": pa.int32()})
        told = [snapshot.directories.get(int(b)) for b in snapshot.broker_ids]
        columns[DIRECTORIES] = pa.array([None if of is None else directory_documents(of) for of in told], pa.list_(kind))
    return pa.table(columns)


def _partition_table(snapshot: Snapshot) -> pa.Table:
    import pyarrow as pa

    topics = pa.array(snapshot.topics, type=pa.string())
    offsets = np.zeros(snapshot.partition_count + 1, dtype=np.int32)
    np.cumsum(snapshot.replication_factor, out=offsets[1:])
    hosts = snapshot.broker_ids[snapshot.replicas[snapshot.replicas >= 0]]
    leaderless = snapshot.leader < 0
    leaders = snapshot.broker_ids[np.where(leaderless, 0, snapshot.leader)]
    columns: dict[str, pa.Array] = {
        "topic": pa.DictionaryArray.from_arrays(snapshot.partition_topic, topics).cast(pa.string()),
        "partition": pa.array(snapshot.partition_number),
        "replicas": pa.ListArray.from_arrays(offsets, pa.array(hosts)),
        "leader": pa.array(leaders, mask=leaderless),
    }
    for name, amounts in snapshot.leader_load.items():
        columns[f"leader_load.{name}"] = pa.array(amounts, mask=np.isnan(amounts))
    told = np.zeros(snapshot.partition_count, dtype=np.bool_)
    for name, amounts in snapshot.follower_load.items():
        absent = np.isnan(amounts) | ~snapshot.has_follower_load
        columns[f"follower_load.{name}"] = pa.array(amounts, mask=absent)
        told |= ~absent
    if not np.array_equal(told, snapshot.has_follower_load):
        columns[HAS_FOLLOWER_LOAD] = pa.array(snapshot.has_follower_load)
    if snapshot.replica_directory is not None:
        held = snapshot.replica_directory[snapshot.replicas >= 0]
        columns[DIRECTORIES] = pa.ListArray.from_arrays(offsets, pa.array(held, mask=held < 0))
    return pa.table(columns)


# Reading


def _read_table(folder: Path, file: str, tests: ColumnTests, problems: list[Problem]) -> pa.Table | None:
    """The table, or None after saying why it cannot be worked with."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(folder / file, page_checksum_verification=True) as source:
            told = column_problems(file, source.schema_arrow, tests)
            if told:
                problems += told
                return None
            table = source.read()
            table.validate(full=True)
            return table
    except FileNotFoundError:
        problems.append(Problem(file, MISSING))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        message = f"expected a Parquet file, found one that cannot be read ({reason}); write it again"
        problems.append(Problem(file, message))
    return None


def _broker_rows(table: pa.Table) -> list[dict[str, object]]:
    """Broker documents; null keys are left out, except the id."""
    return [_nested(row, ("id",)) for row in table.to_pylist()]


def _partition_rows(table: pa.Table, problems: list[Problem]) -> list[dict[str, object]]:
    """Partition documents for the slow walk."""
    rows = []
    for index, row in enumerate(table.to_pylist()):
        told = row.pop(HAS_FOLLOWER_LOAD, None)
        partition = _nested(row, refusals.PARTITION_KEYS)
        if told is True:
            partition.setdefault("follower_load", {})
        elif told is False and "follower_load" in partition:
            place = f"partitions[{index}].{HAS_FOLLOWER_LOAD}"
            problems.append(Problem(place, "expected true beside follower_load values, found false"))
        rows.append(partition)
    return rows


def _nested(row: Mapping[str, object], required: Sequence[str]) -> dict[str, object]:
    document: dict[str, object] = {}
    for column, value in row.items():
        outer, dot, inner = column.partition(".")
        if value is None and column not in required:
            continue
        if dot:
            table = document.setdefault(outer, {})
            assert isinstance(table, dict)
            table[inner] = value
        else:
            document[column] = value
    return document


def _partition_columns(table: pa.Table) -> PartitionColumns:
    """Columns of a table whose column types were checked; `Doubtful` where a value is missing or wrong."""
    import pyarrow.compute as pc

    topics, topic = _topics(table)
    lists = _whole_column(table, "replicas")
    leader = _leaders(table)
    leading = {n: _amounts(table, f"leader_load.{n}") for n in _given(table, "leader_load")}
    following = {n: _amounts(table, f"follower_load.{n}") for n in _given(table, "follower_load")}
    return PartitionColumns(
        topics=topics,
        topic=topic,
        number=_longs(_whole_column(table, "partition")),
        hosts=_longs(lists.flatten()),
        factor=_longs(pc.list_value_length(lists)),
        leader=leader,
        leader_load=leading,
        follower_load=following,
        has_follower_load=_has_follower_load(table, following.values()),
        directory=_directories(table, _longs(pc.list_value_length(lists))),
    )


def _directories(table: pa.Table, factor: LongArray) -> LongArray | None:
    """int64 [replicas]: positions of log directories, -1 where null; `Doubtful` where a list has another length than that of replicas."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if DIRECTORIES not in table.column_names or pa.types.is_null(table.schema.field(DIRECTORIES).type):
        return None
    lists = _one_array(table.column(DIRECTORIES))
    told = ~np.asarray(lists.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    if not np.array_equal(_longs(pc.list_value_length(lists).fill_null(0)), np.where(told, factor, 0)):
        raise Doubtful
    values = lists.flatten().cast(pa.int64())
    held = np.full(int(factor.sum()), -1, np.int64)
    held[np.repeat(told, factor)] = _longs(values.fill_null(-1))
    if int((held < 0).sum()) != values.null_count + int(factor[~told].sum()):
        raise Doubtful
    return held


def _given(table: pa.Table, prefix: str) -> list[str]:
    return [name for name in MEASURED if f"{prefix}.{name}" in table.column_names]


def _whole_column(table: pa.Table, name: str) -> Any:
    """The column as one array without nulls."""
    column = table.column(name)
    if column.null_count:
        raise Doubtful
    return _one_array(column)


def _one_array(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if column.num_chunks else pa.array([], type=column.type)


def _longs(array: Any) -> LongArray:
    import pyarrow as pa

    if array.null_count:
        raise Doubtful
    try:
        return np.asarray(array.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)
    except pa.ArrowInvalid:  # uint64 beyond int64
        raise Doubtful from None


def _topics(table: pa.Table) -> tuple[tuple[str, ...], LongArray]:
    """Names, ascending, and int64 [P] rows in them."""
    import pyarrow as pa

    column = _whole_column(table, "topic")
    coded = column.cast(pa.string()).dictionary_encode()
    if coded.null_count:
        raise Doubtful
    names = coded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return tuple(names[code] for code in order), rank[_longs(coded.indices)]


def _leaders(table: pa.Table) -> LongArray:
    import pyarrow as pa

    count = table.num_rows
    if "leader" not in table.column_names or pa.types.is_null(table.schema.field("leader").type):
        return np.full(count, -1, dtype=np.int64)
    column = table.column("leader")
    leader = _longs(_one_array(column).cast(pa.int64()).fill_null(-1))
    if int((leader == -1).sum()) != column.null_count:
        raise Doubtful
    return leader


def _amounts(table: pa.Table, name: str) -> FloatArray:
    """float64 [P], NaN where null; `Doubtful` for a NaN that stands in the table."""
    import pyarrow as pa

    column = table.column(name)
    array = _one_array(column)
    numbers = np.array(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if int(np.isnan(numbers).sum()) != column.null_count:
        raise Doubtful
    return numbers


def _has_follower_load(table: pa.Table, following: Iterable[FloatArray]) -> BoolArray:
    """bool [P]: what the column says, or whether any follower load is given where it says nothing."""
    import pyarrow as pa

    any_given = np.zeros(table.num_rows, dtype=np.bool_)
    for amounts in following:
        any_given |= ~np.isnan(amounts)
    if HAS_FOLLOWER_LOAD not in table.column_names:
        return any_given
    told = _one_array(table.column(HAS_FOLLOWER_LOAD)).cast(pa.bool_())
    said_no = np.asarray(told.fill_null(True).to_numpy(zero_copy_only=False), dtype=np.bool_) == 0
    if bool((said_no & any_given).any()):
        raise Doubtful
    said_yes = np.asarray(told.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return said_yes | any_given
