"""Goal files as operators write and miswrite them: what is understood, and what is said about what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from cluster_model.errors import ConfigurationError
from goals.document import load_goals, parse_goals
from goals.model import (
    Capacity,
    Constraints,
    CountLimit,
    Goal,
    GoalSet,
    RackAware,
    TopicDistribution,
    UsageDistribution,
)
from goals.registry import KINDS, PRESETS, preset_text
from goals.schema import json_schema

ROOT = Path(__file__).parents[3]
CONTRACT = """\
version: 1
goals:
  - {kind: rack_aware, hard: true}
  - {kind: capacity, resource: disk, limit: 0.8, hard: true}          # share of the broker's capacity
  - {kind: count_limit, resource: replicas, max: 4000, hard: true}
  - kind: usage_distribution
    name: network-in            # default: derived from kind and resource
    resource: network_in
    weight: 2.0                 # soft goals only; default 1
    bound: 0.10                 # share of the mean (AutoMQ: avg deviation)
    var: 0.60                   # share of the mean, or a size above the bound such as 100MiB
    tail: bound                 # or absolute
    min_load: 1MiB              # broker and mean below this: satisfied
    trivial_change: 0.0         # share of the mean; a broker's net change below it is dropped
    group: network              # optional; scores are averaged within a group
constraints:
  exclude_topics: ["__*"]       # never moved, their load still counts
  exclude_brokers: []
  include_topics: []            # empty: all
policy:
  detector: {kind: goal_band}
"""


def one(text: str) -> Goal:
    """The only goal of a file that has this goal."""
    (goal,) = parse_goals(f"version: 1\ngoals:\n  - {{{text}}}\n", "goals.yaml").goals
    return goal


def problems(text: str, preset: str | None = None) -> list[str]:
    """What is said about a text that is refused."""
    with pytest.raises(ConfigurationError) as refused:
        parse_goals(text, "goals.yaml", preset)
    return [str(problem) for problem in refused.value.problems]


def problem(goal: str) -> str:
    """The only problem of a file that has only this goal; its place loses the goal's."""
    (found,) = problems(f"version: 1\ngoals:\n  - {{{goal}}}\n")
    assert found.endswith(" (line 3)")
    return found.removeprefix("goals[0].").removesuffix(" (line 3)")


# --- what is understood ------------------------------------------------------------------------------------


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


# --- what is refused ---------------------------------------------------------------------------------------


def test_names_are_compared_past_goals_that_have_none() -> None:
    assert problems(
        "version: 1\n"
        "goals:\n"
        "  - {resource: cpu}\n"
        "  - {kind: rack_aware, name: [a]}\n"
        "  - {kind: capacity, resource: [a], limit: 1}\n"
        "  - {kind: rack_aware}\n"
    ) == [
        f"goals[0].kind: missing; expected one of {', '.join(KINDS)} (line 3)",
        "goals[1].name: expected text, found ['a'] (line 4)",
        "goals[2].resource: expected text, found ['a'] (line 5)",
        "goals[3]: default name 'rack_aware' is taken by goals[1]; give this goal a name of its own (line 6)",
    ]


def test_a_size_beside_an_unknown_resource_is_one_problem() -> None:
    said = "resource: unknown resource 'dsk'; did you mean 'disk'?"
    assert problem("kind: usage_distribution, resource: dsk, var: 1MiB, min_load: 1MiB") == said
    assert problem("kind: count_limit, resource: dsk, max: 1MiB") == said


def test_an_unknown_unit_is_refused_at_its_place() -> None:
    assert "MB" in problem("kind: usage_distribution, resource: disk, min_load: 1Mb")
    assert problem("kind: usage_distribution, resource: disk, min_load: 1Mb").startswith("min_load: ")
    assert problem("kind: usage_distribution, resource: disk, var: 5 apples").startswith("var: ")
    assert problem("kind: usage_distribution, resource: disk, min_load: 1MiB/s").startswith("min_load: ")


