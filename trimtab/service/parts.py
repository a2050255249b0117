"""The parts of one service, by name: what its read model and its operator actions work on.

Made by `trimtab.service.balancer`, which wires them. No behaviour of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cluster_model.model import ClusterModel
from metrics_reporter.reporter import Clock
from trimtab.service.agenda import Agenda
from trimtab.service.config import ServiceConfig
from trimtab.service.coverage import Coverage
from trimtab.service.decider import Decider
from trimtab.service.desk import PlanDesk
from trimtab.service.execution import Execution
from trimtab.service.goals import GoalsKeeper
from trimtab.service.keeping import DecisionKeeper, Told
from trimtab.service.leadership import LeaderCheck
from trimtab.service.log_dirs import LogDirs
from trimtab.service.look import Lookout
from trimtab.service.metadata import MetadataWatch
from trimtab.service.readiness import Readiness
from trimtab.service.samples import SampleFeed
from trimtab.service.worker import Worker


@dataclass(frozen=True, slots=True)
class Parts:
    """`has_executor`: plans can be carried out; `coverage` and `workers` are by name of the horizon, and of the thread."""

    config: ServiceConfig
    clock: Clock
    instance: str
    started_ms: int
    has_executor: bool
    model: ClusterModel
    coverage: Mapping[str, Coverage]
    goals: GoalsKeeper
    told: Told
    agenda: Agenda
    leader: LeaderCheck
    desk: PlanDesk
    metadata: MetadataWatch
    log_dirs: LogDirs
    feed: SampleFeed
    lookout: Lookout
    readiness: Readiness
    decider: Decider
    execution: Execution
    decisions: DecisionKeeper
    workers: Mapping[str, Worker]
