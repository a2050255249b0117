"""Brokers out of band that are looked at side by side, and what each proposes.

`balance` fills one and commits what comes of it; in between, `stars` and `leadership` read a placement that nobody changes. A broker of
a batch is the centre of a star: it trades with its partners, and no broker is in two stars, so that stars do not meet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import by_reference
from optimizer.problem import Problem
from optimizer.search.parameters import BROKERS_A_STAR, KEPT, LEADERSHIPS, MOST_MOVED, MOST_STARS, REPLICAS_A_STAR, WIDEST
from optimizer.search.state import State


@by_reference
class Batch(NamedTuple):
    """S stars, B brokers, G goals."""

    used: np.ndarray  # int64 [1], how many there are
    goal: np.ndarray  # int64 [G + 1], rows of the goals on loads that count; last: how many
    stale: np.ndarray  # uint8 [B], 1 where the scores of a broker are not up to date
    patient: np.ndarray  # int64 [S], 1 where the centre waits with small replicas for partners that may take large ones
    centre: np.ndarray  # int64 [S], broker rows
    most: np.ndarray  # int64 [S], replicas that may go from one broker to another
    partner: np.ndarray  # int64 [S, WIDEST], best first
    partners: np.ndarray  # int64 [S], how many
    moves: np.ndarray  # int64 [S], how many moves, or transfers of leadership, are proposed
    entry: np.ndarray  # int64 [S, n], moved replicas (partition * R + slot), in turn
    place: np.ndarray  # int64 [S, n], where they stand in the list of their broker
    target: np.ndarray  # int64 [S, n], where they go
    gain: np.ndarray  # float64 [S, n], of transfers
    leader: np.ndarray  # int64 [S, n], slot that is to lead (partition * R + slot)


@by_reference
class Room(NamedTuple):
    """Room to work on one star. B brokers, G goals, C columns, n places of a replica list."""

    factors: np.ndarray  # float64 [n]
    gains: np.ndarray  # float64 [n]
    spare: np.ndarray  # float64 [n]
    small: np.ndarray  # float64 [C + 1, KEPT]
    kept: np.ndarray  # int64 [KEPT]
    entries: np.ndarray  # int64 [KEPT]
    burdens: np.ndarray  # float64 [KEPT], or nothing where there are no topic goals
    worth: np.ndarray  # float64 [B]
    costs: np.ndarray  # float64 [B, G + 1]
    slopes: np.ndarray  # float64 [B, G], by how much the potential rises with the load
    steep: np.ndarray  # float64 [G, 6], where it does so least and most: how much, at which broker, and next to that


def new_batch(problem: Problem, eligible: int, typical: float) -> Batch:
    """An empty one for so many `eligible` brokers that hold `typical` replicas on average.

    How many stars it takes depends on the cluster alone, so that a search goes the same way on any machine. Few brokers would take the
    best partners from one another, and where each has few replicas, or goals on topics tie them to one another, much hangs on the
    order: there it is one.
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
