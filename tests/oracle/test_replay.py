"""The oracle passes a plan written out by hand (AutoMQ's G4 and G5), and misses no lie planted in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.cluster import Key
from tests.oracle.replay import apply, check, main
from tests.oracle.test_judge import MIB, network_in, snapshot

Document = dict[str, Any]
GOALS: Document = {"version": 1, "goals": [network_in(name="in", bound=0.2, var="100MiB", tail="absolute")]}
DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def cluster() -> Document:
    """Brokers 0, 1, 2 carry one, two and three partitions of 40 MiB/s; a fourth stands by and is frozen."""
    brokers: list[Document] = [{"id": 0}, {"id": 1}, {"id": 2}, {"id": 3, "state": "excluded"}]
    return snapshot(brokers, [([b], {"network_in": 40 * MIB, "disk": 5e9}) for b in (0, 1, 1, 2, 2, 2)])


@pytest.fixture
def plan() -> Document:
    """One move, worked out by hand: partition 3 from broker 2 to broker 0 brings all to 80 MiB/s."""
    change = {"topic": "t", "partition": 3, "replicas_before": [2], "replicas_after": [0], "leader_before": 2,
              "leader_after": 0}  # fmt: skip

    def loads(*counts: int) -> list[Document]:
        return [{"network_in": n * 40 * MIB, "disk": n * 5e9, "replicas": n, "leaders": n} for n in counts]

    before, after = loads(1, 2, 3, 0), loads(2, 2, 2, 0)
    return {
        "version": 1, "plan_id": DIGEST, "goals_digest": DIGEST,
        "snapshot": {"cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "digest": DIGEST},
        "options": {"seed": 0, "acceptance": "score"},
        "actions": [{
            "seq": 1, "type": "move", "score": 0.608, "repairs": [], "reason": "in",
            "bytes_to_move": 5000000000, "changes": [change],
            "goal_scores": {"in": {
                "score": 0.608, "before": {"0": 0.784, "2": 0.784}, "after": {"0": 1.0, "2": 1.0},
            }},
        }],
        "proposals": [change],
        "goals": [{
            "name": "in", "kind": "usage_distribution", "hard": False, "weight": 1.0, "status": "satisfied",
            "before": {"violations": 2, "mean": 80 * MIB, "max_deviation": 0.5, "cv": 0.40824829,
                       "in_band": 0.333333333},
            "after": {"violations": 0, "mean": 80 * MIB, "max_deviation": 0.0, "cv": 0.0, "in_band": 1.0},
            "explanation": "level",
        }],
        "summary": {"actions": 1, "replica_moves": 1, "leadership_changes": 1, "partitions": 1,
                    "bytes_to_move": 5000000000},
        "lower_bounds": {"replica_moves": 1, "bytes_to_move": 5000000000},
        "brokers": [
            {"id": b, "before": before[b], "after": after[b], "violates": [], "why": None} for b in range(4)
        ],
        "skipped": [],
    }  # fmt: skip


def test_a_right_plan_passes(cluster: Document, plan: Document) -> None:
    assert check(cluster, GOALS, plan) == []


def test_the_state_after_a_plan(cluster: Document, plan: Document) -> None:
    where = {p["partition"]: (p["replicas"], p["leader"]) for p in apply(cluster, plan)["partitions"]}
    assert where[3] == ([0], 0)
    assert where[4] == ([2], 2)


def change_of(plan: Document) -> Document:
    change: Document = plan["actions"][0]["changes"][0]
    return change


def twice(plan: Document) -> None:
    plan["actions"][0]["changes"].append(copy.deepcopy(change_of(plan)))


def elsewhere(plan: Document) -> None:
    for change in (change_of(plan), plan["proposals"][0]):
        change.update(replicas_after=[1], leader_after=1)


LIES: list[tuple[str, Callable[[Document], Any]]] = [
    ("replicas_before", lambda p: change_of(p).update(replicas_before=[1])),
    ("leader_before", lambda p: change_of(p).update(leader_before=None)),
    ("target 3 is excluded", lambda p: change_of(p).update(replicas_after=[3], leader_after=3)),
    ("not acceptable", elsewhere),
    ("a broker twice", lambda p: change_of(p).update(replicas_after=[0, 0])),
    ("before it had 1", lambda p: change_of(p).update(replicas_after=[0, 1])),
    ("has no replica", lambda p: change_of(p).update(leader_after=2)),
    ("the leader is lost", lambda p: change_of(p).update(leader_after=None)),
    ("changes nothing", lambda p: change_of(p).update(replicas_after=[2], leader_after=2)),
    ("appears twice", twice),
    ("no such partition", lambda p: change_of(p).update(partition=9)),
    ("unknown broker", lambda p: change_of(p).update(replicas_after=[7])),
    ("1 to 8 allowed", lambda p: p["actions"][0].update(changes=[])),
    ("actions[0].type", lambda p: p["actions"][0].update(type="leadership")),
    ("actions[0].seq", lambda p: p["actions"][0].update(seq=2)),
    ("actions[0].score", lambda p: p["actions"][0].update(score=0.6081)),
    ("actions[0].repairs", lambda p: p["actions"][0].update(repairs=["in"])),
    ("actions[0].repairs", lambda p: p["actions"][0].update(repairs=["dead broker"])),
    ("actions[0].bytes_to_move", lambda p: p["actions"][0].update(bytes_to_move=0)),
    ("actions[0].reason", lambda p: p["actions"][0].update(reason="")),
    ("goal_scores: has", lambda p: p["actions"][0].update(goal_scores={})),
    ("goal_scores.in.score", lambda p: p["actions"][0]["goal_scores"]["in"].update(score=0.7)),
    ("goal_scores.in.before.2", lambda p: p["actions"][0]["goal_scores"]["in"]["before"].update({"2": 0.7})),
    ("goal_scores.in.after", lambda p: p["actions"][0]["goal_scores"]["in"]["after"].update({"1": 1.0})),
    ("proposals t-3", lambda p: p.update(proposals=[])),
    ("for the second time", lambda p: p["proposals"].append(p["proposals"][0])),
    ("summary.replica_moves", lambda p: p["summary"].update(replica_moves=2)),
    ("summary.leadership_changes", lambda p: p["summary"].update(leadership_changes=0)),
    ("summary.partitions", lambda p: p["summary"].update(partitions=3)),
    ("summary.actions", lambda p: p["summary"].update(actions=0)),
    ("summary.bytes_to_move", lambda p: p["summary"].update(bytes_to_move=1)),
    ("goals[0] in.before.violations", lambda p: p["goals"][0]["before"].update(violations=1)),
    ("goals[0] in.before.mean", lambda p: p["goals"][0]["before"].update(mean=1.0)),
    ("goals[0] in.after.max_deviation", lambda p: p["goals"][0]["after"].update(max_deviation=0.1)),
    ("goals[0] in.before.cv", lambda p: p["goals"][0]["before"].update(cv=0.4)),
    ("goals[0] in.after.in_band", lambda p: p["goals"][0]["after"].update(in_band=0.5)),
    ("goals[0] in.status", lambda p: p["goals"][0].update(status="improved")),
    ("goals[0] in.status", lambda p: p["goals"][0].update(status="skipped")),
    ("goals[0] in.weight", lambda p: p["goals"][0].update(weight=2.0)),
    ("goals: are", lambda p: p.update(goals=[])),
    ("brokers 2.after.network_in", lambda p: p["brokers"][2]["after"].update(network_in=0.0)),
    ("brokers 0.before: has no", lambda p: p["brokers"][0].update(before={})),
    ("brokers 1.violates", lambda p: p["brokers"][1].update(violates=["in"])),
    ("brokers: are", lambda p: p.update(brokers=p["brokers"][:2])),
    ("lower_bounds.replica_moves", lambda p: p["lower_bounds"].update(replica_moves=2)),
    ("9 significant digits", lambda p: p["goals"][0]["before"].update(cv=0.408248290463863)),
    ("options.acceptance", lambda p: p["options"].update(acceptance="potential")),
    ("plan_id", lambda p: p.update(plan_id="7")),
]


@pytest.mark.parametrize(("expected", "lie"), LIES, ids=[f"{i}-{text}" for i, (text, _) in enumerate(LIES)])
def test_a_lie_is_found(
    cluster: Document, plan: Document, expected: str, lie: Callable[[Document], Any]
) -> None:
    told = copy.deepcopy(plan)
    lie(told)
    assert any(expected in text for text in check(cluster, GOALS, told))


def found(cluster: Document, plan: Document, **more: Any) -> str:
    goals = {**GOALS, **{k: v for k, v in more.items() if k in ("goals", "constraints")}}
    return "\n".join(check(cluster, goals, plan, options=more.get("options")))


def test_excluded_topics_and_budgets_bind(cluster: Document, plan: Document) -> None:
    assert "its topic is excluded" in found(cluster, plan, constraints={"exclude_topics": ["t*"]})
    assert "its topic is excluded" in found(cluster, plan, constraints={"include_topics": ["other"]})
    assert "its topic is excluded" in found(cluster, plan, options={"exclude_topics": ["t"]})
    assert "over the budget max_moves 0" in found(cluster, plan, options={"max_moves": 0})
    assert "over the budget max_bytes 1" in found(cluster, plan, options={"max_bytes": 1})
    assert "over the budget max_partitions 0" in found(cluster, plan, options={"max_partitions": 0})
    assert "excluded broker 2 loses" in found(cluster, plan, constraints={"exclude_brokers": [2]})


def test_hard_goals_may_not_get_worse(cluster: Document, plan: Document) -> None:
    limit = {"kind": "count_limit", "resource": "replicas", "max": 1}
    assert "hard count_limit-replicas gets worse on broker 0" in found(
        cluster, plan, goals=[*GOALS["goals"], limit]
    )
    band = {"kind": "usage_distribution", "resource": "replicas", "hard": True, "bound": 0.01, "name": "even"}
    right = found(cluster, plan, goals=[*GOALS["goals"], band])
    assert "gets worse" not in right
    assert "the goals it repairs are ['even']" in right


def test_racks_may_not_get_fuller(plan: Document) -> None:
    brokers = [{"id": 0, "rack": "a"}, {"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}]
    two = snapshot(brokers, [([2, 1], {"network_in": 40 * MIB})] * 4)
    for change in (change_of(plan), plan["proposals"][0]):
        change.update(replicas_before=[2, 1], replicas_after=[0, 1])
    text = found(two, plan, goals=[*GOALS["goals"], {"kind": "rack_aware"}])
    assert "rack excess of t-3 rises from 0 to 1" in text


def test_offline_partitions_stay(cluster: Document, plan: Document) -> None:
    cluster["brokers"][2]["state"] = "dead"
    assert "no live replica" in found(cluster, plan)


def test_going_in_circles_is_seen(cluster: Document, plan: Document) -> None:
    back = copy.deepcopy(plan["actions"][0])
    back["seq"] = 2
    back["changes"][0].update(replicas_before=[0], replicas_after=[2], leader_before=0, leader_after=2)
    plan["actions"].append(back)
    assert "brings back an earlier state" in found(cluster, plan)


def test_as_a_script(
    cluster: Document, plan: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files: dict[str, Key | Document] = {"snapshot": cluster, "goals": GOALS, "plan": plan}
    for name, document in files.items():
        (tmp_path / name).write_text(json.dumps(document))
    arguments = [text for name in files for text in (f"--{name}", str(tmp_path / name))]
    assert main(arguments) == 0
    plan["summary"]["partitions"] = 5
    (tmp_path / "plan").write_text(json.dumps(plan))
    assert main(arguments) == 1
    assert "summary.partitions" in capsys.readouterr().out
