"""One Spark session with the settings that this room needs, on this machine or on a cluster.

Called by the commands and tests; every job takes the session as a parameter. Workers run the same Python as the driver,
everything binds to loopback where Spark runs on this machine, times are UTC.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from cluster_model.extras import missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = "local[*]"
MASTERS = re.compile(r"local(\[([1-9]\d*|\*)(,[1-9]\d*)?\])?|local-cluster\[.+\]|yarn|(spark|k8s|mesos|sc)://.+")
QUIET = Path(__file__).with_name("quiet.properties")
# Where Spark runs on this machine. In a short run most of the time goes into starting, planning and compiling: so two partitions, plans
# that stay as they are made, and Java that compiles quickly (C1) with a collector of one thread.
LONG = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "16"}
SHORT = {
    **LONG, "spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # folders: more are listed by a job
}  # fmt: skip
SHORT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-DontCompileHugeMethods"
SHORT_BYTES = 128_000_000  # of Parquet, some 15 million samples: well beyond it, better compiled code is worth its compilation


def is_here(master: str | None) -> bool:
    """Whether Spark would run on this machine, and paths without a scheme are this machine's."""
    return not _submitted() and (master or HERE).startswith("local")


def _submitted() -> bool:
    """Whether ``spark-submit`` has decided where to run."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def session(name: str, master: str | None = None, short: bool = False, **settings: str) -> SparkSession:
    """A running session; the one that is there already, where ``spark-submit`` or a notebook made it.

    Parameters
    ----------
    name
        What the job is called in Spark's pages and logs.
    master
        Where to run; None: what ``spark-submit`` says, else all cores of this machine.
    short
        Whether little is read, `SHORT_BYTES` at most. It matters only where Spark runs on this machine.
    settings
        Spark settings beyond ours, dots written as two underscores: ``spark__driver__memory="6g"``.

    Raises
    ------
    ConfigurationError
        `master` is none that Spark knows.
    ExternalError
        pyspark or Java is not there, or Spark does not start.
    """
    if master is not None and not MASTERS.fullmatch(master):
        known = "expected local[N], local[*], spark://HOST:PORT, yarn or k8s://URL"
        raise ConfigurationError("Spark", [Problem("--master", f"{known}, found {master!r}")])
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ExternalError(f"Spark needs {missing('pyspark')}") from None
    java = _java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if not _submitted():
        builder = builder.master(master or HERE)
        if is_here(master):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
            builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
            java_options = [SHORT_JAVA] if short else []
            if "SPARK_CONF_DIR" not in os.environ:  # a user who has a folder of settings has one for logging, too
                java_options.append(f"-Dlog4j2.configurationFile={QUIET.as_uri()}")
            if java_options:
                builder = builder.config("spark.driver.extraJavaOptions", " ".join(java_options))
            for key, value in (SHORT if short else LONG).items():
                builder = builder.config(key, value)
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.execution.arrow.pyspark.enabled", "true")
    builder = builder.config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # what other readers of Parquet take, too
    for key, value in settings.items():
        builder = builder.config(key.replace("__", "."), value)
    try:
        with _uninterrupted() as interrupted:
            running = builder.getOrCreate()
    except Exception as e:
        raise ExternalError(f"Spark did not start: {_said(e, java)}") from e
    if interrupted():
        running.stop()
        raise KeyboardInterrupt
    return running


@contextmanager
def _uninterrupted() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C waits for the end of the block, which asks for it: Java that is left while it starts would stay for good."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    seen = 0
    before = signal.getsignal(signal.SIGINT)

    def later(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, later)
    try:
        yield lambda: seen > 0
    finally:
        if signal.getsignal(signal.SIGINT) is later:  # else it is Spark's own, which ends jobs
            signal.signal(signal.SIGINT, before)


def _java() -> str:
    """The Java that Spark takes.

    Raises
    ------
    ExternalError
        There is none.
    """
    install = "install Java 17 or newer (Debian: openjdk-17-jre-headless) or set JAVA_HOME"
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java") if not home else shutil.which(str(Path(home) / "bin" / "java"))
    if found is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "found none"
        raise ExternalError(f"Spark needs Java, and {where}: {install}")
    return found


def _said(error: Exception, java: str) -> str:
    """What happened, without where in py4j it did; where Java itself ended, which Java that was."""
    lines = [line.removeprefix(":").strip() for line in str(error).splitlines() if "error occurred while calling" not in line]
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return re.sub(r"^[\w.$]+(Exception|Error): ", "", lines[0]) if lines else type(error).__name__
    asked = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = (asked.stderr or asked.stdout).strip().splitlines()
    which = f"{java}, {version[0] if version else 'which says no version'}"
    return f"Java ended; its output is above. Expected Java 17 or newer, found {which}"
