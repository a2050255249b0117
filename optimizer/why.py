"""Why a broker would stay out of band, or would not be emptied: the proof where there is one, and what would fix it.

Called once per plan with the final state, and by `explain`. The proofs come first (a replica larger than the band, load that may not
move, whole numbers, racks, missing capacity); only then "nothing acceptable was found".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cluster_model.resources import RESOURCES
from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import Capacity, CountLimit, Goal, RackAware, TopicDistribution, UsageDistribution
from optimizer.columns import offline_partitions
from optimizer.options import PlanOptions
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    FOLLOWING,
    HARD,
    HARD_RACK,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MOVABLE,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    RF,
    STATE,
    Compiled,
)
from optimizer.search.hosting import hosts_legally
from optimizer.search.state import State
from optimizer.search.trivial import leaves_trivial
from optimizer.why_blocked import obstacles
from optimizer.why_conflicts import conflict_text
from optimizer.why_topics import topic_proof
from optimizer.why_totals import Totals

MOST_LOOKED_AT = 50  # replicas of a broker whose ways off it are looked at one by one
MOST_PROVED = 200  # brokers with a proof of their own; beyond, in a cluster that far off, a summary does
STOPPED = "planning was stopped before it was done; a plan made to the end may mend it"


@dataclass(frozen=True, slots=True)
class Left:
    """`text` says why; `by_goal` for each goal alone; `always` that it stands without a violated goal too."""

    text: str
    by_goal: Mapping[str, str] = field(default_factory=dict)
    always: bool = False


def why_left(
    snapshot: Snapshot, compiled: Compiled, end: State, options: PlanOptions, stopped: bool = False
) -> dict[int, Left]:
    """Broker row -> why it is left, for every eligible broker that scores below 1 and every one that is not emptied.

    Where the search was `stopped`, that is the reason, and nothing is proved: somebody waits, and most are left.
    """
    problem = compiled.problem
    result: dict[int, Left] = {}
    totals = Totals(compiled)
    states = problem.broker[:, STATE]
    low = (states == BrokerState.ACTIVE)[:, None] & (end.score[:, : len(compiled.goals)] < 1.0)
    leaving = ((states == BrokerState.DRAINING) | (states == BrokerState.DEAD)) & (end.hosts > 0)
    for row in np.flatnonzero(low.any(axis=1) | leaving).tolist():
        if leaving[row]:
            result[row] = _not_emptied(snapshot, compiled, end, row, options, stopped)
            continue
        if stopped:
            low_in = [compiled.goals[g].name for g in np.flatnonzero(low[row]).tolist()]
            result[row] = Left(STOPPED, dict.fromkeys(low_in, STOPPED))
            continue
        proving = len(result) < MOST_PROVED
        reasons = {
            compiled.goals[g].name: _reason(snapshot, compiled, totals, end, row, g, options, proving)
            for g in np.flatnonzero(low[row]).tolist()
        }
        result[row] = Left(_joined(reasons), reasons)
    return result


def _nothing_found(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, g: int, options: PlanOptions, proving: bool
) -> str:
    """What was looked at in vain, and what most of it would break."""
    remedies = "a wider bound or other weights could help"
    if options.acceptance == "score":
        remedies = "a wider bound, other weights or --acceptance potential could help"
    if leaves_trivial(compiled):
        remedies = f"a smaller trivial_change, {remedies}"
    text = "no acceptable action was found that would bring it clearly nearer"
    found = obstacles(snapshot, compiled, end, row, g) if proving and compiled.problem.goal[g, KIND] <= LIMIT else None
    if found is not None:
        parts = [f"{number} would take the other broker out of {name}" for name, number in found.other.most_common(2)]
        parts += [f"{number} this one out of {name}" for name, number in found.own.most_common(1)]
        parts += [f"{found.illegal} are against the rack rule, a hard limit or a replica that is there"] if found.illegal else []
        if parts:
            text += f": of the {counted(found.moves, 'move')} that would help most, {', '.join(parts)}"
        if found.nearest is not None:
            text += f"; nearest is {found.nearest}"
    return f"{text}; {remedies}"


def counted(number: int, noun: str) -> str:
    """``1 replica``, ``1,234 replicas``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def few(names: Sequence[str], most: int = 3) -> str:
    """``a, b``; ``a, b, c and 2 more`` beyond `most`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")



def _budget_text(options: PlanOptions) -> str | None:
    return "the budget is used up; a larger one would go on" if options.budgeted else None


def _joined(reasons: Mapping[str, str]) -> str:
    """Reasons of several goals, each reason once."""
    goals: dict[str, list[str]] = {}
    for name, text in reasons.items():
        goals.setdefault(text, []).append(name)
    return "; ".join(f"{few(names)}: {text}" for text, names in goals.items())


def _reason(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, end: State, row: int, g: int, options: PlanOptions, proving: bool
) -> str:
    doubt = _doubt(compiled, end, row)
    if doubt is not None and compiled.caution is not None and compiled.caution.brokers[row]:
        return doubt
    proof = _proof(snapshot, compiled, totals, end, row, g, compiled.goals[g], options) if proving else None
    return (
        proof
        or _budget_text(options)
        or doubt
        or _nothing_found(snapshot, compiled, end, row, g, options, proving)
    )


def _doubt(compiled: Compiled, end: State, row: int) -> str | None:
    """What is left alone because its numbers cannot be trusted, as seen from a broker; None where nothing is."""
    caution = compiled.caution
    if caution is None:
        return None
    resources = few(caution.resources)
    if caution.brokers[row]:
        return f"too much of its {resources} is stale or unknown, so it would neither gain nor give for balance until it is measured"
    here = int(caution.partitions[end.hosted[row, : end.hosts[row]] // end.replicas.shape[1]].sum())
    left = [counted(here, "replica") + " of its own"] if here else []
    left += [counted(int(caution.brokers.sum()), "other broker")] if caution.brokers.any() else []
    left = left or [counted(int(caution.partitions.sum()), "partition") + " elsewhere"]
    return f"left alone are {' and '.join(left)} whose {resources} is stale or unknown; more could be done once they are measured"


def _proof(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, end: State, row: int, g: int, goal: Goal, options: PlanOptions
) -> str | None:
    match goal:
        case UsageDistribution():
            return _band_proof(snapshot, compiled, totals, end, row, g, goal)
        case Capacity() | CountLimit():
            return _limit_proof(snapshot, compiled, end, row, g, goal, options)
        case RackAware():
            return _rack_proof(snapshot, compiled, end, row)
        case TopicDistribution():
            return topic_proof(snapshot, compiled, end, row, g)


def amount(value: float, resource: str) -> str:
    """A load with its unit, three significant digits."""
    unit = RESOURCES.get(resource, "")
    if unit == "count":
        return f"{value:.4g}"
    if unit.startswith("bytes"):
        for power, name in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
            if abs(value) >= 10**power:
                return f"{value / 10**power:.3g} {name}{unit[5:]}"
        return f"{value:.3g} B{unit[5:]}"
    return f"{value:.3g} {unit}"


def _held(compiled: Compiled, end: State, row: int, g: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Partitions on a broker, what each costs it in the goal's column, and whether it leads."""
    slots = end.replicas.shape[1]
    entries = end.hosted[row, : end.hosts[row]]
    partitions, leads = entries // slots, end.lead[entries // slots] == entries % slots
    vector = compiled.problem.vector[partitions, :, compiled.problem.goal[g, COLUMN]]
    return partitions, np.where(leads, vector[:, LEADING], vector[:, FOLLOWING]), leads


