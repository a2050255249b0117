"""Compiling the planner ahead of time: once for a machine, at installation, service start or first use.

``python -m trimtab.warmup`` does it at installation; commands that plan call `announce`, so that nobody wonders at the wait.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_model.compiled import COMPILED
from cluster_model.kernel_cache import CACHE_VARIABLE, are_kept, wanted_folder

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from optimizer.problem import Compiled
    from optimizer.search.bench import Bench

log = logging.getLogger(__name__)


def announce() -> None:
    """Say that the first plan takes longer, when it will."""
    if not COMPILED:
        return
    if not are_kept():
        log.warning(
            "compiling the planner (a minute or two), now and at every start, since %s cannot be written: name a folder that can with %s",
            wanted_folder(), CACHE_VARIABLE,
        )  # fmt: skip
    elif not is_compiled():
        log.info("compiling the planner for this machine, once (a minute or two)")


def is_compiled() -> bool:
    """Whether the search, most of what there is to compile, is on disk."""
    from optimizer.search.balance import advance

    kept: Any = advance
    return any(Path(kept.stats.cache_path).glob("balance.advance-*.nbc"))


def warm_up() -> None:
    """Compile every kernel of the planner and of the live model, or load it: plans tiny clusters with every kind of goal, one that
    cannot be level and one that nothing may move in, explains, and follows a cluster."""
    from goals.document import parse_goals
    from optimizer.explain import explain_partition
    from optimizer.options import PlanOptions
    from optimizer.planner import plan
    from optimizer.report import to_json
    from optimizer.search_state import SearchState

    snapshot = _tiny([*[[0, 1]] * 7, [0, 2]], "local")  # the last crowds a rack
    goals = parse_goals("version: 1\npreset: default\n", "warm-up")
    state = SearchState()
    plan(snapshot, goals, state=state)
    work = state.take()
    if work is not None:
        _go_on(work.bench, work.compiled)
    topics = "goals: [{kind: topic_distribution, resource: replicas}]"
    to_json(plan(snapshot, parse_goals(f"version: 1\npreset: default\n{topics}\n", "warm-up")))
    coarse = "goals: [{kind: usage_distribution, resource: replicas, trivial_change: 0.1}]"
    plan(snapshot, parse_goals(f"version: 1\n{coarse}\n", "warm-up"))
    odd = _tiny([[n % 10] for n in range(11)], "shared")  # one broker has twice its share, and keeps it
    options = PlanOptions()
    explain_partition(odd, goals, options, "warm-up", 0, plan(odd, goals, options))
    plan(odd, goals, PlanOptions(max_moves=0))
    _follow()


def _tiny(lists: list[list[int]], storage: str) -> Snapshot:
    """Partitions with these replicas, on four brokers or as many as hold some."""
    from cluster_model.build import build_snapshot

    return build_snapshot(
        {
            "version": 1,
            "cluster_id": "warm-up",
            "taken_at": "2000-01-01T00:00:00Z",
            "storage": storage,
            "brokers": [
                {"id": b, "rack": f"r{b % 2}", "capacity": {"disk": 100.0}} for b in range(max(4, 1 + max(map(max, lists))))
            ],
            "partitions": [
                {
                    "topic": "warm-up",
                    "partition": n,
                    "replicas": on,
                    "leader": on[0],
                    "leader_load": {"network_in": 5.0, "disk": 9.0},
                }
                for n, on in enumerate(lists)
            ],
        }
    )


def _go_on(bench: Bench, compiled: Compiled) -> None:
    """What a plan does that starts from the last one's state, and one with more threads."""
    import numpy as np

    from optimizer.search.balance import balance
    from optimizer.threads import Threads

    problem, rows = compiled.problem, np.zeros(1, np.int64)
    for _ in range(2):
        bench.start(problem, compiled.replicas, compiled.lead, rows[:0])
        bench.spare(0)
    with Threads(2) as threads:
        balance(problem, bench.spare(0), 0, 1, np.ones(len(compiled.goals), np.int64), True, threads, 0)
    bench.reload(problem, rows, problem.vector[rows])
    bench.reload(problem, rows, None)
    bench.recount(problem)
    bench.appraise(problem)


def _follow() -> None:
    """A tiny live model takes samples of two windows and hands out a snapshot."""
    from cluster_model.metadata.events import BrokerRegistered, PartitionChanged, TopicCreated
    from cluster_model.model import ClusterModel
    from metrics_reporter.codec import encode
    from metrics_reporter.columns import decode
    from metrics_reporter.sample import BatchHeader, Sample, SampleBatch, Scope

    model = ClusterModel("warm-up")
    for event in (
        BrokerRegistered(0, None),
        TopicCreated("warm-up", "1"),
        PartitionChanged("warm-up", 0, (0,), (0,), 0),
    ):
        model.apply(event, 0)
    samples = (
        Sample(Scope.BROKER, None, None, "cpu", 1.0),
        Sample(Scope.LEADER, "warm-up", 0, "network_in", 1.0),
        Sample(Scope.LEADER, "warm-up", 0, "disk", 1.0),
    )
    for sequence, time_ms in enumerate((0, 3_600_000)):
        model.ingest(decode(encode(SampleBatch(BatchHeader(0, time_ms, 1, 0, sequence), samples))), time_ms)
    model.snapshot(3_600_000)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    announce()
    warm_up()
