"""`trimtab goals` as it is typed: data on stdout, the story on stderr, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from goals.document import load_goals, parse_goals
from goals.registry import KINDS, PRESETS, preset_text
from goals.score import distribution_score, limit_score, units_score
from trimtab.cli import main

ROOT = Path(__file__).parents[3]
Capture = pytest.CaptureFixture[str]


def test_check_shows_the_goals_as_understood(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text(
        "version: 1\n"
        "goals:\n"
        "  - {kind: usage_distribution, resource: network_in, name: '[red]in', weight: 2, group: net}\n"
        "  - kind: usage_distribution\n"
        "    resource: network_out\n"
        "    var: 100MB\n"
        "    min_load: 1MB\n"
        "    trivial_change: 0.05\n"
        "  - {kind: usage_distribution, resource: cpu, min_load: 0.5}\n"
        "  - {kind: capacity, resource: disk, limit: 0.8}\n"
        "  - {kind: count_limit, resource: replicas, max: 4000}\n"
        "  - {kind: topic_distribution, resource: leaders, bound: 0.2, min_gap: 1}\n"
        "  - {kind: rack_aware}\n"
        "constraints: {exclude_topics: ['__*', '[x]'], exclude_brokers: [3, 4]}\n"
        "policy: {detector: {kind: cv}}\n"
    )
    assert main(["goals", "check", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = [
        f"{path}: OK, 7 goals, {load_goals(path).digest}",
        "goal weight group parameters",
        "[red]in 2 net usage_distribution network_in, bound 0.1, var 0.6, tail bound",
        "usage_distribution-network_out 1 - bound 0.1, var bound + 100 MB/s, tail bound,",
        "min_load 1 MB/s, trivial_change 0.05",
        "usage_distribution-cpu 1 - bound 0.1, var 0.6, tail bound, min_load 0.5 cores",
        "capacity-disk hard - limit 0.8",
        "count_limit-replicas hard - max 4000",
        "topic_distribution-leaders 1 - bound 0.2, min_gap 1",
        "rack_aware hard -",
        "exclude_topics: __*, [x]",
        "exclude_brokers: 3, 4",
        'policy: {"detector": {"kind": "cv"}}',
    ]
    assert out.split() == " ".join(rows).split()


def test_what_a_goals_file_names_cannot_steer_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text('version: 1\npreset: counts\nconstraints: {exclude_topics: ["\\e[2J\\u202ex"]}\n')
    assert main(["goals", "check", str(path)]) == 0
    assert not set(capsys.readouterr().out) & set("\x1b\u202e")


def test_check_tells_every_problem_and_ends_with_2(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text(
        "version: 1\ngoals:\n  - {kind: rack_awre}\n  - {kind: capacity, resource: dsk, limit: -1}\n"
    )
    assert main(["goals", "check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.strip() for line in err.splitlines()] == [
        f"error: {path}: 3 problems",
        "goals[0].kind: unknown kind 'rack_awre'; did you mean 'rack_aware'? (line 3)",
        "goals[1].resource: unknown resource 'dsk'; did you mean 'disk'? (line 4)",
        "goals[1].limit: expected a number of at least 0, found -1 (line 4)",
    ]


def test_check_of_a_file_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    assert main(["goals", "check", str(tmp_path / "none.yaml")]) == 2
    assert "FILE: there is no file" in capsys.readouterr().err


def test_check_warns_of_what_is_probably_not_meant(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text("version: 1\ngoals: [{kind: capacity, resource: disk, limit: 80}]\n")
    assert main(["goals", "check", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "OK, 1 goal," in out
    assert err == "warning: goal capacity-disk: limit 80 is above the whole capacity; 80% is written 0.8\n"


def test_check_as_json_under_a_preset(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "goals.yaml"
    path.write_text("version: 1\ngoals: [{kind: rack_aware, hard: false}]\n")
    assert main(["goals", "check", str(path), "--preset", "counts", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(goal["name"], goal["hard"]) for goal in found["goals"]] == [
        ("rack_aware", False),
        ("usage_distribution-replicas", False),
        ("usage_distribution-leaders", False),
    ]
    assert found["digest"] == load_goals(path, "counts").digest
    keys = ("exclude_topics", "exclude_brokers", "include_topics", "freeze_topics", "broker_sets")
    assert found["constraints"] == {key: [] for key in keys}


def test_the_example_passes(capsys: Capture) -> None:
    assert main(["goals", "check", str(ROOT / "examples" / "goals.yaml")]) == 0
    assert "OK, 9 goals" in capsys.readouterr().out


def test_list_names_every_kind_parameter_and_preset(capsys: Capture) -> None:
    assert main(["goals", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for kind in KINDS.values():
        start = lines.index(f"{kind.name}: {kind.summary}")
        block = [line.split()[0] for line in lines[start + 1 : lines.index("", start)] if line[2:3].strip()]
        assert block == [parameter.name for parameter in kind.parameters]
    text = "\n".join(lines)
    assert "limit       required" in text
    assert all(f"  {preset}  " in text and PRESETS[preset] in text for preset in PRESETS)
    assert "potential_network_out    bytes/s" in text


def test_show_prints_what_can_be_used_as_a_file(capsys: Capture, tmp_path: Path) -> None:
    assert main(["goals", "show", "counts"]) == 0
    out = capsys.readouterr().out
    assert out == preset_text("counts")
    assert parse_goals(out, "mine").digest == load_goals(None, "counts").digest
    assert main(["goals", "show", "automq", "--out", str(tmp_path / "mine.yaml")]) == 0
    assert load_goals(tmp_path / "mine.yaml").digest == load_goals(None, "automq").digest


def test_show_of_an_unknown_preset(capsys: Capture) -> None:
    assert main(["goals", "show", "defualt"]) == 2
    assert "unknown preset 'defualt'; did you mean 'default'?" in capsys.readouterr().err


def test_schema_is_json_that_editors_read(capsys: Capture) -> None:
    assert main(["goals", "schema"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert found["properties"]["version"]["const"] == 1


# --- docs/goals.md -----------------------------------------------------------------------------------------

DOCS = (ROOT / "docs" / "goals.md").read_text("utf-8")


def curve(name: str) -> list[tuple[float, float]]:
    """Rows (place on the curve, score) of a table in the docs."""
    table = DOCS.split(f"<!-- curve: {name} -->\n")[1].split("\n\n")[0]
    rows = re.findall(r"^\| ([0-9.]+)%? \| ([0-9.]+) \| `([█▏]+)` \|$", table, re.MULTILINE)
    assert len(rows) == len(table.splitlines()) - 2
    assert all(bar == ("█" * round(20 * float(score)) or "▏") for _, score, bar in rows)
    return [(float(at), float(score)) for at, score, _ in rows]


def test_the_curves_in_the_docs_are_the_curves() -> None:
    for percent, score in curve("usage_distribution"):
        for load in (100.0 + percent, 100.0 - percent):
            assert round(distribution_score(load, 100.0, 10.0, 60.0, False, 0.0), 3) == score
    for percent, score in curve("limit"):
        assert round(limit_score(percent, 100.0), 3) == score
    for units, score in curve("units"):
        assert round(units_score(units), 3) == score


def test_the_files_in_the_docs_are_valid() -> None:
    files = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    assert len(files) == 6
    for text in files:
        assert parse_goals(text, "docs/goals.md").goals


def test_the_docs_name_every_kind_parameter_and_preset() -> None:
    known = set(re.findall(r"`([a-z_]+)`", DOCS))
    assert set(KINDS) | set(PRESETS) <= known
    assert {parameter.name for kind in KINDS.values() for parameter in kind.parameters} <= known | {
        "resource"
    }


CALIBRATION = """version: 1
cluster_id: prod
made_at: 2026-11-02T00:00:00Z
history: {begin: 2026-10-01T00:00:00Z, end: 2026-11-01T00:00:00Z, window: 300, samples: 1, brokers: 1, partitions: 1, digest: x}
resources: {network_in: {mean: 1, noise: 0.03, bound: 0.14, var: 0.56, min_load: 2e6}}
capacity: [{broker: 1, resource: cpu, value: 8, confidence: high, evidence: x}]
"""


def test_check_says_which_values_come_from_the_calibration(tmp_path: Path, capsys: Capture) -> None:
    calibration, path = tmp_path / "c.yaml", tmp_path / "goals.yaml"
    calibration.write_text(CALIBRATION)
    path.write_text("version: 1\npreset: default\n")
    assert main(["goals", "check", str(path), "--format", "json"]) == 0
    assert "calibrated" not in json.loads(capsys.readouterr().out)
    path.write_text("version: 1\npreset: default\ncalibration: c.yaml\n")
    assert main(["goals", "check", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    goal = "goal usage_distribution-network_in"
    for line in (
        f"{goal}: bound is from c.yaml: resources.network_in.bound 0.14, from 2026-10-01 to 2026-11-01",
        f"{goal}: min_load is from c.yaml: resources.network_in.min_load 2e+06, from 2026-10-01 to 2026-11-01",
        "capacity: cpu of 1 broker is from c.yaml, from 2026-10-01 to 2026-11-01, where a snapshot gives none",
    ):
        assert line in out.splitlines()
    assert main(["goals", "check", str(path), "--format", "json"]) == 0
    filled = json.loads(capsys.readouterr().out)["calibrated"]["filled"]
    assert filled[0] == {
        "goal": "usage_distribution-network_in", "key": "bound", "value": 0.14, "place": "resources.network_in.bound",
        "from": "c.yaml: resources.network_in.bound 0.14, from 2026-10-01 to 2026-11-01",
    }  # fmt: skip


def test_check_takes_a_calibration_that_the_file_does_not_name(tmp_path: Path, capsys: Capture) -> None:
    calibration, path = tmp_path / "c.yaml", tmp_path / "goals.yaml"
    calibration.write_text(CALIBRATION)
    path.write_text("version: 1\npreset: automq\n")
    assert main(["goals", "check", str(path), "--calibration", str(calibration)]) == 0
    assert "resources.network_in" not in capsys.readouterr().out
    path.write_text("version: 1\npreset: counts\n")
    calibration.write_text(CALIBRATION.partition("capacity")[0])
    assert main(["goals", "check", str(path), "--calibration", str(calibration)]) == 0
    assert f"{calibration} gives nothing that the goals leave out" in capsys.readouterr().out
