"""A way through loopback that can be cut: what is between a command and its brokers when a network fails.

Used by `KafkaCluster` for listeners that are proxied. Cut, it closes what goes through and lets no client in, until it is mended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

PROXIED = "PROXIED"  # how the listener is called whose clients can be cut off
T = TypeVar("T")


class Proxy:
    """From one port of 127.0.0.1 to another; a thread of its own."""

    def __init__(self, port: int, to: int) -> None:
        self._port, self._to = port, to
        self._cut = False
        self._ways: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._through, "127.0.0.1", port))

    def cut(self) -> None:
        self._call(self._set(cut=True))

    def mend(self) -> None:
        self._call(self._set(cut=False))

    def close(self) -> None:
        self.cut()
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    async def _set(self, *, cut: bool) -> None:
        self._cut = cut
        if cut:
            for way in list(self._ways):
                way.close()

    async def _end(self) -> None:
        self._server.close()
        await asyncio.sleep(0)

    async def _through(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.close()
            return
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        self._ways |= {writer, to_writer}
        await asyncio.gather(self._copy(reader, to_writer), self._copy(to_reader, writer))
        self._ways -= {writer, to_writer}

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()
