"""The interface of a program: queue managers, queues, units of work, groups."""

from __future__ import annotations
