"""One Spark session with the settings that this room needs, on this machine or on a cluster.

Called by the commands and tests; every job takes the session as a parameter. Workers run the same Python as the driver,
everything binds to loopback where Spark runs on this machine, times are UTC.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_model.errors import ExternalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = "local[*]"
QUIET = Path(__file__).with_name("quiet.properties")


def session(name: str, master: str | None = None, **settings: str) -> SparkSession:
    """A running session; the one that is there already, where ``spark-submit`` or a notebook made it.

    Parameters
    ----------
    name
        What the job is called in Spark's pages and logs.
    master
        Where to run; None: what ``spark-submit`` says, else all cores of this machine.
    settings
        Spark settings beyond ours, dots written as two underscores: ``spark__driver__memory="6g"``.

    Raises
    ------
    ExternalError
        pyspark or Java is not there, or Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ExternalError("Spark needs pyspark, which is not installed: pip install 'trimtab[spark]'") from None
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise ExternalError("Spark needs Java 17 or newer and found none: install it (Debian: openjdk-17-jre-headless) or set JAVA_HOME")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has decided where
    if not submitted:
        builder = builder.master(master or HERE)
        if (master or HERE).startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
            builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
            if "SPARK_CONF_DIR" not in os.environ:  # whoever has a folder of settings has one for logging, too
                builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={QUIET.as_uri()}")
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.execution.arrow.pyspark.enabled", "true")
    builder = builder.config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # what other readers of Parquet take, too
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    try:
        return builder.getOrCreate()
    except Exception as e:
        raise ExternalError(f"Spark did not start: {str(e).splitlines()[0] if str(e) else type(e).__name__}") from e
