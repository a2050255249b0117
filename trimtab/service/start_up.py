"""The start of a service: the planner is compiled, and until then threads that hang are waited for longer, and not at all when the
service ends. Made by `Balancer`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from cluster_model.trust import spoken
from metrics_reporter.reporter import Clock
from trimtab.service.worker import STALLED_AFTER, Worker

log = logging.getLogger(__name__)

OTHERS_HANG_SECONDS = 180.0
COMPILING_SECONDS = 3600.0  # without a sign of life while kernels are compiled
CALL_KERNELS = ("metadata", "samples", "planner", "look")  # threads; one compiler serves them all, one after the other
COMPILER_SECONDS = 1.0  # for all threads together that wait for the compiler when the service ends
TOLD_SECONDS = 5.0  # a start that took longer is told
ASK_OTHERS = ("metadata", "min-isr", "log-dirs", "stand-in", "planner", "executor", "notify")  # brokers and webhooks may keep them for long


class StartUp:
    """How far the start is; `over` once the planner is compiled."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.began_ms = clock.wall_ms()
        self.over = False

    def compile(self) -> None:
        """Compile or load the planner; returns when it is done."""
        from trimtab.warmup import announce, warm_up

        begun = self._clock.monotonic()
        announce()
        warm_up()
        self.over = True
        seconds = self._clock.monotonic() - begun
        if seconds > TOLD_SECONDS:
            log.info("the planner is compiled, after %.0f s", seconds)

    @property
    def sentence(self) -> str | None:
        """How far the start is; None where it is over."""
        if self.over:
            return None
        so_far = spoken(max(self._clock.wall_ms() - self.began_ms, 0))
        return (
            f"Starting, for {so_far} so far: the planner is being compiled or loaded. Compiling takes about two minutes of one core, "
            "once on each machine; longer if the service gets less than a core."
        )

    def patience(self, name: str) -> Callable[[], float]:
        """Seconds without a sign of life of the thread `name` that are too many."""
        patience = OTHERS_HANG_SECONDS if name in ASK_OTHERS else STALLED_AFTER
        return lambda: patience if self.over else COMPILING_SECONDS

    def end(self, workers: Iterable[Worker], deadline: float) -> tuple[list[str], list[str]]:
        """Ask all threads to stop, and wait until `deadline` (monotonic seconds); names of those that are still alive, and of those among
        them that do not wait for the compiler. One that does hears no signal and leaves nothing half done: it gets a moment."""
        asked = list(workers)
        for worker in asked:
            worker.ask_to_stop()
        waiting = () if self.over else CALL_KERNELS
        patience = min(deadline, self._clock.monotonic() + COMPILER_SECONDS)
        alive = [w.name for w in asked if not w.join((patience if w.name in waiting else deadline) - self._clock.monotonic())]
        return alive, [name for name in alive if name not in waiting]
