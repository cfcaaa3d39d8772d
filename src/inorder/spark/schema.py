"""The columns of the source as Spark types, made from `arrow.schema`."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..arrow.schema import Body, arrow_schema
from ..errors import OptionsError, nearest_names
from ..support.advice import translated
from .options import STORE
from .versions import as_arrow


def spark_schema(body: Body = "binary", *, several: bool = False) -> StructType:
    """The schema in Spark's types.

    Args:
        several: for a read of several queues, whose schema begins with the column `store`.
    """
    store = [pa.field(STORE, pa.string())] if several else []
    return from_arrow_schema(pa.schema([*store, *arrow_schema(body)]))


def fitted_schema(asked: StructType, body: Body, *, several: bool = False) -> pa.Schema:
    """The columns that a caller asked for with `.schema(...)`: any of ours, in any order.

    Raises OptionsError for a column that is not ours or has another type.
    """
    ours = {field.name: field.dataType for field in spark_schema(body, several=several)}
    for field in asked:
        if field.name not in ours:
            if told := translated(field.name, ours):
                raise OptionsError(f"schema: the source has no column {field.name!r}; it must be {told}")
            near = nearest_names(field.name, ours)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(ours)}"
            raise OptionsError(f"schema: the source has no column {field.name!r}; {hint}")
        if field.dataType.simpleString() != ours[field.name].simpleString():
            hint = "; option body=string gives text" if field.name == "body" else ""
            raise OptionsError(
                f"schema: the column {field.name} is {ours[field.name].simpleString()}, not "
                f"{field.dataType.simpleString()}: leave out .schema(...), and cast it after the read{hint}"
            )
    return as_arrow(asked)


__all__ = ["arrow_schema", "fitted_schema", "spark_schema"]
