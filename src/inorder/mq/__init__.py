"""What a queue manager has around its queues: MQSC, channels, triggers, rules for dead letters."""

from __future__ import annotations
