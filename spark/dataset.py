"""A Spark frame with a declared schema: what every step of this room takes and gives.

Called by everything in the room. A dataset class states its columns once; a frame that lacks one, or has it with another
type, is refused where it enters, not three joins later. Knows nothing of files or of what the columns mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cluster_model.errors import InputError, Problem


@dataclass(frozen=True)
class Dataset:
    """A frame with exactly the columns of `SCHEMA`, in that order.

    Raises
    ------
    InputError
        A column is missing or has another type: all of them at once. Columns beyond the schema are dropped, nullability is
        not compared (Parquet makes everything nullable).
    """

    frame: DataFrame
    SCHEMA: ClassVar[StructType] = StructType()

    def __post_init__(self) -> None:
        have = {field.name: field.dataType for field in self.frame.schema}
        wrong = []
        for field in self.SCHEMA:
            expected = field.dataType.simpleString()
            found = have[field.name].simpleString() if field.name in have else "no such column"
            if found != expected:
                wrong.append(Problem(f"column {field.name}", f"expected {expected}, found {found}"))
        if wrong:
            raise InputError(type(self).__name__, wrong)
        object.__setattr__(self, "frame", self.frame.select(*[F.col(name) for name in self.SCHEMA.names]))

    def where(self, condition: str) -> Self:
        """The rows that a SQL condition holds for."""
        return type(self)(self.frame.where(condition))
