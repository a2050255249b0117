"""What all tests share: how thoroughly Hypothesis looks, the same on every machine and in every run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Machines that run tests are slow by turns: no deadline per example, and the same examples every time.
settings.register_profile(
    "trimtab", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("trimtab")
