"""A thread that fails says so, one that cannot reach something tries again, and none is silently idle."""

from __future__ import annotations

import threading

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from metrics_reporter.reporter import Clock
from metrics_reporter.topic import TopicError
from trimtab.service.agenda import Agenda
from trimtab.service.coverage import Coverage
from trimtab.service.worker import Worker


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, lambda: int(self.now * 1000))


class Turn:
    """Raises what it is told to, else wants 0.5 s until the next turn."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __call__(self) -> float:
        if self.error is not None:
            raise self.error
        return 0.5


def test_what_is_away_is_tried_again_with_growing_pauses_and_is_no_illness() -> None:
    turn, time = Turn(), Time()
    worker = Worker("metadata", turn, time.clock)
    turn.error = ExternalError("nobody answers", retriable=True)
    assert [worker.once() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert (worker.trouble, worker.view().error, worker.view().alive) == (None, "nobody answers", True)
    turn.error = TopicError("there is no topic")
    worker.once()
    assert (worker.trouble, worker.view().error) == (None, "there is no topic")
    turn.error = None
    assert worker.once() == 0.5
    assert worker.view().error is None


def test_what_a_person_has_to_mend_makes_it_unhealthy_until_it_is_mended() -> None:
    turn, time = Turn(), Time()
    worker = Worker("samples", turn, time.clock)
    turn.error = ConfigurationError("capacity.yaml", [Problem("disk", "is wrong")])
    worker.once()
    assert worker.trouble is not None
    assert "is wrong" in worker.trouble
    turn.error = None
    worker.once()
    assert worker.trouble is None


def test_a_bug_ends_the_thread_and_is_told_for_good() -> None:
    turn, time = Turn(), Time()
    worker = Worker("planner", turn, time.clock)
    turn.error = KeyError("x")
    worker.start()
    assert worker.join(10)
    assert worker.dead
    assert worker.trouble == "the thread planner ended by a bug, KeyError: 'x'; restart the service, and please report it"
    assert not worker.view().alive


def test_a_thread_that_gives_no_sign_of_life_is_told() -> None:
    time, entered, go_on = Time(), threading.Event(), threading.Event()

    def turn() -> float:
        entered.set()
        go_on.wait(10)
        return 0.0

    worker = Worker("samples", turn, time.clock)
    worker.start()
    assert entered.wait(10)
    seen = [worker.trouble]
    time.now += 61
    seen.append(worker.trouble)
    worker.beat()
    seen.append(worker.trouble)
    worker.ask_to_stop()
    go_on.set()
    assert worker.join(10)
    assert seen == [None, "the thread samples has given no sign of life since 00:16:40 UTC", None]


def test_a_stop_ends_the_thread_though_it_waits_and_calls_what_ends_it() -> None:
    ended = threading.Event()
    waits = threading.Event()

    def turn() -> float:
        waits.set()
        return 3600.0

    worker = Worker("goals", turn, Time().clock, ended=ended.set)
    worker.start()
    assert waits.wait(10)
    worker.ask_to_stop()
    assert worker.join(5)
    assert ended.is_set()


def test_a_burst_of_events_is_one_cause_and_endless_ones_do_not_put_it_off_for_ever() -> None:
    agenda = Agenda(lambda: 60_000, 5_000, begin_ms=0)
    assert agenda.take(0) == "interval"
    agenda.add("broker 3 lost", 10_000)
    agenda.add("broker 4 lost", 13_000)
    agenda.add("broker 3 lost", 14_000)
    assert agenda.take(18_999) is None
    assert agenda.take(19_000) == "broker 3 lost, broker 4 lost"
    assert agenda.take(19_001) is None
    for at in range(20_000, 50_001, 1_000):
        agenda.add("flapping", at)
    assert agenda.due_ms() == 50_000
    assert agenda.take(50_000) == "flapping"
    assert agenda.due_ms() == 110_000
    agenda.add("asked by anna", 51_000, at_once=True)
    assert agenda.take(51_000) == "asked by anna"
    agenda.put_off(200_000)
    assert agenda.due_ms() == 200_000


def test_a_horizon_is_covered_by_what_samples_are_of_and_not_by_time_that_passes() -> None:
    coverage = Coverage(60_000)
    assert coverage.share(100_000) == 0.0
    coverage.add(100_000, 30_000)
    assert 0.49 < coverage.share(100_000) < 0.54
    coverage.add(100_000, 30_000)
    assert coverage.share(100_000) < 0.54, "the same again covers nothing more"
    assert 0.49 < coverage.share(115_000) < 0.54, "what is under way is no gap"
    assert 0.2 < coverage.share(175_000) < 0.3, "silence is"
    assert coverage.share(195_000) == 0.0
    coverage.add(10**9, 10**9)
    assert coverage.share(10**9 + 10_000) == 1.0
