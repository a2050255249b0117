"""Presets: what each asks for, and a goals file on top of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError
from goals.document import load_goals, parse_goals
from goals.model import Capacity, Constraints, GoalSet, UsageDistribution
from goals.policy import Batch, PolicyDocument, SlowBrokers
from goals.policy_detectors import AnyOf, Std
from goals.policy_filters import Filters
from goals.registry import PRESETS, preset_text
from tests.unit.goals.documents import CONTRACT, problems


def names(goals: GoalSet) -> list[str]:
    return [goal.name for goal in goals.goals]


def test_preset_default_is_the_six_distributions_under_racks_and_capacity() -> None:
    found = load_goals(None, "default")
    assert [(goal.kind, getattr(goal, "resource", None)) for goal in found.goals] == [
        ("rack_aware", None),
        ("capacity", "disk"),
        ("capacity", "network_in"),
        ("capacity", "network_out"),
        ("capacity", "cpu"),
        ("usage_distribution", "network_in"),
        ("usage_distribution", "network_out"),
        ("usage_distribution", "disk"),
        ("usage_distribution", "cpu"),
        ("usage_distribution", "replicas"),
        ("usage_distribution", "leaders"),
    ]
    assert [goal.hard for goal in found.goals] == [True] * 5 + [False] * 6
    assert {goal.limit for goal in found.goals if isinstance(goal, Capacity)} == {0.8}
    assert {goal.bound for goal in found.goals if isinstance(goal, UsageDistribution)} == {0.10}
    assert found.source == "preset default"


def test_preset_counts_needs_no_metrics() -> None:
    found = load_goals(None, "counts")
    assert names(found) == ["rack_aware", "usage_distribution-replicas", "usage_distribution-leaders"]


def test_preset_automq_is_what_automq_does_without_its_dead_zone() -> None:
    found = load_goals(None, "automq")
    assert found.goals == tuple(
        UsageDistribution(
            f"usage_distribution-{resource}", False, 1.0, "network", resource,
            0.10, 104857600.0, False, "absolute", 1048576.0, 0.0,
        )
        for resource in ("network_in", "network_out")
    )  # fmt: skip


def test_preset_automq_is_a_whole_service() -> None:
    """Its batches, its pause between them, at most 13 in a cycle, a cycle a minute, and its slow brokers."""
    found = PolicyDocument.model_validate(load_goals(None, "automq").policy)
    assert found.batch == Batch(moves_per_broker=50, topic_share=0.5, sources_per_target=10, batches=13, pause=5.0)
    assert (found.interval, found.slow_brokers) == (60.0, SlowBrokers())
    assert found.amount is None, "the search makes its plans"


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_shown_and_read_as_a_file_is_the_preset(preset: str) -> None:
    assert parse_goals(preset_text(preset), "mine.yaml").digest == load_goals(None, preset).digest


@pytest.mark.parametrize("how", ["in the file", "on the command line", "both"])
def test_a_file_on_top_of_a_preset(how: str) -> None:
    """A goal of the same name takes the preset's place whole, others follow; constraints are joined."""
    line = "" if how == "on the command line" else "preset: counts\n"
    text = (
        f"version: 1\n{line}"
        "goals:\n"
        "  - {kind: usage_distribution, resource: cpu}\n"
        "  - {kind: usage_distribution, resource: replicas, weight: 5}\n"
        "constraints: {exclude_topics: [a]}\n"
    )
    found = parse_goals(text, "goals.yaml", None if how == "in the file" else "counts")
    assert names(found) == [
        "rack_aware", "usage_distribution-replicas", "usage_distribution-leaders", "usage_distribution-cpu",
    ]  # fmt: skip
    assert found.goals[1].weight == 5.0
    assert found.constraints == Constraints(exclude_topics=("a",))
    assert found.source == "goals.yaml"


def test_the_policy_of_the_file_stands_on_top_of_a_preset() -> None:
    found = parse_goals("version: 1\npreset: counts\npolicy: {accept: score}", "goals.yaml")
    assert found.policy == {"accept": "score"}


def test_a_file_read_from_disk_on_top_of_a_preset(tmp_path: Path) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text("version: 1\n")
    assert load_goals(path, "counts").goals == load_goals(None, "counts").goals


def test_messages_start_with_the_name_of_the_file() -> None:
    for text, preset in (("a: [", None), ("version: 2", None), ("version: 1", None), ("version: 1", "x")):
        with pytest.raises(ConfigurationError) as error:
            parse_goals(text, "my goals.yaml", preset)
        assert str(error.value).startswith("my goals.yaml: 1 problem")
    for preset in (None, "x"):
        with pytest.raises(ConfigurationError) as error:
            load_goals(None, preset)
        assert str(error.value).startswith("goals: 1 problem")


def test_a_file_with_only_a_preset() -> None:
    assert parse_goals("version: 1\npreset: default", "g").digest == load_goals(None, "default").digest


def test_two_different_presets_are_refused() -> None:
    assert problems("version: 1\npreset: counts\ngoals: []", "default") == [
        "preset: the file builds on 'counts', --preset says 'default'; drop one of them (line 2)"
    ]


def test_neither_file_nor_preset() -> None:
    with pytest.raises(ConfigurationError, match="found neither; name one of default, counts"):
        load_goals(None)


def test_an_unknown_preset_on_the_command_line() -> None:
    said = r"--preset: unknown preset 'count'; did you mean 'counts'"
    with pytest.raises(ConfigurationError, match=said):
        load_goals(None, "count")
    with pytest.raises(ConfigurationError, match=said):
        parse_goals(CONTRACT, "goals.yaml", "count")
    with pytest.raises(ConfigurationError, match="'zzz'; expected one of default, counts, topics, automq"):
        load_goals(None, "zzz")




def policy(text: str) -> PolicyDocument:
    return PolicyDocument.model_validate(parse_goals(f"version: 1\ngoals: [{{kind: rack_aware}}]\npolicy: {text}\n", "goals.yaml").policy)


def test_a_part_without_its_kind_changes_the_one_of_the_policy_preset() -> None:
    named = policy("{preset: pulsar-transfer}")
    changed = policy("{preset: pulsar-transfer, detector: {history_weight: 0.9}, placement: {margin: 0.2}}")
    assert changed.detector == named.detector.model_copy(update={"history_weight": 0.9})
    assert named.placement is not None
    assert changed.placement == named.placement.model_copy(update={"margin": 0.2})
    with pytest.raises(ConfigurationError, match=r"policy\.detector.*sigma_k"):
        policy("{preset: pulsar-transfer, detector: {sigma_k: 2.0}}")


def test_a_part_with_its_kind_or_without_kinds_stands_in_place_of_the_presets() -> None:
    assert policy("{preset: pulsar-transfer, detector: {kind: std}}").detector == Std(kind="std")
    assert isinstance(policy("{preset: pulsar-transfer, detector: {any_of: [{kind: std}]}}").detector, AnyOf)
    filters = policy("{preset: pulsar-threshold, filters: {exclude: [x], min_throughput: 10MiB}}").filters
    assert filters == Filters(exclude=["x"], min_throughput=10 * 1024.0**2)
