"""Answers to "why" for one partition, also when nothing would move.

Pure text from a plan made with the same snapshot, goals and options; conditional mood, since nothing has been done.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import numpy as np

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.plain_text import printable
from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.best_try import after_plan, best_try, cut_short
from optimizer.caution import few_words
from optimizer.columns import offline_partitions
from optimizer.compile import compile_problem
from optimizer.detectors import policy_of
from optimizer.options import PlanOptions
from optimizer.plan import Action, BrokerOutcome, Change, Plan
from optimizer.planner import plan
from optimizer.policies.lookup import bundles_in, carried, carried_text, locate
from optimizer.problem import Compiled
from optimizer.report.labels import goal_labels, plainly
from optimizer.whatif import apply_whatifs, matching_topics, movable_topics
from optimizer.why_hosts import belongs, blockers
from optimizer.why_sets import set_name
from optimizer.why_words import counted, few


def explain_partition(
    snapshot: Snapshot, goals: GoalSet, options: PlanOptions, topic: str, partition: int, made: Plan | None = None
) -> str:
    """Why a partition would move, or would stay, in the plan of these arguments; `made` is that plan, where it is there already.

    Raises
    ------
    ConfigurationError
        No such topic-partition in the snapshot.
    """
    row = snapshot.row_of_partition(topic, partition)
    if row < 0:
        raise ConfigurationError(
            "options", [Problem("--partition", unknown_partition(snapshot, topic, partition))]
        )
    imagined = apply_whatifs(snapshot, goals, options)
    made = plan(snapshot, goals, options) if made is None else made
    compiled = compile_problem(imagined, goals, options)
    lines = [_placement(imagined, row), *_set_of(imagined, compiled, row), *_bundle(imagined, goals, topic, partition)]
    acting = [
        a for a in made.actions if any(c.topic == topic and c.partition == partition for c in a.changes)
    ]
    if acting:
        lines.append(f"It would change in {len(acting)} of {counted(len(made.actions), 'action')} of the plan:")
        lines.extend(_action_lines(action, topic, partition) for action in acting)
    else:
        lines.append("It would stay. " + _why_it_stays(imagined, compiled, made, row, goals, options))
    return plainly("\n".join(map(printable, lines)), goal_labels(made))


def _set_of(snapshot: Snapshot, compiled: Compiled, row: int) -> list[str]:
    """Where there are broker sets: the one that a partition belongs on."""
    name = set_name(compiled, row)
    if not name or compiled.sets is None:
        return []
    takers = compiled.sets.takers(int(snapshot.partition_topic[row]))
    return [f"It belongs on the {name}: {few([str(b) for b in snapshot.broker_ids[takers].tolist()], 8) or 'none'}."]


def _bundle(snapshot: Snapshot, goals: GoalSet, topic: str, partition: int) -> list[str]:
    """Where the policy moves bundles: the one that a partition is in."""
    policy = policy_of(goals)
    if policy.unit != "group":
        return []
    groups = bundles_in(snapshot, policy)
    [found] = locate(snapshot, groups, topic, partition)
    return [f"What a broker holds of a bundle moves as one. {carried_text(carried(snapshot, groups, found.bundle))}"]


def unknown_partition(snapshot: Snapshot, topic: str, partition: int) -> str:
    """Why there is no such partition, in words."""
    if topic not in snapshot.row_of_topic:
        near = get_close_matches(topic, snapshot.topics, n=1)
        hint = f"; did you mean {near[0]}-{partition}?" if near else ""
        return f"no topic-partition {topic}-{partition}: the snapshot has no topic {topic!r}{hint}"
    count = int((snapshot.partition_topic == snapshot.row_of_topic[topic]).sum())
    return f"topic {topic} has {counted(count, 'partition')} and none is numbered {partition}"


def _placement(snapshot: Snapshot, row: int) -> str:
    hosts = [int(b) for b in snapshot.replicas[row] if b >= 0]
    leader = int(snapshot.leader[row])
    led = f"led by broker {snapshot.broker_ids[leader]}" if leader >= 0 else "without a leader"
    where = ", ".join(
        f"{snapshot.broker_ids[b]}" + (f" (rack {snapshot.racks[b]})" if snapshot.racks[b] else "")
        for b in hosts
    )
    return f"{snapshot.partition_name(row)} is on brokers {where}, {led}."


def _action_lines(action: Action, topic: str, partition: int) -> str:
    change = next(c for c in action.changes if c.topic == topic and c.partition == partition)
    others = len(action.changes) - 1
    beside = f", together with {counted(others, 'other change')}" if others else ""
    gains = [
        f"{name} {score.score:.3f}"
        for name, score in action.goal_scores.items()
        if abs(score.score - 0.5) > 5e-4
    ]
    told = f" Action scores other than 0.5 (no change): {', '.join(gains)}." if gains else ""
    return f"  #{action.seq} {action.type}{beside}: {_change_text(change)}, score {action.score:.4f}: {action.reason}.{told}"


def _change_text(change: Change) -> str:
    text = f"replicas {list(change.replicas_before)} would become {list(change.replicas_after)}"
    if change.leader_before != change.leader_after:
        text += f", leader {change.leader_before} would become {change.leader_after}"
    return text


def _why_it_stays(
    snapshot: Snapshot, compiled: Compiled, made: Plan, row: int, goals: GoalSet, options: PlanOptions
) -> str:
    hosts = [int(snapshot.broker_ids[b]) for b in snapshot.replicas[row] if b >= 0]
    outcomes = {b.id: b for b in made.brokers}
    if offline_partitions(snapshot)[row]:
        return "It is offline: every replica is on a dead broker, and there is nothing to copy from."
    topic = snapshot.partition_topic[row]
    if matching_topics(snapshot.topics, goals.constraints.freeze_topics)[topic]:
        return "Its topic is frozen (constraints.freeze_topics), so it would never change; its load still counts."
    leaving = [b for b in hosts if outcomes[b].state in ("dead", "draining")]
    if not leaving and not movable_topics(snapshot, goals.constraints, options)[topic]:
        return "Its topic is excluded, so only repairs would change it; its load still counts."
    if not leaving and compiled.sets is not None and compiled.sets.astray[topic]:
        return "Its topic is of no broker set and every broker is of one, so only repairs would change it; its load still counts."
    caution = compiled.caution
    if caution is not None and caution.resting[row] and not leaving:
        return "It was moved lately, so it would not be moved for balance until its cooldown is over (policy.partition_cooldown)."
    if caution is not None and caution.partitions[row] and not leaving:
        return f"Its {few_words(caution.resources)} is stale or was never measured, so it would not be moved for balance."
    if leaving:
        return _why_not_leaving(snapshot, compiled, made, row, leaving, outcomes, options)
    outside = [b for b in hosts if not belongs(compiled.problem, row, snapshot.row_of_broker[b])]
    if outside and outcomes[outside[0]].state == "active":
        return f"Its replica on broker {outside[0]} would have to come to its broker set. That broker {outcomes[outside[0]].why}."
    if all(outcomes[b].state == "excluded" for b in hosts):
        return "All its brokers are excluded, so it would never change."
    troubled = [b for b in hosts if outcomes[b].violates]
    if not troubled:
        anywhere = any(b.violates for b in made.brokers)
        if not anywhere and not len(made.actions):
            return "Balanced: every broker is within every goal, so nothing would need to move."
        if not len(made.actions):
            return "Its brokers are within every goal; those that are not could not be helped by moving it."
        return "After the plan its brokers would be within every goal without moving it: other partitions give more balance per byte."
    brokers = "; ".join(f"{b} ({few(outcomes[b].violates)})" for b in troubled)
    one = len(troubled) == 1
    would = f"{'broker' if one else 'brokers'} {brokers} would stay outside {'its' if one else 'their'} target range"
    return f"Its {would}. " + best_try(snapshot, compiled, made, row, options)


def _why_not_leaving(
    snapshot: Snapshot, compiled: Compiled, made: Plan, row: int, leaving: list[int],
    outcomes: Mapping[int, BrokerOutcome], options: PlanOptions,
) -> str:  # fmt: skip
    """Why replicas would stay on brokers that are to be emptied."""
    state = after_plan(snapshot, compiled, made)
    broker = leaving[0]
    slot = int(np.flatnonzero(state.replicas[row] == snapshot.row_of_broker[broker])[0])
    found = blockers(compiled, state, row, slot)
    text = f"Its replica on broker {broker}, which is {outcomes[broker].state}, would have to leave, but "
    if found is None:
        return text + (cut_short(made, options) or "no acceptable way was found") + "."
    if not found:
        return text + "every active broker holds a replica of it; add a broker."
    return text + f"no broker would take it that {few(found)} {'allows' if len(found) == 1 else 'allow'}; add one with room."
