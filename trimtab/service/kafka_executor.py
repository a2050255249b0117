"""The executor of a service: the engine on the cluster that the configuration names. Called by `Balancer`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from metrics_reporter.reporter import Clock
from trimtab.execution.ledger import instance_name
from trimtab.executor import Executor

if TYPE_CHECKING:
    from trimtab.execution.ledger import Ledger
    from trimtab.execution.port import ClusterPort
    from trimtab.service.config import ServiceConfig


def kafka_executor(config: ServiceConfig, clock: Clock) -> Executor:
    """The engine on the cluster of a configuration; it connects when it is needed for the first time."""
    from trimtab.execution.documents import Settings
    from trimtab.execution.executor import EngineExecutor
    from trimtab.execution.pacing import AUTO
    from trimtab.execution.state import Limits

    part = config.execution
    limits = Limits(
        into=part.concurrency, out_of=part.concurrency, cluster=part.partitions, elections=part.elections, reserve=float(part.reserve)
    )
    rate = AUTO if part.throttle == "auto" else part.throttle
    settings = Settings(throttle=rate, foreign=part.foreign, limits=limits, windows=tuple(part.windows))

    def connect() -> tuple[ClusterPort, Ledger]:
        from trimtab.capture.client import client_settings
        from trimtab.execution.journal import Journal
        from trimtab.execution.kafka_port import KafkaPort
        from trimtab.execution.ledger import JointLedger
        from trimtab.execution.shared import SharedRecord

        path, servers = config.kafka.command_config, config.kafka.bootstrap_servers
        client = client_settings(None if path is None else Path(path))
        port = KafkaPort(servers, client, wall_ms=clock.wall_ms, monotonic=clock.monotonic)
        try:
            cluster_id = port.look((), topics=()).cluster_id
            ledger = JointLedger(Journal(Path(config.history.folder), cluster_id), SharedRecord(servers, client.options, cluster_id))
        except BaseException:
            port.close()
            raise
        return port, ledger

    return EngineExecutor(connect, clock, settings, instance=instance_name())
