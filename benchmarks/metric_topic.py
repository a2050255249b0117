"""The internal topic into Spark: our Python data source beside Spark's own connector, both decoded by the same function.

    python -m benchmarks.metric_topic --records 2000 [--jars DIR]

Starts a Kafka broker of its own. `--jars`: folder with the connector's jars for the pyspark that is installed
(`spark-sql-kafka-0-10_2.13` and what it needs); without it, only the data source is measured. CPU is that of this process and
everything below it, the broker not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from kafka import KafkaProducer
from pyspark.sql import functions as F

from metrics_reporter.codec import encode
from metrics_reporter.sample import BatchHeader, Sample, SampleBatch, Scope
from spark.history.decode import SCHEMA, decoder
from spark.history.topic_source import NAME, RANGE, topic_source
from spark.session import session
from tests.kafka.cluster import KafkaCluster
from tests.kafka.traffic import administering, create_topic
from trimtab.capture.client import client_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC, ROWS = "measured", 500
METRICS = ("network_in", "consumer_out", "cpu", "disk")


def cpu_seconds(without: set[int]) -> float:
    """Of this process and its descendants."""
    children: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(stat[1]), []).append(int(name))
        used[int(name)] = sum(map(int, stat[11:15]))
    total, pending = 0, [os.getpid()]
    while pending:
        at = pending.pop()
        if at not in without:
            total += used.get(at, 0)
            pending += children.get(at, [])
    return total / os.sysconf("SC_CLK_TCK")


def filled(bootstrap: str, records: int) -> None:
    """The topic with records of 500 replicas and 4 metrics each."""
    drawn = random.Random(1)
    samples = tuple(
        Sample(Scope.LEADER, f"topic-{row % 50}", row // 50, metric, drawn.random() * 1e6) for row in range(ROWS) for metric in METRICS
    )
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type="gzip")
    for i in range(records):
        header = BatchHeader(i % 20, 1_795_132_800_000 + 1000 * i, 1000, 1, i)
        producer.send(TOPIC, encode(SampleBatch(header, samples)), partition=i % 2)
    producer.flush()
    producer.close()


def by_connector(spark: SparkSession, bootstrap: str, records: int) -> DataFrame:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC, "startingOffsets": "earliest"}
    frame = spark.read.format("kafka").options(**options).option("minPartitions", str(max(2, records // RANGE))).load()
    none = F.lit(None).cast("string").alias("problem")
    return frame.select("partition", F.col("offset").alias("record_offset"), "value", none)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--jars", type=Path)
    arguments = parser.parse_args()
    with KafkaCluster(racks=["r1"]) as kafka:
        with administering(kafka) as admin:
            create_topic(admin, TOPIC, [[1], [1]])
        filled(kafka.bootstrap, arguments.records)
        brokers = {kafka.pid(broker) for broker in kafka.broker_ids}
        jars = ",".join(map(str, arguments.jars.glob("*.jar"))) if arguments.jars else ""
        spark = session("metric topic", "local[2]", short=False, **({"spark__jars": jars} if jars else {}))
        spark.sparkContext.setLogLevel("ERROR")
        spark.dataSource.register(topic_source(partial(client_options, None)))
        ours = spark.read.format(NAME).option("bootstrap", kafka.bootstrap).option("topic", TOPIC)
        ways: dict[str, Callable[[], DataFrame]] = {"data source": ours.load}
        if jars:
            ways["connector"] = partial(by_connector, spark, kafka.bootstrap, arguments.records)
        print(f"pyspark {pyspark.__version__}, {arguments.records} records of {ROWS * len(METRICS)} samples")
        for turn in ("cold", "warm"):
            for name, load in ways.items():
                began, cpu = time.monotonic(), cpu_seconds(brokers)
                found = load().mapInArrow(decoder("own"), SCHEMA).agg(F.count("*"), F.sum("value")).collect()[0][0]
                print(f"{name:12} {turn}: {found} samples, {time.monotonic() - began:.1f} s, {cpu_seconds(brokers) - cpu:.1f} CPU s")
        spark.stop()


if __name__ == "__main__":
    main()
