"""Many moves from one broker to another without a compiler: `optimizer.search.stars.pour` and what it weighs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import COUNTS_LEADERS, FOLLOWING, LEADING, Problem
from optimizer.search.state import State
from optimizer.search.uncompiled.choices import keep_best
from optimizer.search.uncompiled.lists import gather
from optimizer.search.uncompiled.partitions import may_host
from optimizer.search.uncompiled.scales import Scales

if TYPE_CHECKING:
    from optimizer.search.batch import Batch, Room
    from optimizer.search.shelf import Shelf

NEAR = 48  # candidates


def weigh(problem: Problem, state: State, p: int, s: int, source: int, target: int) -> None:
    """`optimizer.search.stars.weigh`."""
    leads = bool(state.lead[p] == s)
    vector = problem.vector[p, LEADING if leads else FOLLOWING]
    state.load[source] -= vector
    state.load[target] += vector
    if not len(problem.topic_goal):
        return
    column = int(problem.topic_counted[problem.topic[p]])
    for k, goal in enumerate(problem.topic_goal if column >= 0 else ()):
        if leads or goal[COUNTS_LEADERS] == 0:
            state.topic_count[column, source, k] = int(state.topic_count[column, source, k]) - 1
            state.topic_count[column, target, k] = int(state.topic_count[column, target, k]) + 1


def pour(
    problem: Problem, state: State, shelf: Shelf, watched: np.ndarray, source: int, target: int, thrifty: bool, coarse: bool, batch: Batch,
    star: int, room: Room,
) -> None:  # fmt: skip
    """`optimizer.search.stars.pour`: what has gone, or may not go, stays among the candidates with a factor of 0."""
    from optimizer.search.candidates import ANYWAY, KEPT, LEAST_GAIN, topic_burden
    from optimizer.search.stars import COARSE

    slots, topics = state.replicas.shape[1], len(room.burdens) > 0
    n = gather(problem, state, shelf, source, thrifty, room.factors)
    if coarse:
        factors = room.factors[:n]
        np.divide(factors, 1.0 + COARSE * factors, out=factors, where=factors < ANYWAY)
    scales = Scales(problem, watched, source, target)
    block = shelf.vector[source, :, :n].astype(np.float64)[scales.columns]
    keys = scales.falls(state, block)
    keys = np.where(keys > LEAST_GAIN, keys * room.factors[:n], 0.0)
    sent = int(batch.moves[star])
    if source == batch.centre[star] and sent:
        keys[batch.place[star, :sent][batch.target[star, :sent] != source]] = 0.0  # on their way
    found = keep_best(keys, n, 0.0, KEPT, room.kept, room.spare)
    if found == 0:
        return
    kept = room.kept[:found]
    amounts, factors, entries = np.ascontiguousarray(block[:, kept]), room.factors[kept], state.hosted[source, kept].tolist()
    burdens = np.zeros(found)
    moved, most, left = 0, int(batch.most[star]), found
    near: np.ndarray | None = None  # candidates that are weighed after every move (None: all); no other promises more than `beyond`
    beyond, some, factor = 0.0, amounts, factors
    while moved < most:
        gains, keys = _weighed(scales, state, some, factor, burdens if near is None else burdens[near])
        while True:
            best = int(keys.argmax())
            top = keys[best]
            if near is not None and top <= beyond:
                near, some, factor = None, amounts, factors
                gains, keys = _weighed(scales, state, amounts, factors, burdens)
                continue
            if not top > 0.0:
                return
            if np.count_nonzero(keys == top) > 1:
                equal = np.flatnonzero(keys == top).tolist()
                best = min(equal, key=lambda i: entries[i if near is None else near[i]])
            one = best if near is None else int(near[best])
            entry = entries[one]
            p, s = entry // slots, entry % slots
            if topics:  # looked up when it would decide; others of the topic move meanwhile
                burden = topic_burden(problem, state, p, True, bool(state.lead[p] == s), source, target)
                if burden != burdens[one]:
                    gain = gains[best] + (burdens[one] - burden)
                    gains[best], burdens[one] = gain, burden
                    keys[best] = gain * factors[one] if gain > LEAST_GAIN else 0.0
                    continue
            factors[one] = factor[best] = keys[best] = 0.0
            left -= 1
            if may_host(problem, state, p, s, target):
                break
        weigh(problem, state, p, s, source, target)
        batch.entry[star, sent], batch.place[star, sent], batch.target[star, sent] = entry, kept[one], target
        sent += 1
        batch.moves[star] = sent
        moved += 1
        if near is None and left > 2 * NEAR:  # by gains before this move; the potential is convex, so after it none is more
            near, beyond = _nearest(keys)
            some, factor = np.ascontiguousarray(amounts[:, near]), factors[near]


def _weighed(
    scales: Scales, state: State, amounts: np.ndarray, factors: np.ndarray, burdens: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What each of `amounts` gains beyond its burden, and its key; 0 where that is next to nothing."""
    from optimizer.search.candidates import LEAST_GAIN

    gains = scales.falls(state, amounts)
    gains -= burdens
    gains[~(gains > LEAST_GAIN)] = 0.0
    return gains, gains * factors


def _nearest(keys: np.ndarray) -> tuple[np.ndarray, float]:
    """Indices of the `NEAR` largest keys, and the largest of the others."""
    order = np.argpartition(keys, len(keys) - NEAR)
    return order[-NEAR:], float(keys[order[:-NEAR]].max())
