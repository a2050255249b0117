"""The host's figures are those of the machine this runs on, and the broker's process where it is named."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from metrics_reporter.collectors.host import HostCollector
from metrics_reporter.loads import LoadMeter, Round
from metrics_reporter.reading import CollectError, Reading


def collected(collector: HostCollector) -> Reading:
    return collector.collect()


def test_the_disks_of_the_log_directories_count_once_each(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    reading = collected(HostCollector(log_dirs=[tmp_path / "a", tmp_path / "b"]))
    usage = shutil.disk_usage(tmp_path)
    assert reading.capacity["disk"] == usage.total
    assert reading.disk == pytest.approx(usage.used, rel=0.05)


def test_the_cpu_of_the_broker_is_that_of_its_process(tmp_path: Path) -> None:
    """Burn a known amount of CPU here, and read it back in cores."""
    pid = tmp_path / "kafka.pid"
    pid.write_text(f"{os.getpid()}\n")
    collector, meter = HostCollector(pid_file=pid), LoadMeter()
    begun, cpu = time.monotonic(), time.process_time()
    meter.take(Round(begun, host=collected(collector).counters))
    while time.process_time() - cpu < 0.3:
        pass
    ended = time.monotonic()
    (measured,) = meter.take(Round(ended, host=collected(collector).counters))
    (cores,) = [s.value for s in measured.samples if s.metric == "cpu"]
    assert cores * measured.seconds == pytest.approx(0.3, abs=0.08)


def test_the_hosts_cpu_is_no_more_than_its_cores() -> None:
    collector = HostCollector()
    before, after = collected(collector), collected(collector)
    assert before.counters is not None
    assert after.counters is not None
    assert after.counters.broker["cpu_seconds"] >= before.counters.broker["cpu_seconds"]
    assert before.counters.epoch == after.counters.epoch


def test_bytes_through_an_interface_are_counted() -> None:
    collector = HostCollector(interfaces=["lo"])
    before = collected(collector)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        peer = server.accept()[0]
        sent = 0
        while sent < 300_000:
            client.sendall(b"x" * 10_000)
            sent += 10_000
            got = 0
            while got < 10_000:
                got += len(peer.recv(10_000 - got))
        peer.close()
    after = collected(collector)
    assert before.counters is not None
    assert after.counters is not None
    for counter in ("nic_in", "nic_out"):
        assert after.counters.broker[counter] - before.counters.broker[counter] >= 300_000


def test_a_container_has_the_cores_it_was_given(tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    cores = len(os.sched_getaffinity(0))
    for text, expected in (("50000 100000", 0.5), ("max 100000", cores), ("nonsense", cores), (f"{10**9} 1000", cores)):
        quota.write_text(text)
        assert collected(HostCollector(quota=quota)).capacity["cpu"] == expected
    assert collected(HostCollector(quota=tmp_path / "missing")).capacity["cpu"] == cores


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    pid = tmp_path / "kafka.pid"
    pid.write_text("no number")
    with pytest.raises(CollectError, match=r"expected a process id in .*kafka\.pid, found 'no number'"):
        collected(HostCollector(pid_file=pid))
    with pytest.raises(CollectError, match="there is no network interface eth99; found"):
        collected(HostCollector(interfaces=["eth99"]))
    with pytest.raises(CollectError, match="missing"):
        collected(HostCollector(log_dirs=[tmp_path / "missing"]))
    with pytest.raises(CollectError, match="missing"):
        collected(HostCollector(pid_file=tmp_path / "missing"))
