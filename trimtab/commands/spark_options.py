"""What the commands that run Spark share: where a history is, where Spark runs, and a session while they work.

Spark is imported inside the function. Used by `calibrate`, `backtest` and `history`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from trimtab.commands import options as o
from trimtab.story import Story, log

SETTINGS = {"spark__driver__memory": "3g", "spark__sql__shuffle__partitions": "16"}  # where Spark runs on this machine

History = Annotated[
    str,
    typer.Option("--history", metavar="PATH", rich_help_panel=o.SOURCE, help="Folder of Parquet samples, or a URI that Spark reads."),
]
ClusterId = Annotated[
    str | None,
    typer.Option("--cluster-id", metavar="ID", rich_help_panel=o.SOURCE, help="Which cluster, where the history has several."),
]
Once = Annotated[
    bool, typer.Option("--once", help="Count samples once that the history has twice; where it has some, it is read twice.")
]
Report = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML report with plots here.")]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Where Spark runs (default: all cores of this machine, or as spark-submit says)."),
]


def is_uri(path: str) -> bool:
    """Whether a path is none of this machine's."""
    return "://" in path


def is_elsewhere(master: str | None) -> bool:
    """Whether someone else decides how much Spark may take: spark-submit, or a cluster."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or (master is not None and not master.startswith("local"))


@contextmanager
def spark_for(command: str, master: str | None, story: Story) -> Iterator[Any]:
    """A `SparkSession` that ends with the command, also when that is interrupted. (This room may not name Spark's types.)"""
    from spark.session import session

    log.info("starting Spark")
    spark = session(command, master, **({} if is_elsewhere(master) else SETTINGS))
    try:
        spark.sparkContext.setLogLevel("WARN" if story.verbose else "ERROR")
        yield spark
    finally:
        spark.sparkContext.setLogLevel("OFF")  # tasks that an interrupt cut short are no news
        spark.stop()
