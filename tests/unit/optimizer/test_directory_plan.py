"""What an operator reads of a plan for log directories: what moves where, and why a volume stays outside its target range."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from goals.model import Constraints
from goals.policy_directories import Directories
from optimizer.directory_plan import DirectoryPlan, plan_directories
from optimizer.options import RemovedDirectory
from optimizer.planner import plan
from optimizer.report.directories import directories_json, directories_reassignment, render_directories, sentence

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
        {"topic": "t", "partition": p, "replicas": [1, 2], "leader": 1, "leader_load": {"disk": size}, "directories": [*at]}
        for p, (at, size) in enumerate(zip(held, bytes_of, strict=True))
    ]
    return {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
            "brokers": [*brokers, {"id": 3}], "partitions": partitions}  # fmt: skip


def planned(document: Document, policy: Directories = Directories(), *remove: str, **constraints: Any) -> DirectoryPlan:  # noqa: B008 (frozen)
    directories = [RemovedDirectory(int(each[0]), each[2:]) for each in remove]
    return plan_directories(build_snapshot(document), Constraints(**constraints), policy, directories)


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
    assert whys(plan) == ["a replica cannot be split, and no other choice gets closer"] * 2
    assert "/d0 stays outside: a replica cannot be split" in text(plan)


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


LEVEL = ([0, 0], [0, 1], [1, 0], [1, 1])  # in its target range on both brokers


def test_a_directory_that_is_removed_is_left_by_all_replicas_also_empty_ones_and_those_of_excluded_topics() -> None:
    document = cluster(*LEVEL, [0, 1], sizes=(100.0, 100.0, 100.0, 100.0, 0.0), used=(50.0, 50.0))
    assert not planned(document).moves
    plan = planned(document, Directories(), "1:/d0", exclude_topics=("t",))
    assert [(m.partition, m.broker, m.source, m.target) for m in plan.moves] == [(n, 1, "/d0", "/d1") for n in (0, 1, 4)]
    removed, other = plan.brokers[0].volumes
    assert (removed.removed, removed.after, removed.why) == (True, 50.0, "")
    assert (other.removed, other.after) == (False, 450.0)
    assert plan.brokers[0].least == 200.0
    assert "/d0 would hold no replica: take it out of log.dirs" in text(plan)
    for partition in document["partitions"]:
        partition["directories"][0] = 1
    document["brokers"][0]["directories"] = [{"path": "/d0", "size": 1000.0, "used": 50.0}, {"path": "/d1", "size": 1000.0, "used": 450.0}]
    assert not planned(document, Directories(), "1:/d0").moves


def test_a_removed_directory_keeps_what_the_limit_leaves_no_room_for_and_frozen_topics() -> None:
    document = cluster([0, 1], [0, 1], [0, 1], [1, 1], [1, 1], [1, 1], used=(0.0, 50.0))
    plan = planned(document, Directories(limit=0.5), "1:/d0")
    assert [(m.partition, m.target, m.bytes) for m in plan.moves if m.broker == 1] == [(0, "/d1", 100.0)]
    assert whys(plan)[0] == "2 replicas (200 B) for which no other volume was found to have room within the limit"
    assert sentence(plan).endswith("; 1 volume that is removed keeps replicas")
    assert "/d0 keeps 2 replicas (200 B)" in text(plan)
    stuck = planned(document, Directories(), "1:/d0", freeze_topics=("t",))
    assert not stuck.moves
    assert whys(stuck)[0] == "3 replicas of frozen topics (constraints.freeze_topics)"
    assert sentence(stuck).startswith("no replica moves: none that may move would help")


@pytest.mark.parametrize("size", [1e3, 1e12])
def test_a_directory_of_empty_replicas_is_left_also_where_other_files_fill_the_next(size: float) -> None:
    """Differences of a terabyte, in units of nothing, overflowed; and an empty replica waited for room that it does not need."""
    document = cluster([0, 0], [0, 1], sizes=(0.0, 0.0))
    for broker in document["brokers"][:2]:
        broker["directories"] = [{"path": f"/d{n}", "size": size, "used": share * size} for n, share in enumerate((0.1, 0.9))]
    plan = planned(document, Directories(), "1:/d0")
    assert [(m.partition, m.broker, m.target) for m in plan.moves] == [(0, 1, "/d1"), (1, 1, "/d1")]
    assert whys(plan)[0] == ""


def test_bytes_that_leave_a_removed_directory_count_as_not_to_be_avoided_also_where_the_plan_is_not_proven() -> None:
    """Else the dry run copies a hundred bytes, of which at least none cannot be avoided: /d1 holds one replica too large for its range."""
    document = cluster([0, 0], [1, 0], *[[0, 0]] * 60, sizes=(100.0, 500.0, *[0.0] * 60), used=(0.0, 0.0))
    document["brokers"][0]["directories"].append({"path": "/d2", "size": 1000.0, "used": 0.0})
    (broker, *_) = planned(document, Directories(), "1:/d0").brokers
    assert not broker.proven
    assert (sum(m.bytes for m in broker.moves), broker.least) == (100.0, 100.0)


def test_a_volume_that_is_left_is_not_in_use_by_less_than_nothing() -> None:
    """A follower's log may be shorter than its leader's, by which replicas count: all of them may have more bytes than their volume."""
    document = cluster(*LEVEL)
    document["brokers"][0]["directories"][0]["used"] = 150.0
    (removed, _) = planned(document, Directories(), "1:/d0").brokers[0].volumes
    assert (removed.before, removed.after, removed.high, removed.why) == (150.0, 0.0, 0.0, "")


def test_nothing_comes_to_a_removed_directory_that_holds_less_than_its_replicas_count() -> None:
    """Emptied, it was 50 B below nothing, and a replica of 40 B was moved there to make up for that."""
    document = cluster([0, 0], [1, 0], sizes=(100.0, 40.0))
    document["brokers"][0]["directories"][0]["used"] = 50.0
    plan = planned(document, Directories(bound=None), "1:/d0")
    assert [(m.partition, m.target) for m in plan.moves if m.broker == 1] == [(0, "/d1")]
    assert plan.brokers[0].volumes[0].low == 0.0


def test_a_replica_of_unknown_size_keeps_its_directory_from_being_removed() -> None:
    """As no bytes it would go where perhaps no room is, and the dry run would call that 0 B."""
    document = cluster([0, 0], [0, 1], [1, 1], [1, 0])
    del document["partitions"][0]["leader_load"]
    plan = planned(document, Directories(), "1:/d0")
    assert [(m.partition, m.bytes) for m in plan.moves if m.broker == 1] == [(1, 100.0)]
    assert whys(plan)[0] == "1 replica whose size is not known (give leader_load.disk)"
    both = planned(document, Directories(), "1:/d0", freeze_topics=("t",))
    assert whys(both)[0].startswith("1 replica of frozen topics (constraints.freeze_topics) and 1 replica whose size is not known")


@pytest.mark.parametrize(
    ("broker", "excluded", "volume"), [({"state": "excluded"}, (), None), ({}, (1, 2), None), ({}, (), 7)], ids=("state", "goals", "volume")
)
def test_a_plan_does_not_send_people_to_directories_that_would_not_be_levelled(
    broker: dict[str, Any], excluded: tuple[int, ...], volume: int | None
) -> None:
    document = cluster([0, 0], [0, 1], sizes=(500.0, 400.0), **broker)
    for one in document["brokers"][:2]:
        one["directories"] = [each | {"volume": volume} for each in one["directories"]]
    given = f"version: 1\npreset: counts\nconstraints: {{exclude_brokers: {[*excluded]}}}\n"
    assert not [note for note in plan(build_snapshot(document), parse_goals(given, "g")).notes if "log director" in note]


def test_a_plan_between_brokers_names_the_fullest_log_directory_above_the_limit() -> None:
    """The broker has room, so no goal on disk would say so."""
    snapshot = build_snapshot(cluster([0, 0], [0, 1], sizes=(500.0, 400.0)))
    given = "version: 1\npreset: counts\npolicy: {directories: {limit: %s}}\n"
    found = [note for note in plan(snapshot, parse_goals(given % "0.8", "g")).notes if "log director" in note]
    assert found == [
        "log directory /d0 of broker 1 is 90% full; the limit of policy.directories is 80%: "
        "`trimtab directories` levels the volumes of each broker"
    ]
    (over,) = [note for note in plan(snapshot, parse_goals(given % "0.8999", "g")).notes if "log director" in note]
    assert "is 90.00% full; the limit of policy.directories is 89.99%" in over
    for limit, start in (("0.45", "2 log directories are too full; log directory /d0 of broker 1 is 90% full"), ("null", "")):
        told = [note for note in plan(snapshot, parse_goals(given % limit, "g")).notes if "log director" in note]
        assert [note.startswith(start) for note in told] == ([True] if start else [])


def test_a_directory_is_not_called_empty_while_the_place_of_a_replica_is_unknown() -> None:
    plan = planned(cluster([0, 0], [None, 0]), Directories(), "1:/d0")
    assert whys(plan)[0] == "perhaps some of 1 replica whose directory is not known"
    assert len([m for m in plan.moves if m.broker == 1]) == 1


def test_no_replica_comes_to_a_removed_directory_of_three() -> None:
    document = cluster([2, 0], [2, 0], [0, 0], [1, 0], [1, 0], [1, 0], [1, 0])
    document["brokers"][0]["directories"] = [
        {"path": f"/d{n}", "size": 1000.0, "used": used} for n, used in enumerate((100.0, 400.0, 200.0))
    ]
    plan = planned(document, Directories(), "1:/d0")
    assert [v.after for v in plan.brokers[0].volumes] in ([0.0, 400.0, 300.0], [0.0, 300.0, 400.0])
    assert sum(m.bytes for m in plan.moves if m.broker == 1) == 100.0


def test_what_cannot_be_removed_is_refused_with_the_reason_all_at_once() -> None:
    document = cluster(*LEVEL)
    document["brokers"][1]["directories"] = [
        {"path": path, "size": 1000.0, "used": 200.0, **more}
        for path, more in (("/d0", {"volume": 1}), ("/d1", {}), ("/d2", {"volume": 1}))
    ]
    with pytest.raises(ConfigurationError) as refused:
        planned(document, Directories(), "1:/d0", "1:/d1", "2:/d0", "2:/d7", "3:/d0", "9:/d0")
    for words in (
        "broker 1 has no other log directory; `trimtab plan --remove-broker 1`", "/d0 of broker 2 is on one volume with /d2",
        "broker 2 has the log directories /d0, /d1, /d2; found '/d7'", "found broker 3, which has none in the snapshot",
        "no broker 9 in the snapshot; it has 1, 2, 3",
    ):  # fmt: skip
        assert words in str(refused.value)
    assert planned(document, Directories(), "2:/d0", "2:/d2").moves
    with pytest.raises(ConfigurationError, match="1 problem\n"):
        planned(document, Directories(), "2:/d7", "2:/d7")
    with pytest.raises(ConfigurationError, match="broker 1, which is not active, or excluded by the goals"):
        planned(document, Directories(), "1:/d0", exclude_brokers=(1,))
