"""Kafka's metrics from the Prometheus endpoint of the JMX exporter in the broker's process.

Reads the names that the shipped rules give (examples/jmx-exporter-kafka.yaml), those of the exporter's own example
for Kafka, and those that it gives without any rules. Lines that no sample needs are put aside before they are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

from metrics_reporter.collectors.agent import BROKER_TOPIC_METRICS, LOG_GAUGES, REPLICAS_COUNT, AgentTable
from metrics_reporter.collectors.http import Endpoint, fetch
from metrics_reporter.reading import CollectError, Reading

CPU = "process_cpu_seconds"
STARTED = "process_start_time_seconds"
COUNTED = "kafka_server_brokertopicmetrics"
LOG = "kafka_log_log"
PARTITION = "kafka_cluster_partition"
# `bytesin` for BytesInPerSec, however a rule or the exporter itself put the rest.
_COUNTERS = {name.removesuffix("PerSec").lower(): counter for name, counter in BROKER_TOPIC_METRICS.items()}
_COUNTER = re.compile(rf"{COUNTED}_([a-z]+?)(?:persec)?(?:_count|_total|_count_total)?")
_GAUGES = {f"{LOG}_{name.lower()}": name for name in LOG_GAUGES} | {f"{PARTITION}_{REPLICAS_COUNT.lower()}": REPLICAS_COUNT}
LOCAL_TIME = "kafka_network_requestmetrics_localtimems"
WITHOUT_RULES = "kafka_network_requestmetrics_99thpercentile"
_LOCAL_TIME = {LOCAL_TIME: {"quantile": "0.99"}, WITHOUT_RULES: {"name": "LocalTimeMs"}}  # labels beside the request's
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_WANTED = (COUNTED, f"{LOG}_", f"{PARTITION}_", CPU, STARTED, LOCAL_TIME, WITHOUT_RULES)


class PrometheusCollector:
    """Scrapes one endpoint."""

    name = "prometheus"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def collect(self) -> Reading:
        """Counters and logs of the broker, as `metrics_reporter.reading.Collector` has it."""
        body = fetch(self._endpoint)
        try:
            table = parse(body.decode("utf-8"))
        except ValueError as error:
            raise CollectError(f"{self._endpoint.url}: expected Prometheus text, found something else: {error}") from error
        reading = table.reading()
        if reading.logs is None and reading.counters is None:
            raise CollectError(
                f"{self._endpoint.url}: expected metrics of a Kafka broker, found none; start the exporter with the rules of "
                "examples/jmx-exporter-kafka.yaml, and check that the port is the broker's"
            )
        return reading

    def close(self) -> None:
        """Nothing is kept open."""


def parse(text: str) -> AgentTable:
    """What a scrape says of the broker.

    Raises
    ------
    ValueError
        A line that matters is not Prometheus text.
    """
    table = AgentTable()
    wanted = "\n".join(_wanted(text.splitlines()))
    for family in text_string_to_metric_families(wanted + "\n" if wanted else ""):
        for sample in family.samples:
            take(table, sample.name.lower(), sample.labels, float(sample.value))
    return table


def _wanted(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        name = _NAME.match(line)
        if name is not None and name.group().lower().startswith(_WANTED):
            yield line


def take(table: AgentTable, name: str, labels: dict[str, str], value: float) -> None:
    """Put one value, by its lower-case name, where it belongs; what no goal needs is passed over."""
    if name in (CPU, f"{CPU}_total"):
        table.cpu_seconds(value)
    elif name == STARTED:
        table.epoch = value
    elif name in (LOCAL_TIME, WITHOUT_RULES):
        if labels == {"request": labels.get("request"), **_LOCAL_TIME[name]}:
            table.local_time(str(labels["request"]), value)
    elif name.startswith(COUNTED):
        _take_counter(table, name, labels, value)
    else:
        # Without rules, the name of the MBean is a label.
        gauge = _GAUGES.get(name) or _GAUGES.get(f"{name.removesuffix('_value')}_{labels.get('name', '').lower()}")
        if gauge is not None and set(labels) - {"name"} == {"topic", "partition"}:
            table.gauge(gauge, labels["topic"], labels["partition"], value)


def _take_counter(table: AgentTable, name: str, labels: dict[str, str], value: float) -> None:
    if name == f"{COUNTED}_count" and "name" in labels:
        counter = _COUNTERS.get(labels["name"].lower().removesuffix("persec"))
    else:
        match = _COUNTER.fullmatch(name)
        counter = _COUNTERS.get(match.group(1)) if match is not None else None
    if counter is not None and set(labels) <= {"topic", "name"}:
        table.count(counter, labels.get("topic"), value)
