"""Answers to "why": for one partition and for one broker, also when nothing would move.

Pure text from a plan made with the same snapshot, goals and options; conditional mood, since nothing has been done.
"""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import Goal, GoalSet, UsageDistribution
from optimizer.options import PlanOptions
from optimizer.plan import Action, Band, BrokerOutcome, Change, Plan
from optimizer.planner import plan
from optimizer.problem import MOVABLE, Compiled, compile_problem
from optimizer.search.evaluate import evaluate
from optimizer.search.state import MAX_CHANGES, State, build_state, hosts_legally
from optimizer.whatif import apply_whatifs
from optimizer.why import amount


def explain_partition(
    snapshot: Snapshot, goals: GoalSet, options: PlanOptions, topic: str, partition: int
) -> str:
    """Why a partition would move, or would stay, in the plan of these arguments.

    Raises
    ------
    ConfigurationError
        No such topic-partition in the snapshot.
    """
    row = snapshot.row_of_partition(topic, partition)
    if row < 0:
        raise ConfigurationError(
            "options", [Problem("--partition", _unknown_partition(snapshot, topic, partition))]
        )
    imagined = apply_whatifs(snapshot, goals, options)
    made = plan(snapshot, goals, options)
    compiled = compile_problem(imagined, goals, options)
    lines = [_placement(imagined, row)]
    acting = [
        a for a in made.actions if any(c.topic == topic and c.partition == partition for c in a.changes)
    ]
    if acting:
        lines.append(f"It would change in {len(acting)} of the plan's {len(made.actions)} actions:")
        lines.extend(_action_lines(action, topic, partition) for action in acting)
        return "\n".join(lines)
    lines.append("It would stay. " + _why_it_stays(imagined, compiled, made, row))
    return "\n".join(lines)


def explain_broker(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, broker: int) -> str:
    """Why a broker is or is not in band before and after the plan of these arguments, goal by goal.

    Raises
    ------
    ConfigurationError
        No such broker in the snapshot (what-ifs applied).
    """
    imagined = apply_whatifs(snapshot, goals, options)
    if broker not in imagined.row_of_broker:
        ids = ", ".join(str(b) for b in imagined.broker_ids[:20])
        raise ConfigurationError(
            "options", [Problem("--broker", f"no broker {broker} in the snapshot; it has {ids}")]
        )
    made = plan(snapshot, goals, options)
    outcome = next(b for b in made.brokers if b.id == broker)
    rack = f" in rack {outcome.rack}" if outcome.rack else ""
    lines = [f"Broker {broker}{rack} is {outcome.state}."]
    if outcome.state == "excluded":
        lines.append(
            "It is frozen: it would neither gain nor lose replicas or leadership, and its load is in no mean."
        )
    for goal in goals.goals:
        if goal.name in outcome.scores_before:
            lines.append(_goal_line(goal, outcome, made.bands.get(goal.name, {}).get(broker)))
    gained = sum(broker in c.replicas_after and broker not in c.replicas_before for c in made.proposals)
    lost = sum(broker in c.replicas_before and broker not in c.replicas_after for c in made.proposals)
    led = sum(c.leader_after == broker != c.leader_before for c in made.proposals)
    gave = sum(c.leader_before == broker != c.leader_after for c in made.proposals)
    if gained or lost or led or gave:
        lines.append(
            f"The plan would give it {gained} replicas and take {lost}, and give it leadership of {led} partitions and take {gave}."
        )
    elif outcome.violates:
        lines.append("The plan would not touch it.")
    else:
        lines.append("Nothing would move here: it is balanced in every goal, and no other broker needs it.")
    if outcome.why:
        lines.append(f"It would be left: {outcome.why}.")
    return "\n".join(lines)


def _unknown_partition(snapshot: Snapshot, topic: str, partition: int) -> str:
    if topic not in snapshot.row_of_topic:
        near = get_close_matches(topic, snapshot.topics, n=1)
        hint = f"; did you mean {near[0]}-{partition}?" if near else ""
        return f"no topic-partition {topic}-{partition}: the snapshot has no topic {topic!r}{hint}"
    count = int((snapshot.partition_topic == snapshot.row_of_topic[topic]).sum())
    return f"topic {topic} has {count} partitions and none is numbered {partition}"


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
    beside = f", together with {len(action.changes) - 1} other changes" if len(action.changes) > 1 else ""
    gains = [
        f"{name} {score.score:.3f}"
        for name, score in action.goal_scores.items()
        if abs(score.score - 0.5) > 5e-4
    ]
    told = f" Action scores away from neutral (0.5): {', '.join(gains)}." if gains else ""
    mends = f" It repairs {', '.join(action.repairs)}." if action.repairs else ""
    return (
        f"  {action.seq}. {action.type}{beside}: {_change_text(change)}, combined score {action.score:.4f}: {action.reason}."
        f"{mends}{told}"
    )


