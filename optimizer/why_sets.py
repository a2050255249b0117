"""Why replicas would stay on brokers of another set than their topic's.

Called by `why` with the final state, and by `explain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cluster_model.snapshot import Snapshot
from optimizer.broker_sets import REST, outside_sets, strays
from optimizer.placement.state import State
from optimizer.problem import ACTIVE, MOVABLE, STATE, Compiled
from optimizer.why_hosts import blockers
from optimizer.why_words import counted, few

if TYPE_CHECKING:
    from optimizer.outcome import Picture

MOST_LOOKED_AT = 50  # replicas of a broker whose ways off it are looked at one by one


def stray_entries(compiled: Compiled, end: State, row: int | None = None) -> np.ndarray:
    """int64: entries of replicas that may move and stand on active brokers of other sets; of broker `row` alone, where it is given."""
    found = strays(compiled.problem, end.replicas)
    return found if row is None else found[end.replicas.ravel()[found] == row]


def told_of_sets(snapshot: Snapshot, compiled: Compiled, start: Picture, end: State) -> tuple[str, ...]:
    """What becomes of the replicas outside each broker set, a sentence a set."""
    if compiled.sets is None:
        return ()
    problem, found = compiled.problem, []
    of, fixed = problem.topic_set[problem.topic], problem.partition[:, MOVABLE] == 0
    before, after = outside_sets(problem, start.replicas), outside_sets(problem, end.replicas)
    for number in range(len(compiled.sets.names)):
        ids = snapshot.broker_ids[compiled.sets.broker == number].tolist()
        mine = of == number
        was, left = int(before[mine].sum()), int(after[mine].sum())
        if not was and (not ids or number == len(compiled.sets.names) - 1):
            continue
        text = f"{compiled.sets.label(number)} ({few([str(b) for b in ids], 8) or 'none'}): {counted(int(mine.sum()), 'partition')}"
        if was:
            text += f"; {counted(was - left, 'replica')} outside would come to it, {left} would stay"
        stay = int(after[mine & fixed].sum())
        found.append(text + (f", {stay} of them of topics that only repairs move" if stay else ""))
    return tuple(found)


def not_in_set(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, budget: str | None, stopped: str | None
) -> str:
    """Why replicas of other sets stay on the active broker `row`. `budget`: the one that ran out; `stopped`: that planning did."""
    entries, slots = stray_entries(compiled, end, row), end.replicas.shape[1]
    homes = {set_name(compiled, p) for p in (entries // slots).tolist()}
    names = sorted(homes - {REST}) + ["topics of no set"] * (REST in homes)
    text = f"would still hold {counted(len(entries), 'replica')} of {few(names)}"
    if stopped is not None:
        return f"{text}: {stopped}"
    reasons: dict[str, int] = {}
    for entry in entries[:MOST_LOOKED_AT].tolist():
        why = _reason(compiled, end, entry // slots, entry % slots) or budget or "no acceptable way was found"
        reasons.setdefault(f"{snapshot.partition_name(entry // slots)}: {why}" if why != budget else why, entry)
    return f"{text}: {'; '.join(list(reasons)[:3])}"


def _reason(compiled: Compiled, end: State, p: int, slot: int) -> str | None:
    """What keeps every broker of its set from taking the replica in `slot` of partition `p`; None where one may."""
    found = blockers(compiled, end, p, slot)
    if found is None:
        return None
    if found:
        allow = "allows" if len(found) == 1 else "allow"
        return f"no broker of its set would take it that {few(found)} {allow}; add one with room to the set"
    return f"{active_words(compiled, p)}, and each holds a replica of it; add a broker to the set"


def set_name(compiled: Compiled, p: int) -> str:
    """What people call the set of partition `p`; empty where it may stand anywhere."""
    number = int(compiled.problem.topic_set[compiled.problem.topic[p]])
    if compiled.sets is None or number < 0:
        return ""
    return compiled.sets.label(number)


def active_words(compiled: Compiled, p: int) -> str:
    """How many active brokers the set of partition `p` has."""
    assert compiled.sets is not None
    problem = compiled.problem
    takers = compiled.sets.takers(int(problem.topic[p])) & (problem.broker[:, STATE] == ACTIVE)
    return f"{set_name(compiled, p)} has {counted(int(takers.sum()), 'active broker')}"
