"""How long producers wait when old replicas go, by how many partitions go in one request and how many in a second.

``python -m tests.kafka.exchanges`` moves 200 partitions to and fro on a real cluster, each time in another way, under verified traffic on
twenty of them; a line for each way. ``--busy N`` has N processes take the processors meanwhile.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from tests.kafka.cluster import KafkaCluster
from tests.kafka.executions import Verified, looking, until
from tests.kafka.traffic import administering, create_topic, fill
from trimtab.execution.kafka_port import KafkaPort
from trimtab.execution.state import Partition

TOPIC, COUNT, KILOBYTES, EVERY = "exchanged", 200, 200, 0.2
HERE, THERE, FOLLOWS = (1, 3, 4), (2, 3, 4), (1, 3, 2)
WAYS = {  # partitions in a request, requests in a second, and whether new replicas are added before
    "all in one request": (COUNT, 1, True),
    "one by one, ten in a second": (1, 10, True),
    "ten in a request, one in a second": (10, 1, True),
    "as copies end, five in a second": (5, 1, False),
}
NOTICED = 0.2  # seconds until acknowledged


def _ask(admin: KafkaAdminClient, numbers: Sequence[int], replicas: Sequence[int]) -> None:
    admin.alter_partition_reassignments({TopicPartition(TOPIC, n): list(replicas) for n in numbers})


def _in_sync(port: KafkaPort, replicas: Sequence[int]) -> bool:
    seen = port.look((), topics=(TOPIC,)).partitions
    return all(set(p.isr) == set(replicas) and not p.reassigning for n, p in seen.items() if n.topic == TOPIC)


def _go(admin: KafkaAdminClient, order: Sequence[int], replicas: Sequence[int], each: int, often: int) -> None:
    """Ask for all, so many in a request and so many requests in a second."""
    began = time.monotonic()
    for i in range(0, len(order), each):
        time.sleep(max(began + (i // each) / often - time.monotonic(), 0.0))
        _ask(admin, order[i : i + each], replicas)


def _try(admin: KafkaAdminClient, port: KafkaPort, traffic: Verified, way: str, now: Sequence[int], to: Sequence[int]) -> str:
    each, often, added = WAYS[way]
    both = [*now, *(b for b in to if b not in now)] if added else list(now)
    if added:
        _ask(admin, range(COUNT), both)
    if not until(lambda: _in_sync(port, both)):
        raise RuntimeError(f"{way}: replicas do not come in sync")
    time.sleep(5)  # so that what follows is not what copying did
    order = Random(0).sample(range(COUNT), COUNT)
    began = time.monotonic()
    _go(admin, order, to, each, often)
    until(lambda: _in_sync(port, to))
    took = time.monotonic() - began
    time.sleep(5)
    found = traffic.seconds(began, began + took + 3)
    late = [s for s in found if s > NOTICED]
    return (
        f"{way}: took {took:.1f} s; {len(late) * EVERY / len(traffic.names):.2f} s in which a partition's records took more than "
        f"{1000 * NOTICED:.0f} ms, longest {1000 * found[-1]:.0f} ms"
    )


@contextmanager
def _busy(count: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.exchanges", description=__doc__)
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that take the processors meanwhile")
    parser.add_argument("--followers", action="store_true", help="leaders stay where they are")
    parser.add_argument("--way", choices=list(WAYS), action="append", help="only these; repeatable, in this order")
    parser.add_argument("--times", type=int, default=2, help="how often each")
    asked = parser.parse_args()
    lists = (HERE, FOLLOWS if asked.followers else THERE)
    with KafkaCluster(("r1", "r1", "r2", "r3", "r2")) as cluster, administering(cluster) as admin:
        create_topic(admin, TOPIC, [HERE] * COUNT, {"min.insync.replicas": "2"})
        fill(cluster.bootstrap, {(TOPIC, n): KILOBYTES for n in range(COUNT)}, 1000)
        names = [Partition(TOPIC, n) for n in range(0, COUNT, COUNT // 20)]
        with _busy(asked.busy), looking(cluster) as port, Verified(cluster, names, every=EVERY) as traffic:
            for turn, way in enumerate((asked.way or list(WAYS)) * asked.times):
                sys.stdout.write(_try(admin, port, traffic, way, lists[turn % 2], lists[1 - turn % 2]) + "\n")
                sys.stdout.flush()
    wrong = traffic.faults() + traffic.failed[:2]
    sys.stdout.write(f"wrong: {wrong or 'nothing'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
