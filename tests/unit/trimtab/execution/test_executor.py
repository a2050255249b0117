"""The seam of the service: what it may roll back, and whom it must not depose for that."""

from __future__ import annotations

import os
import socket

import numpy as np
import pytest

from cluster_model.errors import ExternalError
from metrics_reporter.reporter import Clock
from trimtab.execution import run
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.executor import EngineExecutor
from trimtab.execution.ledger import MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.state import Partition, Task
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import BrokerSpec, TopicSpec
from trimtab.simulator.traffic import Traffic


class Place:
    """A cluster with two partitions, and what is written down of executions on it."""

    def __init__(self) -> None:
        self.cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0))
        self.cluster.create_topic(TopicSpec("t", ((1, 2), (1, 2)), np.zeros(2), 1.0, np.full(2, 1e6), filled=1.0))
        self.shared = MemoryDocuments()
        self.clock = Clock(lambda: self.cluster.now_ms / 1000, lambda: self.cluster.now_ms)

    def executor(self, instance: str) -> EngineExecutor:
        return EngineExecutor(
            lambda: (SimulatedPort(self.cluster), MemoryLedger(self.shared)), self.clock, Settings(), instance=instance
        )

    def order(self, plan_id: str, partition: int) -> Order:
        task = Task(Partition("t", partition), (1, 2), (3, 2), 1, 3)
        return Order(plan_id, self.cluster.cluster_id, (task,), racks=False)

    def carry_out(self, executor: EngineExecutor, order: Order) -> None:
        executor.submit(order)
        for _ in range(30):
            if executor.poll().finished:
                return
            self.cluster.step(5)
        raise AssertionError("it did not end")


def test_a_plan_is_not_rolled_back_where_another_was_carried_out_since() -> None:
    """The record knows the last execution alone: the other plan's moves would have been taken back."""
    place = Place()
    place.carry_out(place.executor("one"), place.order("sha256:first", 0))
    place.carry_out(place.executor("two"), place.order("sha256:second", 1))
    with pytest.raises(ExternalError, match="plan sha256:first cannot be rolled back: plan sha256:second was carried out since"):
        place.executor("three").rollback("sha256:first", "anna")
    assert place.executor("three").rollback("sha256:second", "anna") == 1


def test_an_instance_that_is_at_work_is_not_deposed_by_a_rollback() -> None:
    place = Place()
    working = Execution(SimulatedPort(place.cluster), MemoryLedger(place.shared), place.clock, instance="one")
    working.begin(place.order("sha256:first", 0), Settings())
    with pytest.raises(ExternalError, match="one carries out plan sha256:first on this cluster"):
        place.executor("two").rollback("sha256:first", "anna")
    working.turn()


def test_what_nothing_is_known_of_cannot_be_rolled_back() -> None:
    with pytest.raises(ExternalError, match="nothing is known of it on the cluster"):
        Place().executor("one").rollback("sha256:first", "anna")


@pytest.mark.parametrize("number", [os.getppid(), 2**22 + 1])
def test_a_process_that_has_the_number_of_one_that_was_killed_is_not_taken_for_it(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`resume` would have asked it for a minute, and never gone on."""
    place = Place()
    dead = Execution(
        SimulatedPort(place.cluster), MemoryLedger(place.shared), place.clock, instance=f"{socket.gethostname()} process {number}"
    )
    dead.begin(place.order("sha256:first", 0), Settings())
    looking = Execution(SimulatedPort(place.cluster), MemoryLedger(place.shared), place.clock, instance="two")
    looking.read()
    monkeypatch.setattr(run, "BEAT_MS", 0)  # no wait for its next sign, which does not come
    assert not run.at_work(looking, pause=lambda _: None)


def test_a_look_from_elsewhere_tells_how_fast_it_is() -> None:
    """`status` is another process, which has seen nothing of the execution before."""
    place = Place()
    working = Execution(SimulatedPort(place.cluster), MemoryLedger(place.shared), place.clock, instance="one")
    working.begin(place.order("sha256:first", 0), Settings(throttle=100_000))
    working.turn()
    looking = Execution(SimulatedPort(place.cluster), MemoryLedger(place.shared), place.clock, instance="two")
    looking.read()
    found = run.looked_on(looking, pause=lambda seconds: place.cluster.step(seconds))
    (moving,) = found.moving
    assert moving.rate is not None
    assert moving.rate == pytest.approx(100_000, rel=0.1)
    assert moving.eta_s == pytest.approx((moving.size - moving.copied) / moving.rate)
    assert found.rate == pytest.approx(moving.rate)


def test_what_was_moved_is_told_by_every_reader_of_the_record_and_leaderships_are_no_moves() -> None:
    place = Place()
    one = place.executor("one")
    assert one.moved() is None
    election = Task(Partition("t", 1), (1, 2), (2, 1), 1, 2)
    place.carry_out(one, Order("sha256:first", place.cluster.cluster_id, (*place.order("", 0).tasks, election), racks=False))
    found = one.moved()
    assert found is not None
    assert (found.plan_id, found.partitions) == ("sha256:first", (("t", 0),))
    two = place.executor("two")
    place.cluster.step(60)
    two.recover()
    assert two.moved() == found, "also after a restart, with the time at which it ended"


def test_what_is_taken_back_was_moved_too_and_what_never_started_was_not() -> None:
    place = Place()
    executor = place.executor("one")
    tasks = (*place.order("", 0).tasks, Task(Partition("t", 1), (9, 8), (3, 2), 9, 3))
    executor.submit(Order("sha256:first", place.cluster.cluster_id, tasks, racks=False))
    executor.poll()
    executor.poll()
    executor.cancel()
    found = executor.moved()
    assert found is not None
    assert found.partitions == (("t", 0),), "the other one was not as the plan said, and was left alone"
    executor.release()
    assert executor.moved() == found
