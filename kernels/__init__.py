"""Compiled kernels: the decorators that mark them, how they are compiled, and where compiled code is kept; sorting and chance for kernels.

Imports no other room; `cluster_model`, `goals` and `optimizer` mark their kernels with `kernels.compiled`.
"""
