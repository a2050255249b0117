"""A real Kafka cluster to try things on, with skewed topics and light traffic, until Ctrl-C.

Behind ``make kafka`` (``python -m tests.kafka.cluster``).
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from types import FrameType

from tests.kafka import jars
from tests.kafka.cluster import KafkaCluster, StartFailed
from tests.kafka.traffic import Traffic, administering, create_topic, fill

# Replica lists crowded on brokers 1 and 2, as after growing from two brokers to four.
TOPICS = {
    "orders": [
        [1, 2],
        [1, 2],
        [1, 2],
        [2, 1],
        [1, 2],
        [1, 2],
        [1, 3],
        [1, 2],
        [2, 1],
        [1, 2],
        [1, 2],
        [2, 1],
    ],
    "clicks": [[1, 2, 3], [1, 2, 3], [2, 1, 3], [1, 2, 3], [1, 2, 4], [1, 2, 3]],
    "audit": [[1], [1], [1], [2], [1], [2]],
}
PER_TICK = {("orders", n): 1 + n % 4 for n in range(12)} | {("clicks", n): 2 for n in range(6)}


def main() -> int:
    """Run until a signal; 1 when Kafka cannot run here."""
    argparse.ArgumentParser(prog="python -m tests.kafka.cluster", description=__doc__).parse_args()
    stop = threading.Event()

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    _say("starting one controller and four brokers (racks r1 r1 r2 r3) ...")
    try:
        cluster = KafkaCluster(log_dirs=2)
        cluster.start()
    except (jars.Unavailable, StartFailed) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    signal.signal(signal.SIGINT, ask_to_stop)
    signal.signal(signal.SIGTERM, ask_to_stop)
    with cluster:
        with administering(cluster) as admin:
            for name, assignments in TOPICS.items():
                create_topic(admin, name, assignments)
        fill(
            cluster.bootstrap,
            {(name, n): 500 + 250 * n for name, lists in TOPICS.items() for n in range(len(lists))},
        )
        with Traffic(cluster.bootstrap, PER_TICK, size=1000, group="playground"):
            _say(_instructions(cluster))
            stop.wait()
        _say("stopping ...")
    return 0


def _instructions(cluster: KafkaCluster) -> str:
    first = cluster.bootstrap.partition(",")[0]
    return f"""
Kafka {jars.kafka_version()} is up. Topics {", ".join(TOPICS)} crowd brokers 1 and 2; there is some traffic.

  bootstrap servers: {cluster.bootstrap}
  data and logs:     {cluster.folder}

Try, in another terminal:

  trimtab plan --bootstrap-server {first} --interval 5s
  trimtab snapshot --bootstrap-server {first} --interval 5s --out cluster.json
  trimtab plan --snapshot cluster.json --preset counts --format reassignment --out reassignment.json

Ctrl-C stops it and removes its data.
"""


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
