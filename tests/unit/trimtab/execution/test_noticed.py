"""An operator hears before it starts that producers will wait when a partition has moved, and by which setting of brokers."""

from __future__ import annotations

import pytest

from tests.unit.trimtab.execution.test_view import Counting
from trimtab.execution.noticed import noticed
from trimtab.execution.state import Partition, Task
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.spec import BrokerSpec
from trimtab.simulator.traffic import Traffic

MOVES = Task(Partition("t", 0), (1, 2), (3, 2), 1, 3)
LED_ELSEWHERE = Task(Partition("t", 1), (1, 2), (2, 1), 1, 2)
REORDERED = Task(Partition("t", 2), (1, 2, 3), (1, 3, 2), 1, 1)


class Telling(Counting):
    value: str | None = None

    def setting(self, broker: int, key: str) -> str | None:
        return self.value if (broker, key) == (1, "replica.fetch.backoff.ms") else None


@pytest.mark.parametrize(("value", "told"), [("1000", True), ("100", False), (None, False), ("", False)])
def test_what_producers_wait_for_is_said_before(value: str | None, told: bool) -> None:
    port = Telling(SimulatedCluster([BrokerSpec(1)], traffic=Traffic(0)))
    port.value = value
    said = noticed([MOVES, LED_ELSEWHERE, REORDERED], port)
    assert said.startswith("producers with acks=all may wait 1 s whenever one of 2 partitions has moved") is told
    assert noticed([REORDERED], port) == ""
