"""Carrying out an approved plan on a simulated cluster: the engine of real clusters, in virtual time."""

from __future__ import annotations

from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.executor import EngineExecutor
from trimtab.execution.ledger import MemoryDocuments, MemoryLedger
from trimtab.execution.state import Limits
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort

CONCURRENCY = 10


class SimulatedExecutor(EngineExecutor):
    """An `Executor` on a simulated cluster; the owner of the cluster lets time pass between polls.

    Parameters
    ----------
    throttle
        Bytes/s that moved replicas may copy into, and out of, each broker.
    concurrency
        Replicas being copied into one broker, and out of one, at a time.
    record
        What is written down; several executors of one cluster share it.
    """

    def __init__(
        self, cluster: SimulatedCluster, *, throttle: float, concurrency: int = CONCURRENCY,
        record: MemoryDocuments | None = None, instance: str = "simulated",
    ) -> None:  # fmt: skip
        limits = Limits(into=concurrency, out_of=2 * concurrency, reserve=0.0)
        clock = Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)
        super().__init__(
            lambda: (SimulatedPort(cluster), MemoryLedger(record)), clock, Settings(throttle=round(throttle), limits=limits),
            instance=instance, pause=lambda seconds: None,
        )  # fmt: skip
