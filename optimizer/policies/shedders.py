"""Apache Pulsar's shedders on reported numbers: which units leave which broker, and to whom where that is decided.

Pure; exact on the systems' own examples (tests/cases/policies). Which units leave is `picking`'s, as in `pipeline`, which makes the plans
of snapshots with the conditions of detectors; here conditions and picks stand together as one rule each, with the numbers that a Pulsar
broker reports and Kafka does not have. Ties go to the lowest name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from optimizer.policies.picking import best_fit, heaviest_until, offload

MEBI = 1024.0 * 1024.0
BEYOND = 0.05  # of usage, more than what a broker is over
OVERLOADED, WORTH = 0.85, 10.0 * MEBI
LEAST_RATE, LEAST_BYTES, SLACK = 1000.0, MEBI, 1000.0
NEARLY_NOTHING = 1e-6
CLOSE = 1e-9
AFTER_SWAP = 0.75  # of what the giver carried: below it, it ends


@dataclass(frozen=True, slots=True)
class Load:
    """A unit: messages/s and bytes/s, both ways together. `recent`: unloaded so lately that it stays."""

    name: str
    rate: float = 0.0
    throughput: float = 0.0
    recent: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """A broker: its largest weighted utilization (0..1), messages/s and bytes/s, and what it reports of its units."""

    name: str
    usage: float
    units: tuple[Load, ...] = ()
    rate: float | None = None
    throughput: float | None = None
    age: float = 0.0  # seconds since it reported
    rested: float | None = None  # seconds from when it was last unloaded to that report; None: never

    @property
    def bytes_per_second(self) -> float:
        return sum(u.throughput for u in self.units) if self.throughput is None else self.throughput

    @property
    def messages_per_second(self) -> float:
        return sum(u.rate for u in self.units) if self.rate is None else self.rate


@dataclass(frozen=True, slots=True)
class Shed:
    """A unit that leaves `source`; `target` None is for a placement to find."""

    unit: str
    source: str
    target: str | None = None
    reason: str = ""


def _heaviest(host: Host, amount: float) -> list[Shed]:
    """Units by throughput, heaviest first, until the amount is reached; a sole unit stays, whatever it carries."""
    open_units = [u for u in host.units if not u.recent]
    if len(host.units) < 2:
        return []
    return [Shed(open_units[i].name, host.name) for i in heaviest_until([u.throughput for u in open_units], amount)]


def overload(hosts: Sequence[Host], limit: float = OVERLOADED) -> list[Shed]:
    """Brokers at the limit give what they are over it, and 5 points more."""
    if len(hosts) < 2:
        return []
    return [
        shed
        for host in hosts if host.usage >= limit - CLOSE
        for shed in _heaviest(host, (host.usage - limit + BEYOND) * host.bytes_per_second)
    ]  # fmt: skip


def threshold(hosts: Sequence[Host], margin: float = 0.10, worth: float = WORTH, *, lower_boundary: bool = False) -> list[Shed]:
    """Brokers `margin` above the mean of (smoothed) usage give what they are over that, and 5 points more; less than `worth` stays.

    With `lower_boundary`, where none is and one is as far below the mean, the most used gives half the margin of what it carries.
    """
    if len(hosts) < 2:
        return []
    mean = sum(h.usage for h in hosts) / len(hosts)
    if mean <= 0.0:
        return []
    result = []
    for host in hosts:
        amount = (host.usage - mean - margin + BEYOND) * host.bytes_per_second
        if host.usage >= mean + margin - CLOSE and amount >= worth:
            result += _heaviest(host, amount)
    if not result and lower_boundary and any(h.usage < mean - margin for h in hosts):
        givers = [h for h in hosts if len(h.units) > 1]
        top = max(givers, key=lambda h: h.usage, default=None)
        if top is not None and margin * 0.5 * top.bytes_per_second >= worth:
            return _heaviest(top, margin * 0.5 * top.bytes_per_second)
    return result


@dataclass(frozen=True, slots=True)
class Uniform:
    """Limits of the uniform shedder; one that is not positive is off. `most` None: any number of units."""

    rate_percent: float = 50.0
    ratio: float = 4.0
    share: float = 0.2
    least_rate: float = LEAST_RATE
    least_bytes: float = LEAST_BYTES
    most: int | None = None


def uniform(hosts: Sequence[Host], limits: Uniform | None = None) -> list[Shed]:
    """The busiest broker gives a share of its gap to the idlest: by messages where their rates differ too much, else by bytes."""
    limits = limits or Uniform()
    if len(hosts) < 2:
        return []
    for by_rate in (True, False):
        def value(of: Host | Load, by_rate: bool = by_rate) -> float:
            if isinstance(of, Load):
                return of.rate if by_rate else of.throughput
            return of.messages_per_second if by_rate else of.bytes_per_second

        top, low = max(hosts, key=value), min(hosts, key=value)
        least = value(low) if value(low) > NEARLY_NOTHING else 1.0
        if by_rate:
            fires = limits.rate_percent > 0 and 100.0 * (value(top) - least) / least > limits.rate_percent
        else:
            fires = limits.ratio > 0 and value(top) / least > limits.ratio
        if not fires:
            continue
        required = float(int((value(top) - least) * limits.share))
        if len(top.units) < 2 or required < (limits.least_rate if by_rate else limits.least_bytes):
            return []
        units = [u for u in top.units if not u.recent]
        picked = best_fit([value(u) for u in units], required, SLACK)[: limits.most]
        return [Shed(units[i].name, top.name) for i in picked]
    return []


@dataclass(frozen=True, slots=True)
class Hits:
    """Consecutive checks in which brokers of a pair were apart: low and high hits by broker."""

    low: Mapping[str, int] = field(default_factory=dict)
    high: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Average:
    """Limits of the average shedder; points of usage, hits that act."""

    low: float = 15.0
    high: float = 40.0
    low_hits: int = 8
    high_hits: int = 2
    share: float = 0.5
    least_rate: float = LEAST_RATE
    least_bytes: float = LEAST_BYTES


def ranked_pairs(hosts: Sequence[Host]) -> list[tuple[Host, Host]]:
    """Least used with most used, second with second; one in the middle is alone."""
    order = sorted(hosts, key=lambda h: (h.usage, h.name))
    return [(order[i], order[-1 - i]) for i in range(len(order) // 2)]


def average(hosts: Sequence[Host], hits: Hits | None = None, limits: Average | None = None) -> tuple[list[Shed], Hits]:
    """Pairs that were far enough apart often enough give to each other; and the hits for the next check."""
    limits, hits = limits or Average(), hits or Hits()
    low, high = dict(hits.low), dict(hits.high)
    result: list[Shed] = []
    reached = False
    for idle, busy in ranked_pairs(hosts):
        gap = 100.0 * (busy.usage - idle.usage)
        names = (idle.name, busy.name)
        reached |= gap >= limits.low - CLOSE
        for name in names:
            low[name] = low.get(name, 0) + 1 if gap >= limits.low - CLOSE else 0
            high[name] = high.get(name, 0) + 1 if gap >= limits.high - CLOSE else 0
        if any(high[n] >= limits.high_hits or low[n] >= limits.low_hits for n in names):
            result += _levelled(idle, busy, limits)
            low |= dict.fromkeys(names, 0)
            high |= dict.fromkeys(names, 0)
    return result, Hits(low, high) if reached else Hits()


def _levelled(idle: Host, busy: Host, limits: Average) -> list[Shed]:
    by_rate = (busy.messages_per_second - idle.messages_per_second) * limits.share
    by_bytes = (busy.bytes_per_second - idle.bytes_per_second) * limits.share
    units = [u for u in busy.units if not u.recent]
    if by_rate > limits.least_rate:
        picked = best_fit([u.rate for u in units], by_rate)
    elif by_bytes > limits.least_bytes:
        picked = best_fit([u.throughput for u in units], by_bytes)
    else:
        return []
    return [Shed(units[i].name, busy.name, idle.name) for i in picked]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Limits of the transfer shedder, times in seconds. A broker that reported longer ago than `oldest` is ignored; no broker gives while
    one was unloaded less than `cooldown` before its report. It acts when it would have in more than `hits` checks in a row."""

    target: float = 0.25
    most_pairs: int = 3
    oldest: float = 1800.0
    cooldown: float = 180.0
    hits: int = 3
    overloaded: float = OVERLOADED


