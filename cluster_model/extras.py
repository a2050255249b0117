"""How to install a Python package that is missing: one table and one wording for every message.

Called wherever a package is imported that only some installations have. Imports nothing, so it may run anywhere.
"""

from __future__ import annotations

# Package -> the distribution's extra that brings it (pyproject.toml).
EXTRAS = {
    "numpy": "plan", "numba": "plan", "scipy": "plan",
    "pyarrow": "parquet",
    "psutil": "reporter", "prometheus_client": "reporter",
    "starlette": "service", "uvicorn": "service",
    "pyspark": "spark", "pandas": "spark",
    "cryptography": "stores",
}  # fmt: skip


def missing(package: str) -> str:
    """The end of a sentence that starts with what needs `package`."""
    return f"{package}, which is not installed: {remedy(package)}"


def remedy(package: str) -> str:
    """The command that installs `package`, one of `EXTRAS`."""
    return f"pip install 'trimtab[{EXTRAS[package]}]'"
