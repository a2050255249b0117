"""Snapshot files: the three forms say the same, are never seen half written, and refuse in words."""

from __future__ import annotations

import gzip
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import InputError
from cluster_model.files import read_snapshot, write_snapshot
from cluster_model.snapshot import Snapshot
from tests.unit.cluster_model.documents import assert_same, document

FORMS = ["west.json", "west.json.gz", "west"]


@pytest.fixture
def snapshot() -> Snapshot:
    return build_snapshot({**document(), "notes": ["broker 9 did not answer"]})


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_snapshot(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


@pytest.mark.parametrize("first", FORMS)
@pytest.mark.parametrize("second", FORMS)
def test_from_any_form_to_any_other(tmp_path: Path, snapshot: Snapshot, first: str, second: str) -> None:
    write_snapshot(snapshot, tmp_path / first)
    middle = read_snapshot(tmp_path / first)
    write_snapshot(middle, tmp_path / f"again-{second}")
    assert_same(read_snapshot(tmp_path / f"again-{second}"), snapshot)


def test_numbers_that_decimal_text_loses_easily(tmp_path: Path) -> None:
    given = document()
    given["partitions"][0]["leader_load"] = {"cpu": 0.1 + 0.2, "disk": 2.0**53 - 1, "network_in": 1.0000000000000002e-300}
    given["brokers"][0]["capacity"] = {"disk": 9.999999999999999e29}
    snapshot = build_snapshot(given)
    for form in FORMS:
        write_snapshot(snapshot, tmp_path / form)
        assert_same(read_snapshot(tmp_path / form), snapshot)


def test_json_has_one_partition_a_line(tmp_path: Path, snapshot: Snapshot) -> None:
    write_snapshot(snapshot, tmp_path / "west.json")
    lines = (tmp_path / "west.json").read_text().splitlines()
    found = [line for line in lines if '"orders", "partition": 1' in line]
    assert len(found) == 1
    assert json.loads(found[0].rstrip(","))["leader"] == 5


def test_more_partitions_than_one_write_takes(tmp_path: Path) -> None:
    many = [
        {"topic": "t", "partition": n, "replicas": [1], "leader_load": {"cpu": n / 7}} for n in range(8193)
    ]
    snapshot = build_snapshot({**document(), "partitions": many})
    write_snapshot(snapshot, tmp_path / "many.json")
    assert_same(read_snapshot(tmp_path / "many.json"), snapshot)


@pytest.mark.parametrize("form", FORMS)
def test_writing_twice_replaces_and_leaves_nothing_behind(
    tmp_path: Path, snapshot: Snapshot, form: str
) -> None:
    write_snapshot(build_snapshot({**document(), "partitions": []}), tmp_path / form)
    write_snapshot(snapshot, tmp_path / form)
    assert_same(read_snapshot(tmp_path / form), snapshot)
    assert os.listdir(tmp_path) == [form]


@pytest.mark.parametrize("form", FORMS[:2])
def test_equal_snapshots_give_equal_bytes(tmp_path: Path, snapshot: Snapshot, form: str) -> None:
    turned = {**document(), "notes": ["broker 9 did not answer"]}
    turned["partitions"].reverse()
    write_snapshot(snapshot, tmp_path / f"one-{form}")
    write_snapshot(build_snapshot(turned), tmp_path / f"two-{form}")
    assert (tmp_path / f"one-{form}").read_bytes() == (tmp_path / f"two-{form}").read_bytes()


def test_others_may_read_what_was_written(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "plain").write_text("")
    usual = stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    write_snapshot(snapshot, tmp_path / "west.json")
    assert stat.S_IMODE((tmp_path / "west.json").stat().st_mode) == usual


@pytest.mark.parametrize("form", FORMS)
def test_a_link_keeps_pointing_where_it_did(tmp_path: Path, snapshot: Snapshot, form: str) -> None:
    (tmp_path / "store").mkdir()
    write_snapshot(build_snapshot(document()), tmp_path / "store" / form)
    (tmp_path / form).symlink_to(tmp_path / "store" / form)
    write_snapshot(snapshot, tmp_path / form)
    assert (tmp_path / form).is_symlink()
    assert_same(read_snapshot(tmp_path / "store" / form), snapshot)


def test_a_folder_with_other_things_in_it_is_not_replaced(tmp_path: Path, snapshot: Snapshot) -> None:
    home = tmp_path / "reports"
    write_snapshot(snapshot, home)
    (home / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"thesis\.tex; name another"):
        write_snapshot(snapshot, home)
    assert (home / "thesis.tex").read_text() == "years of work"
    assert_same(read_snapshot(home), snapshot)
    assert os.listdir(tmp_path) == ["reports"]


def test_an_empty_folder_is_filled(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "west").mkdir()
    write_snapshot(snapshot, tmp_path / "west")
    assert_same(read_snapshot(tmp_path / "west"), snapshot)


def test_a_folder_does_not_replace_a_file(tmp_path: Path, snapshot: Snapshot) -> None:
    (tmp_path / "west").write_text("not yours")
    with pytest.raises(InputError, match=r"found a file; remove it, or end the name in \.json"):
        write_snapshot(snapshot, tmp_path / "west")
    assert (tmp_path / "west").read_text() == "not yours"


@pytest.mark.parametrize("form", FORMS)
def test_where_nothing_can_be_written(tmp_path: Path, snapshot: Snapshot, form: str) -> None:
    with pytest.raises(InputError, match=r"cannot be written \(No such file or directory\); name a path"):
        write_snapshot(snapshot, tmp_path / "missing" / form)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be written \(Not a directory\)"):
        write_snapshot(snapshot, tmp_path / "file" / form)


@pytest.mark.parametrize("form", FORMS[:2])
def test_a_failure_in_the_middle_keeps_the_old_file(tmp_path: Path, snapshot: Snapshot, form: str) -> None:
    path = tmp_path / form
    write_snapshot(snapshot, path)
    old = path.read_bytes()
    broken = snapshot.with_placement(snapshot.replicas + 90, snapshot.leader)  # no such broker rows
    with pytest.raises(IndexError):
        write_snapshot(broken, path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == [form]


def test_a_failure_in_the_middle_keeps_the_old_folder(tmp_path: Path, snapshot: Snapshot) -> None:
    write_snapshot(snapshot, tmp_path / "west")
    broken = snapshot.with_placement(snapshot.replicas + 90, snapshot.leader)
    with pytest.raises(IndexError):
        write_snapshot(broken, tmp_path / "west")
    assert_same(read_snapshot(tmp_path / "west"), snapshot)
    assert os.listdir(tmp_path) == ["west"]


def test_content_decides_the_form_that_is_read(tmp_path: Path, snapshot: Snapshot) -> None:
    write_snapshot(snapshot, tmp_path / "west.json.gz")
    (tmp_path / "capture").write_bytes((tmp_path / "west.json.gz").read_bytes())
    assert_same(read_snapshot(tmp_path / "capture"), snapshot)
    assert_same(read_snapshot(str(tmp_path / "capture")), snapshot)


def test_nothing_there(tmp_path: Path) -> None:
    assert "expected a .json file, a .json.gz file, or a folder" in refusal(tmp_path / "west.json")


def test_a_path_that_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"we st\.json: 1 problem\n  cannot be read"):
        read_snapshot(tmp_path / "we\0st.json")


def test_a_folder_that_is_no_snapshot(tmp_path: Path) -> None:
    message = refusal(tmp_path)
    for name in ("brokers.parquet", "partitions.parquet", "meta.json"):
        assert f"{name}: expected this file" in message


def test_broken_json_has_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "west.json"
    path.write_text('{"version": 1,\n "brokers": [1,, 2]}')
    assert "a mistake at line 2, column 16" in refusal(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "found an empty file; copy or capture it again"),
        (b" \n", "found an empty file"),
        (b'{"version": 1,\n "brokers": [', "breaks off at line 2, column 14; copy or capture it again"),
        (b'{"version": 1, "cluster_id": "we', "breaks off at line 1"),
        (b"\xff\xfe\x00\xd8", "expected JSON, found"),
        (b'{"version": "\xe4"}', "expected JSON, found what cannot be read"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"a":' * 200_000, "nested too deep"),
        (b"[]", "expected an object with version, brokers and partitions, found a list"),
        (b'{"version": ' + b"1" * 5000 + b"}", "expected JSON, found what cannot be read as such"),
        (b"PAR1....PAR1", "name the folder"),
        (b"\x1f\x8b\x08\x00junk", "broken or truncated"),
        (b"a,b\n1,2\n", "line 1, column 1"),
        (b"# goals\nversion: 1\npreset: default\n", "found what looks like YAML; a goals file is given with --goals"),
    ],
)
def test_junk(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "west.json"
    path.write_bytes(content)
    assert words in refusal(path)


def test_nan_and_infinity_written_out_in_json(tmp_path: Path) -> None:
    path = tmp_path / "west.json"
    given = document()
    given["partitions"][0]["leader_load"] = {"cpu": float("nan"), "disk": float("inf")}
    path.write_text(json.dumps(given))
    message = refusal(path)
    assert "partitions[0].leader_load.cpu: expected a finite number (cores), found NaN" in message
    assert "partitions[0].leader_load.disk: expected a finite number" in message


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ('"version": 1', '"version": 1, "version": 1', "version"),
        ('"id": 1', '"id": 1, "id": 7', "brokers[1].id"),
        ('"cpu": 0.5', '"cpu": 0.5, "cpu": 0.7', "partitions[0].leader_load.cpu"),
        ('"cpu": 0.125', '"cpu": 0.125, "cpu": 0.1', "partitions[0].follower_load.cpu"),
        ('"topic": "clicks"', '"topic": "orders", "topic": "clicks"', "partitions[2].topic"),
        ('"cluster_id": "abc"', '"cluster_id": "a\\u003a\\u003Ac", "storage": "shared"', "storage"),
        ('"cluster_id": "abc"', '"cluster_id": "a:b:c", "cluster\\u005fid": "abc"', "cluster_id"),
    ],
)
def test_a_key_written_twice_is_not_taken_for_one(tmp_path: Path, before: str, after: str, place: str) -> None:
    """The parser would keep the last one: an operator's edit would be lost without a word."""
    text = json.dumps(document())
    assert text.count(before) == 1
    path = tmp_path / "west.json"
    path.write_text(text.replace(before, after))
    assert f"{place}: key written twice; keep one" in refusal(path)


