"""What a calibration would change in a goals file: which values, to what, why, and that it ends there."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_model.errors import ConfigurationError
from goals.calibration import Calibration, parse_calibration
from goals.calibration.advice import KEYS, Key
from goals.document import goals_in
from goals.tuning import Tuned, tuned
from goals.wording import plain

HEAD = """version: 1
cluster_id: prod
made_at: 2026-11-02T00:00:00Z
history: {begin: 2026-10-01T00:00:00Z, end: 2026-11-01T00:00:00Z, window: 300, samples: 1, brokers: 1, partitions: 1, digest: x}
"""
RESOURCES = """resources:
  network_in:
    {mean: 5e7, noise: 0.03, false_alarms: 1, bound: 0.1384, var: 0.5649, min_load: 2097152,
     alarms: [{bound: 0.05, false_alarms: 300}, {bound: 0.1, false_alarms: 15}, {bound: 0.2, false_alarms: 0}],
     why: ["mean: 12 brokers", "bound: noise leaves it once", "var, min_load: both"]}
  cpu: {mean: 1, noise: 0.2, bound: 0.3, var: null, min_load: 0.25}
  disk: {mean: 1, noise: null, bound: null, var: null, min_load: null}
"""


def calibration(more: str = "", resources: str = RESOURCES) -> Calibration:
    return parse_calibration(HEAD + resources + more, "c.yaml")


def tune(folder: Path, goals: str, found: Calibration | None = None, only: tuple[Key, ...] = KEYS) -> Tuned:
    path = folder / "goals.yaml"
    return tuned(f"version: 1\n{goals}\n", path, found or calibration(), folder / "c.yaml", only)


def one(folder: Path, keys: str, found: Calibration | None = None, only: tuple[Key, ...] = KEYS) -> dict[str, str]:
    """key -> new text, for a goal with these keys."""
    goal = f"goals: [{{kind: usage_distribution, {keys}}}]"
    return {change.key: change.text for change in tune(folder, goal, found, only).changes}


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        ("resource: network_in", {"bound": "0.14", "var": "0.56", "min_load": "2.1MB"}),
        ("resource: network_in, bound: 0.10, var: 0.6, min_load: 0", {"bound": "0.14", "var": "0.56", "min_load": "2100000"}),
        # Equal in two digits is equal.
        ("resource: network_in, bound: 0.1444, var: 0.555, min_load: 2.06MB", {}),
        ("resource: network_in, bound: 0.14, var: 0.56, min_load: 1MiB", {"min_load": "2MiB"}),
        ("resource: network_in, bound: 0.14, var: 0.56, min_load: '100 kB/s'", {"min_load": "2.1 MB/s"}),
        # A size is added to the bound: (0.56 - 0.14) x 50 MB/s.
        ("resource: network_in, bound: 0.14, var: 100MiB, min_load: 2MiB", {"var": "20MiB"}),
        # What the calibration does not know stays.
        ("resource: cpu", {"bound": "0.3", "min_load": "0.25"}),
        ("resource: disk, bound: 0.3", {}),
        ("resource: network_out", {}),
        # Var must stay above bound.
        ("resource: cpu, var: 0.2, min_load: 0.25", {"bound": "0.3", "var": "1.8"}),
    ],
)
def test_values_that_differ_in_two_digits_are_changed_in_the_form_they_have(tmp_path: Path, keys: str, changes: dict[str, str]) -> None:
    assert one(tmp_path, keys) == changes


@pytest.mark.parametrize(
    ("keys", "only", "changes"),
    [
        ("resource: network_in", ("bound",), {"bound": "0.14"}),
        ("resource: network_in", ("var", "min_load"), {"var": "0.56", "min_load": "2.1MB"}),
        ("resource: network_in, var: 0.12", ("bound",), {"bound": "0.029"}),  # below var, at the calibration's ratio
        ("resource: network_in, bound: 0.7, var: 0.9", ("var",), {}),  # the calibration's var is for another bound
        ("resource: network_in, bound: 0.14, var: 20MB", ("bound",), {}),
    ],
)
def test_only_what_was_asked_for_changes(tmp_path: Path, keys: str, only: tuple[Key, ...], changes: dict[str, str]) -> None:
    assert one(tmp_path, keys, only=only) == changes


def test_a_bound_that_cannot_come_below_var_stays(tmp_path: Path) -> None:
    """The calibration has var a hair above bound: at that ratio to a var of 0.12 the bound would be 0.12 as well."""
    close = calibration(resources="resources: {cpu: {mean: 1, noise: 0.1, bound: 0.3, var: 0.301, min_load: null}}\n")
    assert one(tmp_path, "resource: cpu, var: 0.12", close, ("bound",)) == {}


def test_a_size_that_would_be_written_as_it_is_does_not_change(tmp_path: Path) -> None:
    """1.2MiB is 1.3 MB in two digits, and 1,249,000 bytes are 1.2; in MiB both are 1.2."""
    found = calibration(resources="resources: {disk: {mean: 1, noise: 0.1, bound: null, var: null, min_load: 1249000}}\n")
    assert one(tmp_path, "resource: disk, min_load: 1.2MiB", found) == {}
    assert one(tmp_path, "resource: disk, min_load: 1.3MB", found) == {"min_load": "1.2MB"}


def test_each_change_has_its_reasons_and_what_to_expect(tmp_path: Path) -> None:
    bound, var, least = tune(tmp_path, "goals: [{kind: usage_distribution, resource: network_in}]").changes
    assert (bound.goal, bound.index, bound.before, bound.in_force, bound.after) == ("usage_distribution-network_in", 0, None, 0.1, 0.14)
    assert bound.why == ("bound: noise leaves it once",)
    assert var.why == least.why == ("var, min_load: both",)
    assert bound.effect == "about 14 false triggers a week less (about 1 a week are expected)"


def test_a_narrower_band_is_told_to_trigger_more_often(tmp_path: Path) -> None:
    (bound,) = tune(tmp_path, "goals: [{kind: usage_distribution, resource: network_in, bound: 0.2}]", only=("bound",)).changes
    assert bound.effect == "about 1 false trigger a week more (about 1 a week are expected)"
    (bound,) = tune(tmp_path, "goals: [{kind: usage_distribution, resource: network_in, bound: 0.4}]", only=("bound",)).changes
    assert bound.effect == "false triggers: about 1 a week are expected"  # how often 0.4 triggers is not known
    (bound,) = tune(tmp_path, "goals: [{kind: usage_distribution, resource: cpu}]", only=("bound",)).changes
    assert bound.effect == ""


def test_a_preset_takes_the_changed_goals_into_the_file(tmp_path: Path) -> None:
    result = tune(tmp_path, "preset: default  # ours")
    assert result.text == (
        "version: 1\npreset: default  # ours\ngoals:\n"
        "  - {kind: usage_distribution, resource: network_in, bound: 0.14, var: 0.56, min_load: 2.1MB}\n"
        "  - {kind: usage_distribution, resource: cpu, bound: 0.3, min_load: 0.25}\n"
    )
    assert tune(tmp_path, result.text.removeprefix("version: 1\n")).changes == ()


def test_goals_that_name_the_calibration_have_what_they_leave_out(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(HEAD + RESOURCES)
    result = tune(tmp_path, "calibration: c.yaml\ngoals: [{kind: usage_distribution, resource: network_in, bound: 0.1}]")
    assert [(c.key, c.text) for c in result.changes] == [("bound", "0.14")]
    assert tune(tmp_path, "calibration: c.yaml\npreset: default").changes == ()


def test_a_var_that_is_left_out_follows_a_bound_that_is_written(tmp_path: Path) -> None:
    found = HEAD + "resources: {cpu: {mean: 1, noise: 0.1, bound: 0.8, var: null, min_load: null}}\n"
    (tmp_path / "c.yaml").write_text(found)
    goals = "calibration: c.yaml\ngoals: [{kind: usage_distribution, resource: cpu, bound: 0.1}]"
    result = tune(tmp_path, goals, parse_calibration(found, "c.yaml"))
    assert [(c.key, c.text) for c in result.changes] == [("bound", "0.8")]


WEIGHTS = """weights: {in: 3, capacity-disk: 9, gone: 2}
backtest:
  - {weights: {in: 1}, cadence: 300, out_of_band_hours: 100, peak_utilization: 0.9, bytes_moved: 1e12, actions: 3,
     moved_back: 12, what: default}
  - {weights: {in: 2}, cadence: 300, out_of_band_hours: 80, peak_utilization: 0.8, bytes_moved: 2e12, actions: 3, moved_back: 9}
  - {weights: {in: 3}, bounds: {in: 0.2}, cadence: 600, out_of_band_hours: 69, peak_utilization: 0.75, bytes_moved: 1e12,
     actions: 3, moved_back: 2, chosen: true}
