"""`trimtab assign`: where a new topic goes, and what an operator is told where it cannot."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.assembled.commands.command_line import CommandLine
from trimtab.execution.order import read_order

STRATEGIES = ("least", "rotate_within", "least_rate", "below_mean_random", "spread_scope", "leader_deficit", "weighted_by_headroom")
RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


def cluster(path: Path, **more: Any) -> Path:
    """Broker 1 is full, broker 6 empty; 5 is draining where asked for."""
    brokers = [{"id": b, "rack": r, "capacity": {"disk": 100e9}, **({"state": "draining"} if b in more.get("draining", ()) else {})}
               for b, r in RACKS.items()]  # fmt: skip
    partitions = [
        {"topic": "old", "partition": p, "replicas": [1 + p % 2, 3 + p % 2, 5], "leader": 1 + p % 2,
         "leader_load": {"network_in": 1e6, "disk": 5e9}}
        for p in range(12)
    ]  # fmt: skip
    document = {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local", "brokers": brokers,
                "partitions": partitions}  # fmt: skip
    path.write_text(json.dumps(document))
    return path


def goals(path: Path, *lines: str) -> Path:
    path.write_text("version: 1\ngoals:\n" + "".join(f" - {line}\n" for line in ("{kind: rack_aware, hard: true}", *lines)))
    return path


def lists(text: str) -> dict[int, list[int]]:
    return {p["partition"]: p["replicas"] for p in json.loads(text)["partitions"]}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_new_topic_is_level_and_in_all_racks_whatever_the_strategy(trimtab: CommandLine, tmp_path: Path, strategy: str) -> None:
    ended = trimtab("assign", "--snapshot", cluster(tmp_path / "c.json"), "--goals", goals(tmp_path / "g.yaml"), "--topic", "new",
                    "--partitions", "12", "--replication-factor", "3", "--strategy", strategy)  # fmt: skip
    placed = lists(ended.out)
    assert ended.code == 0
    assert sorted(placed) == list(range(12))
    assert all({RACKS[b] for b in replicas} == {"a", "b", "c"} for replicas in placed.values())
    assert Counter(b for r in placed.values() for b in r) == dict.fromkeys(RACKS, 6)
    leaders = Counter(r[0] for r in placed.values())
    assert max(leaders.values()) - min(leaders.get(b, 0) for b in RACKS) <= 1


def test_more_partitions_follow_those_there_are(trimtab: CommandLine, tmp_path: Path) -> None:
    """Broker 6 has nothing of the topic, so it gets what is new."""
    ended = trimtab("assign", "--snapshot", cluster(tmp_path / "c.json"), "--goals", goals(tmp_path / "g.yaml"), "--topic", "old",
                    "--partitions", "16", "--replication-factor", "3")  # fmt: skip
    placed = lists(ended.out)
    assert sorted(placed) == [12, 13, 14, 15]
    assert all(6 in replicas for replicas in placed.values())
    unsaid = trimtab("assign", "--snapshot", tmp_path / "c.json", "--goals", tmp_path / "g.yaml", "--topic", "old", "--partitions", "16")
    assert unsaid.out == ended.out, "replicas as the other partitions have"


def test_kafka_topics_takes_it_as_it_is(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("assign", "--snapshot", cluster(tmp_path / "c.json", draining=(5,)), "--goals", goals(tmp_path / "g.yaml"), "--topic",
                    "new", "--partitions", "3", "--replication-factor", "3", "--format", "replica-assignment")  # fmt: skip
    rows = [[int(b) for b in row.split(":")] for row in ended.out.strip().split(",")]
    assert [len(set(row)) for row in rows] == [3, 3, 3]
    assert not any(5 in row for row in rows)
    assert len({row[0] for row in rows}) == 3


def test_a_full_disk_gets_nothing_of_a_topic_that_is_like_another(trimtab: CommandLine, tmp_path: Path) -> None:
    """Brokers 1 to 4 hold 30 GB, broker 5 60 GB: with 5 GB a replica and a limit of 60 GB, 5 takes none."""
    given = ("assign", "--snapshot", cluster(tmp_path / "c.json"), "--goals", goals(tmp_path / "g.yaml",
             "{kind: capacity, resource: disk, limit: 0.6}"), "--topic", "new", "--replication-factor", "3", "--like", "old")  # fmt: skip
    placed = lists(trimtab(*given, "--partitions", "6").out)
    assert not any(5 in replicas for replicas in placed.values())
    ended = trimtab(*given, "--partitions", "13")
    assert ended.code == 1
    assert "new-12: no broker may take replica" in ended.err
    assert "every one is ruled out by capacity-disk (brokers" in ended.err
    assert "; add a broker, or loosen the goal" in ended.err


@pytest.mark.parametrize(
    ("racks", "held", "limit", "remedy"),
    [  # two of three disks are at their limit, and all that they hold leaves room for three replicas more where it is level
        pytest.param("abc", [1, 2] * 6, 0.6, "; balance the cluster first (trimtab plan), add a broker, or", id="balance"),
        # the only broker of the third rack is full
        pytest.param("abbc", [4] * 9, 0.9, "add a broker in another rack, or loosen the goal", id="rack"),
    ],
)
def test_the_remedy_is_what_makes_room(
    trimtab: CommandLine, tmp_path: Path, racks: str, held: list[int], limit: float, remedy: str
) -> None:
    document = {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
                "brokers": [{"id": b, "rack": rack, "capacity": {"disk": 100e9}} for b, rack in enumerate(racks, 1)],
                "partitions": [{"topic": "old", "partition": p, "replicas": [b], "leader": b, "leader_load": {"disk": 10e9}}
                               for p, b in enumerate(held)]}  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps(document))
    given = goals(tmp_path / "g.yaml", f"{{kind: capacity, resource: disk, limit: {limit}}}")
    ended = trimtab("assign", "--snapshot", tmp_path / "c.json", "--goals", given, "--topic", "new", "--partitions", "1",
                    "--replication-factor", "3", "--like", "old")  # fmt: skip
    assert ended.code == 1
    assert remedy in ended.err


def test_a_name_that_no_topic_can_have_is_refused(trimtab: CommandLine, tmp_path: Path) -> None:
    given = ("assign", "-s", cluster(tmp_path / "c.json"), "--preset", "counts", "--partitions", "1", "--replication-factor", "1")
    ended = trimtab(*given, "--topic", "bad name!")
    assert ended.code == 2
    assert "--topic: expected letters, digits, dots, dashes and underscores, at most 249, found 'bad name!'" in ended.err
    assert "--topic: expected a name that Kafka takes, found '..'" in trimtab(*given, "--topic", "..").err


def test_a_topic_to_place_again_is_named_not_matched(trimtab: CommandLine, tmp_path: Path) -> None:
    """The advice was a pattern, which --existing does not take."""
    ended = trimtab("assign", "-s", cluster(tmp_path / "c.json"), "--preset", "counts", "--existing", "--topic", "ol*")
    assert ended.code == 2
    assert "--topic: no topic 'ol*' in the snapshot; did you mean 'old'?" in ended.err


def test_what_does_not_fit_the_cluster_is_told_at_once(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("assign", "--snapshot", cluster(tmp_path / "c.json"), "--preset", "counts", "--topic", "old", "--partitions", "3",
                    "--replication-factor", "7", "--like", "nothing")  # fmt: skip
    assert ended.code == 2
    for words in ("expected 1 to 6 replicas, one for each active broker", "no topic 'nothing'", "topic old has 12 partitions"):
        assert words in ended.err


def test_a_topic_that_is_there_gets_a_plan_that_the_executor_takes(trimtab: CommandLine, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    given = ("assign", "--existing", "--snapshot", cluster(tmp_path / "c.json"), "--goals", goals(tmp_path / "g.yaml"), "--topic", "old")
    ended = trimtab(*given, "--format", "plan", "--out", plan)
    assert ended.code == 0
    order = read_order(plan)
    assert Counter(b for t in order.tasks for b in t.target).keys() <= RACKS.keys()
    assert any(6 in t.target for t in order.tasks)
    assert "the plan moves partitions to the brokers that placement least chooses" in ended.err
    moved = lists(trimtab(*given).out)
    assert moved == {t.name.number: list(t.target) for t in order.tasks}
    assert "placement least has old-" in trimtab(*given, "--format", "text").out


def test_options_of_new_and_of_existing_topics_are_not_mixed_up(trimtab: CommandLine, tmp_path: Path) -> None:
    given = ("assign", "--snapshot", cluster(tmp_path / "c.json"), "--goals", goals(tmp_path / "g.yaml"), "--topic", "old")
    ended = trimtab(*given)
    assert ended.code == 2
    assert "--partitions: expected a number, found none" in ended.err
    assert "--replication-factor" not in ended.err, "the topic has one"
    ended = trimtab(*given[:-1], "new", "--partitions", "3")
    assert ended.code == 2
    assert "--replication-factor: expected a number, found none; a new topic needs it" in ended.err
    ended = trimtab(*given, "--existing", "--partitions", "3", "--format", "replica-assignment")
    assert ended.code == 2
    assert "--partitions: goes with new partitions, not with --existing" in ended.err
    assert "--format: replica-assignment is of a topic that is to be created" in ended.err
    ended = trimtab(*given, "--partitions", "30", "--replication-factor", "3", "--format", "plan")
    assert "--format: plan goes with --existing" in ended.err
    assert "no topic 'odl' in the snapshot; did you mean 'old'?" in trimtab(*given[:-1], "odl", "--existing").err
