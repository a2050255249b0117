"""`trimtab plan` from end to end: what a script reads, what a person applies with Kafka's own tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.assembled.commands.command_line import REPOSITORY, CommandLine, finished, partition, plan_of, process, snapshot_file

COUNTS = ("--preset", "counts")


def test_stdout_is_the_plan_and_nothing_else(trimtab: CommandLine, skewed: Path) -> None:
    ended = trimtab("-v", "plan", "--snapshot", skewed, *COUNTS, "--format", "json")
    assert ended.code == 0
    plan = plan_of(ended.out)
    assert {p["topic"] for p in plan["proposals"]} <= {"orders", "clicks", "users"}
    assert any(3 in p["replicas_after"] for p in plan["proposals"])


def test_the_same_input_gives_the_same_bytes(trimtab: CommandLine, skewed: Path) -> None:
    command = ("plan", "--snapshot", skewed, *COUNTS, "--format", "json")
    first = trimtab(*command)
    assert first.code == 0
    assert trimtab(*command, "--threads", "2").out == first.out


def test_the_story_is_one_sentence_of_verdict(trimtab: CommandLine, skewed: Path, level: Path) -> None:
    ended = trimtab("plan", "--snapshot", level, *COUNTS, "--format", "json")
    assert len(ended.err.splitlines()) == 1
    assert trimtab("-q", "plan", "--snapshot", level, *COUNTS, "--format", "json").err == ""


def test_without_goals_the_default_preset_holds_and_is_named(trimtab: CommandLine, skewed: Path) -> None:
    silent = trimtab("plan", "--snapshot", skewed, "--preset", "default", "--format", "json")
    told = trimtab("plan", "--snapshot", skewed, "--format", "json")
    assert silent.code == 0
    assert told.out == silent.out
    assert "preset default" in told.err


@pytest.mark.parametrize(
    ("name", "begins"), [("plan.json", '{"version"'), ("plan.html", "<!doctype html"), ("plan.md", "#")]
)
def test_the_ending_of_out_decides_the_form(
    trimtab: CommandLine, skewed: Path, tmp_path: Path, name: str, begins: str
) -> None:
    ended = trimtab("plan", "--snapshot", skewed, *COUNTS, "--out", tmp_path / name)
    assert (ended.code, ended.out) == (0, "")
    written = (tmp_path / name).read_text()
    assert written.lower().replace("{\n", "{").replace(' "version"', '"version"').startswith(begins)
    assert (
        trimtab("plan", "--snapshot", skewed, *COUNTS, "--format", "text", "--out", tmp_path / name).code == 0
    )
    assert (tmp_path / name).read_text() != written


def test_files_for_kafkas_tools_fit_the_plan(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    moves, leaders, folder = tmp_path / "moves.json", tmp_path / "leaders.json", tmp_path / "topics"
    plan = plan_of(trimtab("plan", "--snapshot", skewed, *COUNTS, "--format", "json").out)
    ended = trimtab(
        "plan", "--snapshot", skewed, *COUNTS, "--format", "reassignment", "--out", moves,
        "--election-out", leaders, "--per-topic-dir", folder,
    )  # fmt: skip
    assert ended.code == 0
    after = {(p["topic"], p["partition"]): p["replicas_after"] for p in plan["proposals"]}
    moved = {(p["topic"], p["partition"]): p["replicas"] for p in json.loads(moves.read_text())["partitions"]}
    assert moved.items() <= after.items()
    assert moved
    elected = {(p["topic"], p["partition"]) for p in json.loads(leaders.read_text())["partitions"]}
    assert elected == {
        (p["topic"], p["partition"]) for p in plan["proposals"] if p["leader_after"] != p["leader_before"]
    }
    given = {
        (p["topic"], p["partition"]): p["replicas"] for p in json.loads(skewed.read_text())["partitions"]
    }
    assert assignments(folder / "original") == given
    assert assignments(folder / "migrated") == given | after


def assignments(folder: Path) -> dict[tuple[str, int], list[int]]:
    found = {}
    for path in sorted(folder.iterdir()):
        for entry in json.loads(path.read_text())["partitions"]:
            assert path.name == f"{entry['topic']}.json"
            found[entry["topic"], entry["partition"]] = entry["replicas"]
    return found


def test_per_topic_files_of_two_plans_never_mix(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    command = (
        "plan",
        "--snapshot",
        skewed,
        *COUNTS,
        "--format",
        "json",
        "--per-topic-dir",
        tmp_path / "topics",
    )
    assert trimtab(*command).code == 0
    again = trimtab(*command)
    assert (again.code, again.out) == (2, "")
    assert "not empty" in again.err


def test_what_ifs_and_budgets_reach_the_plan(trimtab: CommandLine, level: Path) -> None:
    ended = trimtab(
        "plan", "--snapshot", level, *COUNTS, "--format", "json", "--seed", "7", "--acceptance", "potential",
        "--add-broker", "4:r4", "--add-broker", "5", "--remove-broker", "1", "--exclude-broker", "2",
        "--exclude-topic", "ord*s", "--exclude-topic", "*rders", "--scale-load", "ord*=1.5",
        "--max-moves", "4", "--max-bytes", "10GB", "--max-partitions", "3",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    plan = plan_of(ended.out)
    assert {b["id"] for b in plan["brokers"]} == {1, 2, 3, 4, 5}
    assert plan["options"]["seed"] == 7
    assert plan["options"]["acceptance"] == "potential"
    assert plan["summary"]["replica_moves"] <= 4
    assert plan["summary"]["bytes_to_move"] <= 10_000_000_000
    recorded = json.dumps(plan["options"])
    for trace in ("*rders", "ord*", "1.5", "r4", "10000000000"):
        assert trace in recorded
    frozen = [p for p in plan["proposals"] if (2 in p["replicas_before"]) != (2 in p["replicas_after"])]
    assert frozen == []


def test_the_frontier_is_of_the_plan_that_would_be_made(trimtab: CommandLine, level: Path) -> None:
    given: list[str | Path] = ["plan", "--snapshot", level, *COUNTS, "--add-broker", "4:r4", "--format", "json"]
    whole, curve = trimtab(*given), trimtab(*given, "--frontier")
    assert curve.code == 0, curve.err
    steps = json.loads(curve.out)
    assert steps["plan_id"] == plan_of(whole.out)["plan_id"]
    assert steps["steps"][-1]["bytes_to_move"] == plan_of(whole.out)["summary"]["bytes_to_move"]
    refused = trimtab("plan", "--snapshot", level, *COUNTS, "--format", "html", "--frontier")
    assert refused.code == 2
    assert "--frontier" in refused.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "expected one of them, found none"),
        (["--snapshot", "FILE", "--bootstrap-server", "b:9092"], "expected one of them, found both"),
        (["--snapshot", "FILE", "--interval", "5s"], "--interval: goes with --bootstrap-server"),
        (["--snapshot", "FILE", "--capacity", "FILE"], "cluster.json: 1 problem\n  expected capacities, found a snapshot"),
        (["--snapshot", "absent.json"], "absent.json"),
        (["--snapshot", "FILE", "--goals", "absent.yaml"], "absent.yaml"),
        (["--snapshot", "FILE", "--preset", "cuonts"], "counts"),
        (["--snapshot", "FILE", "--out", "/absent/plan.json"], "--out: there is no folder /absent"),
        (["--snapshot", "FILE", "--election-out", "-"], "--election-out"),
        (["--snapshot", "FILE", "--max-bytes", "5G"], "write 5GB or 5GiB"),
        (["--snapshot", "FILE", "--max-moves", "-1"], "--max-moves"),
        (["--snapshot", "FILE", "--add-broker", "x"], "ID:RACK"),
        (["--snapshot", "FILE", "--add-broker", "4:"], "ID:RACK"),
        (["--snapshot", "FILE", "--add-broker", "4:a,5:b"], "expected one broker, ID or ID:RACK, found '4:a,5:b'; give"),
        (["--snapshot", "FILE", "--scale-load", "orders*"], "GLOB=FACTOR"),
        (["--snapshot", "FILE", "--scale-load", "orders*=0"], "GLOB=FACTOR such as 'orders*=1.5', with a factor above 0"),
        (["--snapshot", "FILE", "--scale-load", "orders*=nan"], "GLOB=FACTOR"),
        (["--snapshot", "FILE", "--remove-broker", "99"], "99"),
        (["--snapshot", "FILE", "--acceptance", "any"], "'potential'"),
        (["--snapshot", "FILE", "--format", "xml"], "'reassignment'"),
        (["--snapshot", "FILE", "--threads", "0"], "--threads"),
        (["--snapshot", "FILE", "--seed", "9223372036854775808"], "--seed: expected at most 9223372036854775807"),
        (["--snapshot", "FILE", "--seed", "-9223372036854775809"], "--seed: expected -9223372036854775808 or more"),
        (["--snapshot", "FILE", "--max-moves", "9" * 30], "--max-moves: expected"),
        (["--snapshot", "FILE", "--add-broker", "4294967296"], "ID:RACK"),
        (["--snapshot", "FILE", "--scale-load", "*=1e29"], "--scale-load: expected loads of at most 1e+30"),
        (["--snapshot", "FILE", "--exclude-topic", "zzz*"], "--exclude-topic: no topic matches 'zzz*'"),
        (["--snapshot", "FILE", "--add-broker", "3"], "--add-broker: broker 3 is in the snapshot already"),
        (["--snapshot", "FILE", "--remove-broker", "1", "--exclude-broker", "1"], "broker 1 cannot be emptied"),
        (["--snapshot", "FILE", "--demote-broker", "1", "--exclude-broker", "1"], "broker 1 cannot be demoted"),
        (["--snapshot", "FILE", "--out", "FILE"], "--out: expected a file of its own, found that of --snapshot"),
        (["--snapshot", "FILE", "--election-out", "FILE"], "--election-out: expected a file of its own"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    trimtab: CommandLine, skewed: Path, tmp_path: Path, arguments: list[str], told: str
) -> None:
    out = [] if "--out" in arguments else ["--out", str(tmp_path / "plan.json")]
    ended = trimtab("plan", *(str(skewed) if a == "FILE" else a for a in arguments), *out)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "plan.json").exists()


def test_all_wrong_combinations_are_told_at_once(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    same = tmp_path / "same.json"
    ended = trimtab("plan", "--interval", "5s", "--snapshot", skewed, "--out", same, "--election-out", same)
    assert ended.code == 2
    assert "2 problems" in ended.err
    assert "--interval" in ended.err
    assert "--election-out" in ended.err


def test_a_refused_snapshot_names_every_place(trimtab: CommandLine, tmp_path: Path) -> None:
    wrong = snapshot_file(tmp_path, partitions=[partition("a", 0, [1, 9]), partition("b", 0, [2, 2])])
    ended = trimtab("plan", "--snapshot", wrong, *COUNTS)
    assert ended.code == 2
    assert "9" in ended.err
    assert len(ended.err.splitlines()) >= 3


def test_explain_answers_about_one_partition_or_one_broker(trimtab: CommandLine, skewed: Path) -> None:
    asked = ("explain", "--snapshot", skewed, *COUNTS)
    assert "orders-1" in trimtab(*asked, "--partition", "orders-1").out
    assert "3" in trimtab(*asked, "--broker", "3").out
    two = (["--partition", "orders-1", "--broker", "3"], ["--broker", "1", "--broker", "3"])
    for both, found in (([], "none"), *((each, "several") for each in two)):
        ended = trimtab(*asked, *both)
        assert (ended.code, ended.out) == (2, "")
        assert found in ended.err
    for option, unknown in (("--partition", "orders"), ("--partition", "ordres-1"), ("--broker", "42")):
        ended = trimtab(*asked, option, unknown)
        assert (ended.code, ended.out) == (2, "")
        assert unknown in ended.err


def test_all_that_is_wrong_with_options_is_told_at_once_in_plain_words(trimtab: CommandLine, skewed: Path) -> None:
    ended = trimtab(
        "plan", "--snapshot", skewed, "--max-bytes", "10XB", "--add-broker", "x", "--seed", "x", "--max-moves", "-1",
        "--format", "xml", "--remove-broker", "one", "--goals", "absent.yaml",
    )  # fmt: skip
    assert (ended.code, ended.out) == (2, "")
    for told in (
        "--max-bytes: unknown unit 'XB' in '10XB'",
        "--add-broker: expected ID or ID:RACK such as 7 or 7:rack-b, found 'x'",
        "--seed: expected a whole number, found 'x'",
        "--max-moves: expected 0 or more, found '-1'",
        "--format: expected one of 'text', 'json', 'html', 'markdown', 'reassignment', 'rollback', found 'xml'",
        "--remove-broker: expected a broker ID, or several as 1,2,3, found 'one'",
        "--goals: there is no file absent.yaml",
    ):
        assert told in ended.err
    assert ended.err.endswith("Try 'trimtab plan --help'.\n")
    assert "Input should" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("plan", "--snapshot", "nope"), "--snapshot: there is no file or folder nope"),
        (("plan", "--snapshot", "nope", "--calibration", "nope"), "--calibration: there is no file nope"),
        (("diff", "nope", "nope"), "A: there is no file or folder nope"),
        (("show", "nope"), "PLAN: there is no file nope"),
        (("goals", "check", "nope"), "FILE: there is no file nope"),
        (("show", 300 * "n"), f"PLAN: cannot look for {300 * 'n'}: File name too long"),
    ],
)
def test_a_file_that_is_not_there_is_no_path(trimtab: CommandLine, arguments: tuple[str, ...], told: str) -> None:
    ended = trimtab(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err


@pytest.mark.parametrize("seed", ["9223372036854775807", "-9223372036854775808"])
def test_the_outermost_seeds_work(trimtab: CommandLine, level: Path, seed: str) -> None:
    assert trimtab("plan", "--snapshot", level, *COUNTS, "--format", "json", "--seed", seed).code == 0


def test_the_goals_file_is_not_written_over(trimtab: CommandLine, level: Path, tmp_path: Path) -> None:
    goals = tmp_path / "goals.yaml"
    goals.write_text("version: 1\npreset: counts\n")
    for command in (["plan"], ["explain", "--broker", "1"]):
        ended = trimtab(*command, "--snapshot", level, "--goals", goals, "--out", goals)
        assert (ended.code, ended.out) == (2, "")
        assert "found that of --goals" in ended.err
    demo = trimtab("demo", "--quick", "--goals", goals, "--out", goals)
    assert demo.code == 2
    assert goals.read_text() == "version: 1\npreset: counts\n"


@pytest.mark.parametrize("arguments", [(), ("--frontier",)])
def test_where_stdout_takes_ascii_only_no_sign_is_lost(skewed: Path, arguments: tuple[str, ...]) -> None:
    """``LC_ALL=C trimtab plan … | less``: an arrow that became a question mark asks where the replica goes."""
    ascii_only = "sys.stdout.reconfigure(encoding='ascii')"
    ended = finished(process("plan", "-q", "--snapshot", skewed, *COUNTS, *arguments, before=ascii_only))
    assert ended.code == 0
    assert "?" not in ended.out
    assert ("->" if not arguments else "####") in ended.out


def test_a_budget_in_bytes_needs_sizes(trimtab: CommandLine, tmp_path: Path) -> None:
    parts = [{**partition("t", n, [1]), "leader_load": {"network_in": 1.0}} for n in range(3)]
    path = snapshot_file(tmp_path, partitions=parts)
    ended = trimtab("plan", "--snapshot", path, *COUNTS, "--max-bytes", "1GB")
    assert (ended.code, ended.out) == (2, "")
    assert "--max-bytes: the size of 3 of 3 partitions is unknown" in ended.err
    assert trimtab("plan", "--snapshot", path, *COUNTS, "--max-moves", "1").code == 0


def test_a_plan_of_replication_factors_is_written_in_every_form_and_shown_again(trimtab: CommandLine, skewed: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    ended = trimtab("plan", "--snapshot", skewed, *COUNTS, "--replication-factor", "orders=3", "--format", "json", "--out", out)
    assert ended.code == 0
    assert "Replication factor 3 for orders" in ended.err
    plan = plan_of(out.read_text())
    assert {(p["topic"], len(p["replicas_after"])) for p in plan["proposals"]} == {("orders", 3)}
    assert "adding" in trimtab("show", out, "--format", "text").out.replace("Adding", "adding")
    wrong = trimtab("plan", "--snapshot", skewed, "--replication-factor", "orders=0")
    assert (wrong.code, "expected GLOB=N such as 'orders*=3', found 'orders=0'" in wrong.err) == (2, True)
    missing = trimtab("plan", "--snapshot", skewed, "--replication-factor", "oders=2")
    assert (missing.code, "did you mean 'orders'?" in missing.err) == (2, True)


def test_yes_without_execute_is_refused(trimtab: CommandLine, level: Path) -> None:
    ended = trimtab("plan", "--snapshot", level, *COUNTS, "--yes")
    assert ended.code == 2
    assert "--yes: goes with --execute" in ended.err


def test_a_goal_that_gets_worse_is_not_unchanged(trimtab: CommandLine) -> None:
    """Leaderships leave a broker; as many are outside the range of outgoing traffic as before, by more."""
    snapshot = REPOSITORY / "examples" / "skewed-12-brokers.json.gz"
    ended = trimtab("plan", "--snapshot", snapshot, "--preset", "default", "--demote-broker", "3", "--format", "json")
    [goal] = [g for g in plan_of(ended.out)["goals"] if g["name"] == "usage_distribution-network_out"]
    assert goal["before"]["violations"] == goal["after"]["violations"]
    assert goal["after"]["cv"] > goal["before"]["cv"]
    assert goal["status"] == "violated"
