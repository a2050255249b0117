"""The verdict in every situation: which brokers are out, what it would take, what would remain and why."""

from __future__ import annotations

import re
from dataclasses import replace

from optimizer.plan import Change, LowerBounds, Plan
from optimizer.report import to_html, to_markdown
from optimizer.report.remarks import bounds_sentence
from optimizer.report.standing import stay_out
from optimizer.report.verdict import verdict
from tests.unit.optimizer import plans
from tests.unit.optimizer.reports import text_of, visible


def levelled() -> Plan:
    """Every broker outside before, none after."""
    return plans.example_plan(irreducible=False, seed=3, brokers=8)


def test_verdict_says_who_is_out_what_it_would_take_and_who_would_stay() -> None:
    plan = plans.example_plan()
    v = verdict(plan)
    assert v.tone == "partial"
    assert v.situation == "Unbalanced: 12 of 12 brokers are outside their target range and 14 brokers violate rack_aware"
    assert v.remedy == (
        "moving 186 replicas (746 GB), with 205 leadership changes, brings 10 of them into their target range "
        "and brings all 14 brokers within rack_aware"
    )
    assert v.remainder == f"brokers 8 and 12 would stay outside their target range (broker 8: {plans.IRREDUCIBLE})"
    assert v.sentence == f"{v.situation}. M{v.remedy[1:]}. B{v.remainder[1:]}."


def test_limits_and_crowded_racks_are_told_by_what_is_exceeded() -> None:
    """Brokers that violate the rack goal were told where partitions are misplaced."""
    plan = plans.example_plan(irreducible=False)
    rack = plans.rack_goal(2, 0, "satisfied")
    assert rack.before is not None
    assert rack.after is not None
    rack = replace(rack, before=replace(rack.before, misplaced=29), after=replace(rack.after, misplaced=4))
    disk = replace(plans.rack_goal(2, 1, "violated"), name="capacity-disk", kind="capacity", resource="disk")
    out = replace(plans.rack_goal(1, 0, "satisfied"), name="capacity-network_out", kind="capacity", resource="network_out")
    v = verdict(replace(plan, goals=(rack, disk, out, *(g for g in plan.goals if g.kind != "rack_aware"))))
    assert "3 hard limits are exceeded (disk on 2 brokers, network out on 1 broker)" in v.situation
    assert v.situation.endswith("and 29 partitions have too many replicas in a rack")
    assert "ends 2 of 3 exceeded limits" in v.remedy
    assert "spreads 25 of 29 partitions over racks" in v.remedy


def test_racks_that_no_broker_has_are_remarked() -> None:
    """A satisfied rack goal says nothing there."""
    plan = plans.example_plan()
    bare = replace(plan, brokers=tuple(replace(b, rack=None) for b in plan.brokers))
    said = "No broker has a rack, so rack_aware only keeps the replicas of a partition on different brokers."
    assert said in verdict(bare).remarks
    assert said not in verdict(plan).remarks


def test_brokers_beyond_a_limit_are_named_where_they_are_few() -> None:
    plan = plans.example_plan(irreducible=False)
    disk = replace(plans.rack_goal(2, 0, "satisfied"), name="capacity-disk", kind="capacity", resource="disk")
    scores = [0.5, 0.5, *[1.0] * (len(plan.brokers) - 2)]
    brokers = tuple(
        replace(b, scores_before={**b.scores_before, "capacity-disk": score}) for b, score in zip(plan.brokers, scores, strict=True)
    )
    first, second = (b.id for b in plan.brokers[:2])
    v = verdict(replace(plan, brokers=brokers, goals=(disk, *(g for g in plan.goals if g.kind != "rack_aware"))))
    assert f"2 hard limits are exceeded (disk on brokers {first} and {second})" in v.situation


def test_verdict_counts_only_brokers_that_are_judged() -> None:
    sentence = verdict(plans.draining_plan()).sentence
    assert sentence.startswith("Unbalanced: 11 of 11 brokers are outside their target range")
    assert "broker 5 is dead with 547 replicas and broker 3 is draining with 431 replicas" in sentence
    assert "empties brokers 3 and 5" in sentence


def test_some_of_the_brokers() -> None:
    plan = plans.example_plan()
    calm = tuple(
        replace(
            b,
            scores_before=dict.fromkeys(b.scores_before, 1.0),
            scores_after=dict.fromkeys(b.scores_after, 1.0),
        )
        for b in plan.brokers[:7]
    )
    v = verdict(replace(plan, brokers=(*calm, *plan.brokers[7:])))
    assert v.situation.startswith("Unbalanced: 5 of 12 brokers are outside their target range")
    assert "brings 3 of them into their target range (10 of 12 in all)" in v.remedy