def test_numbers_beyond_any_float_are_refused_not_a_crash() -> None:
    huge = "1" + "0" * 400
    for key in ("bound", "var", "min_load", "trivial_change", "weight"):
        assert problem(f"kind: usage_distribution, resource: disk, {key}: {huge}").startswith(f"{key}: ")
    assert problem(f"kind: count_limit, resource: disk, max: 9{'9' * 5000}").startswith("max: ")


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    found = problems(
        "version: 3\n"
        "presett: default\n"
        "goals:\n"
        "  - {kind: rack_awre}\n"
        "  - kind: usage_distribution\n"
        "    resource: network_in\n"
        "    weight: 1\n"
        "    weight: 2\n"
        "    wieght: 3\n"
        "  - {kind: usage_distribution, resource: network_in, bound: -1}\n"
        "constraints: {exclude_topic: []}\n"
        "extra: !python/object x\n"
    )
    assert found == [
        "version: expected 1, found 3; this release reads version 1 only (line 1)",
        "presett: unknown key; did you mean 'preset'? (line 2)",
        "goals[0].kind: unknown kind 'rack_awre'; did you mean 'rack_aware'? (line 4)",
        "goals[1].weight: key written twice, first in line 7; keep one (line 8)",
        "goals[1].wieght: unknown key; did you mean 'weight'? (line 9)",
        "goals[2].bound: expected a number above 0, found -1 (line 10)",
        "goals[2]: default name 'usage_distribution-network_in' is taken by goals[1]; "
        "give this goal a name of its own (line 10)",
        "constraints.exclude_topic: unknown key; did you mean 'exclude_topics'? (line 11)",
        "extra: tags are not read, found !python/object; write a plain value (line 12)",
    ]


def test_names_are_unique_whether_given_or_derived() -> None:
    assert problems(
        "version: 1\n"
        "goals:\n"
        "  - {kind: rack_aware, name: usage_distribution-cpu}\n"
        "  - {kind: usage_distribution, resource: cpu}\n"
        "  - {kind: capacity, resource: cpu, limit: 1, name: a}\n"
        "  - {kind: capacity, resource: cpu, limit: 2, name: a}\n"
        "  - {kind: capacity, resource: cpu, limit: 2}\n"
    ) == [
        "goals[1]: default name 'usage_distribution-cpu' is taken by goals[0]; "
        "give this goal a name of its own (line 4)",
        "goals[3].name: name 'a' is taken by goals[2]; give this goal a name of its own (line 6)",
    ]


def test_escapes_in_pairs_are_one_sign() -> None:
    """As programs write JSON; half a pair is no sign and could not be written out again."""
    text = '{"version": 1, "preset": "counts", "constraints": {"include_topics": ["\\ud83d\\ude00"]}}'
    assert parse_goals(text, "goals.json").constraints.include_topics == ("\U0001f600",)
    assert problems(text.replace("\\ude00", "")) == [
        "constraints.include_topics[0]: half of a two-part escape; write the sign itself (line 1)"
    ]


def test_yaml_tricks_are_refused() -> None:
    assert problems("version: 1\ngoals: &a [*a]") == [
        "goals[0]: an alias inside itself, or more values than a file can need (line 2)",
    ]
    assert problems("version: 1\n<<: {a: 1}\n[x]: 2\ngoals: [{kind: rack_aware}]") == [
        "<<: merge keys are not read; write the keys out (line 2)",
        "expected a word as key, found a list or mapping (line 3)",
    ]


def test_aliases_that_multiply_end_in_an_error_and_not_in_a_full_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 12):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    found = problems("\n".join(lines))
    assert any("more values than a file can need" in line for line in found)


# --- policy ------------------------------------------------------------------------------------------------


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


# --- presets -----------------------------------------------------------------------------------------------


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


def test_preset_automq_is_what_automq_does() -> None:
    found = load_goals(None, "automq")
    assert found.goals == tuple(
        UsageDistribution(
            f"usage_distribution-{resource}", False, 1.0, "network", resource,
            0.10, 104857600.0, False, "absolute", 1048576.0, 0.05,
        )
        for resource in ("network_in", "network_out")
    )  # fmt: skip


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


def test_messages_begin_with_what_was_read() -> None:
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


# --- files -------------------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    with pytest.raises(ConfigurationError) as error:
        load_goals(path)
    assert str(error.value).startswith(f"{path}: 1 problem\n  ")
    return str(error.value.problems[0])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    cannot = "expected a goals file in YAML, cannot read it: "
    assert refused(tmp_path / "none.yaml") == cannot + "No such file or directory"
    assert refused(tmp_path) == cannot + "Is a directory"
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("version: 1 # größer".encode("latin-1"))
    assert refused(latin) == "expected a goals file in YAML, found byte 0xf6 at offset 15, which is not UTF-8"
    big = tmp_path / "big.yaml"
    big.write_bytes(b"#" * 4_000_001)
    assert refused(big) == "expected a goals file in YAML, found more than 4000000 bytes"