@dataclass(frozen=True, slots=True)
class Transferred:
    """What a check of the transfer shedder decides: moves, the spread they lead to, why there are none; and the hits for the next check."""

    sheds: tuple[Shed, ...]
    std: float
    reason: str = ""
    hits: int = 0


def transfer(
    hosts: Sequence[Host], limits: Transfer | None = None, flows: Mapping[str, float] | None = None, hits: int = 0,
    silent: Sequence[str] = (),
) -> Transferred:  # fmt: skip
    """The most used broker gives to the least used half of what they are apart, pair after pair, as long as the spread is above target or
    one stands out; a unit that is too heavy alone is swapped. `flows` are smoothed bytes/s of brokers; without, what they report. `hits`
    are those of the last check, `silent` brokers that are there and have not reported at all.

    What comes back in a swap is always counted (the source counts it in debug mode only).
    """
    limits = limits or Transfer()
    heard = [h for h in hosts if h.age <= limits.oldest]
    if stopped := _stopped(hosts, heard, silent, limits):
        return Transferred((), 0.0, stopped, hits)
    hosts = heard
    if len(hosts) < 2:
        return Transferred((), 0.0)
    order = sorted(hosts, key=lambda h: (h.usage, h.name))
    loads = {h.name: h.usage for h in order}
    mean = float(np.mean([h.usage for h in order]))
    flow = {h.name: h.bytes_per_second for h in order} | dict(flows or {})
    std = float(np.std(list(loads.values())))
    if _condition(loads, flow, mean, order[0].name, order[-1].name, limits) is None:
        return Transferred((), std, "Balanced")
    hits += 1
    if hits <= limits.hits:
        return Transferred((), std, "HitCount", hits)
    if not any(h.units for h in order):
        return Transferred((), std, "NoBundles", hits)
    sheds: list[Shed] = []
    low, high, pairs = 0, len(order) - 1, 0
    while pairs < limits.most_pairs and low < high:
        idle, busy = order[low], order[high]
        reason = _condition(loads, flow, mean, idle.name, busy.name, limits)
        if reason is None:
            break
        high -= 1
        taken, net = _offloaded(idle, busy, loads)
        if not taken:
            continue
        sheds += [replace(shed, reason=reason) for shed in taken]
        shift = net * busy.usage / busy.bytes_per_second
        loads[busy.name] -= shift
        loads[idle.name] += shift
        flow[busy.name] -= net
        flow[idle.name] += net
        low, pairs = low + 1, pairs + 1
    return Transferred(tuple(sheds), float(np.std(list(loads.values()))), *(("", 0) if sheds else ("NoBundles", hits)))


