"""Why a broker would be left as it is: the proofs, each on the smallest cluster in which it holds.

An operator who reads "nothing was found" where the real reason is a rack or a missing disk waits for the balancer instead of
acting. Nothing is planned here: the clusters are judged as they stand.
"""

from __future__ import annotations

from typing import Any

import pytest

from optimizer.options import PlanOptions
from optimizer.why import MOST_LOOKED_AT, why_left
from optimizer.why_words import amount
from tests.unit.optimizer.actions import Document, Trial, partition, usage

RACK: Document = {"kind": "rack_aware", "name": "racks"}
DISK: Document = {"kind": "capacity", "resource": "disk", "limit": 0.5, "name": "disk"}
REPLICAS = usage("replicas")


def why(trial: Trial, broker: int, **options: Any) -> str:
    left = why_left(trial.snapshot, trial.compiled, trial.state, PlanOptions(**options))
    return left[trial.ids.index(broker)].text


def broker(id: int, rack: str | None = None, state: str = "active", disk: float | None = None) -> Document:
    return {"id": id, "rack": rack, "state": state, "capacity": {} if disk is None else {"disk": disk}}


def loads(*amounts: tuple[int, float], topic: str = "t") -> list[Document]:
    return [partition([b], topic=topic, network_in=amount) for b, amount in amounts]


def replicas(*lists: list[int], topic: str = "t", **load: Any) -> list[Document]:
    return [partition(on, topic=topic, **load) for on in lists]


@pytest.mark.parametrize(
    ("trial", "left", "reason"),
    [
        (Trial([1, broker(2, state="draining")], loads((1, 10.0), (2, 30.0)), usage()), 1,
         "only eligible broker, and it cannot take what would stay on the others"),
        (Trial([1, 2], replicas([1], [1], [1], [2], [2]), REPLICAS), 1, "counts are whole"),
        (Trial([1, 2, 3], loads((1, 100.0), (2, 10.0), (3, 10.0)), usage()), 1, "irreducible: t-0 alone is 100 B/s"),
        (Trial([1, 2], loads((1, 30.0), (1, 30.0), topic="__x") + loads((2, 20.0)), usage(), exclude_topics=["__*"]),
         1, "excluded topics hold 60 B/s"),
        (Trial([1, 2], loads((1, 60.0), topic="__x") + loads((2, 10.0), (2, 10.0)), usage(), exclude_topics=["__*"]),
         2, "all that may move amounts to 20 B/s, below its target range of 36 B/s to 44 B/s; include more topics (constraints.exclude"),
        (Trial([1, 2], loads((1, 60.0), topic="__x") + loads((2, 10.0), (2, 10.0)), usage(), freeze_topics=["__*"]),
         2, "below its target range of 36 B/s to 44 B/s; take some topics off constraints.freeze_topics"),
        (Trial([broker(1, "a"), broker(2, "b"), broker(3, "b"), broker(4, "b")],
               [partition([1, 2 + n], disk=10.0) for n in range(3)] + [partition([1, 2, 3], disk=10.0)], RACK, usage("disk")),
         1, "the rack rule forces 40 B into rack a"),
        (Trial([broker(1, "a"), broker(2, "a"), broker(3, "a"), broker(4, "b"), broker(5, "b")],
               [partition([1 + n % 3, 4 + n % 2], disk=10.0) for n in range(6)] + [partition([4], disk=1.0)], RACK, usage("disk")),
         1, "the rack rule lets at most 61 B into rack a"),
        # With any leader: each partition has a replica in rack a, which costs 10 at the least.
        (Trial([broker(1, "a"), broker(2, "b"), broker(3, "b"), broker(4, "b")],
               [partition([1, 2 + n % 3], cpu=20.0, follower={"cpu": 10.0}) for n in range(4)], RACK, usage("cpu")),
         1, "the rack rule forces 40 cores into rack a"),
        (Trial([broker(1, "a"), broker(2, "a"), broker(3, "a"), broker(4, "b")],
               [partition([1 + n % 3, 4], cpu=20.0, follower={"cpu": 10.0}) for n in range(5)] + [partition([4], cpu=60.0)],
               RACK, usage("cpu")),
         1, "no acceptable action was found"),  # with all leaders in rack a it would have enough
        (Trial([1, 2], [partition([1, 2], disk=10.0, follower={"disk": 5.0})] * 5, usage("disk")), 1, "replication factor equals"),
        (Trial([1, 2, 3], loads((1, 100.0), (2, 10.0), (3, 10.0)), usage()), 2, "partitions larger than a target range (t-0) leave 10 B/s"),
        (Trial([1, 2, 3, 4], loads((1, 100.0), (2, 100.0), (3, 10.0), (4, 10.0)), usage()), 3, "(t-0 and others) leave 10 B/s"),
        (Trial([1, 2, 3], loads((1, 30.0), (1, 30.0), (2, 20.0), (3, 10.0)), usage()), 1, "no acceptable action was found"),
    ],
)  # fmt: skip
def test_why_a_broker_stays_out_of_its_band(trial: Trial, left: int, reason: str) -> None:
    assert reason in why(trial, left)


