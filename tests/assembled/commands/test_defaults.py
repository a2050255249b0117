"""What the shell and `trimtab.toml` say counts where the command line says nothing, and credentials of one cluster never reach another."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from cluster_model.errors import ConfigurationError
from tests.assembled.commands.command_line import CommandLine, snapshot_file
from trimtab.defaults import LIVE, OTHERS, WANTED, Defaults, defaults_for, read_toml

ROOT = Path(__file__).resolve().parents[3]

PLAN = ("snapshot", "bootstrap_server", "command_config", "interval", "capacity", "goals", "preset", "calibration", "threads", "out")
FILE = """
[defaults]
preset = "counts"
threads = 2
[clusters.prod]
bootstrap-server = "p1:9092,p2:9092"
command-config = "prod.properties"
goals = "prod.yaml"
[clusters.dev]
bootstrap-server = "d1:9092"
"""
SHELL = {"TRIMTAB_BOOTSTRAP_SERVER": "s1:9092", "TRIMTAB_COMMAND_CONFIG": "shell.properties", "TRIMTAB_GOALS": "shell.yaml"}


def found(
    folder: Path, shell: dict[str, str], given: tuple[str, ...] = (), cluster: str | None = None, takes: tuple[str, ...] = PLAN
) -> Defaults:
    (folder / "trimtab.toml").write_text(FILE)
    return defaults_for(takes, given, cluster, shell, folder)


@pytest.mark.parametrize(
    ("given", "cluster", "shell", "expected"),
    [
        ((), None, {}, {"preset": "counts", "threads": "2"}),
        (("threads",), None, {}, {"preset": "counts"}),
        (("goals",), None, {}, {"threads": "2"}),  # a preset below the file would change what it means
        ((), None, SHELL, {"bootstrap_server": "s1:9092", "command_config": "shell.properties", "goals": "shell.yaml", "preset": "counts",
                           "threads": "2"}),
        (("snapshot",), None, SHELL, {"goals": "shell.yaml", "preset": "counts", "threads": "2"}),
        (("bootstrap_server",), None, {"TRIMTAB_CLUSTER": "prod"}, {"preset": "counts", "threads": "2"}),
        ((), "dev", SHELL, {"bootstrap_server": "d1:9092", "goals": "shell.yaml", "preset": "counts", "threads": "2"}),
        ((), None, {"TRIMTAB_CLUSTER": "dev", "TRIMTAB_COMMAND_CONFIG": "shell.properties"},
         {"bootstrap_server": "d1:9092", "preset": "counts", "threads": "2"}),
        ((), None, {"TRIMTAB_THREADS": ""}, {"preset": "counts", "threads": "2"}),
    ],
)  # fmt: skip
def test_the_command_line_wins_then_the_cluster_named_there_then_the_shell(
    tmp_path: Path, given: tuple[str, ...], cluster: str | None, shell: dict[str, str], expected: dict[str, str]
) -> None:
    assert found(tmp_path, shell, given, cluster).values == expected


@pytest.mark.parametrize(("cluster", "goals"), [("prod", "prod.yaml"), (None, "shell.yaml")])
def test_a_cluster_named_on_the_command_line_is_above_the_shell(tmp_path: Path, cluster: str | None, goals: str) -> None:
    shell = {"TRIMTAB_GOALS": "shell.yaml"} | ({} if cluster else {"TRIMTAB_CLUSTER": "prod"})
    got = found(tmp_path, shell, cluster=cluster)
    assert got.values["command_config"] == str(tmp_path / "prod.properties")
    assert Path(got.values["goals"]).name == goals
    assert got.said == f"cluster prod of {tmp_path / 'trimtab.toml'}: p1:9092,p2:9092"


def test_the_interval_of_metadata_is_another_one(tmp_path: Path) -> None:
    takes = ("bootstrap_server", "command_config", "interval")
    assert found(tmp_path, {"TRIMTAB_INTERVAL": "30s"}, takes=takes).values == {}


@pytest.mark.parametrize(
    ("given", "cluster", "shell", "said"),
    [
        (("bootstrap_server",), "prod", {}, "--cluster, --bootstrap-server: expected one of them"),
        (("snapshot",), "prod", {}, "--cluster: names a live cluster, found it with --snapshot"),
        ((), "prdo", {}, "--cluster: expected one of dev, prod, found 'prdo'"),
        ((), None, {"TRIMTAB_CLUSTER": "x"}, "TRIMTAB_CLUSTER: expected one of dev, prod, found 'x'"),
        ((), None, {"TRIMTAB_CLUSTER": "dev"} | SHELL, "TRIMTAB_CLUSTER, TRIMTAB_BOOTSTRAP_SERVER: expected one of them, found both"),
        ((), None, {"TRIMTAB_TOML": "/no/such.toml"}, "cannot be read"),
    ],
)
def test_what_disagrees_is_refused(
    tmp_path: Path, given: tuple[str, ...], cluster: str | None, shell: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        found(tmp_path, shell, given, cluster)
    assert said in str(error.value)


def test_every_mistake_in_the_file_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "trimtab.toml").write_text(
        'cluster = 1\n[defaults]\nbootstrap-server = "x:1"\nthreads = true\n[clusters.a]\ncapacty = "x"\n'
    )
    with pytest.raises(ConfigurationError) as error:
        defaults_for(PLAN, (), None, {}, tmp_path)
    text = str(error.value)
    assert "4 problems" not in text
    assert "cluster: expected defaults or clusters (did you mean clusters?)" in text
    assert "defaults.bootstrap-server: is not a setting here; it stands in [clusters.NAME]" in text
    assert "defaults.threads: expected a text or a whole number, found True" in text
    assert "clusters.a.capacty: is not a setting here (did you mean capacity?)" in text
    assert 'clusters.a: expected bootstrap-server = "HOST:PORT", found none' in text


def test_an_address_with_an_underscore_is_told_how_to_write_it(tmp_path: Path) -> None:
    (tmp_path / "trimtab.toml").write_text('[clusters.a]\nbootstrap_server = "x:1"\n')
    with pytest.raises(ConfigurationError, match=r"clusters\.a\.bootstrap_server: is not a setting here; write bootstrap-server"):
        read_toml(tmp_path / "trimtab.toml")


def test_an_address_of_a_wrong_kind_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "trimtab.toml").write_text('[clusters.a]\nbootstrap-server = ["x:1"]\n')
    with pytest.raises(ConfigurationError) as error:
        read_toml(tmp_path / "trimtab.toml")
    assert [str(p) for p in error.value.problems] == ["clusters.a.bootstrap-server: expected a text or a whole number, found ['x:1']"]


def test_an_unknown_log_format_of_the_shell_is_refused_unless_the_command_line_gives_one(
    trimtab: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMTAB_LOG_FORMAT", "JSON")
    ended = trimtab("policies", "list")
    assert (ended.code, ended.out) == (2, "")
    assert "TRIMTAB_LOG_FORMAT: expected text or json, found 'JSON'" in ended.err
    assert trimtab("policies", "list", "--log-format", "json").code == 0
    assert trimtab("--log-format", "json", "policies", "list").code == 0
    assert trimtab("policies", "list", "--help").code == 0


def test_a_wrong_value_names_where_it_came_from(trimtab: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIMTAB_THREADS", "many")
    ended = trimtab("plan", "--snapshot", snapshot_file(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert "--threads: expected a whole number, found 'many' (from TRIMTAB_THREADS)" in ended.err


def test_a_wrong_name_that_the_command_finds_names_where_it_came_from(
    trimtab: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRIMTAB_PRESET", "nope")
    ended = trimtab("plan", "--snapshot", snapshot_file(tmp_path))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith("  --preset: unknown preset 'nope'; expected one of default, counts, topics, automq (from TRIMTAB_PRESET)\n")
    given = trimtab("plan", "--snapshot", snapshot_file(tmp_path), "--preset", "nope")
    assert "from TRIMTAB_PRESET" not in given.err


def test_a_named_cluster_is_told_and_asked(trimtab: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('[clusters.prod]\nbootstrap-server = "127.0.0.1:1"\n')
    monkeypatch.setenv("TRIMTAB_TOML", str(path))
    for arguments in (("plan", "-c", "prod"), ("--cluster", "prod", "pause")):
        ended = trimtab(*arguments)
        assert ended.code == 1
        assert f"cluster prod of {path}: 127.0.0.1:1" in ended.err
        assert "127.0.0.1:1: Connection refused" in ended.err


def test_the_example_is_read_and_is_the_one_of_the_docs() -> None:
    example = ROOT / "examples" / "trimtab.toml"
    assert read_toml(example)["clusters"]["prod"]["bootstrap_server"] == "broker1:9092,broker2:9092"
    shown = (ROOT / "docs" / "configuration.md").read_text().split("```toml")[1].split("```")[0]
    assert tomllib.loads(shown) == tomllib.loads(example.read_text())


def test_the_docs_name_every_variable() -> None:
    told = (ROOT / "docs" / "configuration.md").read_text()
    assert all(f"`{name.replace('_', '-')}`" in told for name in (*LIVE, *WANTED, *OTHERS))
