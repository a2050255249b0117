"""Which columns a snapshot's Parquet files have, and of what types.

Called by `cluster_model.parquet` before it looks at any value. Takes every width of number and string
that other tools write, and says what a wrong column should have been.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cluster_model import refusals
from cluster_model.errors import Problem
from cluster_model.resources import MEASURED, RESOURCES

if TYPE_CHECKING:
    import pyarrow as pa

HAS_FOLLOWER_LOAD = "has_follower_load"
DIRECTORIES = "directories"  # in both tables

TypeTest = Callable[[Any], bool]
ColumnTests = Mapping[str, tuple[str, TypeTest, bool]]


def broker_column_tests() -> ColumnTests:
    """Column -> (what is expected, test of its type, required)."""
    return {
        "id": ("whole numbers", _is_whole, True),
        "rack": ("strings", _is_text, False),
        "state": ("strings", _is_text, False),
        **{f"capacity.{name}": ("numbers", _is_number, False) for name in RESOURCES},
        DIRECTORIES: ("lists of log directories with path, size, used and volume", _is_record_list, False),
    }


def partition_column_tests() -> ColumnTests:
    return {
        "topic": ("strings", _is_text, True),
        "partition": ("whole numbers", _is_whole, True),
        "replicas": ("lists of whole numbers", _is_id_list, True),
        "leader": ("whole numbers (null where there is no leader)", _is_whole, False),
        **{f"leader_load.{name}": ("numbers", _is_number, False) for name in MEASURED},
        **{f"follower_load.{name}": ("numbers", _is_number, False) for name in MEASURED},
        DIRECTORIES: ("lists of whole numbers", _is_id_list, False),
        HAS_FOLLOWER_LOAD: ("true and false", _is_flag, False),
    }


def _is_text(kind: Any) -> bool:
    import pyarrow.types as t

    if t.is_dictionary(kind):
        kind = kind.value_type
    return bool(t.is_string(kind) or t.is_large_string(kind))


def _is_whole(kind: Any) -> bool:
    import pyarrow.types as t

    return bool(t.is_integer(kind))


def _is_number(kind: Any) -> bool:
    import pyarrow.types as t

    return bool(t.is_integer(kind) or t.is_floating(kind))


def _is_flag(kind: Any) -> bool:
    import pyarrow.types as t

    return bool(t.is_boolean(kind))


def _is_id_list(kind: Any) -> bool:
    import pyarrow.types as t

    lists = t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)
    return bool(lists and (t.is_integer(kind.value_type) or t.is_null(kind.value_type)))


def _is_record_list(kind: Any) -> bool:
    import pyarrow.types as t

    return bool((t.is_list(kind) or t.is_large_list(kind)) and (t.is_struct(kind.value_type) or t.is_null(kind.value_type)))


def column_problems(file: str, schema: pa.Schema, tests: ColumnTests) -> list[Problem]:
    """Columns that are unknown, missing, doubled or of the wrong type."""
    import pyarrow.types as t

    place = f"{file}, column "
    problems: list[Problem] = []
    for name in dict.fromkeys(schema.names):
        if name not in tests:
            message = refusals.unknown(name, tuple(tests), "column")
            problems.append(Problem(place + refusals.label(name), message))
        elif schema.names.count(name) > 1:
            problems.append(Problem(place + name, "expected once, found more often; keep one of them"))
        else:
            expected, test, required = tests[name]
            kind = schema.field(name).type
            if not test(kind) and (required or not t.is_null(kind)):
                problems.append(Problem(place + name, f"expected {expected}, found type {str(kind)[:60]}"))
    for name, (expected, _, required) in tests.items():
        if required and name not in schema.names:
            problems.append(Problem(place + name, f"expected this column of {expected}, found none; add it"))
    return problems
