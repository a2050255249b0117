"""Numbered batches of a stream put into a history, each once, however often it is tried.

Called by `spark.history.follow`. A batch is written beside the days, marked complete, then its files are moved to their days under
names with its number; a note says which batch was put in place last. A batch that is tried again after an interruption is
finished or left alone, never written twice.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from cluster_model.errors import ExternalError
from spark.history.storage import Folder
from spark.history.write import COMPLETE, DAY, MOST_ROWS, parquet_rows
from spark.schemas import Samples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTE, STAGING = "_put-", "_batch-"


def query_of(spark: SparkSession, checkpoint: str) -> str:
    """The id that a checkpoint gives its query: another for a checkpoint that was made again."""
    text = Folder(spark, checkpoint).text("metadata")
    try:
        return re.sub(r"[^0-9a-f]", "", str(json.loads(text)["id"]))[:12]
    except (ValueError, KeyError) as e:
        raise ExternalError(f"{checkpoint}: expected a checkpoint of Spark, found a damaged one; name another folder") from e


def put_once(spark: SparkSession, samples: Samples, out: str, query: str, number: int) -> bool:
    """Put the batch's samples in place; False where they are there already.

    Notes
    -----
    Readers see the files of a batch one by one.
    """
    folder = Folder(spark, out)
    folder.make()
    done = max((int(name.rpartition("-")[2]) for name in folder.names() if name.startswith(f"{NOTE}{query}-")), default=-1)
    if number <= done:
        return False
    staging = f"{STAGING}{query}-{number}"
    if not folder.exists(f"{staging}/{COMPLETE}"):
        folder.delete(staging)
        rows = parquet_rows(samples.frame).write.partitionBy("date").option("compression", "zstd")
        rows.option("maxRecordsPerFile", MOST_ROWS).parquet(f"{folder.uri}/{staging}")
        folder.touch(f"{staging}/{COMPLETE}")
    for day in folder.names(staging):
        if day.startswith(DAY):
            folder.make(day)
            for file in folder.names(f"{staging}/{day}"):
                if file.endswith(".parquet"):
                    folder.move(f"{staging}/{day}/{file}", f"{day}/topic-{query}-{number:06}-{file}")
    folder.touch(f"{NOTE}{query}-{number}")
    folder.delete(staging)
    if done >= 0:
        folder.delete(f"{NOTE}{query}-{done}")
    return True
