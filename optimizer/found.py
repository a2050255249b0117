"""What a search found: rounds of published actions, and where they lead. Made by `search`, read by what chooses, explains and assembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optimizer.placement.log import Log
from optimizer.placement.record import Lists, Record
from optimizer.placement.state import Rows, State

if TYPE_CHECKING:
    from optimizer.gain import LeftOut


@dataclass(frozen=True)
class Round:
    """The actions of one round of search, on the replica lists at its start (broker rows, slots in published order)."""

    replicas: Rows
    lead: Rows
    log: Log
    record: Record
    changes: Lists


@dataclass(frozen=True)
class Found:
    """What a search found, and the state that it leads to (the slots of its lists in no particular order)."""

    rounds: list[Round]
    end: State
    stopped: bool = False  # ended early, because the caller's watch said stop
    left_out: LeftOut | None = None  # parts that gain too little (`optimizer.worth`)
