"""A batch keeps a plan small enough to be carried out at once, by whatever makes it, and leaves the rest for the next plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import ceil

import pytest

from cluster_model.errors import ConfigurationError
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from goals.policy_presets import POLICY_PRESETS
from optimizer.explain import explain_partition
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.policies.batches import moves_in, moves_of
from optimizer.report import to_json
from optimizer.report.plan_file import read_plan
from optimizer.report.verdict import verdict
from tests.clusters.synthetic import cluster
from trimtab.service.standing import after


@pytest.fixture(scope="module")
def uneven() -> Snapshot:
    return cluster(6, 240, "b")


def goals(policy: str = "{}") -> GoalSet:
    return parse_goals(
        "version: 1\ngoals:\n - {kind: rack_aware}\n - {kind: usage_distribution, resource: network_in}\n"
        f" - {{kind: usage_distribution, resource: leaders}}\npolicy: {policy}\n", "goals.yaml",
    )  # fmt: skip


def within(made: Plan, snapshot: Snapshot, of_broker: int, share: float, sources: int) -> None:
    """The limits, counted from the actions in any order."""
    moves = [move for action in made.actions for move in moves_of(action)]
    touched = Counter(b for m in moves for b in (m.source, m.target))
    most = max(len(action.changes) for action in made.actions) - 1  # of one action, which is never parted
    assert max(touched.values()) <= of_broker + most
    of_topic, gives = defaultdict(set), defaultdict(set)
    for m in moves:
        of_topic[m.topic].add(m.partition)
        gives[m.target].add(m.source)
    partitions = Counter(snapshot.topics[t] for t in snapshot.partition_topic.tolist())
    assert all(len(moved) <= ceil(partitions[topic] * share) + most for topic, moved in of_topic.items())
    assert max(map(len, gives.values())) <= sources + most


@pytest.mark.parametrize("rule", ["moves_per_broker: 3", "topic_share: 0.1", "sources_per_target: 1", "moves_per_broker: 2, batches: 3"])
def test_a_cut_plan_is_the_first_actions_of_the_whole_one(uneven: Snapshot, rule: str) -> None:
    whole, made = plan(uneven, goals()), plan(uneven, goals(f"{{batch: {{{rule}}}}}"))
    kept = len(made.actions)
    assert 0 < kept < len(whole.actions)
    assert [a.changes for a in made.actions] == [a.changes for a in whole.actions[:kept]]
    assert [a.score for a in made.actions] == pytest.approx([a.score for a in whole.actions[:kept]])
    assert [a.reason for a in made.actions] == [a.reason for a in whole.actions[:kept]]
    rest = len(whole.actions) - kept
    assert any(f"{rest} of {len(whole.actions)} actions left for the next plan" in note for note in made.notes)
    assert all("batch leaves" in (b.why or "") for b in made.brokers if b.violates), "no broker is said to be stuck"
    assert made.options["policy"]["batch"]  # type: ignore[index]
    assert made.plan_id != whole.plan_id
    assert made.left == rest
    assert all("budget" not in remark and "not all" not in remark for remark in verdict(made).remarks)
    asked = next(c for c in whole.proposals if c.replicas_before != c.replicas_after and c not in made.proposals)
    told = explain_partition(uneven, goals(f"{{batch: {{{rule}}}}}"), PlanOptions(), asked.topic, asked.partition)
    assert "would change in" in told or "the policy's batch ends the plan before it" in told or "would be within every goal" in told


@pytest.mark.parametrize("noise", ["noise: 0, ", ""])
def test_plan_after_plan_keeps_the_limits_and_gets_as_level_as_one_plan_does(uneven: Snapshot, noise: str) -> None:
    """With `noise`, the last broker may stay outside by less than that, since the steps there are no longer worth a plan."""
    rule = goals(f"{{{noise}batch: {{moves_per_broker: 6, topic_share: 0.25, sources_per_target: 2}}}}")
    standing, rounds = uneven, 0
    while (made := plan(standing, rule)).actions:
        within(made, standing, 6, 0.25, 2)
        standing, rounds = after(standing, made), rounds + 1
        assert rounds < 60
    assert rounds > 1
    outside = [b for b in made.brokers if b.violates]
    assert not outside or (not noise and all("by more than loads differ" in (b.why or "") for b in outside))


def test_a_policys_own_plan_is_cut_too_and_what_fits_is_not_mentioned(uneven: Snapshot) -> None:
    policy = "{{preset: danube-balanced, score: {{kind: throughput}}, guards: {{moves: 30}}, batch: {{{}}}}}"
    rules = ("moves_per_broker: 2", "moves_per_broker: 1000, topic_share: 1, sources_per_target: 100")
    made, free = (plan(uneven, goals(policy.format(rule))) for rule in rules)
    assert 0 < len(made.actions) < len(free.actions)
    assert made.actions[0].reason == free.actions[0].reason
    assert [any("batch: " in note for note in p.notes) for p in (made, free)] == [True, False]


@pytest.mark.parametrize("preset", sorted(POLICY_PRESETS))
def test_the_plan_of_every_preset_can_be_cut(uneven: Snapshot, preset: str) -> None:
    """With the lists and leaders that each action has in the whole plan: reordered lists and handed-over leaderships, too."""
    policy = "{{preset: {}, batch: {{moves_per_broker: {}, topic_share: 1, sources_per_target: 100}}}}"
    made, free = (plan(uneven, goals(policy.format(preset, most))) for most in (2, 10_000))
    kept = len(made.actions)
    assert kept or not free.actions
    assert [a.changes for a in made.actions] == [a.changes for a in free.actions[:kept]]


def limited(snapshot: Snapshot, resource: str, share: float, policy: str) -> Plan:
    """A plan with a hard limit at so much of the mean."""
    most = int(snapshot.broker_load(resource).mean() * share)
    text = (
        f"version: 1\ngoals:\n - {{kind: count_limit, resource: {resource}, max: {most}}}\n"
        f" - {{kind: usage_distribution, resource: network_in}}\n - {{kind: usage_distribution, resource: replicas}}\npolicy: {policy}\n"
    )
    return plan(snapshot, parse_goals(text, "g"))


def repaired(made: Plan) -> set[tuple[tuple[str, int, frozenset[int], int | None], ...]]:
    """What each repair brings about; followers may stand in another order."""
    return {
        tuple((c.topic, c.partition, frozenset(c.replicas_after), c.leader_after) for c in a.changes) for a in made.actions if a.repairs
    }


@pytest.mark.parametrize(("resource", "share"), [("network_in", 1.3), ("network_out", 1.25), ("replicas", 1.05), ("leaders", 1.3)])
def test_a_batch_holds_no_repair_back_and_says_what_is_made_beyond_it(uneven: Snapshot, resource: str, share: float) -> None:
    whole = limited(uneven, resource, share, "{}")
    made = limited(uneven, resource, share, "{batch: {moves_per_broker: 2}}")
    repairs = repaired(whole)
    assert repairs
    assert repaired(made) >= repairs
    assert made.hard_violations_left <= whole.hard_violations_left
    assert [n for n in made.notes if n.startswith("policy: batch: ") and "beyond the last batch: repairs, and what they need" in n]


def test_repairs_are_never_left_for_the_next_plan(uneven: Snapshot) -> None:
    made = plan(uneven, goals("{batch: {moves_per_broker: 1}}"), PlanOptions(remove_brokers=(int(uneven.broker_ids[0]),)))
    assert not made.cannot_be_emptied
    assert int(uneven.broker_ids[0]) not in {b for c in made.proposals for b in c.replicas_after}
    left = after(uneven, made)
    assert left.broker_load("replicas")[0] == 0


@pytest.mark.parametrize(
    ("batch", "message"),
    [("{topic_share: 0}", "policy.batch.topic_share"), ("{sources: 3}", "policy.batch"), ("{moves_per_broker: 0}", "moves_per_broker")],
)
def test_a_batch_that_is_none_is_refused_with_its_place(batch: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        goals(f"{{batch: {batch}}}")


def test_each_batch_of_a_plan_is_within_the_limits_by_what_moves_in_the_end(uneven: Snapshot) -> None:
    rule = "{batch: {moves_per_broker: 6, topic_share: 0.25, sources_per_target: 2, batches: 100, pause: 30}}"
    whole, made = plan(uneven, goals()), plan(uneven, goals(rule))
    assert made.batches is not None
    assert (list(made.proposals), made.left, made.batches.pause) == (list(whole.proposals), 0, 30.0)
    assert made.plan_id != whole.plan_id
    assert made.batches.count > 1
    assert any(f"carried out in {made.batches.count} batches, each 30 s after" in note for note in made.notes)
    most = max(len(action.changes) for action in made.actions) - 1  # of one action, which is never parted
    partitions = Counter(uneven.topics[t] for t in uneven.partition_topic.tolist())
    for batch in range(1, made.batches.count + 1):
        moves = [m for c, n in zip(made.proposals, made.batches.of, strict=True) if n == batch for m in moves_in([c])]
        touched = Counter(b for m in moves for b in (m.source, m.target))
        assert max(touched.values(), default=0) <= 6 + most
        of_topic, gives = defaultdict(set), defaultdict(set)
        for m in moves:
            of_topic[m.topic].add(m.partition)
            gives[m.target].add(m.source)
        assert all(len(moved) <= ceil(partitions[topic] * 0.25) + most for topic, moved in of_topic.items())
        assert all(len(sources) <= 2 + most for sources in gives.values())


def test_the_batches_of_a_plan_file_come_back(uneven: Snapshot) -> None:
    made = plan(uneven, goals("{batch: {moves_per_broker: 2, batches: 3}}"))
    read = read_plan(to_json(made).encode(), "plan.json")
    assert read.batches == made.batches
    assert read.left == made.left > 0


def test_a_plan_that_is_one_batch_is_the_plan_without_any(uneven: Snapshot) -> None:
    assert to_json(plan(uneven, goals("{batch: {moves_per_broker: 1000, topic_share: 1, sources_per_target: 100}}"))) == to_json(
        plan(uneven, goals())
    )
