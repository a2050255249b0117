"""Why a broker would stay outside its target range, or would not be emptied: the proof where there is one, and what would fix it.

Called once per plan with the final state. The proofs come first, each kind of goal in a module of its own; only then "nothing
acceptable was found".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import Goal, Limit, RackAware, TopicGoal, UsageDistribution
from optimizer.found import Found
from optimizer.gain import leaves_trivial
from optimizer.options import PlanOptions
from optimizer.placement.state import State
from optimizer.problem import COLUMN, DISTRIBUTION, FOLLOWING, KIND, LEADING, LIMIT, STATE, Compiled, Problem
from optimizer.why_bands import band_proof
from optimizer.why_blocked import obstacles
from optimizer.why_budget import budget_text
from optimizer.why_emptied import STOPPED, not_emptied
from optimizer.why_held import Held
from optimizer.why_limits import beyond_limit, limit_proof
from optimizer.why_racks import rack_proof
from optimizer.why_sets import not_in_set, stray_entries
from optimizer.why_topics import topic_proof
from optimizer.why_totals import Totals
from optimizer.why_words import counted, few

MOST_LOOKED_AT = 200  # brokers left of which it is said what was in their way; where more are, it is much the same for all


@dataclass(frozen=True, slots=True)
class Left:
    """`text` says why; `by_goal` for each goal alone; `always` that it stands without a violated goal too.

    `proven` are the goals that no plan can bring the broker to, `stuck` that no plan can empty it.
    """

    text: str
    by_goal: Mapping[str, str] = field(default_factory=dict)
    always: bool = False
    proven: frozenset[str] = frozenset()
    stuck: bool = False


def why_left(
    snapshot: Snapshot, compiled: Compiled, end: State, options: PlanOptions, found: Found | None = None, waiting: int = 0,
    because: str | None = None,
) -> dict[int, Left]:  # fmt: skip
    """Broker row -> why it is left, for every eligible broker that scores below 1 or holds replicas of other broker sets, and every one
    that is not emptied.

    Where the search that `found` it was stopped, that is the reason, and nothing is proved: an operator waits, and most are left.
    `waiting` are actions that were found and that a policy leaves for the next plan. `because` says why a plan that does one thing only
    leaves brokers as they are.
    """
    problem = compiled.problem
    stopped, left_out = (found.stopped, found.left_out) if found is not None else (False, None)
    result: dict[int, Left] = {}
    totals, budget = Totals(compiled), because or budget_text(compiled, end, options, waiting)
    states = problem.broker[:, STATE]
    low = (states == BrokerState.ACTIVE)[:, None] & (end.score[:, : len(compiled.goals)] < 1.0)
    leaving = ((states == BrokerState.DRAINING) | (states == BrokerState.DEAD)) & (end.hosts > 0)
    astray = np.zeros(len(states), np.bool_)
    astray[end.replicas.ravel()[stray_entries(compiled, end)]] = True
    for row in np.flatnonzero(low.any(axis=1) | leaving | astray).tolist():
        if leaving[row]:
            text, stuck = not_emptied(snapshot, compiled, end, row, budget, stopped)
            result[row] = Left(text, always=True, stuck=stuck)
            continue
        home = not_in_set(snapshot, compiled, end, row, budget, STOPPED if stopped else None) if astray[row] else ""
        if stopped:
            low_in = [compiled.goals[g].name for g in np.flatnonzero(low[row]).tolist()]
            result[row] = Left(home or STOPPED, dict.fromkeys(low_in, STOPPED), always=bool(home))
            continue
        looking, here = len(result) < MOST_LOOKED_AT, Held(compiled, end, row)
        spared = left_out.reason(options) if left_out is not None and left_out.brokers[row] else None
        reasons_of = {
            compiled.goals[g].name: _reason(snapshot, compiled, totals, end, here, row, g, options, budget or spared, looking)
            for g in np.flatnonzero(low[row]).tolist()
        }
        reasons = {name: text for name, (text, _) in reasons_of.items()}
        text = "; ".join(filter(None, (home, _joined(reasons))))
        proven = frozenset(name for name, (_, sure) in reasons_of.items() if sure)
        result[row] = Left(text, reasons, always=bool(home), proven=proven)
    return result


def _nothing_found(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, g: int, options: PlanOptions, looking: bool
) -> str:
    """Changes that were looked at, and which goals most of them would break."""
    remedies = "a wider bound or other weights could help"
    if options.acceptance == "score":
        remedies = "a wider bound, other weights or --acceptance potential could help"
    if leaves_trivial(compiled):
        remedies = f"a smaller trivial_change, {remedies}"
    text = "no acceptable action was found that would bring it clearly nearer"
    if isinstance(compiled.goals[g], Limit):
        text = f"{beyond_limit(compiled, end, row, g)}; {text}"
    elif isinstance(compiled.goals[g], RackAware):
        return f"{text}; brokers in other racks, or room under their hard limits, could help"
    found = obstacles(snapshot, compiled, end, row, g) if looking and compiled.problem.goal[g, KIND] <= LIMIT else None
    if found is not None:
        parts = [f"{number} would put the other broker outside its target range in {name}" for name, number in found.other.most_common(2)]
        parts += [f"{number} would put this broker outside its target range in {name}" for name, number in found.own.most_common(1)]
        parts += [f"{found.illegal} are against the rack rule, a hard limit or a replica that is there"] if found.illegal else []
        if found.illegal == found.moves:
            of_set = " of its set" if compiled.sets is not None else ""
            remedies = f"brokers{of_set} with room for them, in racks without a replica of the same partition, would help"
        if parts:
            text += f": of the {counted(found.moves, 'move')} that would help most, {', '.join(parts)}"
        if found.nearest is not None:
            text += f"; nearest is {found.nearest}"
    return f"{text}; {remedies}"


def _joined(reasons: Mapping[str, str]) -> str:
    """Reasons of several goals, each reason once."""
    goals: dict[str, list[str]] = {}
    for name, text in reasons.items():
        goals.setdefault(text, []).append(name)
    return "; ".join(f"{few(names)}: {text}" for text, names in goals.items())


def _reason(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, end: State, here: Held, row: int, g: int, options: PlanOptions,
    budget: str | None, looking: bool,
) -> tuple[str, bool]:  # fmt: skip
    """Why broker `row` is left out of goal `g`, and whether that is proven of every plan."""
    doubt = _doubt(compiled, end, row)
    if doubt is not None and compiled.caution is not None and compiled.caution.brokers[row]:
        return doubt, False
    proof = _proof(snapshot, compiled, totals, end, here, row, g, compiled.goals[g])
    if proof is not None:
        # With every partition on every broker, leaderships may still go elsewhere.
        levelled = compiled.problem.goal[g, KIND] == DISTRIBUTION and totals.everywhere
        return proof, not (levelled and _costs_by_role(compiled.problem, g))
    return budget or doubt or _nothing_found(snapshot, compiled, end, row, g, options, looking), False


def _costs_by_role(problem: Problem, g: int) -> bool:
    """Whether leaders cost goal `g`, on a load, another amount than followers."""
    vector = problem.vector[:, :, problem.goal[g, COLUMN]]
    return bool((vector[:, LEADING] != vector[:, FOLLOWING]).any())


def _doubt(compiled: Compiled, end: State, row: int) -> str | None:
    """What is left alone because its numbers cannot be trusted, or it was moved lately, as seen from a broker; None where nothing is."""
    caution = compiled.caution
    if caution is None:
        return None
    rests = int(caution.resting.sum())
    lately = f"left alone are {counted(rests, 'partition')} that were moved lately; more could be done once their cooldown is over"
    if not caution.partitions.any() and not caution.brokers.any():
        return lately
    resources = few(caution.resources)
    if caution.brokers[row]:
        return f"too much of its {resources} is stale or unknown, so it would neither get nor give load for balance until it is measured"
    here = int(caution.partitions[end.hosted[row, : end.hosts[row]] // end.replicas.shape[1]].sum())
    left = [counted(here, "replica") + " of its own"] if here else []
    left += [counted(int(caution.brokers.sum()), "other broker")] if caution.brokers.any() else []
    left = left or [counted(int(caution.partitions.sum()), "partition") + " elsewhere"]
    doubt = f"left alone are {' and '.join(left)} whose {resources} is stale or unknown; more could be done once they are measured"
    return f"{doubt}; {lately}" if rests else doubt


def _proof(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, end: State, here: Held, row: int, g: int, goal: Goal,
) -> str | None:  # fmt: skip
    match goal:
        case UsageDistribution():
            return band_proof(snapshot, compiled, totals, end, here, row, g, goal)
        case Limit():
            return limit_proof(snapshot, compiled, end, here, row, g, goal)
        case RackAware():
            return rack_proof(snapshot, compiled, end, row)
        case TopicGoal():
            return topic_proof(snapshot, compiled, end, row, g)
