"""A plan is carried out on a real cluster, to the end, whatever is killed; nothing is lost and no throttle is left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient

from tests.kafka import chaos
from tests.kafka.cluster import FIRST_CONTROLLER, KafkaCluster
from tests.kafka.executions import Executing, Move, Verified, leaders, looking, placed, plan_file, throttles, until
from tests.kafka.services import Embedded, Reporters
from tests.kafka.traffic import Traffic, create_topic, fill
from tests.kafka.watched import PATIENCE, Watched
from tests.ports import CHECKS, Settle
from trimtab.execution.port import ClusterPort, Resource
from trimtab.execution.state import Partition
from trimtab.execution.throttle import LEADER_RATE, LEADER_REPLICAS

COUNT = 6
BYTES = 3_000_000  # of each partition
SLOWLY = ("--throttle", "1MB/s", "--concurrency", "2", "--reserve", "0")  # it lasts long enough to be interrupted


@pytest.fixture
def topic(cluster: KafkaCluster, admin: KafkaAdminClient, request: pytest.FixtureRequest) -> Iterator[str]:
    """Six partitions of some MB on brokers 1, 3 and 4."""
    name = f"moved-{abs(hash(request.node.name)) % 100_000}"
    create_topic(admin, name, [(1, 3, 4)] * COUNT, {"min.insync.replicas": "2"})
    fill(cluster.bootstrap, {(name, n): BYTES // 1000 for n in range(COUNT)}, 1000)
    yield name
    admin.delete_topics([name])


def moves(topic: str) -> dict[Partition, Move]:
    """From broker 1 to its neighbour in the rack, which then leads."""
    return {Partition(topic, n): ((1, 3, 4), (2, 3, 4)) for n in range(COUNT)}


def test_a_plan_is_carried_out_under_load_and_taken_back_again(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    plan = plan_file(tmp_path / "plan.json", cluster.cluster_id, moves(topic))
    with Verified(cluster, [Partition(topic, n) for n in range(COUNT)]) as traffic:
        assert Executing(cluster, tmp_path, "execute", "--plan", str(plan), "--throttle", "20MB/s", "--reserve", "0").ends(PATIENCE) == 0
        assert placed(cluster, topic) == {n: after for n, (_, after) in moves(topic).items()}
        assert set(leaders(cluster, topic).values()) == {2}
        assert throttles(cluster, topic) == {}
        assert Executing(cluster, tmp_path, "rollback").ends(PATIENCE) == 0
    assert placed(cluster, topic) == {n: before for n, (before, _) in moves(topic).items()}
    assert set(leaders(cluster, topic).values()) == {1}
    assert throttles(cluster, topic) == {}
    assert traffic.faults() == []
    assert traffic.failed == []


def test_a_dry_run_tells_the_steps_and_changes_nothing(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    plan = plan_file(tmp_path / "plan.json", cluster.cluster_id, moves(topic))
    dry = ("execute", "--plan", str(plan), "--throttle", "20MB/s", "--concurrency", "2", "--dry-run")
    told = said(cluster, tmp_path, *dry, "--reserve", "0")
    assert "  1. set throttles of 20 MB/s: brokers 1, 2, 3, 4; topics" in told
    assert f"{topic}-0: [1, 3, 4] → [2, 3, 4], 3" in told
    assert "restore the throttles from before" in told
    steps = json.loads(said(cluster, tmp_path, *dry, "--reserve", "0", "--format", "json"))["steps"]
    assert [len(s["partitions"]) for s in steps if s["type"] == "reassignments"] == [2, 2, 2]
    assert "6 partitions would not be changed as planned:" in said(cluster, tmp_path, *dry, "--reserve", "1PB")
    assert set(placed(cluster, topic).values()) == {(1, 3, 4)}
    assert throttles(cluster, topic) == {}
    with looking(cluster) as port:
        assert not any(p.reassigning for p in port.look(()).partitions.values())


def test_killed_in_the_middle_it_is_resumed_on_another_machine(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    """The other machine has no journal: what it needs it finds in the cluster, also in which batch it is."""
    halves = [1] * (COUNT // 2) + [2] * (COUNT - COUNT // 2)
    plan = plan_file(tmp_path / "plan.json", cluster.cluster_id, moves(topic), batches=halves)
    first = Executing(cluster, tmp_path / "here", "execute", "--plan", str(plan), *SLOWLY)
    assert until(lambda: any(len(r) > 3 for r in placed(cluster, topic).values()))
    first.kill()
    assert throttles(cluster, topic) != {}
    found = status(cluster, tmp_path / "there")
    assert (found["batch"], found["batches"]) == (1, 2)
    waiting = [d["stage"] for d in found["details"] if d["partition"] >= COUNT // 2]
    assert waiting == ["waiting"] * len(waiting), "the second batch has not begun"
    refused = Executing(cluster, tmp_path / "there", "execute", "--plan", str(plan), "--reserve", "0")
    assert refused.ends(PATIENCE) == 1
    assert refused.hears("trimtab resume", 1)
    assert first.hears("by replica.fetch.backoff.ms = 1000 of broker 3", 1)
    resumed = Executing(cluster, tmp_path / "there", "resume")
    assert resumed.ends(PATIENCE) == 0
    assert resumed.hears("waits: batch 2 starts 2 s after the last one was in place", 1)
    assert placed(cluster, topic) == {n: after for n, (_, after) in moves(topic).items()}
    assert set(leaders(cluster, topic).values()) == {2}
    assert throttles(cluster, topic) == {}


def test_it_is_paused_looked_at_and_cancelled_from_elsewhere(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    plan = plan_file(tmp_path / "plan.json", cluster.cluster_id, moves(topic))
    running = Executing(cluster, tmp_path / "a", "execute", "--plan", str(plan), *SLOWLY)
    assert until(lambda: any(len(r) > 3 for r in placed(cluster, topic).values()))
    second = Executing(cluster, tmp_path / "b", "execute", "--plan", str(plan))
    assert second.ends(PATIENCE) == 1
    assert second.hears("one at a time", 1)
    assert Executing(cluster, tmp_path / "b", "pause", "--who", "anna").ends(PATIENCE) == 0
    found = status(cluster, tmp_path / "b")
    assert (found["paused_by"], found["at_work"], found["state"]) == ("anna", True, "running")
    assert Executing(cluster, tmp_path / "b", "cancel").ends(PATIENCE) == 0
    assert running.ends(PATIENCE) == 1
    assert status(cluster, tmp_path / "b")["state"] == "cancelled"
    assert all(r in ((1, 3, 4), (2, 3, 4)) for r in placed(cluster, topic).values())
    assert (1, 3, 4) in placed(cluster, topic).values()
    assert throttles(cluster, topic) == {}


def test_what_changed_since_the_plan_is_left_alone_or_refuses_it(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    wrong = moves(topic) | {Partition(topic, 0): ((1, 4, 3), (2, 3, 4))}
    plan = plan_file(tmp_path / "plan.json", cluster.cluster_id, wrong)
    strict = Executing(cluster, tmp_path, "execute", "--plan", str(plan), "--strict")
    assert strict.ends(PATIENCE) == 2
    assert strict.hears(f"{topic}-0: expected replicas [1, 4, 3]", 1)
    assert Executing(cluster, tmp_path, "execute", "--plan", str(plan), "--reserve", "0").ends(PATIENCE) == 1
    now = placed(cluster, topic)
    assert now.pop(Partition(topic, 0)) == (1, 3, 4)
    assert set(now.values()) == {(2, 3, 4)}
    elsewhere = plan_file(tmp_path / "other.json", "another", moves(topic))
    assert Executing(cluster, tmp_path, "execute", "--plan", str(elsewhere)).ends(PATIENCE) == 2


def test_without_room_at_the_target_nothing_is_touched(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    """Brokers say how much room their log directories have."""
    plan = plan_file(tmp_path / "plan.json", cluster.cluster_id, moves(topic))
    full = Executing(cluster, tmp_path, "execute", "--plan", str(plan), "--reserve", "1PB")
    assert full.ends(PATIENCE) == 1
    assert full.hears("no room on broker 2", 1)
    assert set(placed(cluster, topic).values()) == {(1, 3, 4)}


def test_ctrl_c_leaves_it_to_be_resumed(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    plan = plan_file(tmp_path / "plan.json", cluster.cluster_id, moves(topic))
    running = Executing(cluster, tmp_path, "execute", "--plan", str(plan), *SLOWLY)
    assert until(lambda: any(len(r) > 3 for r in placed(cluster, topic).values()))
    assert running.end(signal.SIGINT) == 130
    assert "its process is gone" in said(cluster, tmp_path, "status")
    assert Executing(cluster, tmp_path, "resume").ends(PATIENCE) == 0
    assert throttles(cluster, topic) == {}


def test_throttles_of_others_come_back_as_they_were(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    plan = plan_file(tmp_path / "plan.json", cluster.cluster_id, moves(topic))
    broker, of_topic = Resource("broker", "1"), Resource("topic", topic)
    with looking(cluster) as port:
        port.set_configs({broker: {LEADER_RATE: "77000000"}, of_topic: {LEADER_REPLICAS: "9:1"}})
    theirs = {"broker 1": {LEADER_RATE: "77000000"}, f"topic {topic}": {LEADER_REPLICAS: "9:1"}}
    assert until(lambda: throttles(cluster, topic) == theirs)  # a broker applies it a moment later
    assert Executing(cluster, tmp_path, "execute", "--plan", str(plan), "--throttle", "20MB/s", "--reserve", "0").ends(PATIENCE) == 0
    assert throttles(cluster, topic) == theirs
    assert f"topic {topic}: {LEADER_REPLICAS} = 9:1" in said(cluster, tmp_path, "throttles")
    said(cluster, tmp_path, "throttles", "--clean", "--every")
    assert until(lambda: throttles(cluster, topic) == {})


def status(cluster: KafkaCluster, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(cluster, folder, "status", "--format", "json"))
    return found


def said(cluster: KafkaCluster, folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "trimtab", *arguments, "--bootstrap-server", cluster.bootstrap, "--journal", str(folder / "journal")]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout


def test_a_cluster_is_levelled_by_one_command(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    """Plan, question, execution; all other topics are left out, so that the tests do not meet."""
    with looking(cluster) as port:
        others = {n.topic for n in port.look(()).partitions} - {topic}
    goals = tmp_path / "goals.yaml"
    goals.write_text(
        "version: 1\ngoals:\n  - {kind: usage_distribution, resource: replicas}\n"
        f"constraints: {{exclude_topics: {json.dumps(sorted(others))}}}\n"
    )
    before = placed(cluster, topic)
    ended = Executing(
        cluster, tmp_path, "plan", "--goals", str(goals), "--interval", "1s", "--execute", "--yes", "--throttle", "20MB/s",
        "--out", str(tmp_path / "plan.txt"),
    )  # fmt: skip
    assert ended.ends(PATIENCE) == 0, ended.said
    assert placed(cluster, topic) != before
    assert any(2 in replicas for replicas in placed(cluster, topic).values())
    assert throttles(cluster, topic) == {}


@pytest.mark.parametrize(("factor", "throttle"), [(2, "20MB/s"), (4, "auto")])
def test_a_replication_factor_is_changed_by_one_command_and_taken_back(
    cluster: KafkaCluster, topic: str, factor: int, throttle: str, tmp_path: Path
) -> None:
    before = placed(cluster, topic)
    with Verified(cluster, list(before)) as traffic:
        ended = Executing(
            cluster, tmp_path, "plan", "--preset", "counts", "--interval", "0", "--replication-factor", f"{topic}={factor}",
            "--execute", "--yes", "--throttle", throttle, "--out", str(tmp_path / "plan.txt"),
        )  # fmt: skip
        assert ended.ends(PATIENCE) == 0, ended.said
        assert throttle != "auto" or ended.hears("it starts with a throttle of", 1)
        now = placed(cluster, topic)
        assert {len(replicas) for replicas in now.values()} == {factor}
        assert set(leaders(cluster, topic).values()) == {1}, "leaders stay where they were"
        assert throttles(cluster, topic) == {}
        assert Executing(cluster, tmp_path, "rollback").ends(PATIENCE) == 0
    assert placed(cluster, topic) == before
    assert traffic.faults() + traffic.failed == []
    assert throttles(cluster, topic) == {}


def test_a_service_in_auto_mode_levels_a_real_cluster(cluster: KafkaCluster, admin: KafkaAdminClient, tmp_path: Path) -> None:
    create_topic(admin, "skewed", [(1, 2)] * 8)
    load = {("skewed", n): 2 for n in range(8)}
    with Traffic(cluster.bootstrap, load, size=2000), Reporters(cluster):
        service = Embedded(cluster, FIRST_CONTROLLER, tmp_path / "service", mode="auto", execution={"throttle": "20MB", "reserve": 1})
        try:
            done = service.until(lambda: (plan := service.balancer.state().plan) is not None and plan.state == "done")
            assert done, (service.balancer.state().plan, service.balancer.state().why_nothing)
        finally:
            service.stop()
    assert {b for replicas in placed(cluster, "skewed").values() for b in replicas} == {1, 2, 3, 4}
    assert throttles(cluster, "skewed") == {}
    assert status(cluster, tmp_path)["state"] == "done"
    admin.delete_topics(["skewed"])


def test_a_broker_is_drained_stays_so_and_is_taken_back(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    journal = ("--bootstrap-server", cluster.bootstrap, "--journal", str(tmp_path / "journal"))
    goals = tmp_path / "goals.yaml"
    goals.write_text("version: 1\ngoals:\n  - {kind: usage_distribution, resource: replicas}\n")
    drain = Executing(cluster, tmp_path, "drain", "--broker", "1", "--goals", str(goals), "--interval", "0", "--yes", "--who", "anna")
    assert drain.ends(PATIENCE) == 0
    assert drain.hears("broker 1 is drained: it hosts no replica and can be shut down", 1)
    with looking(cluster) as port:
        assert not [n for n, p in port.look(()).partitions.items() if 1 in p.replicas]
    # Later plans of the live cluster leave it empty, without being told again.
    snapshot = tmp_path / "snapshot.json"
    capture = Watched(tmp_path, "snapshot", "--bootstrap-server", cluster.bootstrap, "--interval", "0", "--out", str(snapshot))
    assert capture.ends(PATIENCE) == 0
    states = {b["id"]: b.get("state", "active") for b in json.loads(snapshot.read_text())["brokers"]}
    assert states == {1: "draining", 2: "active", 3: "active", 4: "active"}
    taken_back = Watched(tmp_path, "activate", "--broker", "1", *journal)
    assert taken_back.ends(PATIENCE) == 0
    assert taken_back.hears("broker 1 is active again", 1)


MIDDLE = ["target-killed", "cut-off", "deposed", "topic-deleted", "another-tool-moves", "another-tool-cancels"]


@pytest.mark.parametrize(("name", "done"), [*((name, 2) for name in MIDDLE), ("executor-killed", chaos.COUNT)])
def test_disturbed_it_ends_well(cluster: KafkaCluster, name: str, done: int, tmp_path: Path) -> None:
    """A part of `python -m tests.kafka.chaos`."""
    assert chaos.run(cluster, name, done, tmp_path) == []


@pytest.mark.parametrize("check", CHECKS)
def test_port(cluster: KafkaCluster, topic: str, check: Callable[[ClusterPort, str, Settle], None]) -> None:
    """The same that the simulated cluster has to do."""
    with looking(cluster) as port:
        check(port, topic, until)
