"""Why a draining or dead broker would not be emptied: offline partitions, excluded topics, and what would find no other broker.

Called by `why`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from optimizer.columns import offline_partitions
from optimizer.options import PlanOptions
from optimizer.problem import MOVABLE, RF, STATE, Compiled
from optimizer.search.state import State
from optimizer.why_hosts import blockers
from optimizer.why_words import counted, few

MOST_LOOKED_AT = 50  # replicas of a broker whose ways off it are looked at one by one
STOPPED = "planning was stopped before it was done; a plan made to the end may mend it"


def not_emptied(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, options: PlanOptions, stopped: bool
) -> str:
    """What keeps the replicas on broker `row`, which is draining or dead; where the search was `stopped`, that."""
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
    return f"{word}, and would still hold {counted(len(partitions), 'replica')}: " + "; ".join(parts)


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
