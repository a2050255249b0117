"""The wheel is the product: built, put into a folder of its own and run from elsewhere, with nothing of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("kernels", "cluster_model", "goals", "optimizer", "metrics_reporter", "spark", "trimtab")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds."""
    place = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", place, ROOT], check=True)
    (wheel,) = place.glob("trimtab-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", place / "site", wheel], check=True)
    return place / "site"


def run(installed: Path, folder: Path, *words: str, code: str = "") -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-P", "-c", code] if code else [sys.executable, "-P", str(installed / "bin" / "trimtab"), *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_room_comes_from_the_wheel_with_its_files(installed: Path, tmp_path: Path) -> None:
    code = f"import importlib, json; print(json.dumps([importlib.import_module(room).__file__ for room in {ROOMS!r}]))"
    places = json.loads(run(installed, tmp_path, code=code).stdout)
    assert all(Path(place).is_relative_to(installed) for place in places)
    shipped = {path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file() and path.suffix != ".pyc"}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {Path(line) for line in listed.splitlines()}
    missing = {path for path in shipped & tracked if not (installed / path).is_file()}
    assert not missing, "not in the wheel"


def test_the_command_works(installed: Path, tmp_path: Path) -> None:
    example = ROOT / "examples" / "three-brokers.json"
    page, saved = tmp_path / "report.html", tmp_path / "plan.json"
    made = run(installed, tmp_path, "plan", "-q", "-s", str(example), "-o", str(page), "-o", str(saved))
    assert (made.returncode, made.stderr) == (0, "")
    assert "<!DOCTYPE html>" in page.read_text()
    shown = run(installed, tmp_path, "show", str(saved))
    assert shown.stdout.startswith("Unbalanced: ")
    assert run(installed, tmp_path, "goals", "check", "--help").returncode == 0
    assert run(installed, tmp_path, "--version").stdout.startswith("trimtab ")
