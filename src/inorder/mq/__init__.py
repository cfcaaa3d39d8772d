"""The administration of a queue manager as in MQ: MQSC, channels, triggers, rules for dead letters."""

from __future__ import annotations
