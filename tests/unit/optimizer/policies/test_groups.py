"""Groups of partitions by namespace and hash range: looked up, moved as one, split where they carry too much."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.policy import Split
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.policies.bundles import topic_hash
from optimizer.policies.groups import SplitHits, count_hits, groups_of
from tests.unit.optimizer.policies.plain import MB, cluster, goals_with, loads_after
from trimtab.service.standing import after

BUNDLE = "bundle (all)/0x00000000_0x40000000"
GROUPS = "{amount: {kind: one}, unit: group, accept: detector, filters: {once: false}"


def test_groups_move_as_one_and_those_that_carry_too_much_are_split_first() -> None:
    """30 partitions of a namespace on broker 0: in four groups, or in eight."""
    snapshot = cluster([[MB] * 30, [], []])
    whole, parts = (plan(snapshot, goals_with(f"{GROUPS}{more}}}")) for more in ("", ", split: {partitions: 5, max_groups: 16}"))
    assert all(re.search(r"order lightest: bundle \(all\)/0x[0-9a-f]{8}_0x[0-9a-f]{8} \(", a.reason) for a in whole.actions)
    for made in (whole, parts):
        groups = groups_of(snapshot, Split(partitions=5, max_groups=16) if made is parts else None)
        where: dict[int, set[int]] = {}
        for c in made.proposals:
            where.setdefault(int(groups.of[snapshot.row_of_partition(c.topic, c.partition)]), set()).update(c.replicas_after)
        assert all(len(brokers) == 1 for brokers in where.values()), "a group goes to one broker"
    coarse, fine = (loads_after(snapshot, made, "replicas") for made in (whole, parts))
    assert fine.std() <= coarse.std()
    assert any(note.startswith("policy: split bundle (all)/") and note.endswith(": too many partitions") for note in parts.notes)


def hot_bundle(count: int = 24) -> Snapshot:
    """Broker 0 leads all partitions of one bundle, ``(all)/0x00000000_0x40000000``, brokers 1 and 2 next to nothing."""
    names = [n for n in range(2000) if topic_hash(f"t-{n}") < 0x40000000][:count]
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "shared",
        "brokers": [{"id": b} for b in range(3)],
        "partitions": [{"topic": "t", "partition": n, "replicas": [0], "leader": 0, "leader_load": {"network_in": MB}} for n in names],
    }  # fmt: skip
    return build_snapshot(document)


def test_a_bundle_is_split_only_after_so_many_checks_in_a_row() -> None:
    """One that is over its limit for a moment stays whole; the dry run, which is one look, does not wait."""
    rule = Split(partitions=12, hits=3)
    busy, calm = hot_bundle(), hot_bundle(12)
    looks = iter(range(100))

    def look(snapshot: Snapshot, before: SplitHits | None) -> SplitHits:
        return count_hits(replace(snapshot, taken_at=f"2026-01-01T00:00:{next(looks):02}Z"), rule, before)

    found = look(busy, look(busy, None))
    waiting = groups_of(busy, rule, found.counts)
    assert len(waiting.names) == 1
    assert waiting.told == ("split of bundle (all)/0x00000000_0x40000000 waits: too many partitions in 2 of 3 checks in a row",)
    assert look(calm, found).counts == {}, "a check at which it is normal starts again"
    third = look(busy, found)
    assert len(groups_of(busy, rule, third.counts).names) >= 2
    assert "bundle (all)/0x00000000_0x40000000" in third.counts, "what is split stays split as long as it is over its limit"
    assert count_hits(replace(busy, taken_at=third.taken_at), rule, third) is third, "a second look at one moment is no second check"
    assert count_hits(busy, Split(partitions=6, hits=3), third).counts == {"bundle (all)/0x00000000_0x40000000": 1}
    assert len(groups_of(busy, rule).names) >= 2


@pytest.mark.parametrize(("hits", "moves"), [(((BUNDLE, 1),), False), (((BUNDLE, 2),), True), (None, True)])
def test_a_plan_waits_for_the_hits_that_it_is_given_and_the_dry_run_for_none(hits: Any, moves: bool) -> None:
    """The whole bundle is all that broker 0 has: moving it would only move the problem, so nothing moves before the split."""
    made = plan(hot_bundle(), goals_with(f"{GROUPS}, split: {{partitions: 12, hits: 2}}}}"), PlanOptions(split_hits=hits))
    assert bool(made.actions) is moves
    waits = [note for note in made.notes if "waits: too many partitions in 1 of 2 checks in a row" in note]
    assert bool(waits) is not moves
    assert any("the dry run does not wait for 2 checks" in note for note in made.notes) is (hits is None)


def test_parts_of_a_split_bundle_are_offered_in_the_same_plan_even_beyond_what_the_amount_takes() -> None:
    """The detector's line is far off and asks for a fifth of the gap in one cycle; the halves go at once all the same."""
    policy = (
        "{{detector: {{kind: minmax}}, amount: {{kind: fraction, ratio: 0.01}}, order: best_fit, unit: group, accept: detector, "
        "split: {{partitions: 12, unload: {}}}}}"
    )
    kept, offered = (plan(hot_bundle(), goals_with(policy.format(unload))) for unload in ("false", "true"))
    assert not kept.actions
    assert offered.actions
    assert any(re.search(r"split unload: \d+ parts offered, [1-9]\d* moved", note) for note in offered.notes)
    assert all("; split unload: bundle (all)/0x" in a.reason for a in offered.actions)
    assert not plan(after(hot_bundle(), offered), goals_with(policy.format("true"))).actions, "and they stay where they are then"


def test_groups_are_looked_up_and_the_same_without_a_split() -> None:
    snapshot = cluster([[MB] * 30, [], []])
    found = groups_of(snapshot, None)
    assert len(found.names) <= 4
    for p in range(snapshot.partition_count):
        assert found.lookup(snapshot.partition_name(p)) == found.names[found.of[p]]
    assert found.lookup("tenant.topic-0").startswith("bundle tenant/0x")


@pytest.mark.parametrize(
    ("algorithm", "limits", "most"),
    [
        ("range_equally_divide", {"partitions": 6}, 6),
        ("topic_count_equally_divide", {"partitions": 6}, 6),
        ("flow_or_qps_equally_divide", {"bandwidth": 7 * MB}, 7),
    ],
)
def test_no_group_is_left_over_its_limit(algorithm: Any, limits: Any, most: int) -> None:
    snapshot = cluster([[MB] * 40, [], []])
    found = groups_of(snapshot, Split(algorithm=algorithm, **limits))
    assert np.bincount(found.of).max() <= most
    assert found.told


def test_groups_are_cut_at_given_positions_and_not_beyond_their_number() -> None:
    snapshot = cluster([[MB] * 40, [], []])
    rule = Split(partitions=6, max_groups=6, algorithm="specified_positions_divide", positions=["10000000", "50000000", "90000000"])
    bounds = groups_of(snapshot, rule).boundaries["(all)"]
    assert len(bounds) - 1 == 6
    assert {0x10000000, 0x50000000} <= set(bounds)
