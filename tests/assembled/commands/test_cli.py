"""Scripts rely on exit codes and on what goes where, people on being told what to do."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import trimtab as package
from tests.assembled.commands.command_line import CommandLine, finished, process, snapshot_file

# Python statements after which the import of a module raises the signal that Ctrl-C does.
INTERRUPTED_WHEN = """
import signal
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {0!r}:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


def test_version_is_data(trimtab: CommandLine) -> None:
    ended = trimtab("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"trimtab {package.__version__}\n", "")


def test_help_names_every_command(trimtab: CommandLine) -> None:
    ended = trimtab("--help")
    assert ended.code == 0
    for command in ("demo", "snapshot", "plan", "explain", "goals"):
        assert f" {command} " in ended.out


def test_an_empty_command_is_wrong_usage(trimtab: CommandLine) -> None:
    ended = trimtab()
    assert (ended.code, ended.out) == (2, "")
    assert "plan" in ended.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["paln"], "plan"),
        (["goals", "chek"], "check"),
        (["plan", "--snapshoot", "x"], "--snapshot"),
        (["plan", "--max-move", "3"], "--max-moves"),
        (["--log-fromat", "json", "plan"], "--log-format"),
        (["goals", "show", "defalt"], "default"),
    ],
)
def test_a_misspelt_word_is_refused_with_the_one_meant(
    trimtab: CommandLine, arguments: list[str], meant: str
) -> None:
    ended = trimtab(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert meant in ended.err
    assert len(ended.err.splitlines()) <= 3


def test_a_file_without_its_option_is_refused_with_the_option_meant(trimtab: CommandLine) -> None:
    ended = trimtab("plan", "some.json")
    assert ended.code == 2
    assert "an option goes before a file, such as --snapshot" in ended.err


def test_an_empty_path_is_not_the_working_directory(trimtab: CommandLine) -> None:
    ended = trimtab("plan", "--snapshot", "", "--goals", "")
    assert (ended.code, ended.out) == (2, "")
    assert "--snapshot, --goals: expected a value, found an empty text" in ended.err


def test_an_address_with_a_scheme_is_refused_with_the_one_meant(trimtab: CommandLine) -> None:
    ended = trimtab("plan", "--bootstrap-server", "http://localhost:9092")
    assert ended.code == 2
    assert "found 'http://localhost:9092'; write localhost:9092" in ended.err


@pytest.mark.parametrize("place", ["before", "after"])
def test_options_of_the_story_stand_before_or_after_the_command(
    trimtab: CommandLine, place: str, tmp_path: Path
) -> None:
    command = ["plan", "--snapshot", str(tmp_path)]  # an empty folder is no snapshot
    story = ["-v", "--log-format", "json"]
    ended = trimtab(*story, *command) if place == "before" else trimtab(*command, *story)
    assert (ended.code, ended.out) == (2, "")
    lines = [json.loads(line) for line in ended.err.splitlines()]
    assert [line["level"] for line in lines if line["level"] != "info"] == ["error"]
    assert "InputError" in lines[-1]["traceback"]


def test_a_wrong_command_line_is_told_in_the_form_asked_for(trimtab: CommandLine) -> None:
    ended = trimtab("plan", "--nonsense", "--log-format=json")
    assert ended.code == 2
    assert "--nonsense" in json.loads(ended.err)["message"]


def test_no_traceback_without_v(trimtab: CommandLine, tmp_path: Path) -> None:
    assert "Traceback" not in trimtab("plan", "--snapshot", tmp_path).err
    assert "Traceback" in trimtab("plan", "--snapshot", tmp_path, "-v").err


@pytest.mark.parametrize("where", [(0, 0), (0, 1), (1, 1)])
def test_quiet_and_verbose_together_are_refused(trimtab: CommandLine, where: tuple[int, int]) -> None:
    words: list[list[str]] = [[], []]
    for place, option in zip(where, ("-q", "-v"), strict=True):
        words[place].append(option)
    ended = trimtab(*words[0], "policies", "list", *words[1])
    assert ended.code == 2
    assert ended.err.count("-q, -v: expected one of them, found both: -q shows less and -v shows more\n") == 1
    assert ended.err.count("-q shows less") == 1, "each of the two options told it"


def test_quiet_tells_errors_only(trimtab: CommandLine, tmp_path: Path) -> None:
    loud, quiet = trimtab("plan", "--snapshot", tmp_path), trimtab("-q", "plan", "--snapshot", tmp_path)
    assert "preset" in loud.err
    assert quiet.err.startswith("error: ")


def test_a_cluster_that_does_not_answer_is_a_failure_not_a_mistake(trimtab: CommandLine) -> None:
    ended = trimtab("plan", "--bootstrap-server", "127.0.0.1:1", "--interval", "0s")
    assert (ended.code, ended.out) == (1, "")
    assert "127.0.0.1:1" in ended.err


def test_a_bug_says_so_in_one_line_and_where_only_with_v() -> None:
    """A library that breaks inside a command stands for a bug: the operator gets a line to report."""
    broken = "import json\ndef dumps(*a, **k): raise ZeroDivisionError('inside')\njson.dumps = dumps"
    ended = finished(process("goals", "schema", before=broken))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        "error: this is a bug in Trimtab, please report it (ZeroDivisionError: inside); -v shows where"
    ]
    assert "Traceback" in finished(process("goals", "schema", "-v", before=broken)).err


