"""Plans that leave a hard limit broken although a placement within all limits is known.

    python -m benchmarks.tight_limits --first 0 --count 200 --brokers 4,30 --replicas 4,40

The clusters are those of `tests/clusters/planted.py`. `--restarts 1` plans with one seed of the search alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.planted import planted
from trimtab.warmup import warm_up


def missed(seeds: Sequence[int], brokers: tuple[int, int], replicas: tuple[int, int], restarts: int | None = None) -> list[int]:
    """Seeds of the clusters whose plan leaves a hard limit broken."""
    found = []
    for seed in seeds:
        case = planted(seed, brokers, replicas)
        goals = parse_goals(json.dumps(case.goals), "benchmark")
        if plan(case.snapshot, goals, PlanOptions(threads=1, restarts=restarts)).hard_violations_left:
            found.append(seed)
    return found


def pair(text: str) -> tuple[int, int]:
    try:
        least, most = (int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected two numbers, as in 4,30, found {text!r}") from None
    return least, most


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--brokers", type=pair, default=(3, 6), metavar="LEAST,MOST")
    parser.add_argument("--replicas", type=pair, default=(2, 8), metavar="LEAST,MOST", help="replicas a broker")
    parser.add_argument("--restarts", type=int, metavar="N", help="at most so many seeds of the search")
    chosen = parser.parse_args(arguments)
    warm_up()
    started = time.process_time()
    seeds = range(chosen.first, chosen.first + chosen.count)
    found = missed(seeds, chosen.brokers, chosen.replicas, chosen.restarts)
    print(f"{len(found)} of {chosen.count} plans leave a hard limit broken, {time.process_time() - started:.1f} CPU s: {found}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
