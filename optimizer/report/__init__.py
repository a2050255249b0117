"""Dry-run reports: a `Plan` as JSON, Markdown, HTML, terminal text, and in the forms of Kafka's own tools.

Called by the command line and the service. Pure functions of the plan; conditional mood, since a plan
changes nothing.
"""

from __future__ import annotations

from optimizer.report.frontier import frontier_json, render_frontier
from optimizer.report.html import to_html
from optimizer.report.json_form import iter_json, to_json
from optimizer.report.kafka_files import to_election, to_reassignment, to_rollback, topic_files
from optimizer.report.markdown import to_markdown
from optimizer.report.plan_file import read_plan
from optimizer.report.text import render_text

__all__ = [
    "frontier_json",
    "iter_json",
    "read_plan",
    "render_frontier",
    "render_text",
    "to_election",
    "to_html",
    "to_json",
    "to_markdown",
    "to_reassignment",
    "to_rollback",
    "topic_files",
]
