"""`trimtab goals import`: an operator who comes from Cruise Control gets the same goals, and hears what is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_model.errors import InputError
from goals.cruise_control import globs_of
from goals.cruise_control_sets import broker_set_file
from goals.document import load_goals
from goals.model import BrokerSet, Capacity, CountLimit, RackAware, TopicDistribution, TopicMinimum, UsageDistribution
from optimizer.detectors import policy_of
from tests.assembled.commands.command_line import CommandLine
from trimtab.capture.capacity import read_capacities

PROPERTIES = """
# comment
default.goals=com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareGoal,\\
  com.linkedin.kafka.cruisecontrol.analyzer.goals.ReplicaCapacityGoal,com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskCapacityGoal,\\
  com.linkedin.kafka.cruisecontrol.analyzer.goals.CpuUsageDistributionGoal,\\
  com.linkedin.kafka.cruisecontrol.analyzer.goals.TopicReplicaDistributionGoal,\\
  com.linkedin.kafka.cruisecontrol.analyzer.goals.PreferredLeaderElectionGoal
hard.goals: com.linkedin.kafka.cruisecontrol.analyzer.goals.RackAwareGoal,com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskCapacityGoal
max.replicas.per.broker = 4000
disk.capacity.threshold=0.75
cpu.balance.threshold=1.2
topics.excluded.from.partition.movement=__.*
"""
CAPACITY = {
    "brokerCapacities": [
        {"brokerId": "-1", "capacity": {"DISK": "1000", "CPU": {"num.cores": "8"}, "NW_IN": "1024", "NW_OUT": "2048"}},
        {"brokerId": "3", "capacity": {"DISK": {"/a": "500", "/b": "700"}, "CPU": "100", "NW_IN": "1024", "NW_OUT": "1024"}},
    ]
}


def test_goals_keep_their_kind_hardness_and_thresholds(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text(PROPERTIES)
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--out", tmp_path / "g.yaml")
    assert ended.code == 0
    rack, replicas, disk, cpu, topics = load_goals(tmp_path / "g.yaml").goals
    assert isinstance(rack, RackAware)
    assert rack.hard
    assert isinstance(replicas, CountLimit)
    assert (replicas.max, replicas.hard) == (4000, False)
    assert isinstance(disk, Capacity)
    assert (disk.limit, disk.hard) == (0.75, True)
    assert isinstance(cpu, UsageDistribution)
    assert abs(cpu.bound - 0.18) < 1e-12
    assert isinstance(topics, TopicDistribution)
    assert (round(topics.bound, 9), topics.min_gap) == (1.8, 2)
    for lost in ("PreferredLeaderElectionGoal", "max.gap"):
        assert lost in ended.err
    assert load_goals(tmp_path / "g.yaml").constraints.exclude_topics == ("__*",)


def test_without_a_list_its_sixteen_goals_are_taken(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text("bootstrap.servers=a:9092\n")
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--out", tmp_path / "g.yaml")
    assert len(load_goals(tmp_path / "g.yaml").goals) == 15
    assert "MinTopicLeadersPerBrokerGoal" not in ended.err, "without topics it is idle"
    assert "lists no default.goals" in (tmp_path / "g.yaml").read_text()


def test_capacities_get_our_units(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text(PROPERTIES)
    (tmp_path / "capacity.json").write_text(json.dumps(CAPACITY))
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--capacity", tmp_path / "capacity.json",
                    "--capacity-out", tmp_path / "capacity.yaml")  # fmt: skip
    assert ended.code == 0
    found = read_capacities(tmp_path / "capacity.yaml")
    assert found.of(1) == {"disk": 1000 * 1024**2, "cpu": 8, "network_in": 1024**2, "network_out": 2 * 1024**2,
                           "potential_network_out": 2 * 1024**2}  # fmt: skip
    assert found.of(3)["disk"] == 1200 * 1024**2
    assert found.of(3)["network_out"] == 1024**2
    assert "broker 3: 2 log directories count as one disk" in ended.err
    assert "broker 3: CPU is given in percent" in ended.err


def test_what_is_unknown_is_refused_with_its_place(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text(
        "default.goals=a.RackAwareGoal,my.OwnGoal,a.DiskCapacityGoal\nhard.goals=a.RackAwareGaol\ndisk.capacity.threshold=much\n"
    )
    (tmp_path / "capacity.json").write_text('{"brokerCapacities": [{"brokerId": 1, "capacity": {"DISK": "big"}}]}')
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties")
    assert ended.code == 2
    assert "unknown goal 'OwnGoal'" in ended.err
    assert "hard.goals: unknown goal 'RackAwareGaol'" in ended.err, "a slip would make the goal soft"
    assert "disk.capacity.threshold: expected a number" in ended.err
    (tmp_path / "cc.properties").write_text("")
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--capacity", tmp_path / "capacity.json",
                    "--capacity-out", tmp_path / "c.yaml")  # fmt: skip
    assert ended.code == 2
    assert "brokerCapacities[0]" in ended.err
    assert trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--capacity", tmp_path / "capacity.json").code == 2
    (tmp_path / "capacity.json").write_text('{"brokerCapacities": [{"brokerId": "x", "capacity": {}}]}')
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--capacity", tmp_path / "capacity.json",
                    "--capacity-out", tmp_path / "c.yaml")  # fmt: skip
    assert """(DISK, CPU, NW_IN, NW_OUT) in numbers, found {"brokerId": "x", "capacity": {}}; correct it""" in ended.err
    (tmp_path / "capacity.json").write_bytes(b"\xff")
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--capacity", tmp_path / "capacity.json",
                    "--capacity-out", tmp_path / "c.yaml")  # fmt: skip
    assert "expected a capacity file in JSON, found byte 0xff at offset 0, which is not UTF-8" in ended.err


def test_properties_are_read_as_java_reads_them(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_bytes("# Müller\ndefault.goals = a.RackAwareGoal,\\\n  a.DiskCapacityGoal\n".encode("iso-8859-1"))
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties")
    assert (ended.code, "kind: rack_aware" in ended.out, "resource: disk" in ended.out) == (0, True, True)


@pytest.mark.parametrize(
    ("pattern", "globs"),
    [("__.*", ["__*"]), ("^(a\\.b-.*|c)$", ["a.b-*", "c"]), ("[ab].*", None), ("x+", None), ("a.b", None), ("", [])],
)
def test_a_regular_expression_becomes_globs_only_where_they_say_the_same(pattern: str, globs: list[str] | None) -> None:
    assert globs_of(pattern) == globs


def test_low_utilization_slow_brokers_and_minimum_leaders(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text(
        "cpu.low.utilization.threshold=0.2\nnetwork.inbound.low.utilization.threshold=0.1\n"
        "metric.anomaly.finder.class=com.linkedin.kafka.cruisecontrol.detector.SlowBrokerFinder\n"
        "slow.broker.log.flush.time.threshold.ms=500\nslow.broker.peer.metric.margin=4\n"
        "topics.with.min.leaders.per.broker=orders.*\ntopics.excluded.from.partition.movement=[ab]\n"
    )
    (tmp_path / "c.json").write_text(json.dumps(CAPACITY))
    given = ("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--out", tmp_path / "g.yaml")
    ended = trimtab(*given, "--capacity", tmp_path / "c.json", "--capacity-out", tmp_path / "c.yaml")
    assert ended.code == 0
    found = load_goals(tmp_path / "g.yaml")
    quiet = {g.resource: g.min_load for g in found.goals if isinstance(g, UsageDistribution) and g.min_load}
    assert quiet == {"cpu": 1.44, "network_in": round(0.1 * 0.9 * 2**20), "leader_network_in": round(0.1 * 0.9 * 2**20)}
    slow = policy_of(found).slow_brokers
    assert slow is not None
    assert (slow.latency, slow.history, slow.peers) == (0.5, 3.0, 4.0)
    (fewest,) = [g for g in found.goals if isinstance(g, TopicMinimum)]
    assert (fewest.resource, fewest.topics, fewest.min, fewest.hard) == ("leaders", ("orders*",), 1, True)
    assert "topics.excluded.from.partition.movement: a regular expression ([ab])" in ended.err
    assert "cpu.low.utilization.threshold: a share of capacity; give --capacity" in trimtab(*given).err


@pytest.mark.parametrize(
    ("given", "topics", "fewest"),
    [
        ("topics.with.min.leaders.per.broker=(orders|pay.*)\nmin.topic.leaders.per.broker=3\n", ("orders", "pay*"), 3),
        ("topics.with.min.leaders.per.broker=orders\nmin.topic.leaders.per.broker=0\n", ("orders",), None),
    ],
)
def test_a_minimum_of_leaders_becomes_one(
    trimtab: CommandLine, tmp_path: Path, given: str, topics: tuple[str, ...], fewest: int | None
) -> None:
    (tmp_path / "cc.properties").write_text(given)
    assert trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--out", tmp_path / "g.yaml").code == 0
    (found,) = [g for g in load_goals(tmp_path / "g.yaml").goals if isinstance(g, TopicMinimum)]
    assert (found.topics, found.min) == (topics, fewest)


def test_topics_of_a_minimum_that_globs_cannot_say_are_told(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text("topics.with.min.leaders.per.broker=[ab]+\n")
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--out", tmp_path / "g.yaml")
    assert "topics.with.min.leaders.per.broker: a regular expression ([ab]+); write a goal {kind: topic_minimum" in ended.err
    assert not [g for g in load_goals(tmp_path / "g.yaml").goals if isinstance(g, TopicMinimum)]


AWARE = "default.goals=a.BrokerSetAwareGoal,a.RackAwareGoal\n"
BLUE = {"brokerSetId": "Blue", "brokerIds": [0, 1, 2], "doc": "the first"}
GREEN = {"brokerSetId": "Green", "brokerIds": [3, 4]}


def imported(trimtab: CommandLine, folder: Path, sets: list[object], properties: str = AWARE) -> tuple[str, str]:
    """The goals file, and what is said."""
    (folder / "cc.properties").write_text(properties)
    (folder / "sets.json").write_text(json.dumps({"brokerSets": sets}))
    given = ("--cruise-control", folder / "cc.properties", "--broker-sets", folder / "sets.json")
    ended = trimtab("goals", "import", *given, "--out", folder / "g")
    assert ended.code == 0
    return (folder / "g").read_text(), ended.err


def test_one_broker_set_takes_all_topics(trimtab: CommandLine, tmp_path: Path) -> None:
    imported(trimtab, tmp_path, [BLUE])
    assert load_goals(tmp_path / "g").constraints.broker_sets == (BrokerSet("Blue", (0, 1, 2)),)


def test_of_several_broker_sets_the_operator_names_the_topics(trimtab: CommandLine, tmp_path: Path) -> None:
    text, said = imported(trimtab, tmp_path, [BLUE, GREEN])
    assert load_goals(tmp_path / "g").constraints.broker_sets == ()
    assert "BrokerSetAwareGoal: Cruise Control hashes topic names over its sets" in said
    named = text.replace("topics: []", 'topics: ["a*"]', 1).replace(", topics: []", "")
    (tmp_path / "g").write_text("\n".join(line.replace("# ", "", 1) if "broker_sets:" in line or "{name" in line or line == "# constraints:"
                                          else line for line in named.splitlines()))  # fmt: skip
    assert load_goals(tmp_path / "g").constraints.broker_sets == (BrokerSet("Blue", (0, 1, 2), ("a*",)), BrokerSet("Green", (3, 4)))


def test_without_the_file_of_broker_sets_it_is_said_what_is_missing(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text(AWARE)
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--out", tmp_path / "g.yaml")
    assert "BrokerSetAwareGoal: which brokers are in which set stands in brokerSets.json" in ended.err
    _, said = imported(trimtab, tmp_path, [BLUE], "default.goals=a.RackAwareGoal\n")
    assert "--broker-sets: BrokerSetAwareGoal is not among the goals" in said


@pytest.mark.parametrize(
    ("sets", "place", "text"),
    [
        ([BLUE, {**GREEN, "brokerIds": [2]}], "brokerSets[1]", "broker 2 is in set 'Blue' too"),
        ([BLUE, {**GREEN, "brokerSetId": "Blue"}], "brokerSets[1]", "set 'Blue' is there twice"),
        ([{"brokerSetId": "Blue"}], "brokerSets[0]", "expected brokerSetId and brokerIds"),
        ([{**BLUE, "brokerIds": ["one"]}], "brokerSets[0]", "expected brokerSetId and brokerIds"),
        ([], "brokerSets", "expected a list of broker sets"),
    ],
)
def test_a_file_of_broker_sets_that_is_none_is_refused(sets: list[object], place: str, text: str) -> None:
    with pytest.raises(InputError) as found:
        broker_set_file(json.dumps({"brokerSets": sets}), "sets.json")
    assert any(problem.place == place and text in problem.message for problem in found.value.problems)


INTRA = "com.linkedin.kafka.cruisecontrol.analyzer.goals.IntraBrokerDisk"


@pytest.mark.parametrize(
    ("lines", "limit", "bound"),
    [
        (f"intra.broker.goals={INTRA}CapacityGoal,{INTRA}UsageDistributionGoal\ndisk.balance.threshold=1.2\n", 0.8, 0.18),
        (f"intra.broker.goals={INTRA}CapacityGoal\ndisk.capacity.threshold=0.7\n", 0.7, None),
        (f"default.goals={INTRA}UsageDistributionGoal,DiskCapacityGoal\n", None, 0.09),
    ],
)
def test_goals_within_a_broker_become_the_policy_of_log_directories(
    trimtab: CommandLine, tmp_path: Path, lines: str, limit: float | None, bound: float | None
) -> None:
    (tmp_path / "cc.properties").write_text(lines)
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--out", tmp_path / "g.yaml")
    assert ended.code == 0
    assert "IntraBroker" not in ended.err
    found = policy_of(load_goals(tmp_path / "g.yaml")).directories
    assert found.limit == limit
    assert found.bound == pytest.approx(bound) if bound is not None else found.bound is None


@pytest.mark.parametrize(("text", "found"), [("", "none"), ("# none\n", "none"), ('{"a": 1}', "a line that starts with '{\"a\"'")])
def test_what_is_no_properties_file_is_refused(trimtab: CommandLine, tmp_path: Path, text: str, found: str) -> None:
    """Cruise Control's defaults were written as if they had been read."""
    given = tmp_path / "cruisecontrol.properties"
    given.write_text(text)
    ended = trimtab("goals", "import", "--cruise-control", given, "--out", tmp_path / "g.yaml")
    assert ended.code == 2
    assert f"expected lines KEY=VALUE of a cruisecontrol.properties, found {found}" in ended.err
    assert not (tmp_path / "g.yaml").exists()