def _change_text(change: Change) -> str:
    text = f"replicas {list(change.replicas_before)} would become {list(change.replicas_after)}"
    if change.leader_before != change.leader_after:
        text += f", leader {change.leader_before} would become {change.leader_after}"
    return text


def _why_it_stays(snapshot: Snapshot, compiled: Compiled, made: Plan, row: int) -> str:
    if not compiled.problem.partition[row, MOVABLE]:
        return "Its topic is excluded, so it never changes; its load still counts."
    hosts = [int(snapshot.broker_ids[b]) for b in snapshot.replicas[row] if b >= 0]
    outcomes = {b.id: b for b in made.brokers}
    if all(outcomes[b].state == "dead" for b in hosts):
        return "It is offline: every replica is on a dead broker, and there is nothing to copy from."
    troubled = [b for b in hosts if outcomes[b].violates]
    if not troubled:
        anywhere = any(b.violates for b in made.brokers)
        if not anywhere and not len(made.actions):
            return "Balanced: every broker is within every goal, so nothing needs to move."
        return "After the plan its brokers are within every goal, and others were moved for more balance per byte."
    brokers = ", ".join(f"{b} ({', '.join(outcomes[b].violates)})" for b in troubled)
    return f"Its brokers {brokers} would stay out of band. " + _best_try(snapshot, compiled, made, row)


def _best_try(snapshot: Snapshot, compiled: Compiled, made: Plan, row: int) -> str:
    """The best single change of this partition after the plan, and what speaks against it."""
    state = _after(snapshot, compiled, made)
    best: tuple[float, str] | None = None
    blocked = 0
    partitions = np.zeros(MAX_CHANGES, np.int64)
    replicas = np.zeros((MAX_CHANGES, state.replicas.shape[1]), np.int64)
    leads = np.zeros(MAX_CHANGES, np.int64)
    scores = np.zeros(len(compiled.goals))
    partitions[0] = row
    for slot, source in enumerate(state.replicas[row]):
        if source < 0 or snapshot.broker_states[source] == BrokerState.EXCLUDED:
            continue
        for target in np.flatnonzero(snapshot.broker_states == BrokerState.ACTIVE):
            if target in state.replicas[row]:
                continue
            if not hosts_legally(compiled.problem, state, row, slot, int(target)):
                blocked += 1
                continue
            replicas[0], leads[0] = state.replicas[row], state.lead[row]
            replicas[0, slot] = target
            verdict = evaluate(compiled.problem, state, 1, partitions, replicas, leads, scores)
            text = f"moving it from broker {snapshot.broker_ids[source]} to {snapshot.broker_ids[target]}"
            if best is None or verdict.score > best[0]:
                best = (float(verdict.score), text)
    held = f" {blocked} other targets are ruled out by racks or hard limits." if blocked else ""
    if best is None:
        return f"It would need another broker, but the rack rule, hard limits or its other replicas rule out each one.{held}"
    return f"It would need a move, but the best, {best[1]}, scores {best[0]:.4f}; above 0.5 is asked.{held}"


def _after(snapshot: Snapshot, compiled: Compiled, made: Plan) -> State:
    replicas, lead = compiled.replicas.copy(), compiled.lead.copy()
    for change in made.proposals:
        row = snapshot.row_of_partition(change.topic, change.partition)
        rows = [snapshot.row_of_broker[b] for b in change.replicas_after]
        replicas[row, : len(rows)] = rows
        lead[row] = (
            change.replicas_after.index(change.leader_after) if change.leader_after is not None else -1
        )
    return build_state(compiled.problem, replicas, lead)


def _goal_line(goal: Goal, outcome: BrokerOutcome, band: Band | None) -> str:
    before, after = outcome.scores_before[goal.name], outcome.scores_after[goal.name]
    text = f"  {goal.name}: score {before:.3g}, would be {after:.3g}"
    if isinstance(goal, UsageDistribution) and band is not None:
        resource = goal.resource
        load, later = outcome.before[resource], outcome.after[resource]
        band_text = f"{amount(band.low, resource)} to {amount(band.high, resource)}"
        share = (
            f" ({(load / band.mean - 1) * 100:+.1f} % of its mean {amount(band.mean, resource)})"
            if band.mean > 0
            else ""
        )
        verdict = "balanced because it is inside" if before == 1.0 else "outside"
        text += f"; load {amount(load, resource)}{share} is {verdict} the band {band_text}"
        if later != load:
            text += f", and would be {amount(later, resource)}"
    return text
