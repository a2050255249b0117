"""Whether a budget ran out, and how to say it. Called by `why`: a budget that has room left is no reason."""

from __future__ import annotations

import numpy as np

from optimizer.options import PlanOptions
from optimizer.placement.state import State
from optimizer.problem import MENDABLE, Compiled
from optimizer.why_words import amount, counted

NOTABLE = 0.05  # of a budget in bytes: what is left of it is told
LAST = 1  # moves: with no more left, a swap does not fit


def budget_text(compiled: Compiled, end: State, options: PlanOptions, waiting: int = 0) -> str | None:
    """Which budget keeps changes out of the plan that leads to `end`; None where none does.

    A budget of bytes has run out when some replica that may move no longer fits into it. `waiting` are actions that a policy leaves.
    """
    if waiting:
        return f"the policy's batch leaves {counted(waiting, 'action')} for the next plan"
    if not options.budgeted:
        return None
    before, after = compiled.replicas, end.replicas
    new = ((after[:, :, None] != before[:, None, :]).all(axis=2) & (after >= 0)).sum(axis=1)
    moves, data = int(new.sum()), float((new * compiled.problem.size).sum())
    if options.max_moves is not None and options.max_moves - moves <= LAST:
        return f"the budget of {counted(options.max_moves, 'replica move')} is used up; a larger budget would continue"
    if options.max_partitions is not None:
        leaders = [
            np.where(s >= 0, r[np.arange(len(s)), np.maximum(s, 0)], -1) for r, s in ((before, compiled.lead), (after, end.lead))
        ]
        changed = int(np.count_nonzero((new > 0) | (leaders[0] != leaders[1])))
        if options.max_partitions - changed <= LAST:
            return f"the budget of {counted(options.max_partitions, 'partition')} is used up; a larger budget would continue"
    if options.max_bytes is not None:
        may = compiled.problem.partition[:, MENDABLE] == 1
        left = options.max_bytes - data
        if left < compiled.problem.size[may].max(initial=0.0):
            used = f"the budget of {amount(options.max_bytes, 'disk')} is used up"
            if left > NOTABLE * options.max_bytes:
                used = f"of the budget of {amount(options.max_bytes, 'disk')}, {amount(left, 'disk')} is left, too little for some replicas"
            return f"{used}; a larger budget would continue"
    return None