def test_when_all_would_be_within_range_nothing_is_said_to_remain() -> None:
    plan = levelled()
    done = tuple(replace(b, scores_after=dict.fromkeys(b.scores_after, 1.0), violates=(), why=None) for b in plan.brokers)
    v = verdict(replace(plan, brokers=done))
    assert v.tone == "good"
    assert v.remedy.endswith("fixes all of it")
    assert v.remainder == ""


def test_an_empty_plan_of_a_level_cluster_says_so() -> None:
    v = verdict(plans.empty_plan())
    assert v.tone == "balanced"
    assert v.sentence == "Balanced: 12 of 12 brokers are within all 7 goals. The plan is empty and nothing would change."
    for report in (to_markdown(plans.empty_plan()), visible(to_html(plans.empty_plan()))):
        assert "The plan is empty: nothing would change." in report


def test_an_empty_plan_of_a_skewed_cluster_does_not_sound_content() -> None:
    v = verdict(plans.stuck_plan())
    assert v.tone == "stuck"
    assert "No allowed move would noticeably improve the balance" in v.sentence
    assert "every topic on it is excluded" in v.sentence
    assert "Balanced" not in v.sentence


def test_a_budget_is_named_where_it_binds() -> None:
    v = verdict(plans.budgeted_plan())
    assert "within the budget of at most 50 replica moves and 250 GB, " in v.remedy
    assert "Within the budget of at most 50 replica moves and 250 GB" in " ".join(text_of(plans.budgeted_plan()).split())


def test_a_hard_goal_that_cannot_be_met_is_told_with_what_is_missing() -> None:
    v = verdict(plans.infeasible_plan())
    assert v.tone == "infeasible"
    assert "hard goal capacity-disk cannot be met" in v.remainder
    assert "1.5 TB of capacity is missing" in v.remainder
    assert "ends 2 of 5 exceeded limits" in v.remedy
    assert "1.5 TB of capacity is missing" in visible(to_html(plans.infeasible_plan()))
    assert "capacity is missing" in text_of(plans.infeasible_plan())


def test_skipped_goals_are_not_called_satisfied() -> None:
    v = verdict(plans.unjudged_plan())
    assert v.tone == "unjudged"
    assert v.situation == "No goal could be judged: all 7 goals are skipped"
    one = replace(plans.unjudged_plan(), goals=plans.unjudged_plan().goals[:1])
    assert verdict(one).situation == "No goal could be judged: the only goal is skipped"


def test_shared_storage_moves_no_data() -> None:
    plan = plans.example_plan(storage="shared")
    assert "(shared storage: moves no data)" in verdict(plan).remedy
    for report in (to_markdown(plan), text_of(plan), visible(to_html(plan))):
        assert "moves no data" in " ".join(report.split())
    copied = [line for line in to_markdown(plan).splitlines() if re.match(r"\| [\d,]+ \| move", line)]
    assert copied
    assert not any(re.search(r"\d [kMGT]?B", line) for line in copied)
    assert not re.search(r"\d [kMGT]?B", verdict(plan).sentence)


def test_a_long_first_clause_of_a_reason_ends_where_its_details_start() -> None:
    details = ", ".join(["3 are refused"] * 20)
    why = f"disk: no action was found: of the 18 moves that would help most, {details}"
    plan = plans.example_plan()
    brokers = tuple(replace(b, why=why) if b.why else b for b in plan.brokers)
    assert "disk: no action was found; …" in verdict(replace(plan, brokers=brokers)).remainder



def test_acceptance_by_potential_and_what_ifs_are_said() -> None:
    options = {
        "acceptance": "potential",
        "add_brokers": [{"id": 13, "rack": "a"}, {"id": 14, "rack": None}],
        "scale_load": {"orders*": 1.5},
    }
    remarks = " ".join(verdict(plans.example_plan(options=options)).remarks)
    assert "Acceptance is by potential" in remarks
    assert "with brokers 13 (rack a) and 14 (no rack) added; with load scaled orders*=1.5" in remarks


def test_lower_bounds_stand_beside_what_would_be_used() -> None:
    plan = plans.example_plan()
    expected = "Near-optimal: any plan needs at least 172 moves and 656 GB; this one needs 186 (+8.1%) and 746 GB (+14%)."
    assert any(expected in remark for remark in verdict(plan).remarks)
    assert expected in to_markdown(plan).replace("\\", "")
    assert expected in " ".join(text_of(plan).split())
    assert "lower bound 172" in visible(to_html(plan))