def test_where_nothing_is_proved_the_plan_says_what_the_nearest_move_would_break() -> None:
    trial = Trial([1, 2, 3], loads((1, 30.0), (1, 30.0), (2, 15.0), (2, 15.0), (3, 15.0), (3, 15.0)), usage(), REPLICAS)
    text = why(trial, 1)
    assert "of the 4 moves that would help most, 4 would put the other broker outside its target range in replicas, " in text
    assert ", 4 would put this broker outside its target range in replicas; nearest" in text
    assert "nearest is t-0 to broker 2, against replicas there and replicas here" in text


TOPICS: Document = {"kind": "topic_distribution", "resource": "replicas", "name": "topics"}


@pytest.mark.parametrize(
    ("trial", "left", "reason"),
    [
        (Trial([1, 2], replicas([1], [1], [1], [1], topic="__x"), TOPICS, exclude_topics=["__*"]),
         1, "excluded topic __x has 4 replicas on it, at most 3 are in its target range; include it"),
        (Trial([1, 2], replicas(*[[1]] * 4, topic="__x"), TOPICS, exclude_topics=["__*"]),
         2, "excluded topic __x leaves it 0 replicas, its target range starts at 1; include it"),
        (Trial([broker(1, "a"), broker(2, "b"), broker(3, "b"), broker(4, "b")], replicas(*[[1, 2 + n % 3] for n in range(6)]),
               RACK, TOPICS), 1, "the rack rule forces 6 replicas of topic t into rack a, whose 1 broker may have 4"),
        (Trial([broker(1, "a"), broker(2, "b"), broker(3, "b"), broker(4, "b")], replicas(*[[1, 2]] * 12), RACK, TOPICS),
         3, "lets at most 12 replicas of topic t into rack b, whose 3 brokers should have 15"),
        (Trial([{"id": 1, "capacity": {"replicas": 40.0}}, {"id": 2, "capacity": {"replicas": 10.0}},
                {"id": 3, "capacity": {"replicas": 10.0}}], replicas(*[[1, 2]] * 11), TOPICS),
         1, "of topic t it can hold at most one replica of each of 11 partitions, its target range starts at 13"),
        (Trial([1, 2, 3], replicas([1], [1], [1]), TOPICS), 1, "no acceptable action was found"),
        # Two goals on topics alone: neither has a load of its own.
        (Trial([1, 2], replicas([1], [1], [1], [1], topic="__x"), {**TOPICS, "resource": "leaders", "name": "leading"}, TOPICS,
               exclude_topics=["__*"]), 1, "topics: excluded topic __x has 4 replicas on it"),
    ],
)  # fmt: skip
def test_why_a_topic_stays_misplaced(trial: Trial, left: int, reason: str) -> None:
    assert reason in why(trial, left)


