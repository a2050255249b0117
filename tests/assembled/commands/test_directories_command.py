"""`trimtab directories`: the dry run of a snapshot, in each form, by the policy of a goals file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.assembled.commands.command_line import CommandLine
from tests.unit.optimizer.test_directory_plan import cluster

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}


def snapshot(path: Path) -> Path:
    path.write_text(json.dumps(cluster([0, 0], [0, 1], [0, 0], [0, 1])))
    return path


def test_the_dry_run_says_what_moves_and_that_nothing_has_changed(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("directories", "--snapshot", snapshot(tmp_path / "c.json"), "--preset", "counts")
    assert ended.code == 0
    assert "2 replicas move between log directories of 1 broker" in ended.out
    assert "t-0, 100 B: /d0 → /d1" in ended.out
    assert "nothing has changed" in ended.out


def test_the_policy_of_the_goals_file_decides(trimtab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text("version: 1\npreset: counts\npolicy: {directories: {limit: 0.39, bound: null}}\n")
    given = ("directories", "--snapshot", snapshot(tmp_path / "c.json"), "--goals", tmp_path / "g.yaml", "--format", "json")
    ended = trimtab(*given, "--out", tmp_path / "p.json")
    assert ended.code == 0
    plan = json.loads((tmp_path / "p.json").read_text())
    assert plan["policy"] == {"limit": 0.39, "bound": None}
    assert [m["partition"] for b in plan["brokers"] for m in b["moves"]] == [0]
    assert "1 replica moves between log directories of 1 broker" in ended.err
    (tmp_path / "g.yaml").write_text("version: 1\npreset: counts\npolicy: {directories: {limit: 1.5, bond: 0.1}}\n")
    ended = trimtab(*given)
    assert ended.code == 2
    assert "policy.directories.limit" in ended.err
    assert "policy.directories.bond" in ended.err
    assert "did you mean 'bound'" in ended.err


def test_kafkas_file_is_written(trimtab: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "moves.json"
    ended = trimtab("directories", "--snapshot", snapshot(tmp_path / "c.json"), "-p", "counts", "--format", "reassignment", "--out", out)
    assert ended.code == 0
    assert [p["log_dirs"] for p in json.loads(out.read_text())["partitions"]] == [["/d1", "any"]] * 2


def test_a_directory_is_emptied_so_that_its_disk_can_be_replaced(trimtab: CommandLine, tmp_path: Path) -> None:
    given = ("directories", "--snapshot", snapshot(tmp_path / "c.json"), "-p", "counts", "--remove", "2:/d1/")
    ended = trimtab(*given, "--format", "reassignment")
    assert ended.code == 0
    assert [p["log_dirs"][1] for p in json.loads(ended.out)["partitions"] if p["log_dirs"][1] != "any"] == ["/d0", "/d0"]
    assert "/d1 would hold no replica" in trimtab(*given).out
    assert "expected BROKER:DIR such as 3:/data2, found '/d1'" in trimtab(*given[:-1], "/d1").err
    ended = trimtab("directories", "-b", "127.0.0.1:1", "--execute", tmp_path / "c.json", "--remove", "2:/d1")
    assert ended.code == 2
    assert "--remove: goes with the dry run, not with --execute" in ended.err


def test_what_a_dry_run_would_pass_over_is_refused(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("directories", "-s", snapshot(tmp_path / "c.json"), "-p", "counts", "--reserve", "5TB")
    assert (ended.code, ended.out) == (2, "")
    assert "--reserve: goes with --execute" in ended.err
    ended = trimtab("directories", "-s", snapshot(tmp_path / "c.json"), "-p", "counts", "--remove", "7:/d0", "--remove", "7:/d0")
    assert ended.err.count("no broker 7 in the snapshot") == 1


def test_a_file_that_is_carried_out_says_all(trimtab: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "moves.json"
    given = ("directories", "--snapshot", snapshot(tmp_path / "c.json"), "-p", "counts")
    assert trimtab(*given, "--format", "reassignment", "--out", out).code == 0
    ended = trimtab(*given, "--execute", out)
    assert ended.code == 2
    assert "--preset: goes with the dry run, not with --execute" in ended.err
    assert "--bootstrap-server: expected with --execute, found none" in ended.err
    assert "trimtab snapshot" not in trimtab("directories", "--execute", out).err
    ended = trimtab("directories", "-b", "127.0.0.1:1", "--journal", tmp_path, "--execute", out)
    assert (ended.code, ended.out) == (1, "")
    assert "expected a Kafka broker, found none: 127.0.0.1:1" in ended.err
    (tmp_path / "no.json").write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}')
    ended = trimtab("directories", "-b", "127.0.0.1:1", "--execute", tmp_path / "no.json")
    assert ended.code == 2
    assert "partitions: expected log_dirs, found none: the file moves replicas between brokers" in ended.err, "once, not for each"


def test_nothing_but_the_data_is_on_stdout(tmp_path: Path) -> None:
    """The solver printed a line of its own above the file, for some sizes, and Kafka's tool could not read it."""
    sizes = [
        218962, 562095, 1333755, 0, 18649509, 4699660, 669181, 0, 5875091, 0, 81333, 0, 2877379, 766423, 2164939, 1624819, 481594, 75134,
        0, 0, 2581969, 4989, 24004, 247875, 1043178, 175270, 29370, 1996113,
    ]  # fmt: skip
    held = [1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1]
    used = ((31298356.323628034, 26385751.0), (53127478.13836786, 19930443.0))
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
        "brokers": [{"id": 1, "directories": [{"path": f"/d{n}", "size": size, "used": use} for n, (size, use) in enumerate(used)]}],
        "partitions": [
            {"topic": "t", "partition": n, "replicas": [1], "leader": 1, "leader_load": {"disk": size}, "directories": [at]}
            for n, (size, at) in enumerate(zip(sizes, held, strict=True))
        ],
    }  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps(document))
    (tmp_path / "g.yaml").write_text("version: 1\npreset: counts\npolicy: {directories: {bound: null}}\n")
    given = ["directories", "-s", "c.json", "-g", "g.yaml", "--remove", "1:/d0", "-f", "reassignment"]
    ended = subprocess.run([sys.executable, "-m", "trimtab", *given], cwd=tmp_path, capture_output=True, env=ENVIRONMENT, check=True)
    assert json.loads(ended.stdout)["partitions"]
