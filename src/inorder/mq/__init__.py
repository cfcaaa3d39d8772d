"""The administration of a queue manager as MQ has it: MQSC, channels, triggers, rules for dead letters."""

from __future__ import annotations
