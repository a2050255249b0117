"""The one mutable state of a search: placement, broker loads, replica lists, cached scores.

Operators change the placement only through `optimizer.placement.commit`; `optimizer.placement.restore` copies one state to another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.compiled import by_reference, part
from optimizer.parameters import LIST_STEP
from optimizer.problem import ACTIVE, DEAD, DRAINING, STATE, Problem


@by_reference
class State(NamedTuple):
    """Placement and sums of B brokers, P partitions, R replica slots, C columns of load, G goals and K topic goals.

    A replica keeps its slot while its broker changes; the published order of replicas is made from the slots at the end. An entry of
    `hosted` is ``partition * R + slot``.
    """

    replicas: np.ndarray  # int64 [P, R], broker row or -1
    lead: np.ndarray  # int64 [P], slot of the leader, -1 none
    home: np.ndarray  # int64 [P, R], `replicas` when the state was built or restored
    place: np.ndarray  # int32 [P, R], index of the replica in the row of its broker in `hosted`
    hosted: np.ndarray  # int32 [B, n], entries of the replicas on each broker: the first `hosts[b]` of each row
    mark: np.ndarray  # uint8 [B, n], flags of each entry of `hosted`: LED, STRAY
    hosts: np.ndarray  # int64 [B], number of replicas on each broker
    load: np.ndarray  # float64 [B, C]
    units: np.ndarray  # float64 [K + 1, B], misplaced replicas or leaders by topic goal; last row: replicas in over-full racks
    topic_count: np.ndarray  # uint16 [n, B, K], of each counted topic: replicas or leaders on each broker, by topic goal
    score: np.ndarray  # float64 [B, G + 1], broker scores; last: the broker's part of the potential
    stamp: np.ndarray  # int64 [B + 1], number of the last action that touched each broker; last: the current number
    touched: np.ndarray  # int64 [n], scratch: brokers that the action touches
    row: np.ndarray  # int64 [R], scratch: new replicas of a partition
    change: np.ndarray  # int64 [8, R + 2], the action to judge: replicas, partition and leader slot of each change
    action: np.ndarray  # float64 [G], scores of the action that was judged last, by goal
    old: np.ndarray  # int64 [8, R + 1], scratch: replicas and leader slot before each change
    units_before: np.ndarray  # float64 [n, K], scratch: `units` of touched brokers before the action
    fresh: np.ndarray  # float64 [n, G + 1], scratch: `score` of touched brokers after the action
    dirty: np.ndarray  # uint8 [B], 1 where a commit changed the list of the broker since the state was built or restored
    trail: np.ndarray  # int64 [n], first the number of commits since then, after it their partitions, as far as there is room


MAX_CHANGES = 8
LED, STRAY = 1, 2  # the replica leads its partition; it is not on its broker of `home`
COST, RACKS = -1, -1  # last column of `score` and `fresh`, last row of `units`
LEAD, PARTITION = -1, -2  # last columns of `change` and `old`


@part
def is_active(problem: Problem, b: int) -> bool:
    """Whether broker `b` may take replicas and leaderships."""
    return bool(problem.broker[b, STATE] == ACTIVE)


@part
def is_leaving(problem: Problem, b: int) -> bool:
    """Whether all replicas have to leave broker `b`, because it is dead or draining."""
    return bool(problem.broker[b, STATE] == DRAINING or problem.broker[b, STATE] == DEAD)


def list_room(problem: Problem, hosts: np.ndarray, partitions: int, slots: int) -> int:
    """Entries to reserve for each replica list; `hosts` int64 [B] are their lengths. Rounded, so that it seldom changes with them."""
    eligible = max(int((problem.broker[:, STATE] == ACTIVE).sum()), 1)
    most = int(hosts.max(initial=0))
    roomy = max(most + most // 4, 3 * int(hosts.sum()) // eligible) + 64
    roomy = -(-roomy // LIST_STEP) * LIST_STEP
    room = min(partitions, roomy) if len(hosts) * partitions > 4_000_000 else partitions
    return room + slots  # while replicas of a partition trade slots, a list holds the partition more than once


Rows = npt.NDArray[np.int64]
