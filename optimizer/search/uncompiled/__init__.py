"""Kernels as they run without a compiler: many replicas at once by numpy, single brokers by plain floats.

Each stands in for the loop of the same name (`cluster_model.compiled.inner_as` and `kernel_as` choose) and gives the same bits:
the same operations in the same order per element, and loads lie on a grid on which sums are exact in any order. Plain floats from
``tolist`` are several times faster than elements of arrays.
"""

from optimizer.search.uncompiled.brokers import (
    assess,
    combine,
    cost_of_gaining,
    cost_of_taking,
    leaves_band,
    linear_cost,
    load_cost_of_taking,
)
from optimizer.search.uncompiled.choices import (
    any_above,
    ascending,
    best_key,
    bring_forward,
    cut_of,
    fewest,
    keep_best,
    scramble,
    take,
)
from optimizer.search.uncompiled.lists import closest, fill, gather, largest, scan, smallest, swap_gains
from optimizer.search.uncompiled.partitions import (
    carry,
    fits_rack,
    may_host,
    rack_mates,
    rack_units,
    short_list,
)
from optimizer.search.uncompiled.sides import promises, rank_crowd, rank_partners, transfer_gain

__all__ = [
    "any_above",
    "ascending",
    "assess",
    "best_key",
    "bring_forward",
    "carry",
    "closest",
    "combine",
    "cost_of_gaining",
    "cost_of_taking",
    "cut_of",
    "fewest",
    "fill",
    "fits_rack",
    "gather",
    "keep_best",
    "largest",
    "leaves_band",
    "linear_cost",
    "load_cost_of_taking",
    "may_host",
    "promises",
    "rack_mates",
    "rack_units",
    "rank_crowd",
    "rank_partners",
    "scan",
    "scramble",
    "short_list",
    "smallest",
    "swap_gains",
    "take",
    "transfer_gain",
]