def test_a_file_from_another_system(tmp_path: Path) -> None:
    """Byte order mark and carriage returns change nothing."""
    path = tmp_path / "goals.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + CONTRACT.replace("\n", "\r\n").encode())
    found = load_goals(path)
    assert found.goals == parse_goals(CONTRACT, "").goals
    assert found.source == str(path)


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
        "  - {kind: rack_aware, group: a}\n",
        "goals.yaml",
    )
    assert found.notes == (
        "goal capacity-disk: limit 80 is above the whole capacity; 80 % is written 0.8",
        "goal capacity-network_in: limit 1.2 is above the whole capacity; 80 % is written 0.8",
        "goal usage_distribution-cpu: bound 10 lets a broker stand empty; 10 % is written 0.10",
        "goal topic_distribution-leaders: bound 1 lets a broker stand empty; 10 % is written 0.10",
        "goal rack_aware: group 'a' has no effect on a hard goal",
    )


# --- digest ------------------------------------------------------------------------------------------------


def digest(text: str) -> str:
    return parse_goals(text, "goals.yaml").digest


def test_the_digest_does_not_see_how_a_file_is_written() -> None:
    same = """\
goals:   # keys in another order, defaults left out or written, other spellings of numbers and sizes
- kind: rack_aware
- {limit: 8.0e-1, resource: disk, kind: capacity}
- {kind: count_limit, resource: replicas, max: 4000.0, name: count_limit-replicas}
- kind: usage_distribution
  group: network
  name: network-in
  min_load: 1048576
  weight: 2
  resource: network_in
constraints: {exclude_topics: ["__*", "__*"]}
version: 1
"""
    assert digest(same) == digest(CONTRACT)
    assert digest(CONTRACT).startswith("sha256:")
    assert len(digest(CONTRACT)) == len("sha256:") + 64


def test_the_digest_is_the_same_in_every_release() -> None:
    """A plan carries it: were it to change, every approved plan would be refused after an upgrade."""
    assert digest(CONTRACT) == ("sha256:8ef5fe50bae6dc9b5e8b772894288a298517a1c33d790fc8d95ba290bb882b74")
    assert digest("version: 1\ngoals: [{kind: rack_aware, name: größe}]") == (
        "sha256:8a405fa6f3c20f2f1b2379035781e56c8827cdbc300fbefd75b2a0e2a621b77f"
    )


def test_constraints_are_sets_to_the_digest() -> None:
    one, two = (f"version: 1\npreset: counts\nconstraints: {{exclude_brokers: {b}, include_topics: {t}}}"
                for b, t in (("[1, 2]", "[a, b]"), ("[2, 1]", "[b, a]")))  # fmt: skip
    assert digest(one) == digest(two)


def test_frozen_topics_are_in_the_digest() -> None:
    """They decide the plan; a file without them keeps the digest that it had before there were any."""
    without = digest("version: 1\npreset: counts\n")
    assert digest("version: 1\npreset: counts\nconstraints: {freeze_topics: []}") == without
    assert digest("version: 1\npreset: counts\nconstraints: {freeze_topics: [a]}") != without


def test_zero_has_one_digest() -> None:
    both = [
        f"version: 1\ngoals: [{{kind: capacity, resource: cpu, limit: {zero}}}]" for zero in ("0", "-0.0")
    ]
    assert digest(both[0]) == digest(both[1])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hard: true}\n  - {kind: capacity", "hard: false}\n  - {kind: capacity"),
        ("limit: 0.8", "limit: 0.81"),
        ("resource: disk", "resource: cpu"),
        ("max: 4000", "max: 4001"),
        ("network-in ", "network_in "),
        ("weight: 2.0", "weight: 2.1"),
        ("bound: 0.10", "bound: 0.11"),
        ("var: 0.60 ", "var: 0.61 "),
        ("var: 0.60 ", "var: 1MiB "),
        ("tail: bound", "tail: absolute"),
        ("min_load: 1MiB", "min_load: 1MB"),
        ("trivial_change: 0.0", "trivial_change: 0.1"),
        ("group: network", "group: other"),
        ('exclude_topics: ["__*"]', "exclude_topics: []"),
        ("exclude_brokers: []", "exclude_brokers: [1]"),
        ("include_topics: []", "include_topics: [a]"),
    ],
)
def test_the_digest_sees_all_that_decides_a_plan(old: str, new: str) -> None:
    assert CONTRACT.count(old) >= 1
    assert digest(CONTRACT.replace(old, new)) != digest(CONTRACT)


def test_the_digest_does_not_see_when_the_service_acts() -> None:
    assert digest(CONTRACT.replace("kind: goal_band", "kind: cv")) == digest(CONTRACT)


# --- schema ------------------------------------------------------------------------------------------------


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
