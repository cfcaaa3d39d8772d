"""Utilities for every layer: locks, forks, the clock, streams, callers, secrets."""

from __future__ import annotations
