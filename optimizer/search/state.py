"""The one mutable state of a search: placement, broker loads, replica lists, cached scores.

Only `optimizer.search.commit` changes one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.compiled import by_reference
from optimizer.problem import STATE, Problem
from optimizer.search.parameters import LIST_STEP


@by_reference
class State(NamedTuple):
    """B brokers, P partitions, R replica slots, C columns, G goals, K topic goals.

    A slot keeps its place in the list while brokers change; the published order of a list is made from slots at the end. An
    entry of `hosted` is ``partition * R + slot``.
    """

    replicas: np.ndarray  # int64 [P, R], broker row or -1
    lead: np.ndarray  # int64 [P], slot, -1 none
    home: np.ndarray  # int64 [P, R], where the replicas were when the state was built
    place: np.ndarray  # int32 [P, R], index in `hosted`
    hosted: np.ndarray  # int32 [B, n], first `hosts[b]` of each row
    mark: np.ndarray  # uint8 [B, n], of each entry of `hosted`: LED, STRAY
    hosts: np.ndarray  # int64 [B]
    load: np.ndarray  # float64 [B, C]
    units: np.ndarray  # float64 [K + 1, B], misplaced replicas by topic goal; last row: replicas in over-full racks
    topic_count: np.ndarray  # uint16 [n, B, K], of the topics that are counted: replicas or leaders on each broker, by topic goal
    score: np.ndarray  # float64 [B, G + 1], broker scores; last: the broker's part of the potential
    stamp: np.ndarray  # int64 [B + 1], marks; the last counts
    touched: np.ndarray  # int64 [n], scratch
    row: np.ndarray  # int64 [R], scratch: replicas of a partition that changes
    change: np.ndarray  # int64 [8, R + 2], an action that is asked about: replicas, partition and leader slot of each change
    action: np.ndarray  # float64 [G], scores by goal of the action judged last
    old: np.ndarray  # int64 [8, R + 1], scratch: replicas and leader slot
    units_before: np.ndarray  # float64 [n, K], scratch: `units` of touched brokers
    fresh: np.ndarray  # float64 [n, G + 1], scratch: as `score`
    dirty: np.ndarray  # uint8 [B], 1 where a commit changed the replica list of the broker since the state was built
    trail: np.ndarray  # int64 [n], first how many commits there were since, then their partitions as far as there is room


MAX_CHANGES = 8
LED, STRAY = 1, 2  # the replica leads its partition; it is not where it was when the state was built
COST, RACKS = -1, -1  # last column of `score` and `fresh`, last row of `units`
LEAD, PARTITION = -1, -2  # last columns of `change` and `old`


def list_room(problem: Problem, hosts: np.ndarray, partitions: int, slots: int) -> int:
    """How long replica lists can get; `hosts` int64 [B] is how long they are. Rounded, so that it seldom changes with them."""
    eligible = max(int((problem.broker[:, STATE] == 0).sum()), 1)
    most = int(hosts.max(initial=0))
    roomy = max(most + most // 4, 3 * int(hosts.sum()) // eligible) + 64
    roomy = -(-roomy // LIST_STEP) * LIST_STEP
    room = min(partitions, roomy) if len(hosts) * partitions > 4_000_000 else partitions
    return room + slots  # while slots trade places, a list holds a partition more than once


Rows = npt.NDArray[np.int64]
