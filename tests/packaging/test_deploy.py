"""Manifests, units and the image do what their docs say: they parse, fit their schemas, run without privileges, and name real commands."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from trimtab.cli import build
from trimtab.reporter.config import load_config as reporter_config
from trimtab.service.config import load_config as service_config

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


def documents(path: Path) -> list[Any]:
    found: list[Any] = list(yaml.safe_load_all(path.read_text()))
    return found


def pods() -> Iterator[tuple[str, Any]]:
    for path in MANIFESTS:
        for document in documents(path):
            if document["kind"] == "StatefulSet":
                yield path.name, document["spec"]["template"]["spec"]


def parsed(words: list[str]) -> None:
    """Refused where the command does not take these words."""
    root: Any = build()
    with root.make_context("trimtab", words) as context:
        command = root.commands[[*context._protected_args, *context.args][0]]
        given = [*context._protected_args, *context.args][1:]
        options, _, _ = command.make_parser(command.context_class(command, parent=context)).parse_args(args=given)
        assert options["config"].startswith("/etc/trimtab/")


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_fit_the_schemas_of_kubernetes(path: Path) -> None:
    for document in documents(path):
        if path.name == "broker-sidecar.yaml":  # a patch: the set that it changes has the rest
            document["spec"] |= {"selector": {"matchLabels": {"app": "kafka"}}}
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize(("name", "pod"), list(pods()), ids=[name for name, _ in pods()])
def test_pods_have_least_privilege_and_commands_that_exist(name: str, pod: Any) -> None:
    assert pod["automountServiceAccountToken"] is False
    volumes = {volume["name"] for volume in pod["volumes"]} | {"history"}
    for container in (*pod["initContainers"], *pod["containers"]):
        context = container["securityContext"]
        assert context["runAsNonRoot"]
        assert context["readOnlyRootFilesystem"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        if "args" in container:
            parsed(container["args"])


def test_the_configurations_in_the_manifests_are_ones_that_start(tmp_path: Path) -> None:
    """The init container puts the id of the pod in."""
    data = documents(ROOT / "deploy" / "kubernetes" / "config.yaml")[0]["data"]
    for name, read in (("service.yaml", service_config), ("reporter.yaml", reporter_config)):
        text = data[name].replace("NODE_ID", "101").replace("/run/trimtab/token/token", str(tmp_path / "token"))
        (tmp_path / "token").write_text("x" * 48)
        (tmp_path / "token").chmod(0o440)
        path = tmp_path / name
        path.write_text(text.replace("/var/lib/trimtab", str(tmp_path)))
        assert read(path)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_hardened_and_their_commands_exist(path: Path) -> None:
    unit = configparser.RawConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(path.read_text())
    service = dict(unit["Service"])
    assert service["User"] == "trimtab"
    assert service["NoNewPrivileges"] == service["PrivateTmp"] == "yes"
    assert service["ProtectSystem"] == "strict"
    for key in ("ExecStartPre", "ExecStart"):
        if key in service:
            program, *words = shlex.split(service[key])
            assert program == "/opt/trimtab/bin/trimtab"
            parsed(words)


def test_the_image_is_small_unprivileged_and_locked() -> None:
    text = (ROOT / "Dockerfile").read_text()
    linter = Path(sys.executable).parent / "hadolint"
    assert subprocess.run([linter, ROOT / "Dockerfile"], capture_output=True, text=True, check=False).stdout == ""
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)
    assert len(stages) == 3, "a stage that builds, and one that runs"
    assert re.search(r"^USER 10001:10001$", stages[-1], re.MULTILINE)
    assert "--require-hashes" in stages[1]
    assert "compile --for" in stages[1]


def test_the_image_gets_all_that_it_copies_and_nothing_more() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert all((ROOT / name).exists() for name in kept)
    rooms = re.search(r"^packages = (\[.*\])$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert rooms is not None
    assert set(yaml.safe_load(rooms[1])) == {name for name in kept if (ROOT / name).is_dir()}


def test_the_lock_of_the_image_holds_what_the_tests_ran_with() -> None:
    """An image with other versions than those tested would be another product."""

    def versions(name: str) -> set[str]:
        lines = (ROOT / "requirements" / name).read_text().splitlines()
        return {line.split(" ")[0] for line in lines if re.match(r"[a-z0-9-]+==", line)}

    assert versions("image.txt") <= versions("test.txt")
