"""What calls the kernels of the planner and of the live model, so that they are compiled before they are needed.

`trimtab compile` and the service at its start compile all of them; `trimtab.compiling` asks which ones a plan will use.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernels import compiled
from kernels.cache import CACHE_VARIABLE, are_kept, wanted_folder
from kernels.compiled import COMPILED, compile_all

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from optimizer.placement.states import States
    from optimizer.problem import Compiled

log = logging.getLogger(__name__)


def announce() -> None:
    """Say that compiling takes a while, when it will, and when it will at every start."""
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

    return compiled.is_compiled(advance)


def warm_up() -> None:
    """Compile every kernel of the planner and of the live model in this process, or load it: what `rehearse` does, and plans a cluster
    whose last broker is looked at from all sides, which takes long interpreted."""
    compile_all()
    rehearse()
    from goals.document import parse_goals
    from optimizer.explain import explain_partition
    from optimizer.options import PlanOptions
    from optimizer.planner import plan

    goals = parse_goals("version: 1\npreset: default\n", "warm-up")
    odd = _tiny([[n % 10] for n in range(11)], "shared")  # one broker has twice its share, and keeps it
    options = PlanOptions()
    explain_partition(odd, goals, options, "warm-up", 0, plan(odd, goals, options))


def tiny_clusters() -> list[Snapshot]:
    """Clusters that are planned in a moment, and take all kernels that most plans do."""
    crowded = _tiny([*[[0, 1]] * 7, [0, 2]], "local", brokers=8)  # the last crowds a rack
    return [crowded, _tiny([[n % 3] for n in range(4)], "shared"), _tiny([[n % 2] for n in range(8)], "local", 0.01)]


def rehearse() -> None:
    """Plan tiny clusters with every kind of goal and one that nothing may move in, explain, and follow a cluster: most kernels, in a
    moment also where they are interpreted."""
    from goals.document import parse_goals
    from optimizer.explain import explain_partition
    from optimizer.options import PlanOptions
    from optimizer.planner import plan
    from optimizer.report import to_json
    from optimizer.search_state import SearchState

    crowded, shared, sized = tiny_clusters()
    goals = parse_goals("version: 1\npreset: default\n", "warm-up")
    state, options = SearchState(), PlanOptions()
    plan(crowded, goals, state=state)
    work = state.take()
    if work is not None:
        _go_on(work.states, work.compiled)
    topics = "goals: [{kind: topic_distribution, resource: replicas}]"
    to_json(plan(crowded, parse_goals(f"version: 1\npreset: default\n{topics}\n", "warm-up")))
    coarse = "goals: [{kind: usage_distribution, resource: replicas, trivial_change: 0.1}]"
    plan(crowded, parse_goals(f"version: 1\n{coarse}\n", "warm-up"))
    explain_partition(shared, goals, options, "warm-up", 0, plan(shared, goals, options))
    plan(shared, goals, PlanOptions(max_moves=0))
    plan(sized, goals)
    _follow()


def _tiny(lists: list[list[int]], storage: str, step: float = 0.0, brokers: int = 4) -> Snapshot:
    """Partitions with these replicas, on so many `brokers` or as many as hold some; each has `step` more on disk than the one before."""
    from cluster_model.build import build_snapshot

    return build_snapshot(
        {
            "version": 1,
            "cluster_id": "warm-up",
            "taken_at": "2000-01-01T00:00:00Z",
            "storage": storage,
            "brokers": [
                {"id": b, "rack": f"r{b % 2}", "capacity": {"disk": 100.0}} for b in range(max(brokers, 1 + max(map(max, lists))))
            ],
            "partitions": [
                {
                    "topic": "warm-up",
                    "partition": n,
                    "replicas": on,
                    "leader": on[0],
                    "leader_load": {"network_in": 5.0, "disk": 9.0 + step * n},
                }
                for n, on in enumerate(lists)
            ],
        }
    )


def _go_on(states: States, compiled: Compiled) -> None:
    """What a plan does that starts from the last one's state, and one with more threads."""
    import numpy as np

    from optimizer.search.balance import balance
    from optimizer.threads import Threads

    problem, rows = compiled.problem, np.zeros(1, np.int64)
    for _ in range(2):
        states.start(problem, compiled.replicas, compiled.lead, rows[:0])
        states.spare(0)
    with Threads(2) as threads:
        balance(problem, states.spare(0), 0, 1, np.ones(len(compiled.goals), np.int64), True, threads, 0)
    states.reload(problem, rows, problem.vector[rows])
    states.reload(problem, rows, None)
    states.recount(problem)
    states.appraise(problem)


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

