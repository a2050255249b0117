"""One step of bytes: produce, retention, replication, consumption, throttled catch-up.

Vectorized over all partitions. Within a step every broker's bandwidth goes first to producers, then to
in-sync followers, then to consumers, then to replicas that catch up; those that a reassignment adds get at
most the throttle, in and out of each broker. Decides nothing about leaders or ISR; that is the controller's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BoolArray, FloatArray, IntArray
from trimtab.simulator.state import BrokerColumns, LogColumns

CLOSE = 0.5  # bytes: nearer than this to the end of the leader's log is at its end
PASSES = 4
CORES_PER_BYTE_IN = 0.03e-6
CORES_PER_BYTE_OUT = 0.012e-6
IDLE_CORES = 0.05


@dataclass(frozen=True, eq=False)
class Flows:
    """Bytes of one step, float64 [B] by broker row."""

    seconds: float
    produced: FloatArray
    consumed: FloatArray
    followed_in: FloatArray  # replication of every kind
    followed_out: FloatArray
    throttled_in: FloatArray  # the part of it that the throttle governs
    throttled_out: FloatArray


@dataclass(eq=False)
class _Budget:
    """What is left of every broker's bandwidth in this step, bytes [B]."""

    out: FloatArray
    into: FloatArray


def advance(
    brokers: BrokerColumns,
    logs: LogColumns,
    offered: FloatArray,
    seconds: float,
    now_ms: int,
    throttle: float | None,
) -> Flows:
    """Move the bytes of one step that ends at `now_ms`; `offered`, float64 [P], is what producers bring."""
    count = len(brokers.ids)
    budget = _Budget(
        brokers.network_out * brokers.slow_network * seconds,
        np.minimum(brokers.network_in * brokers.slow_network, brokers.disk_write * brokers.slow_disk) * seconds,
    )
    full = logs.disk_used(count) >= brokers.disk
    rows = np.arange(logs.count)
    led = logs.live & (logs.leader >= 0)
    leader_at = np.where(led, logs.host[rows, logs.leader], -1).astype(np.int32)
    serving = led & brokers.up[leader_at]

    takes = serving & ~full[leader_at]
    accepted = _fit(np.where(takes, offered, 0.0), leader_at, budget.into)
    served = rows[serving]
    logs.end += accepted
    logs.position[served, logs.leader[served]] = logs.end[served]
    logs.received[served, logs.leader[served]] += accepted[served]
    logs.start = np.where(serving, np.maximum(logs.start, logs.end - logs.retention), logs.start)

    place = np.arange(logs.host.shape[1])
    follows = (logs.host >= 0) & serving[:, None] & (place != logs.leader[:, None]) & brokers.up[logs.host]
    _clip(logs, follows)
    need = np.where(follows & ~full[logs.host] & ~logs.stalled, logs.end[:, None] - logs.position, 0.0)
    at_row, at_place = np.nonzero(need > 0.0)
    waiting = need[at_row, at_place]
    source, target = leader_at[at_row], logs.host[at_row, at_place]
    in_sync, adding = logs.in_sync[at_row, at_place], logs.adding[at_row, at_place]

    moved = np.zeros(len(waiting))
    _share(waiting, moved, in_sync, source, target, budget)
    consumed = _fit(accepted * logs.consumers, leader_at, budget.out)
    logs.consumed[served, logs.leader[served]] += consumed[served]
    _share(waiting, moved, ~in_sync & ~adding, source, target, budget)
    throttled = ~in_sync & adding
    limit = np.inf if throttle is None else throttle * seconds
    capped = _Budget(np.minimum(budget.out, limit), np.minimum(budget.into, limit))
    _share(waiting, moved, throttled, source, target, capped)

    done = waiting - moved <= CLOSE
    moved[done] = waiting[done]
    logs.position[at_row, at_place] += moved
    logs.position[at_row[done], at_place[done]] = logs.end[at_row[done]]
    logs.received[at_row, at_place] += moved
    sent = np.bincount(at_row, weights=moved, minlength=logs.count)
    logs.replicated[served, logs.leader[served]] += sent[served]
    caught_up = (logs.host >= 0) & (logs.position >= logs.end[:, None] - CLOSE)
    logs.caught_up_ms[caught_up] = now_ms

    def total(amount: FloatArray, at: IntArray) -> FloatArray:
        return np.asarray(np.bincount(at, weights=amount, minlength=count), dtype=np.float64)

    flows = Flows(
        seconds,
        total(accepted[served], leader_at[served]), total(consumed[served], leader_at[served]),
        total(moved, target), total(moved, source),
        total(moved * throttled, target), total(moved * throttled, source),
    )  # fmt: skip
    received, sent_out = flows.produced + flows.followed_in, flows.consumed + flows.followed_out
    brokers.received += received
    brokers.sent += sent_out
    busy = CORES_PER_BYTE_IN * received + CORES_PER_BYTE_OUT * sent_out + IDLE_CORES * seconds
    brokers.cpu_seconds += np.where(brokers.up, busy, 0.0)
    return flows


def _fit(wanted: FloatArray, at: IntArray, left: FloatArray) -> FloatArray:
    """What of `wanted`, [P] bytes at broker rows, each broker's `left` carries, in proportion; `left` is
    reduced."""
    used = wanted > 0.0
    demand = np.bincount(at[used], weights=wanted[used], minlength=len(left))
    ratio = np.minimum(1.0, left / np.where(demand > 0.0, demand, np.inf), where=demand > 0.0, out=np.ones(len(left)))
    got = wanted * np.where(used, ratio[at], 0.0)
    left -= np.minimum(left, demand * ratio)
    return np.asarray(got, dtype=np.float64)


def _share(
    wanted: FloatArray,
    moved: FloatArray,
    chosen: BoolArray,
    source: IntArray,
    target: IntArray,
    budget: _Budget,
) -> None:
    """Let the chosen transfers use the budgets of their source and target in equal shares, small ones done
    first.

    `moved` and `budget` are written to. A few rounds hand what small transfers leave over to large ones.
    """
    index = np.flatnonzero(chosen)
    size = len(budget.out)
    for _ in range(PASSES):
        if not len(index):
            return
        want, a, b = wanted[index] - moved[index], source[index], target[index]
        quota_out = budget.out / np.maximum(np.bincount(a, minlength=size), 1)
        quota_in = budget.into / np.maximum(np.bincount(b, minlength=size), 1)
        step = np.minimum(want, np.minimum(quota_out[a], quota_in[b]))
        moved[index] += step
        np.maximum(budget.out - np.bincount(a, weights=step, minlength=size), 0.0, out=budget.out)
        np.maximum(budget.into - np.bincount(b, weights=step, minlength=size), 0.0, out=budget.into)
        index = index[want - step > CLOSE]


def _clip(logs: LogColumns, follows: BoolArray) -> None:
    """Followers behind the start of the leader's log skip to it; followers beyond its end truncate to it."""
    behind = np.where(follows, np.maximum(logs.start[:, None] - logs.position, 0.0), 0.0)
    logs.skipped += behind
    logs.position += behind
    beyond = np.where(follows, np.maximum(logs.position - logs.end[:, None], 0.0), 0.0)
    logs.truncated += beyond
    logs.position -= beyond
