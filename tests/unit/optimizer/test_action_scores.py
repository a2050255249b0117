"""Scores and verdicts of single actions, worked out by hand from docs/contract.md, section 7.

A wrong one does not crash anything: it publishes an action that makes a broker worse, or leaves a good one out. Bands here: 10 % of
a mean of 100 is within range up to 10 away, the line ends at 60, so 20 away scores 0.82, 30 away 0.64, 40 away 0.46, 50 away 0.28 and
60 away 0.1.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from goals.score import TOLERANCE
from optimizer.placement import evaluate
from optimizer.placement.evaluate import Verdict
from tests.unit.optimizer.actions import Change, Document, Trial, partition, usage

IN, OUT = usage("network_in"), usage("network_out")
RACK: Document = {"kind": "rack_aware", "name": "racks"}
DISK: Document = {"kind": "capacity", "resource": "disk", "limit": 0.5, "name": "disk"}


def loads(*amounts: tuple[int, float], **more: Any) -> list[Document]:
    """One partition of one replica for each broker and amount of network_in."""
    return [partition([b], network_in=amount, **more) for b, amount in amounts]


# What a goal gives an action


THREE = loads((1, 30.0), (1, 120.0), (2, 100.0), (3, 50.0))  # brokers at 150, 100 and 50, mean 100


@pytest.mark.parametrize(
    ("change", "score", "after"),
    [
        ((0, [3], 3), (0.82 - 0.28 + 1) / 2, {1: 0.82, 3: 0.82}),  # 120 and 80
        ((0, [2], 2), (0.64 - 0.28 + 1) / 2, {1: 0.82, 2: 0.64}),  # 120 and 130
        ((2, [3], 3), (0.1 * math.log(6) / math.log(10) - 0.28 + 1) / 2,
         {2: 0.1 * math.log(6) / math.log(10), 3: 0.28}),  # 0, ten bounds away, and 150
        ((3, [2], 2), (0.1 * math.log(6) / math.log(10) - 0.28 + 1) / 2,
         {2: 0.28, 3: 0.1 * math.log(6) / math.log(10)}),
    ],
)  # fmt: skip
def test_a_move_is_judged_by_the_worst_broker_it_touches(
    change: Change, score: float, after: dict[int, float]
) -> None:
    trial = Trial([1, 2, 3], THREE, IN)
    judged = trial.judge(change)
    assert judged.goals == {"network_in": pytest.approx(score, abs=1e-12)}
    assert judged.score == pytest.approx(score, abs=1e-12)
    assert judged.after["network_in"] == pytest.approx(after, abs=1e-12)
    assert judged.better == (score > 0.5)
    assert judged.allowed
    assert judged.repairs == set()


def test_a_follower_that_moves_leaves_the_leader_out_of_it() -> None:
    trial = Trial([1, 2, 3], [partition([1, 2], network_in=40.0), partition([1], network_in=220.0)], IN)
    judged = trial.judge((0, [1, 3], 1))
    assert set(judged.before["network_in"]) == {2, 3}
    assert judged.score == 0.5  # 40 and 0 before, 0 and 40 after


def test_leadership_touches_both_and_moves_what_a_leader_costs_more() -> None:
    pair = partition([1, 2, 3], cpu=30.0, follower={"cpu": 10.0})
    rest = [partition([1], cpu=110.0), partition([2], cpu=60.0), partition([3], cpu=80.0)]
    trial = Trial([1, 2, 3], [pair, *rest], usage("cpu"))  # 140, 70 and 90, mean 100
    judged = trial.judge((0, [1, 2, 3], 2))
    assert judged.before["cpu"] == pytest.approx({1: 0.46, 2: 0.64})
    assert judged.after["cpu"] == pytest.approx({1: 0.82, 2: 1.0})
    assert judged.score == pytest.approx((0.82 - 0.46 + 1) / 2)


def test_a_leader_that_hands_over_and_leaves_touches_three() -> None:
    pair = partition([1, 2], cpu=30.0, follower={"cpu": 10.0})
    rest = [partition([1], cpu=110.0), partition([2], cpu=60.0), partition([3], cpu=90.0)]
    trial = Trial([1, 2, 3], [pair, *rest], usage("cpu"))  # 140, 70 and 90, mean 100
    judged = trial.judge((0, [3, 2], 2))
    assert judged.before["cpu"] == pytest.approx({1: 0.46, 2: 0.64, 3: 1.0})
    assert judged.after["cpu"] == pytest.approx({1: 1.0, 2: 1.0, 3: 1.0})
    assert judged.score == pytest.approx((1.0 - 0.46 + 1) / 2)


def test_a_swap_is_judged_as_one() -> None:
    trial = Trial([1, 2], loads((1, 60.0), (1, 90.0), (2, 40.0), (2, 10.0)), IN)
    judged = trial.judge((0, [2], 2), (2, [1], 1))  # 130 and 70
    assert judged.after["network_in"] == pytest.approx({1: 0.64, 2: 0.64})
    assert judged.score == pytest.approx((0.64 - 0.28 + 1) / 2)
    assert trial.judge((0, [2], 2)).after["network_in"] == pytest.approx({1: 1.0, 2: 1.0})


def test_eight_changes_and_a_broker_in_all_of_them() -> None:
    trial = Trial(list(range(1, 10)), loads(*((1, 10.0) for _ in range(16)), *((b, 92.5) for b in range(2, 10))), IN)
    judged = trial.judge(*((row, [2 + row], 2 + row) for row in range(8)))  # mean 100
    assert judged.before["network_in"] == pytest.approx({1: 0.1} | dict.fromkeys(range(2, 10), 1.0))
    assert judged.after["network_in"] == pytest.approx({1: 0.82} | dict.fromkeys(range(2, 10), 1.0))
    assert judged.score == pytest.approx((0.82 - 0.1 + 1) / 2)


def test_partitions_with_fewer_replicas_than_others_are_judged_alike() -> None:
    wide = [partition([1, 2, 3, 4], cpu=1.0, follower={"cpu": 1.0})]
    narrow = [partition([1], cpu=29.0, follower={"cpu": 0.0}), *(partition([b], cpu=60.0) for b in (1, 2, 4))]
    trial = Trial([1, 2, 3, 4], [*wide, *narrow, partition([3], cpu=67.0)], usage("cpu"))
    judged = trial.judge((1, [3], 3))  # 90, 61, 68, 61: mean 70
    assert trial.compiled.problem.table[0, 0, 0] == 70.0
    assert judged.before["cpu"] == pytest.approx({1: 1 - 0.9 * 13 / 35, 3: 1.0})
    assert judged.after["cpu"] == pytest.approx({1: 1 - 0.9 * 2 / 35, 3: 1 - 0.9 * 20 / 35})


@pytest.mark.parametrize("state", ["draining", "dead", "excluded"])
def test_only_active_brokers_count_in_the_minimum(state: str) -> None:
    """What leaves a broker that is on its way out says nothing about that broker's balance."""
    spare = [{"id": 3, "state": state}]
    trial = Trial([1, 2, *spare], loads((1, 90.0), (2, 70.0), (3, 40.0)), IN)
    judged = trial.judge((2, [2], 2))
    level = 80.0 if state == "excluded" else 100.0
    after = 1 - 0.9 * (110.0 - 1.1 * level) / (0.5 * level) if state == "excluded" else 1.0
    before = 1 - 0.9 * (0.9 * level - 70.0) / (0.5 * level)
    assert judged.before["network_in"] == {2: pytest.approx(before)}
    assert judged.after["network_in"] == {2: pytest.approx(after)}
    assert judged.score == pytest.approx((after - before + 1) / 2)