def test_keys_written_twice_are_told_beside_everything_else(tmp_path: Path) -> None:
    path = tmp_path / "west.json"
    path.write_text(json.dumps({**document(), "storage": "remote"}).replace('"id": 9', '"id": 9, "id": 9'))
    message = refusal(path)
    assert "brokers[2].id: key written twice" in message
    assert "storage: expected 'local'" in message


@pytest.mark.parametrize("name", ["a:b", 'quo"te: x', "\u003a", "{\"a\": 1}"])
def test_colons_in_names_are_no_keys(tmp_path: Path, name: str) -> None:
    given = {**document(), "cluster_id": name, "notes": [name]}
    (tmp_path / "west.json").write_text(json.dumps(given))
    assert_same(read_snapshot(tmp_path / "west.json"), build_snapshot(given))


def test_every_truncation_of_a_gzip_file_is_refused(tmp_path: Path, snapshot: Snapshot) -> None:
    path = tmp_path / "west.json.gz"
    write_snapshot(snapshot, path)
    whole = path.read_bytes()
    for length in range(2, len(whole), 7):
        path.write_bytes(whole[:length])
        assert "broken or truncated" in refusal(path)


def test_a_gzip_file_with_a_wrong_checksum(tmp_path: Path) -> None:
    path = tmp_path / "west.json.gz"
    packed = bytearray(gzip.compress(json.dumps(document()).encode()))
    packed[-6] ^= 1
    path.write_bytes(packed)
    assert "copy or capture it again" in refusal(path)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ("[]", "meta.json: expected an object, found a list"),
        ("{", "meta.json: expected JSON, found a text that breaks off at line 1"),
        (
            '{"version": 1, "cluster_id": "c", "taken_at": "2026-01-01", "brokers": []}',
            "storage: expected this",
        ),
    ],
)
def test_wrong_meta(tmp_path: Path, snapshot: Snapshot, meta: str, words: str) -> None:
    write_snapshot(snapshot, tmp_path / "west")
    (tmp_path / "west" / "meta.json").write_text(meta)
    assert words in refusal(tmp_path / "west")


