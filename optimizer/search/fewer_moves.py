"""Fewer moves and bytes for the same balance: what a target is worth trying, once what it moved without need is home.

Called by `search` once a target, before its changes are put in order.
"""

from __future__ import annotations

import numpy as np

from optimizer.problem import Problem
from optimizer.search.bench import differing
from optimizer.search.chains import shorten_chains
from optimizer.search.homeward import send_home
from optimizer.search.lump import lump_together
from optimizer.search.merge import largest, merge
from optimizer.search.partners import crowd_of
from optimizer.search.regroup import regroup
from optimizer.search.standing import count_low
from optimizer.search.state import Rows, State
from optimizer.search.substitute import substitute

ALL_ASKED = 20_000  # replicas; of up to so many all brokers are asked every time, which takes milliseconds
LITTLE = 0.005  # of the partitions that a target moves
MUCH = 0.01  # of the partitions that there are


def reduce(problem: Problem, target: State, standing: State, home: Rows, home_lead: Rows) -> None:
    """Take back what `target` moved without need, then let fewer or smaller replicas go in place of others.

    `home` int64 [P, R] and `home_lead` int64 [P] are where the round began; what `standing` has is in order already and stays asked.
    No broker scores lower in any goal for any of it.
    """
    away = len(differing(target.replicas, target.lead, home, home_lead, target))
    moved = differing(target.replicas, target.lead, standing.replicas, standing.lead, target, standing)
    order = moved[np.argsort(-problem.cost[moved], kind="stable")]
    send_home(problem, target, home, home_lead, order)
    level = not count_low(problem, target)  # while a broker is out, the room left in bands may still be needed
    if len(moved) and problem.cost.min() == problem.cost.max():
        save_moves(problem, target, standing, home, home_lead, moved)
    elif level:
        save_bytes(problem, target, home, home_lead, order)
    if level:
        shorten(problem, target, home, home_lead, order, away)


def save_moves(problem: Problem, target: State, standing: State, home: Rows, home_lead: Rows, moved: Rows) -> None:
    """Let one replica go instead of two, or one fewer of several, where all moves cost the same, as with shared storage.

    Where replicas are many, only for brokers between which partitions `moved` (int64) differ in `target` and `standing`: the others were
    asked before, and what the order of actions refused then, it would refuse again.
    """
    few = home.size <= ALL_ASKED
    asked = np.full(len(problem.broker) + 1, few, np.uint8)  # the last one for places beyond a list
    asked[target.replicas[moved]] = asked[standing.replicas[moved]] = 1
    crowd = crowd_of(problem)
    regroup(problem, target, crowd, home, moved)
    before = int(target.trail[0])
    away = differing(target.replicas, target.lead, home, home_lead, target)
    merge(problem, target, crowd, home, away, largest(problem, home), asked[:-1])
    if target.trail[0] < len(target.trail) and not few:
        merged = np.unique(target.trail[1 + before : 1 + target.trail[0]])
    else:
        merged = differing(target.replicas, target.lead, home, home_lead)
    regroup(problem, target, crowd, home, merged)


def save_bytes(problem: Problem, target: State, home: Rows, home_lead: Rows, order: Rows) -> None:
    """Put smaller replicas in the place of large ones; where that is of weight, send home what brokers have room for then."""
    changed = np.zeros(len(problem.broker) + 1, np.uint8)
    if substitute(problem, target, home, order, changed) > LITTLE * len(order):
        at_changed = changed[target.replicas[order]] | changed[home[order]]
        send_home(problem, target, home, home_lead, order[at_changed.any(axis=1)])


def shorten(problem: Problem, target: State, home: Rows, home_lead: Rows, order: Rows, away: int) -> None:
    """Where much moves, let what brokers gave come home where what they took can go on, and one replica go in the place of two.

    `order` are partitions that this target moved, `away` is how many it and those before it did.
    """
    while len(order) > MUCH * len(home) and shorten_chains(problem, target, home, order):
        send_home(problem, target, home, home_lead, order)
    if away > MUCH * len(home):
        lump_together(problem, target, home, order)
