"""The snapshots a new user meets first: those in examples/ and in docs/snapshot-file.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import InputError
from cluster_model.files import read_snapshot
from tests.unit.cluster_model.documents import assert_same

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "docs" / "snapshot-file.md").read_text()


def test_the_examples_are_what_their_script_makes(tmp_path: Path) -> None:
    script = ROOT / "examples" / "make_examples.py"
    environment = {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, env=environment)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["skewed-12-brokers.json.gz", "three-brokers.json"]
    for name in made:
        assert_same(read_snapshot(ROOT / "examples" / name), read_snapshot(tmp_path / name))


@pytest.mark.parametrize(("name", "brokers"), [("three-brokers.json", 3), ("skewed-12-brokers.json.gz", 12)])
def test_the_examples_give_a_planner_something_to_do(name: str, brokers: int) -> None:
    snapshot = read_snapshot(ROOT / "examples" / name)
    assert snapshot.broker_count == brokers
    for resource in ("network_in", "network_out", "disk", "cpu", "replicas", "leaders"):
        load = snapshot.broker_load(resource)
        assert load.max() > 1.25 * load.mean()
        assert snapshot.vectors(resource)[0].max() < 0.3 * load.mean()  # no partition that fits nowhere


def test_the_example_in_the_manual_is_taken() -> None:
    text = re.search(r"```json\n(.*?)```", MANUAL, re.DOTALL)
    assert text
    snapshot = build_snapshot(json.loads(text[1]))
    assert snapshot.broker_load("network_in").tolist() == [3.5e6, 3.5e6, 0.0]


def test_the_manual_shows_the_refusals_as_they_are() -> None:
    wrong = {
        "version": 1,
        "cluster_id": "west",
        "taken_at": "2026-11-20T12:00:00Z",
        "storage": "local",
        "brokers": [{"id": 1}, {"id": 2, "racks": "b"}],
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [1, 9]},
            {"topic": "orders", "partition": 1, "replicas": [1, 2], "leader_load": {"disk": -1}},
        ],
    }
    with pytest.raises(InputError) as caught:
        build_snapshot(wrong, "west.json")
    assert f"```\n{caught.value}\n```" in MANUAL


def test_the_manual_names_every_key_and_resource() -> None:
    from cluster_model import refusals
    from cluster_model.resources import RESOURCES
    from cluster_model.snapshot import STATES_BY_LABEL

    keys = {
        *refusals.HEAD_KEYS,
        *refusals.OPTIONAL_HEAD_KEYS,
        *refusals.ROW_LISTS,
        *refusals.BROKER_KEYS,
        *refusals.OPTIONAL_BROKER_KEYS,
        *refusals.PARTITION_KEYS,
        *refusals.OPTIONAL_PARTITION_KEYS,
        *RESOURCES,
        *STATES_BY_LABEL,
    }
    assert [key for key in sorted(keys) if f"`{key}`" not in MANUAL] == []
