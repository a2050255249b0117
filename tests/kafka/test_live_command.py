"""The commands as a person runs them, in a process of their own, against a real cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_model.files import read_snapshot
from tests.kafka.cluster import FIRST_CONTROLLER, KafkaCluster
from tests.kafka.traffic import administering, create_topic, fill

ROOT = Path(__file__).resolve().parents[2]
# With a home of its own a plan would first compile the planner, which takes too long on a machine that has other work.
KERNELS = {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}
TOPIC = "command-skewed"


def trimtab(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trimtab", *arguments], cwd=folder,
        env={"PYTHONPATH": str(ROOT), "HOME": str(folder), **KERNELS}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def skewed(cluster: KafkaCluster) -> Iterator[None]:
    with administering(cluster) as admin:
        create_topic(admin, TOPIC, [[1, 2]] * 10)
    fill(cluster.bootstrap, {(TOPIC, n): 100 for n in range(10)})
    yield
    with administering(cluster) as admin:
        admin.delete_topics([TOPIC])


@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz", "cluster"])
def test_snapshot_to_a_file_holds_the_cluster_and_its_capacities(cluster: KafkaCluster, tmp_path: Path, name: str) -> None:
    (tmp_path / "capacity.yaml").write_text("default: {disk: 2TB}\nbrokers:\n  4: {disk: 4TB, network_in: 125MB/s}\n")
    done = trimtab(
        "snapshot", "--bootstrap-server", cluster.bootstrap, "--interval", "1s",
        "--capacity", "capacity.yaml", "--out", name, folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "captured 4 brokers" in done.stderr
    snapshot = read_snapshot(tmp_path / name)
    assert snapshot.cluster_id == cluster.cluster_id
    assert snapshot.row_of_partition(TOPIC, 9) >= 0
    assert snapshot.capacity["disk"].tolist() == [2e12, 2e12, 2e12, 4e12]
    assert snapshot.capacity["network_in"][3] == 125e6
    assert any("network_out is a lower bound" in note for note in snapshot.notes)


def test_the_capture_that_a_plan_was_made_of_is_kept(cluster: KafkaCluster, tmp_path: Path) -> None:
    """A second capture is another cluster: report, moves and snapshot must be of one moment."""
    done = trimtab(
        "plan", "--bootstrap-server", cluster.bootstrap, "--interval", "0", "--preset", "counts",
        "--out", "plan.json", "--out", "moves.json", "--save-snapshot", "kept.json", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["snapshot"]["digest"] == read_snapshot(tmp_path / "kept.json").digest
    assert json.loads((tmp_path / "moves.json").read_text())["partitions"]


def test_snapshot_without_out_is_json_on_stdout(cluster: KafkaCluster, tmp_path: Path) -> None:
    done = trimtab("snapshot", "--bootstrap-server", cluster.bootstrap, "--interval", "0", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["version"] == 1
    assert [b["id"] for b in document["brokers"]] == [1, 2, 3, 4]
    assert {"topic": TOPIC, "partition": 0}.items() <= next(p for p in document["partitions"] if p["topic"] == TOPIC).items()


def test_a_person_at_a_terminal_sees_progress_and_data_stays_clean(cluster: KafkaCluster, tmp_path: Path) -> None:
    terminal, stderr = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", "snapshot", "--bootstrap-server", cluster.bootstrap, "--interval", "1s"],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.PIPE, stderr=stderr, check=False, timeout=60,
    )  # fmt: skip
    os.close(stderr)
    shown = os.read(terminal, 1 << 20).decode()
    os.close(terminal)
    assert done.returncode == 0, shown
    assert "measuring rates" in shown
    assert "%" in shown
    assert json.loads(done.stdout)["version"] == 1


def test_plan_straight_from_the_cluster_gives_a_file_kafka_accepts(cluster: KafkaCluster, tmp_path: Path) -> None:
    done = trimtab(
        "plan", "--bootstrap-server", cluster.bootstrap, "--interval", "0", "--preset", "counts",
        "--format", "reassignment", "--out", "reassignment.json", folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    moves = json.loads((tmp_path / "reassignment.json").read_text())["partitions"]
    assert any(move["topic"] == TOPIC for move in moves)
    verified = cluster.run_tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--bootstrap-server", cluster.bootstrap,
        "--reassignment-json-file", str(tmp_path / "reassignment.json"), "--verify",
    )  # fmt: skip
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert f"There is no active reassignment of partition {TOPIC}" in verified.stdout, "the dry run changed nothing"


def test_a_port_where_nothing_listens_is_said_in_one_line(tmp_path: Path) -> None:
    done = trimtab("snapshot", "--bootstrap-server", "127.0.0.1:1", "--out", "cluster.json", folder=tmp_path)
    assert done.returncode == 1
    assert "127.0.0.1:1: Connection refused" in done.stderr
    assert "Check host and port" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "cluster.json").exists()


def test_a_controllers_port_is_recognised(cluster: KafkaCluster, tmp_path: Path) -> None:
    port = cluster.quorum[FIRST_CONTROLLER]
    done = trimtab("snapshot", "--bootstrap-server", f"127.0.0.1:{port}", folder=tmp_path)
    assert done.returncode == 1
    assert "give the address of a broker" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_without_a_port_is_a_usage_error(tmp_path: Path) -> None:
    done = trimtab("snapshot", "--bootstrap-server", "broker1", folder=tmp_path)
    assert done.returncode == 2
    assert "expected HOST:PORT such as broker1:9092, found 'broker1'" in done.stderr


def test_mistakes_in_the_capacity_file_are_told_all_at_once(cluster: KafkaCluster, tmp_path: Path) -> None:
    (tmp_path / "capacity.yaml").write_text("defaults: {disk: 2TB}\nbrokers: {1: {disc: 2TB, cpu: -1}, two: {}}\n")
    done = trimtab("snapshot", "--bootstrap-server", cluster.bootstrap, "--capacity", "capacity.yaml", folder=tmp_path)
    assert done.returncode == 2
    for part in (
        "4 problems",
        "defaults: unknown key (did you mean default?)",
        "brokers.1.disc",
        "brokers.1.cpu",
        "brokers.two",
    ):
        assert part in done.stderr
