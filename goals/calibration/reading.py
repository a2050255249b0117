"""Calibration files, read: every problem at once, with its place and line.

Called by `goals.document` where a goals file names one, by ``trimtab tune``, and by `spark` where a backtest adds to one.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.kinds import CALIBRATION, other_kind
from goals.calibration.models import Calibration
from goals.file_text import file_text
from goals.problems import to_problems
from goals.yaml_source import in_order, read_yaml


def load_calibration(path: Path | str) -> Calibration:
    """The calibration in a YAML file.

    Raises
    ------
    ConfigurationError
        A file that cannot be read, that is larger than 4 MB, or anything wrong in it: all problems at once.
    """
    return parse_calibration(file_text(Path(path), "a calibration file in YAML"), str(path))


def parse_calibration(text: str, name: str) -> Calibration:
    """The calibration of a YAML text; `name` stands for it in messages. Raises as `load_calibration` does."""
    source = read_yaml(text, name)
    found = list(source.problems)
    if not isinstance(source.value, dict):
        what = "nothing" if source.value is None else type(source.value).__name__
        found.append(source.problem((), f"expected a mapping with version: 1, as `trimtab calibrate` writes it, found {what}"))
        raise ConfigurationError(name, in_order(found))
    if other := other_kind(source.value, CALIBRATION):
        raise ConfigurationError(name, [Problem("", other)])
    try:
        calibration = Calibration.model_validate(source.value)
    except ValidationError as error:
        known = {problem.place for _, problem in found}  # those are empty only for what the reader complained about
        more = to_problems(source, error.errors(include_url=False), Calibration)
        raise ConfigurationError(name, in_order([*found, *(p for p in more if p.problem.place not in known)])) from None
    if found:
        raise ConfigurationError(name, in_order(found))
    return calibration