def test_an_action_that_touches_no_active_broker_is_neutral() -> None:
    trial = Trial([1, {"id": 2, "state": "dead"}, {"id": 3, "state": "dead"}],
                  [partition([2, 3], cpu=10.0), partition([1], cpu=10.0)], usage("cpu"))  # fmt: skip
    judged = trial.judge((0, [2, 3], 3))
    assert judged.goals == {"cpu": 0.5}
    assert not judged.better
    assert judged.gain == 0.0
    assert not judged.touches_low


def test_goals_without_load_are_neutral() -> None:
    trial = Trial([1, 2], [partition([1], network_in=10.0, network_out=0.0)], IN, OUT)
    assert trial.judge((0, [2], 2)).goals == {"network_in": 0.5, "network_out": 0.5}


# The combined rule


def balance_and_tilt(weight: float, **more: Any) -> Trial:
    """One move that brings network_in from 0.28 to 0.64, and network_out from 1 to 0.64."""
    parts = [
        partition([1], network_in=20.0, network_out=30.0), partition([1], network_in=130.0, network_out=70.0),
        partition([2], network_in=50.0, network_out=100.0),
    ]  # fmt: skip
    return Trial([1, 2], parts, {**IN, **more}, {**OUT, "weight": weight, **more})


@pytest.mark.parametrize(("weight", "better"), [(0.5, True), (0.99, True), (1.01, False), (3.0, False)])
def test_weights_decide_between_goals(weight: float, better: bool) -> None:
    judged = balance_and_tilt(weight).judge((0, [2], 2))
    assert judged.goals == pytest.approx({"network_in": 0.68, "network_out": 0.32})
    assert judged.score == pytest.approx((0.68 + weight * 0.32) / (1 + weight))
    assert judged.better is better


