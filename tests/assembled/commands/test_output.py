"""Half a reassignment file, or files of two plans in one folder, would be carried out as they are."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.assembled.commands.command_line import REPOSITORY, finished, process, snapshot_file
from trimtab.output import overwritten, unwritable, unwritable_folders, write_file, write_folders

UNENCODABLE = "first half\ud800"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_file(path, UNENCODABLE)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_no_new_file(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_file(tmp_path / "plan.json", UNENCODABLE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_stream_that_lacks_a_sign_gets_one_that_says_the_same(tmp_path: Path, encoding: str) -> None:
    """A question mark in place of a minus or an arrow turns "34% less" into "34%", and asks which rack the broker went to."""
    before, after = snapshot_file(tmp_path), tmp_path / "after.json"
    text = before.read_text("utf-8")
    after.write_text(text.replace('"rack": "r2"', '"rack": "r9"'), "utf-8")
    narrow = f"sys.stdout.reconfigure(encoding={encoding!r}); sys.stderr.reconfigure(encoding={encoding!r})"
    ended = finished(process("diff", before, after, before=narrow))
    assert ended.code == 0
    assert "rack r2 -> rack r9" in ended.out
    assert "?" not in ended.out
    refused = finished(process("diff", before, tmp_path / "a→\u2603", before=narrow))
    assert "a->\\u2603" in refused.err, "a name in a message keeps all its signs"


@pytest.mark.parametrize("option", ["--out", "--per-topic-dir"])
def test_a_full_disk_is_said_with_the_place_and_what_to_do(tmp_path: Path, option: str) -> None:
    snapshot, place = snapshot_file(tmp_path), tmp_path / "plans"
    full = (
        "import errno, os, pathlib\n"
        "def full(*_, **__): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "os.fsync = pathlib.Path.write_text = full"
    )
    ended = finished(process("plan", "-q", "--snapshot", snapshot, "--preset", "counts", option, place, before=full))
    assert (ended.code, ended.err) == (1, f"error: {place}: No space left on device; make room there, or name another place\n")


@pytest.mark.parametrize("place", ["stdout", "/dev/full"])
def test_what_takes_nothing_is_named(place: str) -> None:
    with open("/dev/full", "w") as full:
        started = subprocess.run(
            [sys.executable, "-m", "trimtab", "goals", "schema", *(("--out", place) if place != "stdout" else ())],
            stdout=full, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY, check=False,
        )  # fmt: skip
    assert (started.returncode, started.stderr) == (1, f"error: {place}: No space left on device; make room there, or name another place\n")


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path: Path) -> None:
    old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
    old.write_text("")
    old.chmod(0o640)
    usual.write_text("")
    write_file(old, "text")
    write_file(new, "text")
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode


def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_what_is_no_regular_file_is_written_to(tmp_path: Path) -> None:
    """``--out /dev/null`` must not replace the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    write_file(pipe, "text")
    reader.join(timeout=30)
    assert received == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    assert unwritable("--out", None) == unwritable("--out", Path("-")) == []
    assert unwritable("--out", tmp_path / "new.json") == []
    assert "folder" in str(unwritable("--out", tmp_path)[0])
    assert "create it" in str(unwritable("--out", tmp_path / "absent" / "plan.json")[0])


def test_a_folder_with_files_of_an_older_plan_is_refused(tmp_path: Path) -> None:
    files = {"original/a.json": "1", "migrated/a.json": "2"}
    folders = ("original", "migrated")
    directory = tmp_path / "moves" / "today"
    assert unwritable_folders("--per-topic-dir", directory, folders) == []
    write_folders(directory, files)
    assert {str(p.relative_to(directory)): p.read_text() for p in directory.glob("*/*")} == files
    assert sorted(p.name for p in directory.iterdir()) == ["migrated", "original"]
    refused = unwritable_folders("--per-topic-dir", directory, folders)
    assert [p.place for p in refused] == ["--per-topic-dir", "--per-topic-dir"]
    assert "not empty" in str(refused[0])


def test_folders_are_complete_or_absent(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_folders(tmp_path, {"original/a.json": "1", "migrated/a.json": UNENCODABLE})
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_an_input_is_refused_also_through_links(tmp_path: Path) -> None:
    """The capture of a cluster may exist once only."""
    given, other = tmp_path / "me.json", tmp_path / "plan.json"
    given.write_text("{}")
    (tmp_path / "link.json").symlink_to(given)
    os.link(given, tmp_path / "hard.json")
    (tmp_path / "folder").symlink_to(tmp_path)
    for out in (given, tmp_path / "link.json", tmp_path / "hard.json", tmp_path / "folder" / "me.json"):
        (problem,) = overwritten({"--out": out}, {"--snapshot": given, "--goals": None})
        assert str(problem).startswith("--out: expected a file of its own, found that of --snapshot")
    assert overwritten({"--out": other, "--election-out": None}, {"--snapshot": given}) == []
    assert overwritten({"--out": Path("-")}, {"--snapshot": given}) == []


def test_files_of_a_snapshot_folder_are_inputs_and_others_in_it_are_not(tmp_path: Path) -> None:
    for name in ("brokers.parquet", "partitions.parquet", "meta.json"):
        assert len(overwritten({"--out": tmp_path / name}, {"--snapshot": tmp_path})) == 1
    assert overwritten({"--out": tmp_path / "plan.html"}, {"--snapshot": tmp_path}) == []


def test_a_file_that_cannot_be_written_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    """The name of the file on the way there was told: ``.g.yaml.6b63b9d9.part: No such file or directory``."""
    wanted = tmp_path / "absent" / "g.yaml"
    with pytest.raises(OSError, match="No such file") as error:
        write_file(wanted, "text")
    assert error.value.filename == str(wanted)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory") as error:
        write_file(tmp_path / "file" / "g.yaml", "text")
    assert error.value.filename == str(tmp_path / "file" / "g.yaml")
