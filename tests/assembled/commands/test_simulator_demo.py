"""`trimtab demo` as a person runs it: it tells the story, writes the report whole or not at all, and refuses in time."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from metrics_reporter.topic import EmbeddedTopic
from tests.assembled.commands.command_line import CommandLine, process
from trimtab.demo import TOPIC_FILE


def test_the_command_tells_the_story_and_writes_the_report(trimtab: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "new" / "report.html"
    out.parent.mkdir()
    ended = trimtab("demo", "--quick", "--out", out, "--dir", tmp_path / "kept", "--seed", "2")
    assert ended.code == 0, ended.err
    assert ended.out == ""
    for step in ("Cluster", "Measure", "Plan", "Approve", "Execute", "After", "Report"):
        assert re.search(rf"^\d {step} ", ended.err, re.MULTILINE), step
    told = " ".join(ended.err.split())
    assert "0 unreadable" in told
    assert re.search(r"done: (\d+) of \1 changes", told)
    assert re.search(r"network in 0 to \d+% → \d+ to \d+% of capacity", told)
    assert "trimtab snapshot --bootstrap-server" in told
    assert "capacity.yaml" in told, "without capacities, most hard goals are not checked"
    assert "Unbalanced: " in told, "the plan is summed up in the words of every report"
    assert out.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html")
    with EmbeddedTopic(tmp_path / "kept" / TOPIC_FILE) as topic:
        assert topic.end_offsets()[0] > 0
    assert sorted(p.name for p in out.parent.iterdir()) == ["report.html"]


def test_json_lines_carry_the_same_story(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("demo", "--quick", "--preset", "counts", "--log-format", "json", "--out", tmp_path / "r.html")
    messages = [json.loads(line)["message"] for line in ended.err.splitlines()]
    titles = [m.split(":")[0] for m in messages]
    assert [t for t in titles if t in ("Cluster", "Plan", "Execute", "Report")] == ["Cluster", "Plan", "Execute", "Report"]


def test_an_output_that_cannot_be_written_is_refused_before_the_work(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    ended = trimtab("demo", "--quick", "--out", tmp_path / "taken" / "r.html", "--dir", tmp_path / "taken" / "x")
    assert ended.code == 2
    assert "--out" in ended.err
    assert "--dir: expected a folder, found the file" in ended.err


def test_a_report_in_a_folder_that_is_not_there_is_refused_as_by_plan(trimtab: CommandLine, tmp_path: Path) -> None:
    """A typing error made a folder, and the report was where no one looked for it."""
    ended = trimtab("demo", "--quick", "--out", tmp_path / "nosuch" / "x.html", "--dir", tmp_path / "kept")
    assert ended.code == 2
    assert f"--out: there is no folder {tmp_path / 'nosuch'}; create it or name another" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_a_page_whatever_its_name_says_so_other_names_are_refused(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("demo", "--quick", "--out", tmp_path / "x.pdf")
    assert (ended.code, list(tmp_path.iterdir())) == (2, [])
    assert f"--out: expected a file that ends in .html, found {tmp_path / 'x.pdf'}; name it so" in ended.err


def test_without_out_the_report_has_a_folder_of_its_own(
    trimtab: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert trimtab("demo", "--quick", "-q", "--preset", "counts").code == 0
    assert [p.name for p in (tmp_path / "trimtab-demo").iterdir()] == ["report.html"]


def test_quiet_says_nothing(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("demo", "--quick", "-q", "--preset", "counts", "--out", tmp_path / "r.html")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--brokers", "3"), "--brokers: expected at least 4, found 3"),
        (("--partitions", "2"), "--partitions: expected at least one a broker (12), found 2"),
        (("--preset", "nonsense"), "nonsense"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    trimtab: CommandLine, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    ended = trimtab("demo", *arguments, "--out", tmp_path / "r.html", "--dir", tmp_path / "kept")
    assert ended.code == 2
    assert complaint in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", [b"Measure", b"Execute"])
def test_ctrl_c_leaves_no_half_written_file(tmp_path: Path, moment: bytes) -> None:
    started = process("demo", "--quick", "--preset", "counts", "--out", tmp_path / "report.html")
    assert started.stderr is not None
    for line in started.stderr:
        if moment in line:
            started.send_signal(signal.SIGINT)
            break
    started.communicate(timeout=60)
    assert started.returncode == 130
    assert list(tmp_path.iterdir()) == []
