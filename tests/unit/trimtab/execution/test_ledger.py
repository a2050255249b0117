"""What was written down is there after a kill, one instance writes at a time, and the fuller of two records holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cluster_model.errors import ExternalError
from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.journal import Journal
from trimtab.execution.ledger import HEADER, Document, Fenced, JointLedger, MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.state import Partition, Stage, Task
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import BrokerSpec, TopicSpec
from trimtab.simulator.traffic import Traffic


def header(revision: int) -> Document:
    return {"revision": revision}


class Away(MemoryLedger):
    """A record in a cluster that may not answer."""

    away = False

    def write(self, documents: object) -> None:
        if self.away:
            raise ExternalError("the cluster does not answer", retriable=True)
        super().write(documents)  # type: ignore[arg-type]


def test_a_journal_keeps_what_was_written_and_only_that(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "c")
    journal.write({"a": {"x": 1}, "b": {"y": [1, None]}})
    journal.write({"a": None})
    again = Journal(tmp_path, "c")  # the first was never closed, as after a kill
    assert again.read() == {"b": {"y": [1, None]}}
    assert Journal(tmp_path, "other").read() == {}


def test_two_processes_cannot_claim_one_journal(tmp_path: Path) -> None:
    first, second = Journal(tmp_path, "c"), Journal(tmp_path, "c")
    first.claim()
    with pytest.raises(ExternalError, match="another process on this machine carries out a plan"):
        second.claim()
    first.close()
    second.claim()


def test_an_unusable_journal_is_said_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExternalError, match=r"file/executions-c\.db: the journal cannot be opened.*--journal"):
        Journal(tmp_path / "file", "c")


def test_who_claims_last_writes(tmp_path: Path) -> None:
    shared = MemoryDocuments()
    first, second = MemoryLedger(shared), MemoryLedger(shared)
    first.claim()
    first.write({HEADER: header(1)})
    second.claim()
    with pytest.raises(Fenced):
        first.write({HEADER: header(2)})
    assert second.read() == {HEADER: header(1)}


def test_what_did_not_reach_the_cluster_goes_there_with_the_next_write(tmp_path: Path) -> None:
    shared = Away()
    joint = JointLedger(Journal(tmp_path, "c"), shared)
    joint.claim()
    shared.away = True
    with pytest.raises(ExternalError):
        joint.write({HEADER: header(1), "task/t/0": {"stage": "asked"}})
    shared.away = False
    joint.write({HEADER: header(2)})
    assert shared.read() == {HEADER: header(2), "task/t/0": {"stage": "asked"}}


@pytest.mark.parametrize(("here", "there"), [(3, 2), (2, 3)])
def test_the_fuller_record_holds_and_the_other_gets_what_it_lacks(here: int, there: int, tmp_path: Path) -> None:
    journal, shared = Journal(tmp_path, "c"), MemoryLedger()
    journal.write({HEADER: header(here), "task/t/0": {"at": here}, "task/t/1": {}})
    shared.claim()
    shared.write({HEADER: header(there), "task/t/0": {"at": there}, "task/t/2": {}})
    joint = JointLedger(journal, shared)
    joint.claim()
    found = joint.read()
    assert found["task/t/0"] == {"at": 3}
    joint.write({HEADER: header(4)})
    assert journal.read() == shared.read() == {**found, HEADER: header(4)}


def test_a_step_that_could_not_be_written_down_is_not_counted(tmp_path: Path) -> None:
    """A record that cannot be written for long must not use up the attempts of a partition."""
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0))
    cluster.create_topic(TopicSpec("t", ((1, 2),), np.zeros(1), 1.0, np.full(1, 1e6), filled=1.0))
    shared = Away()
    clock = Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)
    execution = Execution(SimulatedPort(cluster), JointLedger(Journal(tmp_path, "c"), shared), clock, instance="here")
    order = Order("sha256:x", cluster.cluster_id, (Task(Partition("t", 0), (1, 2), (3, 2), 1, 3),), racks=False)
    execution.begin(order, Settings())
    shared.away = True
    for _ in range(20):
        with pytest.raises(ExternalError):
            execution.turn()
        assert cluster.list_partition_reassignments() == {}
    shared.away = False
    for _ in range(20):
        if execution.turn().over:
            break
        cluster.step(5)
    assert execution.marks[Partition("t", 0)].stage is Stage.DONE


def test_a_second_execution_is_refused_and_the_first_goes_on() -> None:
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0))
    cluster.create_topic(TopicSpec("t", ((1, 2),), np.zeros(1), 1.0, np.full(1, 1e6), filled=1.0))
    shared, clock = MemoryDocuments(), Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)
    first, second = (Execution(SimulatedPort(cluster), MemoryLedger(shared), clock, instance=name) for name in ("one", "two"))
    order = Order("sha256:x", cluster.cluster_id, (Task(Partition("t", 0), (1, 2), (3, 2), 1, 3),), racks=False)
    first.begin(order, Settings())
    with pytest.raises(ExternalError, match="one carries out plan sha256:x on this cluster; one at a time"):
        second.begin(order, Settings())
    first.turn()
    second.adopt()
    with pytest.raises(Fenced):
        first.turn()
    second.rollback("anna")
    with pytest.raises(ExternalError, match="it is being rolled back"):
        second.cancel("bert")