@pytest.mark.parametrize(
    ("trial", "left", "reason"),
    [
        (Trial([broker(1, disk=100.0), broker(2, disk=60.0)], replicas([1], [1], [2], disk=40.0), DISK),
         1, "may hold 80 B, the load is 120 B: 40 B more is needed"),
        (Trial([broker(1, disk=100.0), broker(2, disk=200.0)], replicas([2], disk=120.0), DISK),
         2, "t-0 alone is 120 B, above every broker's limit"),
        (Trial([broker(1, disk=100.0), broker(2, disk=200.0)], replicas([1], [1], topic="__x", disk=30.0), DISK,
               exclude_topics=["__*"]), 1, "excluded topics hold 60 B on it, above its limit of 50 B; include some of them"),
        (Trial([broker(1, disk=100.0), broker(2, disk=200.0)], replicas([1], [1], topic="__x", disk=30.0), DISK,
               freeze_topics=["__*"]), 1,
         "frozen topics (constraints.freeze_topics) hold 60 B on it, above its limit of 50 B; take some of them off that list"),
        (Trial([broker(1, disk=100.0), broker(2, disk=200.0)], replicas([1], [1], disk=30.0), DISK),
         1, "10 B above its limit of 50 B; the other brokers have room for 100 B, but no acceptable way to use it was found"),
    ],
)  # fmt: skip
def test_why_a_limit_is_not_kept(trial: Trial, left: int, reason: str) -> None:
    assert reason in why(trial, left)


@pytest.mark.parametrize(
    ("trial", "reason"),
    [
        (Trial([broker(1, "a"), broker(2, "a"), broker(3, "b")], replicas([1, 2], [1, 2], topic="__x"), RACK,
               exclude_topics=["__*"]), "__x-0 and 1 more are of an excluded topic"),
        (Trial([broker(1, "a"), broker(2, "a"), broker(3, "b")], replicas([1, 2], topic="__x"), RACK,
               exclude_topics=["__*"]), "__x-0 is of an excluded topic"),
        (Trial([broker(1, "a"), broker(2, "a"), broker(3, "a"), broker(4, "b")], replicas([1, 2, 3, 4]), RACK),
         "t-0: its racks may hold 3 of 4, one on a broker; add 1 broker in other racks"),
        (Trial([broker(1, "a"), broker(2, "a"), broker(3, "b")], replicas([1, 2]), RACK), "no acceptable action was found"),
    ],
)  # fmt: skip
def test_why_a_rack_stays_crowded(trial: Trial, reason: str) -> None:
    assert reason in why(trial, 1)


@pytest.mark.parametrize(
    ("trial", "options", "reason"),
    [
        (Trial([1, broker(2, state="dead")], replicas([2], [2]), REPLICAS), {}, "dead, and would still hold 2 replicas: 2 offline"),
        (Trial([1, broker(2, state="draining")], replicas([2], topic="__x"), REPLICAS, freeze_topics=["__*"]), {},
         "draining, and would still hold 1 replica: it is of frozen topics (constraints.freeze_topics)"),
        (Trial([1, broker(2, state="draining")], replicas([1, 2]), REPLICAS), {},
         "draining, and would still hold 1 replica: it would need 2 brokers and 1 is eligible; add 1"),
        (Trial([1, broker(2, state="draining"), broker(3, state="draining")], replicas([1, 2], [1, 2, 3]), REPLICAS), {},
         "still hold 2 replicas: they would need up to 3 brokers and 1 is eligible; add 2"),
        (Trial([1, broker(2, state="draining")], replicas([1, 2], [2]), REPLICAS), {"max_moves": 0},
         "1 replica would need 2 brokers and 1 is eligible; add 1; 1 replica stays: the budget"),
        (Trial([1, broker(2, state="draining")], replicas([2]), REPLICAS), {"max_moves": 0}, "would still hold 1 replica: the budget"),
        (Trial([1, broker(2, state="draining")], replicas([2]), REPLICAS), {}, "1 replica: no acceptable way was found for it (t-0)"),
        (Trial([broker(1, disk=60.0), broker(2, state="draining")], replicas([2], [2], disk=40.0), DISK, RACK), {},
         "still hold 2 replicas: they (t-0 …) would find no broker that disk allows; add one with room for them"),
        (Trial([broker(1, "a"), broker(2, "b", "draining"), broker(3, "a")], replicas([1, 2]), RACK), {"acceptance": "score"},
         "no acceptable way was found for it"),
        (Trial([broker(1, "a"), broker(2, "b", "draining"), broker(3, "a"), broker(4, "c", disk=10.0)],
               replicas([1, 2], disk=40.0), RACK, DISK), {},
         "1 replica: it (t-0) would find no broker that racks, disk allow where the plan ends, and the search found no way to make room"),
        (Trial([broker(1, "a"), broker(2, "b", "dead"), broker(3, "c", "excluded"), broker(4, "d")],
               replicas([1, 4, 2, 3], [1]), REPLICAS), {}, "it would need 3 brokers and 2 are eligible; add 1"),
        (Trial([1, broker(2, state="draining"), 3], replicas([1, 2], [2, 3]), REPLICAS), {"max_moves": 0},
         "draining, and would still hold 2 replicas: the budget"),
    ],
)  # fmt: skip
def test_why_a_broker_is_not_emptied(trial: Trial, options: dict[str, Any], reason: str) -> None:
    assert reason in why(trial, 2, **options)


