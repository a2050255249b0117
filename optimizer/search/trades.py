"""Swaps for the brokers that rounds leave out of band, on a target or as actions of their own.

Called by `rounds`; `barter` finds the swaps.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState
from optimizer.options import PlanOptions
from optimizer.problem import STATE, Problem
from optimizer.search.barter import barter
from optimizer.search.bench import Bench
from optimizer.search.ledger import Budget, Log, empty_log, written
from optimizer.search.polish import polish
from optimizer.search.state import Rows, State

ROOM = 80_000  # changes of replicas on a target
POLISH_ROOM = 20_000  # changes
POLISH_STEPS = 1500  # of annealing, for one attempt
MOST_EXCHANGED = 24  # brokers


def trade(problem: Problem, bench: Bench, replicas: Rows, options: PlanOptions, budget: Budget) -> tuple[Log, State]:
    """Swaps for the brokers that rounds leave out of band, and steps for their topics, from where `bench` stands; as a round does."""
    by_potential = options.acceptance == "potential"
    log, standing = bench.log(replicas.size + POLISH_ROOM), bench.spare(1)
    if barter(problem, standing, budget, log, active(problem), options.seed, by_potential) or len(problem.topic_goal):
        polish(problem, standing, budget, log, options.seed, by_potential, POLISH_STEPS, MOST_EXCHANGED)
    return written(log), standing


def trade_freely(problem: Problem, target: State, seed: int) -> int:
    """Swaps on a target, which are put in order later, by the potential. Returns how many."""
    log = empty_log(target.replicas.shape[1], ROOM)
    unlimited = Budget(np.full(3, -1.0), np.zeros(3), target.home, target.lead, np.zeros(0, np.int64))
    return int(barter(problem, target, unlimited, log, active(problem), seed, True))


def active(problem: Problem) -> Rows:
    """int64 brokers that may take load."""
    return np.flatnonzero(problem.broker[:, STATE] == BrokerState.ACTIVE)
