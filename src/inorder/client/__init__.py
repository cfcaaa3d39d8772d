"""The interface for programs: queue managers, queues, units of work, groups."""

from __future__ import annotations