def test_potential_is_advised_only_where_it_is_not_asked_for() -> None:
    level = Trial([1, 2, 3], loads((1, 30.0), (1, 30.0), (2, 20.0), (3, 10.0)), usage())
    assert "other weights or --acceptance potential could help" in why(level, 1)
    told = why(level, 1, acceptance="potential")
    assert told.endswith("a wider bound or other weights could help")


def test_of_many_goals_three_are_named() -> None:
    names = ["network_in", "network_out", "disk", "cpu", "replicas"]
    trial = Trial([1], [partition([1], network_in=1.0, network_out=1.0, disk=1.0, cpu=1.0)], *(usage(n) for n in names))
    trial.state.score[0, :] = 0.5  # as a cluster far off would be
    assert why(trial, 1).startswith("network_in, network_out, disk and 2 more: it is the only eligible broker")


def test_a_budget_is_named_where_there_is_no_proof() -> None:
    level = Trial([1, 2, 3], loads((1, 30.0), (1, 30.0), (2, 20.0), (3, 10.0)), usage())
    assert "the budget of 1 replica move is used up" in why(level, 1, max_moves=1)
    assert "no acceptable action was found" in why(level, 1, max_bytes=1)  # no partition has bytes to copy
    sized = Trial([1, 2, 3], [{**p, "leader_load": {**p["leader_load"], "disk": 5e9}} for p in level.document["partitions"]], usage())
    assert "of the budget of 4 GB, 4 GB is left, too little for some replicas" in why(sized, 1, max_bytes=4 * 10**9)
    assert "budget" not in why(sized, 1, max_bytes=10**12, max_moves=10, max_partitions=10)
    full = Trial([broker(1, disk=100.0), broker(2, disk=200.0)], replicas([1], [1], disk=30.0), DISK)
    assert "the budget of 0 partitions is used up" in why(full, 1, max_partitions=0)
    topics = Trial([1, 2], replicas(*[[1]] * 6), {"kind": "topic_distribution", "resource": "replicas", "name": "topics"})
    assert "topics: the budget of 0 replica moves is used up" in why(topics, 1, max_moves=0)


def test_what_is_proved_is_said_of_every_broker_however_many_are_left() -> None:
    many = range(1, 2 * MOST_LOOKED_AT)
    trial = Trial([broker(b, disk=100.0) for b in many], replicas(*([b] for b in many), disk=60.0), DISK)
    left = why_left(trial.snapshot, trial.compiled, trial.state, PlanOptions())
    assert len(left) == len(many)
    assert all("all eligible brokers together may hold" in one.text for one in left.values())


def test_goals_with_the_same_reason_share_it() -> None:
    trial = Trial([1, 2], replicas([1], [1], [1], [2], [2]), REPLICAS, usage("leaders"))
    assert why(trial, 1).startswith("replicas, leaders: counts are whole numbers")


def test_brokers_within_their_range_need_no_reason() -> None:
    trial = Trial([1, 2, 3, broker(4, state="dead")], loads((1, 10.0), (2, 10.0), (3, 10.0)), usage())
    assert why_left(trial.snapshot, trial.compiled, trial.state, PlanOptions()) == {}


@pytest.mark.parametrize(
    ("value", "resource", "text"),
    [
        (12.0, "replicas", "12"), (0.5, "network_in", "0.5 B/s"), (2500.0, "disk", "2.5 kB"), (2.5e6, "network_out", "2.5 MB/s"),
        (2.5e9, "disk", "2.5 GB"), (2.5e12, "disk", "2.5 TB"), (0.25, "cpu", "0.25 cores"), (1234.0, "fetch_rate", "1,234 requests/s"),
    ],
)  # fmt: skip
def test_amounts_have_their_unit(value: float, resource: str, text: str) -> None:
    assert amount(value, resource) == text
