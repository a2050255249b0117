"""What a search has at hand of a broker's replicas: an entry that is not what stands there would have the wrong replica moved."""

from __future__ import annotations

import numpy as np
import pytest

from goals.document import parse_goals
from kernels.compiled import kernel
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.placement.restore import follow
from optimizer.placement.state import LED, State
from optimizer.problem import COLUMN, KIND, LIMIT, Problem
from optimizer.search.vector_cache import VectorCache, fetch, lay_out, new_cache
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


@kernel
def fetch_each(problem: Problem, state: State, cache: VectorCache) -> None:
    for b in range(len(state.hosts)):
        fetch(problem, state, cache, b)


@pytest.mark.parametrize("variant", ["topics", "excluded"])
def test_places_are_up_to_date_laid_out_or_fetched_after_moves(variant: str) -> None:
    snapshot = cluster(8, 3_000, "b", 3, variant)
    compiled = compile_problem(snapshot, parse_goals(goals_text(variant, 0.1), "test"), PlanOptions())
    problem, count = compiled.problem, len(compiled.replicas)
    roles = np.array([kind <= LIMIT and compiled.roles[c] > 0 for kind, c in problem.goal[:, [KIND, COLUMN]]], dtype=np.int64)
    state = build_state(problem, compiled.replicas, compiled.lead)
    cache = new_cache(problem, state, roles)
    assert len(set(problem.goal[cache.goal, COLUMN].tolist())) == len(cache.goal)
    lay_out(problem, state, cache, 0, count // 3)
    lay_out(problem, state, cache, count // 3, count)
    expect(problem, state, cache)
    replicas, r = compiled.replicas.copy(), np.random.default_rng(0)
    for p in r.choice(count, 40, replace=False):
        replicas[p, 0] = next(b for b in r.permutation(8) if b not in replicas[p])
    follow(problem, state, build_state(problem, replicas, np.where(compiled.lead == 0, 1, compiled.lead)), np.arange(0, count, 3))
    fetch_each(problem, state, cache)
    expect(problem, state, cache)


def expect(problem: Problem, state: State, cache: VectorCache) -> None:
    for b, n in enumerate(state.hosts.tolist()):
        p, role = state.hosted[b, :n] // state.replicas.shape[1], np.where(state.mark[b, :n] & LED, 0, 1)
        assert cache.known[b] >= n
        assert (problem.vector[p, role].astype(np.float32) == cache.vector[b, :-1, :n].T).all()
        assert ((cache.vector[b, -1, :n] == 0.0) == (problem.partition[p, 0] == 0)).all()
        lead = problem.vector[p].astype(np.float32)[:, :, problem.goal[cache.goal, COLUMN]]
        assert (lead[:, 0] - lead[:, 1] == cache.lead[b, :, :n].T).all()
