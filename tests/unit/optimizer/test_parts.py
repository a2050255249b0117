"""Changes that touch a broker in common belong together, so a part can be left out by itself; `scipy` names the parts a second way."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from optimizer.course import Placement
from optimizer.gain import join, lowest

BROKERS, PARTITIONS = 12, 8


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Of partitions of 1 to 3 replicas, some without a leader."""
    lists = [
        draw(st.lists(st.integers(0, BROKERS - 1), min_size=1, max_size=3, unique=True)) for _ in range(PARTITIONS)
    ]
    lead = [draw(st.integers(-1, len(row) - 1)) for row in lists]
    return Placement(np.array([row + [-1] * (3 - len(row)) for row in lists]), np.array(lead))


def touched(before: Placement, after: Placement, p: int) -> set[int]:
    """Brokers that partition `p` comes to, leaves, or is led by before or after alone."""
    was, now = ({(int(b), slot == one.lead[p]) for slot, b in enumerate(one.replicas[p]) if b >= 0} for one in (before, after))
    return {b for b, _ in was ^ now}


@given(placements(), placements())
@settings(max_examples=200, deadline=None)
def test_parts_are_what_shares_a_broker(before: Placement, after: Placement) -> None:
    part, first = np.arange(BROKERS), np.full(PARTITIONS, -1)
    join(np.arange(PARTITIONS), before.replicas, before.lead, after.replicas, after.lead, part, first)
    found = lowest(part)
    links = [(p, b) for p in range(PARTITIONS) for b in touched(before, after, p)]
    rows, brokers = [p for p, _ in links], [PARTITIONS + b for _, b in links]
    size = PARTITIONS + BROKERS
    _, label = connected_components(coo_array((np.ones(len(links)), (rows, brokers)), shape=(size, size)), directed=False)
    for b in range(BROKERS):
        assert found[b] == min(o for o in range(BROKERS) if label[PARTITIONS + o] == label[PARTITIONS + b])
    for p in range(PARTITIONS):
        assert (first[p] < 0) == (not touched(before, after, p))
        assert first[p] < 0 or label[PARTITIONS + first[p]] == label[p]


@given(placements(), placements())
@settings(max_examples=50, deadline=None)
def test_replicas_that_move_are_those_on_brokers_that_had_none(before: Placement, after: Placement) -> None:
    expected = [len(set(now) - set(was) - {-1}) for was, now in zip(before.replicas.tolist(), after.replicas.tolist(), strict=True)]
    assert before.moved(after).tolist() == expected
