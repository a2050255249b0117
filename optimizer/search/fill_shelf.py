"""A shelf filled for all brokers at once, by all threads. Called by `balance` where most brokers will be asked for their replicas."""

from __future__ import annotations

import numpy as np

from optimizer.problem import Problem
from optimizer.search.shelf import Shelf, lay_out
from optimizer.search.state import State
from optimizer.threads import Threads


def fill_shelf(problem: Problem, state: State, shelf: Shelf, threads: Threads) -> None:
    """`lay_out` all partitions, a part in each thread."""
    edges = np.linspace(0, len(state.lead), threads.count + 1).astype(np.int64).tolist()
    if threads.count == 1:
        lay_out(problem, state, shelf, *edges)
    else:
        threads.share(lambda i: lay_out(problem, state, shelf, edges[i], edges[i + 1]), threads.count)
