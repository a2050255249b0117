"""What all tests share: how thoroughly Hypothesis looks, and that Ctrl-C means something, on every machine and in every run."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

from kernels.compiled import compile_all

# Machines that run tests are slow by turns: no deadline per example, and the same examples every time.
settings.register_profile(
    "trimtab", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("trimtab")

# Tests that plan by the hundred would take hours where kernels of a changed module run interpreted.
compile_all()

# A shell that runs us in the background has us, and every program we start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
