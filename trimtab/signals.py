"""What signals do: end a process at once, or tell a command that runs until it is told to end.

`serve` and `reporter` hear SIGTERM and Ctrl-C as an event and SIGHUP as a call from before they import anything heavy, so that a signal
in their first second ends them as cleanly as one a week later. Commands that plan end at once while they only load and read.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import NoReturn

Handler = signal.Handlers | Callable[[int, FrameType | None], object] | int | None

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))  # not every system has all
SAME_REQUEST = 3.0  # seconds: a terminal, a script and a supervisor may each send a signal for the one wish that it ends


class Told:
    """What signals said so far.

    Attributes
    ----------
    stop
        Set by the first SIGTERM or SIGINT. Another one after `SAME_REQUEST` ends the process at once.
    by
        Name of the signal that set it first, such as ``SIGTERM``.
    on_hangup
        Called at SIGHUP.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.stop = Event()
        self.by: str | None = None
        self.on_hangup: Callable[[], None] | None = None
        self._clock = clock
        self._since = 0.0

    def ends_at_once(self) -> bool:
        """A wish to end was heard: whether it is a second one, of a person who will not wait."""
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
        told.by = told.by or signal.Signals(number).name
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


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP end the process then and there: for steps that have nothing to put away.

    An exception that a signal raises in the middle of an import may be swallowed by a library, break what it imports, or leave an import
    lock behind for which another thread waits forever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    from trimtab import story, streams  # noqa: F401  # to have them there when the signal comes

    before: dict[int, Handler] = {}

    def end(number: int, frame: FrameType | None) -> None:
        end_now(128 + number, told=False)

    try:
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                before[number] = signal.signal(number, end)
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def end_now(code: int, *, told: bool) -> NoReturn:
    """End the process without another look at anything, and say that it was interrupted unless that was `told`.

    On the usual way out Python may end by the signal after all, once libraries have seen the interrupt.
    """
    try:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        from trimtab.story import asked_for, log, tell
        from trimtab.streams import flush

        if not told:
            tell(asked_for(sys.argv[1:]))
            log.error("interrupted")
        flush()
    finally:  # whatever the signal came in the middle of: what ignores an exception would go on, and hear no other signal
        os._exit(code)
