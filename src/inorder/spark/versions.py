"""The parts of Python's Data Source API in the installed PySpark: it grew from 4.0 to 4.2.

Classes that an older version lacks have a stand-in here, so that everything can be imported; code that needs the real
one calls `need` first, whose error gives the remedy.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
from pyspark.sql import datasource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ..errors import OptionsError

VERSION = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
STREAMS_SINCE = (4, 2)
STREAM_ARROW_WRITER_SINCE = (4, 1)
FILTERS_SINCE = (4, 1)

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter, Filter
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:

    class MissingClass:
        """Stands in for a class that this PySpark lacks."""

    DataSourceStreamArrowWriter = getattr(datasource, "DataSourceStreamArrowWriter", datasource.DataSourceStreamWriter)
    Filter = getattr(datasource, "Filter", MissingClass)
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxBytes,
            ReadMaxRows,
            SupportsTriggerAvailableNow,
        )
    except ImportError:  # before 4.2
        ReadAllAvailable = ReadLimit = ReadMaxBytes = ReadMaxRows = SupportsTriggerAvailableNow = MissingClass

HAS_STREAM_ARROW_WRITER = VERSION >= STREAM_ARROW_WRITER_SINCE


ZONE: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def as_arrow(schema: StructType) -> pa.Schema:
    """Spark's columns in the types that it sends and accepts; times are in UTC, in older versions always."""
    return to_arrow_schema(schema, **ZONE)


def need(since: tuple[int, ...], what: str, instead: str, *, version: tuple[int, ...] = VERSION) -> None:
    """Raises OptionsError if this PySpark is too old."""
    if version < since:
        wanted, found = (".".join(map(str, one)) for one in (since, version))
        raise OptionsError(
            f"{what} needs PySpark {wanted} or later, this is {found}: pip install 'pyspark>={wanted}'; {instead}"
        )


__all__ = [
    "FILTERS_SINCE",
    "HAS_STREAM_ARROW_WRITER",
    "STREAMS_SINCE",
    "DataSourceStreamArrowWriter",
    "Filter",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "as_arrow",
    "need",
]