def test_equal_gain_and_loss_is_not_better() -> None:
    judged = balance_and_tilt(1.0).judge((0, [2], 2))
    assert judged.score == pytest.approx(0.5, abs=1e-15)
    assert not judged.better


def test_a_group_may_not_lose_for_another() -> None:
    parts = balance_and_tilt(0.5).document["partitions"]
    for row in parts:
        del row["partition"]
    trial = Trial([1, 2], parts, {**IN, "group": "a"}, {**OUT, "group": "b", "weight": 0.5})
    judged = trial.judge((0, [2], 2))
    assert judged.score == pytest.approx((0.68 + 0.5 * 0.32) / 1.5)
    assert judged.score > 0.5
    assert not judged.better


def test_a_group_may_stay_as_it_is_while_another_gains() -> None:
    trial = Trial([1, 2, 3], THREE, {**IN, "group": "a"}, usage("leaders", group="b", bound=0.5), usage("replicas", bound=0.5))
    judged = trial.judge((0, [3], 3))
    assert judged.goals == pytest.approx({"network_in": 0.77, "leaders": 0.5, "replicas": 0.5})
    assert judged.score == pytest.approx((0.77 + 0.5 + 0.5) / 3)
    assert judged.better


def test_groups_are_means_of_their_own_goals() -> None:
    """Within a group a goal may lose; its group may not."""
    parts = [
        partition([1], network_in=20.0, network_out=30.0, cpu=0.0, disk=1.0),
        partition([1], network_in=130.0, network_out=70.0, cpu=50.0, disk=50.0),
        partition([2], network_in=50.0, network_out=100.0, cpu=50.0, disk=49.0),
    ]
    goals = [{**IN, "group": "a"}, {**usage("cpu"), "group": "b"}, {**OUT, "group": "a"}, {**usage("disk"), "group": "b"}]
    for weight, better in ((0.9, True), (1.1, False)):
        goals[2]["weight"] = weight
        judged = Trial([1, 2], parts, *goals).judge((0, [2], 2))
        assert judged.goals == pytest.approx({"network_in": 0.68, "cpu": 0.5, "network_out": 0.32, "disk": 0.5})
        assert judged.better is better
        assert judged.score == pytest.approx((0.68 + 0.32 * weight + 1.0) / (3 + weight))


