"""What people told a cluster, kept in its record of executions for every instance: a pause, and brokers to drain.

Read and written by the commands and the service; the engine takes no step while the cluster is paused. The end of a pause or drain is a
document, too: a record that was lost ends none.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from cluster_model.errors import ExternalError
from trimtab.execution.ledger import DRAIN, PAUSE, Document

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot

S = TypeVar("S", bound="Snapshot")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pause:
    """No plan starts on the cluster, and no further step is taken; `since_ms` is milliseconds of Unix time."""

    who: str
    why: str
    since_ms: int

    def document(self) -> Document:
        return {"who": self.who, "why": self.why, "since_ms": self.since_ms}


def pause_of(told: Mapping[str, Document]) -> Pause | None:
    """The pause of the cluster; None where it is not paused."""
    found = told.get(PAUSE)
    return None if found is None or found.get("off") else Pause(str(found["who"]), str(found.get("why", "")), int(found["since_ms"]))


def drain_key(broker: int) -> str:
    return f"{DRAIN}{broker}"


def drain_document(who: str, since_ms: int) -> Document:
    return {"who": who, "since_ms": since_ms}


def ended(who: str, since_ms: int) -> Document:
    """In the place of a pause or a drain: it is over."""
    return {"who": who, "since_ms": since_ms, "off": True}


def drains_of(told: Mapping[str, Document]) -> dict[int, str]:
    """Brokers that are to host nothing in the end, and who wanted that."""
    found = {k.removeprefix(DRAIN): str(of.get("who", "")) for k, of in told.items() if k.startswith(DRAIN) and not of.get("off")}
    return {int(broker): who for broker, who in sorted(found.items(), key=lambda item: int(item[0]))}


def drained_brokers(bootstrap_server: str, options: Mapping[str, object], cluster_id: str) -> frozenset[int]:
    """Brokers that people told a live cluster to drain. Where that cannot be read it is said, and there are none."""
    from trimtab.execution.shared import SharedRecord

    record = SharedRecord(bootstrap_server, options, cluster_id)
    try:
        return frozenset(drains_of(record.told()))
    except ExternalError as error:
        log.warning("which brokers are being drained is not known, so all are taken for active: %s", error)
        return frozenset()
    finally:
        record.close()


def as_draining(snapshot: S, brokers: Collection[int]) -> S:
    """The same with these brokers draining, where they are active."""
    if not brokers:
        return snapshot
    from cluster_model.snapshot import BrokerState

    rows = [snapshot.row_of_broker[b] for b in sorted(brokers) if b in snapshot.row_of_broker]
    rows = [row for row in rows if snapshot.broker_states[row] == BrokerState.ACTIVE]
    if not rows:
        return snapshot
    states = snapshot.broker_states.copy()
    states[rows] = BrokerState.DRAINING
    return replace(snapshot, broker_states=states)
