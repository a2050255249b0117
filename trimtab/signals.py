"""Commands that run until they are told to end: SIGTERM and Ctrl-C as an event, SIGHUP as a call.

Used by `serve` and `reporter` from before they import anything heavy, so that a signal in their first second ends them as cleanly as
one a week later.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

Handler = signal.Handlers | Callable[[int, FrameType | None], object] | int | None

SAME_REQUEST = 3.0  # seconds: a terminal, a script and a supervisor may each send a signal for the one wish that it ends


class Told:
    """What signals said so far.

    Attributes
    ----------
    stop
        Set by the first SIGTERM or SIGINT. Another one after `SAME_REQUEST` ends the process at once.
    on_hangup
        Called at SIGHUP.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.stop = Event()
        self.on_hangup: Callable[[], None] | None = None
        self._clock = clock
        self._since = 0.0

    def ends_at_once(self) -> bool:
        """A wish to end was heard: whether it is a second one, of somebody who will not wait."""
        now = self._clock()
        if self.stop.is_set():
            return now - self._since >= SAME_REQUEST
        self._since = now
        self.stop.set()
        return False


@contextmanager
def signals_heard(*, hangup: bool = False) -> Iterator[Told]:
    """Hear SIGTERM and SIGINT, and SIGHUP where `hangup`; only in the main thread.

    As before afterwards, unless it was told to end: then all is done that was to be done, and a signal that is repeated while Python
    takes its time to end changes no exit code.
    """
    told = Told()
    before: dict[int, Handler] = {}

    def on_end(number: int, frame: FrameType | None) -> None:
        if told.ends_at_once():
            signal.signal(number, before[number])
            signal.raise_signal(number)

    def on_hangup(number: int, frame: FrameType | None) -> None:
        if told.on_hangup is not None:
            told.on_hangup()

    handlers = {signal.SIGTERM: on_end, signal.SIGINT: on_end} | ({signal.SIGHUP: on_hangup} if hangup else {})
    try:
        for number, handler in handlers.items():
            before[number] = signal.signal(number, handler)
        yield told
    finally:
        for caught, former in before.items():
            signal.signal(caught, signal.SIG_IGN if told.stop.is_set() else former)
