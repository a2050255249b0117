"""Changes of a log as they are published: whole replica lists, brokers in their places, the leader in front.

Called by `rounds`, and by `careful`, which searches without an effort for the last brokers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimizer.problem import Compiled
from optimizer.search.ledger import Log
from optimizer.search.record import write_lists
from optimizer.search.state import Rows


@dataclass(frozen=True)
class Lists:
    """Replica lists (int64 [n, R], broker rows) and leader positions of changes, before and after, in published order."""

    before: Rows
    lead_before: Rows
    after: Rows
    lead_after: Rows


def published_changes(compiled: Compiled, replicas: Rows, lead: Rows, log: Log) -> Lists:
    """Lists of every change of a log in the order they are published, from the lists `replicas` and `lead` of its start.

    Brokers keep their places, a new one takes the place of the one it replaces, and the leader goes to the front, so that
    preferred leader election leaves it in place. A partition that comes back to the brokers and the leader it had when the plan
    began gets the list it had then.
    """
    count = int(log.used[1])
    rows = log.partition[:count]
    before, lead_before = replicas[rows], lead[rows]
    after, lead_after = before.copy(), lead_before.copy()
    write_lists(
        compiled.problem, log, replicas, compiled.replicas, compiled.lead, np.zeros(len(lead), np.int32), before, lead_before, after,
        lead_after,
    )  # fmt: skip
    return Lists(before, lead_before, after, lead_after)
