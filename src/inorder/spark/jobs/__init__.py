"""Jobs on queues and archives: plain functions that take a Spark session (`inorder pipeline` runs them as commands)."""

from __future__ import annotations

#from .audit import Audited as Audited
#from .audit import audit as audit
from .reorder import Reordered as Reordered
from .reorder import reorder as reorder

#__all__ = ["Audited", "Reordered", "audit", "reorder"]
