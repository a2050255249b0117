"""What the commands that run Spark share: where a history is, where Spark runs, and a session while they work.

Spark is imported inside the function. Used by `calibrate`, `backtest` and `history`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Annotated, Any

import typer

from trimtab.commands import options as o
from trimtab.history.lock import LOCK_FILE, locked
from trimtab.story import Story, log

PATTERN = re.compile(r"[*?\[{]")  # Spark takes patterns of paths, too

History = Annotated[
    str,
    typer.Option("--history", metavar="PATH", rich_help_panel=o.SOURCE, help="Folder of Parquet samples, or a URI that Spark reads."),
]
ClusterId = Annotated[
    str | None,
    typer.Option("--cluster-id", metavar="ID", rich_help_panel=o.SOURCE, help="Cluster to read, if the history has several."),
]
Once = Annotated[
    bool, typer.Option("--once", help="Count repeated samples once; a history that has any is then read twice.")
]
Report = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML report with plots here.")]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Where Spark runs (default: all cores of this machine, or as spark-submit says)."),
]


def is_uri(path: str) -> bool:
    """Whether a path names its file system (``s3a://bucket/history``, ``file:/history``)."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path) is not None


@contextmanager
def only_writer(folder: str) -> Iterator[None]:
    """No other process writes this history meanwhile, where it is on this machine: the lock that the service holds, too.

    A folder that is there for the lock only goes at the end.

    Raises
    ------
    ExternalError
        Another process writes it, or it cannot be written.
    """
    if is_uri(folder):
        yield
        return
    place = Path(folder)
    with locked(place):
        try:
            yield
        finally:
            if [one.name for one in place.iterdir()] == [LOCK_FILE]:
                (place / LOCK_FILE).unlink()
                place.rmdir()


def is_short(history: str) -> bool:
    """Whether a history is here and so small that Spark's start costs more than all of its samples."""
    from spark.session import SHORT_BYTES

    place = Path(history)
    if is_uri(history) or not place.exists():
        return False
    files = place.rglob("*.parquet") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files) <= SHORT_BYTES


def absent(path: str, master: str | None) -> bool:
    """Whether it is certain, before Spark starts, that a file, folder or pattern names nothing that Spark would read."""
    from spark.session import is_here

    if not is_here(master) or is_uri(path) or Path(path).exists():
        return False
    return PATTERN.search(path) is None or ("{" not in path and not glob(path))  # alternatives in braces are Spark's own


def no_parquet(path: str, master: str | None) -> bool:
    """Whether it is certain, before Spark starts, that a folder has no file of Parquet, whatever the files are called."""
    from spark.session import is_here

    place = Path(path)
    if not is_here(master) or is_uri(path) or not place.is_dir():
        return False
    return not any(_is_parquet(file) for file in place.rglob("*") if file.is_file())


def _is_parquet(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(3) == b"PAR"  # PAR1, or PARE where it is encrypted
    except OSError:
        return True  # Spark says what is wrong


@contextmanager
def spark_for(command: str, master: str | None, history: str, story: Story) -> Iterator[Any]:
    """A `SparkSession` that ends with the command, also when that is interrupted. (This room may not name Spark's types.)

    Parameters
    ----------
    history
        What will be read: a small one here gets settings for short runs (`spark.session.SHORT`).

    Raises
    ------
    InputError
        There is no history, or no Parquet in it, said before Spark starts; or Spark met a file of it that it cannot read.
    """
    from spark.history.read import no_parquet_in, nothing_at, unreadable
    from spark.session import session

    if absent(history, master):
        raise nothing_at(history)
    if no_parquet(history, master):
        raise no_parquet_in(history)
    log.info("starting Spark")
    spark = session(command, master, is_short(history))
    try:
        spark.sparkContext.setLogLevel("WARN" if story.verbose else "ERROR")
        yield spark
    except Exception as e:
        told = unreadable(e)
        if told is None:
            raise
        raise told from e
    finally:
        spark.sparkContext.setLogLevel("OFF")  # tasks that an interrupt cut short are no news
        spark.stop()
