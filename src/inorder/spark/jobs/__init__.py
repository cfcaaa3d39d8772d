"""Jobs on queues and archives: plain functions that take a Spark session (`inorder pipeline` runs them as commands)."""

from __future__ import annotations