def _band_proof(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, end: State, row: int, g: int, goal: UsageDistribution
) -> str | None:
    problem, resource = compiled.problem, goal.resource
    mean, bound = problem.table[row, g, MEAN], problem.table[row, g, BOUND]
    load = end.load[row, problem.goal[g, COLUMN]]
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    if eligible.sum() == 1:
        return "it is the only eligible broker; add one to share the load"
    tops = problem.table[eligible, g, MEAN] + problem.table[eligible, g, BOUND]
    band = f"{amount(mean - bound, resource)} to {amount(mean + bound, resource)}"
    if RESOURCES[resource] == "count" and math.floor(mean + bound + 1e-9) < math.ceil(mean - bound - 1e-9):
        return f"counts are whole and none lies in its band of {band}; a wider bound would hold one"
    partitions, held, _ = _held(compiled, end, row, g)
    over = load > mean + bound
    if over and len(held):
        largest = int(np.argmax(held))
        name = snapshot.partition_name(int(partitions[largest]))
        if held[largest] > tops.max():
            return (
                f"irreducible: {name} alone is {amount(float(held[largest]), resource)}, above every broker's band "
                f"(up to {amount(float(tops.max()), resource)}); more partitions for the topic would split it"
            )
        fixed = problem.partition[partitions, MOVABLE] == 0
        stuck = float(held[fixed].sum())
        if stuck > mean + bound:
            return f"excluded topics hold {amount(stuck, resource)} on it, above its band of {band}; include some of them"
    if not over:
        fixed_here = float(held[problem.partition[partitions, MOVABLE] == 0].sum()) if len(held) else 0.0
        reach = totals.movable(g) + fixed_here
        if reach < mean - bound:
            return f"all that may move amounts to {amount(reach, resource)}, below its band of {band}; include more topics"
    forced = _rack_share(snapshot, compiled, totals, row, g, goal, over)
    if forced is not None:
        return forced
    if totals.everywhere and resource not in ("leaders", "leader_network_in", "network_out", "cpu"):
        return (
            "the replication factor equals the number of brokers, so each holds every partition; add a broker"
        )
    if compiled.caution is None:
        text = conflict_text(problem, compiled.goals, totals.conflicts.get(row, ()), g, over, amount)
        if text is not None:
            return text
    return _overshadowed(snapshot, compiled, totals, end, row, g, goal, over)


