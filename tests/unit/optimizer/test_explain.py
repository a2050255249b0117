"""`explain` on clusters in which a person can see the answer: why a partition or a broker would change, or would not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from optimizer.explain import explain_partition
from optimizer.explain_broker import explain_broker
from optimizer.options import PlanOptions
from tests.unit.optimizer.actions import Document, Trial, partition, usage

IN = usage("network_in")
FULL: Document = {"kind": "capacity", "resource": "disk", "limit": 0.8}
NOTHING_MAY_MOVE = {"max_moves": 0}


def of_partition(trial: Trial, topic: str, number: int, **options: Any) -> str:
    return explain_partition(trial.snapshot, trial.parsed, PlanOptions(**options), topic, number)


def of_broker(trial: Trial, broker: int, **options: Any) -> str:
    return explain_broker(trial.snapshot, trial.parsed, PlanOptions(**options), broker)


@pytest.fixture
def skewed() -> Trial:
    """20 MB/s each, three on broker 1 in rack a, one on 2, none on 3 in rack b."""
    brokers: list[int | dict[str, Any]] = [{"id": 1, "rack": "a"}, 2, {"id": 3, "rack": "b"}]
    return Trial(brokers, [partition([b], topic="orders", network_in=2e7) for b in (1, 1, 1, 2)], usage(bound=0.5))


@pytest.fixture
def level() -> Trial:
    return Trial([1, 2], [partition([b], topic="orders", network_in=2e7) for b in (1, 2)], IN)


def test_a_partition_that_would_move_says_where_and_for_which_goal(skewed: Trial) -> None:
    texts = [of_partition(skewed, "orders", n) for n in range(3)]
    (moved,) = [text for text in texts if "would stay" not in text]
    assert "is on brokers 1 (rack a), led by broker 1." in moved
    assert "It would change in 1 of 1 action of the plan:" in moved
    assert "#1 move: replicas [1] would become [3], leader 1 would become 3, score 0.9" in moved
    assert "Action scores other than 0.5 (no change): network_in 0.9" in moved
    stays = next(text for text in texts if "would stay" in text)
    assert "its brokers would be within every goal without moving it: other partitions" in stays


def test_a_partition_that_needs_nothing_says_so(level: Trial) -> None:
    assert "It would stay. Balanced: every broker is within every goal" in of_partition(level, "orders", 0)


def test_repairs_and_changes_made_together_are_told() -> None:
    trial = Trial([1, 2, {"id": 3, "state": "dead"}], [partition([3, 1], 1, network_in=5.0), partition([1], network_in=5.0)],
                  usage("replicas", bound=5.0, var=9.0))  # fmt: skip
    text = of_partition(trial, "t", 0)
    assert "replicas [3, 1] would become [" in text
    assert "would take load off dead broker 3" in text


def test_an_excluded_partition_stays_for_that_reason() -> None:
    trial = Trial([1, 2], [partition([1], topic="__x", network_in=1.0)], usage(bound=0.5), exclude_topics=["__*"])
    assert "Its topic is excluded, so only repairs would change it" in of_partition(trial, "__x", 0)
    trial = Trial([1, 2], [partition([1], None, topic="__x", network_in=1.0)], usage(bound=5.0, var=9.0), freeze_topics=["__*"])
    text = of_partition(trial, "__x", 0)
    assert "__x-0 is on brokers 1, without a leader." in text
    assert "Its topic is frozen" in text


def test_a_partition_on_a_broker_outside_its_range_says_what_its_best_move_would_bring() -> None:
    parts = [partition([1], network_in=a) for a in (30.0, 30.0)] + [partition([2], network_in=a) for a in (20.0, 10.0)]
    text = of_partition(Trial([1, 2], parts, usage(trivial_change=0.01)), "t", 0, **NOTHING_MAY_MOVE)
    assert "Its broker 1 (network_in) would stay outside its target range." in text
    assert "the best, moving it from broker 1 to 2, would score 0.5000, and more than 0.5 is asked." in text  # 60 and 30, or 30 and 60


def test_moves_that_racks_and_limits_rule_out_are_counted() -> None:
    full = {"kind": "capacity", "resource": "disk", "limit": 1.0, "name": "full"}
    brokers: list[int | Document] = [{"id": b, "capacity": {"disk": 25.0}} for b in (1, 2, 3)]
    parts = [partition([1], disk=20.0), partition([2], disk=10.0), partition([3], disk=10.0)]
    text = of_partition(Trial(brokers, parts, full, usage("disk", trivial_change=0.01)), "t", 0, **NOTHING_MAY_MOVE)
    assert "rule out each one. The rack rule or hard limits would rule out 2 other targets." in text


def test_after_the_plan_what_stays_is_judged_where_the_plan_leads() -> None:
    """The best move of a partition that stays comes after the plan (100 and 18), not instead of it (117 and 1)."""
    parts = [partition([1], network_in=100.0, disk=1e12), *(partition([1], network_in=a, disk=1.0) for a in (9.0, 8.0))]
    parts.append(partition([2], network_in=1.0, disk=1.0))
    trial = Trial([1, 2], parts, usage(trivial_change=0.01))
    text = of_partition(trial, "t", 0)
    assert "Its broker 1 (network_in) would stay outside its target range." in text
    assert "moving it from broker 1 to 2, would score 0.4927, and more" in text


def test_a_broker_within_its_range_says_how_far_it_is_from_its_mean(level: Trial) -> None:
    text = of_broker(level, 1)
    assert text.startswith("Broker 1 is active.")
    assert "network_in: score 1; load 20 MB/s (at its mean 20 MB/s) is balanced because it is inside" in text
    assert "its target range 18 MB/s to 22 MB/s" in text
    assert "Nothing would move here: it is balanced in every goal" in text


def test_a_goal_that_could_not_be_checked_is_not_called_balanced() -> None:
    text = of_broker(Trial([1, 2], [partition([1], network_in=1.0), partition([2], network_in=1.0)], usage("network_in"), FULL), 1)
    assert "\nNot checked: capacity-disk (no " in text
    assert "balanced in every goal that could be checked" in text


def test_a_broker_that_takes_part_says_what_it_would_gain_and_lose(skewed: Trial) -> None:
    giver, taker = of_broker(skewed, 1), of_broker(skewed, 3)
    assert giver.startswith("Broker 1 in rack a is active.")
    assert "load 60 MB/s (125% above its mean 26.7 MB/s) is outside its target range" in giver
    assert "is outside its target range" in giver
    assert "and would be 40 MB/s" in giver
    assert "would move 0 replicas here and 1 away, and 0 leaders here and 1 away." in giver
    assert "would move 1 replica here and 0 away, and 1 leader here and 0 away." in taker


def test_a_broker_left_outside_says_why() -> None:
    trial = Trial([1, 2], [partition([1], network_in=90.0), partition([2], network_in=10.0)], usage(trivial_change=0.01))
    text = of_broker(trial, 1, **NOTHING_MAY_MOVE)
    assert "The plan would not touch it." in text
    assert "What would stay: network_in: irreducible: t-0 alone" in text


def test_a_limit_is_told_in_amounts() -> None:
    limit = {"kind": "capacity", "resource": "disk", "limit": 0.8, "hard": True}
    trial = Trial([{"id": b, "capacity": {"disk": 100.0}} for b in (1, 2)], [partition([1], disk=50.0), partition([1], disk=40.0)], limit)
    text = of_broker(trial, 1)
    assert "load 90 B is above its limit of 80 B (80% of its capacity), and would be " in text
    assert "load 0 B is within its limit of 80 B" in of_broker(trial, 2)


def test_a_frozen_broker_says_so(level: Trial) -> None:
    assert "It is frozen: it would neither gain nor lose" in of_broker(level, 2, exclude_brokers=(2,))


@pytest.mark.parametrize(
    ("topic", "number", "said"),
    [
        ("order", 0, "no topic 'order'; did you mean orders-0?"),
        ("nothing-like-it", 3, "no topic 'nothing-like-it'"),
        ("orders", 7, "topic orders has 2 partitions and none is numbered 7"),
    ],
)
def test_a_partition_that_is_not_there_is_named(level: Trial, topic: str, number: int, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        of_partition(level, topic, number)
    assert said in str(refused.value)


def test_a_broker_that_is_not_there_is_named(level: Trial) -> None:
    with pytest.raises(ConfigurationError, match="no broker 9 in the snapshot; it has 1, 2"):
        of_broker(level, 9)


def test_goals_beside_bands_are_told_by_score_and_limit() -> None:
    snapshot = build_snapshot(Trial([1], [partition([1], disk=1.0)], usage("disk")).document)
    goals = parse_goals(json.dumps({"version": 1, "goals": [{"kind": "count_limit", "resource": "replicas", "max": 3}]}), "g")
    assert "  count_limit-replicas: score 1; load 1 is within its limit of 3\n" in explain_broker(snapshot, goals, PlanOptions(), 1)


def test_an_offline_partition_is_not_called_excluded() -> None:
    trial = Trial([{"id": b, "state": "dead"} for b in (1, 2)] + [3], [partition([1, 2], None, network_in=5.0)], IN)
    text = of_partition(trial, "t", 0)
    assert "It is offline: every replica is on a dead broker" in text
    assert "excluded" not in text
    broker = of_broker(trial, 1)
    assert "would still hold 1 replica: 1 offline partition has nothing to copy from" in broker
    assert "balanced" not in broker


def test_where_only_the_budget_speaks_against_a_change_that_is_said(skewed: Trial) -> None:
    text = of_partition(skewed, "orders", 0, **NOTHING_MAY_MOVE)
    assert "the best, moving it from broker 1 to 2, would score 0.9" in text
    assert "but the budget leaves no room for it" in text
    assert "0.5 is asked" not in text


@pytest.mark.parametrize("resource", ["network_in", "leaders"])
def test_leadership_counts_among_the_changes_that_would_help(resource: str) -> None:
    parts = [partition([1, 2], 1, network_in=5.0, follower={}) for _ in range(4)]
    text = of_partition(Trial([1, 2], parts, usage(resource)), "t", 0, max_partitions=0)
    assert "the best, leadership of broker 2, would score 0." in text


def test_a_broker_that_cannot_be_emptied_is_not_called_balanced() -> None:
    full = {"kind": "capacity", "resource": "disk", "limit": 1.0, "name": "full"}
    brokers: list[int | Document] = [{"id": b, "capacity": {"disk": 25.0}} for b in (1, 2)]
    trial = Trial(brokers, [partition([1], disk=20.0), partition([2], disk=10.0)], full)
    text = of_broker(trial, 2, remove_brokers=(2,))
    assert "would find no broker that full allows" in text
    assert "balanced" not in text
    assert "no broker would take it that full allows" in of_partition(trial, "t", 1, remove_brokers=(2,))


@pytest.mark.parametrize("options", [{"exclude_brokers": (2,)}, {"remove_brokers": (2,)}])
def test_a_broker_without_goals_is_not_called_balanced(options: dict[str, Any]) -> None:
    trial = Trial([1, 2], [partition([1], network_in=5.0)], IN)
    assert "balanced" not in of_broker(trial, 2, **options)


def test_a_load_below_min_load_is_not_called_inside_the_band() -> None:
    trial = Trial([1, 2], [partition([1], network_in=10.0) for _ in range(2)], usage(min_load=1000.0))
    text = of_broker(trial, 1)
    assert "is balanced because it and the mean are below min_load 1 kB/s, though outside its target range 9 B/s to 11 B/s" in text
    assert "inside" not in text


def test_no_name_can_steer_the_terminal_or_split_a_line() -> None:
    rack = "\x1b[2Jred\nBroker 9 is dead.\u202e"
    trial = Trial([{"id": 1, "rack": rack}, 2], [partition([1], network_in=10.0)], IN)
    for text in (of_broker(trial, 1), of_partition(trial, "t", 0)):
        assert not set(text) & set("\x1b\u202e")
        assert not any(line.startswith("Broker 9") for line in text.splitlines())


def test_of_many_goals_a_partition_names_three() -> None:
    goals = [usage(r) for r in ("network_in", "disk", "cpu", "replicas", "leaders")]
    trial = Trial([1, 2], [partition([1], network_in=9.0, disk=9.0, cpu=9.0) for _ in range(4)], *goals)
    assert "(network_in, disk, cpu and 2 more)" in of_partition(trial, "t", 0, **NOTHING_MAY_MOVE)


def test_of_many_brokers_the_list_does_not_end_as_if_that_were_all() -> None:
    trial = Trial(list(range(1, 31)), [partition([1], network_in=1.0)], IN)
    with pytest.raises(ConfigurationError, match=r"no broker 99 in the snapshot; it has 1, 2, 3, .*, 20 and 10 more$"):
        of_broker(trial, 99)
    with pytest.raises(ConfigurationError, match=r"no broker 98 in the snapshot; it has 1, 2, 3, .*, 20 and 10 more$"):
        of_broker(trial, 1, remove_brokers=(98,))
