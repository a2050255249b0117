"""`trimtab policies`: what is listed is what a goals file may say."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, get_args

import pytest

from goals import policy
from goals.document import parse_goals
from goals.policy_filters import Filters
from goals.policy_part import PolicyPart
from goals.policy_presets import POLICY_PRESETS
from goals.schema import json_schema
from tests.assembled.commands.command_line import CommandLine

EXAMPLES = Path(__file__).parents[3] / "examples"


def listed(trimtab: CommandLine) -> dict[str, Any]:
    ended = trimtab("policies", "list", "--format", "json")
    assert ended.code == 0
    found: dict[str, Any] = json.loads(ended.out)
    return found


def kinds(*models: type[PolicyPart]) -> set[str]:
    return {name for model in models for name in get_args(model.model_fields["kind"].annotation)}


def test_every_part_of_the_schema_is_listed_and_no_other(trimtab: CommandLine) -> None:
    parts = {stage: set(of) for stage, of in listed(trimtab)["parts"].items()}
    document = policy.PolicyDocument.model_fields
    assert parts["score"] == kinds(policy.Score)
    assert parts["placement"] == kinds(policy.Placement)
    assert parts["amount"] == kinds(policy.Amount, policy.Fraction, policy.UntilBelow)
    assert parts["filters"] == set(Filters.model_fields)
    assert parts["guards"] == set(policy.PolicyGuards.model_fields)
    assert parts["batch"] == set(policy.Batch.model_fields)
    assert parts["split"] == set(get_args(policy.Split.model_fields["algorithm"].annotation))
    assert parts["unit"] == set(get_args(document["unit"].annotation))
    assert parts["accept"] == set(get_args(document["accept"].annotation))
    assert parts["order"] == set(get_args(get_args(document["order"].annotation)[0]))
    detectors = json_schema()["$defs"]
    assert parts["detector"] == {d["properties"]["kind"]["const"] for d in detectors.values() if "persist" in d.get("properties", {})}


@pytest.mark.parametrize("name", sorted(POLICY_PRESETS))
def test_a_preset_is_printed_as_a_file_takes_it(trimtab: CommandLine, name: str) -> None:
    assert name in listed(trimtab)["presets"]
    text = trimtab("policies", "show", name).out
    written = parse_goals("version: 1\npreset: counts\n" + text, "goals.yaml")
    named = parse_goals(f"version: 1\npreset: counts\npolicy: {{preset: {name}}}\n", "goals.yaml")
    assert policy.PolicyDocument.model_validate(written.policy) == policy.PolicyDocument.model_validate(
        {**named.policy, "preset": None}
    )


def test_a_part_says_what_it_does_and_an_unknown_name_what_is_meant(trimtab: CommandLine, tmp_path: Path) -> None:
    assert "fewest moves" in trimtab("policies", "show", "to_target_counts").out
    assert "did you mean 'wix-minimal'?" in trimtab("policies", "show", "wix").err
    ended = trimtab("policies", "show", "wix-minimum")
    assert ended.code == 2
    assert "wix-minimal" in ended.err


LED = (1, 2, 2, 1, 2, 1)  # broker that leads each partition: six, so that one of the four bundles has two at least


def cluster(path: Path) -> Path:
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
        "brokers": [{"id": 1}, {"id": 2}],
        "partitions": [
            {"topic": "public.my-topic", "partition": n, "replicas": [b, 3 - b], "leader": b, "leader_load": {"network_in": 1.0}}
            for n, b in enumerate(LED)
        ],
    }  # fmt: skip
    path.write_text(json.dumps(document))
    return path


def bundle(name: str) -> str:
    quarter = zlib.crc32(name.encode()) >> 30
    upper = (quarter + 1) << 30 if quarter < 3 else 0xFFFFFFFF
    return f"bundle public/0x{quarter << 30:08x}_0x{upper:08x}"


def test_a_lookup_says_which_bundle_a_partition_is_in_and_which_brokers_carry_it(trimtab: CommandLine, tmp_path: Path) -> None:
    given = ("policies", "lookup", "--snapshot", cluster(tmp_path / "c.json"), "--preset", "counts")
    names = [f"public.my-topic-{n}" for n in range(len(LED))]
    ended = trimtab(*given, "--topic", "public.my-topic", "--format", "json")
    assert ended.code == 0
    found = json.loads(ended.out)
    assert [p["bundle"] for p in found["partitions"]] == list(map(bundle, names))
    assert [(p["leader"], p["replicas"]) for p in found["partitions"]] == [(b, [b, 3 - b]) for b in LED]
    assert [p["hash"] for p in found["partitions"]] == [f"{zlib.crc32(name.encode()):08x}" for name in names]
    led = {b["name"]: b["leaders"] for b in found["bundles"]}
    assert led.keys() == set(map(bundle, names))
    assert sum(count for of in led.values() for count in of.values()) == len(LED)
    text = trimtab(*given, "--partition", "public.my-topic-1").out
    assert text.startswith(f"public.my-topic-1, hash {zlib.crc32(names[1].encode()):08x}, is in {bundle(names[1])}; broker 2 leads it")
    assert text.splitlines()[1].startswith(f"{bundle(names[1])} has ")


def test_a_lookup_refuses_what_is_not_there_and_says_where_it_would_be(trimtab: CommandLine, tmp_path: Path) -> None:
    given = ("policies", "lookup", "--snapshot", cluster(tmp_path / "c.json"), "--preset", "counts")
    ended = trimtab(*given, "--partition", "public.new-7")
    assert (ended.code, ended.out) == (2, "")
    assert "--partition: no topic-partition public.new-7" in ended.err
    assert f"would be in {bundle('public.new-7')}" in ended.err
    ended = trimtab(*given, "--topic", "public.my-topik")
    assert ended.code == 2
    assert "--topic: unknown topic 'public.my-topik'; did you mean 'public.my-topic'?" in ended.err
    ended = trimtab(*given)
    assert ended.code == 2
    assert "--topic, --partition: expected one of them, found none; ask about one topic or one partition" in ended.err


def test_a_lookup_says_where_bundles_are_not_used_and_what_stands_for_a_missing_namespace(trimtab: CommandLine, tmp_path: Path) -> None:
    goals = tmp_path / "goals.yaml"
    goals.write_text("version: 1\npreset: counts\npolicy: {amount: {kind: one}, unit: group}\n")
    unused, nameless = "Bundles are not used", "(all) stands for topics whose names have no namespace"
    public = ("policies", "lookup", "--snapshot", cluster(tmp_path / "c.json"), "--topic", "public.my-topic")
    text = trimtab(*public, "--preset", "counts").out
    assert unused in text
    assert nameless not in text
    assert unused not in trimtab(*public, "--goals", goals).out
    assert json.loads(trimtab(*public, "--preset", "counts", "--format", "json").out)["used"] is False
    assert json.loads(trimtab(*public, "--goals", goals, "--format", "json").out)["used"] is True
    plain = trimtab("policies", "lookup", "--snapshot", EXAMPLES / "three-brokers.json", "--preset", "counts", "--topic", "orders").out
    assert nameless in plain


def test_names_and_words_of_the_list_of_parts_stand_apart(trimtab: CommandLine) -> None:
    lines = [line for line in trimtab("policies", "list").out.splitlines() if line.startswith("  ")]
    assert {line[2:].lstrip("abcdefghijklmnopqrstuvwxyz_-")[:2] for line in lines} == {"  "}


def test_a_lookup_sees_the_splits_of_the_policy_and_explain_names_the_bundle(trimtab: CommandLine, tmp_path: Path) -> None:
    goals = tmp_path / "goals.yaml"
    goals.write_text(
        "version: 1\npreset: counts\npolicy:\n  {amount: {kind: one}, unit: group, "
        "split: {partitions: 1, algorithm: topic_count_equally_divide}}\n"
    )
    snapshot = ("--snapshot", cluster(tmp_path / "c.json"))

    def sizes(*given: str | Path) -> set[int]:
        found = json.loads(trimtab("policies", "lookup", *snapshot, *given, "--topic", "public.my-topic", "--format", "json").out)
        return {b["partitions"] for b in found["bundles"]}

    assert max(sizes("--preset", "counts")) > 1
    assert sizes("--goals", goals) == {1}
    given = (*snapshot, "--goals", goals, "--partition", "public.my-topic-0")
    found = json.loads(trimtab("policies", "lookup", *given, "--format", "json").out)
    explained = trimtab("explain", *given).out
    assert f"{found['bundles'][0]['name']} has 1 partition: broker 1 leads 1." in explained
