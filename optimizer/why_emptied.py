"""Why a draining or dead broker would not be emptied: offline partitions, frozen topics, and replicas that find no other broker.

Called by `why`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from optimizer.columns import offline_partitions
from optimizer.placement.state import State
from optimizer.problem import CEILING, COLUMN, FOLLOWING, HARD, KIND, LEADING, LIMIT, MENDABLE, RF, SET_OF, STATE, Compiled
from optimizer.why_hosts import blockers
from optimizer.why_sets import set_name
from optimizer.why_words import counted, few

MOST_LOOKED_AT = 50  # replicas of a broker whose ways off it are looked at one by one
STOPPED = "planning was stopped before it was done; a plan made to the end may fix it"


def not_emptied(
    snapshot: Snapshot, compiled: Compiled, end: State, row: int, budget: str | None, stopped: bool
) -> tuple[str, bool]:
    """Why replicas stay on broker `row`, which is draining or dead, and whether that is proven of every plan.

    `budget` says which budget ran out, if any, or what else the plan does not do; where the search was `stopped`, that is the reason.
    """
    problem = compiled.problem
    slots = end.replicas.shape[1]
    entries = end.hosted[row, : end.hosts[row]]
    partitions = entries // slots
    word = BrokerState(int(problem.broker[row, STATE])).label
    offline = offline_partitions(snapshot)[partitions]
    fixed = (problem.partition[partitions, MENDABLE] == 0) & ~offline
    parts, proven = [], bool(offline.any() or fixed.any())
    if offline.any():
        number = int(offline.sum())
        parts.append(f"{counted(number, 'offline partition')} {'has' if number == 1 else 'have'} nothing to copy from")
    if fixed.any():
        number = int(fixed.sum())
        are = "is" if number == 1 else "are"
        those = ("it" if number == 1 else "they") if number == len(partitions) else counted(number, "replica")
        parts.append(f"{those} {are} of frozen topics (constraints.freeze_topics), which never change")
    waiting = entries[~fixed & ~offline]
    if len(waiting) and stopped:
        parts.append(STOPPED)
    elif len(waiting):
        text, stuck = _why_waiting(snapshot, compiled, end, waiting, budget, named=not parts)
        parts.append(text)
        proven |= stuck
    return f"{word}, and would still hold {counted(len(partitions), 'replica')}: {'; '.join(parts)}", proven


def _why_waiting(
    snapshot: Snapshot, compiled: Compiled, end: State, entries: np.ndarray, budget: str | None, named: bool = False
) -> tuple[str, bool]:
    """Why replicas that may move (entries of `hosted`) would stay on a broker that is to be emptied, and whether no plan can help. Where
    they are `named` before, a pronoun stands for them."""
    problem = compiled.problem
    slots = end.replicas.shape[1]
    partitions = entries // slots
    one = len(entries) == 1
    it = "it" if one else "them"
    they = ("it" if one else "they") if named else counted(len(entries), "replica")
    hosts = end.replicas[partitions]
    kept = ((hosts >= 0) & (problem.broker[np.maximum(hosts, 0), STATE] == BrokerState.EXCLUDED)).sum(axis=1)
    able, needs = _able(compiled)[problem.topic[partitions]], problem.partition[partitions, RF]
    missing = needs - kept - able
    if (missing > 0).any():
        short = _too_few(compiled, partitions, needs - kept, able, they)
        rest = entries[missing <= 0]
        return f"{short}; {_why_waiting(snapshot, compiled, end, rest, budget)[0]}" if len(rest) else short, True
    full = _too_full(compiled, end)
    names: dict[str, None] = {}
    blocked = 0
    for p, slot in zip(partitions[:MOST_LOOKED_AT].tolist(), (entries % slots)[:MOST_LOOKED_AT].tolist(), strict=True):
        found = blockers(compiled, end, p, slot)
        if found is not None:
            blocked += 1
            names |= dict.fromkeys(found)
    example = snapshot.partition_name(int(partitions[0])) + ("" if one else " …")
    if blocked < min(len(entries), MOST_LOOKED_AT):
        if budget is not None:
            return budget if named else f"{they} {'stays' if one else 'stay'}: {budget}", False
        if full is None:
            return f"no acceptable way was found for {it if named else they} ({example}); add a broker", False
        names = {full: None}
    if not names:
        home = set_name(compiled, int(partitions[0]))
        where = f" of {home}" if home else ""
        return f"{they} ({example}) would find no broker{where} without a replica of the same partition; add a broker", True
    allow = "allows" if len(names) == 1 else "allow"
    told = f"{they} ({example}) would find no broker that {few(list(names))} {allow}"
    if full is None:
        return f"{told} where the plan ends, and the search found no way to make room; one more broker with room for {it} would help", False
    return f"{told}; add one with room for {it}", True


def _too_few(compiled: Compiled, partitions: np.ndarray, needs: np.ndarray, able: np.ndarray, they: str) -> str:
    """What replicas of `partitions` [n] lack that need `needs` [n] active brokers, of which there are `able` [n]; by what most need. `they`
    names all of them."""
    short = np.flatnonzero(needs > able)
    worst = int(short[np.argmax((needs - able)[short])])
    eligible, needed, home = int(able[worst]), int(needs[worst]), set_name(compiled, int(partitions[worst]))
    there = f"no active broker is left{f' of {home}' if home else ''}"
    if eligible:
        there = f"{eligible} {'is' if eligible == 1 else 'are'} eligible{f', those of {home}' if home else ''}"
    most = "up to " if (needs[short] < needed).any() else ""
    those = they if len(short) == len(partitions) else counted(len(short), "replica")
    return f"{those} would need {most}{counted(needed, 'broker')} and {there}; add {needed - eligible}"


def _able(compiled: Compiled) -> np.ndarray:
    """int64 [T]: active brokers that may host each topic."""
    problem = compiled.problem
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    every = np.full(len(problem.topic_set), active.sum())
    if compiled.sets is None:
        return every
    of_set = np.bincount(problem.broker[active & (problem.broker[:, SET_OF] >= 0), SET_OF], minlength=len(compiled.sets.names))
    return np.where(problem.topic_set < 0, every, of_set[problem.topic_set])


def _too_full(compiled: Compiled, end: State) -> str | None:
    """A hard limit under which the replicas that have to leave brokers find no room in any plan; None where none is known.

    No plan lets a broker rise further beyond a limit, so each may hold its limit or its load at the start of the plan.
    """
    problem = compiled.problem
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    slots = end.replicas.shape[1]
    go = np.flatnonzero((problem.broker[:, STATE] == BrokerState.DEAD) | (problem.broker[:, STATE] == BrokerState.DRAINING))
    entries = np.concatenate([end.hosted[b, : end.hosts[b]] for b in go]) if len(go) else np.zeros(0, np.int64)
    entries = entries[problem.partition[entries // slots, MENDABLE] == 1]
    for g in np.flatnonzero((problem.goal[:, KIND] == LIMIT) & (problem.goal[:, HARD] == 1)).tolist():
        column = problem.goal[g, COLUMN]
        least = problem.vector[entries // slots, :, column].min(axis=1).sum()
        load = float(end.load[eligible, column].sum()) + float(least)
        start = start_loads(compiled, column)[eligible]
        if load > np.maximum(problem.table[eligible, g, CEILING], start).sum() * (1.0 + 1e-9):
            return compiled.goals[g].name
    return None


def start_loads(compiled: Compiled, column: int) -> np.ndarray:
    """float64 [B]: the load of every broker in one column before the plan."""
    replicas, vector = compiled.replicas, compiled.problem.vector[:, :, column]
    leads = np.arange(replicas.shape[1])[None, :] == compiled.lead[:, None]
    amounts = np.where(leads, vector[:, [LEADING]], vector[:, [FOLLOWING]])
    held = replicas >= 0
    return np.bincount(replicas[held], weights=amounts[held], minlength=len(compiled.problem.broker))
