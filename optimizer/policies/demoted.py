"""A plan that takes leaderships off brokers, as for a slow one: its followers lead in its place, and no byte is copied.

Called by the service for slow brokers, and by `trimtab plan --demote-broker`. Pure. Source: ours, and Cruise Control's demotion of brokers.
The heaviest partitions are handed over first, each to the least loaded broker that has a replica of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState, Snapshot
from goals.model import GoalSet
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.policies.board import Board, Rows, Step
from optimizer.policies.profiles import broker_scores, weights_of
from optimizer.policies.recording import Evaluator, plan_of
from optimizer.problem import MOVABLE
from optimizer.whatif import apply_whatifs, movable_topics
from optimizer.why_words import few

NOTE = "the plan takes leaderships off brokers, which copies nothing, and does nothing else"
ALONE = "this plan takes leaderships off brokers and does nothing else; a plan of the whole cluster may fix it"


def to_demote(snapshot: Snapshot, goals: GoalSet, brokers: Collection[int]) -> int:
    """How many partitions `brokers` lead that another replica can lead, on an active broker that is none of them."""
    rows = [snapshot.row_of_broker[b] for b in brokers]
    may_lead = np.append(snapshot.broker_states == BrokerState.ACTIVE, False)
    may_lead[rows] = False
    movable = movable_topics(snapshot, goals.constraints, PlanOptions())[snapshot.partition_topic]
    return int((np.isin(snapshot.leader, rows) & may_lead[snapshot.replicas].any(axis=1) & movable).sum())


def demoted(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, brokers: Mapping[int, str]) -> Plan:
    """The plan by which followers lead what `brokers` lead; deterministic in all its arguments.

    Parameters
    ----------
    brokers
        Wire id -> why, for people.

    Raises
    ------
    ConfigurationError
        The options do not fit the snapshot (see `apply_whatifs`).

    Notes
    -----
    Actions need not score above 0.5; none makes a hard goal worse. Topics that are excluded or frozen are left alone, and partitions
    without another replica on an active broker. O(replicas).
    """
    imagined = apply_whatifs(snapshot, goals, options)
    compiled = compile_problem(imagined, goals, options)
    board, evaluator = Board.of(imagined, compiled), Evaluator(compiled)
    rows = [board.snapshot.row_of_broker[b] for b in sorted(brokers)]
    own = np.isin(board.leaders, rows) & (compiled.problem.partition[:, MOVABLE] == 1)
    may_lead = board.active.copy()
    may_lead[rows] = False
    lead = _heirs(board, own, may_lead)
    kept: dict[str, list[str]] = {}
    for p in np.flatnonzero(own & (lead < 0)).tolist():
        kept.setdefault("no other replica is on an active broker that is to lead", []).append(board.snapshot.partition_name(p))
    for p in np.flatnonzero(own & (lead >= 0)).tolist():
        if options.max_partitions is not None and len(board.steps) >= options.max_partitions:
            kept.setdefault("the budget ends before them", []).append(board.snapshot.partition_name(p))
            continue
        old, new = int(board.leaders[p]), int(board.lists[p, lead[p]])
        why = brokers[int(board.snapshot.broker_ids[old])]
        reason = f"{board.name(new)} would lead in place of {board.name(old)}: {why}"
        step = Step((p,), (tuple(board.lists[p].tolist()),), (int(lead[p]),), reason)
        refusal = evaluator.refusal(step, by_score=False)
        if refusal is None:
            evaluator.make(step)
            board.make(step)
        else:
            kept.setdefault(refusal, []).append(board.snapshot.partition_name(p))
    notes = [NOTE, *(f"broker {b}: {why}" for b, why in sorted(brokers.items()))]
    notes += [f"{_keep(names)}: {why}" for why, names in kept.items()]
    return plan_of(snapshot, board, goals, options, {"demotes": sorted(brokers)}, notes, because=ALONE)


def _keep(names: list[str]) -> str:
    keep = "1 partition keeps its leader" if len(names) == 1 else f"{len(names):,} partitions keep their leaders"
    return f"{keep} ({few(names)})"


def _heirs(board: Board, own: BoolArray, may_lead: BoolArray) -> Rows:
    """int64 [P]: the slot that is to lead each partition of `own`, -1 where none can; others as they are."""
    snapshot, weights = board.snapshot, weights_of(board.snapshot)
    kind = {"bytes/s": "throughput", "requests/s": "rate"}.get(weights.unit, "leaders")
    load = broker_scores(kind, snapshot, GoalSet(()))
    weight = weights.leading - weights.following if kind != "leaders" else np.ones(len(own))
    usable = np.append(may_lead, False)
    lead = np.where(own, -1, board.lead)
    rows = np.flatnonzero(own)
    for p in rows[np.argsort(-weight[rows], kind="stable")].tolist():
        slots = np.flatnonzero(usable[board.lists[p]])
        if len(slots):
            heir = int(slots[np.argmin(load[board.lists[p, slots]])])
            lead[p] = heir
            load[board.lists[p, heir]] += weight[p]
    return lead
