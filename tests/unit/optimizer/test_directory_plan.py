"""What an operator reads of a plan for log directories: what moves where, and why a volume stays outside its target range."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from cluster_model.build import build_snapshot
from goals.model import Constraints
from goals.policy_directories import Directories
from optimizer.directory_plan import DirectoryPlan, plan_directories
from optimizer.report.directories import (
    directories_json,
    directories_reassignment,
    render_directories,
    sentence,
)

Document = dict[str, Any]


def cluster(*held: Sequence[int | None], sizes: tuple[float, ...] = (), used: tuple[float, ...] = (0.0, 0.0), **broker: Any) -> Document:
    """Brokers 1 and 2 with two volumes of 1,000 bytes each, broker 3 with one; t-0, t-1, … on 1 and 2, in directories `held` of both.

    `sizes` are bytes of partitions (100), `used` those of other files in both directories of brokers 1 and 2.
    """
    bytes_of = [sizes[i] if i < len(sizes) else 100.0 for i in range(len(held))]
    brokers: list[Document] = [{"id": b, **broker} for b in (1, 2)]
    for i, each in enumerate(brokers):
        use = [*used, 0.0]
        for at, size in zip(held, bytes_of, strict=True):
            if at[i] is not None:
                use[at[i] or 0] += size
        each["directories"] = [{"path": f"/d{n}", "size": 1000.0, "used": u} for n, u in enumerate(use[:2])]
    partitions = [
        {"topic": "t", "partition": p, "replicas": [1, 2], "leader": 1, "leader_load": {"disk": size}, "directories": at}
        for p, (at, size) in enumerate(zip(held, bytes_of, strict=True))
    ]
    return {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
            "brokers": [*brokers, {"id": 3}], "partitions": partitions}  # fmt: skip


def planned(document: Document, policy: Directories = Directories(), **constraints: Any) -> DirectoryPlan:  # noqa: B008 (frozen)
    return plan_directories(build_snapshot(document), Constraints(**constraints), policy)


def whys(plan: DirectoryPlan, broker: int = 1) -> list[str]:
    return [v.why for b in plan.brokers if b.broker == broker for v in b.volumes]


def text(plan: DirectoryPlan) -> str:
    page = StringIO()
    render_directories(plan, Console(file=page, width=120))
    return page.getvalue()


def test_each_broker_is_levelled_for_itself_and_replicas_stay_on_their_brokers() -> None:
    plan = planned(cluster([0, 1], [0, 1], [0, 0], [0, 0]))
    assert [(m.topic, m.partition, m.broker, m.source, m.target, m.bytes) for m in plan.moves] == [
        ("t", 0, 1, "/d0", "/d1", 100.0), ("t", 1, 1, "/d0", "/d1", 100.0),
    ]  # fmt: skip
    assert [(v.before, v.after) for v in plan.brokers[0].volumes] == [(400.0, 200.0), (0.0, 200.0)]
    assert plan.brokers[0].least == 200.0
    assert plan.left == ("broker 3: one volume, or log directories that are not in the snapshot",)
    moving = "2 replicas move between log directories of 1 broker: 200 B to copy, of which at least 200 B cannot be avoided"
    assert sentence(plan) == moving
    assert "40% → 20%" in text(plan)
    assert json.loads(directories_json(plan))["brokers"][0]["moves"][0]["target"] == "/d1"


def test_kafkas_file_has_one_entry_a_partition_that_leaves_other_replicas_where_they_are() -> None:
    plan = planned(cluster([0, 0], [0, 0], [0, None]))
    document = json.loads(directories_reassignment(plan))
    assert document["version"] == 1
    assert document["partitions"] == [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["/d1", "/d1"]}
    ]  # fmt: skip
    assert json.loads(directories_reassignment(planned(cluster([0, 1], [1, 0]))))["partitions"] == []


def test_a_volume_over_the_limit_of_a_broker_that_is_full_says_that_replicas_must_leave() -> None:
    plan = planned(cluster([0, 0], [1, 1], sizes=(900.0, 850.0)))
    assert all("`trimtab plan` moves replicas to other brokers" in why for why in whys(plan))
    assert "no replica moves: none that may move would help; 4 volumes stay outside the target range" in sentence(plan)


def test_what_may_not_move_is_the_reason_where_it_is() -> None:
    other = planned(cluster([0, 0], used=(700.0, 0.0)))
    assert "700 B there may not move: other files, topics that the goals exclude" in whys(other)[0]
    excluded = planned(cluster([0, 0], [0, 0], [0, 0], [0, 0]), exclude_topics=("t*",))
    assert excluded.moves == ()
    assert "400 B there may not move" in whys(excluded)[0]
    assert "nothing elsewhere on the broker may move" in whys(excluded)[1]
    frozen = planned(cluster([0, 0], [0, 0], [0, 0], [0, 0]), freeze_topics=("t",))
    assert frozen.moves == ()


def test_one_large_replica_is_in_one_directory_as_a_whole() -> None:
    plan = planned(cluster([0, 0], sizes=(500.0,)))
    assert plan.moves == ()
    assert whys(plan) == ["no choice of replicas comes nearer, since each is in one directory as a whole"] * 2
    assert "/d0 stays outside: no choice of replicas" in text(plan)


@pytest.mark.parametrize("state", ["draining", "dead", "excluded"])
def test_brokers_that_are_not_active_are_left_alone(state: str) -> None:
    plan = planned(cluster([0, 0], [0, 0], state=state))
    assert (plan.brokers, plan.moves) == ((), ())
    assert "brokers 1, 2: not active, or excluded by the goals" in plan.left
    assert planned(cluster([0, 0], [0, 0]), exclude_brokers=(1,)).brokers[0].broker == 2


def test_a_limit_alone_moves_no_more_than_brings_volumes_below_it() -> None:
    document = cluster(*[[0, 0]] * 9)
    assert len(planned(document, Directories(limit=0.8, bound=None)).brokers[0].moves) == 1
    assert len(planned(document, Directories(limit=None, bound=0.2)).brokers[0].moves) == 4
    assert planned(document, Directories(limit=None, bound=None)).moves == ()
    assert "0% to 100%" in text(planned(document, Directories(limit=None, bound=None)))


def test_directories_of_one_volume_are_one() -> None:
    """A third directory shares the volume of the second: nothing moves between these two, and the first of them is the target."""
    document = cluster([0, 0], [0, 0], [0, 0], [2, 2])
    for broker in document["brokers"][:2]:
        shared = {"size": 1000.0, "used": 100.0, "volume": 5}
        broker["directories"] = [broker["directories"][0], {"path": "/d1", **shared}, {"path": "/d1/more", **shared}]
        broker["directories"][0]["used"] = 300.0
    plan = planned(document)
    assert [v.paths for v in plan.brokers[0].volumes] == [("/d0",), ("/d1", "/d1/more")]
    assert [(m.source, m.target) for m in plan.moves] == [("/d0", "/d1")] * 2
    assert "/d1, /d1/more" in text(plan)


def test_without_brokers_with_several_volumes_there_is_nothing_to_do() -> None:
    document = cluster([0, 0])
    for broker in document["brokers"]:
        broker.pop("directories", None)
    document["partitions"][0]["directories"] = None
    assert sentence(planned(document)) == "no broker that may change has several volumes: nothing to do"


def test_brokers_with_one_volume_are_named_whether_the_snapshot_has_it_or_not() -> None:
    document = cluster([0, 0])
    document["brokers"][0]["directories"] = document["brokers"][0]["directories"][:1]
    assert planned(document).left == ("brokers 1, 3: one volume, or log directories that are not in the snapshot",)
