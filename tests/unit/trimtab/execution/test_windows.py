"""Steps start inside maintenance windows only, and it is said when the next one is."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.ledger import MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.state import Limits, Partition, Task
from trimtab.execution.windows import closed, parse_window
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic


def at(day: int, hour: int, minute: int = 0) -> int:
    """Of the week that starts on Monday, 2 March 2026; in ms."""
    return round(datetime(2026, 3, 2 + day, hour, minute, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("windows", "now", "said"),
    [
        ([], at(0, 12), ""),
        (["22:00-06:00"], at(0, 22), ""),
        (["22:00-06:00"], at(1, 5, 59), ""),
        (["22:00-06:00"], at(1, 6), "waits for the next window: Tue 22:00 UTC"),
        (["Sun 22:00-06:00"], at(0, 5), ""),  # of the night from Sunday, over the end of the week
        (["Sun 22:00-06:00"], at(0, 6), "waits for the next window: Sun 22:00 UTC"),
        (["Sat,Sun 08:00-20:00"], at(4, 12), "waits for the next window: Sat 08:00 UTC"),
        (["Fri-Mon 00:00-24:00"], at(0, 23, 59), ""),
        (["Fri-Mon 00:00-24:00"], at(1, 0), "waits for the next window: Fri 00:00 UTC"),
        (["Sat 01:00-02:00", "Tue 01:00-02:00"], at(0, 12), "waits for the next window: Tue 01:00 UTC"),
    ],
)
def test_when_steps_may_start(windows: list[str], now: int, said: str) -> None:
    assert closed(windows, now) == said


@pytest.mark.parametrize("text", ["", "22:00", "22-06", "25:00-26:00", "Sam 22:00-06:00", "22:60-23:00", "24:00-06:00", "-1:00-02:00"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a window in UTC such as 22:00-06:00"):
        parse_window(text)


def test_outside_its_windows_a_plan_waits_also_after_a_take_over_and_is_rolled_back_all_the_same() -> None:
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    cluster.create_topic(TopicSpec("t", ((1, 2),) * 2, np.zeros(2), 1.0, np.full(2, 10 * MB), filled=1.0))
    now, shared = [at(0, 21, 59)], MemoryDocuments()
    clock = Clock(lambda: cluster.now_ms / 1000, lambda: now[0])

    def new() -> Execution:
        return Execution(SimulatedPort(cluster), MemoryLedger(shared), clock, instance="here")

    tasks = tuple(Task(Partition("t", n), (1, 2), (3, 2), 1, 3) for n in range(2))
    settings = Settings(limits=Limits(into=1, reserve=0.0), windows=("22:00-06:00",))
    new().begin(Order("sha256:x", cluster.cluster_id, tasks, racks=False), settings)
    execution = new()
    assert execution.adopt()
    assert execution.turn().waits == "waits for the next window: Mon 22:00 UTC"
    assert not cluster.list_partition_reassignments()
    now[0] = at(0, 22)
    execution.turn()
    assert len(cluster.list_partition_reassignments()) == 1
    now[0] = at(1, 6)
    assert cluster.run_until(lambda: not cluster.list_partition_reassignments(), limit_s=600, step_s=1.0)
    assert execution.turn().waits == "waits for the next window: Tue 22:00 UTC"
    execution.rollback("anna")
    for _ in range(60):
        if execution.turn().over:
            break
        cluster.step(1)
    assert [cluster.replicas(TopicPartition("t", n)) for n in range(2)] == [(1, 2), (1, 2)]