def test_hard_goals_are_not_in_the_score() -> None:
    trial = Trial([1, 2, 3], THREE, IN, usage("replicas", hard=True, bound=0.9, var=1.0), {**RACK, "hard": True})
    judged = trial.judge((0, [3], 3))
    assert judged.goals["network_in"] == judged.score == pytest.approx(0.77)
    assert judged.better


def test_soft_goals_of_every_kind_are_in_the_score() -> None:
    spread = {"kind": "topic_distribution", "resource": "replicas", "name": "spread"}
    limit = {"kind": "count_limit", "resource": "replicas", "max": 1, "name": "few", "hard": False}
    trial = Trial([1, 2], loads(*[(1, 75.0), (1, 0.0)] * 2), IN, spread, limit, {**RACK, "hard": False})
    judged = trial.judge((1, [2], 2))
    # Of the topic 1 to 3 are within range, 4 and 0 are one off; over the limit are 3 before, 2 after.
    assert judged.goals == pytest.approx(
        {"network_in": 0.5, "spread": (1 - 1 / 2 + 1) / 2, "few": (1 / 3 - 1 / 4 + 1) / 2, "racks": 0.5}
    )
    assert judged.score == pytest.approx(sum(judged.goals.values()) / 4)


def test_without_soft_goals_nothing_is_better_than_neutral() -> None:
    judged = Trial([1, 2, 3], THREE, {**IN, "hard": True}).judge((0, [3], 3))
    assert (judged.score, judged.better) == (0.5, False)
    assert judged.goals == pytest.approx({"network_in": 0.77})


@pytest.mark.parametrize(("steps", "better"), [(0, False), (1, False), (2, True), (3, True)])
def test_above_neutral_is_by_more_than_the_tolerance(steps: int, better: bool) -> None:
    """Of a line 0.9e9 long a byte is 1e-9 of a broker's score and half of that of an action's."""
    assert small_steps(2 * steps, IN_BYTES).better is better


@pytest.mark.parametrize(
    ("lost", "gained", "better"),
    [(0, 40, True), (1, 40, True), (3, 40, False), (6, 40, False), (40, 0, False), (0, 0, False), (0, 1, False)],
)
def test_a_group_at_neutral_within_the_tolerance_is_not_below(lost: int, gained: int, better: bool) -> None:
    """In halves of 1e-9: half the tolerance is rounding, one and a half of it is a loss."""
    spread = [{**IN_BYTES, "group": "a"}, {**IN_BYTES, "resource": "network_out", "name": "out", "group": "b"}]
    assert small_steps(gained, *spread, lost=lost).better is better


IN_BYTES = usage("network_in", bound=0.1, var=1.0)


def small_steps(gained: int, *goals: Document, lost: int = 0) -> Any:
    """One move that brings the worst broker `gained` bytes nearer in network_in, `lost` bytes further off in network_out."""
    mean = 1e9
    parts = [
        partition([1], network_in=float(gained), network_out=0.0),
        partition([1], network_in=1.5 * mean - gained, network_out=0.5 * mean),
        partition([2], network_in=0.5 * mean, network_out=1.5 * mean - lost),
        partition([1], network_in=0.0, network_out=float(lost)),
    ]
    return Trial([1, 2], parts, *goals).judge((0, [2], 2), (3, [2], 2))


# Hard goals


def disks(*amounts: tuple[int, float]) -> list[Document]:
    return [partition([b], disk=amount) for b, amount in amounts]


def limited(id: int, disk: float = 200.0) -> Document:
    return {"id": id, "capacity": {"disk": disk}}


@pytest.mark.parametrize(
    ("amounts", "allowed", "repairs"),
    [
        ([(1, 30.0), (2, 70.0)], True, set()),  # up to the limit of 100
        ([(1, 31.0), (2, 70.0)], False, set()),  # over it
        ([(1, 20.0), (1, 90.0), (2, 80.0)], True, {"disk"}),  # the source was over it
        ([(1, 1.0), (1, 100.0), (2, 100.0)], False, {"disk"}),  # and the target is now
        ([(1, 0.0), (1, 110.0), (2, 120.0)], True, set()),  # both stay as they are
        ([(1, 30.0), (1, 300.0), (2, 0.0)], True, {"disk"}),  # still over it, but less
    ],
)
def test_a_hard_limit_is_kept_or_mended(
    amounts: list[tuple[int, float]], allowed: bool, repairs: set[str]
) -> None:
    judged = Trial([limited(1), limited(2)], disks(*amounts), DISK).judge((0, [2], 2))
    assert (judged.allowed, judged.repairs) == (allowed, repairs)