def test_beside_a_broker_the_command_starts_without_numpy_or_spark() -> None:
    absent = "for m in ('numpy', 'numba', 'scipy', 'pyarrow', 'pandas', 'pyspark'): sys.modules[m] = None"
    assert finished(process("--version", before=absent)).code == 0
    assert finished(process("goals", "show", "default", before=absent)).code == 0


def test_a_missing_extra_is_named_with_its_remedy(tmp_path: Path) -> None:
    ended = finished(
        process("plan", "--snapshot", snapshot_file(tmp_path), "-q", before="sys.modules['numpy'] = None")
    )
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: this needs numpy, which is not installed: pip install 'trimtab[plan]'\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    """``trimtab … | head`` must not end in a traceback."""
    started = process("goals", "schema")
    assert started.stdout is not None
    started.stdout.close()
    assert started.stderr is not None
    assert started.stderr.read() == b""
    assert started.wait(timeout=60) == 141
    started.stderr.close()


def test_ctrl_c_ends_in_one_line(tmp_path: Path) -> None:
    """Goals come through a pipe that never gives any: the command is at work when the signal comes."""
    goals = tmp_path / "goals.yaml"
    os.mkfifo(goals)
    started = process("plan", "--snapshot", snapshot_file(tmp_path), "--goals", goals)
    with open(goals, "w"):  # opens once the command has opened it for reading
        started.send_signal(signal.SIGINT)
        ended = finished(started)
    assert (ended.code, ended.out, ended.err) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_being_told_to_end_leaves_nothing_half_written(tmp_path: Path, sent: signal.Signals) -> None:
    """`timeout`, a supervisor, a terminal that is closed: a plan of a large cluster is hundreds of megabytes that would stay behind."""
    snapshot, out = snapshot_file(tmp_path), tmp_path / "plans"
    out.mkdir()
    heard = f"import os, signal\nsignal.signal({int(sent)}, signal.SIG_DFL)"  # who runs these tests by nohup has us ignore one
    while_writing = f"{heard}\nos.fsync = lambda file: signal.raise_signal({int(sent)})"
    ended = finished(process("plan", "-q", "--snapshot", snapshot, "--preset", "counts", "--out", out / "plan.json", before=while_writing))
    assert (ended.code, ended.out, ended.err) == (128 + sent, "", "error: interrupted\n")
    assert list(out.iterdir()) == []


def test_ctrl_c_while_the_program_is_still_loading() -> None:
    """The first third of a second is imports."""
    ended = finished(process("goals", "list", before=INTERRUPTED_WHEN.format("trimtab.usage")))
    assert (ended.code, ended.out, ended.err) == (130, "", "error: interrupted\n")
    told = finished(process("goals", "list", "--log-format", "json", before=INTERRUPTED_WHEN.format("typer")))
    assert told.code == 130
    assert json.loads(told.err)["message"] == "interrupted"


