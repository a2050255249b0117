"""Replicas that stand elsewhere than at home, listed without a compiler."""

from __future__ import annotations

import numpy as np

from optimizer.problem import COLUMN, FOLLOWING, LEADING, MOVABLE, Problem
from optimizer.search.state import State


def list_by_home(state: State, home: np.ndarray, moved: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """`optimizer.search.strays.list_by_home`."""
    was = home[moved]
    i, s = np.nonzero((was >= 0) & (state.replicas[moved] != was))
    broker = was[i, s]
    starts[1:] += np.bincount(broker, minlength=len(starts) - 1)
    np.cumsum(starts, out=starts)
    return np.asarray((moved[i] * home.shape[1] + s)[np.argsort(broker, kind="stable")])


def by_target(state: State, mine: np.ndarray, brokers: int) -> np.ndarray:
    """`optimizer.search.lump.by_target`."""
    last = mine[::-1]
    p, s = np.divmod(last, state.replicas.shape[1])
    return np.asarray(last[np.argsort(state.replicas[p, s], kind="stable")])


def costs_of_each(problem: Problem) -> np.ndarray:
    """`optimizer.search.lump.costs_of_each`."""
    columns = problem.vector.shape[2]
    if not len(problem.vector):
        return np.full(columns, -1.0)
    one = problem.vector[0, LEADING]
    return np.where([(problem.vector[:, :, c] == one[c]).all() for c in range(columns)], one, -1.0)


def list_present(
    problem: Problem, state: State, linear: np.ndarray, home: np.ndarray, v: int, amounts: np.ndarray, entries: np.ndarray
) -> int:
    """`optimizer.search.strays.list_present`."""
    slots = state.replicas.shape[1]
    here = state.hosted[v, : state.hosts[v]].astype(np.int64)
    here = here[(home.reshape(-1)[here] == v) & (problem.partition[here // slots, MOVABLE] == 1)]
    p, n = here // slots, len(here)
    role = np.where(state.lead[p] == here % slots, LEADING, FOLLOWING)
    amounts[:, :n] = problem.vector[p, role].T[problem.goal[linear, COLUMN]]
    entries[:n] = here
    return n


def list_arrivals(
    problem: Problem, state: State, linear: np.ndarray, home: np.ndarray, v: int, came: np.ndarray, amount: np.ndarray
) -> int:
    """`optimizer.search.chains.list_arrivals`."""
    slots = state.replicas.shape[1]
    here = state.hosted[v, : state.hosts[v]].astype(np.int64)
    was = home.reshape(-1)[here]
    here = here[(was >= 0) & (was != v)]
    here = here[problem.partition[here // slots, MOVABLE] == 1][: len(came)]
    p, n = here // slots, len(here)
    role = np.where(state.lead[p] == here % slots, LEADING, FOLLOWING)
    amount[:, :n] = problem.vector[p, role].T[problem.goal[linear, COLUMN]]
    came[:n] = here
    return n
