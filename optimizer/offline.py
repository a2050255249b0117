"""Partitions that no plan can help: without a live replica, of frozen topics on brokers that go, or without a leader.

Called by `assemble`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from optimizer.columns import offline_partitions
from optimizer.placement.evaluate import Verdict, judge, propose_all
from optimizer.placement.state import State
from optimizer.plan import Skipped
from optimizer.problem import MENDABLE, MOVABLE, STATE, Compiled
from optimizer.why_words import counted, few

MOST_NAMED = 20


def offline_notes(snapshot: Snapshot, compiled: Compiled, end: State, because: str | None = None) -> tuple[Skipped, ...]:
    """Partitions that could not be helped: those without a live replica, of frozen topics on dead or draining brokers, without a leader.
    `because` says why a plan that looks at some changes only, or whose budget ran out, gives no leader."""
    if not snapshot.partition_count:
        return ()
    states = compiled.problem.broker[:, STATE]
    offline = offline_partitions(snapshot)
    cause = "offline: every replica is on a dead broker"
    result = [
        Skipped(f"partition {snapshot.partition_name(int(p))}", f"{cause}; it would stay there")
        for p in np.flatnonzero(offline)[:MOST_NAMED]
    ]
    number = int(np.count_nonzero(offline))
    if number > MOST_NAMED:
        result.append(Skipped(counted(number, "partition"), cause))
    for kind, word in ((BrokerState.DEAD, "dead"), (BrokerState.DRAINING, "draining")):
        held = [end.hosted[b, : end.hosts[b]] // end.replicas.shape[1] for b in np.flatnonzero(states == kind)]
        stuck = np.unique(np.concatenate(held)) if held else np.zeros(0, np.int64)
        stuck = stuck[(compiled.problem.partition[stuck, MENDABLE] == 0) & ~offline[stuck]]
        if len(stuck):
            topics = sorted({snapshot.topics[t] for t in snapshot.partition_topic[stuck]})
            result.append(
                Skipped(
                    f"{counted(len(stuck), 'partition')} of frozen topics on {word} brokers",
                    f"frozen topics never change ({few(topics, 5)}); take them out of constraints.freeze_topics to move them",
                )
            )
    leaderless = np.flatnonzero(end.lead < 0)
    for p in leaderless[~offline[leaderless]][:MOST_NAMED]:
        why = _leaderless(compiled, end, int(p)) or ("" if because else "no acceptable way to give it one was found")
        why = f", and {why}" if why else f": {because}"
        result.append(Skipped(f"partition {snapshot.partition_name(int(p))}", f"no leader{why}"))
    return tuple(result)


def _leaderless(compiled: Compiled, end: State, p: int) -> str:
    """What keeps partition `p` from a leader where the plan ends; empty where nothing does."""
    problem = compiled.problem
    if problem.partition[p, MENDABLE] == 0:
        return "its topic is frozen; take it out of constraints.freeze_topics to give it one"
    heirs = [s for s, b in enumerate(end.replicas[p].tolist()) if b >= 0 and problem.broker[b, STATE] == BrokerState.ACTIVE]
    if not heirs:
        return "no active replica that may lead"
    broken: dict[str, None] = {}
    for slot in heirs:
        made = single(compiled, end, p, slot)
        if made.allowed:
            return ""
        worse = end.fresh[: made.touched, : len(compiled.goals)] < end.score[end.touched[: made.touched], : len(compiled.goals)]
        broken |= {compiled.goals[g].name: None for g in np.flatnonzero(worse.any(axis=0)).tolist() if compiled.goals[g].hard}
    return f"each active replica that may lead would break a hard goal ({few(list(broken))})"


def single(compiled: Compiled, state: State, p: int, lead: int) -> Verdict:
    """The verdict on giving partition `p` the leader in slot `lead`; `state` is left as it was."""
    return judge(compiled.problem, state, propose_all(state, [p], state.replicas[p], [lead]))


def repaired_though_excluded(snapshot: Snapshot, compiled: Compiled, changed: np.ndarray) -> tuple[str, ...]:
    """A note where partitions `changed` (int64 rows) are of excluded topics: only repairs change those, and an operator should know."""
    rule = compiled.problem.partition[changed]
    rows = changed[(rule[:, MOVABLE] == 0) & (rule[:, MENDABLE] == 1)]
    if not len(rows):
        return ()
    topics = sorted({snapshot.topics[t] for t in snapshot.partition_topic[rows]})
    astray = compiled.sets is not None and bool(compiled.sets.astray[snapshot.partition_topic[rows]].any())
    which = "topics that are excluded or in no broker set" if astray else "excluded topics"
    return (
        f"{counted(len(rows), 'partition')} of {which} would change ({few(topics, 5)}): repairs move them off dead and "
        "draining brokers and give them leaders; constraints.freeze_topics is for topics that must never change",
    )
