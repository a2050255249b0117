"""Answers to "why": for one partition and for one broker, also when nothing would move.

Pure text from a plan made with the same snapshot, goals and options; conditional mood, since nothing has been done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

import numpy as np

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.plain_text import printable
from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import Goal, GoalSet, UsageDistribution
from optimizer.caution import few_words
from optimizer.columns import offline_partitions
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.plan import Action, Band, BrokerOutcome, Change, Plan
from optimizer.planner import plan
from optimizer.problem import Compiled
from optimizer.search.commit import build_state
from optimizer.search.evaluate import Verdict, judge
from optimizer.search.hosting import hosts_legally
from optimizer.search.state import MAX_CHANGES, State
from optimizer.whatif import apply_whatifs, movable_topics, no_broker
from optimizer.why import amount, blockers, counted, few

LITTLE_BUDGET = "the budget leaves no room for it; a larger one might"


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
            "options", [Problem("--partition", _unknown_partition(snapshot, topic, partition))]
        )
    imagined = apply_whatifs(snapshot, goals, options)
    made = plan(snapshot, goals, options) if made is None else made
    compiled = compile_problem(imagined, goals, options)
    lines = [_placement(imagined, row)]
    acting = [
        a for a in made.actions if any(c.topic == topic and c.partition == partition for c in a.changes)
    ]
    if acting:
        lines.append(f"It would change in {len(acting)} of the plan's {counted(len(made.actions), 'action')}:")
        lines.extend(_action_lines(action, topic, partition) for action in acting)
    else:
        lines.append("It would stay. " + _why_it_stays(imagined, compiled, made, row, goals, options))
    return "\n".join(map(printable, lines))


def explain_broker(
    snapshot: Snapshot, goals: GoalSet, options: PlanOptions, broker: int, made: Plan | None = None
) -> str:
    """Why a broker is or is not in band before and after the plan of these arguments, goal by goal; `made` is that plan, where it is
    there already.

    Raises
    ------
    ConfigurationError
        No such broker in the snapshot (what-ifs applied).
    """
    imagined = apply_whatifs(snapshot, goals, options)
    if broker not in imagined.row_of_broker:
        raise ConfigurationError("options", [Problem("--broker", no_broker(imagined, broker))])
    made = plan(snapshot, goals, options) if made is None else made
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
    lines.append(_changes_of(made, outcome))
    if outcome.why:
        lines.append(f"It would be left: {outcome.why}.")
    return "\n".join(printable(line) for line in lines if line)


def _changes_of(made: Plan, outcome: BrokerOutcome) -> str:
    """What the plan would do to the broker, or why nothing; empty where its state or `why` says it."""
    broker = outcome.id
    gained = sum(broker in c.replicas_after and broker not in c.replicas_before for c in made.proposals)
    lost = sum(broker in c.replicas_before and broker not in c.replicas_after for c in made.proposals)
    led = sum(c.leader_after == broker != c.leader_before for c in made.proposals)
    gave = sum(c.leader_before == broker != c.leader_after for c in made.proposals)
    if gained or lost or led or gave:
        return (
            f"The plan would give it {counted(gained, 'replica')} and take {lost}, "
            f"and give it leadership of {counted(led, 'partition')} and take {gave}."
        )
    if outcome.state == "excluded":
        return ""
    if outcome.state in ("dead", "draining"):
        return "" if outcome.why else "It holds no replicas, so nothing would have to leave it."
    if outcome.violates:
        return "The plan would not touch it."
    if not outcome.scores_before:
        return "No goal judges it, and the plan would not touch it."
    return "Nothing would move here: it is balanced in every goal, and no other broker would need it."


def _unknown_partition(snapshot: Snapshot, topic: str, partition: int) -> str:
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


def _why_it_stays(
    snapshot: Snapshot, compiled: Compiled, made: Plan, row: int, goals: GoalSet, options: PlanOptions
) -> str:
    hosts = [int(snapshot.broker_ids[b]) for b in snapshot.replicas[row] if b >= 0]
    outcomes = {b.id: b for b in made.brokers}
    if offline_partitions(snapshot)[row]:
        return "It is offline: every replica is on a dead broker, and there is nothing to copy from."
    if not movable_topics(snapshot, goals.constraints, options)[snapshot.partition_topic[row]]:
        return "Its topic is excluded, so it would never change; its load still counts."
    leaving = [b for b in hosts if outcomes[b].state in ("dead", "draining")]
    caution = compiled.caution
    if caution is not None and caution.partitions[row] and not leaving:
        return f"Its {few_words(caution.resources)} is stale or was never measured, so it would not be moved for balance."
    if leaving:
        return _why_not_leaving(snapshot, compiled, made, row, leaving, outcomes, options)
    if all(outcomes[b].state == "excluded" for b in hosts):
        return "All its brokers are excluded, so it would never change."
    troubled = [b for b in hosts if outcomes[b].violates]
    if not troubled:
        anywhere = any(b.violates for b in made.brokers)
        if not anywhere and not len(made.actions):
            return "Balanced: every broker is within every goal, so nothing would need to move."
        if not len(made.actions):
            return "Its brokers are within every goal; those that are not could not be helped by moving it."
        return "After the plan its brokers would be within every goal, and others would be moved for more balance per byte."
    brokers = "; ".join(f"{b} ({few(outcomes[b].violates)})" for b in troubled)
    would = "broker" if len(troubled) == 1 else "brokers"
    return f"Its {would} {brokers} would stay out of band. " + _best_try(snapshot, compiled, made, row, options)


def _why_not_leaving(
    snapshot: Snapshot, compiled: Compiled, made: Plan, row: int, leaving: list[int],
    outcomes: Mapping[int, BrokerOutcome], options: PlanOptions,
) -> str:  # fmt: skip
    """Why replicas would stay on brokers that are to be emptied."""
    state = _after(snapshot, compiled, made)
    broker = leaving[0]
    slot = int(np.flatnonzero(state.replicas[row] == snapshot.row_of_broker[broker])[0])
    found = blockers(compiled, state, row, slot)
    text = f"Its replica on broker {broker}, which is {outcomes[broker].state}, would have to leave, but "
    if found is None:
        return text + (LITTLE_BUDGET if options.budgeted else "no acceptable way was found") + "."
    if not found:
        return text + "every active broker holds a replica of it; add a broker."
    return text + f"no broker would take it that {few(found)} {'allows' if len(found) == 1 else 'allow'}; add one with room."


def _best_try(snapshot: Snapshot, compiled: Compiled, made: Plan, row: int, options: PlanOptions) -> str:
    """The best single change of this partition after the plan, and what speaks against it."""
    state = _after(snapshot, compiled, made)
    best: tuple[tuple[bool, bool, float], Verdict, str] | None = None
    ruled_out = 0
    partitions = np.zeros(MAX_CHANGES, np.int64)
    replicas = np.zeros((MAX_CHANGES, state.replicas.shape[1]), np.int64)
    leads = np.zeros(MAX_CHANGES, np.int64)
    scores = np.zeros(len(compiled.goals))
    partitions[0] = row
    for slot, lead, target in _single_changes(snapshot, state, row):
        replicas[0], leads[0] = state.replicas[row], lead
        source = int(state.replicas[row, slot])
        text = f"leadership of broker {snapshot.broker_ids[source]}"
        if target >= 0:
            if not hosts_legally(compiled.problem, state, row, slot, target):
                ruled_out += 1
                continue
            replicas[0, slot] = target
            text = f"moving it from broker {snapshot.broker_ids[source]} to {snapshot.broker_ids[target]}"
        judged = judge(compiled.problem, state, 1, partitions, replicas, leads, scores)
        rank = (_acceptable(judged, options), bool(judged.allowed), float(judged.score))
        if best is None or rank > best[0]:
            best = (rank, judged, text)
    held = f" The rack rule or hard limits would rule out {counted(ruled_out, 'other target')}." if ruled_out else ""
    if best is None:
        return f"It would need another broker, but the rack rule, hard limits or its other replicas rule out each one.{held}"
    (taken, _, _), judged, text = best
    return f"It would need a change; the best, {text}, {_against(judged, taken, options)}.{held}"


def _single_changes(snapshot: Snapshot, state: State, row: int) -> Iterator[tuple[int, int, int]]:
    """Slot, slot of the leader after, and new broker row (-1: the replica stays) of each change of one replica or the leader."""
    lead = int(state.lead[row])
    for slot, source in enumerate(state.replicas[row].tolist()):
        if source < 0 or snapshot.broker_states[source] == BrokerState.EXCLUDED:
            continue
        if slot != lead and snapshot.broker_states[source] == BrokerState.ACTIVE:
            yield slot, slot, -1
        for target in np.flatnonzero(snapshot.broker_states == BrokerState.ACTIVE).tolist():
            if target not in state.replicas[row]:
                yield slot, lead, target


def _acceptable(judged: Verdict, options: PlanOptions) -> bool:
    better = judged.touches_low if options.acceptance == "potential" else judged.better
    return bool(judged.allowed and (judged.repairs or (judged.gain > 0 and better)))


def _against(judged: Verdict, taken: bool, options: PlanOptions) -> str:
    """What speaks against a change that is not in the plan."""
    score = f"would score {judged.score:.4f}"
    if taken:
        return f"{score}, but {LITTLE_BUDGET if options.budgeted else 'it would gain too little for what it moves'}"
    if not judged.allowed:
        return f"{score}, but would make a hard goal worse"
    if judged.better or options.acceptance == "potential":
        return f"{score}, but would leave the cluster as a whole no more level"
    return f"{score}, and more than 0.5 is asked" + (" in every group" if judged.score > 0.5 else "")


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
        text += f"; load {amount(load, resource)}{share} is {_standing(goal, band, load, before, band_text)}"
        if later != load:
            text += f", and would be {amount(later, resource)}"
    return text


def _standing(goal: UsageDistribution, band: Band, load: float, score: float, band_text: str) -> str:
    """Where a load stands, and why it counts as balanced where it does."""
    if score < 1.0:
        return f"outside the band {band_text}"
    if band.mean <= 0:
        return "balanced because the mean is 0"
    if not band.low <= load <= band.high and max(load, band.mean) < goal.min_load:
        least = amount(goal.min_load, goal.resource)
        return f"balanced because it and the mean are below min_load {least}, though outside the band {band_text}"
    return f"balanced because it is inside the band {band_text}"
