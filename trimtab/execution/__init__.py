"""Carrying out an approved plan: what is next is decided by a pure planner, done through a port, and written down first."""
