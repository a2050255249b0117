"""A planning problem as arrays: what the compiled search reads and never writes.

`optimizer.compile` makes one of a snapshot and goals; the kernels in `optimizer.placement` and `optimizer.search` work on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cluster_model.snapshot import BrokerState, FloatArray
from goals.model import Goal
from kernels.compiled import by_reference
from optimizer.caution import Caution
from optimizer.plan import Skipped

if TYPE_CHECKING:
    from optimizer.broker_sets import Sets

DISTRIBUTION, LIMIT, RACK, TOPIC = 0, 1, 2, 3  # kinds of goals
ACTIVE, DRAINING, DEAD, EXCLUDED = map(int, BrokerState)  # states of brokers
NO_RACK_GOAL, SOFT_RACK, HARD_RACK = 0, 1, 2

HINGE = 0.99  # the potential starts to rise a little inside the band, and a little below a soft limit
CENTERING = 3.0  # weight of the sum of squares that prefers the middle of the band
STEEP = 30.0  # of the fourth power beside the square beyond the hinge, so that the worst broker counts most
LEAST_MEASURE = 0.01  # of the average load of a broker: what a smaller mean or limit counts as, in the potential
HARD_WEIGHT = 1e3  # a hard goal in the potential, against a soft one
UNIT_WEIGHT = 1e-3  # one replica too many in a rack, against a squared deviation
MISPLACED = 2000.0  # potential of a broker whose every replica is misplaced by topic: a topic has few ways to be spread, loads many

# Columns of the tables of a `Problem`. Few wide tables keep calls between kernels, and compiling them, cheap.
MOVABLE, RF, RACK_LIMIT, MENDABLE = 0, 1, 2, 3  # partition
LEADING, FOLLOWING = 0, 1  # vector
STATE, RACK_OF, SET_OF = 0, 1, 2  # broker
KIND, COLUMN, HARD, GROUP, ABSOLUTE = 0, 1, 2, 3, 4  # goal
WEIGHT, MIN_LOAD, STRENGTH, SPREAD, TOPIC_BOUND, TOPIC_GAP = 0, 1, 2, 3, 4, 5  # force
MEAN, BOUND, VAR, CEILING, HIGH, LOW, SCALE, MISSED = 0, 1, 2, 3, 4, 5, 6, 7  # table
TOPIC_ROW, COUNTS_LEADERS, LEVELS = 0, 1, 2  # topic_goal
GROUPS, RACK_GOAL, SAME_RACK, SETS, COUNTED = 0, 1, 2, 3, 4  # setting
ANY_NUMBER = 1 << 40  # in the place of the most replicas of a topic: there is no most
ANYWHERE = -1  # in the place of a set of brokers: any


@by_reference
class Problem(NamedTuple):
    """B brokers, P partitions, R replicas at most, C columns of load, G goals, K topic goals, T topics.

    All arrays C-contiguous int64, float64 or what is said. Loads in the resource's unit, on the exact grid.
    """

    broker: np.ndarray  # int64 [B, 3]: state, dense rack (a broker without a rack has its own), set of brokers
    partition: np.ndarray  # int16 [P, 4]: movable, replication factor, replicas allowed in one rack, whether repairs may change it
    topic: np.ndarray  # int32 [P], read-only
    size: np.ndarray  # float64 [P], read-only: bytes a new replica copies
    cost: np.ndarray  # float64 [P], read-only: what moving a replica costs, its bytes and `PlanOptions.move_cost`
    typical: np.ndarray  # float64 [2], its mean, and what a move of no bytes costs
    vector: np.ndarray  # float64 [P, 2, C]: what a leader and a follower cost
    goal: np.ndarray  # int64 [G, 5]: kind, column (row in topic tables for a topic goal), hard, group, absolute tail
    force: np.ndarray  # float64 [G, 6]: weight (0 if hard), min load, strength and spread in the potential, topic bound and gap
    table: np.ndarray  # float64 [B, G, 8]: mean, bound, var, ceiling (inf: none); potential's high, low, scale (0: none); missed for good
    topic_goal: np.ndarray  # int64 [K, 3]: goal row, whether leaders are counted, whether a broker can have too many
    topic_total: np.ndarray  # float64 [K, T], replicas or leaders that eligible brokers share, or have to have at least
    topic_share: np.ndarray  # float64 [K, B + S + 1], each broker's part of it (1, or its capacity); of each set, of all
    topic_first: np.ndarray  # int64 [T + 1], first partition of each topic
    topic_counted: np.ndarray  # int64 [T], column of the topic in the table of counts, -1 where it is not counted
    topic_set: np.ndarray  # int64 [T], set of the brokers that may host it
    setting: np.ndarray  # int64 [5]: goal groups, rack goal, if replicas never leave their rack, if there are broker sets, column of counts


@dataclass(frozen=True)
class Compiled:
    """A `Problem` with the names that belong to its rows."""

    problem: Problem
    goals: tuple[Goal, ...]  # the goals that count, by row
    columns: tuple[str, ...]  # resource of each column
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    means: dict[int, float | None]  # row of a usage distribution goal -> total over eligible brokers
    replicas: np.ndarray  # int64 [P, R], start of a search
    lead: np.ndarray  # int64 [P], slot of the leader, -1 none
    home: np.ndarray  # int64 [P, R], start of the plan, which may search several times
    home_lead: np.ndarray  # int64 [P]
    leading: FloatArray  # [C], what a leader of every partition would cost
    roles: np.ndarray  # int64 [C], partitions of several replicas whose leader costs another amount than a follower
    sets: Sets | None = None  # the broker sets that `topic_set` and `broker` number
    caution: Caution | None = None  # what is left alone: its numbers cannot be trusted, or it was moved lately
