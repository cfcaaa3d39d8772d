"""What every layer may use: locks, forks, the clock, streams, callers, secrets."""

from __future__ import annotations