def not_drained(held: tuple[float, float], whys: tuple[str, str], **options: object) -> Plan:
    """Brokers 3 and 5 are draining and would keep replicas."""
    plan = plans.example_plan(12, 80, options={"remove_brokers": [3, 5], **options})
    brokers = list(plan.brokers)
    for row, left, why in zip((2, 4), held, whys, strict=True):
        brokers[row] = replace(
            brokers[row], state="draining", scores_before={}, scores_after={}, violates=(), why=why,
            after={**brokers[row].after, "replicas": left},
        )  # fmt: skip
    return replace(plan, brokers=tuple(brokers))


def test_brokers_that_cannot_be_emptied_are_told_with_all_their_replicas() -> None:
    whys = tuple(f"draining, and would still hold {n} replicas: they would need 2 brokers; add 1" for n in (11, 16))
    plan = not_drained((11.0, 16.0), whys)  # type: ignore[arg-type]
    v = verdict(plan)
    assert v.remainder.endswith(
        "brokers 3 and 5 would still host 27 replicas (broker 3: they would need 2 brokers; add 1)"
    )
    assert re.search(r"takes \d+ replicas off brokers 3 and 5", v.remedy)


def test_brokers_that_each_keep_as_many_replicas_are_told_so() -> None:
    plan = not_drained((11.0, 11.0), tuple("draining, and would still hold 11 replicas: the budget ran out" for _ in range(2)))  # type: ignore[arg-type]
    why, members = next((why, members) for _, why, members in stay_out(plan) if "hold" in why)
    assert [b.id for b in members] == [3, 5]
    assert why == "draining, and would each still hold 11 replicas: the budget ran out"


def test_a_reason_is_told_once_in_the_verdict() -> None:
    """A budget that runs out leaves both a hard goal violated and a broker not emptied; the sentence told it for each."""
    why = "of the budget of 500 GB, 43.8 GB is left, too little for some replicas"
    plan = not_drained((11.0, 16.0), tuple(f"draining, and would still hold {n} replicas: {why}" for n in (11, 16)))  # type: ignore[arg-type]
    hard = next(g for g in plan.goals if g.hard)
    unmet = replace(hard, status="violated", explanation=f"1 would remain, 1 before (broker 2): {why}")
    told = verdict(replace(plan, goals=tuple(unmet if g is hard else g for g in plan.goals))).remainder
    assert told.count(why) == 1
    assert told.endswith("brokers 3 and 5 would still host 27 replicas")


def test_a_broker_that_cannot_be_emptied_keeps_the_verdict_from_being_good() -> None:
    plan = plans.empty_plan()
    stuck = replace(plan.brokers[0], state="draining", why="draining, and would still hold 1 replica: it is too large")
    v = verdict(replace(plan, brokers=(stuck, *plan.brokers[1:])))
    assert v.tone == "stuck"
    assert "nothing would change" not in v.sentence


def test_partitions_that_get_a_leader_are_told_as_that() -> None:
    plan = levelled()
    calm = tuple(
        replace(
            b, scores_before=dict.fromkeys(b.scores_before, 1.0), scores_after=dict.fromkeys(b.scores_after, 1.0),
            after={**b.before, "leaders": b.before["leaders"] + (b.id == 1)}, violates=(), why=None,
        )
        for b in plan.brokers
    )  # fmt: skip
    led = (Change("t", 0, (1, 2), (1, 2), None, 1),)
    goals = tuple(replace(g, before=g.after) for g in plan.goals)
    v = verdict(replace(plan, brokers=calm, proposals=led, goals=goals))
    assert v.remedy.endswith("gives 1 partition a leader")
    assert "closer to their means" not in v.sentence


def test_a_verdict_stays_short_where_nearly_everything_is_wrong() -> None:
    plan = plans.infeasible_plan()
    hard = plan.goals[0]
    reason = "2 would remain, 2 before (brokers 1, 2): all may hold 6 TB, the load is 7 TB; add brokers, or raise the limit"
    unmet = tuple(replace(hard, name=f"limit-{i}", explanation=reason) for i in range(6))
    why = "; ".join(
        [f"limit-{i}: all may hold 6 TB, the load is 7 TB; add brokers, or raise the limit" for i in range(6)]
        + ["network-in: nothing was found that would bring it nearer; a wider bound could help", "disk: its share is forced"]
    )
    brokers = tuple(replace(b, why=why if b.violates else None) for b in plan.brokers)
    v = verdict(replace(plan, goals=(*unmet, *plan.goals[1:]), brokers=brokers))
    assert "hard goals limit-0, limit-1, limit-2 and 3 more cannot be met (limit-0: all may hold 6 TB" in v.remainder
    assert v.remainder.count("all may hold") == 1
    assert "nothing was found" not in v.remainder, "a detail beside hard goals that cannot be met"
    assert "left out, 2 before" not in v.remainder
    assert len(v.sentence) < 560


