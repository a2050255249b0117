"""How near capacity and cpu costs come to the truth of synthetic histories, and how often a capacity is made up.

    python -m benchmarks.recovery

Twenty histories of 12 brokers and two weeks, 5% of the rows missing and 1% damaged (spikes among them), windows of 5 minutes;
half of the histories with capacities that peaks run into, half without any.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd

from spark.methods.capacity import capacities
from spark.methods.cpu_cost import FEATURES, fit
from tests.histories.synthetic import Truth, synthetic
from tests.histories.truth import DAY

LIMITED = Truth(
    brokers=12, partitions=120, interval=60, span=14 * DAY, capacity=1.5, missing=0.05, corrupt=0.01, bursty=0.1,
    partition_metrics=("network_in",), damage=("nan", "negative", "duplicate", "future", "spike"),
)  # fmt: skip
FREE = replace(LIMITED, capacity=None)
LATENCIES = ("produce_latency_ms", "request_latency_ms")


def windows(truth: Truth) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Means of what is finite and not negative, window x (metric, broker), and the true capacities."""
    history = synthetic(truth)
    frame = history.table.to_pandas()
    frame = frame[frame.topic.isna() & (frame.value >= 0) & (frame.time.dt.year < 2030)]
    frame = frame.assign(window=frame.time.dt.floor("300s"))
    return frame.pivot_table(index="window", columns=["metric", "broker"], values="value"), history.world.capacity


def main() -> None:
    """Tell the errors."""
    near, inside, widths, bends, made_up, costs, spent = [], [], [], 0, 0, [], [0.0, 0.0]
    brokers = 0
    for seed in range(10):
        for truth in (replace(LIMITED, seed=seed), replace(FREE, seed=seed)):
            wide, true = windows(truth)
            begun = time.process_time()
            for broker in range(1, truth.brokers + 1):
                measures = {name: wide[name][broker].to_numpy() for name in LATENCIES}
                found = capacities({"network_in": wide["network_in"][broker].to_numpy()}, measures, {}, seed)["network_in"]
                brokers += 1
                if true is None:
                    made_up += found.kind == "bend"
                elif found.bend is not None:
                    bends += 1
                    inside.append(found.bend.low <= true[broker - 1] <= found.bend.high)
                    widths.append((found.bend.high - found.bend.low) / found.value)
                    near.append(found.value / true[broker - 1] - 1)
            spent[0] += time.process_time() - begun
            begun = time.process_time()
            tall = wide.stack("broker", future_stack=True).reset_index()
            fitted = fit(tall["cpu"].to_numpy(), {n: tall[n].to_numpy() for n in FEATURES}, tall["broker"].to_numpy())
            spent[1] += time.process_time() - begun
            assert not isinstance(fitted, str), fitted
            cost = truth.cpu
            expected = (cost.idle, cost.byte_in, cost.byte_out, cost.produce, cost.fetch)
            costs.append([have / want - 1 for have, want in zip((fitted.idle, *fitted.costs.values()), expected, strict=True)])
    half = brokers // 2
    size = np.abs(near)
    print(f"capacity: a bend told of {bends} of {half} brokers with a limit; error {np.median(size):.1%} median, {size.max():.1%} worst")
    print(f"capacity: {np.mean(inside):.0%} of the 90% intervals hold the truth; width {np.median(widths):.1%} median")
    print(f"capacity: made up for {made_up} of {half} brokers without one; {1000 * spent[0] / brokers:.0f} CPU ms a broker")
    worst = np.abs(costs).max(axis=0)
    named = ", ".join(f"{name} {share:.1%}" for name, share in zip(("idle", *FEATURES), worst, strict=True))
    print(f"cpu costs, worst error of {len(costs)} histories: {named}; {1000 * spent[1] / len(costs):.0f} CPU ms a fit")


if __name__ == "__main__":
    main()
