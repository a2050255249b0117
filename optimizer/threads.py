"""Threads that a plan works with: parts of a task side by side, and a task beside the rest.

The planner makes one `Threads` for a plan and hands it to what can use it. Kernels let go of the interpreter while they run, so threads
of Python do; nothing here knows what they run. How a task is cut into parts never shows in what comes out of it, so a plan is the
same with any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Threads:
    """`count` threads, the caller's among them. Use as a context: when it ends, so have the others."""

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1, "search") if count > 1 else None
        self._waiting: list[Callable[[], None]] = []
        self._beside: list[Future[Any]] = []

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def share(self, part: Callable[[int], object], parts: int) -> None:
        """Call `part` with 0, 1, … up to `parts`, each in the first thread that is free, and return when all have ended. What one raises
        is raised here."""
        left = iter(range(parts))

        def work() -> None:
            for i in left:
                part(i)

        pool, others = self._pool, min(self.count, parts) - 1
        helpers = [] if pool is None else [pool.submit(work) for _ in range(others)]
        try:
            work()
        finally:
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()

    def beside(self, function: Callable[[], T]) -> Callable[[], T]:
        """What gives the result of `function`, or raises what that does. With one thread it is called now, else in another from the
        next `begin` on."""
        pool = self._pool
        if pool is None:
            done: Future[T] = Future()
            try:
                done.set_result(function())
            except Exception as error:
                done.set_exception(error)
            return done.result
        mine: list[Future[T]] = []

        def start() -> None:
            mine.append(pool.submit(function))
            self._beside.append(mine[0])

        def given() -> T:
            self.begin()
            return mine[0].result()

        self._waiting.append(start)
        return given

    def begin(self) -> None:
        """Tasks beside may start: the caller has little to share for a while."""
        waiting, self._waiting = self._waiting, []
        for start in waiting:
            start()

    def settle(self) -> None:
        """Returns when tasks beside have ended, whatever they raised: what they read may change then."""
        self.begin()
        wait(self._beside)
