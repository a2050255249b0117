"""No Kafka process outlives the run that started it, and a machine that cannot run Kafka is told what it
lacks."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.kafka import jars
from trimtab.capture import capture

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


def test_kafka_ends_with_a_run_that_is_killed() -> None:
    """`kill -9` of the run and everything in its process group: nothing of it can clean up any more."""
    run = subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert run.stdout is not None
    folder, controller, broker = run.stdout.readline().split()
    with watched([int(controller), int(broker)]) as processes:
        assert not ends(processes[1], 0), "the broker is up"
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        assert all(ends(process, 20) for process in processes)
    assert vanishes(Path(folder), 20), "its data is removed"


def test_make_kafka_leaves_a_cluster_to_try_things_on_until_ctrl_c() -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "tests.kafka.cluster"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert run.stdout is not None
    said: list[str] = []
    for line in run.stdout:
        said.append(line.strip())
        if line.startswith("Ctrl-C"):
            break
    assert said[-1].startswith("Ctrl-C"), said
    addresses = next(line.split()[-1] for line in said if line.startswith("bootstrap servers:"))
    folder = next(line.split()[-1] for line in said if line.startswith("data and logs:"))
    assert sum(line.startswith("trimtab ") for line in said) == 3, said
    pids = [p.pid for p in psutil.process_iter() if p.name() == "java" and folder in " ".join(p.cmdline())]
    assert len(pids) == 5, "one controller and four brokers"
    snapshot = capture(addresses, interval=1)
    assert {"orders", "clicks", "audit"} <= set(snapshot.topics)
    assert snapshot.leader_load["network_in"].sum() > 0, "there is traffic"
    leaders = snapshot.broker_load("leaders")
    assert leaders[:2].sum() > leaders[2:].sum(), "and there is something to balance"

    with watched(pids) as processes:
        os.killpg(run.pid, signal.SIGINT)
        rest, _ = run.communicate(timeout=60)
        assert run.returncode == 0, rest
        assert all(ends(process, 20) for process in processes)
    assert not Path(folder).exists()


@contextmanager
def watched(pids: list[int]) -> Iterator[list[int]]:
    """A pidfd of each process, closed afterwards."""
    processes = [os.pidfd_open(pid) for pid in pids]
    try:
        yield processes
    finally:
        for process in processes:
            os.close(process)


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


def test_classes_are_written_once_and_a_kafka_that_wrote_none_starts_without(tmp_path: Path) -> None:
    environment = {"TRIMTAB_CACHE": str(tmp_path), "KAFKA_HOME": str(tmp_path), "JAVA_HOME": str(tmp_path)}
    fake_java(tmp_path / "bin", "17.0.2")
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-4.3.1.jar").touch()
    assert jars.shared_classes(lambda path: None, environment) is None
    first = jars.shared_classes(Path.touch, environment)
    assert first is not None
    assert first.is_file()
    assert jars.shared_classes(lambda path: pytest.fail("it is there"), environment) == first
    (tmp_path / "libs" / "kafka_2.13-4.3.1.jar").write_text("another build")
    assert jars.shared_classes(lambda path: None, environment) is None


def test_a_download_that_breaks_off_leaves_nothing_that_looks_complete(tmp_path: Path) -> None:
    """Maven that dies after the first jar: the next run must not take that folder for Kafka."""
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text(
        "#!/bin/sh\nfor a; do case $a in -DoutputDirectory=*) touch ${a#*=}/kafka_2.13-4.3.1.jar;; esac; done\nexit 1\n"
    )
    maven.chmod(0o755)
    environment = {"PATH": f"{maven.parent}:/usr/bin:/bin", "TRIMTAB_CACHE": str(tmp_path / "cache")}
    for _ in range(2):
        with pytest.raises(jars.Unavailable, match="Maven could not fetch Apache Kafka"):
            jars.class_path(environment)
    assert not [path for path in (tmp_path / "cache").iterdir() if path.is_dir()]