def test_a_folder_with_one_file_missing_and_others_broken_tells_all(tmp_path: Path, snapshot: Snapshot) -> None:
    home = tmp_path / "west"
    write_snapshot(snapshot, home)
    (home / "brokers.parquet").unlink()
    (home / "partitions.parquet").write_bytes(b"junk")
    (home / "meta.json").write_text('{"version": 2, "version": 2, "cluster_id": "c", "taken_at": "2026-01-01"}')
    message = refusal(home)
    assert "brokers.parquet: expected this file" in message
    assert "partitions.parquet: expected a Parquet file, found one that cannot be read" in message
    assert "meta.json: version: key written twice" in message
    assert "storage: expected this key" in message


def test_a_folder_without_meta_still_tells_what_is_wrong_in_its_tables(tmp_path: Path, snapshot: Snapshot) -> None:
    home = tmp_path / "west"
    write_snapshot(snapshot, home)
    (home / "meta.json").unlink()
    (home / "brokers.parquet").write_bytes(b"")
    message = refusal(home)
    assert "meta.json: expected this file" in message
    assert "brokers.parquet: expected a Parquet file" in message
    assert "partitions" not in message


def test_an_unreadable_thing(tmp_path: Path) -> None:
    (tmp_path / "west.json").symlink_to(tmp_path / "west.json")
    assert "cannot be read" in refusal(tmp_path / "west.json")


def test_build_refusals_carry_the_path(tmp_path: Path) -> None:
    path = tmp_path / "west.json"
    given: dict[str, Any] = {**document(), "version": 2}
    path.write_text(json.dumps(given))
    assert refusal(path) == f"{path}: 1 problem\n  version: expected 1, found 2; another version needs another Trimtab"
    path.write_text(json.dumps({**document(), "version": "1"}))
    assert refusal(path) == f"{path}: 1 problem\n  version: expected 1, found '1'; write it without quotes"
