"""Log directories of real brokers with two volumes: captured, planned, moved with an interruption, and where Kafka says that they are."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.cluster import KafkaCluster
from tests.kafka.test_live_command import KERNELS, ROOT
from tests.kafka.traffic import administering, create_topic, fill
from trimtab.capture.client import client_settings
from trimtab.capture.gateway import Gateway

TOPIC = "in-directories"
COUNT = 8
MEMORY = Path("/dev/shm")  # another file system than that of temporary files


@pytest.fixture(scope="module")
def jbod() -> Iterator[KafkaCluster]:
    """Two brokers with one log directory on each of two file systems; copies between them are slow enough to be interrupted."""
    slow = {"replica.alter.log.dirs.io.max.bytes.per.second": "400000"}
    with (
        tempfile.TemporaryDirectory(prefix="trimtab-kafka-", dir=MEMORY) as memory,
        KafkaCluster((None, None), volumes=(Path(memory),), properties=slow) as kafka,
    ):
        with administering(kafka) as admin:
            create_topic(admin, TOPIC, [[1, 2]] * COUNT)
        fill(kafka.bootstrap, {(TOPIC, n): 1000 for n in range(COUNT)})
        yield kafka


def arguments(*given: str) -> list[str]:
    return [sys.executable, "-m", "trimtab", *given]


def trimtab(*given: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(folder), **KERNELS}
    return subprocess.run(arguments(*given), cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


def interrupted(*given: str, folder: Path) -> tuple[int, str]:
    """Exit code and story of a command that is told to end once a replica is on its way."""
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(folder), **KERNELS}
    process = subprocess.Popen(arguments(*given), cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    story = ""
    for line in process.stderr:
        story += line
        if "on their way" in line and "0 on their way" not in line:
            process.send_signal(signal.SIGINT)
            break
    story += process.stderr.read()
    return process.wait(60), story


def held(cluster: KafkaCluster) -> dict[tuple[int, int], str]:
    """Broker and partition -> the log directory that holds it, by the admin client; none may be on its way."""
    found = {}
    with administering(cluster) as admin:
        for answer in admin.describe_log_dirs({TOPIC: list(range(COUNT))}):
            for log_dir in answer["log_dirs"]:
                for p in (p for topic in log_dir["topics"] for p in topic["partitions"]):
                    assert not p["is_future_key"]
                    found[answer["broker"], p["partition_index"]] = log_dir["log_dir"]
    return found


def with_sizes(document: dict[str, Any]) -> dict[str, Any]:
    """Volumes of 10 and 100 MB with 4 and 4 MB of logs, in place of those of this machine, which hold other files."""
    for broker in document["brokers"]:
        for directory, size in zip(broker["directories"], (10e6, 100e6), strict=True):
            directory |= {"size": size, "used": 4.1e6}
    return document


def test_replicas_are_captured_planned_and_moved_also_after_an_interruption(jbod: KafkaCluster, tmp_path: Path) -> None:
    server = ("--bootstrap-server", jbod.bootstrap)
    done = trimtab("snapshot", *server, "--interval", "0s", "--out", "c.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "c.json").read_text())
    before = held(jbod)
    for broker in document["brokers"]:
        assert [d["path"] for d in broker["directories"]] == [str(p) for p in jbod.log_dirs(broker["id"])]
    paths = {broker["id"]: [d["path"] for d in broker["directories"]] for broker in document["brokers"]}
    for p in document["partitions"]:
        assert [paths[b][at] for b, at in zip(p["replicas"], p["directories"], strict=True)] == [before[b, p["partition"]] for b in (1, 2)]

    (tmp_path / "c.json").write_text(json.dumps(with_sizes(document)))
    done = trimtab("directories", "-s", "c.json", "-p", "counts", "-f", "reassignment", "-o", "moves.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    moves = json.loads((tmp_path / "moves.json").read_text())["partitions"]
    wanted = {
        (b, p["partition"]): path for p in moves for b, path in zip(p["replicas"], p["log_dirs"], strict=True) if path != "any"
    }  # fmt: skip
    assert len(wanted) >= 4
    assert all(path == paths[broker][1] for (broker, _), path in wanted.items())

    carry_out = ("directories", *server, "--execute", "moves.json", "--reserve", "1MB")
    code, story = interrupted(*carry_out, folder=tmp_path)
    assert code == 130, story
    assert "the same command goes on with the rest" in story
    done = trimtab(*carry_out, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert held(jbod) == before | wanted
    begun = time.monotonic()
    again = trimtab(*carry_out, folder=tmp_path)
    assert again.returncode == 0
    assert f"{len(wanted)} of {len(wanted)} replicas are in their log directories" in again.stderr
    assert time.monotonic() - begun < 60.0

    verified = jbod.run_tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *server, "--reassignment-json-file", str(tmp_path / "moves.json"),
        "--verify",
    )  # fmt: skip
    assert verified.stdout.count("completed successfully") >= len(wanted), verified.stdout + verified.stderr

    remove = ("--remove", f"1:{paths[1][0]}")
    assert trimtab("snapshot", *server, "--interval", "0s", "--out", "now.json", folder=tmp_path).returncode == 0
    document = with_sizes(json.loads((tmp_path / "now.json").read_text()))
    (tmp_path / "now.json").write_text(json.dumps(document))
    assert paths[1][0] in {path for (broker, _), path in held(jbod).items() if broker == 1}
    done = trimtab("directories", "-s", "now.json", "-p", "counts", *remove, "-f", "reassignment", "-o", "empty.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = trimtab("directories", *server, "--execute", "empty.json", "--reserve", "1MB", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path for (broker, _), path in held(jbod).items() if broker == 1} == {paths[1][1]}


def test_the_service_is_told_of_volumes_and_not_of_the_logs_on_them(jbod: KafkaCluster) -> None:
    with Gateway(jbod.bootstrap, client_settings(None)) as gateway:
        answers = gateway.counters({1: [], 2: []})
    for told in answers.values():
        assert told.errors == ()
        assert told.sizes is not None
        assert (len(told.sizes.volumes), told.sizes.offline_dirs, dict(told.sizes.sizes)) == (2, (), {})
