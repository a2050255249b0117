"""The best single change of a partition that a plan leaves where it is, and what speaks against it.

Called by `optimizer.explain`. Text only; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.placement.evaluate import Verdict, judge, propose
from optimizer.placement.feasible import hosts_legally
from optimizer.placement.state import State
from optimizer.plan import Plan
from optimizer.problem import Compiled
from optimizer.why_words import counted

LITTLE_BUDGET = "the budget leaves no room for it; a larger one might"


def best_try(snapshot: Snapshot, compiled: Compiled, made: Plan, row: int, options: PlanOptions) -> str:
    """The best single change of this partition after the plan, and what speaks against it."""
    state = after_plan(snapshot, compiled, made)
    best: tuple[tuple[bool, bool, float], Verdict, str] | None = None
    ruled_out = 0
    for slot, lead, target in _single_changes(snapshot, state, row):
        source = int(state.replicas[row, slot])
        text = f"leadership of broker {snapshot.broker_ids[source]}"
        if target >= 0:
            if not hosts_legally(compiled.problem, state, row, slot, target):
                ruled_out += 1
                continue
            text = f"moving it from broker {snapshot.broker_ids[source]} to {snapshot.broker_ids[target]}"
        propose(state, 0, row, slot, target if target >= 0 else source, lead)
        judged = judge(compiled.problem, state, 1)
        rank = (_acceptable(judged, options), bool(judged.allowed), float(judged.score))
        if best is None or rank > best[0]:
            best = (rank, judged, text)
    sets = ", broker sets" if compiled.sets is not None else ""
    held = f" The rack rule{sets} or hard limits would rule out {counted(ruled_out, 'other target')}." if ruled_out else ""
    if best is None:
        return f"It would need another broker, but the rack rule{sets}, hard limits or its other replicas rule out each one.{held}"
    (taken, _, _), judged, text = best
    return f"It would need a change; the best, {text}, {_against(judged, taken, made, options)}.{held}"


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


def _against(judged: Verdict, taken: bool, made: Plan, options: PlanOptions) -> str:
    """What speaks against a change that is not in the plan."""
    score = f"would score {judged.score:.4f}"
    if taken:
        return f"{score}, but {cut_short(made, options) or 'it would gain too little for what it moves'}"
    if not judged.allowed:
        return f"{score}, but would make a hard goal worse"
    if judged.better or options.acceptance == "potential":
        return f"{score}, but would leave the cluster as a whole no more level"
    return f"{score}, and more than 0.5 is asked" + (" in every group" if judged.score > 0.5 else "")


def cut_short(made: Plan, options: PlanOptions) -> str:
    """Why a change that would do good is not in the plan, where a batch, a budget or a policy ended it; empty where none did."""
    if made.left:
        return "the policy's batch ends the plan before it; the next plan may make it"
    if options.budgeted:
        return LITTLE_BUDGET
    return "the policy moves nothing more; a plan by the search may make it" if made.by_policy else ""


def after_plan(snapshot: Snapshot, compiled: Compiled, made: Plan) -> State:
    replicas, lead = compiled.replicas.copy(), compiled.lead.copy()
    for change in made.proposals:
        row = snapshot.row_of_partition(change.topic, change.partition)
        rows = [snapshot.row_of_broker[b] for b in change.replicas_after]
        replicas[row, : len(rows)] = rows
        lead[row] = (
            change.replicas_after.index(change.leader_after) if change.leader_after is not None else -1
        )
    return build_state(compiled.problem, replicas, lead)