def _rack_share(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, row: int, g: int, goal: UsageDistribution, over: bool
) -> str | None:
    """Whether the hard rack rule forces the share of the broker's rack out of its brokers' bands."""
    problem = compiled.problem
    if problem.setting[RACK_GOAL] != HARD_RACK:
        return None
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    rack = problem.broker[row, RACK_OF]
    members = eligible & (problem.broker[:, RACK_OF] == rack)
    least, most = totals.rack(int(rack), g)
    lows = float((problem.table[members, g, MEAN] - problem.table[members, g, BOUND]).sum())
    highs = float((problem.table[members, g, MEAN] + problem.table[members, g, BOUND]).sum())
    name = snapshot.racks[row] or "its own"
    if over and least > highs:
        return (
            f"the rack rule forces {amount(least, goal.resource)} into rack {name}; the bands of its "
            f"{counted(int(members.sum()), 'broker')} end at {amount(highs, goal.resource)}; add brokers to that rack"
        )
    if not over and most < lows:
        return (
            f"the rack rule lets at most {amount(most, goal.resource)} into rack {name}; the bands of its "
            f"{counted(int(members.sum()), 'broker')} begin at {amount(lows, goal.resource)}; even out the racks"
        )
    return None


def _overshadowed(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, end: State, row: int, g: int, goal: UsageDistribution, over: bool
) -> str | None:
    """Whether replicas above the band elsewhere leave too little for this broker and its like."""
    problem = compiled.problem
    column = problem.goal[g, COLUMN]
    eligible = np.flatnonzero(problem.broker[:, STATE] == BrokerState.ACTIVE)
    giants, held = totals.giants(g)
    if over or not len(giants) or len(giants) >= len(eligible):
        return None
    total = float(end.load[eligible, column].sum())
    rest = (total - held) / (len(eligible) - len(giants))
    if rest < problem.table[row, g, MEAN] - problem.table[row, g, BOUND]:
        name = snapshot.partition_name(int(giants[0]))
        return (
            f"partitions larger than a band ({name}{' and others' if len(giants) > 1 else ''}) leave {amount(rest, goal.resource)} "
            "for each other broker, below the band; more partitions for those topics would help"
        )
    return None