"""
IN = "{kind: usage_distribution, resource: network_in, name: in, bound: 0.1, weight: %s}"


def test_the_backtest_gives_weights_and_bounds_and_says_what_came_of_them(tmp_path: Path) -> None:
    only: tuple[Key, ...] = ("weight", "bound")
    found = calibration(WEIGHTS)
    result = tune(tmp_path, f"goals: [{IN % 1}, {{kind: capacity, resource: disk, limit: 0.8}}]", found, only)
    assert [(c.key, c.text, c.why) for c in result.changes] == [
        ("weight", "3", ("weight: chosen by the backtest",)), ("bound", "0.2", ("bound: chosen by the backtest",)),
    ]  # fmt: skip
    every = "the backtest's choice: plan every 10 min instead of 5 min (service: interval: 10m)"
    assert result.remarks == ("weights for goals that are not there: gone", every)
    assert result.expected == (
        "tested on the part of the history kept for the test and compared with the goals as they are: "
        "broker-hours outside the target range −31%, bytes moved ±0%, "
        "peak utilization 0.90 to 0.75, replicas moved back 12 to 2, planning every 10 min instead of 5 min"
    )
    errors = WEIGHTS.replace("hours: 69,", "hours: 69, out_of_band_error: 4,").replace("hours: 80,", "hours: 80, out_of_band_error: 3,")
    chance = calibration(errors)
    told = tune(tmp_path, f"goals: [{IN % 1}]", chance, only).expected
    assert "broker-hours outside the target range −31% ± 4%, bytes moved ±0%," in told
    assert "± 4" not in tune(tmp_path, f"goals: [{IN % 2}]", chance, only).expected  # it is against others than those
    now = tune(tmp_path, f"goals: [{IN % 2}]", found, only).expected
    least = "compared with the goals as they are: broker-hours outside the target range −14%, bytes moved −50%"
    assert now.startswith(f"tested on the part of the history kept for the test and {least}")
    other = tune(tmp_path, f"goals: [{IN % 7}]", found, only).expected
    assert other.startswith(
        "tested on the part of the history kept for the test and compared with the goals that the backtest started with: broker-hours"
    )
    chosen = tune(tmp_path, f"goals: [{IN.replace('0.1', '0.2') % 3}]", found)
    assert (chosen.changes, chosen.expected) == ((), "")  # not var and min_load of the history, which the backtest did not try
    (var,) = [c for c in tune(tmp_path, f"goals: [{IN % 3}]", found).changes if c.key == "var"]
    assert (var.text, var.why) == ("1.2", ("var: keeps its ratio to the bound, as the backtest tried it",))
    unknown = calibration(WEIGHTS.replace(", what: default", ""))
    expected = tune(tmp_path, f"goals: [{IN % 7}]", unknown, only).expected
    assert expected == "tested on the part of the history kept for the test: 69 broker-hours outside the target range, 1 TB moved"


def test_what_the_backtest_changed_in_the_policy_is_told_with_its_place(tmp_path: Path) -> None:
    """A goals file keeps its policy; without these the weights and bounds beside them were never tried."""
    knobs = "max_moves: 50, min_gain: 3, move_cost: 0, start: 0.4, moved_back: 2, chosen: true"
    result = tune(tmp_path, f"goals: [{IN % 1}]", calibration(WEIGHTS.replace("moved_back: 2, chosen: true", knobs)))
    for said in (
        "50 moves in a plan at most (service: budgets.max_moves: 50)",
        "plans must gain more for the bytes they copy (goals file: policy: {min_gain: 3})",
        "a move costs 0 B besides its bytes (goals file: policy: {move_cost: 0})",
        "plans start later (goals file: policy: {detector: {kind: goal_band, hysteresis: {start: 0.4, stop: 0.2}}})",
    ):
        assert any(said in remark for remark in result.remarks), result.remarks


def test_how_often_and_on_which_loads_to_plan_is_said_though_a_goals_file_has_no_place_for_it(tmp_path: Path) -> None:
    """Else an operator whose goals stay as they are hears nothing of a choice that moves a third of the bytes."""
    cost = "out_of_band_hours: 1, peak_utilization: 1, bytes_moved: 1, actions: 1, moved_back: 0"
    ends = ("horizon: 1800, what: default", "horizon: 86400, chosen: true")
    rows = [f"{{weights: {{in: 1}}, cadence: 3600, {cost}, {end}}}" for end in ends]
    result = tune(tmp_path, f"goals: [{IN % 1}]", calibration(f"backtest: [{', '.join(rows)}]\n"), ("weight",))
    assert result.changes == ()
    (told,) = result.remarks
    assert "loads averaged over 24 h instead of 30 min (service: model.long: 24h;" in told
    kept = calibration(f"backtest: [{rows[0].replace('what', 'chosen: true, what')}, {rows[1].replace('true', 'false')}]\n")
    assert tune(tmp_path, f"goals: [{IN % 1}]", kept, ("weight",)).remarks == ()


def test_after_a_backtest_nothing_is_written_that_it_did_not_try(tmp_path: Path) -> None:
    """"The goals stay as they are" was followed by bounds and vars that no replay had seen, and by a gain of another row."""
    row = "weights: {usage_distribution-network_in: 1}, bounds: {usage_distribution-network_in: 0.1}, cadence: 300"
    cost = "out_of_band_hours: 1, peak_utilization: 1, bytes_moved: 1, actions: 1, moved_back: 0"
    found = calibration(f"backtest: [{{{row}, {cost}, what: goals as they are}}, {{{row}, {cost}, chosen: true}}]\n")
    assert one(tmp_path, "resource: network_in, bound: 0.1", found) == {}
    rarely = f"{{{row}, {cost}, what: weights and bounds as they are}}"
    own = f"{{{row}, {cost}, chosen: true, what: 'default: goals as they are'}}"
    kept = calibration(f"backtest: [{own}, {rarely.replace('300', '900')}]\n")
    kind = "{kind: usage_distribution, resource:"
    result = tune(tmp_path, f"goals: [{kind} network_in, bound: 0.2}}, {kind} cpu}}]", kept)
    assert [(c.key, c.text) for c in result.changes] == [("bound", "0.1"), ("var", "0.3")]
    assert result.expected == ""
    assert result.remarks == (
        "left as they are, since the backtest did not try other bounds for them: usage_distribution-cpu",
    )


@pytest.mark.parametrize("written", ["1MiB", "'3 GB'", "'1 kB/s'", "0", "5"])
def test_a_min_load_below_one_byte_is_written_once(tmp_path: Path, written: str) -> None:
    """It was written as 0 in the place of a size, and the next run changed the 0."""
    found = calibration(resources="resources: {network_in: {mean: 5e7, noise: 0.1, bound: null, var: null, min_load: 0.5}}\n")
    goals = f"goals: [{{kind: usage_distribution, resource: network_in, min_load: {written}}}]"
    first = tune(tmp_path, goals, found)
    assert [(c.key, c.text, c.after) for c in first.changes] == [("min_load", "0.5", 0.5)]
    assert tune(tmp_path, first.text.removeprefix("version: 1\n").removesuffix("\n"), found).changes == ()


def test_a_var_below_one_byte_leaves_the_size_as_it_is(tmp_path: Path) -> None:
    """As a plain number it would be read as a share of the mean."""
    found = calibration(resources="resources: {network_in: {mean: 1, noise: 0.1, bound: 0.1, var: 0.5, min_load: null}}\n")
    assert one(tmp_path, "resource: network_in, bound: 0.1, var: 1MiB", found) == {}


def test_a_hard_goal_gets_no_weight(tmp_path: Path) -> None:
    found = calibration("weights: {usage_distribution-disk: 3}\n")
    assert one(tmp_path, "resource: disk, hard: true", found) == {}
    assert one(tmp_path, "resource: disk", found) == {"weight": "3"}


def test_goals_that_are_wrong_are_not_tuned(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"goals\[0\].kind: unknown kind 'usage'"):
        tune(tmp_path, "goals: [{kind: usage}]")
    with pytest.raises(ConfigurationError, match="calibration: expected a calibration file, found none"):
        tune(tmp_path, "preset: default\ncalibration: gone.yaml")


def test_a_file_that_says_all_is_left_as_it_is(tmp_path: Path) -> None:
    text = "goals:\n  - {kind: usage_distribution,   resource: disk}   # odd\n"
    assert tune(tmp_path, text).text == f"version: 1\n{text}\n"


amounts = st.floats(1e-3, 1e12) | st.floats(1e-3, 2.0)
shares = st.floats(1e-3, 3.0)


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration:
    entries = []
    for resource in draw(st.lists(st.sampled_from(["network_in", "cpu", "disk"]), unique=True)):
        bound = draw(st.none() | shares)
        var = draw(st.none() | shares.map(lambda more, low=bound: (low or 0.0) + more))  # type: ignore[misc]
        values = {"mean": draw(amounts), "noise": 0.1, "bound": bound, "var": var, "min_load": draw(st.none() | amounts)}
        told = ", ".join(f"{key}: {'null' if value is None else plain(value)}" for key, value in values.items())
        entries.append(f"  {resource}: {{{told}}}\n")
    weights = draw(st.dictionaries(st.sampled_from(["in", "usage_distribution-cpu", "rack_aware", "gone"]), st.floats(1e-3, 1e6)))
    listed = "weights:\n" + "".join(f"  {name}: {plain(value)}\n" for name, value in weights.items()) if weights else ""
    return parse_calibration(f"{HEAD}resources:\n{''.join(entries)}{listed}" if entries else f"{HEAD}resources: {{}}\n{listed}", "c.yaml")


@st.composite
def goal_files(draw: st.DrawFn) -> str:
    """Goals in flow and block style, with comments, quotes, gaps and sizes; valid."""
    goals = []
    for n, name in enumerate(draw(st.lists(st.sampled_from(["in", "out", "on", "at"]), unique=True, min_size=1))):
        resource = draw(st.sampled_from(["network_in", "cpu", "disk"]))
        keys = {"kind": "usage_distribution", "resource": resource, "name": draw(st.sampled_from([name, f"'{name}'", f'"{name}"']))}
        bound = draw(st.none() | st.floats(1e-3, 0.5))
        if bound is not None:
            keys["bound"] = plain(bound)
        if draw(st.booleans()):
            keys["var"] = plain(max(bound or 0.1, 0.1) + draw(shares))
        elif resource != "cpu" and draw(st.booleans()):
            keys["var"] = draw(st.sampled_from(["100MiB", "'3 GB'", '"70kB"']))
        if draw(st.booleans()):
            keys["weight"] = plain(draw(st.floats(1e-3, 1e6)))
        if draw(st.booleans()):
            keys["min_load"] = draw(st.sampled_from(["0", "1.50"] if resource == "cpu" else ["0", "1000", "1MiB", "'3 GB'", '"5TB"']))
        order = draw(st.permutations(list(keys)))
        comment = f"  # comment {n}"
        if draw(st.booleans()):
            goals.append(f"  - {{{', '.join(f'{key}: {keys[key]}' for key in order)} }}{comment}\n")
        else:
            lines = [f"{key}:  {keys[key]}{comment} {key}\n" for key in order]
            goals.append("  - " + "    # between\n    ".join(lines))
    preset = draw(st.sampled_from(["", "preset: default # base\n", "preset: automq\n"]))
    return f"# head\n{preset}goals:\n{''.join(goals)}\n# tail\n"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(goal_files(), calibrations(), st.lists(st.sampled_from(KEYS), unique=True, min_size=1))
def test_tuned_once_is_tuned_and_every_comment_survives(goals: str, found: Calibration, only: list[Key]) -> None:
    """Whatever the goals and the calibration: the result is valid, a second run finds nothing, and nothing a person wrote is lost."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        first = tune(place, goals, found, tuple(only))
        assert tune(place, first.text.removeprefix("version: 1\n").removesuffix("\n"), found, tuple(only)).changes == ()
        before, after = goals_in(f"version: 1\n{goals}\n", place / "g"), goals_in(first.text, place / "g")
    assert [goal.name for goal in after.goals] == [goal.name for goal in before.goals]
    for comment in ("# head", "# tail", *(line.partition("  #")[2] for line in goals.splitlines() if "  #" in line)):
        assert comment in first.text
    changed = {(change.goal, change.key) for change in first.changes}
    for old, new in zip(before.goals, after.goals, strict=True):
        for key in ("bound", "var", "min_load", "weight"):
            if (old.name, key) not in changed:
                assert getattr(old, key, None) == getattr(new, key, None)


def test_goals_that_a_history_says_nothing_of_are_told_with_the_reason(tmp_path: Path) -> None:
    kinds = ("replicas", "leaders", "leader_network_in", "potential_network_out", "fetch_rate", "disk")
    goals = f"goals: [{', '.join(f'{{kind: usage_distribution, name: of-{name}, resource: {name}}}' for name in kinds)}]"
    assert tune(tmp_path, goals).remarks == (
        "no bound for of-replicas, of-leaders: counts change only where replicas or leaders are moved, so there is no noise to measure",
        "no bound for of-leader_network_in: leader_network_in is not in a history; a part of network_in usually swings more than all of "
        "it, whose bound is 0.14",
        "no bound for of-potential_network_out: potential_network_out is not in a history",
        "no bound for of-fetch_rate: the history has no fetch_rate",
    )
    assert tune(tmp_path, goals, only=("weight",)).remarks == ()
