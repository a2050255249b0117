"""One real cluster for the whole tier, an admin client to it, and its logs in the report of a failed test."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator

import pytest
from kafka.admin import KafkaAdminClient

from tests.kafka.cluster import KafkaCluster, Listener
from tests.kafka.guarded import certificates, guarded
from tests.kafka.proxy import PROXIED
from tests.kafka.traffic import administering

__all__ = ["certificates", "guarded"]  # fixtures
_CLUSTER = pytest.StashKey[KafkaCluster]()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """Four brokers in racks r1 r1 r2 r3 with two log directories each, all up; clients of a second listener can be cut off."""
    cleaner = {"log.cleaner.backoff.ms": "2500"}  # compacted topics are cleaned that often
    kafka = KafkaCluster(log_dirs=2, properties=cleaner, listeners=[Listener(PROXIED, "PLAINTEXT", proxied=True)])
    kafka.start()
    request.config.stash[_CLUSTER] = kafka
    yield kafka
    failed = request.session.testsfailed > 0
    kafka.stop(keep_logs=failed)
    if failed:
        sys.stderr.write(f"\nlogs of the Kafka brokers are kept in {kafka.folder}\n")


@pytest.fixture
def admin(cluster: KafkaCluster) -> Iterator[KafkaAdminClient]:
    """An admin client beside the one under test; a new one for each test, since it remembers brokers that went."""
    with administering(cluster) as client:
        yield client


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    kafka = item.config.stash.get(_CLUSTER, None)
    if report.failed and kafka is not None and "cluster" in getattr(item, "fixturenames", ()):
        report.sections.append(("Kafka logs", kafka.log_tail()))
    return report
