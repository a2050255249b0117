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
    is_low,
    leans,
    leaves_band,
    linear_cost,
    load_cost_of_taking,
    watched_goals,
)
from optimizer.search.uncompiled.chains import trade_back
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
from optimizer.search.uncompiled.lanes import solve_all
from optimizer.search.uncompiled.leaders import appraise, find_all
from optimizer.search.uncompiled.listings import write_lists
from optimizer.search.uncompiled.lists import (
    closest,
    fetch,
    fill,
    gather,
    keep_fitting,
    largest,
    list_sizes,
    scan,
    smallest,
    swap_gains,
    unlike,
)
from optimizer.search.uncompiled.orders import in_order
from optimizer.search.uncompiled.partitions import fits_rack, may_host, rack_mates, rack_units, short_list
from optimizer.search.uncompiled.pours import pour, weigh
from optimizer.search.uncompiled.ranks import rank_all, rank_crowd
from optimizer.search.uncompiled.replays import replay
from optimizer.search.uncompiled.returns import align_slots, send_home
from optimizer.search.uncompiled.settles import assess_stale, settle_all
from optimizer.search.uncompiled.sides import (
    observe,
    promises,
    rank_partners,
    rises,
    survey,
    transfer_gain,
)
from optimizer.search.uncompiled.strays import (
    by_target,
    costs_of_each,
    list_arrivals,
    list_by_home,
    list_present,
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
    "assess_stale",
    "best_key",
    "best_swap",
    "by_target",
    "carry",
    "closest",
    "combine",
    "commit",
    "cost_of_gaining",
    "cost_of_taking",
    "costs_of_each",
    "cut_of",
    "evaluate",
    "fetch",
    "fewest",
    "fill",
    "find_all",
    "fits_rack",
    "gather",
    "in_order",
    "is_low",
    "keep_best",
    "keep_fitting",
    "largest",
    "leans",
    "leaves_band",
    "leaving",
    "linear_cost",
    "list_arrivals",
    "list_by_home",
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
    "rank_all",
    "rank_crowd",
    "rank_partners",
    "replay",
    "rises",
    "scan",
    "scramble",
    "send_home",
    "settle_all",
    "short_list",
    "smallest",
    "solve_all",
    "survey",
    "swap_gains",
    "take",
    "trade_back",
    "transfer_gain",
    "unlike",
    "wander",
    "watched_goals",
    "weigh",
    "write_lists",
]