def _stopped(hosts: Sequence[Host], heard: Sequence[Host], silent: Sequence[str], limits: Transfer) -> str:
    """Why nothing is decided at all; empty where something may be."""
    if hosts and not heard:
        return "OutDatedData"
    if any(h.rested is not None and h.rested < limits.cooldown for h in heard):
        return "CoolDown"
    if not heard:
        return "NoBrokers"
    return "NoLoadData" if silent else ""


def _condition(
    loads: Mapping[str, float], flow: Mapping[str, float], mean: float, idle: str, busy: str, limits: Transfer
) -> str | None:
    """Why a pair is to be levelled; None where it is not."""
    if float(np.std(list(loads.values()))) > limits.target:
        return "Overloaded"
    part = min(0.5, max(0.0, limits.target / 2.0))
    if loads[idle] < mean * part or flow[idle] < flow[busy] * part:
        return "Underloaded"
    return "Overloaded" if loads[busy] > limits.overloaded and loads[busy] > mean + limits.target else None


def _offloaded(idle: Host, busy: Host, loads: Mapping[str, float]) -> tuple[list[Shed], float]:
    """Units of `busy`, lightest first, for half of the gap; and how many bytes/s net."""
    whole = busy.bytes_per_second
    if whole <= 0.0 or busy.usage <= 0.0:
        return [], 0.0
    budget = whole * (loads[busy.name] - loads[idle.name]) / 2.0 / busy.usage
    units, there = (sorted(h.units, key=lambda u: u.name) for h in (busy, idle))
    coming = [0.0 if u.recent else u.throughput for u in there]
    stays = [u.recent for u in units]
    picked = offload([u.throughput for u in units], coming, budget, whole, idle.bytes_per_second, stays=stays, below=AFTER_SWAP)
    sheds = [
        shed for i, back in picked
        for shed in (*(Shed(there[j].name, idle.name, busy.name) for j in back), Shed(units[i].name, busy.name, idle.name))
    ]  # fmt: skip
    return sheds, sum(units[i].throughput - sum(coming[j] for j in back) for i, back in picked)
