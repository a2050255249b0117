"""From every interrupted point an execution converges, and on its way it breaks no limit and takes no replica out of sync.

A state machine on a simulated cluster: turns, turns that are killed at any call, brokers that go and come, other tools that interfere,
people who pause, cancel and roll back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.ledger import MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.state import Limits, Partition, Stage, Task
from trimtab.execution.view import View
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

BROKERS = (1, 2, 3, 4, 5)
LIMITS = Limits(into=1, out_of=3, cluster=2, elections=2, reserve=0.0, racks=False, patience_ms=40_000)
ENOUGH = 400  # turns to the end, with 5 s between them
STEPS = ("reassign", "elect", "set_configs", "write")


class Killed(Exception):
    """The process ended here."""


class Mortal:
    """A port or ledger whose owner is killed before or after one of its calls that change something."""

    def __init__(self, real: Any, fate: Fate) -> None:
        self._real, self._fate = real, fate

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._real, name)
        return self._fate.over(call) if name in STEPS else call


class Fate:
    """Kills at the call that is due; also half-way, when it was done and the answer did not arrive."""

    def __init__(self) -> None:
        self.due: int | None = None
        self.done_first = False

    def over(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            if self.due is not None:
                self.due -= 1
                if self.due < 0:
                    self.due = None
                    if self.done_first:
                        call(*arguments)
                    raise Killed
            return call(*arguments)

        return wrapped


class Executions(RuleBasedStateMachine):
    wide = True  # whether every look shows the whole cluster

    @initialize(data=st.data(), count=st.integers(3, 8))
    def start(self, data: st.DataObject, count: int) -> None:
        self.cluster = SimulatedCluster([BrokerSpec(b) for b in BROKERS], traffic=Traffic(0, noise=0.0), resolution_s=5.0)
        lists = st.permutations(BROKERS).flatmap(lambda order: st.integers(1, 3).map(lambda n: tuple(order[:n])))
        sources = [data.draw(lists.filter(lambda found: len(found) > 1)) for _ in range(count)]
        sizes = np.full(count, 200 * MB)
        for number, source in enumerate(sources):
            self.cluster.create_topic(TopicSpec(f"t{number}", (source,), np.zeros(1), 1.0, sizes[:1], filled=1.0))
        tasks = []
        for number, source in enumerate(sources):
            target = data.draw(st.one_of(lists, st.permutations(source).map(tuple)))
            if len(target) < len(source) and data.draw(st.booleans()):  # else it is to have fewer replicas
                target = (*target, *(b for b in source if b not in target))[: len(source)]
            batch = data.draw(st.integers(1, 3))
            tasks.append(Task(Partition(f"t{number}", 0), source, target, source[0], target[0], batch=batch))
        self.sources = {t.name: t.source for t in tasks}
        self.targets = {t.name: t.target for t in tasks}
        self.dead: int | None = None
        self.ever_dead = self.interfered = False
        self.shared, self.fate = MemoryDocuments(), Fate()
        self.execution = self._new()
        order = Order("sha256:x", self.cluster.cluster_id, tuple(tasks), racks=False, batch_pause=data.draw(st.sampled_from([0.0, 20.0])))
        self.execution.begin(order, Settings(throttle=round(20 * MB), limits=LIMITS))

    def _new(self) -> Execution:
        clock = Clock(lambda: self.cluster.now_ms / 1000, lambda: self.cluster.now_ms)
        port: Any = Mortal(SimulatedPort(self.cluster), self.fate)
        ledger: Any = Mortal(MemoryLedger(self.shared), self.fate)
        view = View(port, clock) if self.wide else View(port, clock, partitions=1, ask=1)
        return Execution(port, ledger, clock, instance="test", view=view)

    def _adopt(self) -> None:
        self.execution = self._new()
        self.execution.adopt()

    # -- what happens ----------------------------------------------------------------------------------------

    @rule(turns=st.integers(1, 3))
    def turn(self, turns: int) -> None:
        for _ in range(turns):
            if self.execution.running:
                self.execution.turn()

    @rule(call=st.integers(0, 4), done_first=st.booleans())
    def a_turn_is_killed(self, call: int, done_first: bool) -> None:
        self.fate.due, self.fate.done_first = call, done_first
        try:
            if self.execution.running:
                self.execution.turn()
        except Killed:
            self.fate.due = None
            self._adopt()
        self.fate.due = None

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds: int) -> None:
        self.cluster.step(seconds)

    @precondition(lambda self: self.dead is None)
    @rule(broker=st.sampled_from(BROKERS))
    def a_broker_dies(self, broker: int) -> None:
        self.cluster.faults.kill(broker)
        self.dead, self.ever_dead = broker, True

    @precondition(lambda self: self.dead is not None)
    @rule()
    def it_comes_back(self) -> None:
        assert self.dead is not None
        self.cluster.faults.restart(self.dead)
        self.dead = None
        self.cluster.step(5)

    @rule()
    def another_tool_cancels(self) -> None:
        for name in list(self.cluster.list_partition_reassignments())[:1]:
            self.cluster.alter_partition_reassignments({name: None})
            self.interfered = True

    @precondition(lambda self: self.execution.running and self.execution.header.direction != "rollback")
    @rule(verb=st.sampled_from(["pause", "resume", "cancel", "finish"]))
    def people_ask(self, verb: str) -> None:
        match verb:
            case "pause":
                self.execution.pause("anna")
            case "resume":
                self.execution.resume()
            case "cancel":
                self.execution.cancel("anna")
            case _:
                self.execution.cancel("anna", "finish")

    @rule()
    def roll_back(self) -> None:
        self.execution.rollback("anna")

    # -- what holds ------------------------------------------------------------------------------------------

    @invariant()
    def limits_hold(self) -> None:
        moving = self.cluster.list_partition_reassignments()
        assert len(moving) <= LIMITS.cluster
        into = Counter(b for r in moving.values() for b in r.adding)
        assert all(n <= LIMITS.into for n in into.values())

    @invariant()
    def no_replica_is_taken_out_of_sync(self) -> None:
        """Without a broker that died, a partition always has as many replicas in sync as it started with, or as it is to have."""
        if not self.ever_dead:
            for name, source in self.sources.items():
                assert len(self.cluster.isr(TopicPartition(*name))) >= min(len(source), len(self.targets[name]))

    @invariant()
    def no_throttle_outlives_it(self) -> None:
        if not self.execution.running and not self.ever_dead:
            assert self.cluster.configs == {}

    def teardown(self) -> None:
        """All brokers are back: it ends, and everything stands where its mark says."""
        if not hasattr(self, "execution"):
            return
        if self.dead is not None:
            self.it_comes_back()
        if self.execution.running:
            self.execution.resume()
        for _ in range(ENOUGH):
            if not self.execution.running or self.execution.turn().over:
                break
            self.cluster.step(5)
        assert not self.execution.running, self.execution.standing()
        if self.ever_dead:  # it may have ended while a broker was away that had a throttle
            self.execution.clean()
        assert self.cluster.configs == {}
        assert self.cluster.list_partition_reassignments() == {}
        wanted: Mapping[Stage, Mapping[Partition, tuple[int, ...]]] = {Stage.DONE: self.targets, Stage.BACK: self.sources}
        for name, mark in self.execution.marks.items():
            if mark.stage in wanted and not self.interfered:
                assert self.cluster.replicas(TopicPartition(*name)) == wanted[mark.stage][name], (name, mark)
            if not self.ever_dead and not self.interfered:
                assert mark.stage in (Stage.DONE, Stage.BACK, Stage.SKIPPED) or "cancelled" in mark.reason, mark


class NarrowExecutions(Executions):
    """As of a large cluster: a look shows one topic, one broker's room, and what something happens to."""

    wide = False


TestExecutions, TestNarrowExecutions = Executions.TestCase, NarrowExecutions.TestCase
TestExecutions.settings = TestNarrowExecutions.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
