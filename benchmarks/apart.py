"""A function called in a process of its own, so that its peak memory is its own. Called by the benchmarks.

`apart("benchmarks.measure", "measured", job)` imports the module in a fresh interpreter and calls the function there. What is given
and returned is pickled through files; classes must be importable under their module's real name (not ``__main__``).
"""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def apart(module: str, function: str, given: Any) -> Any:
    """What ``module.function(given)`` returns, called in a new process.

    Raises
    ------
    SystemExit
        The process failed; what it wrote to stderr has been shown.
    """
    with tempfile.TemporaryDirectory() as home:
        question, answer = Path(home) / "given", Path(home) / "returned"
        with question.open("wb") as file:
            pickle.dump(given, file, protocol=5)
        command = [sys.executable, "-m", "benchmarks.apart", module, function, str(question), str(answer)]
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{module}.{function} ended with exit code {done.returncode}")
        with answer.open("rb") as file:
            return pickle.load(file)


def main() -> None:
    module, function, question, answer = sys.argv[1:]
    with open(question, "rb") as file:
        given = pickle.load(file)
    returned = getattr(importlib.import_module(module), function)(given)
    with open(answer, "wb") as file:
        pickle.dump(returned, file, protocol=5)


if __name__ == "__main__":
    main()
