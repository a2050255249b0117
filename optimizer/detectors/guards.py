"""Whether acting is allowed now, whatever a detector says: brokers that must be there, cooldown, moves per hour. Pure: the time and the
history of what was done come in by parameter, so limits hold across restarts where the history does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from cluster_model.trust import spoken

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Guards:
    """Limits on acting for balance. Repairs (dead and draining brokers, broken hard goals) are not held back by them.

    Attributes
    ----------
    min_brokers
        Active brokers below which nothing is balanced.
    cooldown_ms
        From the end of what was done last.
    moves_per_hour
        Replica moves and changes of leader in any 3600 s; None for no limit.
    """

    min_brokers: int = 2
    cooldown_ms: int = 0
    moves_per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """What was carried out once: when it ended (Unix milliseconds) and how many changes it made."""

    at_ms: int
    moves: int


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether one may act.

    Attributes
    ----------
    open
        True where no guard objects.
    reasons
        Each guard that objects, in a sentence.
    moves_left
        For `PlanOptions.max_moves`; None without a limit.
    wait_ms
        After which time alone opens it; 0 where it is open, or where time does not help.
    """

    open: bool
    reasons: tuple[str, ...]
    moves_left: int | None
    wait_ms: int


def may_act(guards: Guards, snapshot: Snapshot, done: Iterable[Deed], now_ms: int) -> Gate:
    """What the guards say at `now_ms`, given what was done (in any order; older than an hour and the cooldown does not matter)."""
    deeds = sorted(done, key=lambda d: d.at_ms)
    reasons, waits = [], [0]
    active = int(np.count_nonzero(snapshot.broker_states == BrokerState.ACTIVE))
    if active < guards.min_brokers:
        reasons.append(f"{active} active broker{'s' if active != 1 else ''}, at least {guards.min_brokers} are asked for")
    if deeds:
        rest = deeds[-1].at_ms + guards.cooldown_ms - now_ms
        if rest > 0:
            ago = spoken(max(now_ms - deeds[-1].at_ms, 0))
            reasons.append(f"the last changes ended {ago} ago; the cooldown of {spoken(guards.cooldown_ms)} goes on for {spoken(rest)}")
            waits.append(rest)
    left = None
    if guards.moves_per_hour is not None:
        recent = [d for d in deeds if d.at_ms >= now_ms - HOUR_MS]
        made = sum(d.moves for d in recent)
        left = max(guards.moves_per_hour - made, 0)
        if left == 0:
            wait = _until_one_is_free(recent, guards.moves_per_hour, now_ms)
            then = f", the next at {datetime.fromtimestamp((now_ms + wait) / 1000, UTC):%H:%M:%S UTC}" if wait else ""
            reasons.append(f"{made:,} changes in the last hour; {guards.moves_per_hour:,} are allowed{then}")
            waits.append(wait)
    return Gate(not reasons, tuple(reasons), left, max(waits))


def _until_one_is_free(recent: list[Deed], allowed: int, now_ms: int) -> int:
    """Milliseconds until so many deeds have left the hour that one change is allowed; 0 where none ever is."""
    made = sum(d.moves for d in recent)
    for deed in recent:
        made -= deed.moves
        if made < allowed:
            return deed.at_ms + HOUR_MS + 1 - now_ms
    return 0