def test_an_excess_of_which_a_thousandth_of_a_millionth_leaves_is_still_mended() -> None:
    """A score far down moves by less than any tolerance; the excess does not."""
    trial = Trial([limited(1), limited(2)], disks((1, 1e-5), (1, 1e7), (2, 0.0)), DISK)
    judged = trial.judge((0, [2], 2))
    assert judged.after["disk"][1] - judged.before["disk"][1] < 1e-9
    assert judged.repairs == {"disk"}
    assert not Trial([limited(1), limited(2)], disks((1, 1e-5), (1, 1.0), (2, 1e7)), DISK).judge((0, [2], 2)).allowed


def test_a_limit_of_nothing_is_measured_in_the_unit_itself() -> None:
    none = {"kind": "count_limit", "resource": "leaders", "max": 0, "name": "none"}
    pair = [partition([1, 2], cpu=1.0), partition([1, 2], cpu=1.0), partition([2, 1], cpu=1.0)]
    trial = Trial([1, 2], pair, none)
    judged = trial.judge((0, [1, 2], 2))
    assert judged.before["none"] == pytest.approx({1: 1 / 3, 2: 1 / 2})
    assert judged.after["none"] == pytest.approx({1: 1 / 2, 2: 1 / 3})
    assert (judged.allowed, judged.repairs) == (False, {"none"})


def test_a_soft_limit_forbids_nothing_and_repairs_nothing() -> None:
    soft = {**DISK, "hard": False}
    for amounts in ([(1, 31.0), (2, 70.0)], [(1, 20.0), (1, 90.0), (2, 80.0)]):
        judged = Trial([limited(1), limited(2)], disks(*amounts), soft).judge((0, [2], 2))
        assert (judged.allowed, judged.repairs) == (True, set())


def test_a_broker_without_a_capacity_has_no_limit() -> None:
    judged = Trial([limited(1), 2], disks((1, 20.0), (1, 90.0), (2, 1e6)), DISK).judge((0, [2], 2))
    assert judged.goals == pytest.approx({"disk": (1.0 - 1 / 1.1 + 1) / 2})
    assert (judged.allowed, judged.repairs) == (True, {"disk"})


@pytest.mark.parametrize(
    ("change", "allowed", "repairs"),
    [
        ((0, [3], 3), True, {"network_in"}),
        ((0, [2], 2), False, {"network_in"}),  # 2 leaves the band for it
        ((3, [2], 2), False, set()),
    ],
)
def test_a_hard_band_may_be_neared_and_not_left(change: Change, allowed: bool, repairs: set[str]) -> None:
    judged = Trial([1, 2, 3], THREE, {**IN, "hard": True}).judge(change)
    assert (judged.allowed, judged.repairs) == (allowed, repairs)


@pytest.mark.parametrize(("bytes_nearer", "repairs"), [(0, set()), (0.5, set()), (2, {"network_in"})])
def test_a_hard_band_is_neared_by_more_than_the_tolerance(bytes_nearer: float, repairs: set[str]) -> None:
    judged = small_steps(bytes_nearer, {**IN_BYTES, "hard": True})  # type: ignore[arg-type]
    assert (judged.allowed, judged.repairs) == (True, repairs)


@pytest.mark.parametrize("further", [0.01, 0.5, 2.0])
def test_a_hard_band_is_not_left_by_less_than_the_tolerance_either(further: float) -> None:
    """A hundred steps of a hundredth would leave it too."""
    mean = 1e9
    parts = loads((1, further), (1, 0.5 * mean - further), (2, 1.5 * mean))
    assert not Trial([1, 2], parts, {**IN_BYTES, "hard": True}).judge((0, [2], 2)).allowed


