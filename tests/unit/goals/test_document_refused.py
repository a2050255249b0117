"""Goal files as operators miswrite them: every problem at once, each at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError
from goals.document import load_goals, parse_goals
from goals.registry import KINDS
from tests.unit.goals.documents import CONTRACT, problem, problems, refused


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


def test_a_snapshot_in_place_of_goals_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text('{"version": 1, "brokers": [], "partitions": []}')
    with pytest.raises(ConfigurationError, match="expected goals, found a snapshot; give it with --snapshot"):
        load_goals(path)


def test_a_size_beside_an_unknown_resource_is_one_problem() -> None:
    said = "resource: unknown resource 'dsk'; did you mean 'disk'?"
    assert problem("kind: usage_distribution, resource: dsk, var: 1MiB, min_load: 1MiB") == said
    assert problem("kind: count_limit, resource: dsk, max: 1MiB") == said


def test_a_version_in_quotes_is_shown_without_them() -> None:
    assert problems('version: "1"\npreset: counts\n') == ["version: expected a whole number, found '1'; write 1, without quotes (line 1)"]


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


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    cannot = "expected a goals file in YAML, cannot read it: "
    assert refused(tmp_path / "none.yaml") == "expected a goals file in YAML, there is no such file"
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


def test_a_new_topic_is_not_placed_in_pairs() -> None:
    text = "version: 1\ngoals: [{kind: rack_aware}]\npolicy: {new_topics: {placement: {kind: paired}}}\n"
    (told,) = problems(text)
    assert told.startswith("policy.new_topics.placement: paired gives what one broker of a pair sheds to the other")
