"""Jobs on queues and archives: plain functions that take a Spark session."""

from __future__ import annotations

from .audit import audit as audit
from .reorder import Reordered as Reordered
from .reorder import reorder as reorder
from .summary import Audited as Audited

__all__ = ["Audited", "Reordered", "audit", "reorder"]
