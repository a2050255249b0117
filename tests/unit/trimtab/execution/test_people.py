"""A pause and drains are of the cluster: they outlive executions, journals and instances."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cluster_model.errors import ConfigurationError
from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.journal import Journal
from trimtab.execution.ledger import HEADER, PAUSE, JointLedger, MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.people import Pause, drain_document, drain_key, drains_of, ended, pause_of
from trimtab.execution.state import Partition, Task
from trimtab.service.keeping import Told
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import BrokerSpec, TopicSpec
from trimtab.simulator.traffic import Traffic


def test_while_the_cluster_is_paused_no_execution_takes_a_step() -> None:
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0))
    cluster.create_topic(TopicSpec("t", ((1, 2),), np.zeros(1), 1.0, np.full(1, 1e6), filled=1.0))
    shared = MemoryDocuments()
    clock = Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)
    execution = Execution(SimulatedPort(cluster), MemoryLedger(shared), clock, instance="here")
    task = Task(Partition("t", 0), (1, 2), (3, 2), 1, 3)
    execution.begin(Order("sha256:x", cluster.cluster_id, (task,), racks=False), Settings())
    elsewhere = MemoryLedger(shared)
    elsewhere.tell(PAUSE, Pause("anna", "a release", 0).document())
    assert execution.turn().waits == "paused by anna"
    assert cluster.list_partition_reassignments() == {}
    elsewhere.tell(PAUSE, ended("anna", 1))
    assert execution.turn().waits == ""
    assert cluster.list_partition_reassignments()


def test_drains_stand_though_the_journal_of_a_machine_is_ahead(tmp_path: Path) -> None:
    """What only the journal knows is written to the cluster again, but nothing that people told is taken away by that."""
    shared = MemoryDocuments()
    MemoryLedger(shared).tell(drain_key(7), drain_document("anna", 5))
    journal = Journal(tmp_path, "c")
    journal.write({HEADER: {"revision": 9}})
    ledger = JointLedger(journal, MemoryLedger(shared))
    ledger.claim()
    ledger.read()
    ledger.write({HEADER: {"revision": 10}})
    assert drains_of(ledger.told()) == {7: "anna"}
    assert shared.documents[HEADER] == {"revision": 10}


def test_what_was_told_here_is_shared_once_and_what_was_told_elsewhere_is_taken(tmp_path: Path) -> None:
    here, there, cluster = Told(tmp_path / "here"), Told(tmp_path / "there"), MemoryLedger()

    def share(told: Told) -> None:
        unshared = told.unshared()
        for key, document in unshared.items():
            cluster.tell(key, document)
        told.shared(unshared)
        told.take(cluster.told())

    here.set_pause(Pause("anna", "", 5))
    here.set_draining(frozenset({7, 8}), "anna", 5)
    share(here)
    share(there)
    assert (there.pause, there.draining) == (Pause("anna", "", 5), frozenset({7, 8}))
    there.set_pause(None)
    there.set_draining(frozenset({8}))
    share(there)
    assert here.unshared() == {}
    share(here)
    assert (here.pause, here.draining) == (None, frozenset({8}))
    again = Told(tmp_path / "here")  # the cluster may not answer at the next start
    assert (again.pause, again.draining) == (None, frozenset({8}))
    assert not again.unshared()


def test_a_record_that_was_lost_ends_no_pause(tmp_path: Path) -> None:
    """The topic was deleted: what this instance knows is shared again."""
    told = Told(tmp_path)
    told.set_pause(Pause("anna", "", 5))
    told.shared(told.unshared())
    assert not told.take({})
    assert told.pause == Pause("anna", "", 5)
    assert told.unshared().keys() == {PAUSE}


def test_what_was_told_while_the_cluster_was_away_is_not_lost(tmp_path: Path) -> None:
    told = Told(tmp_path)
    told.set_draining(frozenset({7}), "anna", 5)
    assert not Told(tmp_path).take({})  # still to be shared, so the cluster's silence about it says nothing
    assert Told(tmp_path).unshared() == {drain_key(7): drain_document("anna", 5)}


def test_a_file_of_an_earlier_release_is_shared_with_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "service.json").write_text('{"version": 1, "pause": {"who": "anna", "why": "", "since_ms": 5}, "draining": [7]}')
    told = Told(tmp_path)
    assert (told.pause, told.draining) == (Pause("anna", "", 5), frozenset({7}))
    assert told.unshared().keys() == {PAUSE, drain_key(7)}
    assert pause_of(told.unshared()) == told.pause


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "service.json").write_text('{"version": 1}')
    with pytest.raises(ConfigurationError, match="expected pauses and drains of operators"):
        Told(tmp_path)
