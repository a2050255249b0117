"""From one placement to another, each partition changed once."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.compile import compile_problem
from optimizer.course import Placement, net_round
from optimizer.options import PlanOptions
from optimizer.search.search import search
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.test_worth import GOALS


@pytest.mark.parametrize("seed", range(4))
def test_lists_are_published_as_they_stand_where_it_leads(seed: int) -> None:
    """A search goes through lists in their order. What finds nothing more from these may find something from others, and a second plan
    was not empty for it."""
    options = PlanOptions()
    compiled = compile_problem(cluster(10, 900, "b", seed, "even"), GOALS, options)
    start = Placement(compiled.replicas, compiled.lead)
    end = start.after(search(compiled, options).rounds)
    replicas = end.replicas.copy()
    random = np.random.default_rng(seed)
    for p in np.flatnonzero((end.lead == 0) & (replicas >= 0).all(axis=1)).tolist():
        replicas[p, 1:] = random.permutation(replicas[p, 1:])
    to = Placement(replicas, end.lead)
    made, left = net_round(compiled, options, start, to)
    assert left == 0
    changed = np.unique(made.log.partition[: int(made.log.used[1])])
    assert len(changed) > 20
    after = start.after([made])
    assert (after.replicas[changed] == to.replicas[changed]).all()
    assert (after.lead[changed] == to.lead[changed]).all()
