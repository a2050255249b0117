"""No Kafka process outlives the run that started it, and a machine that cannot run Kafka is told what it
lacks."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.kafka import jars

ROOT = Path(__file__).resolve().parents[2]

# A run in the middle of its work: a cluster is up, and its processes are told.
RUN = """
import sys
from tests.kafka.cluster import KafkaCluster
cluster = KafkaCluster(racks=["r1"])
cluster.start()
print(cluster.folder, cluster.pid(100), cluster.pid(1), flush=True)
sys.stdin.read()
"""


def ends(pidfd: int, seconds: float) -> bool:
    """Whether the process behind a pidfd ends in time."""
    ready, _, _ = select.select([pidfd], [], [], seconds)
    return bool(ready)


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
def test_kafka_ends_with_a_run_that_is_killed(way: signal.Signals) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert run.stdout is not None
    folder, controller, broker = run.stdout.readline().split()
    watched = [os.pidfd_open(int(pid)) for pid in (controller, broker)]
    assert not ends(watched[1], 0), "the broker is up"

    os.killpg(run.pid, way)  # as a terminal does with Ctrl-C, and as an impatient person does
    run.communicate()

    try:
        assert all(ends(pidfd, 20) for pidfd in watched)
    finally:
        for pidfd in watched:
            os.close(pidfd)
    assert vanishes(Path(folder), 20), "its data is removed"


def vanishes(folder: Path, seconds: float) -> bool:
    """Whether a folder is removed in time; nothing tells of it, so it is looked at again and again."""
    look_again = threading.Event()
    for _ in range(int(seconds / 0.1)):
        if not folder.exists():
            return True
        look_again.wait(0.1)
    return False


def test_a_machine_without_maven_and_kafka_is_told_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(jars.Unavailable, match=r"install Maven .* set KAFKA_HOME"):
        jars.class_path({"PATH": str(tmp_path), "TRIMTAB_CACHE": str(tmp_path)})


def test_a_kafka_home_without_kafka_is_refused(tmp_path: Path) -> None:
    with pytest.raises(jars.Unavailable, match=r"no kafka_2\.13-\*\.jar in .*libs"):
        jars.class_path({"KAFKA_HOME": str(tmp_path)})


def test_kafka_home_goes_before_maven(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-4.3.1.jar").touch()
    assert jars.class_path({"KAFKA_HOME": str(tmp_path), "PATH": ""}) == f"{tmp_path}/libs/*"


def fake_java(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


def test_an_old_java_is_refused_with_its_version(tmp_path: Path) -> None:
    fake_java(tmp_path / "bin", "11.0.2")
    with pytest.raises(jars.Unavailable, match=r"Java 17 or newer, but .* says: openjdk version .11\.0\.2"):
        jars.java({"JAVA_HOME": str(tmp_path)})
    with pytest.raises(jars.Unavailable, match="there is no java on the PATH"):
        jars.java({"PATH": str(tmp_path)})


def test_a_download_that_breaks_off_leaves_nothing_that_looks_complete(tmp_path: Path) -> None:
    """Maven that dies after the first jar: the next run must not take that folder for Kafka."""
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text(
        "#!/bin/sh\nfor a; do case $a in -DoutputDirectory=*) touch ${a#*=}/kafka_2.13-4.3.1.jar;; "
        "esac; done\nexit 1\n"
    )
    maven.chmod(0o755)
    environment = {"PATH": f"{maven.parent}:/usr/bin:/bin", "TRIMTAB_CACHE": str(tmp_path / "cache")}
    for _ in range(2):
        with pytest.raises(jars.Unavailable, match="Maven could not fetch Apache Kafka"):
            jars.class_path(environment)
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
