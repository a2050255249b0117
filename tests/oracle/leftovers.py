"""What a finished plan should not leave behind: repairs that one harmless change would still make.

docs/contract.md, section 7 calls such a change acceptable, and section 2 says that a draining broker hosts nothing in
the end and that a dead one's replicas must go elsewhere; so a plan without budgets that leaves one undone is
not finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.oracle.cluster import Cluster, Key
from tests.oracle.goal_files import DISTRIBUTIONS, constraints_of, goals_of
from tests.oracle.judge import TOLERANCE, Judge
from tests.oracle.replay import apply

Document = Mapping[str, Any]


def undone(snapshot: Document, goals: Document, plan: Document, options: Document | None = None) -> list[str]:
    """Replicas still on dead or draining brokers or on those of other sets, and leaders still there or missing, with the change that
    would help.
    """
    given = options or {}
    cluster = Cluster(apply(snapshot, plan, given), constraints_of(goals), given)
    judge = Judge(Cluster(snapshot, constraints_of(goals), given), goals_of(goals))
    judge.cluster = cluster  # the means stay those of the snapshot
    found = []
    for key in sorted(cluster.partitions):
        if not cluster.partitions[key].frozen and not cluster.is_offline(key):
            found += [f"{key[0]}-{key[1]}: {text}" for text in undone_of(cluster, judge, key)]
    return found


def undone_of(c: Cluster, judge: Judge, key: Key) -> Iterable[str]:
    replicas, leader = c.replicas[key], c.leader[key]
    leaving = {b for b in replicas if c.brokers[b].state in ("dead", "draining")}
    if leader is None or leader in leaving:
        for b in replicas:
            reordered = [b, *(x for x in replicas if x != b)]
            if c.brokers[b].state == "active" and harmless(c, judge, key, reordered, b):
                yield f"led by {leader}, and {b} could lead it"
                break
    outside = {b for b in replicas if c.brokers[b].state == "active" and c.is_astray(key, b)}
    for b in sorted(leaving | outside):
        for target in c.active:
            if target in replicas or not c.may_host(key, target):
                continue
            moved = [target if x == b else x for x in replicas]
            if leader == b:
                moved = [target, *(x for x in moved if x != target)]
            if harmless(c, judge, key, moved, target if leader == b else leader):
                yield f"still on {c.brokers[b].state} broker {b}{', of another set' if b in outside else ''}, and {target} could take it"
                break


def harmless(c: Cluster, judge: Judge, key: Key, replicas: list[int], leader: int | None) -> bool:
    """Whether nothing hard gets worse by one change, which is tried and taken back."""
    was = (c.replicas[key], c.leader[key])
    brokers = sorted({*c.replicas[key], *replicas} & set(c.active))
    before, racks_before = badness(judge, brokers), judge.rack_excess(key)
    c.change(key, replicas, leader)
    after, racks_after = badness(judge, brokers), judge.rack_excess(key)
    c.change(key, *was)
    hard_racks = any(g["kind"] == "rack_aware" and g["hard"] for g in judge.goals)
    if hard_racks and racks_after > racks_before:
        return False
    return all(after[place] <= bad + TOLERANCE * max(1.0, abs(bad)) for place, bad in before.items())


def badness(judge: Judge, brokers: list[int]) -> dict[tuple[str, int], float]:
    """Hard excess and lost hard score by goal and broker; more is worse."""
    found = {}
    for goal in judge.goals:
        if not goal["hard"] or goal["kind"] == "rack_aware":
            continue
        for b in brokers:
            if judge.judged(goal, b):
                bad = -judge.score(goal, b) if goal["kind"] in DISTRIBUTIONS else judge.excess(goal, b)
                found[goal["name"], b] = bad
    return found
