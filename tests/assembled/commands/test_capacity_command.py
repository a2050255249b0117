"""A capacity file starts from what is known, and is one that `--capacity` takes, as it is and filled in."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.assembled.commands.command_line import CommandLine, snapshot_file
from trimtab.capture.capacity import read_capacities

BROKERS = [
    {"id": 1, "rack": "a", "capacity": {"disk": 1e12, "cpu": 8}},
    {"id": 2, "rack": "b", "capacity": {"disk": 2e12, "cpu": 8}},
    {"id": 3, "capacity": {"cpu": 8}},
]


def test_a_template_holds_what_is_known_and_asks_for_the_rest(trimtab: CommandLine, tmp_path: Path) -> None:
    snapshot, out = snapshot_file(tmp_path, brokers=BROKERS), tmp_path / "capacity.yaml"
    assert trimtab("capacity", "-s", snapshot, "--template", "-o", out).code == 0
    known = read_capacities(out)
    assert (known.of(1), known.of(2), known.of(3)) == ({"disk": 1e12, "cpu": 8}, {"disk": 2e12, "cpu": 8}, {"cpu": 8})
    assert "2: {disk: 2TB}" in out.read_text()
    out.write_text(re.sub("# (network_|[0-9]+:)", r"\1", out.read_text()))
    filled = read_capacities(out).of(3)
    assert filled == {"network_in": 125e6, "network_out": 125e6, "cpu": 8, "disk": 4e12}


def test_a_file_that_is_there_is_not_overwritten_by_a_template(trimtab: CommandLine, tmp_path: Path) -> None:
    snapshot, out = snapshot_file(tmp_path, brokers=BROKERS), tmp_path / "capacity.yaml"
    out.write_text("default: {disk: 2TB}\n")
    ended = trimtab("capacity", "-s", snapshot, "--template", "-o", out)
    assert (ended.code, out.read_text()) == (2, "default: {disk: 2TB}\n")
    assert "--out" in ended.err
    assert "capacity.yaml is there" in ended.err
    assert trimtab("capacity", "-s", snapshot, "--template", "-o", "-").code == 0


def test_capacities_of_a_file_go_before_those_of_a_snapshot(trimtab: CommandLine, tmp_path: Path) -> None:
    snapshot, given = snapshot_file(tmp_path, brokers=BROKERS), tmp_path / "capacity.yaml"
    given.write_text("default: {network_in: 100MB/s}\nbrokers: {2: {disk: 1GB}, 9: {disk: 1GB}}\n")
    goals = tmp_path / "goals.yaml"
    limits = ", ".join(f"{{kind: capacity, resource: {resource}, limit: 0.8}}" for resource in ("disk", "network_in"))
    goals.write_text(f"version: 1\ngoals: [{limits}]\n")
    told = {}
    for more in ((), ("--capacity", given)):
        ended = trimtab("plan", "-q", "-s", snapshot, "-g", goals, "-f", "json", *more)
        assert ended.code == 0, ended.err
        told[len(more)] = json.loads(ended.out)
    assert [[g["before"]["violations"] if g["before"] else None for g in told[n]["goals"]] for n in (0, 2)] == [[0, None], [1, 0]]
    notes = " ".join(told[2]["notes"])
    assert "capacity.yaml: network_in of 3 brokers, disk of 1 broker" in notes
    assert "capacity.yaml lists broker 9, which the snapshot does not have" in notes


def test_what_is_missing_is_told(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("capacity", "-s", snapshot_file(tmp_path, brokers=BROKERS))
    assert ended.code == 0
    assert "disk        2 of 3 brokers" in ended.out
    assert "missing: 3" in ended.out
    assert "network_in  0 of 3 brokers" in ended.out
