"""A supervised thread of the service: takes turns, says that it lives, and says what stops it.

Made by `trimtab.service.balancer`. What cannot be reached for now is tried again with growing pauses, and told; anything that
no code foresaw ends the thread, and is told for good: a service is never silently idle. Tests call `once` and need no thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Thread

from cluster_model.errors import ExternalError, TrimtabError
from metrics_reporter.reporter import Clock
from metrics_reporter.topic import TopicError
from trimtab.service.views import WorkerView

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between attempts that fail
SLICE = 1.0  # seconds: so often a worker that waits says that it lives
STALLED_AFTER = 60.0  # seconds without a sign of life
REMIND = 300.0  # seconds between two tellings of the same trouble

Turn = Callable[[], float]
"""Does one turn and says how many seconds to wait before the next."""


class Worker:
    """A thread that takes turns until it is stopped.

    Parameters
    ----------
    turn
        Raises `ExternalError` or `TopicError` where something cannot be reached, another `TrimtabError` where a person
        has to mend something; both are tried again.
    ended
        Called in the thread after its last turn.
    stalled_after
        Seconds without a sign of life from which on it counts as stuck; a callable, since it may change.
    """

    def __init__(
        self,
        name: str,
        turn: Turn,
        clock: Clock,
        *,
        ended: Callable[[], None] = lambda: None,
        stalled_after: Callable[[], float] = lambda: STALLED_AFTER,
    ) -> None:
        self.name = name
        self._turn, self._ended, self._clock, self._stalled_after = turn, ended, clock, stalled_after
        self._stop, self._woken = Event(), Event()
        self._thread: Thread | None = None
        self._beat = clock.monotonic()
        self._pause = 0.0
        self._failures = 0
        self._told: tuple[str, float] | None = None
        self.error: str | None = None
        self.hindered = False  # by something that waiting does not mend
        self.dead = False

    # -- life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread = Thread(target=self._run, name=f"trimtab-{self.name}", daemon=True)
        self.beat()
        self._thread.start()

    def ask_to_stop(self) -> None:
        self._stop.set()
        self._woken.set()

    def join(self, seconds: float) -> bool:
        """Whether the thread has ended, at the latest after so long."""
        if self._thread is None:
            return True
        self._thread.join(max(seconds, 0.0))
        return not self._thread.is_alive()

    def wake(self) -> None:
        """Have the next turn at once, unless it waits out a failure."""
        if not self._pause:
            self._woken.set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def beat(self) -> None:
        """A sign of life; long turns give one now and then."""
        self._beat = self._clock.monotonic()

    def once(self) -> float:
        """One turn; the seconds to wait before the next. Never raises."""
        self.beat()
        try:
            wait = self._turn()
        except (TrimtabError, TopicError) as error:
            mends = isinstance(error, TopicError) or (isinstance(error, ExternalError) and error.retriable)
            return self._failed(str(error), mends)
        except Exception as error:
            self.dead = True
            self.error = f"ended by a bug, {type(error).__name__}: {error}; restart the service, and please report it"
            log.error("the thread %s: %s", self.name, self.error, exc_info=True)
            return 0.0
        if self._told is not None:
            log.info("%s: goes on again", self.name)
        self.error, self.hindered, self._pause, self._failures, self._told = None, False, 0.0, 0, None
        self.beat()
        return wait

    def _failed(self, message: str, mends: bool) -> float:
        self.error, self.hindered = message, not mends
        self._failures += 1
        self._pause = min(FIRST_PAUSE * 2 ** (self._failures - 1), LONGEST_PAUSE)
        now = self._clock.monotonic()
        if self._told is None or self._told[0] != message or now - self._told[1] >= REMIND:
            self._told = (message, now)
            log.log(logging.WARNING if mends else logging.ERROR, "%s: %s", self.name, message)
        self.beat()
        return self._pause

    def _run(self) -> None:
        while not self._stop.is_set():
            wait = self.once()
            if self.dead:
                break
            while wait > 0 and not self._woken.is_set() and not self._stop.is_set():
                self._woken.wait(min(wait, SLICE))
                wait -= SLICE
                self.beat()
            self._woken.clear()
        try:
            self._ended()
        except Exception as error:
            log.error("%s: did not end cleanly: %s", self.name, error, exc_info=True)

    # -- what is said of it --------------------------------------------------------------------------------

    @property
    def trouble(self) -> str | None:
        """Why this thread makes the service unhealthy; None where it does not."""
        if self.dead:
            return f"the thread {self.name} {self.error}"
        if self._thread is not None and not self._thread.is_alive() and not self.stopping:
            return f"the thread {self.name} has ended; restart the service"
        age = self._age()
        if self._thread is not None and not self.stopping and age > self._stalled_after():
            since = datetime.fromtimestamp(self._clock.wall_ms() / 1000 - age, UTC).strftime("%H:%M:%S UTC")
            return f"the thread {self.name} has given no sign of life since {since}"
        if self.hindered:
            return f"{self.name}: {self.error}"
        return None

    def view(self) -> WorkerView:
        alive = not self.dead and (self._thread is None or self._thread.is_alive())
        return WorkerView(name=self.name, alive=alive, beat_age_ms=round(1000 * self._age()), error=self.error)

    def _age(self) -> float:
        return max(self._clock.monotonic() - self._beat, 0.0)
