"""`trimtab tune` as it is typed: what it shows, and what it does to the goals file."""

from __future__ import annotations

import json
import subprocess
from difflib import unified_diff
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from goals.document import load_goals
from tests.assembled.commands.command_line import CommandLine

CALIBRATION = """version: 1
cluster_id: prod
made_at: 2026-11-02T00:00:00Z
history: {begin: 2026-10-01T00:00:00Z, end: 2026-11-01T00:00:00Z, window: 300, samples: 1, brokers: 1, partitions: 1, digest: x}
resources:
  network_in:
    {mean: 5e7, noise: 0.03, false_alarms: 1, bound: 0.14, var: 0.56, min_load: 2e6, why: ["bound: noise leaves it once"],
     alarms: [{bound: 0.1, false_alarms: 15}, {bound: 0.2, false_alarms: 0}]}
"""
GOALS = """# what we want
version: 1
goals:
  - {kind: rack_aware, hard: true}
  - kind: usage_distribution   # traffic
    resource: network_in
    bound: 0.10                # a guess
constraints: {exclude_topics: [ "__*" ]}
"""
TUNED = GOALS.replace(
    "    bound: 0.10                # a guess\n", "    bound: 0.14                # a guess\n    var: 0.56\n    min_load: 2MB\n"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "c.yaml").write_text(CALIBRATION)
    (tmp_path / "goals.yaml").write_text(GOALS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


COMMAND = ("tune", "--goals", "goals.yaml", "--calibration", "c.yaml")
DIFF = "".join(unified_diff(GOALS.splitlines(keepends=True), TUNED.splitlines(keepends=True), "goals.yaml", "goals.yaml"))


def test_the_difference_is_shown_with_reasons_and_nothing_is_written(trimtab: CommandLine, place: Path) -> None:
    ended = trimtab(*COMMAND)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "goals.yaml: 3 values to change by c.yaml (cluster prod, 2026-10-01 to 2026-11-01)\n"
        "\n"
        "usage_distribution-network_in\n"
        "  bound 0.1 -> 0.14: about 14 false triggers a week less (about 1 a week are expected)\n"
        "    bound: noise leaves it once\n"
        "  var 0.6 (left out) -> 0.56\n"
        "  min_load 0 (left out) -> 2MB\n"
        "\n"
    ) + DIFF
    assert (place / "goals.yaml").read_text() == GOALS


def test_what_is_shown_can_be_applied_as_a_patch(trimtab: CommandLine, place: Path) -> None:
    shown = trimtab(*COMMAND).out
    subprocess.run(["git", "apply", "-p0", "-"], input=shown, text=True, check=True, cwd=place)
    assert (place / "goals.yaml").read_text() == TUNED


def test_the_file_is_changed_in_place_and_keeps_its_mode(trimtab: CommandLine, place: Path) -> None:
    path = place / "goals.yaml"
    path.chmod(0o640)
    ended = trimtab(*COMMAND, "--write")
    assert ended.code == 0
    assert ended.err == "goals.yaml changed: 3 values\n"
    assert path.read_text() == TUNED
    assert path.stat().st_mode & 0o777 == 0o640
    again = trimtab(*COMMAND, "--write")
    assert again.code == 0
    assert again.out == "nothing to change: goals.yaml is as c.yaml (cluster prod, 2026-10-01 to 2026-11-01) recommends\n"
    assert again.err == ""
    assert sorted(file.name for file in place.iterdir()) == ["c.yaml", "goals.yaml"]


def test_a_byte_order_mark_and_line_ends_survive(trimtab: CommandLine, place: Path) -> None:
    path = place / "goals.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOALS.replace("\n", "\r\n").encode())
    assert trimtab(*COMMAND, "--write").code == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + TUNED.replace("\n", "\r\n").encode()


@pytest.mark.parametrize("given", ["goals.yaml", "c.yaml"])
def test_either_file_may_come_by_stdin(trimtab: CommandLine, place: Path, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO((place / given).read_bytes())))
    ended = trimtab(*("-" if word == given else word for word in COMMAND))
    assert ended.code == 0
    assert "bound: 0.14" in ended.out
    assert "stdin" in ended.out


