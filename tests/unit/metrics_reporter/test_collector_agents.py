"""What the agents in a broker's process say is read as it is meant, and whatever else they say ends in one line."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics_reporter.collectors import jolokia, prometheus
from metrics_reporter.collectors.agent import AgentTable
from metrics_reporter.collectors.http import Endpoint
from metrics_reporter.loads import LoadMeter, Round
from metrics_reporter.publisher import SamplePublisher
from metrics_reporter.reading import CollectError, Collector, Counters, LogReading, Reading
from metrics_reporter.spool import Spool
from tests.unit.metrics_reporter.agents import DATA, agent, says

COLLECTORS: list[Callable[[Endpoint], Collector]] = [prometheus.PrometheusCollector, jolokia.JolokiaCollector]


def scraped(text: str) -> Reading:
    return prometheus.parse(text).reading()


def test_a_scrape_with_the_shipped_rules() -> None:
    """Recorded from a broker of Kafka 4.3.1 with examples/jmx-exporter-kafka.yaml."""
    reading = scraped((DATA / "jmx-exporter-rules.txt").read_text())
    assert reading.logs is not None
    assert reading.logs.of == {
        ("my.topic_x-1", 0): LogReading(101022, 0, 100, leads=True),
        ("my.topic_x-1", 2): LogReading(0, 0, 0, leads=False),
    }
    assert reading.counters is not None
    assert reading.counters.epoch == 1795243658.923
    assert reading.counters.broker == {
        "bytes_in": 101022.0, "bytes_out": 0.0, "replication_in": 0.0, "replication_out": 101022.0,
        "produce_requests": 2.0, "fetch_requests": 6.0, "cpu_seconds": 2.31,
    }  # fmt: skip
    assert reading.counters.topics["bytes_in"] == {"my.topic_x-1": 101022.0}


def test_a_scrape_without_any_rules() -> None:
    reading = scraped((DATA / "jmx-exporter-no-rules.txt").read_text())
    assert reading.logs is not None
    assert reading.logs.of == {
        ("my.topic_x-1", 1): LogReading(202044, 0, 200, leads=False),
        ("my.topic_x-1", 2): LogReading(0, 0, 0, leads=True),
    }
    assert reading.counters is not None
    assert reading.counters.broker["replication_in"] == 202044.0


@pytest.mark.parametrize(
    "line",
    [
        'kafka_server_brokertopicmetrics_bytesin_total{topic="t"} 7.0',
        'kafka_server_BrokerTopicMetrics_BytesInPerSec_Count{topic="t",} 7.0',
        'kafka_server_brokertopicmetrics_bytesinpersec_total{topic="t"} 7.0',
        'kafka_server_brokertopicmetrics_bytesinpersec{topic="t"} 7',
        'kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="t"} 7.0 1795243658923',
    ],
)
def test_counters_under_the_names_that_operators_have(line: str) -> None:
    reading = scraped(f"kafka_server_brokertopicmetrics_bytesin_total 9.0\n{line}\n")
    assert reading.counters is not None
    assert reading.counters.topics == {"bytes_in": {"t": 7.0}}
    assert reading.counters.broker == {"bytes_in": 9.0}


@pytest.mark.parametrize(
    "line",
    [
        'kafka_server_brokertopicmetrics_bytesin_oneminuterate{topic="t"} 7.0',  # a rate is no counter
        'kafka_server_brokertopicmetrics_failedproducerequests_total{topic="t"} 7.0',
        'kafka_server_brokertopicmetrics_bytesin_total{topic="t",listener="x"} 7.0',
        'kafka_server_brokertopicmetrics_bytesin_total{topic="t"} NaN',
        'kafka_server_brokertopicmetrics_bytesin_total{topic="t"} -1',
        'kafka_log_log_size{topic="t",partition="0",is_future="true"} 5.0',  # moving to another disk
        'kafka_log_log_size{topic="t",partition="x"} 5.0',
        'kafka_log_log_size{topic="__cluster_metadata",partition="0"} 5.0',
        'kafka_log_log_size{topic="t",partition="0"} NaN',
    ],
)
def test_what_looks_alike_is_passed_over(line: str) -> None:
    reading = scraped(f"kafka_server_brokertopicmetrics_bytesin_total 9.0\n{line}\n")
    assert reading.logs is None
    assert reading.counters is not None
    assert not reading.counters.topics


@pytest.mark.parametrize(
    "line",
    [
        'kafka_network_requestmetrics_localtimems{request="Produce",quantile="0.99"} 42.5',
        'kafka_network_RequestMetrics_LocalTimeMs{quantile="0.99",request="Produce",} 42.5',
        'kafka_network_RequestMetrics_99thPercentile{name="LocalTimeMs",request="Produce"} 42.5',
    ],
)
def test_what_a_broker_takes_for_requests_under_the_names_that_operators_have(line: str) -> None:
    others = (
        'kafka_network_requestmetrics_localtimems{request="Metadata",quantile="0.99"} 7.0',
        'kafka_network_requestmetrics_localtimems{request="FetchConsumer",quantile="0.5"} 7.0',
        'kafka_network_requestmetrics_localtimems{request="FetchConsumer",quantile="0.99"} NaN',
        'kafka_network_RequestMetrics_99thPercentile{name="TotalTimeMs",request="FetchConsumer"} 7.0',
    )
    assert scraped("\n".join((line, *others)) + "\n").latencies == {"produce_latency_ms": 42.5}


def test_latencies_without_requests_are_old_and_left_out() -> None:
    """Kafka goes on telling the last percentile of a broker without writes: it would be slow for ever."""
    meter = LoadMeter()

    def told(at: float, produced: float, fetched: float) -> set[str]:
        counters = Counters(1.0, {"produce_requests": produced, "fetch_requests": fetched})
        latencies = {"produce_latency_ms": 4000.0, "fetch_latency_ms": 3.0}
        found = meter.take(Round(at, counters=counters, latencies=latencies))
        return {s.metric for part in found for s in part.samples if s.metric.endswith("_latency_ms")}

    assert told(0.0, 100.0, 10.0) == set()
    assert told(10.0, 100.0, 20.0) == {"fetch_latency_ms"}
    assert told(20.0, 150.0, 20.0) == {"produce_latency_ms"}


def test_a_bulk_answer_of_jolokia() -> None:
    """Recorded from Jolokia 2.0.2 in a broker of Kafka 4.3.1; it holds requests for MBeans that are not there."""
    reading = jolokia.parse(json.loads((DATA / "jolokia.json").read_text())).reading()
    assert reading.logs is not None
    assert reading.logs.of == {("my.topic_x-1", 0): LogReading(101022), ("my.topic_x-1", 1): LogReading(202044)}
    assert reading.counters is not None
    assert reading.counters.broker == {"bytes_in": 202044.0}
    assert reading.counters.topics == {"bytes_in": {"my.topic_x-1": 202044.0}}
    assert reading.counters.epoch == 1795243658.922


def test_jolokia_reads_cpu_and_roles_and_leaves_out_logs_on_their_way_to_another_disk() -> None:
    def answer(mbean: str, value: object) -> dict[str, object]:
        return {"request": {"mbean": mbean}, "status": 200, "value": value}

    reading = jolokia.parse([
        answer("java.lang:type=OperatingSystem", 2_500_000_000),
        answer("kafka.log:type=Log,name=Size,*", {
            "kafka.log:name=Size,partition=0,topic=t,type=Log": {"Value": 70},
            "kafka.log:is-future=true,name=Size,partition=1,topic=t,type=Log": {"Value": 80},
        }),
        answer("kafka.network:type=RequestMetrics,name=LocalTimeMs,request=Produce,*", {
            "kafka.network:name=LocalTimeMs,request=Produce,type=RequestMetrics": {"99thPercentile": 42.5}}),
        answer("kafka.cluster:type=Partition,name=ReplicasCount,*", {
            "kafka.cluster:name=ReplicasCount,partition=0,topic=t,type=Partition": {"Value": 3}}),
    ]).reading()  # fmt: skip
    assert reading.logs is not None
    assert reading.logs.of == {("t", 0): LogReading(70, leads=True)}
    assert reading.counters is not None
    assert reading.counters.broker == {"cpu_seconds": 2.5}
    assert reading.latencies == {"produce_latency_ms": 42.5}


@pytest.mark.parametrize("collector", COLLECTORS)
@pytest.mark.parametrize(
    ("body", "status", "complaint"),
    [
        (b"", 200, "expected"),
        (b"\xff\xfe kafka", 200, "expected (Prometheus text|Jolokia's JSON)"),
        (b"kafka_log_log_size{topic= 5\n", 200, "expected (Prometheus text|Jolokia's JSON)"),
        (b"jvm_threads_current 67.0\n", 200, "expected (metrics of a Kafka broker, found none|Jolokia's JSON)"),
        (b"[]", 200, "expected (metrics of a Kafka broker, found none|Prometheus text)"),
        (b"[" * 100_000, 200, "expected"),
        (b'[{"request": {"mbean": "kafka.log:*"}, "status": 403, "error": "no"}]', 200, "refused with status 403|found none"),
        (b"gone", 404, "found 404 .*check the path"),
        (b"who", 401, "found 401 .*check user and password_file"),
        (b"x" * 3_000_000, 200, "longer than 2000000 bytes"),
    ],
)
def test_a_senseless_answer_is_one_line_and_no_crash(
    collector: Callable[[Endpoint], Collector], body: bytes, status: int, complaint: str
) -> None:
    with agent(says(body, status)) as url, pytest.raises(CollectError, match=complaint) as refused:
        collector(Endpoint(url, max_bytes=2_000_000)).collect()
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("collector", COLLECTORS)
def test_an_agent_that_never_finishes_its_answer_holds_no_other_up(collector: Callable[[Endpoint], Collector]) -> None:
    enough = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        for _ in range(1000):  # each byte comes in time
            handler.wfile.write(b"#")
            handler.wfile.flush()
            if enough.wait(0.05):
                return

    try:
        with agent(drip) as url, pytest.raises(CollectError, match=r"no whole answer within 0\.3 s"):
            collector(Endpoint(url, timeout=0.3)).collect()
    finally:
        enough.set()


@pytest.mark.parametrize("collector", COLLECTORS)
def test_a_broker_that_is_down_is_said_so(collector: Callable[[Endpoint], Collector]) -> None:
    with agent(says(b"")) as url:
        pass
    with pytest.raises(CollectError, match="the connection was refused"):
        collector(Endpoint(url)).collect()


def test_the_password_is_read_again_from_its_file_and_never_shown(tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        seen.append(str(handler.headers["Authorization"]))
        says(b"no", 401)(handler)

    password = tmp_path / "password"
    with agent(answer) as url:
        collector = prometheus.PrometheusCollector(Endpoint(url, user="ops", password_file=password))
        for text in ("one\n", "two\n"):
            password.write_text(text)
            with pytest.raises(CollectError, match="401") as refused:
                collector.collect()
            assert "one" not in str(refused.value)
    assert seen == ["Basic b3BzOm9uZQ==", "Basic b3BzOnR3bw=="]


def published(*readings: Reading) -> None:
    """Takes readings as the reporter does, all the way into records."""
    meter, spool = LoadMeter(), Spool(10_000_000)
    publisher = SamplePublisher(spool, 1, incarnation=1)
    for i, reading in enumerate(readings):
        for part in meter.take(Round(float(i), reading.logs, reading.counters)):
            publisher.publish(part.samples, time_ms=i, window_ms=1)


values = st.sampled_from(["0", "7.5", "-1", "1e308", "9.3e18", "NaN", "+Inf", "x", ""])
labels = st.sampled_from(["t", "t" * 250, "a b", "\\ud800", "", "__cluster_metadata", "0", "1", "-1", "4294967296", "٣", "9" * 400])


@given(st.text(max_size=200))
def test_no_text_is_too_strange(text: str) -> None:
    try:
        reading = scraped(f"kafka_log_log_size{text}\nprocess_cpu_seconds_total {text}")
    except ValueError:
        return
    published(reading, reading)


@given(st.lists(st.tuples(st.sampled_from(["kafka_log_log_size", "kafka_log_log_logendoffset",
    "kafka_cluster_partition_replicascount", "kafka_server_brokertopicmetrics_bytesin_total", "process_cpu_seconds_total",
    ]), labels, labels, values), max_size=8))  # fmt: skip
def test_no_value_of_an_agent_ends_the_reporter(lines: list[tuple[str, str, str, str]]) -> None:
    def reading(scale: str) -> Reading:
        table = AgentTable()
        for name, topic, partition, value in lines:
            given_labels = {"topic": topic, "partition": partition} if "kafka_server" not in name else {"topic": topic}
            try:
                number = float(value) * float(scale)
            except ValueError:
                continue
            prometheus.take(table, name, given_labels, number)
        return table.reading()

    published(reading("1"), reading("2"), reading("0.5"))


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=30) | st.integers(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["request", "mbean", "status", "value", "Count", "Value", "kafka.log:type=Log,name=Size,topic=t,partition=0"]),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)


@given(json_values)
def test_no_json_is_too_strange(value: object) -> None:
    try:
        reading = jolokia.parse(value).reading()
    except ValueError:
        return
    published(reading, reading)
