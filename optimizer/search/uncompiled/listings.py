"""Replica lists as they are published, without a compiler: `optimizer.search.record.write_lists`, all first changes of partitions at once,
then all second ones, and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import STATE, Problem

if TYPE_CHECKING:
    from optimizer.search.ledger import Log


def write_lists(
    problem: Problem, log: Log, replicas: np.ndarray, home: np.ndarray, home_lead: np.ndarray, previous: np.ndarray,
    before: np.ndarray, lead_before: np.ndarray, after: np.ndarray, lead_after: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.record.write_lists`."""
    count = int(log.used[1])
    partition = log.partition[:count]
    order = np.argsort(partition, kind="stable")
    fresh = np.append(True, partition[order][1:] != partition[order][:-1])[:count]
    earlier, turn = np.empty(count, np.int64), np.empty(count, np.int64)
    earlier[order] = np.where(fresh, -1, np.append(-1, order[:-1])[:count])
    turn[order] = np.arange(count) - np.maximum.accumulate(np.where(fresh, np.arange(count), 0))
    previous[partition[order]] = order + 1
    for number in range(int(turn.max(initial=-1)) + 1):
        rows = np.flatnonzero(turn == number)
        old = replicas[partition[rows]]
        if number:
            last = earlier[rows]
            before[rows], lead_before[rows], old = after[last], lead_after[last], log.replicas[last]
        p = partition[rows]
        after[rows], lead_after[rows] = _written(
            problem, old, log.replicas[rows], log.lead[rows], before[rows], lead_before[rows], home[p], home_lead[p]
        )


def _written(
    problem: Problem, old: np.ndarray, new: np.ndarray, lead: np.ndarray, before: np.ndarray, was: np.ndarray, home: np.ndarray,
    home_lead: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Lists int64 [n, R] and leader positions after changes of slots from `old` to `new`, led by slot `lead`: from lists `before`, led at
    `was`."""
    every, slots, row = np.arange(len(old)), old.shape[1], before.copy()
    leader = np.where(lead >= 0, new[every, lead], -1)
    led = np.where(was >= 0, before[every, was], -1)
    moved = old != new
    front = (leader >= 0) & ((led != leader) | (moved.any(axis=1) & (problem.broker[leader, STATE] == 0)))
    for s in range(slots):
        for o in range(slots):
            hit = moved[:, s] & (before[:, o] == old[:, s])
            row[hit, o] = new[hit, s]
    place = np.where(front, (row == leader[:, None]).argmax(axis=1), 0)
    shifted = np.where(front, leader, row[:, 0])[:, None]
    for s in range(1, slots):
        shifted = np.column_stack([shifted, np.where(s <= place, row[:, s - 1], row[:, s])])
    row = shifted
    back = (home_lead >= 0) & (leader == home[every, home_lead]) & ((home_lead == 0) | ((was >= 0) & (led == leader)))
    for s in range(slots):
        back &= (row == home[:, s, None]).any(axis=1)
    row[back] = home[back]
    there = (row == leader[:, None]) & (leader >= 0)[:, None]
    return row, np.where(there.any(axis=1), slots - 1 - there[:, ::-1].argmax(axis=1), -1)
