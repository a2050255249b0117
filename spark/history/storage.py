"""Folders wherever Spark writes (here, HDFS, object stores), through Hadoop's file systems, on the driver only.

Used by `spark.history.write`. Knows nothing of samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster_model.errors import ExternalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Folder:
    """A folder by its URI; methods take paths below it."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = uri.rstrip("/") or "/"
        jvm: Any = spark._jvm
        context: Any = spark._jsc
        self._jvm = jvm
        try:
            path = jvm.org.apache.hadoop.fs.Path(self.uri)
            self._files = path.getFileSystem(context.hadoopConfiguration())
        except Exception as e:
            raise _failed(uri, e) from e

    def _at(self, below: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.uri}/{below}" if below else self.uri)

    def exists(self, below: str = "") -> bool:
        return bool(self._done(self._files.exists, self._at(below)))

    def names(self, below: str = "") -> list[str]:
        """What stands in a folder, sorted; nothing where there is none."""
        if not self.exists(below):
            return []
        return sorted(status.getPath().getName() for status in self._done(self._files.listStatus, self._at(below)))

    def files(self, below: str = "") -> list[tuple[str, int, int]]:
        """Name, length and time of change (ms) of each file in a folder, sorted; hidden ones are passed over."""
        if not self.exists(below):
            return []
        listed = self._done(self._files.listStatus, self._at(below))
        found = [(one.getPath().getName(), int(one.getLen()), int(one.getModificationTime())) for one in listed]
        return sorted(one for one in found if not one[0].startswith((".", "_")))

    def make(self, below: str = "") -> None:
        self._done(self._files.mkdirs, self._at(below))

    def touch(self, below: str) -> None:
        """Make an empty file."""
        self._done(self._files.create, self._at(below)).close()

    def text(self, below: str) -> str:
        """The content of a small file."""
        stream = self._done(self._files.open, self._at(below))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def move(self, old: str, new: str) -> None:
        """Rename; `new` must not be there."""
        if self.exists(new) or not self._done(self._files.rename, self._at(old), self._at(new)):
            raise ExternalError(f"{self.uri}: {old} could not be moved to {new}; is something there already?")

    def delete(self, below: str) -> None:
        """With all that is in it; nothing where there is none."""
        self._done(self._files.delete, self._at(below), True)

    def _done(self, call: Any, *given: Any) -> Any:
        try:
            return call(*given)
        except Exception as e:
            raise _failed(self.uri, e) from e


def _failed(uri: str, error: Exception) -> ExternalError:
    lines = [line.removeprefix(":").strip() for line in str(error).splitlines() if "error occurred while calling" not in line]
    return ExternalError(f"{uri}: {lines[0] if lines else type(error).__name__}", retriable=True)
