"""The simulated cluster behaves behind the port as a real one does (`tests.kafka.test_execution` holds the same checks)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.ports import BEFORE, CHECKS, Settle
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicSpec
from trimtab.simulator.traffic import Traffic


@pytest.mark.parametrize("check", CHECKS)
def test_port(check: Callable[[SimulatedPort, str, Settle], None]) -> None:
    racks = {1: "r1", 2: "r1", 3: "r2", 4: "r3"}
    cluster = SimulatedCluster([BrokerSpec(b, r) for b, r in racks.items()], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    cluster.create_topic(TopicSpec("t", (BEFORE, BEFORE), np.full(2, 0.1 * MB), 1.0, np.full(2, 3 * MB), filled=1.0))
    cluster.min_isr["t"] = 2
    check(SimulatedPort(cluster), "t", lambda true: cluster.run_until(true, limit_s=600, step_s=1.0))
