"""Loads must be what the broker really did: every byte in exactly one interval and with the partition that had it,
whatever restarts, moves away, is cut, or does not answer for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_reporter.loads import LoadMeter, Measured, Round
from metrics_reporter.reading import Counters, LogReading, Logs, Partition
from metrics_reporter.sample import Scope

Key = tuple[Scope, str | None, int | None, str]
A, B, C = ("orders", 0), ("orders", 1), ("orders", 2)


def led(size: int, start: int = 0, end: int | None = None) -> LogReading:
    return LogReading(size, start, size // 100 if end is None else end, leads=True, in_sync=True)


def followed(size: int, *, in_sync: bool | None = True) -> LogReading:
    return LogReading(size, leads=False, in_sync=in_sync)


def a_round(
    at: float,
    logs: Mapping[Partition, LogReading] | None,
    broker: Mapping[str, float] | None = None,
    topics: Mapping[str, Mapping[str, float]] | None = None,
    *,
    epoch: float | None = 1.0,
    host: Mapping[str, float] | None = None,
) -> Round:
    return Round(
        at,
        None if logs is None else Logs(logs),
        None if broker is None else Counters(epoch, broker, topics or {}),
        None if host is None else Counters(0.0, host),
    )


def rates(measured: Sequence[Measured]) -> dict[Key, float]:
    """Every value of one round by series; a series may stand there once."""
    found: dict[Key, float] = {}
    for part in measured:
        for sample in part.samples:
            assert sample[:4] not in found
            found[sample[:4]] = sample.value
    return found


def of(measured: Sequence[Measured], metric: str, scope: Scope = Scope.LEADER) -> dict[Partition, float]:
    return {(t, n): v for (s, t, n, m), v in rates(measured).items() if s == scope and m == metric and t and n is not None}


def test_the_first_round_tells_of_logs_and_of_no_rate() -> None:
    (measured,) = LoadMeter().take(a_round(10.0, {A: led(500)}, {"bytes_in": 500.0}, {"bytes_in": {"orders": 500.0}}))
    assert measured.seconds == 0
    assert {s[:4]: s.value for s in measured.samples} == {
        (Scope.LEADER, "orders", 0, "disk"): 500.0, (Scope.BROKER, None, None, "disk"): 500.0,
    }  # fmt: skip


def test_a_burst_of_a_second_counts_in_full() -> None:
    """An exponential average would forget it, or tell of it for minutes."""
    meter = LoadMeter()
    meter.take(a_round(0.0, {A: led(0)}, {"bytes_in": 0.0}, {"bytes_in": {"orders": 0.0}}))
    burst = meter.take(a_round(10.0, {A: led(10_000)}, {"bytes_in": 10_000.0}, {"bytes_in": {"orders": 10_000.0}}))
    assert (burst[0].seconds, of(burst, "network_in")) == (10.0, {A: 1000.0})
    after = meter.take(a_round(20.0, {A: led(10_000)}, {"bytes_in": 10_000.0}, {"bytes_in": {"orders": 10_000.0}}))
    assert of(after, "network_in") == {A: 0.0}


def test_a_topics_rates_are_split_by_what_each_partition_was_appended_to() -> None:
    meter = LoadMeter()
    topics = {"bytes_in": {"orders": 0.0}, "bytes_out": {"orders": 0.0}, "produce_requests": {"orders": 0.0}}
    broker = {"bytes_in": 0.0, "bytes_out": 0.0, "produce_requests": 0.0}
    meter.take(a_round(0.0, {A: led(0), B: led(5000)}, broker, topics))
    topics = {"bytes_in": {"orders": 1000.0}, "bytes_out": {"orders": 4000.0}, "produce_requests": {"orders": 40.0}}
    broker = {"bytes_in": 1000.0, "bytes_out": 4000.0, "produce_requests": 40.0}
    measured = meter.take(a_round(10.0, {A: led(900), B: led(5100)}, broker, topics))
    assert of(measured, "network_in") == {A: 90.0, B: 10.0}
    assert of(measured, "consumer_out") == {A: 360.0, B: 40.0}
    assert of(measured, "produce_rate") == {A: pytest.approx(3.6), B: pytest.approx(0.4)}


def test_where_retention_cut_a_log_offsets_say_how_much_came() -> None:
    """The log of A became smaller although most was appended to it."""
    meter = LoadMeter()
    before = {A: led(50_000, 0, 500), B: led(10_000, 0, 100)}
    meter.take(a_round(0.0, before, {"bytes_in": 0.0}, {"bytes_in": {"orders": 0.0}}))
    after = {A: led(20_000, 400, 600), B: led(12_500, 0, 125)}
    measured = meter.take(a_round(10.0, after, {"bytes_in": 12_500.0}, {"bytes_in": {"orders": 12_500.0}}))
    assert of(measured, "network_in") == {A: 1000.0, B: 250.0}
    alone = LoadMeter()
    alone.take(a_round(0.0, before))
    assert of(alone.take(a_round(10.0, after)), "network_in") == {A: 1000.0, B: 250.0}, "without any counter too"


def test_records_that_came_to_a_compacted_log_count_by_how_it_grew_before() -> None:
    """What cleaning leaves is a few of many records: 0.2 to 0.3 % of what was produced."""
    meter = LoadMeter()
    meter.take(a_round(0.0, {A: led(40_000, 0, 100_000)}))
    assert of(meter.take(a_round(10.0, {A: led(140_000, 0, 101_000)})), "network_in") == {A: 10_000.0}
    assert of(meter.take(a_round(20.0, {A: led(45_000, 0, 102_000)})), "network_in") == {A: 10_000.0}, "cleaned, with as many records"
    cleaned = {A: led(60_000, 0, 103_000)}
    assert of(meter.take(a_round(30.0, cleaned)), "network_in") == {A: 1500.0}, "that it was cleaned once more cannot be seen"
    assert of(meter.take(a_round(40.0, {A: led(45_000, 0, 104_000)})), "network_in") == {A: pytest.approx(9000.0)}, "and does not count"
    assert of(meter.take(a_round(50.0, {A: led(95_000, 90_000, 105_000)})), "network_in") == {A: pytest.approx(9000.0)}, "retention, too"


def test_consumers_that_read_old_records_count_by_what_came_last() -> None:
    meter = LoadMeter()
    logs = [{A: led(0), B: led(9900)}, {A: led(900), B: led(10_000)}]
    out = [0.0, 0.0, 5000.0]
    for i in range(2):
        meter.take(a_round(10.0 * i, logs[i], {"bytes_out": out[i]}, {"bytes_out": {"orders": out[i]}}))
    measured = meter.take(a_round(20.0, logs[1], {"bytes_out": out[2]}, {"bytes_out": {"orders": out[2]}}))
    assert of(measured, "consumer_out") == {A: 450.0, B: 50.0}


def test_a_restarted_broker_has_no_negative_and_no_enormous_load() -> None:
    meter = LoadMeter()
    counted = {"bytes_in": 9e12, "replication_in": 5e12, "cpu_seconds": 4000.0}
    meter.take(a_round(0.0, {A: led(1000)}, counted, {"bytes_in": {"orders": 9e12}}, epoch=1.0))
    # Soon after the restart, and again when the new counters have passed the old ones.
    for at, value in ((10.0, 50.0), (20.0, 9.1e12)):
        again = {"bytes_in": value, "replication_in": value, "cpu_seconds": 4001.0}
        measured = meter.take(
            a_round(at, {A: led(1000 + int(at) * 10)}, again, {"bytes_in": {"orders": value}}, epoch=at)
        )
        found = rates(measured)
        assert found[Scope.LEADER, "orders", 0, "network_in"] == 10.0, "logs outlive a restart, so they still tell"
        assert not [k for k in found if k[0] == Scope.BROKER and k[3] != "disk"]
        assert (Scope.LEADER, "orders", 0, "cpu") not in found


def test_counters_that_go_back_without_saying_so_start_again() -> None:
    meter = LoadMeter()
    for at, value in ((0.0, 1000.0), (10.0, 10.0)):
        measured = meter.take(a_round(at, {A: led(0)}, {"replication_in": value, "bytes_in": value}, epoch=None))
    assert (Scope.BROKER, None, None, "network_in") not in rates(measured)
    measured = meter.take(a_round(20.0, {A: led(0)}, {"replication_in": 20.0, "bytes_in": 30.0}, epoch=None))
    assert rates(measured)[Scope.BROKER, None, None, "network_in"] == 3.0


def test_a_topic_made_again_under_its_old_name_starts_again() -> None:
    meter = LoadMeter()
    old = {"bytes_in": {"orders": 9000.0, "other": 0.0}}
    meter.take(a_round(0.0, {A: led(9000)}, {"bytes_in": 9000.0}, old))
    new = {"bytes_in": {"orders": 100.0, "other": 0.0}}
    measured = meter.take(a_round(10.0, {A: led(100)}, {"bytes_in": 9100.0}, new))
    assert of(measured, "network_in").get(A, 0.0) <= 10.0
    new = {"bytes_in": {"orders": 300.0, "other": 0.0}}
    measured = meter.take(a_round(20.0, {A: led(300)}, {"bytes_in": 9300.0}, new))
    assert of(measured, "network_in") == {A: 20.0}


def test_what_a_hot_partition_had_before_it_moved_away_is_not_laid_on_those_that_stayed() -> None:
    meter = LoadMeter()
    logs = {A: led(0), B: led(0)}
    meter.take(a_round(0.0, logs, {"bytes_in": 0.0, "bytes_out": 0.0}, _both("orders", 0.0)))
    logs = {A: led(10_000), B: led(100)}
    meter.take(a_round(10.0, logs, {"bytes_in": 10_100.0, "bytes_out": 10_100.0}, _both("orders", 10_100.0)))
    # A took 9000 more until its leader moved; B its usual 100.
    counted = 10_100.0 + 9000.0 + 100.0
    for gone in ({B: led(200)}, {A: followed(19_500), B: led(200)}):
        meter_ = _copy(meter)
        measured = meter_.take(a_round(20.0, gone, {"bytes_in": counted, "bytes_out": counted}, _both("orders", counted)))
        assert of(measured, "network_in") == {B: 10.0}
        assert of(measured, "consumer_out")[B] == pytest.approx(9.1, rel=0.1)
        assert not [k for k in rates(measured) if k[:3] == (Scope.LEADER, *A)]


def _both(topic: str, value: float) -> dict[str, dict[str, float]]:
    return {"bytes_in": {topic: value}, "bytes_out": {topic: value}}


def _copy(meter: LoadMeter) -> LoadMeter:
    from copy import deepcopy

    return deepcopy(meter)


def test_a_replica_that_moves_here_brings_no_load_with_its_copy() -> None:
    """Terabytes that a reassignment copies are not what the partition will cost."""
    meter = LoadMeter()
    meter.take(a_round(0.0, {A: led(0)}, {"bytes_in": 0.0}, {"bytes_in": {"orders": 0.0}}))
    arriving = {A: led(100), B: followed(10**12, in_sync=False)}
    measured = meter.take(a_round(10.0, arriving, {"bytes_in": 100.0}, {"bytes_in": {"orders": 100.0}}))
    assert of(measured, "network_in") == {A: 10.0}
    assert not [k for k in rates(measured) if k[1:3] == B]
    arrived = {A: led(200), B: led(10**12 + 50)}
    measured = meter.take(a_round(20.0, arrived, {"bytes_in": 250.0}, {"bytes_in": {"orders": 250.0}}))
    assert of(measured, "network_in") == {A: 10.0}
    assert of(measured, "disk") == {A: 200.0, B: 10**12 + 50.0}
    settled = {A: led(300), B: led(10**12 + 550)}
    measured = meter.take(a_round(30.0, settled, {"bytes_in": 850.0}, {"bytes_in": {"orders": 850.0}}))
    assert of(measured, "network_in") == pytest.approx({A: 10.0, B: 50.0})


def test_a_topic_that_is_new_here_counts_from_its_first_byte() -> None:
    meter = LoadMeter()
    meter.take(a_round(0.0, {}, {"bytes_in": 0.0}, {"bytes_in": {"other": 0.0}}))
    logs = {A: led(3000), B: led(1000)}
    measured = meter.take(a_round(10.0, logs, {"bytes_in": 4000.0}, {"bytes_in": {"orders": 4000.0, "other": 0.0}}))
    assert of(measured, "network_in") == {A: 300.0, B: 100.0}


def test_followers_tell_what_they_copied_and_leave_out_what_is_not_in_sync() -> None:
    meter = LoadMeter()
    meter.take(a_round(0.0, {A: followed(0), B: followed(0, in_sync=False), C: LogReading(0)}))
    measured = meter.take(a_round(10.0, {A: followed(500), B: followed(900, in_sync=False), C: LogReading(700)}))
    assert of(measured, "network_in", Scope.FOLLOWER) == {A: 50.0}
    assert of(measured, "network_in", Scope.REPLICA) == {C: 70.0}
    assert of(measured, "disk", Scope.FOLLOWER) == {A: 500.0}


def test_every_core_belongs_to_a_replica_in_proportion_to_the_bytes_it_handled() -> None:
    meter = LoadMeter()
    logs = [{A: led(0), B: followed(0)}, {A: led(600), B: followed(200)}]
    counted = [{"bytes_in": 0.0, "bytes_out": 0.0, "replication_in": 0.0, "replication_out": 0.0, "cpu_seconds": 0.0},
               {"bytes_in": 600.0, "bytes_out": 1000.0, "replication_in": 200.0, "replication_out": 1200.0,
                "cpu_seconds": 15.0}]  # fmt: skip
    topics = [{"bytes_in": {"orders": 0.0}, "bytes_out": {"orders": 0.0}},
              {"bytes_in": {"orders": 600.0}, "bytes_out": {"orders": 1000.0}}]  # fmt: skip
    for i in range(2):
        measured = meter.take(a_round(10.0 * i, logs[i], counted[i], topics[i]))
    assert of(measured, "cpu") == {A: pytest.approx(1.5 * 2800 / 3000)}
    assert of(measured, "cpu", Scope.FOLLOWER) == {B: pytest.approx(1.5 * 200 / 3000)}
    found = rates(measured)
    assert found[Scope.BROKER, None, None, "network_in"] == 80.0
    assert found[Scope.BROKER, None, None, "network_out"] == 220.0
    assert found[Scope.BROKER, None, None, "cpu"] == 1.5


def test_what_the_broker_counts_itself_goes_before_what_its_host_counts() -> None:
    meter = LoadMeter()
    for i in range(2):
        host = {"nic_in": 9000.0 * i, "nic_out": 9000.0 * i, "cpu_seconds": 10.0 * i}
        own = {"bytes_in": 100.0 * i, "replication_in": 0.0, "cpu_seconds": 5.0 * i}
        measured = meter.take(a_round(10.0 * i, None, own, host=host))
    found = rates(measured)
    assert found == {
        (Scope.BROKER, None, None, "network_in"): 10.0, (Scope.BROKER, None, None, "cpu"): 0.5,
        (Scope.BROKER, None, None, "network_out"): 900.0,
    }  # fmt: skip


def test_without_counters_the_hosts_cpu_is_shared_out_by_what_logs_tell() -> None:
    meter = LoadMeter()
    for i in range(2):
        measured = meter.take(a_round(10.0 * i, {A: led(300 * i), B: led(100 * i)}, host={"cpu_seconds": 20.0 * i}))
    assert of(measured, "cpu") == {A: 1.5, B: 0.5}


def test_the_controllers_log_is_nobodys_replica() -> None:
    meter = LoadMeter()
    measured = meter.take(a_round(0.0, {("__cluster_metadata", 0): LogReading(5000), A: led(70)}))
    assert {s.topic for part in measured for s in part.samples} == {"orders", None}
    assert rates(measured)[Scope.BROKER, None, None, "disk"] == 70.0


def test_a_reading_at_the_same_moment_divides_by_nothing() -> None:
    meter = LoadMeter()
    for _ in range(2):
        measured = meter.take(a_round(5.0, {A: led(10)}, {"bytes_in": 1.0}, {"bytes_in": {"orders": 1.0}}))
    assert {k[3] for k in rates(measured)} == {"disk"}


step = st.tuples(
    st.integers(1, 60),  # seconds
    st.lists(st.integers(0, 10**6), min_size=2, max_size=2),  # appended to A and to B
    st.integers(0, 10**6),  # fetched from the topic
    st.booleans(),  # do the logs answer
    st.booleans(),  # do the counters answer
)


@given(st.lists(step, min_size=2, max_size=12))
def test_every_byte_counts_once_whichever_collectors_fail_meanwhile(steps: list[tuple[int, list[int], int, bool, bool]]) -> None:
    """What rates and intervals multiply to is what came between the first and the last answer, no more, no less."""
    meter, at, sizes, fetched = LoadMeter(), 0.0, [0, 0], 0
    told: dict[tuple[str, Partition], float] = defaultdict(float)
    broker_out = 0.0
    logs_seen: list[list[int]] = []
    both_seen: list[list[int]] = []
    counters_seen: list[int] = []
    for seconds, added, out, logs_answer, counters_answer in steps:
        at += seconds
        sizes = [size + more for size, more in zip(sizes, added, strict=True)]
        fetched += out if any(sizes) else 0
        logs = {A: led(sizes[0]), B: led(sizes[1])} if logs_answer else None
        counted = {"bytes_in": float(sum(sizes)), "bytes_out": float(fetched), "replication_out": 0.0}
        topics = {"bytes_in": {"orders": float(sum(sizes))}, "bytes_out": {"orders": float(fetched)}}
        measured = meter.take(a_round(at, logs, counted if counters_answer else None, topics))
        for metric in ("network_in", "consumer_out"):
            for part in measured:
                for partition, rate in of([part], metric).items():
                    told[metric, partition] += rate * part.seconds
        for part in measured:
            broker_out += part.seconds * sum(s.value for s in part.samples if (s.scope, s.metric) == (Scope.BROKER, "network_out"))
        logs_seen += [list(sizes)] if logs_answer else []
        both_seen += [[sum(sizes), fetched]] if logs_answer and counters_answer else []
        counters_seen += [fetched] if counters_answer else []
    if logs_seen:
        for i, partition in enumerate((A, B)):
            assert told["network_in", partition] == pytest.approx(logs_seen[-1][i] - logs_seen[0][i], abs=1e-3)
    if counters_seen:
        assert broker_out == pytest.approx(counters_seen[-1] - counters_seen[0], abs=1e-3)
    out_told = told["consumer_out", A] + told["consumer_out", B]
    assert out_told == pytest.approx(both_seen[-1][1] - both_seen[0][1] if both_seen else 0, abs=1e-3)
