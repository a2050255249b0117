"""What a start of Spark says on an operator's terminal: nothing that an operator cannot change, and every warning."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cluster_model.errors import ConfigurationError, ExternalError
from spark.session import MASTERS, session

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


def test_a_file_that_is_none_is_said_without_a_stack_of_java(tmp_path: Path) -> None:
    (tmp_path / "samples.json").write_text("{}")
    program = f"""
from cluster_model.errors import InputError
from spark.history.read import read_samples
from spark.session import session
try:
    read_samples(session("says", "local[1]"), {str(tmp_path)!r})
except InputError as error:
    print(error)
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert "found a file that is none" in done.stdout
    assert "org.apache.spark" not in done.stderr


def test_a_short_run_compiles_quickly_and_keeps_its_plans(spark: SparkSession) -> None:
    """A calibration of a few megabytes took twice the CPU: Java optimized code that ran once, and each shuffle was planned again."""
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    jvm: Any = spark._jvm
    options = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert "-XX:TieredStopAtLevel=1" in list(options)


@pytest.mark.parametrize("master", ["foo", "local[0]", "local[abc]", "spark://", "localhost:7077"])
def test_a_master_that_is_none_is_said_so_and_not_in_a_trace_of_java(master: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--master: expected local\[N\]"):
        session("refused", master)


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*,3]", "spark://a:7077,b:7077", "yarn", "k8s://https://h:6443"])
def test_masters_of_spark_are_taken(master: str) -> None:
    assert MASTERS.fullmatch(master)


def test_a_java_that_is_not_where_it_is_said_to_be_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ExternalError, match=f"JAVA_HOME is {tmp_path}, which has no bin/java"):
        session("refused")


def test_ctrl_c_while_spark_starts_leaves_no_java() -> None:
    """The process never ended: Java had started, and nothing told it to end."""
    program = """
import os, signal, subprocess, sys, threading, time
def children():
    return subprocess.run(["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True).stdout.split()
def interrupt():
    while not children():
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
from spark.session import session
try:
    session("starts", "local[1]")
except KeyboardInterrupt:
    print("interrupted", *children())
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120, check=False)
    word, *java = done.stdout.split()
    assert word == "interrupted"
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{one}").exists() for one in java) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [one for one in java if Path(f"/proc/{one}").exists()]


def test_where_java_ends_at_once_its_version_is_said(tmp_path: Path) -> None:
    """An old one says 'class file version 61.0', which tells an operator nothing."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\nexit 1\n")
    java.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    program = "from spark.session import session\nsession('ends', 'local[1]')"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | {"JAVA_HOME": str(tmp_path)}, capture_output=True, text=True,
        timeout=120, check=False,
    )
    assert done.returncode != 0
    found = f'found {java}, openjdk version "11.0.2"'
    assert f"Spark did not start: Java ended; its output is above. Expected Java 17 or newer, {found}" in done.stderr