def _limit_proof(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, g: int, goal: Capacity | CountLimit,
    options: PlanOptions,
) -> str | None:  # fmt: skip
    problem = compiled.problem
    column = problem.goal[g, COLUMN]
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    room, total = float(problem.table[eligible, g, CEILING].sum()), float(end.load[eligible, column].sum())
    ceiling = float(problem.table[row, g, CEILING])
    if total > room * (1 + 1e-12):
        return (
            f"all eligible brokers together may hold {amount(room, goal.resource)}, the load is {amount(total, goal.resource)}: "
            f"{amount(total - room, goal.resource)} is missing; add brokers or capacity, or raise the limit"
        )
    partitions, held, _ = _held(compiled, end, row, g)
    if len(held) and held.max() > problem.table[eligible, g, CEILING].max():
        name = snapshot.partition_name(int(partitions[int(np.argmax(held))]))
        return f"{name} alone is {amount(float(held.max()), goal.resource)}, above every broker's limit; split the topic"
    stuck = float(held[problem.partition[partitions, MOVABLE] == 0].sum()) if len(held) else 0.0
    if stuck > ceiling:
        return f"excluded topics hold {amount(stuck, goal.resource)} on it, above its limit of {amount(ceiling, goal.resource)}"
    if options.budgeted:
        return None
    missing = float(end.load[row, column]) - ceiling
    spare = float(np.maximum(problem.table[eligible, g, CEILING] - end.load[eligible, column], 0.0).sum())
    return (
        f"{amount(missing, goal.resource)} above its limit of {amount(ceiling, goal.resource)}; the other brokers' room of "
        f"{amount(spare, goal.resource)} could not be used without breaking another hard goal or splitting a replica"
    )


def _rack_proof(snapshot: Snapshot, compiled: Compiled, end: State, row: int) -> str | None:
    problem = compiled.problem
    slots = end.replicas.shape[1]
    partitions = end.hosted[row, : end.hosts[row]] // slots
    racks = np.where(
        end.replicas[partitions] >= 0, problem.broker[np.maximum(end.replicas[partitions], 0), RACK_OF], -1
    )
    crowded = (racks == problem.broker[row, RACK_OF]).sum(axis=1) > problem.partition[partitions, RACK_LIMIT]
    hit = partitions[crowded]
    if not len(hit):
        return None
    name = snapshot.partition_name(int(hit[0]))
    some = f"{name}{f' and {len(hit) - 1} more' if len(hit) > 1 else ''}"
    if (problem.partition[hit, MOVABLE] == 0).all():
        return f"{some} {'are' if len(hit) > 1 else 'is'} of an excluded topic with too many replicas in a rack; include it"
    states = problem.broker[np.maximum(end.replicas[hit], 0), STATE]
    if ((states == BrokerState.EXCLUDED) & (end.replicas[hit] >= 0)).any():
        return f"{some}: a replica on an excluded broker crowds the rack"
    return f"{some}: no broker of another rack can take a replica; add brokers there, or make room under their hard limits"


def blockers(compiled: Compiled, end: State, p: int, slot: int) -> tuple[str, ...] | None:
    """The hard goals that keep every active broker which holds no replica of partition `p` from taking the one in `slot`.

    None where a broker could take it; empty where there is no such broker.
    """
    problem = compiled.problem
    found: dict[str, None] = {}
    for target in np.flatnonzero(problem.broker[:, STATE] == BrokerState.ACTIVE):
        if target in end.replicas[p]:
            continue
        if hosts_legally(problem, end, p, slot, int(target)):
            return None
        found |= dict.fromkeys(_forbids(compiled, end, p, slot, int(target)))
    return tuple(found)


