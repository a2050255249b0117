"""What reports say: the verdict in every situation, numbers for people, and the conditional mood."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from optimizer.plan import Change, LowerBounds, Plan
from optimizer.report import render_text, to_html, to_markdown
from optimizer.report.labels import goal_labels
from optimizer.report.survey import flows, route, survey
from optimizer.report.units import amount, count, listing, percent, share_in_band, size, turn
from optimizer.report.verdict import bounds_sentence, verdict
from tests.unit.optimizer import plans
from tests.unit.optimizer.test_report_json import BUILDERS, named

CLAIMS = re.compile(
    r"\b(moved|was|were|has been|have been|transferred|reassigned|will|improves|migrated|succeeded)\b",
    re.IGNORECASE,
)


def text_of(plan: Plan, width: int = 80, *, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    render_text(plan, Console(file=stream, width=width, color_system=None, force_terminal=False))
    return raw.getvalue().decode(encoding)


def visible(html: str) -> str:
    """What a reader of the page sees."""
    bare = re.sub(r"<(style|script).*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", bare)


def levelled() -> Plan:
    """Everybody out of band before, nobody after."""
    return plans.example_plan(irreducible=False, seed=3, brokers=8)


def test_verdict_says_who_is_out_what_it_would_take_and_who_would_stay() -> None:
    plan = plans.example_plan()
    v = verdict(plan)
    assert v.tone == "partial"
    assert v.situation == "Unbalanced: 12 of 12 brokers are outside their target range and 14 brokers violate rack_aware"
    assert v.remedy == (
        "moving 186 replicas (746 GB) and 205 leaders brings 10 of them into their target range "
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
    assert "3 hard limits are exceeded (disk on 2, network out on 1)" in v.situation
    assert v.situation.endswith("and 29 partitions have too many replicas in a rack")
    assert "ends 2 of 3 exceeded limits" in v.remedy
    assert "spreads 25 of 29 partitions over racks" in v.remedy


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


def test_when_all_would_be_in_band_nothing_is_said_to_remain() -> None:
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


def test_shared_storage_moves_no_data() -> None:
    plan = plans.example_plan(storage="shared")
    assert "(shared storage: moves no data)" in verdict(plan).remedy
    for report in (to_markdown(plan), text_of(plan), visible(to_html(plan))):
        assert "moves no data" in " ".join(report.split())
    copied = [line for line in to_markdown(plan).splitlines() if re.match(r"\| [\d,]+ \| move", line)]
    assert copied
    assert not any(re.search(r"\d [kMGT]?B", line) for line in copied)
    assert not re.search(r"\d [kMGT]?B", verdict(plan).sentence)


def test_acceptance_by_potential_and_what_ifs_are_said() -> None:
    options = {
        "acceptance": "potential",
        "add_brokers": [{"id": 13, "rack": "a"}, {"id": 14, "rack": None}],
        "scale_load": {"orders*": 1.5},
    }
    remarks = " ".join(verdict(plans.example_plan(options=options)).remarks)
    assert "Acceptance is by potential" in remarks
    assert "with broker 13 (rack a) added; with broker 14 (no rack) added; with load scaled orders*=1.5" in remarks


def test_lower_bounds_stand_beside_what_would_be_used() -> None:
    plan = plans.example_plan()
    expected = "Near-optimal: any plan needs at least 172 moves and 656 GB; this one needs 186 (+8 %) and 746 GB (+14 %)."
    assert any(expected in remark for remark in verdict(plan).remarks)
    assert expected in to_markdown(plan).replace("\\", "")
    assert expected in " ".join(text_of(plan).split())
    assert "lower bound 172" in visible(to_html(plan))


@pytest.mark.parametrize("build", BUILDERS, ids=named)
def test_nothing_claims_to_have_happened(build: Callable[[], Plan]) -> None:
    plan = build()
    for report in (to_markdown(plan), text_of(plan), text_of(plan, 140), visible(to_html(plan))):
        assert CLAIMS.findall(report) == []
        assert "nothing has changed" in " ".join(report.split())


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("build", BUILDERS, ids=named)
def test_no_line_of_the_terminal_report_is_too_long_or_cut_in_a_word(build: Callable[[], Plan], width: int) -> None:
    lines = text_of(build(), width).splitlines()
    assert max(map(len, lines)) <= max(width, len(f"Plan {build().plan_id}"))
    body = " ".join(" ".join(lines).split())
    assert build().plan_id in body


def test_eighty_columns_hold_whole_headings_and_numbers() -> None:
    text = text_of(plans.example_plan(), 80)
    goals = next(line for line in text.splitlines() if line.startswith("goal "))
    assert goals.split() == ["goal", "status", "violations", "in", "range", "worst", "deviation"]
    assert "network-in   x1    improved        9 → 2    25% → 83%        62% → 38%" in text


@pytest.mark.parametrize("width", [80, 96, 112, 120, 160])
def test_no_number_of_a_broker_is_cut_at_any_width(width: int) -> None:
    names = {"network_in": "usage_distribution-network_out_of_the_ordinary", "disk": "d"}
    plan = plans.example_plan(14, 20, goal_names=names, racks=("availability-zone-1", None))
    text = text_of(plan, width)
    table = text[text.index("\nBrokers\n") : text.index("before  ● after")]
    head = table.splitlines()[2]
    assert {"broker", "rack", "before", "after", "mean"} <= set(head.split())
    assert ("outside in" in head) == (width >= 112)
    for b in plan.brokers:
        row = next(line for line in table.splitlines() if line.startswith(f"{b.id:>6}  "))
        assert len(re.findall(r"[+-]\d+(?:\.\d)?%|0%", row)) == 2
        assert "●" in row


def test_a_strip_shows_band_and_both_ends() -> None:
    row = next(line for line in text_of(plans.example_plan(), 80).splitlines() if line.startswith("    12  c"))
    assert row.endswith("░░│░░    ●────○       ")


def test_many_brokers_are_summed_up() -> None:
    text = text_of(plans.example_plan(60, 20), 80)
    assert "Brokers (the 20 worst of 60)" in text
    assert re.search(r"^40 more brokers: \d+ would be within their target range, \d+ outside\.$", text, re.MULTILINE)


def test_a_terminal_without_unicode_gets_ascii() -> None:
    for build in BUILDERS:
        assert text_of(build(), 80, encoding="ascii").isascii()


def test_user_text_neither_styles_nor_steers_the_terminal() -> None:
    plan = plans.hostile_plan()
    escape = replace(plan.actions[0], reason="\x1b[2J\x07[bold]would[/bold] lower", repairs=("rack_aware",))
    text = text_of(replace(plan, actions=(escape,)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]would[/bold] lower" in text
    assert plans.HOSTILE in " ".join(text.split())


def test_markdown_tables_keep_their_columns_whatever_the_names() -> None:
    lines = to_markdown(plans.hostile_plan()).splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("| ---")]
    assert len(heads) == 3
    for head in heads:
        columns = len(re.findall(r"(?<!\\)\|", lines[head]))
        row = head
        while row < len(lines) and lines[row].startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", lines[row])) == columns
            row += 1
    assert not re.search(r"(?<!\\)<", "\n".join(lines))


def test_derived_names_are_shortened_where_that_stays_unambiguous() -> None:
    names = {"network_in": "usage_distribution-network_in", "leaders": "topic_distribution-leaders", "disk": "my-disk"}
    plan = plans.example_plan(goal_names=names)
    labels = goal_labels(plan)
    assert [labels[n] for n in names.values()] == ["network_in", "topic leaders", "my-disk"]
    assert re.search(r"^network_in +x1 ", text_of(plan), re.MULTILINE)
    clash = plans.example_plan(goal_names={**names, "disk": "network_in"})
    assert goal_labels(clash)["usage_distribution-network_in"] == "usage_distribution-network_in"


def test_many_limits_are_counted_rather_than_listed() -> None:
    plan = plans.example_plan()
    limits = tuple(
        replace(plans.rack_goal(3, 0, "satisfied"), name=f"limit-{i}", kind="capacity", resource=r)
        for i, r in enumerate(("disk", "cpu", "network_in", "network_out"))
    )
    v = verdict(replace(plan, goals=(*plan.goals, *limits)))
    assert "12 hard limits are exceeded (disk on 3, cpu on 3, network in on 3, …)" in v.situation
    assert "ends all 12 exceeded limits" in v.remedy
    worse = (*limits[:3], replace(limits[3], after=plans.rack_goal(3, 1, "violated").after))
    assert "ends 11 of 12 exceeded limits" in verdict(replace(plan, goals=(*plan.goals, *worse))).remedy


def test_a_reason_that_names_its_goal_is_not_given_the_goal_again() -> None:
    plan = plans.example_plan()
    last = replace(plan.brokers[11], why="network-in: the budget is used up")
    text = text_of(replace(plan, brokers=(*plan.brokers[:11], last)))
    assert "- broker 12: network-in: the budget is used up" in text
    assert "- broker 8 in network-in: irreducible" in text


def test_repairs_come_first_then_the_best_scores() -> None:
    plan = plans.example_plan()
    found = survey(plan, 30)
    assert [bool(a.repairs) for a in found.top] == sorted((bool(a.repairs) for a in found.top), reverse=True)
    rest = [a.score for a in found.top if not a.repairs]
    assert rest == sorted(rest, reverse=True)
    assert rest[0] == max(a.score for a in plan.actions if not a.repairs)
    assert found.types == {"move": 94, "leadership": 19, "swap": 19, "exchange": 18}
    assert sum(found.types.values()) == found.total == 150


def test_flows_add_up_to_the_proposals() -> None:
    plan = plans.example_plan()
    moving = flows(plan).values()
    assert sum(f.replicas_in for f in moving) == sum(f.replicas_out for f in moving) == plan.summary.replica_moves
    assert sum(f.leaders_in for f in moving) == plan.summary.leadership_changes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("t", 0, (1, 2), (3, 2), 1, 1), "replica 1 → 3"),
        (Change("t", 0, (1, 2), (2, 1), 1, 2), "leader 1 → 2"),
        (Change("t", 0, (1, 2), (3, 2), 1, 3), "replica 1 → 3, leader 1 → 3"),
        (Change("t", 0, (1, 2), (2, 1), 2, 2), "preferred leader 1 → 2"),
        (Change("t", 0, (1, 2), (2, 1), None, 2), "leader none → 2"),
        (Change("t", 0, (1, 2, 3), (1, 3, 2), 1, 1), "replica order"),
    ],
)
def test_a_change_is_told_in_words(change: Change, words: str) -> None:
    assert route(change) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (41_234_000_000, "41.2 GB"),
        (9_995_000, "9.99 MB"),
        (9_996_000, "10.0 MB"),
        (99_960_000, "100 MB"),
        (2_000_000_000_000, "2.00 TB"),
        (-5_000_000, "-5.00 MB"),
    ],
)
def test_sizes_have_three_digits(number: int, words: str) -> None:
    assert size(number) == words


def test_amounts_have_units() -> None:
    assert amount(84_200_000.0, "network_in") == "84.2 MB/s"
    assert amount(3.214, "cpu") == "3.21 cores"
    assert amount(12_400.0, "fetch_rate") == "12.4k req/s"
    assert amount(1412.0, "replicas") == "1,412"
    assert turn(26.8e6, 41.9e6, "network_in") == ("26.8", "41.9 MB/s")
    assert turn(597e9, 1.68e12, "disk") == ("597 GB", "1.68 TB")
    assert turn(5.0, 5.0, "cpu") == ("5 cores", "5 cores")


def test_percent_does_not_round_to_perfection() -> None:
    assert share_in_band(1.0) == "100%"
    assert share_in_band(0.9961) == "99.6%"
    assert share_in_band(0.99996) == ">99.9%"
    assert share_in_band(0.0) == "0%"
    assert share_in_band(0.0001) == "<0.1%"
    assert percent(0.0912) == "9.1%"
    assert percent(-0.42, signed=True) == "-42%"
    assert percent(0.0999, signed=True) == "+10%"
    assert percent(None) == "–"
    assert count(1, "broker") == "1 broker"
    assert count(1234, "broker") == "1,234 brokers"
    assert listing(["7"]) == "7"
    assert listing(["7", "9", "11"]) == "7, 9 and 11"
    assert listing([str(i) for i in range(9)]) == "0, 1, 2, 3, 4 and 4 more"


def test_control_and_bidirectional_signs_reach_no_report() -> None:
    """U+202E in a rack's name would show the words after it backwards."""
    signs = "\x1b[2J\u202e\u200f\u2066\x85"
    plan = plans.example_plan(6, 20, racks=(f"a{signs}b", None))
    plan = replace(plan, cluster_id=signs, notes=(signs,), goals=(replace(plan.goals[0], explanation=signs), *plan.goals[1:]))
    actions = tuple(replace(a, reason=f"because {signs}") for a in plan.actions)
    plan = replace(plan, actions=actions)
    for report in (to_html(plan), to_markdown(plan), text_of(plan), text_of(plan, 140)):
        assert not set(report) & set(signs) - set("[2J")
        assert "a" in report


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
    whys = tuple(f"draining, and would still hold {n} replicas: {n} replicas would need 2 brokers; add 1" for n in (11, 16))
    plan = not_drained((11.0, 16.0), whys)  # type: ignore[arg-type]
    v = verdict(plan)
    assert v.remainder.endswith(
        "brokers 3 and 5 would still host 27 replicas (broker 3: 11 replicas would need 2 brokers; add 1)"
    )
    assert re.search(r"takes \d+ replicas off brokers 3 and 5", v.remedy)


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
    reason = "2 would be left out, 2 before (brokers 1, 2): all may hold 6 TB, the load is 7 TB; add brokers, or raise the limit"
    unmet = tuple(replace(hard, name=f"limit-{i}", explanation=reason) for i in range(6))
    why = "; ".join(
        [f"limit-{i}: all may hold 6 TB, the load is 7 TB; add brokers, or raise the limit" for i in range(6)]
        + ["network-in: nothing was found that would bring it nearer; a wider bound could help", "disk: its share is forced"]
    )
    brokers = tuple(replace(b, why=why if b.violates else None) for b in plan.brokers)
    v = verdict(replace(plan, goals=(*unmet, *plan.goals[1:]), brokers=brokers))
    assert "hard goals limit-0, limit-1, limit-2 and 3 more cannot be met (limit-0: all may hold 6 TB" in v.remainder
    assert v.remainder.count("all may hold") == 1
    assert "network-in: nothing was found that would bring it nearer; a wider bound could help; …)" in v.remainder
    assert "left out, 2 before" not in v.remainder
    assert len(v.sentence) < 640


def test_a_bound_that_cannot_be_reached_is_no_claim_about_this_plan() -> None:
    plan = plans.example_plan()
    more = LowerBounds(plan.summary.replica_moves + 5, plan.summary.bytes_to_move + 5)
    told = bounds_sentence(replace(plan, lower_bounds=more))
    assert "any plan needs" not in told
    assert told.endswith("since not all of it can be done.")
    budgeted = replace(plan, lower_bounds=more, options={**plan.options, "max_moves": 186})
    assert bounds_sentence(budgeted).endswith("since the budget ends before.")


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
    assert bounds_sentence(plan) == "Near-optimal: any plan needs at least 172 moves; this one needs 186 (+8 %)."
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
