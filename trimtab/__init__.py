"""Keeps a Kafka cluster level. The small public interface: import from here, the rest may be rearranged.

Names load on first use, so that a reporter beside a broker needs neither numpy nor Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster_model.files import read_snapshot, write_snapshot
    from cluster_model.model import ClusterModel
    from cluster_model.snapshot import Snapshot
    from goals.document import load_goals
    from goals.model import GoalSet
    from optimizer.options import PlanOptions
    from optimizer.plan import Plan
    from optimizer.planner import plan
    from optimizer.search_state import SearchState
    from trimtab.service.balancer import Balancer
    from trimtab.service.config import ServiceConfig

__version__ = "0.1.0"
__all__ = [
    "Balancer",
    "ClusterModel",
    "GoalSet",
    "Plan",
    "PlanOptions",
    "SearchState",
    "ServiceConfig",
    "Snapshot",
    "__version__",
    "load_goals",
    "plan",
    "read_snapshot",
    "write_snapshot",
]

_HOME = {
    "Balancer": "trimtab.service.balancer",
    "ClusterModel": "cluster_model.model",
    "GoalSet": "goals.model",
    "Plan": "optimizer.plan",
    "PlanOptions": "optimizer.options",
    "SearchState": "optimizer.search_state",
    "ServiceConfig": "trimtab.service.config",
    "Snapshot": "cluster_model.snapshot",
    "load_goals": "goals.document",
    "plan": "optimizer.planner",
    "read_snapshot": "cluster_model.files",
    "write_snapshot": "cluster_model.files",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
