"""What every part of a `policy` is, and the amounts that several have. Known by the modules of `goals` that declare parts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from cluster_model.quantities import parse_size

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Size = Annotated[
    float, BeforeValidator(parse_size), WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]})
]


class PolicyPart(BaseModel):
    """Base: unknown keys refused, no conversions, finite numbers only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
