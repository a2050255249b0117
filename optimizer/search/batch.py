"""A batch: brokers outside their target range that are looked at side by side, and the changes that each proposes.

`balance` fills a batch and commits its proposals. In between, `relocate` and `leadership` read a placement that does not change. Each
broker of a batch is the centre of a star and trades with its partners. No broker is in two stars, so stars do not affect one another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import by_reference
from optimizer.parameters import BROKERS_A_STAR, KEPT, LEADERSHIPS, MOST_MOVED, MOST_STARS, REPLICAS_A_STAR, WIDEST
from optimizer.placement.state import State
from optimizer.problem import Problem


@by_reference
class Batch(NamedTuple):
    """S stars, B brokers, G goals, n proposals of a star."""

    used: np.ndarray  # int64 [1], how many stars are in use
    goal: np.ndarray  # int64 [G + 1], rows of the goals on loads that count; last entry: how many
    stale: np.ndarray  # uint8 [B], 1 where the scores of the broker are not up to date
    patient: np.ndarray  # int64 [S], 1 where a move waits if a better replica finds no room: another partner may take that
    centre: np.ndarray  # int64 [S], broker rows
    most: np.ndarray  # int64 [S], most replicas that go from one broker of the star to another
    partner: np.ndarray  # int64 [S, WIDEST], broker rows, best first
    partners: np.ndarray  # int64 [S], how many partners
    moves: np.ndarray  # int64 [S], how many moves, or leadership transfers, are proposed
    entry: np.ndarray  # int64 [S, n], moved replicas (partition * R + slot), in order of moves
    place: np.ndarray  # int64 [S, n], index of each in the list of its broker
    target: np.ndarray  # int64 [S, n], broker that each goes to
    gain: np.ndarray  # float64 [S, LEADERSHIPS], gain of each transfer
    leader: np.ndarray  # int64 [S, LEADERSHIPS], replica that is to lead (partition * R + slot)


@by_reference
class Room(NamedTuple):
    """Scratch arrays for one star. B brokers, G goals, C columns, n places of a replica list."""

    factors: np.ndarray  # float64 [n]
    gains: np.ndarray  # float64 [n]
    spare: np.ndarray  # float64 [n]
    small: np.ndarray  # float64 [C + 1, KEPT]
    kept: np.ndarray  # int64 [KEPT]
    entries: np.ndarray  # int64 [KEPT]
    burdens: np.ndarray  # float64 [KEPT], empty without topic goals
    worth: np.ndarray  # float64 [B]
    costs: np.ndarray  # float64 [B, G + 1]
    slopes: np.ndarray  # float64 [B, G], rise of the potential for each unit of load
    steep: np.ndarray  # float64 [G, 6], the least slope, its broker, the second least; the same for the most


def new_batch(problem: Problem, eligible: int, typical: float) -> Batch:
    """An empty batch for so many `eligible` brokers that hold `typical` replicas on average.

    The number of stars depends on the cluster alone, so that the search gives the same plan on any machine. There is only one star for
    few brokers, which would take the best partners from one another; and where brokers have few replicas, or topic goals tie them
    together, so that the order of moves matters much.
    """
    topics, brokers, goals = len(problem.topic_goal) > 0, len(problem.broker), len(problem.goal)
    stars = 1 if topics else max(int(min((eligible / BROKERS_A_STAR) ** 2, typical / REPLICAS_A_STAR, MOST_STARS)), 1)
    moves = 2 * WIDEST * MOST_MOVED
    return Batch(
        np.zeros(1, np.int64), np.zeros(goals + 1, np.int64), np.zeros(brokers, np.uint8),
        np.zeros(stars, np.int64), np.zeros(stars, np.int64), np.zeros(stars, np.int64), np.zeros((stars, WIDEST), np.int64),
        np.zeros(stars, np.int64), np.zeros(stars, np.int64), np.empty((stars, moves), np.int64), np.empty((stars, moves), np.int64),
        np.empty((stars, moves), np.int64),
        np.zeros((stars, LEADERSHIPS)), np.zeros((stars, LEADERSHIPS), np.int64),
    )  # fmt: skip


def new_room(problem: Problem, state: State) -> Room:
    brokers, goals, columns = len(problem.broker), len(problem.goal), problem.vector.shape[2]
    places = max(state.hosted.shape[1] + 1, KEPT)
    burdens = KEPT if len(problem.topic_goal) else 0
    return Room(
        np.zeros(places), np.zeros(places), np.zeros(places), np.zeros((columns + 1, KEPT)),
        np.zeros(KEPT, np.int64), np.zeros(KEPT, np.int64), np.zeros(burdens), np.zeros(brokers), np.zeros((brokers, goals + 1)),
        np.zeros((brokers, goals)), np.zeros((goals, 6)),
    )  # fmt: skip
