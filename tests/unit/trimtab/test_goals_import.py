"""`trimtab goals import`: an operator who comes from Cruise Control gets the same goals, and hears what is lost."""

from __future__ import annotations

import json
from pathlib import Path

from goals.document import load_goals
from goals.model import Capacity, CountLimit, RackAware, TopicDistribution, UsageDistribution
from tests.unit.trimtab.command_line import CommandLine
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
    for lost in ("PreferredLeaderElectionGoal", "topics.excluded.from.partition.movement", "max.gap"):
        assert lost in ended.err


def test_without_a_list_its_sixteen_goals_are_taken(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text("")
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--out", tmp_path / "g.yaml")
    assert len(load_goals(tmp_path / "g.yaml").goals) == 15
    assert "MinTopicLeadersPerBrokerGoal" in ended.err


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


def test_what_nobody_knows_is_refused_with_its_place(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "cc.properties").write_text("default.goals=a.RackAwareGoal,my.OwnGoal,a.DiskCapacityGoal\ndisk.capacity.threshold=much\n")
    (tmp_path / "capacity.json").write_text('{"brokerCapacities": [{"brokerId": 1, "capacity": {"DISK": "big"}}]}')
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties")
    assert ended.code == 2
    assert "unknown goal 'OwnGoal'" in ended.err
    assert "disk.capacity.threshold: expected a number" in ended.err
    (tmp_path / "cc.properties").write_text("")
    ended = trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--capacity", tmp_path / "capacity.json",
                    "--capacity-out", tmp_path / "c.yaml")  # fmt: skip
    assert ended.code == 2
    assert "brokerCapacities[0]" in ended.err
    assert trimtab("goals", "import", "--cruise-control", tmp_path / "cc.properties", "--capacity", tmp_path / "capacity.json").code == 2