def test_stdin_is_never_written(trimtab: CommandLine, place: Path) -> None:
    ended = trimtab("tune", "--goals", "-", "--calibration", "c.yaml", "--write")
    assert ended.code == 2
    assert "stdin cannot be changed" in ended.err


def test_only_some_keys_change_when_asked(trimtab: CommandLine, place: Path) -> None:
    assert trimtab(*COMMAND, "--only", "bound,weight", "--write").code == 0
    assert (place / "goals.yaml").read_text() == GOALS.replace("0.10 ", "0.14 ")
    wrong = trimtab(*COMMAND, "--only", "bund")
    assert wrong.code == 2
    assert "expected some of weight,bound,var,min_load, found 'bund'" in wrong.err


def test_the_same_as_data(trimtab: CommandLine, place: Path) -> None:
    made = json.loads(trimtab(*COMMAND, "--format", "json", "--only", "bound", "--write").out)
    diff = made.pop("diff")
    assert diff.splitlines()[:2] == ["--- goals.yaml", "+++ goals.yaml"]
    assert made == {
        "version": 1, "goals": "goals.yaml", "calibration": "c.yaml", "cluster_id": "prod",
        "from": "2026-10-01T00:00:00Z", "to": "2026-11-01T00:00:00Z",
        "changes": [
            {
                "goal": "usage_distribution-network_in", "key": "bound", "place": "goals[1].bound", "before": 0.1, "in_force": 0.1,
                "after": 0.14, "text": "0.14", "why": ["bound: noise leaves it once"],
                "effect": "about 14 false triggers a week less (about 1 a week are expected)",
            }
        ],
        "expected": "", "remarks": [], "written": True,
    }  # fmt: skip


def test_a_file_without_a_last_line_end_gives_a_diff_that_says_so(trimtab: CommandLine, place: Path) -> None:
    (place / "goals.yaml").write_text("version: 1\npreset: default")
    out = trimtab(*COMMAND).out
    assert "-preset: default\n\\ No newline at end of file\n+preset: default\n+goals:\n" in out
    subprocess.run(["git", "apply", "-p0", "-"], input=out, text=True, check=True, cwd=place)
    assert load_goals(place / "goals.yaml").goals == load_goals(None, "default", place / "c.yaml").goals


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("goals.yaml", "version: 1\ngoals: [{kind: rack_awre}]\n", "goals[0].kind: unknown kind 'rack_awre'"),
        ("c.yaml", CALIBRATION.replace("noise", "niose"), "c.yaml: 2 problems"),
        (
            "goals.yaml", GOALS.replace("bound: 0.10", "bound: &b 0.10") + "policy: {detector: {kind: goal_band, deviation: *b}}\n",
            "are shared",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_refused_and_left_alone(trimtab: CommandLine, place: Path, file: str, text: str, says: str) -> None:
    (place / file).write_text(text)
    before = (place / "goals.yaml").read_bytes()
    ended = trimtab(*COMMAND, "--write")
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert (place / "goals.yaml").read_bytes() == before


def test_a_file_that_changes_meanwhile_is_not_overwritten(place: Path) -> None:
    """An operator saved the goals between reading and writing: that edit stays."""
    from cluster_model.errors import ConfigurationError
    from trimtab.commands.tune import write_over

    path = place / "goals.yaml"
    seen = path.read_bytes()
    path.write_text(GOALS + "# an edit\n")
    with pytest.raises(ConfigurationError, match="the file changed while it was being tuned, nothing was written"):
        write_over(path, seen, TUNED)
    assert path.read_text() == GOALS + "# an edit\n"


def test_a_preset_is_shown_with_what_a_calibration_gives(trimtab: CommandLine, place: Path) -> None:
    ended = trimtab("goals", "show", "default", "--calibration", "c.yaml")
    assert ended.code == 0
    where = "c.yaml: resources.network_in.bound 0.14, from 2026-10-01 to 2026-11-01"
    assert ended.out.startswith(f"# goal usage_distribution-network_in: bound is from {where}\n")
    (place / "shown.yaml").write_text(ended.out)
    assert load_goals(place / "shown.yaml").goals == load_goals(None, "default", place / "c.yaml").goals
