"""Help that is false costs more than none: every example is parsed, every command has examples and exit codes, and shells complete."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.assembled.commands.command_line import REPOSITORY, CommandLine, finished, process
from trimtab.cli import build
from trimtab.help_text import EXAMPLES, epilog


def commands() -> dict[str, Any]:
    """Every command by its words, groups left out."""
    found: dict[str, Any] = {}

    def walk(group: Any, before: tuple[str, ...]) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, (*before, name))
            else:
                found[" ".join((*before, name))] = command

    walk(build(), ())
    return found


def test_every_command_has_examples() -> None:
    assert set(EXAMPLES) == set(commands())


def test_help_as_a_word_is_help(trimtab: CommandLine) -> None:
    for words in ((), ("plan",), ("goals",), ("goals", "check")):
        asked, spelled = trimtab("help", *words), trimtab(*words, "--help")
        assert (asked.code, asked.out) == (0, spelled.out)
    assert trimtab("help", "plam").code == 2


def test_without_a_command_all_of_them_are_shown_and_nothing_is_piped_on(trimtab: CommandLine) -> None:
    ended = trimtab()
    assert (ended.code, ended.out) == (2, "")
    assert all(f" {name} " in ended.err for name in build().commands)


def test_a_command_without_a_cluster_says_both_ways_to_name_one(trimtab: CommandLine) -> None:
    ended = trimtab("status")
    assert ended.code == 2
    assert "--bootstrap-server: expected this option, found none; add it, or name a cluster of trimtab.toml with --cluster" in ended.err


def test_help_of_every_command_is_a_sentence_that_starts_with_a_verb() -> None:
    """A list of commands is read at a glance: subjects, questions and lines broken by the source stop the eye."""
    for name, command in commands().items():
        first = command.help.partition("\n\n")[0].rstrip("\f")
        assert not re.match(r"(?:What|How|Which|Where|The|A|An|Of|One|All)\b|\w+( \w+)?:", first), f"{name}: {first}"
        assert "\n" not in first, f"{name}: {first}"
        broken = re.search(r"(?<![.:\n])\n(?!\n)", command.help.rstrip("\n"))
        assert broken is None, f"{name}: the source breaks a line at {broken}"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all files that the examples name."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "cluster.json", "cluster.json.gz", "later.json.gz", "goals.yaml", "calibration.yaml", "capacity.yaml", "plan.json", "plan2.json",
        "reporter.yaml", "service.yaml", "metrics.csv", "cruisecontrol.properties", "old.json.gz", "new.json.gz", "client.properties",
        "brokerSets.json", "moves.json",
    ):  # fmt: skip
        (tmp_path / name).touch()
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "skewed-12-brokers.json.gz").touch()
    for name in ("history", "kafka-logs/__cluster_metadata-0", "plan/original", "plan/migrated"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "trimtab.toml").write_text('[clusters.prod]\nbootstrap-server = "broker1:9092"\n')
    return tmp_path


def written_in(*pages: str) -> list[str]:
    """Commands in the code blocks of pages."""
    texts = [(REPOSITORY / page).read_text("utf-8") for page in pages]
    blocks = [block for text in texts for block in re.findall(r"^```(?:console)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    return [line.partition("  # ")[0] for block in blocks for line in block.splitlines() if line.startswith("trimtab ") and "…" not in line]


def taken(line: str) -> None:
    """Refused where the command does not take the line."""
    for part in line.replace("|", "\n").splitlines():
        words = shlex.split(part.partition(" > ")[0], comments=True)
        if words[0] != "trimtab":
            continue
        root = build()
        with root.make_context("trimtab", words[1:]) as context:
            command: Any = root
            rest = [*context._protected_args, *context.args]
            while hasattr(command, "commands"):
                command, rest = command.commands[rest[0]], rest[1:]
            command.make_context(command.name, rest, parent=context)


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_are_lines_that_the_command_takes(line: str, files: Path) -> None:
    taken(line)


GUIDES = (
    "README.md", "docs/index.md", "docs/snapshot-command.md", "docs/service.md", "docs/execute.md", "docs/reporter.md", "docs/history.md",
    "docs/calibration.md", "docs/calibration-nightly.md", "docs/backtest.md", "docs/goals.md", "docs/tune.md", "docs/report.md",
)  # fmt: skip


@pytest.mark.parametrize("line", written_in(*GUIDES))
def test_commands_of_the_docs_are_lines_that_the_command_takes(line: str, files: Path) -> None:
    taken(line)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_says_examples_exit_codes_and_variables(trimtab: CommandLine, flag: str) -> None:
    ended = trimtab("plan", flag)
    assert ended.code == 0
    for said in ("Examples:", "Exit codes:", "5   with --exit-code", "TRIMTAB_BOOTSTRAP_SERVER", "--cluster", "-o", "-s", "-b", "-g"):
        assert said in ended.out
    assert "9223372036854775807" not in ended.out
    for command in ((), ("plan",), ("goals",), ("goals", "check")):
        assert "<bool>" not in trimtab(*command, flag).out


def test_defaults_are_written_as_a_person_types_them() -> None:
    """`--step 60.0` and `--held-out 0.3333333333333333` ask for a unit and a calculator."""
    for name, command in commands().items():
        for option in command.params:
            shown = option.default if getattr(option, "show_default", False) and not option.required else None
            assert not isinstance(shown, float) or len(f"{shown}") <= 4, f"{name} {option.name}: {shown}"
            assert not (isinstance(shown, float) and option.metavar == "DURATION"), f"{name} {option.name}: {shown}"


def test_help_says_what_ctrl_c_means_for_commands_that_run_until_it() -> None:
    """A supervisor that reads 130 as a failure restarts what was stopped on purpose."""
    for command in ("serve", "reporter", "history follow"):
        said = epilog(command, ())
        assert "  0   ended by SIGTERM or Ctrl-C" in said
        assert "130 interrupted\n" not in f"{said}\n"
    assert "  130 interrupted" in epilog("snapshot", ())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("trimtab plan --preset c", ["counts"]),
        ("trimtab goals show a", ["automq"]),
        ("trimtab plan -s examples/three-brokers.json --remove-broker ", ["1", "2", "3"]),
        ("trimtab plan -s examples/three-brokers.json --remove-broker 1,", ["1,1", "1,2", "1,3"]),
        ("trimtab explain -s examples/three-brokers.json --partition payments-", [f"payments-{n}" for n in range(4)]),
        ("trimtab plan -s examples/three-brokers.json --exclude-topic p", ["payments"]),
        ("trimtab plan -s no-such-file --remove-broker ", []),
        ("trimtab tune --only w", ["weight"]),
        ("trimtab policies show wix", ["wix-minimal"]),
    ],
)
def test_shells_complete(words: str, expected: list[str]) -> None:
    asked = {"_TRIMTAB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    ended = finished(process(before=f"import os\nos.environ |= {asked!r}"))
    assert ended.err == ""
    assert ended.out.split() == expected


def test_snapshots_goals_and_plans_come_by_stdin() -> None:
    snapshot = REPOSITORY / "examples" / "three-brokers.json"

    def fed(content: bytes, *arguments: str) -> tuple[int, bytes, bytes]:
        read, write = os.pipe()
        started = process(*arguments, before=f"import os; os.dup2({read}, 0)", keep=read)
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pipe.write(content)
        out, err = started.communicate(timeout=120)
        return started.returncode, out, err

    code, plan, _ = fed(snapshot.read_bytes(), "plan", "-q", "-s", "-", "-f", "json", "--preset", "counts")
    assert code == 0
    assert fed(plan, "show", "-", "-q")[1] == fed(b"", "plan", "-q", "-s", str(snapshot), "--preset", "counts")[1]
    assert json.loads(fed(plan, "show", "-", "-q", "-f", "rollback")[1])["partitions"]
    assert fed(b"{", "show", "-")[2].startswith(b"error: stdin: 1 problem")
    assert fed(snapshot.read_bytes(), "diff", "-", str(snapshot))[0] == 0
    goals = b"version: 1\npreset: counts\n"
    assert b"stdin: OK, " in fed(goals, "goals", "check", "-")[1]
    code, _, said = fed(goals, "plan", "-s", "-", "-g", "-")
    assert code == 2
    assert b"--snapshot, --goals: expected one of them from stdin (-), found 2" in said
