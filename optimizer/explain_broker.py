"""Answers to "why" for one broker, also when nothing would move.

Pure text from a plan made with the same snapshot, goals and options; conditional mood, since nothing has been done.
"""

from __future__ import annotations

import numpy as np

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.plain_text import printable
from cluster_model.quantities import percent
from cluster_model.snapshot import Snapshot
from goals.model import Capacity, Goal, GoalSet, Limit, UsageDistribution
from optimizer.broker_sets import sets_of
from optimizer.options import PlanOptions
from optimizer.plan import Band, BrokerOutcome, Plan
from optimizer.planner import plan
from optimizer.report.labels import goal_labels, plainly
from optimizer.whatif import apply_whatifs, no_broker
from optimizer.why_words import amount, amounts, beside, counted, few


def explain_broker(
    snapshot: Snapshot, goals: GoalSet, options: PlanOptions, broker: int, made: Plan | None = None
) -> str:
    """Why a broker is or is not within its target ranges before and after the plan of these arguments, goal by goal.

    `made` is that plan, where it is there already.

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
    sets = sets_of(imagined, goals.constraints)
    if sets is not None:
        number = int(sets.broker[imagined.row_of_broker[broker]])
        topics = [imagined.topics[t] for t in np.flatnonzero(sets.topic == number).tolist()]
        lines.append(f"It is of the {sets.label(number)}, for topics {few(topics, 5) or 'none'}.")
    if outcome.state == "excluded":
        lines.append(
            "It is frozen: it would neither gain nor lose replicas or leadership, and its load is in no mean."
        )
    for goal in goals.goals:
        if goal.name in outcome.scores_before:
            line = _goal_line(goal, outcome, made.bands.get(goal.name, {}).get(broker))
            if isinstance(goal, Limit):
                ceilings = goal.ceilings(imagined.capacity, imagined.broker_count)
                line += _limit_text(goal, outcome, float(ceilings[imagined.row_of_broker[broker]]))
            lines.append(line)
    skipped = [f"{g.name} ({g.explanation.removeprefix('skipped: ')})" for g in made.goals if g.status == "skipped"]
    if skipped:
        lines.append(f"Not checked: {', '.join(skipped)}.")
    lines.append(_changes_of(made, outcome))
    if outcome.why:
        lines.append(f"What would stay: {outcome.why}.")
    return plainly("\n".join(printable(line) for line in lines if line), goal_labels(made))


def _changes_of(made: Plan, outcome: BrokerOutcome) -> str:
    """What the plan would do to the broker, or why nothing; empty where its state or `why` says it."""
    broker = outcome.id
    gained = sum(broker in c.replicas_after and broker not in c.replicas_before for c in made.proposals)
    lost = sum(broker in c.replicas_before and broker not in c.replicas_after for c in made.proposals)
    led = sum(c.leader_after == broker != c.leader_before for c in made.proposals)
    gave = sum(c.leader_before == broker != c.leader_after for c in made.proposals)
    if gained or lost or led or gave:
        return f"The plan would move {_turnover(gained, lost, 'replica')}, and {_turnover(led, gave, 'leader')}."
    if outcome.state == "excluded":
        return ""
    if outcome.state in ("dead", "draining"):
        return "" if outcome.why else "It holds no replicas, so nothing would have to leave it."
    if outcome.violates:
        return "The plan would not touch it."
    if not outcome.scores_before:
        return "No goal judges it, and the plan would not touch it."
    which = " that could be checked" if any(g.unchecked for g in made.goals) else ""
    return f"Nothing would move here: it is balanced in every goal{which}, and no other broker would need it."


def _turnover(gained: int, lost: int, noun: str) -> str:
    return f"{counted(gained, noun)} here and {lost:,} away"


def _goal_line(goal: Goal, outcome: BrokerOutcome, band: Band | None) -> str:
    before, after = outcome.scores_before[goal.name], outcome.scores_after[goal.name]
    text = f"  {goal.name}: score {before:.3g}" + (f", would be {after:.3g}" if f"{before:.3g}" != f"{after:.3g}" else "")
    if isinstance(goal, UsageDistribution) and band is not None:
        resource = goal.resource
        load, later = outcome.before[resource], outcome.after[resource]
        band_text = f"{amount(band.low, resource)} to {amount(band.high, resource)}"
        share = f" ({beside(load / band.mean - 1)} its mean {amount(band.mean, resource)})" if band.mean > 0 else ""
        text += f"; load {amount(load, resource)}{share} is {_standing(goal, band, load, before, band_text)}"
        if later != load:
            text += f", and would be {amount(later, resource)}"
    return text


def _limit_text(goal: Limit, outcome: BrokerOutcome, ceiling: float) -> str:
    load, later = outcome.before.get(goal.resource), outcome.after.get(goal.resource)
    if load is None or later is None or ceiling != ceiling:
        return ""
    share = f" ({percent(goal.limit)} of its capacity)" if isinstance(goal, Capacity) else ""
    where = "above" if outcome.scores_before[goal.name] < 1.0 else "within"
    told, limit = amounts(load, ceiling, goal.resource)
    text = f"; load {told} is {where} its limit of {limit}{share}"
    return text + (f", and would be {amount(later, goal.resource)}" if later != load else "")


def _standing(goal: UsageDistribution, band: Band, load: float, score: float, band_text: str) -> str:
    """Where a load stands, and why it counts as balanced where it does."""
    if score < 1.0:
        return f"outside its target range {band_text}"
    if band.mean <= 0:
        return "balanced because the mean is 0"
    if not band.low <= load <= band.high and max(load, band.mean) < goal.min_load:
        least = amount(goal.min_load, goal.resource)
        return f"balanced because it and the mean are below min_load {least}, though outside its target range {band_text}"
    return f"balanced because it is inside its target range {band_text}"