# Racks


def racks(*brokers: str) -> list[Document]:
    """Brokers 1, 2 … in racks of one letter; a dot is no rack, a capital is a dead broker's."""
    return [
        {"id": n, "rack": None if name == "." else name.lower(), "state": "dead" if name.isupper() else "active"}
        for n, name in enumerate(brokers, 1)
    ]


@pytest.mark.parametrize(
    ("brokers", "before", "after", "allowed", "repairs", "score"),
    [
        ("aabb", [1, 2], [1, 3], True, {"racks"}, (1.0 - 0.5 + 1) / 2),
        ("aabb", [1, 3], [1, 2], False, set(), (0.5 - 1.0 + 1) / 2),
        ("aabb", [1, 3], [1, 4], True, set(), 0.5),
        ("aabbb", [1, 2, 3], [1, 4, 3], True, set(), 0.5),  # two of three in one of two racks are allowed
        ("aaabb", [1, 2, 3], [1, 2, 4], True, {"racks"}, 0.75),
        ("aabbcd", [1, 2, 3, 4], [1, 5, 3, 4], True, {"racks"}, 0.75),  # of two over-full racks one is left
        ("a...", [1, 2], [3, 2], True, set(), 0.5),  # each without a rack is a rack of its own
        ("aAbb", [3, 4], [1, 4], True, {"racks"}, (1.0 - 0.5 + 1) / 2),
        ("aaBb", [1, 3], [4, 3], False, set(), 0.25),  # what is on a dead broker is in its rack
        ("aBBb", [1, 2, 3], [1, 4, 3], True, {"dead"}, 0.5),
    ],
)
def test_the_rack_rule_is_kept_or_mended(
    brokers: str, before: list[int], after: list[int], allowed: bool, repairs: set[str], score: float
) -> None:
    few = {"kind": "count_limit", "resource": "replicas", "max": 9, "name": "few"}
    judged = Trial(racks(*brokers), [partition(before, cpu=1.0)], few, RACK).judge((0, after, after[0]))
    assert judged.goals == pytest.approx({"few": 0.5, "racks": score})
    assert (judged.allowed, judged.repairs) == (allowed, repairs)


def test_a_soft_rack_rule_forbids_nothing_and_repairs_nothing() -> None:
    soft = {**RACK, "hard": False}
    there, back = ([1, 2], [1, 3]), ([1, 3], [1, 2])
    for before, after in (there, back):
        judged = Trial(racks(*"aabb"), [partition(before, cpu=1.0)], soft).judge((0, after, 1))
        assert (judged.allowed, judged.repairs) == (True, set())


# Brokers on their way out, and partitions without a leader


@pytest.mark.parametrize("state", ["dead", "draining"])
@pytest.mark.parametrize(
    ("change", "repairs"),
    [
        ((0, [2, 1], 2), True),  # its replica and leadership
        ((0, [3, 1], 1), True),  # its leadership
        ((1, [1, 2], 1), True),  # its replica
        ((1, [2, 3], 2), False),  # another one's
        ((2, [2], 2), False),
    ],
)
def test_taking_something_off_a_dead_or_draining_broker_repairs(state: str, change: Change, repairs: bool) -> None:
    parts = [partition([3, 1], cpu=1.0), partition([1, 3], cpu=1.0), partition([1], cpu=1.0)]
    trial = Trial([1, 2, {"id": 3, "state": state}], parts, usage("replicas"))
    assert trial.judge(change).repairs == ({state} if repairs else set())


def test_the_broker_with_the_lowest_id_may_be_dead_too() -> None:
    brokers: list[int | Document] = [{"id": 1, "state": "dead"}, 2, 3]
    trial = Trial(brokers, [partition([2, 1], cpu=1.0)], usage("replicas"))
    assert trial.judge((0, [2, 3], 2)).repairs == {"dead"}


