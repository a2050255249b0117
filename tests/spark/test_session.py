"""What a start of Spark says on an operator's terminal: nothing that nobody can change, and every warning."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
from spark.session import session
spark = session("says", "local[1]")
spark.sparkContext._jvm.org.apache.logging.log4j.LogManager.getLogger("job").warn("a disk is full")
"""


def test_a_start_says_only_what_matters() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120, check=True)
    said = [line for line in done.stderr.splitlines() if "incubator modules" not in line]  # Java's own, before anything can be set
    assert said == ["Spark: a disk is full"]
