"""Many moves from one broker to another without a compiler: `optimizer.search.stars.pour` and what it weighs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import Problem
from optimizer.search.state import State
from optimizer.search.uncompiled.choices import keep_best
from optimizer.search.uncompiled.lists import gather
from optimizer.search.uncompiled.partitions import may_host
from optimizer.search.uncompiled.scales import Scales

if TYPE_CHECKING:
    from optimizer.search.batch import Batch, Room
    from optimizer.search.shelf import Shelf


def pour(
    problem: Problem, state: State, shelf: Shelf, watched: np.ndarray, source: int, target: int, thrifty: bool, coarse: bool, batch: Batch,
    star: int, room: Room,
) -> None:  # fmt: skip
    """`optimizer.search.stars.pour`: what has gone, or may not go, stays among the candidates with a factor of 0."""
    from optimizer.search.candidates import ANYWAY, KEPT, LEAST_GAIN, topic_burden
    from optimizer.search.stars import COARSE, weigh

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
    amounts, factors, entries = np.ascontiguousarray(block[:, kept]), room.factors[kept], state.hosted[source, kept]
    burdens = np.zeros(found)
    moved, most = 0, int(batch.most[star])
    while moved < most:
        gains = scales.falls(state, amounts)
        if topics:
            gains -= burdens
        gains[~(gains > LEAST_GAIN)] = 0.0
        keys = gains * factors
        while True:
            best = int(keys.argmax())
            top = keys[best]
            if not top > 0.0:
                return
            if np.count_nonzero(keys == top) > 1:
                equal = np.flatnonzero(keys == top)
                best = int(equal[np.argmin(entries[equal])])
            entry = int(entries[best])
            p, s = entry // slots, entry % slots
            if topics:  # looked up when it would decide; others of the topic move meanwhile
                burden = topic_burden(problem, state, p, True, bool(state.lead[p] == s), source, target)
                if burden != burdens[best]:
                    gain = gains[best] + (burdens[best] - burden)
                    gains[best], burdens[best] = gain, burden
                    keys[best] = gain * factors[best] if gain > LEAST_GAIN else 0.0
                    continue
            factors[best] = keys[best] = 0.0
            if may_host(problem, state, p, s, target):
                break
        weigh(problem, state, p, s, source, target)
        batch.entry[star, sent], batch.place[star, sent], batch.target[star, sent] = entry, kept[best], target
        sent += 1
        batch.moves[star] = sent
        moved += 1
