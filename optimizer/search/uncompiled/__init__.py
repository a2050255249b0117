"""Kernels as they run without a compiler: many replicas at once by numpy, single brokers by plain floats.

Each stands in for the loop of the same name (`cluster_model.compiled.inner_as` and `kernel_as` choose) and gives the same bits:
the same operations in the same order per element, and loads lie on a grid on which sums are exact in any order. Plain floats from
``tolist`` are several times faster than elements of arrays (`sheets`); what would follow action by action is judged all at once where
it can be (`trains`).
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
from optimizer.search.uncompiled.changes import carry, commit, put
from optimizer.search.uncompiled.choices import (
    any_above,
    ascending,
    best_key,
    cut_of,
    fewest,
    keep_best,
    scramble,
    take,
)
from optimizer.search.uncompiled.floors import leaving
from optimizer.search.uncompiled.leaders import appraise, find_leaders
from optimizer.search.uncompiled.lists import (
    closest,
    fetch,
    fill,
    gather,
    keep_fitting,
    largest,
    list_arrivals,
    list_present,
    list_sizes,
    scan,
    smallest,
    swap_gains,
    unlike,
)
from optimizer.search.uncompiled.orders import in_order
from optimizer.search.uncompiled.partitions import fits_rack, may_host, rack_mates, rack_units, short_list
from optimizer.search.uncompiled.pours import pour, weigh
from optimizer.search.uncompiled.replays import replay
from optimizer.search.uncompiled.returns import align_slots, send_home
from optimizer.search.uncompiled.sides import (
    observe,
    promises,
    rank_crowd,
    rank_partners,
    rises,
    survey,
    transfer_gain,
)
from optimizer.search.uncompiled.trades import best_swap
from optimizer.search.uncompiled.verdicts import evaluate
from optimizer.search.uncompiled.wander import wander

__all__ = [
    "align_slots",
    "any_above",
    "appraise",
    "ascending",
    "assess",
    "best_key",
    "best_swap",
    "carry",
    "closest",
    "combine",
    "commit",
    "cost_of_gaining",
    "cost_of_taking",
    "cut_of",
    "evaluate",
    "fetch",
    "fewest",
    "fill",
    "find_leaders",
    "fits_rack",
    "gather",
    "in_order",
    "keep_best",
    "keep_fitting",
    "largest",
    "leaves_band",
    "leaving",
    "linear_cost",
    "list_arrivals",
    "list_present",
    "list_sizes",
    "load_cost_of_taking",
    "may_host",
    "observe",
    "pour",
    "promises",
    "put",
    "rack_mates",
    "rack_units",
    "rank_crowd",
    "rank_partners",
    "replay",
    "rises",
    "scan",
    "scramble",
    "send_home",
    "short_list",
    "smallest",
    "survey",
    "swap_gains",
    "take",
    "transfer_gain",
    "unlike",
    "wander",
    "weigh",
]
