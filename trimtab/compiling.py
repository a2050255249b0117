"""Compiling kernels before they are needed, in as many processes as there are cores, with a progress bar.

Called by `trimtab compile` for all of them, and by commands that plan a large cluster for those that the plan will use. What is used
shows in a rehearsal: the same work on tiny clusters, with kernels that are not compiled yet interpreted. That takes two seconds where
none is, and hardly any time where all are.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from kernels.compiled import COMPILED, Kernel, known, rehearsed
from trimtab.signals import ENDING, end_now
from trimtab.story import Story

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet
    from optimizer.options import PlanOptions

log = logging.getLogger(__name__)
Call = tuple[Kernel, tuple[Any, ...]]
REPLICA_BYTES = 400  # of the arrays that kernels work on, for each replica
PATIENCE = 10.0  # seconds; a plan that takes longer is worth compiling for
COMPILE = (sys.executable, "-m", "trimtab", "compile")
FAILED = 255  # reported in place of the number of a call


def compile_for_plan(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, story: Story) -> None:
    """Compile what a plan of `snapshot` will use, where it is large enough for that; a small one is planned interpreted.

    What was compiled when it is interrupted is kept.
    """
    if not is_large(snapshot):
        return
    from dataclasses import replace

    from optimizer.planner import plan
    from trimtab.warmup import tiny_clusters

    whatifs = ("add_brokers", "remove_brokers", "exclude_brokers", "demote_brokers", "exclude_topics", "scale_load")
    imagined: dict[str, Any] = dict.fromkeys(whatifs, ())
    rehearsal = replace(options, loads=None, threads=1, restarts=1, **imagined)
    missing = rehearsed(lambda: [plan(each, goals, rehearsal) for each in tiny_clusters()], interpreted=False, only_missing=True)
    if missing:
        log.info("compiling the planner for this machine, once: %d kernels", len(missing))
        compile_calls(missing, story)


@contextmanager
def compiled_beside() -> Iterator[Callable[[], None]]:
    """Has another process compile all kernels where work takes long that runs them interpreted, as a plan of few brokers may that cannot
    all reach their target range. The work calls the given function now and again, from the main thread."""
    from kernels.cache import are_kept
    from trimtab.warmup import is_compiled

    started, beside, looked = time.monotonic(), None, time.monotonic()

    def look() -> None:
        nonlocal beside, looked
        now = time.monotonic()
        if beside is None and now - started > PATIENCE and COMPILED and are_kept() and not is_compiled():
            log.info("this plan takes long: compiling the planner for this machine beside it, once")
            beside = subprocess.Popen(COMPILE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if beside is not None and now - looked > 1.0:
            looked = now
            for each in known:
                each.look_again()

    try:
        yield look
    finally:
        if beside is not None:
            beside.terminate()  # what it compiled is kept
            beside.wait()


def is_large(snapshot: Snapshot) -> bool:
    """Whether a plan of it is worth compiling for."""
    return COMPILED and snapshot.replica_count * REPLICA_BYTES > Kernel.interpreted_up_to


def compile_calls(calls: list[Call], story: Story, processes: int | None = None) -> None:
    """Compile each kernel for its types and keep it on disk, so that this process loads it.

    The processes are copies of this one, which must run a single thread. A signal that ends this one ends them, then and there.

    Raises
    ------
    RuntimeError
        A process ended before its work was done; its own words are on stderr.
    """
    calls = sorted(calls, key=lambda call: -_weight(call[0]))  # the longest first, so that all processes end together
    dispatchers = [kernel.dispatcher for kernel, _ in calls]
    orders, ordering = os.pipe()
    reports, reporting = os.pipe()
    os.write(ordering, bytes(range(len(calls))))
    os.close(ordering)
    running: list[int] = []
    before = {number: signal.getsignal(number) for number in ENDING}

    def end(number: int, _: object) -> None:
        for child in running:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        end_now(128 + number, told=False)

    try:
        for number in ENDING:
            if before[number] is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, end)
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # so that every process is known before a signal is heard
        for _ in range(min(processes or os.cpu_count() or 1, len(calls))):
            if not (child := os.fork()):
                os.close(reports)
                _work(orders, reporting, lambda i: dispatchers[i].compile(calls[i][1]))
            running.append(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os.close(reporting)
        with _bar(story, len(calls)) as step:
            left = len(calls)
            while left:
                select.select([reports], [], [])
                done = os.read(reports, len(calls))
                if not done or FAILED in done:
                    raise RuntimeError("a process that compiles kernels ended early")
                left -= len(done)
                step(len(done))
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        os.close(reports)
        os.close(orders)
        for child in running:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for number, former in before.items():
            signal.signal(number, former)


def _work(orders: int, reporting: int, compile_one: Callable[[int], object]) -> None:
    """A process that compiles: takes the number of a call, as one byte, and reports it when it is done; until none is left."""
    from kernels.building import hasten

    report = b""
    hasten()
    gc.disable()  # numba makes millions of objects, few of them garbage: looking for it would take a seventh of the time
    try:
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        while order := os.read(orders, 1):
            report = bytes([FAILED])
            compile_one(order[0])
            gc.collect()
            gc.freeze()  # what is kept is not looked at again
            report = b""
            os.write(reporting, order)
    except BaseException:
        log.exception("compiling failed")
    finally:
        if report:
            os.write(reporting, report)
        os._exit(0)


def _weight(kernel: Kernel) -> int:
    """How much code it is, with all that it calls."""
    seen: set[Any] = set()
    pending = [kernel.py_func]
    while pending:
        function = pending.pop()
        if function not in seen:
            seen.add(function)
            called: list[Any] = [function.__globals__.get(name) for name in function.__code__.co_names]
            pending += [each.py_func for each in called if getattr(each, "targetoptions", None) is not None]
    return sum(len(each.__code__.co_code) for each in seen)


@contextmanager
def _bar(story: Story, count: int) -> Iterator[Callable[[int], None]]:
    """Shows how many of `count` kernels are compiled, to a person who looks on."""
    if not story.animated:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("compiling the planner", total=count)
        yield lambda done: progress.update(task, advance=done)
