"""Goal files as operators write them: what is understood, with every default."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from cluster_model.errors import ConfigurationError
from goals.document import load_goals, parse_goals
from goals.model import Capacity, Constraints, CountLimit, Goal, RackAware, TopicDistribution, UsageDistribution
from goals.registry import KINDS
from goals.schema import json_schema
from tests.unit.goals.documents import CONTRACT, one, refused

ROOT = Path(__file__).parents[3]


def test_the_file_of_the_contract() -> None:
    found = parse_goals(CONTRACT, "goals.yaml")
    assert found.goals == (
        RackAware("rack_aware", True, 1.0, None),
        Capacity("capacity-disk", True, 1.0, None, "disk", 0.8),
        CountLimit("count_limit-replicas", True, 1.0, None, "replicas", 4000.0),
        UsageDistribution(
            "network-in", False, 2.0, "network", "network_in", 0.10, 0.60, True, "bound", 1048576.0, 0.0
        ),
    )
    assert found.constraints == Constraints(exclude_topics=("__*",))
    assert found.policy == {"detector": {"kind": "goal_band"}}
    assert (found.source, found.calibration, found.notes) == ("goals.yaml", None, ())


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("kind: rack_aware", RackAware("rack_aware", True, 1.0, None)),
        ("kind: rack_aware, hard: false, weight: 3", RackAware("rack_aware", False, 3.0, None)),
        (
            "kind: capacity, resource: cpu, limit: 1",
            Capacity("capacity-cpu", True, 1.0, None, "cpu", 1.0),
        ),
        (
            "kind: capacity, resource: replicas, limit: 0, hard: false, group: a",
            Capacity("capacity-replicas", False, 1.0, "a", "replicas", 0.0),
        ),
        (
            "kind: count_limit, resource: leaders, max: 0, group: a",
            CountLimit("count_limit-leaders", True, 1.0, "a", "leaders", 0.0),
        ),
        (
            "kind: count_limit, resource: disk, max: 2TiB, hard: false",
            CountLimit("count_limit-disk", False, 1.0, None, "disk", 2.0 * 1024**4),
        ),
        (
            "kind: usage_distribution, resource: leader_network_in",
            UsageDistribution(
                "usage_distribution-leader_network_in", False, 1.0, None, "leader_network_in",
                0.10, 0.60, True, "bound", 0.0, 0.0,
            ),
        ),
        (
            "kind: usage_distribution, resource: network_out, var: 100MiB, tail: absolute, hard: true,"
            " min_load: 2MB/s, trivial_change: 0.05, bound: 0.2",
            UsageDistribution(
                "usage_distribution-network_out", True, 1.0, None, "network_out",
                0.2, 104857600.0, False, "absolute", 2e6, 0.05,
            ),
        ),
        (
            "kind: usage_distribution, resource: cpu, min_load: 0.5, bound: 1e-3, var: 2",
            UsageDistribution(
                "usage_distribution-cpu", False, 1.0, None, "cpu", 0.001, 2.0, True, "bound", 0.5, 0.0
            ),
        ),
        (
            "kind: topic_distribution, resource: leaders, name: spread, bound: 0.25, group: a, weight: 2",
            TopicDistribution("spread", False, 2.0, "a", "leaders", 0.25),
        ),
        (
            "kind: topic_distribution, resource: replicas, hard: true, min_gap: 2",
            TopicDistribution("topic_distribution-replicas", True, 1.0, None, "replicas", 0.10, 2),
        ),
    ],
)  # fmt: skip
def test_each_kind_with_its_defaults(text: str, goal: Goal) -> None:
    assert one(text) == goal


def test_a_size_below_the_bound_share_is_fine_since_it_is_added() -> None:
    goal = one("kind: usage_distribution, resource: disk, bound: 0.5, var: 1B")
    assert isinstance(goal, UsageDistribution)
    assert (goal.var, goal.var_is_share) == (1.0, False)


def test_words_that_older_yaml_took_for_truth_are_words() -> None:
    """YAML 1.2: a topic or group called `on` is not `true`, and a name that looks like a date stays one."""
    found = parse_goals(
        "version: 1\ngoals: [{kind: rack_aware, group: on, hard: false, name: 2026-11-20}]\n"
        "constraints: {exclude_topics: [yes, no]}\n",
        "goals.yaml",
    )
    assert found.constraints.exclude_topics == ("yes", "no")
    assert (found.goals[0].group, found.goals[0].name) == ("on", "2026-11-20")


def test_order_of_the_file_is_kept() -> None:
    found = parse_goals(
        "version: 1\ngoals: [{kind: usage_distribution, resource: cpu}, {kind: rack_aware}]", "goals.yaml"
    )
    assert [goal.kind for goal in found.goals] == ["usage_distribution", "rack_aware"]


def test_anchors_may_save_typing() -> None:
    text = "version: 1\npreset: counts\nconstraints: {exclude_topics: [&t x], include_topics: [*t]}\n"
    assert parse_goals(text, "goals.yaml").constraints == Constraints(("x",), (), ("x",))


def test_a_repeated_pattern_counts_once() -> None:
    text = "version: 1\npreset: counts\nconstraints: {exclude_topics: [b, a, b], exclude_brokers: [3, 3]}"
    assert parse_goals(text, "goals.yaml").constraints == Constraints(("b", "a"), (3,), ())


def test_the_example_is_valid_and_says_what_it_does() -> None:
    found = load_goals(ROOT / "examples" / "goals.yaml")
    assert [goal.name for goal in found.goals] == [
        "rack_aware", "capacity-disk", "count_limit-replicas",
        "network-in", "network-out", "disk", "cpu", "replicas", "leaders",
    ]  # fmt: skip
    assert found.notes == ()


@pytest.mark.parametrize(
    "policy",
    [
        "{detector: {kind: goal_band, deviation: 0.2, floor: 10}}",
        "{detector: {kind: cv, threshold: 0.3, sigma_k: 2, floor: 1, pop: false}}",
        "{detector: {kind: absolute, limit: 0.85}}",
        "{detector: {kind: above_mean, margin: 0.1, lower_boundary: true}}",
        "{detector: {kind: minmax, rate_pct: 50, tp_ratio: 4}}",
        "{detector: {kind: std, target: 0.25, outliers: true,"
        " persist: {hits_low: 4, hits_high: 1, clear_on_miss: false}}}",
        "{detector: {kind: pairs, low: 15, high: 40, hysteresis: {start: 0.3, stop: 0.15}}}",
        "{detector: {kind: count_spread, max_spread: 1}}",
        "{detector: {kind: count_spread, ratio_of_mean: 0.9}}",
        "{detector: {any_of: [{kind: cv}, {kind: absolute, persist: {hits_low: 2}}]}}",
        "{detector: {all_of: [{kind: goal_band}]}}",
        "{amount: {kind: fraction, ratio: 0.5}, order: best_fit, accept: score, unit: topic}",
        "{amount: {kind: until_below, target: 0.8, margin: 0.05}}",
        "{amount: {kind: half_gap}, order: lightest, accept: both}",
        "{}",
    ],
)
def test_policies_are_kept_as_written(policy: str) -> None:
    found = parse_goals(f"version: 1\ngoals: [{{kind: rack_aware}}]\npolicy: {policy}\n", "goals.yaml")
    assert found.policy == YAML(typ="safe", pure=True).load(policy)


def test_a_named_calibration_file_is_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text("version: 1\ngoals: [{kind: rack_aware}]\ncalibration: deep/calibration.yaml\nx: 1\n")
    with pytest.raises(ConfigurationError) as error:
        load_goals(path)
    assert [str(problem) for problem in error.value.problems] == [
        f"calibration: expected a calibration file, found none at {tmp_path}/deep/calibration.yaml; "
        "correct the path or drop the key (line 3)",
        "x: unknown key; expected one of version, preset, goals, constraints, policy, calibration (line 4)",
    ]
    path.write_text("version: 1\npreset: counts\ncalibration: 3\n")
    assert refused(path) == "calibration: expected text, found 3; put it in quotes (line 3)"


def test_a_text_without_a_folder_keeps_the_path_of_its_calibration() -> None:
    found = parse_goals("version: 1\npreset: counts\ncalibration: c.yaml", "g")
    assert found.calibration == "c.yaml"
    assert found.notes == ("calibration c.yaml is not read here: what the goals leave out takes the shipped defaults",)


def test_what_is_probably_not_meant_is_noted() -> None:
    """80 for 80 % would switch a hard limit off without a word."""
    found = parse_goals(
        "version: 1\n"
        "goals:\n"
        "  - {kind: capacity, resource: disk, limit: 80}\n"
        "  - {kind: capacity, resource: cpu, limit: 1}\n"
        "  - {kind: capacity, resource: network_in, limit: 1.2}\n"
        "  - {kind: usage_distribution, resource: cpu, bound: 10, var: 60}\n"
        "  - {kind: topic_distribution, resource: leaders, bound: 1}\n"
        "  - {kind: topic_distribution, resource: replicas, bound: 0.99}\n"
        "  - {kind: topic_distribution, name: as Cruise Control has it, resource: replicas, bound: 1.8, min_gap: 2}\n"
        "  - {kind: rack_aware, group: a}\n",
        "goals.yaml",
    )
    assert found.notes == (
        "goal capacity-disk: limit 80 is above the whole capacity; 80% is written 0.8",
        "goal capacity-network_in: limit 1.2 is above the whole capacity; 80% is written 0.8",
        "goal usage_distribution-cpu: bound 10 lets a broker stand empty; 10% is written 0.10",
        "goal topic_distribution-leaders: bound 1 lets a broker stand empty; 10% is written 0.10",
        "goal rack_aware: group 'a' has no effect on a hard goal",
    )


def test_the_schema_describes_every_key_of_every_kind() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == {"version", "preset", "goals", "constraints", "policy", "calibration"}
    assert schema["required"] == ["version"]
    assert schema["additionalProperties"] is False
    definitions = schema["$defs"]
    for kind in KINDS.values():
        found = definitions[kind.document.__name__]
        assert found["additionalProperties"] is False
        assert found["properties"]["kind"]["const"] == kind.name
        for parameter in kind.parameters:
            assert found["properties"][parameter.name]["description"] == parameter.description
            assert (parameter.name in found["required"]) == (parameter.default is None)
    usage = definitions["UsageDistributionDocument"]["properties"]
    assert usage["bound"]["default"] == 0.10
    assert usage["var"]["default"] == 0.60
    assert "network_in" in usage["resource"]["enum"]