def test_an_action_may_empty_a_dead_and_a_draining_broker_and_mend_more() -> None:
    brokers: list[int | Document] = [1, 2, {"id": 3, "state": "dead"}, {"id": 4, "state": "draining"}]
    parts = [partition([3, 4], None, cpu=1.0), partition([4, 3], cpu=1.0)]
    trial = Trial(brokers, parts, usage("replicas"))
    assert trial.judge((0, [1, 2], 1)).repairs == {"dead", "draining", "leaderless"}
    assert trial.judge((1, [1, 2], 1)).repairs == {"dead", "draining"}


@pytest.mark.parametrize("state", ["active", "excluded"])
def test_taking_something_off_a_broker_that_stays_repairs_nothing(state: str) -> None:
    trial = Trial([1, 2, {"id": 3, "state": state}], [partition([3, 1], cpu=1.0)], usage("replicas"))
    assert trial.judge((0, [2, 1], 2)).repairs == set()


def test_a_partition_that_gets_a_leader_is_repaired() -> None:
    trial = Trial([1, 2, 3], [partition([1, 2], None, cpu=1.0)], usage("leaders"))
    judged = trial.judge((0, [1, 2], 2))
    assert judged.repairs == {"leaderless"}
    assert set(judged.before["leaders"]) == {2}
    assert trial.judge((0, [3, 2], None)).repairs == set()
    assert set(trial.judge((0, [3, 2], 2)).before["leaders"]) == {1, 2, 3}


# Who is worth an action


@pytest.mark.parametrize(
    ("change", "low"),
    [((0, [2], 2), True), ((1, [2], 2), False), ((2, [1], 1), False)],
)
def test_whether_an_action_touches_a_broker_outside_its_range(change: Change, low: bool) -> None:
    parts = loads((3, 50.0), (1, 100.0), (2, 100.0), (3, 100.0), (4, 50.0))
    judged = Trial([1, 2, 3, 4], parts, usage("replicas", bound=9.0, var=10.0), IN).judge(change)
    assert judged.touches_low is low


def test_a_broker_that_is_not_active_is_never_outside() -> None:
    brokers: list[int | Document] = [1, 2, {"id": 3, "state": "draining", "capacity": {"disk": 10.0}}]
    trial = Trial(brokers, [partition([3], disk=10.0), partition([1], disk=5.0), partition([2], disk=5.0)],
                  DISK, usage("replicas", bound=5.0, var=9.0))  # fmt: skip
    assert not trial.judge((0, [1], 1)).touches_low


def verdict(**more: Any) -> Verdict:
    usual = {"allowed": True, "breaks": 0, "better": False, "score": 0.5, "repairs": 0, "gain": 1.0, "touches_low": False, "touched": 2}
    return Verdict(**{**usual, **more})


@pytest.mark.parametrize(
    ("found", "by_score", "by_potential"),
    [
        (verdict(better=True, touches_low=True), True, True),
        (verdict(better=True), True, False),
        (verdict(touches_low=True), False, True),
        (verdict(), False, False),
        (verdict(better=True, touches_low=True, gain=0.25), True, False),  # by potential, it must fall by more
        (verdict(better=True, touches_low=True, gain=-1.0), True, False),
        (verdict(repairs=1 << 60), True, True),
        (verdict(repairs=1, gain=-1.0), True, True),  # a repair may cost
        (verdict(allowed=False, better=True, touches_low=True), False, False),
        (verdict(allowed=False, repairs=1), False, False),
    ],
)
def test_what_may_be_published(found: Verdict, by_score: bool, by_potential: bool) -> None:
    acceptable = getattr(evaluate.acceptable, "py_func", evaluate.acceptable)
    assert acceptable(found, False, 0.25) is by_score
    assert acceptable(found, True, 0.25) is by_potential


def test_the_tolerance_is_the_contracts() -> None:
    assert evaluate.TOLERANCE == TOLERANCE == 1e-9
