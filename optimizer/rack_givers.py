"""How many replicas of crowded racks brokers can give among those that have to leave them anyway: a largest flow.

Called by `optimizer.rack_bounds`. Source: Dinic's algorithm (1970), between brokers, on the partitions that two of them share a rack with.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, whole

Array = np.ndarray


@kernel
def most_given(leave: Array, holder: Array, need: Array) -> int:
    """The most replicas that can leave crowded racks while no broker gives more than it needs to.

    Of group i `leave` int64 [n] have to go, each from another of the brokers `holder` int64 [n, R] (-1: none); `need` int64 [B].

    Notes
    -----
    O(n R) for each length of a chain of brokers that give in one another's place; there are few.
    """
    brokers, count, slots = len(need), holder.shape[0], holder.shape[1]
    starts = np.zeros(brokers + 1, np.int64)
    for i in range(count):
        for s in range(slots):
            if holder[i, s] >= 0:
                starts[holder[i, s] + 1] += 1
    for b in range(brokers):
        starts[b + 1] += starts[b]
    entry, at = np.zeros(starts[brokers], np.int64), starts.copy()
    for i in range(count):
        for s in range(slots):
            if holder[i, s] >= 0:
                entry[at[holder[i, s]]] = i * slots + s
                at[holder[i, s]] += 1
    gives, spare = np.zeros((count, slots), np.uint8), need.copy()
    total = give_first(leave, holder, gives, spare)
    level, queue, path = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64), np.zeros((brokers + 1, 3), np.int64)
    while measure(holder, starts, entry, gives, spare, level, queue):
        for b in range(brokers):
            at[b] = starts[b]
        for b in range(brokers):
            while spare[b] < 0 and pass_one(holder, starts, entry, gives, spare, level, at, path, whole(b)):
                pass
    for b in range(brokers):
        total += min(spare[b], 0)
    return total


@inner
def give_first(leave: Array, holder: Array, gives: Array, spare: Array) -> int:
    """Let those of each group give that can spare most; returns how many replicas that is."""
    total = whole(0)
    for i in range(len(leave)):
        for _ in range(leave[i]):
            best = -1
            for s in range(holder.shape[1]):
                b = holder[i, s]
                if b >= 0 and gives[i, s] == 0 and (best < 0 or spare[b] > spare[holder[i, best]]):
                    best = s
            if best >= 0:
                gives[i, best] = 1
                spare[holder[i, best]] -= 1
                total += 1
    return total


@inner
def measure(holder: Array, starts: Array, entry: Array, gives: Array, spare: Array, level: Array, queue: Array) -> bool:
    """How far brokers are from those that give too much, -1 where they cannot be reached; whether one that can give more is."""
    slots, last, i, found = holder.shape[1], 0, 0, False
    for b in range(len(spare)):
        level[b] = -1
        if spare[b] < 0:
            level[b] = 0
            queue[last] = b
            last += 1
    while i < last:
        b = queue[i]
        i += 1
        for k in range(starts[b], starts[b + 1]):
            row = entry[k] // slots
            if gives[row, entry[k] % slots] == 0:
                continue
            for s in range(slots):
                u = holder[row, s]
                if u >= 0 and gives[row, s] == 0 and level[u] < 0:
                    level[u] = level[b] + 1
                    found = found or spare[u] > 0
                    queue[last] = u
                    last += 1
    return found


@inner
def pass_one(
    holder: Array, starts: Array, entry: Array, gives: Array, spare: Array, level: Array, at: Array, path: Array, first: int
) -> bool:
    """Let a broker that can give more give for one that can, …, that gives for `first`; False where no such chain is left."""
    slots, depth, b = holder.shape[1], 0, first
    while True:
        if depth > 0 and spare[b] > 0:
            spare[first] += 1
            spare[b] -= 1
            for i in range(depth):
                gives[path[i, 1], path[i, 2] // slots] = 0
                gives[path[i, 1], path[i, 2] % slots] = 1
            return True
        to = -1
        while to < 0 and at[b] < starts[b + 1]:
            row, mine = entry[at[b]] // slots, entry[at[b]] % slots
            for s in range(slots if gives[row, mine] == 1 else 0):
                u = holder[row, s]
                if u >= 0 and gives[row, s] == 0 and level[u] == level[b] + 1 and at[u] < starts[u + 1]:
                    to = u
                    path[depth, 0], path[depth, 1], path[depth, 2] = b, row, mine * slots + s
                    break
            if to < 0:
                at[b] += 1
        if to >= 0:
            b = to
            depth += 1
        elif depth == 0:
            return False
        else:
            depth -= 1
            b = path[depth, 0]
