"""One plan in several files, a saved plan shown again, two files compared: reviewed report and executed moves are of one plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.assembled.commands.command_line import CommandLine, partition, snapshot_file

EXAMPLES = Path(__file__).parents[3] / "examples"

COUNTS = ("--preset", "counts")


@pytest.fixture
def saved(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> Path:
    out = tmp_path / "plan.json"
    assert trimtab("plan", "--snapshot", skewed, *COUNTS, "--out", out).code == 0
    return out


def replicas(path: Path) -> dict[tuple[str, int], list[int]]:
    return {(p["topic"], p["partition"]): p["replicas"] for p in json.loads(path.read_text())["partitions"]}


def test_several_files_of_one_command_are_of_one_plan(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    names = ("report.html", "plan.json", "moves.json", "note.md", "note.txt", "rollback.json")
    outs = [x for name in names for x in ("--out", tmp_path / name)]
    ended = trimtab("plan", "--snapshot", skewed, *COUNTS, *outs)
    assert (ended.code, ended.out) == (0, "")
    assert all(f"wrote {tmp_path / name}" in ended.err for name in names)
    plan: dict[str, Any] = json.loads((tmp_path / "plan.json").read_text())
    for name in ("report.html", "note.txt", "note.md"):
        assert plan["plan_id"] in (tmp_path / name).read_text()
    moved = {
        (p["topic"], p["partition"]): p for p in plan["proposals"] if p["replicas_before"] != p["replicas_after"]
    }
    assert moved
    assert replicas(tmp_path / "moves.json") == {key: p["replicas_after"] for key, p in moved.items()}
    assert replicas(tmp_path / "rollback.json") == {key: p["replicas_before"] for key, p in moved.items()}


def test_stdout_is_one_of_several_outputs(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    ended = trimtab("plan", "--snapshot", skewed, *COUNTS, "--out", "-", "--out", page, "--format", "json")
    assert ended.code == 0
    assert json.loads(ended.out)["plan_id"] in page.read_text()


def test_a_form_before_the_file_decides(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    ended = trimtab(
        "plan", "--snapshot", skewed, *COUNTS, "--out", f"reassignment:{tmp_path / 'a.json'}", "--out", f"json:{tmp_path / 'b'}"
    )
    assert ended.code == 0
    assert replicas(tmp_path / "a.json")
    assert "plan_id" in json.loads((tmp_path / "b").read_text())


@pytest.mark.parametrize(
    ("outs", "told"),
    [
        (["a.xyz"], "expected a file that ends in .txt, .json, .html"),
        (["a.jsn"], "expected a file that ends in .txt, .json, .html"),
        (["a.html", "a.html"], "expected each file once"),
        (["cluster.json"], "found that of --snapshot"),
        (["a.html", "absent/b.json"], "there is no folder"),
        (["html:"], "expected a file after html:, found none"),
        (["."], "expected a file, found an empty name or the folder that this runs in"),
    ],
)
def test_files_that_cannot_be_written_are_refused_before_planning(
    trimtab: CommandLine, skewed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outs: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = trimtab("plan", "--snapshot", skewed, *COUNTS, *(x for out in outs for x in ("--out", out)))
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster.json"]


def test_format_decides_a_single_file_of_any_name_and_says_where_the_name_says_otherwise(
    trimtab: CommandLine, skewed: Path, tmp_path: Path
) -> None:
    assert trimtab("plan", "--snapshot", skewed, *COUNTS, "--format", "json", "--out", tmp_path / "a.xyz").code == 0
    assert "plan_id" in json.loads((tmp_path / "a.xyz").read_text())
    ended = trimtab("plan", "--snapshot", skewed, *COUNTS, "--format", "json", "--out", tmp_path / "a.html")
    assert ended.code == 0
    assert "a.html is written as json" in ended.err
    several = trimtab(
        "plan", "--snapshot", skewed, *COUNTS, "--format", "json", "--out", tmp_path / "a.xyz", "--out", tmp_path / "b.html"
    )
    assert several.code == 2
    assert "expected FORM:FILE" in several.err
    ended = trimtab("plan", "--snapshot", skewed, *COUNTS, "--format", "reassignment", "--out", tmp_path / "week12.json")
    assert ended.code == 0
    assert "as --format says" not in ended.err
    ended = trimtab("plan", "--snapshot", skewed, *COUNTS, "--out", "pdf:x")
    assert ended.code == 2
    assert "--out: unknown form 'pdf'; expected one of text, json, html" in ended.err
    assert "or ./pdf:x for a file of that name" in ended.err


def test_save_snapshot_goes_with_a_live_cluster(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    for command in (["plan"], ["explain", "--broker", "1"]):
        ended = trimtab(*command, "--snapshot", skewed, "--save-snapshot", tmp_path / "kept.json")
        assert ended.code == 2
        assert "--save-snapshot: goes with --bootstrap-server" in ended.err
    same = tmp_path / "same.json"
    ended = trimtab("plan", "--bootstrap-server", "localhost:1", "--out", same, "--save-snapshot", same)
    assert ended.code == 2
    assert "--save-snapshot: expected a file of its own, found that of --out" in ended.err


def test_a_saved_plan_is_shown_as_it_was_made(trimtab: CommandLine, saved: Path, skewed: Path, tmp_path: Path) -> None:
    for form in ("text", "json", "html", "markdown", "reassignment"):
        made = trimtab("plan", "--snapshot", skewed, *COUNTS, "--format", form).out
        assert trimtab("show", saved, "--format", form).out == made
    leaders = tmp_path / "leaders.json"
    ended = trimtab("show", saved, "--out", tmp_path / "moves.json", "--election-out", leaders)
    assert ended.code == 0
    assert replicas(tmp_path / "moves.json")
    assert "partitions" in json.loads(leaders.read_text())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "version: "),
        ({"proposals": [{"topic": "t", "partition": 0, "replicas_before": [1], "replicas_after": [2, 2],
                         "leader_before": 1, "leader_after": 2}]}, "proposals[0]: replicas_after"),
        ({"proposals": [{"topic": "t", "partition": 0, "replicas_before": [1], "replicas_after": [2],
                         "leader_before": 1, "leader_after": 3}]}, "proposals[0]: leader_after"),
        ({"plan_id": "x"}, "plan_id: "),
        ({"actions": None}, "actions: "),
    ],
)  # fmt: skip
def test_a_damaged_plan_file_is_refused_with_its_place(
    trimtab: CommandLine, saved: Path, change: dict[str, Any], told: str
) -> None:
    saved.write_text(json.dumps(json.loads(saved.read_text()) | change))
    ended = trimtab("show", saved)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert "Traceback" not in ended.err


def test_a_file_that_is_no_plan_is_refused(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.json"
    half.write_text('{"version":1,')
    for path in (skewed, half):
        ended = trimtab("show", path)
        assert ended.code == 2
        assert "`trimtab plan --format json`" in ended.err


def test_the_shown_plan_is_not_written_over(trimtab: CommandLine, saved: Path) -> None:
    before = saved.read_text()
    assert trimtab("show", saved, "--out", saved).code == 2
    assert saved.read_text() == before


def test_two_snapshots_differ_in_words(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    (tmp_path / "later").mkdir()
    partitions = [
        partition("orders", 0, [1, 3]), partition("orders", 1, [1, 2]), partition("orders", 2, [3, 1]),
        partition("clicks", 0, [2, 1]), partition("users", 0, [2, 1]), partition("users", 1, [1, 2]),
        partition("users", 2, [2, 1]), partition("new", 0, [4], disk=5e9),
    ]  # fmt: skip
    brokers = [
        {"id": 1, "rack": "r1", "capacity": {"disk": 2e12}}, {"id": 2, "rack": "r2", "capacity": {"disk": 1e12}, "state": "draining"},
        {"id": 3, "rack": "r3", "capacity": {"disk": 1e12}}, {"id": 4},
    ]  # fmt: skip
    later = snapshot_file(tmp_path / "later", partitions=partitions, brokers=brokers)
    ended = trimtab("diff", skewed, later, *COUNTS)
    assert ended.code == 0
    for told in (
        "broker 4 was added (no rack)", "broker 2: active → draining", "broker 1: capacity of disk 1.00 TB → 2.00 TB",
        "topic new was added (1 partition)", "topic orders: 2 → 3 partitions", "orders-0 [1, 2] → [1, 3]", "clicks-0 1 → 2",
        "disk: 12.0 GB → 19.0 GB (+58%); most at broker 4 +5.00 GB",
        "\n  leaders: 2 brokers outside → 3 brokers outside",
    ):  # fmt: skip
        assert told in ended.out
    assert "two clusters" not in ended.out
    assert "-0 B" not in ended.out
    assert trimtab("diff", skewed, skewed, *COUNTS).out == "No difference.\n"
    other = trimtab("diff", EXAMPLES / "three-brokers.json", EXAMPLES / "skewed-12-brokers.json.gz", *COUNTS)
    assert "cluster: example-three-brokers → example-skewed-12-brokers. These are two clusters" in other.out
    assert "-0.00 cores" not in other.out


def test_log_directories_are_compared(trimtab: CommandLine, tmp_path: Path) -> None:
    def written(name: str, at: list[int], *more: dict[str, Any], used: float = 300.0) -> Path:
        disks = [{"path": f"/d{n}", "size": 1000.0, "used": 300.0} for n in range(2)]
        (tmp_path / name).mkdir()
        brokers = [{"id": 1, "directories": [disks[0] | {"used": used}, disks[1], *more]}, {"id": 2, "directories": disks}]
        replicas = [1, 2] if used == 300.0 else [2, 1]
        return snapshot_file(tmp_path / name, brokers=brokers, partitions=[partition("t", 0, replicas) | {"leader": 1, "directories": at}])

    before = written("a", [0, 1])
    assert trimtab("diff", before, written("b", [0, 1]), *COUNTS).out == "No difference.\n"
    after = written("c", [1, 1], {"path": "/new", "size": 10.0, "used": 0.0}, used=303.0)
    told = trimtab("diff", before, after, *COUNTS).out
    assert "broker 1: log directory /d0 30.0% → 30.3% full; log directory /new was added\n" in told
    assert "1 replica in other log directories: t-0 on broker 1 /d0 → /d1\n" in told


def test_two_plans_differ_in_words(trimtab: CommandLine, saved: Path, skewed: Path, tmp_path: Path) -> None:
    less = tmp_path / "less.json"
    fewer = ("--max-moves", "2", "--max-bytes", "500GB", "--exclude-topic", "users")
    assert trimtab("plan", "--snapshot", skewed, *COUNTS, *fewer, "--out", less).code == 0
    ended = trimtab("diff", less, saved)
    assert ended.code == 0
    for told in (
        "max_moves: 2 → none", "max_bytes: 500 GB → none", "exclude_topics: users → none", "replica moves: 2 → ", "only in the second",
        "1 partition in both, with the same result",
        "within it",
    ):  # fmt: skip
        assert told in ended.out
    assert trimtab("diff", saved, saved).out == "No difference.\n"


def test_a_plan_is_not_compared_with_a_snapshot(trimtab: CommandLine, saved: Path, skewed: Path) -> None:
    ended = trimtab("diff", saved, skewed)
    assert ended.code == 2
    assert f"expected two snapshots or two plans, found one plan, {saved}, and {skewed}, which is no plan" in ended.err
    ended = trimtab("diff", saved, saved, *COUNTS)
    assert ended.code == 2
    assert "--preset: goes with two snapshots" in ended.err


def test_a_plan_that_was_edited_is_told(trimtab: CommandLine, saved: Path, tmp_path: Path) -> None:
    edited, document = tmp_path / "edited.json", json.loads(saved.read_text())
    document["options"]["seed"] = 7
    edited.write_text(json.dumps(document))
    commands: list[list[str | Path]] = [["show", edited], ["diff", saved, edited]]
    for command in commands:
        ended = trimtab(*command)
        assert ended.code == 0
        assert "edited.json: plan_id is not that of what the file says: it was edited, or another release wrote it" in ended.err
    assert "seed: 0 → 7" in ended.out
    assert "plan_id" not in trimtab("show", saved).err


def test_an_empty_file_is_called_empty(trimtab: CommandLine, tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    empty.touch()
    ended = trimtab("show", empty)
    assert ended.code == 2
    assert "expected a plan, found an empty file; `trimtab plan --format json` makes one" in ended.err


def test_a_plan_of_wrong_shape_is_refused_in_plain_words(trimtab: CommandLine, saved: Path, tmp_path: Path) -> None:
    document = json.loads(saved.read_text())
    document["proposals"] = {}
    document["actions"][0]["changes"][0]["replicas_after"] = ["a"]
    (tmp_path / "wrong.json").write_text(json.dumps(document))
    ended = trimtab("show", tmp_path / "wrong.json")
    assert ended.code == 2
    assert "proposals: expected a list, found an object; " in ended.err
    assert "replicas_after[0]: expected a whole number, found 'a'; " in ended.err


def test_every_file_that_was_written_is_told(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    """An operator who gave a wrong folder looked for the election file, of which nothing was said."""
    election, folder, placed = tmp_path / "leaders.json", tmp_path / "topics", tmp_path / "placed.json"
    ended = trimtab("plan", "-s", skewed, *COUNTS, "--election-out", election, "--per-topic-dir", folder)
    assert f"wrote {election} (election)\n" in ended.err
    assert f"wrote {folder} (original and migrated)\n" in ended.err
    ended = trimtab("assign", "-s", skewed, *COUNTS, "--topic", "new", "--partitions", "1", "--replication-factor", "2", "-o", placed)
    assert ended.err == f"wrote {placed}\n"
