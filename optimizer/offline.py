"""Partitions that no plan can help: without a live replica, of excluded topics on brokers that go, or without anybody to lead them.

Called by `assemble`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from optimizer.columns import offline_partitions
from optimizer.plan import Skipped
from optimizer.problem import MOVABLE, STATE, Compiled
from optimizer.search.state import State
from optimizer.why_words import counted

MOST_NAMED = 20



def offline_notes(snapshot: Snapshot, compiled: Compiled, end: State) -> tuple[Skipped, ...]:
    """What could not be helped: partitions without a live replica, excluded topics on dead or draining brokers."""
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
        stuck = stuck[(compiled.problem.partition[stuck, MOVABLE] == 0) & ~offline[stuck]]
        if len(stuck):
            topics = sorted({snapshot.topics[t] for t in snapshot.partition_topic[stuck]})
            result.append(
                Skipped(
                    f"{counted(len(stuck), 'partition')} of excluded topics on {word} brokers",
                    f"excluded topics never change ({', '.join(topics[:5])}{' …' if len(topics) > 5 else ''}); include them to move them",
                )
            )
    leaderless = np.flatnonzero(end.lead < 0)
    for p in leaderless[~offline[leaderless]][:MOST_NAMED]:
        result.append(
            Skipped(
                f"partition {snapshot.partition_name(int(p))}",
                "no leader, and no active replica that may lead",
            )
        )
    return tuple(result)
