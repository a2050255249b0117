"""A plan file that is not what it should be is refused with every problem and its place; what helps most per byte comes first."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_model.errors import InputError
from goals.document import load_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.report import to_json
from trimtab import read_snapshot
from trimtab.execution.order import order_of, read_order, sized

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(to_json(_made()))
    return found


def _made() -> Any:
    return plan(read_snapshot(EXAMPLES / "three-brokers.json"), load_goals(None, preset="counts"), PlanOptions())


def written(folder: Path, document: Any) -> Path:
    path = folder / "plan.json"
    path.write_text(json.dumps(document))
    return path


def test_a_plan_file_is_the_plan_that_was_approved(document: dict[str, Any], tmp_path: Path) -> None:
    order = read_order(written(tmp_path, document))
    made = order_of(_made())
    assert order.tasks, "the example has something to do"
    assert (order.plan_id, order.cluster_id, order.racks) == (made.plan_id, made.cluster_id, made.racks)
    assert [(t.name, t.source, t.target, t.leader) for t in order.tasks] == [(t.name, t.source, t.target, t.leader) for t in made.tasks]
    assert [t.value for t in order.tasks] == pytest.approx([t.value for t in made.tasks], rel=1e-6)
    assert all(t.size > 0.0 for t in sized(made, read_snapshot(EXAMPLES / "three-brokers.json")).tasks)


def test_a_throttle_that_paces_itself_knows_the_head_room_of_the_snapshot_and_the_loads_of_the_file(
    document: dict[str, Any], tmp_path: Path
) -> None:
    snapshot = read_snapshot(EXAMPLES / "three-brokers.json")
    made = sized(order_of(_made()), snapshot)
    order = read_order(written(tmp_path, document))
    ids = [int(b) for b in snapshot.broker_ids]
    loads = {r: snapshot.broker_load(r) for r in ("network_in", "network_out")}
    assert made.headroom.load == pytest.approx(dict(zip(ids, loads["network_in"], strict=True)))
    assert order.headroom.load == pytest.approx(made.headroom.load, rel=1e-6)
    assert order.headroom.free == {}  # a plan file has no capacities
    assert made.headroom.free.keys() == set(ids)
    for row, broker in enumerate(ids):
        free = [float(snapshot.capacity[r][row] - load[row]) for r, load in loads.items() if r in snapshot.capacity]
        assert made.headroom.free[broker] == pytest.approx(min(free))
    assert order.bytes_planned == pytest.approx(made.bytes_planned)


def test_an_edited_plan_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    edited = json.loads(json.dumps(document))
    edited["proposals"][0]["replicas_after"] = [99]
    with pytest.raises(InputError, match=r"proposals\[0\]\.replicas_after: the actions lead .* elsewhere: the file was edited; plan again"):
        read_order(written(tmp_path, edited))


def drop_last(document: dict[str, Any]) -> None:
    """Take the last partition out of a plan: its proposal, and the changes of actions that lead to it."""
    last = document["proposals"].pop()
    name = (last["topic"], last["partition"])
    for action in document["actions"]:
        action["changes"] = [c for c in action["changes"] if (c["topic"], c["partition"]) != name]
    document["actions"] = [action for action in document["actions"] if action["changes"]]


@pytest.mark.parametrize(
    "edit",
    [
        drop_last,
        lambda d: d["proposals"][0].update(leader_after=None),
        lambda d: d["proposals"][0].update(replicas_before=d["proposals"][0]["replicas_before"][::-1]),
        lambda d: d["options"].update(seed=d["options"]["seed"] + 1),
        lambda d: d["snapshot"].update(cluster_id="another"),
        lambda d: [goal.update(hard=False) for goal in d["goals"]],
        lambda d: d.update(batches={"count": 1, "pause": 0, "left": 0, "of": [1] * len(d["proposals"])}),
        lambda d: d.update(plan_id="sha256:" + 64 * "0"),
    ],
)
def test_an_edit_that_changes_the_execution_shows(edit: Any, document: dict[str, Any], tmp_path: Path) -> None:
    """And one of what only tells about it does not."""
    same = json.loads(json.dumps(document, sort_keys=True))
    same["notes"] = ["looked at by me"]
    assert not read_order(written(tmp_path, same)).edited
    edited = json.loads(json.dumps(document))
    edit(edited)
    assert read_order(written(tmp_path, edited)).edited


def test_every_problem_is_told_with_its_place(document: dict[str, Any], tmp_path: Path) -> None:
    wrong = json.loads(json.dumps(document))
    wrong["proposals"][0] |= {"topic": "", "replicas_before": [1, 1], "leader_after": "two"}
    wrong["snapshot"], wrong["plan_id"] = {}, 7
    with pytest.raises(InputError) as told:
        read_order(written(tmp_path, wrong))
    places = [p.place for p in told.value.problems]
    assert places == [
        "proposals[0].topic", "proposals[0].replicas_before", "proposals[0].leader_after", "plan_id", "snapshot.cluster_id",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', "not json"])
def test_something_else_is_no_plan(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError, match="expected a plan"):
        read_order(path)


def test_the_batches_of_a_plan_are_those_of_its_tasks(document: dict[str, Any], tmp_path: Path) -> None:
    goals = load_goals(None, preset="counts")
    made = plan(
        read_snapshot(EXAMPLES / "three-brokers.json"), replace(goals, policy={"batch": {"moves_per_broker": 1, "batches": 9, "pause": 7}})
    )
    assert made.batches is not None
    order = read_order(written(tmp_path, json.loads(to_json(made))))
    assert [t.batch for t in order.tasks] == list(made.batches.of)
    assert (order.batch_pause, max(made.batches.of)) == (7.0, made.batches.count)
    assert [(t.name, t.batch) for t in order_of(made).tasks] == [(t.name, t.batch) for t in order.tasks]
    assert {t.batch for t in read_order(written(tmp_path, document)).tasks} == {0}


@pytest.mark.parametrize("batches", [{"of": [1], "pause": 5}, {"of": "all", "pause": 5}, [1], {"pause": 5}])
def test_batches_that_do_not_fit_the_proposals_are_refused(batches: object, document: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"batches\.of: expected the batch, from 1, of each of \d+ proposals"):
        read_order(written(tmp_path, {**document, "batches": batches}))


def test_a_pause_that_is_none_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"batches\.pause: expected seconds, found -1"):
        read_order(written(tmp_path, {**document, "batches": {"of": [1] * len(document["proposals"]), "pause": -1}}))


@pytest.mark.parametrize(
    ("edit", "place"), [({"score": None}, r"\.score"), ({"bytes_to_move": "1"}, r"\.bytes_to_move"), ({"changes": 5}, r"\.changes")]
)
def test_an_action_that_is_damaged_is_refused_with_its_place(
    edit: dict[str, Any], place: str, document: dict[str, Any], tmp_path: Path
) -> None:
    edited = json.loads(json.dumps(document))
    edited["actions"][0] |= edit
    with pytest.raises(InputError, match=r"actions\[0\]" + place):
        read_order(written(tmp_path, edited))


def test_a_plan_in_gzip_is_read_as_show_reads_it(document: dict[str, Any], tmp_path: Path) -> None:
    plain, packed = written(tmp_path, document), tmp_path / "plan.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_order(packed) == read_order(plain)
    packed.write_bytes(packed.read_bytes()[:300])
    with pytest.raises(InputError, match="expected a gzip file, found a broken one"):
        read_order(packed)