@pytest.mark.parametrize("module", ["numpy", "optimizer.planner", "optimizer.report"])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_an_import_is_not_swallowed(tmp_path: Path, module: str, sent: signal.Signals) -> None:
    """The plan was made all the same, failed as a bug, or waited forever for an import lock that the exception had left behind."""
    swallowing = INTERRUPTED_WHEN.format(module).replace("signal.raise_signal(signal.SIGINT)", f"""
            try:
                signal.raise_signal({int(sent)})
            except BaseException:
                pass""")
    heard = f"import signal\nsignal.signal({int(signal.SIGTERM)}, signal.SIG_DFL)\n"
    snapshot, out = snapshot_file(tmp_path), tmp_path / "plan.json"
    ended = finished(process("plan", "-q", "--snapshot", snapshot, "--preset", "counts", "--out", out, before=heard + swallowing))
    assert (ended.code, ended.out, ended.err) == (128 + sent, "", "error: interrupted\n")
    assert not out.exists()


def test_ctrl_c_inside_generated_code_ends_with_the_same_code(tmp_path: Path) -> None:
    """Libraries run generated code, dataclasses for one; Python remembers an interrupt in there and ends by the signal."""
    generated = "import json\ndef dumps(*a, **k): exec('import signal; signal.raise_signal(signal.SIGINT)')\njson.dumps = dumps"
    ended = finished(process("goals", "schema", before=generated))
    assert (ended.code, ended.out, ended.err) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize("arguments", [("--version",), ("goals", "list"), ("goals", "schema"), ("--help",)])
def test_closed_stdout_is_said(arguments: tuple[str, ...]) -> None:
    """Data that was asked for and went nowhere is a failure (``>&-``)."""
    ended = finished(process(*arguments, before="import os; os.close(1); sys.stdout = None"))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "error: stdout is closed; give --out FILE, or a stdout that is open\n"


def test_with_stdout_closed_a_file_is_still_written(tmp_path: Path) -> None:
    closed = "import os; os.close(1); sys.stdout = None"
    path = tmp_path / "schema.json"
    assert finished(process("goals", "schema", "--out", path, before=closed)).code == 0
    assert json.loads(path.read_text())


def test_with_stderr_closed_the_command_works(tmp_path: Path) -> None:
    ended = finished(process("goals", "schema", before="import os; os.close(2); sys.stderr = None"))
    assert ended.code == 0
    assert json.loads(ended.out)
    assert finished(process("goals", "zzz", before="import os; os.close(2); sys.stderr = None")).code == 2


@pytest.mark.parametrize("arguments", [("goals", "list"), ("--help",), ("goals", "show", "default")])
def test_a_reader_that_has_seen_enough_is_no_error(arguments: tuple[str, ...]) -> None:
    """``trimtab --help | head -1``: tables and help are printed by a library that would end with 1."""
    started = process(*arguments)
    assert started.stdout is not None
    assert started.stderr is not None
    started.stdout.close()
    assert started.stderr.read() == b""
    assert started.wait(timeout=60) == 141
    started.stderr.close()


@pytest.mark.parametrize(("arguments", "there"), [(["xyz"], "plan"), (["goals", "zzz"], "schema"), (["goals"], "schema")])
def test_an_unknown_command_says_which_there_are(trimtab: CommandLine, arguments: list[str], there: str) -> None:
    ended = trimtab(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "; expected one of " in ended.err
    assert there in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "--snapshot", "FILE", "--partition", "\x1b[31mx\u202e-1"],
        ["plan", "--snapshot", "FILE", "--add-broker", "1:q\x1b[31m\nerror: all is lost"],
        ["plan", "--snapshot", "FILE", "--goals", "GOALS"],
        ["plan", "--snapshot", "absent\x1b[2J"],
        ["plan", "--snapshot", "FILE", "--preset", "\x1b[2J"],
        ["\x1b[2J"],
    ],
)
def test_no_name_can_steer_the_terminal_through_an_error(
    trimtab: CommandLine, tmp_path: Path, arguments: list[str]
) -> None:
    goals = tmp_path / "goals.yaml"
    goals.write_text('version: 1\n"k\\e[31m\\u202e": 1\ngoals:\n - {kind: "\\e[31mx"}\n')
    files = {"FILE": str(snapshot_file(tmp_path)), "GOALS": str(goals)}
    for form in ([], ["--log-format", "json"]):
        ended = trimtab(*(files.get(a, a) for a in arguments), *form)
        assert ended.code == 2
        assert not set(ended.err) & set("\x1b\u202e")
        assert not any(line.startswith("error: all is lost") for line in ended.err.splitlines())


def test_python_imports_need_one_name_only() -> None:
    assert sorted(package.__all__) == package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'plann'"):
        _ = package.plann