def _forbids(compiled: Compiled, end: State, p: int, slot: int, target: int) -> list[str]:
    """The hard goals that broker `target` would break with the replica."""
    problem = compiled.problem
    role = LEADING if end.lead[p] == slot else FOLLOWING
    names = []
    for g, goal in enumerate(compiled.goals):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD]:
            load = end.load[target, problem.goal[g, COLUMN]]
            amount_more = problem.vector[p, role, problem.goal[g, COLUMN]]
            if amount_more > 0 and load + amount_more > problem.table[target, g, CEILING]:
                names.append(goal.name)
    racks = [g.name for g in compiled.goals if isinstance(g, RackAware) and g.hard]
    if racks:
        others = [b for s, b in enumerate(end.replicas[p]) if b >= 0 and s != slot]
        same = sum(problem.broker[b, RACK_OF] == problem.broker[target, RACK_OF] for b in others)
        if same >= problem.partition[p, RACK_LIMIT] or not names:
            names = [racks[0], *names]
    return names


def _not_emptied(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, options: PlanOptions, stopped: bool
) -> Left:
    problem = compiled.problem
    slots = end.replicas.shape[1]
    entries = end.hosted[row, : end.hosts[row]]
    partitions = entries // slots
    word = BrokerState(int(problem.broker[row, STATE])).label
    offline = offline_partitions(snapshot)[partitions]
    fixed = (problem.partition[partitions, MOVABLE] == 0) & ~offline
    parts = []
    if offline.any():
        number = int(offline.sum())
        parts.append(f"{counted(number, 'offline partition')} {'has' if number == 1 else 'have'} nothing to copy from")
    if fixed.any():
        number = int(fixed.sum())
        parts.append(f"{counted(number, 'replica')} {'is' if number == 1 else 'are'} of excluded topics; include them")
    waiting = entries[~fixed & ~offline]
    if len(waiting) and stopped:
        parts.append(STOPPED)
    elif len(waiting):
        parts.append(_why_waiting(snapshot, compiled, end, waiting, options))
    return Left(
        f"{word}, and would still hold {counted(len(partitions), 'replica')}: " + "; ".join(parts),
        always=True,
    )


def _why_waiting(
    snapshot: Snapshot, compiled: Compiled, end: State, entries: np.ndarray, options: PlanOptions
) -> str:
    """Why replicas that may move (entries of `hosted`) would stay on a broker that is to be emptied."""
    problem = compiled.problem
    slots = end.replicas.shape[1]
    partitions = entries // slots
    number = counted(len(entries), "replica")
    one = len(entries) == 1
    eligible = int((problem.broker[:, STATE] == BrokerState.ACTIVE).sum())
    needed = int(problem.partition[partitions, RF].max())
    if eligible < needed:
        are = "is" if eligible == 1 else "are"
        return f"{number} would need {needed} brokers and {eligible} {are} eligible; add {needed - eligible}"
    names: dict[str, None] = {}
    blocked = 0
    for p, slot in zip(partitions[:MOST_LOOKED_AT].tolist(), (entries % slots)[:MOST_LOOKED_AT].tolist(), strict=True):
        found = blockers(compiled, end, p, slot)
        if found is not None:
            blocked += 1
            names |= dict.fromkeys(found)
    example = snapshot.partition_name(int(partitions[0])) + ("" if one else " …")
    if blocked < min(len(entries), MOST_LOOKED_AT):
        if options.budgeted:
            return f"{number} {'waits' if one else 'wait'} for a larger budget"
        return f"no acceptable way was found for {number} ({example}); add a broker"
    if not names:
        return f"{number} ({example}) would find no broker without a replica of the same partition; add a broker"
    allow = "allows" if len(names) == 1 else "allow"
    return f"{number} ({example}) would find no broker that {few(list(names))} {allow}; add one with room for {'it' if one else 'them'}"
