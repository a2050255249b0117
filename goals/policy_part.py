"""What every part of a `policy` is, and the amounts that several have. Known by the modules of `goals` that declare parts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NotNegative = Annotated[float, Field(ge=0)]


class PolicyPart(BaseModel):
    """Base: unknown keys refused, no conversions, finite numbers only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
