"""Calibration files, written: YAML in a fixed order, numbers with six digits, a short comment at each part.

Called by `spark` (``trimtab calibrate``, ``trimtab backtest``). Equal calibrations give equal text, and the text reads back as
the same calibration, its numbers rounded.
"""

from __future__ import annotations

from io import StringIO

from pydantic import BaseModel
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.representer import RoundTripRepresenter

from cluster_model.plain_text import one_line
from cluster_model.resources import RESOURCES
from goals.calibration.models import Calibration

DIGITS = 6
WIDTH = 1_000_000  # no line is folded, so that a change of one number is a change of one line
ABOVE = {
    "history": "What this was made from.",
    "resources": "One entry for each resource. "
    "A goals file that names this file takes bound, var and min_load from here if it leaves them out.",
    "capacity": "What brokers can carry. Taken where a snapshot gives none, those of high and medium confidence; low is a lower bound.",
    "cpu_cost": "Broker cpu, explained by what passes through it.",
    "topics": "The topics whose load stands still least.",
    "correlations": "Resources of brokers that rise and fall together.",
    "loads": "Parquet with the load of each partition, for `trimtab plan --load`; the path is from this file.",
    "weights": "Recommended weights by goal name; they fill what a goals file leaves out.",
    "backtest": "Configurations that the backtest tried, with their results on the held-out part.",
}


def calibration_text(calibration: Calibration) -> str:
    """The calibration as YAML; ends with a line feed."""
    document = CommentedMap()
    for key in type(calibration).model_fields:
        if _said(calibration, key):
            document[key] = _shape(getattr(calibration, key))
    head = f"Calibration of cluster {calibration.cluster_id}, {calibration.history.begin} to {calibration.history.end}."
    document.yaml_set_start_comment(f"{one_line(head)}\nName it in a goals file (calibration: FILE), or see `trimtab tune`.")
    for key, comment in ABOVE.items():
        if key in document:
            document.yaml_set_comment_before_after_key(key, before=f"\n{comment}")
    for resource, mapping in document["resources"].items():
        mapping.yaml_add_eol_comment(RESOURCES[resource], "mean")
    yaml = YAML()
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.Representer = _Representer
    out = StringIO()
    yaml.dump(document, out)
    return out.getvalue()


class _Representer(RoundTripRepresenter):
    """Writes `null` where ruamel leaves the place empty."""


_Representer.add_representer(type(None), lambda writer, _: writer.represent_scalar("tag:yaml.org,2002:null", "null"))


def _shape(value: object, one_line: bool = False) -> object:
    """`value` as ruamel writes it, numbers rounded; a model in a list on one line, a list of numbers too."""
    match value:
        case BaseModel():
            mapping = CommentedMap()
            for key in type(value).model_fields:
                if _said(value, key):
                    mapping[key] = _shape(getattr(value, key), one_line)
        case dict():
            mapping = CommentedMap((key, _shape(inner, one_line)) for key, inner in value.items())
        case list():
            items = CommentedSeq(_shape(inner, one_line=True) for inner in value)
            if one_line or not any(isinstance(inner, BaseModel | str) for inner in value):
                items.fa.set_flow_style()
            return items
        case float():
            return float(f"{value:.{DIGITS}g}")
        case _:
            return value
    if one_line:
        mapping.fa.set_flow_style()
    return mapping


def _said(model: BaseModel, key: str) -> bool:
    """Whether a field is written: those that must be there, and others where they are not the default."""
    info = type(model).model_fields[key]
    return info.is_required() or getattr(model, key) != info.default
