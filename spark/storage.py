"""A folder of Parquet that is either complete or as it was before, wherever Spark can write.

Called by jobs. Written beside its place and renamed; a job that fails or is interrupted leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from cluster_model.errors import ExternalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def replaced(spark: SparkSession, path: str) -> Iterator[str]:
    """Where to write what is to be at `path`: it gets there when the block ends well.

    Raises
    ------
    ExternalError
        The storage does not let it be renamed.
    """
    folder, _, name = path.rstrip("/").rpartition("/")
    unfinished = f"{folder}/.{name}.{token_hex(4)}.part" if folder else f".{name}.{token_hex(4)}.part"
    java: Any = spark._jvm
    place, part = java.org.apache.hadoop.fs.Path(path), java.org.apache.hadoop.fs.Path(unfinished)
    files = part.getFileSystem(spark._jsc.hadoopConfiguration())
    try:
        yield unfinished
        files.delete(place, True)
        if not files.rename(part, place):
            raise ExternalError(f"{path}: could not be written: {unfinished} is complete, but was not renamed")
    finally:
        files.delete(part, True)
