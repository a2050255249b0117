"""The amount `to_target_counts`: every broker's replica count and leader count to its target, with the fewest moves.

Called by `follow`. Moves come in the order in which the fullest broker is relieved first, so any first part of a plan is of use.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cluster_model.snapshot import BoolArray
from goals.model import RackAware
from optimizer.options import PlanOptions
from optimizer.policies.board import Board, Rows, Step
from optimizer.policies.counts import CountMoves, Placement, count_moves, spread_targets
from optimizer.policies.leaders import FREE, TOUCHED, UNTOUCHED, Led, level_leaders
from optimizer.policies.recording import Evaluator


def to_target_counts(
    board: Board, tolerance: float = 0.0, options: PlanOptions | None = None, guard: int | None = None
) -> list[str]:
    """Make the steps on `board`, as many as the budgets of `options` allow, and `guard` moves at most unless repairs need more; what was
    found, in sentences. Repairs come first: moves off brokers that are to be emptied."""
    leaving = board.leaving
    on_leaving = np.append(leaving, False)[board.lists].any(axis=1)
    placement = Placement(
        replicas=board.lists.copy(),
        movable=np.asarray(board.movable | (on_leaving & board.mendable)),
        takes=board.active,
        leaves=leaving,
        rack=board.rack,
        per_rack=board.per_rack,
        cost=board.compiled.problem.size.astype(np.float64),
    )
    target = spread_targets(placement.counts, placement.takes, placement.leaves, tolerance)
    found = count_moves(placement, target)
    source = board.lists[found.partition, found.slot]
    order = _fullest_first(placement.counts - target, source, leaving)
    order, told = _within(board, found, order, options or PlanOptions(), None if guard is None else max(guard, int(leaving[source].sum())))
    made = replace(found, partition=found.partition[order], slot=found.slot[order], target=found.target[order])
    after = board.lists.copy()
    after[made.partition, made.slot] = made.target
    lead = _leads(board, made, after)
    _make(board, made, lead, placement.counts)
    return [*_sentences(board, found, len(order), np.bincount(after[after >= 0], minlength=len(target))), *told]


def _make(board: Board, made: CountMoves, lead: Rows, counts: Rows) -> None:
    """The steps: replicas first, then leaders by the order of lists alone."""
    for p, slot, new in zip(made.partition.tolist(), made.slot.tolist(), made.target.tolist(), strict=True):
        reason = _reason(board, counts, made.wanted, int(board.lists[p, slot]), new)
        board.make(Step((p,), (board.moved(p, slot, new),), (int(lead[p]),), reason))
    moved = np.zeros(len(lead), np.bool_)
    moved[made.partition] = True
    for p in np.flatnonzero((lead != board.lead) & ~moved).tolist():
        old, new = int(board.leaders[p]), int(board.lists[p, lead[p]])
        reason = f"would even out leaders by the order of the list alone: {board.name(old)} would hand over to {board.name(new)}"
        board.make(Step((p,), (tuple(board.lists[p].tolist()),), (int(lead[p]),), reason))


def _within(board: Board, found: CountMoves, order: Rows, options: PlanOptions, guard: int | None) -> tuple[Rows, list[str]]:
    """The moves of `order` that budgets, the guard and hard goals allow, and what was dropped."""
    told = []
    most = [limit for limit in (options.max_moves, options.max_partitions, guard) if limit is not None]
    kept = order[: min(most)] if most else order
    if options.max_bytes is not None:
        data = np.cumsum(board.compiled.problem.size[found.partition[kept]])
        kept = kept[: int(np.searchsorted(data, options.max_bytes, side="right"))]
    if len(kept) < len(order):
        told.append(f"guard budget: {len(order) - len(kept)} of {len(order)} moves were left out")
    if board.compiled.sets is not None or any(goal.hard and not isinstance(goal, RackAware) for goal in board.compiled.goals):
        allowed, evaluator = [], Evaluator(board.compiled, board.steps)
        for i in kept.tolist():
            p = int(found.partition[i])
            step = Step((p,), (board.moved(p, int(found.slot[i]), int(found.target[i])),), (int(board.lead[p]),), "")
            if evaluator.refusal(step, by_score=False) is None:
                evaluator.make(step)
                allowed.append(i)
        if len(allowed) < len(kept):
            told.append(f"evaluator: {len(kept) - len(allowed)} moves were dropped, a hard goal would get worse or a broker set be left")
        kept = np.array(allowed, np.int64)
    return kept, told


def _leads(board: Board, found: CountMoves, after: Rows) -> Rows:
    """Leader slots after the moves, level."""
    price = np.full(len(board.lead), UNTOUCHED, np.int64)
    price[found.partition] = np.where(board.lead[found.partition] == found.slot, FREE, TOUCHED)
    leads = np.append(board.active, False)
    lead = board.lead.copy()
    stuck = np.append(board.leaving, False)[board.leaders] & board.mendable  # a leader that is to go hands over where it can
    for p in np.flatnonzero(stuck & (price != FREE)).tolist():
        heirs = np.flatnonzero(leads[after[p]] & (after[p] >= 0))
        if len(heirs):
            lead[p], price[p] = heirs[0], FREE
    movable = board.movable | np.asarray(price != UNTOUCHED)
    return level_leaders(Led(after, lead, movable, board.active, price))


def _fullest_first(surplus: Rows, source: Rows, leaving: BoolArray) -> Rows:
    """int64 [n]: the order in which the broker with the largest surplus gives next, after those that are `leaving` (bool [B])."""
    by = np.argsort(source, kind="stable")
    starts = np.searchsorted(source[by], np.arange(len(surplus)))
    given = np.empty(len(source), np.int64)
    given[by] = np.arange(len(source)) - starts[source[by]]
    return np.lexsort((source, given - surplus[source], ~leaving[source]))


def _reason(board: Board, counts: Rows, target: Rows, source: int, new: int) -> str:
    if board.leaving[source]:
        word = "draining" if board.compiled.problem.broker[source, 0] == 1 else "dead"
        return f"would take a replica off {board.name(source)}, which is {word}; {board.name(new)} has too few"
    return (
        f"{board.name(source)} has {counts[source]} replicas and its target is {target[source]}; "
        f"{board.name(new)} has {counts[new]} and its target is {target[new]}"
    )


def _sentences(board: Board, found: CountMoves, made: int, after: Rows) -> list[str]:
    active = board.active
    spread = int(after[active].max() - after[active].min()) if active.any() else 0
    whole = found.proven and made >= found.least
    proof = f"no plan needs fewer than {found.least}" if whole else f"at least {found.least} were needed to reach every target"
    end = f"within {spread} of each other" if spread else "equal"
    told = [f"amount to_target_counts: {made} replica moves ({proof}); replica counts would be {end}"]
    off = np.flatnonzero((after != found.wanted) & (active | board.leaving))
    if len(off):
        names = ", ".join(str(b) for b in board.snapshot.broker_ids[off][:8]) + (" …" if len(off) > 8 else "")
        told.append(
            f"amount to_target_counts: brokers {names} would stay off their targets: budgets, excluded or frozen topics, racks, or one "
            "replaced broker per partition leave no way"
        )
    return told