def test_a_bound_that_cannot_be_reached_is_no_claim_about_this_plan() -> None:
    plan = plans.example_plan()
    more = LowerBounds(plan.summary.replica_moves + 5, plan.summary.bytes_to_move + 5)
    told = bounds_sentence(replace(plan, lower_bounds=more))
    assert "any plan needs" not in told
    assert told.endswith("since not all of it can be done.")
    budgeted = replace(plan, lower_bounds=more, options={**plan.options, "max_moves": 186})
    assert bounds_sentence(budgeted).endswith("since the budget ends before.")
    by_policy = replace(plan, lower_bounds=more, options={**plan.options, "policy": {"amount": {"kind": "one"}}})
    assert bounds_sentence(by_policy).endswith("since the policy moves nothing more.")


def unsized(plan: Plan, moves: int) -> Plan:
    """The plan, with the bytes of so many of its moves unknown."""
    blank = tuple(replace(a, bytes_to_move=0) for a in plan.actions)
    data = 0 if moves >= plan.summary.replica_moves else plan.summary.bytes_to_move
    return replace(plan, actions=blank, summary=replace(plan.summary, bytes_to_move=data, unsized_moves=moves))


def test_bytes_that_are_not_known_are_not_zero() -> None:
    plan = unsized(plans.example_plan(), 10_000)
    assert "moving 186 replicas (unknown size)" in verdict(plan).remedy
    for report in (to_markdown(plan), text_of(plan), visible(to_html(plan))):
        assert "unknown size" in " ".join(report.split())
        assert not re.search(r"\b0 B\b", report)
    assert bounds_sentence(plan) == "Near-optimal: any plan needs at least 172 moves; this one needs 186 (+8.1%)."
    some = unsized(plans.example_plan(), 6)
    assert "moving 186 replicas (at least 746 GB, 6 replicas of unknown size)" in verdict(some).remedy


def test_hard_goals_that_were_not_checked_are_in_the_verdict() -> None:
    plan = plans.empty_plan()
    limit = plans.rack_goal(0, 0, "satisfied")
    skipped = replace(
        limit, name="capacity-disk", kind="capacity", status="skipped", before=None, after=None, explanation="skipped: no broker has one"
    )
    v = verdict(replace(plan, goals=(*plan.goals, skipped)))
    assert v.tone == "unchecked"
    assert "Balanced: " not in v.sentence
    assert v.sentence.endswith("1 hard goal is not checked: capacity-disk (no broker has one).")
    assert "Balanced as far as it was checked" in visible(to_html(replace(plan, goals=(*plan.goals, skipped))))
    partly = replace(limit, name="capacity-disk", kind="capacity", unknown=10)
    v = verdict(replace(plan, goals=(*plan.goals, partly)))
    assert v.tone == "unchecked"
    assert v.sentence.endswith("capacity-disk judged without 10 partitions whose load is unknown.")


def test_a_cluster_without_replicas_is_not_called_balanced() -> None:
    plan = plans.empty_plan()
    bare = tuple(replace(b, before={**b.before, "replicas": 0.0}, after={**b.after, "replicas": 0.0}) for b in plan.brokers)
    v = verdict(replace(plan, brokers=bare))
    assert v.tone == "unjudged"
    assert "Balanced" not in v.sentence


def test_a_broker_that_is_drained_is_drawn_and_told_as_that() -> None:
    page = to_html(plans.draining_plan())
    assert "after, draining broker" in page
    assert "after, dead broker" in page
    assert 'class="draining"' in page
    assert re.search(r"- broker 3 is draining: 431 → \d+ replicas", text_of(plans.draining_plan()))


def test_what_remains_is_not_called_impossible_where_a_budget_ended_the_plan() -> None:
    plan = plans.infeasible_plan()
    left = tuple(replace(g, status="violated") if g.status == "infeasible" else g for g in plan.goals)
    page = visible(to_html(replace(plan, goals=left, options={**plan.options, "max_bytes": 500_000_000_000})))
    assert "the budget ends before" in page
    assert "no placement can fix" not in page
    assert "cannot be met" not in page
    assert "no placement can fix what remains" in visible(to_html(plan))
