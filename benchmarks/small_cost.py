"""What plans of clusters of up to six brokers cost, beside the cheapest placement with every broker in range.

    python -m benchmarks.small_cost --first 1000 --count 100

The clusters, and the exact solver (HiGHS), are those of `tests/property/test_small_cost.py`. Those without such a placement are left out.
Each is planned with the default cost of a move, for bytes alone and for moves alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from tests.property.test_small_cost import MOVES_ALONE, least, planned, small
from trimtab.warmup import warm_up

Ratios = dict[str, list[float]]


def measured(seeds: Sequence[int]) -> tuple[Ratios, int, int]:
    """Times the least, by what was planned for and compared; clusters that have a least; plans that leave a broker outside."""
    ratios: Ratios = {"default, moves": [], "default, bytes": [], "bytes alone, bytes": [], "moves alone, moves": []}
    cases, missed = 0, 0
    for seed in seeds:
        case = small(seed)
        fewest_bytes, fewest_moves = least(case, False), least(case, True)
        if fewest_bytes is None or fewest_moves is None:
            continue
        cases += 1
        default, bytes_alone, moves_alone = (planned(case, cost) for cost in (None, 0, MOVES_ALONE))
        missed += default.out + bytes_alone.out + moves_alone.out
        used = (default.moves, default.bytes, bytes_alone.bytes, moves_alone.moves)
        floors = (fewest_moves, fewest_bytes, fewest_bytes, fewest_moves)
        for found, one, floor in zip(ratios.values(), used, floors, strict=True):
            found.append(one / floor if floor > 0.0 else 1.0)
    return ratios, cases, missed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=1000, metavar="SEED")
    parser.add_argument("--count", type=int, default=100)
    chosen = parser.parse_args(arguments)
    warm_up()
    ratios, cases, missed = measured(range(chosen.first, chosen.first + chosen.count))
    print(f"{cases} of {chosen.count} clusters have a placement with every broker in range; {missed} plans leave one outside")
    for name, found in ratios.items():
        print(f"{name}: {np.mean(found):.3f} times the least on average, {np.max(found):.2f} at most")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
