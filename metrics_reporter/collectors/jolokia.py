"""Kafka's metrics as JSON from a Jolokia agent in the broker's process: one bulk read a round."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from metrics_reporter.collectors.agent import BROKER_TOPIC_METRICS, LOG_GAUGES, REPLICAS_COUNT, AgentTable
from metrics_reporter.collectors.http import Endpoint, fetch
from metrics_reporter.reading import LOCAL_TIMES, CollectError, Reading

CPU_BEAN, RUNTIME_BEAN = "java.lang:type=OperatingSystem", "java.lang:type=Runtime"
REQUESTS, PERCENTILE = "kafka.network", "99thPercentile"
NOTHING_FOUND = 404  # no such MBean: a broker that has counted nothing of the kind yet
_PROPERTY = re.compile(r'([^=,]+)=("(?:\\.|[^"\\])*"|[^,]*)')


def _reads() -> list[dict[str, str]]:
    """The requests of one bulk read."""
    counters = [(f"kafka.server:type=BrokerTopicMetrics,name={name},*", "Count") for name in BROKER_TOPIC_METRICS]
    gauges = [(f"kafka.log:type=Log,name={name},*", "Value") for name in LOG_GAUGES]
    partitions = [(f"kafka.cluster:type=Partition,name={REPLICAS_COUNT},*", "Value")]
    process = [(CPU_BEAN, "ProcessCpuTime"), (RUNTIME_BEAN, "StartTime")]
    latencies = [(f"{REQUESTS}:type=RequestMetrics,name=LocalTimeMs,request={request},*", PERCENTILE) for request in LOCAL_TIMES]
    asked = [*counters, *gauges, *partitions, *process, *latencies]
    return [{"type": "read", "mbean": m, "attribute": a} for m, a in asked]


class JolokiaCollector:
    """Asks one agent."""

    name = "jolokia"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._body = json.dumps(_reads()).encode()

    def collect(self) -> Reading:
        """Counters and logs of the broker, as `metrics_reporter.reading.Collector` has it."""
        body = fetch(self._endpoint, self._body)
        try:
            table = parse(json.loads(body))
        except (ValueError, RecursionError) as error:
            raise CollectError(f"{self._endpoint.url}: expected Jolokia's JSON: {error}") from error
        reading = table.reading()
        if reading.logs is None and reading.counters is None:
            raise CollectError(
                f"{self._endpoint.url}: expected metrics of a Kafka broker, found none; is it a broker's process, and may "
                "Jolokia's policy read kafka.server, kafka.log and kafka.cluster?"
            )
        return reading

    def close(self) -> None:
        """Nothing is kept open."""


def parse(answers: object) -> AgentTable:
    """What the answers of a bulk read say of the broker.

    Raises
    ------
    ValueError
        They are not such answers, or refuse one of the reads.
    """
    table = AgentTable()
    if not isinstance(answers, list):
        raise ValueError(f"expected a list of answers, found {type(answers).__name__}")
    for answer in answers:
        if not isinstance(answer, dict) or not isinstance(answer.get("request"), dict):
            raise ValueError("expected answers that repeat their request")
        status, asked = answer.get("status"), str(answer["request"].get("mbean"))
        if status == NOTHING_FOUND:
            continue
        if status != 200:
            raise ValueError(f"{asked} was refused with status {status}: {answer.get('error')}")
        value = answer.get("value")
        if isinstance(value, Mapping):
            for bean, attributes in value.items():
                _take(table, str(bean), attributes)
        elif asked == CPU_BEAN:
            table.cpu_seconds(_number(value) / 1e9)
        elif asked == RUNTIME_BEAN:
            table.epoch = _number(value) / 1e3
    return table


def _take(table: AgentTable, bean: str, attributes: object) -> None:
    if not isinstance(attributes, Mapping):
        return
    keys = dict(_PROPERTY.findall(bean.partition(":")[2]))
    kind, name = keys.pop("type", ""), keys.pop("name", "")
    if kind == "BrokerTopicMetrics" and name in BROKER_TOPIC_METRICS and set(keys) <= {"topic"}:
        table.count(BROKER_TOPIC_METRICS[name], keys.get("topic"), _number(attributes.get("Count")))
    elif (kind, name) == ("RequestMetrics", "LocalTimeMs") and set(keys) == {"request"}:
        table.local_time(keys["request"], _number(attributes.get(PERCENTILE)))
    elif (kind, name) in {("Partition", REPLICAS_COUNT), *(("Log", n) for n in LOG_GAUGES)} and set(keys) == {
        "topic",
        "partition",
    }:
        table.gauge(name, keys["topic"], keys["partition"], _number(attributes.get("Value")))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
