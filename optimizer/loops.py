"""Actions that lead back to where the cluster stood before them, which no plan needs.

Rounds of a search see bands a little differently (`optimizer.search.irreducible`), so that a later one may take back what an earlier one
did. Called by `assemble`.
"""

from __future__ import annotations

import numpy as np

from optimizer.actions import ActionTable

Rows = np.ndarray


def without_loops(table: ActionTable) -> ActionTable:
    """The same without actions between two equal placements; `table` itself where there are none.

    Those that stay are as acceptable as before, since each finds the cluster as it did.

    Notes
    -----
    O(changes R). Placements are compared by a sum of marks first, and change by change where these are equal.
    """
    at = np.concatenate([[0], np.cumsum(_marks(table))])[table.first]
    _, name = np.unique(at, return_inverse=True)
    if len(name) == 0 or name.max() + 1 == len(name):
        return table
    last = np.zeros(name.max() + 1, np.int64)
    last[name] = np.arange(len(name))  # of equal ones the last stays
    kept, here = [], 0
    while here < len(name) - 1:
        again = int(last[name[here]])
        if again > here and _is_loop(table, here, again):
            here = again
        else:
            kept.append(here)
            here += 1
    return table if len(kept) == len(name) - 1 else table.rows(np.array(kept, np.int64))


def _marks(table: ActionTable) -> Rows:
    """int64 [changes]: what each adds to the mark of a placement, a sum over partitions that wraps around."""
    changes = table.changes
    before = _mark(changes.partition, changes.before, changes.leader_before)
    return np.asarray(_mark(changes.partition, changes.after, changes.leader_after) - before)


def _mark(partition: Rows, lists: Rows, leader: Rows) -> Rows:
    found = scrambled(partition.astype(np.int64))
    for column in (*lists.T, leader):
        found = scrambled(found + column)
    return found


def scrambled(x: Rows) -> Rows:
    """`kernels.order.scramble` of int64 [n]."""
    z = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)


def _is_loop(table: ActionTable, start: int, stop: int) -> bool:
    """Whether the actions from `start` to before `stop` leave every partition as they found it."""
    changes = table.changes.taken(np.arange(table.first[start], table.first[stop]))
    _, begun = np.unique(changes.partition, return_index=True)
    _, ended = np.unique(changes.partition[::-1], return_index=True)
    ended = len(changes.partition) - 1 - ended
    return bool(
        (changes.before[begun] == changes.after[ended]).all() and (changes.leader_before[begun] == changes.leader_after[ended]).all()
    )
