"""Connections that wait too long for a request, or do not read their answer, are closed, so that no client locks the others out.

Used by `trimtab.http.server`. A new connection always finds room where another one is idle: the one that has been idle for longest is
closed for it, first of the same address. So probes and Prometheus are answered however many connections say nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 512
MOST_OF_ONE = 256  # connections of one address
KEEP_ALIVE = 30  # seconds after an answer for which a connection is kept
SWEEP = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: from the connection to the end of the request's head, and for which an answer may wait for its reader."""

    head: float = 10.0
    reader: float = 30.0


class Connection(H11Protocol):
    """One connection, and since when it is idle: it was made, or its last answer went out."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.idle_since = self.loop.time()
        self._unread: tuple[int, float] = (0, self.idle_since)  # bytes of the answer, and since when they are no less

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        mine = [c for c in self.connections if isinstance(c, Connection)]
        same = [c for c in mine if c.address == self.address]
        for crowd, most in ((same, MOST_OF_ONE), (mine, MOST_CONNECTIONS)):
            if len(crowd) > most:
                _longest_idle(crowd, self).drop()
                return

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def drop(self) -> None:
        """Close at once, and make room at once."""
        self.connections.discard(self)
        self.transport.abort()

    def is_late(self, now: float, patience: Patience) -> bool:
        """Whether it waits too long for a head, or its answer for a reader."""
        if not self.is_busy and now - self.idle_since > (patience.head if self.cycle is None else KEEP_ALIVE + patience.head):
            return True
        size, (before, since) = self.transport.get_write_buffer_size(), self._unread
        if size == 0 or size < before or before == 0:
            self._unread = (size, now)
            return False
        return now - since > patience.reader


def _longest_idle(crowd: Iterable[Connection], otherwise: Connection) -> Connection:
    """The one to close; the new one where no other is idle."""
    idle = [c for c in crowd if not c.is_busy and c is not otherwise]
    return min(idle, key=lambda c: c.idle_since, default=otherwise)


async def sweep(connections: Iterable[object], patience: Patience) -> None:
    """Drop late connections, for ever."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(min(SWEEP, patience.head / 4))
        now = loop.time()
        for connection in [c for c in connections if isinstance(c, Connection)]:
            if connection.is_late(now, patience):
                connection.drop()
